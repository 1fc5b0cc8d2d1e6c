"""The documents say what is there: names, units, choices and links are looked up."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

import advisor
from advisor.catalog.loader import hardware_documents
from advisor.config import Settings, variable_name
from advisor.core import families, model
from advisor.core.coefficients import coefficient_names
from advisor.core.terminology.check import check
from advisor.core.terminology.vocabulary import extended, standard

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def openapi() -> dict[str, Any]:
    return yaml.safe_load(read("openapi.yaml"))


def test_the_readme_gives_every_setting_with_its_default():
    row = re.compile(r"^\| `(ADVISOR_\w+)` \| (?:`(.*?)` )?\|", re.MULTILINE)
    defaults = {variable_name(f): str(f.default) for f in fields(Settings)}
    assert dict(row.findall(read("README.md"))) == defaults


def test_the_readme_lists_every_endpoint_and_no_other(openapi: dict[str, Any]):
    listed = {
        (method, path)
        for methods, path in re.findall(r"((?:`[A-Z]+`, )*`[A-Z]+) (/\S+)`", read("README.md"))
        for method in re.findall("[A-Z]+", methods)
    }
    methods = {"get", "post", "put", "delete", "patch"}
    there = {
        (m.upper(), path) for path, item in openapi["paths"].items() for m in methods & {*item}
    }
    assert listed == there | {("GET", "/openapi.json"), ("GET", "/docs")}


def test_every_numeric_field_has_its_unit_or_its_name_in_the_nomenclature(openapi: dict[str, Any]):
    page = read("docs/nomenclature.md")
    suffixes = unit_suffixes(page)
    unknown = [
        name
        for name in sorted(numeric_fields(openapi))
        if f"`{name}`" not in page and not f"_{name}".endswith(suffixes)
    ]
    assert unknown == []


def test_every_unit_of_the_nomenclature_is_in_use(openapi: dict[str, Any]):
    used = tuple(f"_{name}" for name in (*numeric_fields(openapi), *coefficient_names()))
    suffixes = unit_suffixes(read("docs/nomenclature.md"))
    assert [each for each in suffixes if not any(name.endswith(each) for name in used)] == []


def test_every_choice_of_the_api_is_in_the_nomenclature(openapi: dict[str, Any]):
    page = read("docs/nomenclature.md")
    choices = {choice for node in nodes(openapi) for choice in node.get("enum", ())} - {None}
    slo = re.compile(r"(ttft|tpot|itl|e2e)_(mean|p50|p95|p99)_ms")
    assert [c for c in sorted(choices) if f"`{c}`" not in page and not slo.fullmatch(c)] == []


def test_the_codes_of_the_nomenclature_are_those_of_the_core():
    page = read("docs/nomenclature.md")
    start, end = page.index("| code in `rejected` |"), page.index("## Economics")
    rows = re.findall(r"^\| (`.*?`) \|", page[start:end], re.MULTILINE)
    codes = [code for row in rows for code in re.findall(r"`(\w+)`", row)]
    assert len(codes) > 20
    core = "".join(source.read_text() for source in (ROOT / "advisor/core").glob("*.py"))
    suffix = "_not_divisible"
    assert f'{suffix}"' in core
    assert [code for code in codes if f'"{code.removesuffix(suffix)}"' not in core] == []


def unit_suffixes(page: str) -> tuple[str, ...]:
    """The suffixes of the nomenclature's table of units."""
    start, end = page.index("| suffix | unit |"), page.index("**Dimensionless.**")
    return tuple(re.findall(r"^\| `(_\w+)` \|", page[start:end], re.MULTILINE))


def numeric_fields(document: dict[str, Any]) -> set[str]:
    """Names of the fields that hold numbers, or amounts of money as decimal strings."""
    return {
        name
        for node in nodes(document["components"]["schemas"])
        for name, schema in node.get("properties", {}).items()
        if isinstance(schema, dict) and any(map(_is_number, nodes(schema)))
    }


def _is_number(schema: dict[str, Any]) -> bool:
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    decimal_text = "string" in kinds and "[0-9]+" in str(schema.get("pattern"))
    return decimal_text or bool({"number", "integer"} & set(kinds))


def nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object in a JSON document."""
    if isinstance(tree, dict):
        yield tree
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from nodes(part)


# What the documents refer to


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda each: str(each.relative_to(ROOT)))
def test_what_a_document_links_to_or_names_is_there(document: Path):
    text = document.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!\w+:)([^)#]+)", text)
    assert [link for link in links if not (document.parent / link).exists()] == []
    named = re.findall(r"`((?:advisor|docs|tests|migrations)/[\w./*-]+)`", text)
    assert [name for name in named if not list(ROOT.glob(name))] == []


def test_every_decision_is_in_the_list_of_decisions():
    listed = re.findall(r"\((\d{4}-[\w-]+\.md)\)", read("docs/adr/README.md"))
    assert listed == sorted(path.name for path in (ROOT / "docs/adr").glob("0*.md"))


def test_the_method_names_every_module_of_the_planner_and_every_coefficient():
    page = read("docs/method.md")
    assert [name for name in coefficient_names() if f"`{name}`" not in page] == []
    planning = re.findall(r"`(\w+\.py)`", page)
    assert [name for name in planning if not (ROOT / "advisor/core" / name).is_file()] == []


def test_the_picture_shows_every_part():
    picture = read("docs/architecture.svg")
    shown = set(re.findall(r"\w+", " ".join(re.findall(r'class="name"[^>]*>([^<]*)<', picture))))
    parts = {path.stem for path in (ROOT / "advisor").iterdir() if path.suffix in ("", ".py")}
    assert shown == {part for part in parts if not part.startswith("_")} | {"migrations"}


def test_the_changelog_has_the_present_version():
    heading = rf"^## \[{re.escape(advisor.__version__)}\] - "
    assert re.search(heading, read("CHANGELOG.md"), re.MULTILINE)


# The examples of CONTRIBUTING.md


def contributing(language: str) -> list[str]:
    block = re.compile(rf"^```{language}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return block.findall(read("CONTRIBUTING.md"))


def test_the_accelerator_shown_to_contributors_is_one_of_the_catalogue():
    (block,) = contributing("json")
    shown = json.loads(block)
    (entry,) = [each for each in hardware_documents() if each["name"] == shown["name"]]
    assert list(shown) == list(entry)
    texts = {"sources", "notes"}
    assert {k: v for k, v in shown.items() if k not in texts} == {
        k: v for k, v in entry.items() if k not in texts
    }
    assert shown["sources"].items() - entry["sources"].items() == {("...", "one for each figure")}


def test_the_model_family_shown_to_contributors_passes_its_own_test(
    monkeypatch: pytest.MonkeyPatch,
):
    function, test = contributing("python")
    monkeypatch.delitem(families.FAMILIES, "phi3")
    names = vars(families.dense) | {"pytest": pytest, "read_hf_config": model.read_hf_config}
    exec(function + test, names)
    names["test_phi3_mini_has_its_published_number_of_parameters"]()


def test_the_terminology_page_lists_every_rule_and_its_example_works():
    page = read("docs/terminology.md")
    listed = re.findall(r"^\| `([a-z0-9-]+)` \|", page, re.MULTILINE)
    assert [rule.id for rule in standard().rules] == listed
    (example,) = re.findall(r"^```toml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    vocabulary = extended(tomllib.loads(example))
    assert [f.rule for f in check("The GPU gives 900 TPS.", vocabulary)] == ["tps-of-what"]
    claim = "Serving on this GPU is memory-bound as the page pool is full."
    assert [f.sense for f in check(claim, vocabulary)] == ["capacity"]
