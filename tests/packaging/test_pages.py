"""Every page of the documentation can be reached, and what it links to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.packaging.test_tree import ROOT, tracked_files

PAGES = sorted(name for name in tracked_files() if name.endswith(".md"))
LINK = re.compile(r"\]\((?!https?:)([^)\s#]*)#?([^)\s]*)\)")
DECISIONS = ROOT / "docs" / "decisions"


def headings(page: Path) -> set[str]:
    """Its headings as links name them."""
    found = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in found}


def targets(name: str) -> list[tuple[Path, str]]:
    """What a page links to within the tree: a file, and the heading in it or nothing."""
    text = (ROOT / name).read_text(encoding="utf-8")
    folder = (ROOT / name).parent
    return [
        ((folder / path).resolve() if path else ROOT / name, heading) for path, heading in LINK.findall(text)
    ]


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    lost = [
        (path.name, heading)
        for path, heading in targets(name)
        if not path.exists() or (heading and heading not in headings(path))
    ]
    assert lost == []


def test_every_page_of_the_docs_is_linked_to() -> None:
    linked = {path for name in PAGES for path, _ in targets(name) if path != ROOT / name}
    assert [name for name in PAGES if name.startswith("docs/") and ROOT / name not in linked] == []


def test_every_decision_is_in_their_list_under_its_number() -> None:
    text = (DECISIONS / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[(\d+)\]\(([^)]+)\)", text, re.MULTILINE)
    assert listed == [(path.name[:4], path.name) for path in sorted(DECISIONS.glob("0*.md"))]
