"""The pages of docs/techniques are the catalogue.

`python -m tests.test_technique_pages` writes them anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.core.techniques.catalogue import catalogue
from advisor.core.techniques.pages import page

PAGES = Path(__file__).parents[1] / "docs" / "techniques"


@pytest.mark.parametrize("name", catalogue())
def test_a_page_says_what_the_catalogue_says(name: str):
    assert (PAGES / f"{name}.md").read_text(encoding="utf-8") == page(catalogue()[name])


def test_every_technique_has_its_page_and_is_in_the_list_of_them():
    pages = {path.stem for path in PAGES.glob("*.md")} - {"README"}
    assert pages == {*catalogue()}
    listed = (PAGES / "README.md").read_text(encoding="utf-8")
    for technique in catalogue().values():
        row = f"| [{technique.title}]({technique.name}.md) | `{technique.family}` |"
        assert row in listed, row


def write() -> None:
    for name, technique in catalogue().items():
        (PAGES / f"{name}.md").write_text(page(technique), encoding="utf-8")


if __name__ == "__main__":
    write()
