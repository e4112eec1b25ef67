"""Every link of the documents to a file of the project, or to a heading, leads to one."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(ROOT.glob("docs/pages/**/*.md"))
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *PAGES]
_CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.M | re.S)
_LINK = re.compile(r"\]\(([^)\s]+)\)|\b(?:href|src)=\"([^\"]+)\"")
_WORDS_OF_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")

by_document = pytest.mark.parametrize(
    "document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix()
)


def links(document: Path) -> Iterator[str]:
    for found in _LINK.finditer(_CODE.sub("", document.read_text("utf-8"))):
        yield found[1] or found[2]


def headings(document: Path) -> set[str]:
    """The anchors of a document, as the host of the repository makes them."""
    text = re.sub(r"^```.*?^```", "", document.read_text("utf-8"), flags=re.M | re.S)
    slugs: list[str] = []
    for title in re.findall(r"^#+ +(.+?) *$", text, re.M):
        words = _WORDS_OF_LINK.sub(r"\1", title).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        count = slugs.count(slug)
        slugs += [slug, f"{slug}-{count}"] if count else [slug]
    return set(slugs)


@by_document
def test_links_lead_to_files(document: Path):
    paths = [link.partition("#")[0] for link in links(document) if ":" not in link]
    missing = [path for path in paths if not (document.parent / unquote(path)).exists()]
    assert missing == []


@by_document
def test_links_lead_to_headings(document: Path):
    missing: list[str] = []
    for link in links(document):
        path, _, anchor = link.partition("#")
        target = document.parent / unquote(path) if path else document
        if ":" not in link and anchor and target.suffix == ".md" and anchor not in headings(target):
            missing.append(link)
    assert missing == []


@by_document
def test_addresses_are_well_formed(document: Path):
    odd: list[str] = []
    for link in links(document):
        parts = urlsplit(link)
        if parts.scheme and not (parts.scheme == "https" and "." in (parts.hostname or "")):
            odd.append(link)
    assert odd == []


def test_headings_are_named_as_on_the_host(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "# What it is\n\n## `-p`, and [CI](x.md)\n\n```\n# no heading\n```\n\n## What it is\n"
    )
    assert headings(page) == {"what-it-is", "-p-and-ci", "what-it-is-1"}
