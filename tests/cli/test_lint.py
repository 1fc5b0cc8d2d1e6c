"""`advisor lint`: files, folders, formats, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator  # type: ignore[import-untyped]

from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]
CLAIM = "Decode is memory-bound.\n"
# Of the schema of SARIF 2.1.0 what a log of ours uses: names, types, required and permitted values
# as the standard has them, and nothing else permitted.
SARIF = json.loads((Path(__file__).parent / "data" / "sarif-2.1.0-part.json").read_text("utf-8"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "a b.md").write_text(f"# 😀 One\n\n😀 {CLAIM}", "utf-8")
    (tmp_path / "sub" / "kernel.cu").write_text("// Decode is memory-bound by bandwidth.\n")
    (tmp_path / "sub" / "sizes.rst").write_text("The LLM needs 78 GB of the GPU's 80 GB.\n")
    (tmp_path / "sub" / "broken.txt").write_bytes(b"\xff\xfe")
    (tmp_path / "data.json").write_text("{}")
    (tmp_path / ".hidden" / "c.md").write_text(CLAIM)
    return tmp_path


def test_findings_are_lines_with_place_and_severity(advisor: Run, folder: Path):
    result = advisor("lint", str(folder))
    assert result.exit_code == 1
    first, second = result.stdout.splitlines()
    assert first.startswith(f'{folder / "a b.md"}:3:13: warning: "memory-bound": which resource')
    assert first.endswith("(ambiguous-memory-bound)")
    assert second.startswith(f"{folder / 'sub' / 'sizes.rst'}:1:15: info: ")


def test_skipped_files_are_named_with_the_reason(advisor: Run, folder: Path):
    errors = advisor("lint", str(folder)).stderr
    assert f"{folder / 'data.json'}: skipped: no format that is read" in errors
    assert f"{folder / 'sub' / 'broken.txt'}: skipped: not UTF-8" in errors
    assert advisor("lint", "--quiet", str(folder)).stderr == ""


@pytest.mark.parametrize(
    ("text", "code"),
    [(CLAIM, 1), ("Decode is not memory-bound.\n", 0), ("Decode is memory-bound at 3 TB/s.", 0)],
)
def test_only_what_needs_an_answer_makes_it_fail(
    advisor: Run, tmp_path: Path, text: str, code: int
):
    (tmp_path / "a.md").write_text(text)
    result = advisor("lint", str(tmp_path / "a.md"))
    assert (result.exit_code, bool(result.stdout)) == (code, bool(code))


def test_a_named_file_that_cannot_be_read_is_an_error(advisor: Run, folder: Path):
    assert advisor("lint", str(folder / "missing.md")).exit_code == 2
    assert advisor("lint", str(folder / "sub" / "broken.txt")).exit_code == 2
    assert advisor("lint", str(folder / "data.json")).exit_code == 0


def test_the_least_severity_can_be_chosen(advisor: Run, folder: Path):
    sizes = str(folder / "sub" / "sizes.rst")
    assert advisor("lint", sizes).exit_code == 1
    assert advisor("lint", "--min-severity", "warning", sizes).exit_code == 0


def test_json_has_every_finding_and_the_skipped_files(advisor: Run, folder: Path):
    document = json.loads(advisor("lint", "--format", "json", str(folder)).stdout)
    assert document["flagged"] == 2
    assert document["offset_unit"] == "code_point"
    assert set(document["skipped"]) == {
        str(folder / "data.json"), str(folder / "sub" / "broken.txt"),
    }  # fmt: skip
    (resolved,) = document["files"][str(folder / "sub" / "kernel.cu")]
    assert (resolved["status"], resolved["sense"]) == ("resolved", "bandwidth")


def test_sarif_obeys_its_schema_and_counts_code_points(advisor: Run, folder: Path):
    document = json.loads(advisor("lint", "--format", "sarif", str(folder)).stdout)
    Draft7Validator.check_schema(SARIF)
    assert [error.message for error in Draft7Validator(SARIF).iter_errors(document)] == []
    (run,) = document["runs"]
    assert run["columnKind"] == "unicodeCodePoints"
    warning, note = run["results"]
    assert (warning["level"], note["level"]) == ("warning", "note")
    rule = run["tool"]["driver"]["rules"][warning["ruleIndex"]]
    assert rule["id"] == warning["ruleId"] == "ambiguous-memory-bound"
    location = warning["locations"][0]["physicalLocation"]
    # An absolute path has a scheme: as a relative reference it must not begin with "/".
    assert location["artifactLocation"]["uri"] == (folder / "a b.md").as_uri()
    region = location["region"]
    assert (region["startLine"], region["startColumn"], region["endColumn"]) == (3, 13, 25)
    text = (folder / "a b.md").read_text("utf-8")
    start = region["charOffset"]
    assert text[start : start + region["charLength"]] == region["snippet"]["text"]
    skipped = run["invocations"][0]["toolExecutionNotifications"]
    assert len(skipped) == 2


def test_a_file_with_too_much_markup_is_read_by_lines_and_named(advisor: Run, tmp_path: Path):
    (tmp_path / "a.md").write_text("*a*\n" * 20_000 + "\nLLM decode is memory-bound.\n", "utf-8")
    result = advisor("lint", str(tmp_path))
    assert result.stdout.startswith(f"{tmp_path}/a.md:20002:15: warning: ")
    assert "a.md: skipped: its markup, read by lines alone" in result.stderr
    assert result.exit_code == 1


def test_annotations_escape_what_github_would_read(advisor: Run, tmp_path: Path):
    file = tmp_path / "50%, a:b.md"
    file.write_text(CLAIM)
    line = advisor("lint", "--format", "github", str(file)).stdout
    assert line.startswith(
        f"::warning file={tmp_path}/50%25%2C a%3Ab.md,line=1,col=11,endColumn=23,"
    )
    assert "title=ambiguous-memory-bound::" in line


def test_sarif_says_whether_every_file_could_be_read(advisor: Run, tmp_path: Path):
    (tmp_path / "a.md").write_text(CLAIM)
    (tmp_path / "b.md").write_bytes(b"\xff")
    (tmp_path / "c.json").write_text("{}")
    for named, successful, status in (("a.md", True, 1), ("b.md", False, 2), ("", False, 1)):
        result = advisor("lint", "--format", "sarif", str(tmp_path / named))
        (run,) = json.loads(result.stdout)["runs"]
        assert run["invocations"][0]["executionSuccessful"] is successful
        assert result.exit_code == status
    notes = run["invocations"][0]["toolExecutionNotifications"]
    assert [note["level"] for note in notes] == ["error", "note"]


def test_a_term_over_two_lines_ends_in_the_second(advisor: Run, tmp_path: Path):
    (tmp_path / "a.md").write_text("GPU decode is memory\nbound.\n", "utf-8")
    (run,) = json.loads(advisor("lint", "--format", "sarif", str(tmp_path)).stdout)["runs"]
    region = run["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert (region["startLine"], region["startColumn"]) == (1, 15)
    assert (region["endLine"], region["endColumn"]) == (2, 6)
    annotation = advisor("lint", "--format", "github", str(tmp_path)).stdout
    assert "line=1,col=15,endLine=2,title=" in annotation


def test_standard_input_is_plain_text(advisor: Run):
    result = advisor("lint", "-", stdin=CLAIM)
    assert result.stdout.startswith("-:1:11: warning:")


def test_a_team_names_its_rules_by_option_or_variable(advisor: Run, tmp_path: Path):
    file, rules = tmp_path / "a.md", tmp_path / "rules.toml"
    file.write_text(CLAIM)
    rules.write_text('disable = ["ambiguous-memory-bound"]\n')
    assert advisor("lint", "--rules", str(rules), str(file)).exit_code == 0
    assert advisor("lint", str(file), ADVISOR_TERMINOLOGY_RULES=str(rules)).exit_code == 0
    rules.write_text('disable = ["nonsense"]\n')
    refused = advisor("lint", "--rules", str(rules), str(file))
    assert refused.exit_code == 2
    assert "'nonsense'" in refused.stderr


def test_many_files_show_how_far_it_is(tmp_path: Path):
    for number in range(30):
        (tmp_path / f"{number}.md").write_text(CLAIM)
    command = [sys.executable, "-m", "advisor", "lint", str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True,
        env={"FORCE_COLOR": "1", "PATH": "", "TERM": "xterm"},
    )  # fmt: skip
    assert done.returncode == 1
    assert "Reading" in done.stderr
    assert "Reading" not in done.stdout
    assert len(done.stdout.splitlines()) == 30


def test_the_hook_for_other_repositories_runs_this_command(advisor: Run, tmp_path: Path):
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    program, *arguments = hook["entry"].split()
    assert (program, hook["language"]) == ("advisor", "python")
    (tmp_path / "a.md").write_text(CLAIM)
    assert advisor(*arguments, str(tmp_path / "a.md")).exit_code == 1
