"""The site of the documentation builds without a warning, and nothing it shows is missing."""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page.relative_to(ROOT / "docs/pages").with_suffix("").as_posix()
    for page in (ROOT / "docs/pages").rglob("*.md")
)
_LINK = re.compile(r'<(?:a|img|link|script)\b[^>]*?\b(?:href|src)="([^"]*)"')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(ROOT / "docs/mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


def html_of(site: Path, page: str) -> str:
    file = "index.html" if page == "index" else f"{page}/index.html"
    return (site / file).read_text("utf-8")


def local_links(site: Path) -> Iterator[tuple[Path, str]]:
    for page in site.rglob("*.html"):
        if page.name == "404.html":
            continue
        for link in _LINK.findall(page.read_text("utf-8")):
            parts = urlsplit(html.unescape(link))
            if not parts.scheme and not parts.netloc and parts.path:
                yield page, unquote(parts.path)


def test_every_page_is_built(site: Path):
    for page in PAGES:
        assert "<h1" in html_of(site, page)


def test_a_bar_in_a_table_has_no_escape(site: Path):
    assert "[mode|allow RULE|ask RULE|deny RULE|remove RULE]" in html_of(site, "reference/commands")


def test_every_link_and_picture_of_the_site_is_there(site: Path):
    broken = [(page, path) for page, path in local_links(site) if not (page.parent / path).exists()]
    assert broken == []


def test_screens_are_those_of_the_tests(site: Path):
    shown = sorted((site / "screens").glob("*.svg"))
    snapshots = ROOT / "tests/ui/__snapshots__/test_pictures"
    assert shown
    for picture in shown:
        original = snapshots / f"test_the_screen_looks_as_it_did[{picture.stem}].svg"
        assert picture.read_bytes() == original.read_bytes()


def test_the_changelog_and_the_security_page_are_the_files(site: Path):
    assert "Unreleased" in html_of(site, "changelog")
    assert "Report a vulnerability" in html_of(site, "security")


def test_every_page_has_a_line_in_llms_txt(site: Path):
    text = (site / "llms.txt").read_text("utf-8")
    assert text.startswith("# agent-tui\n\n> ")
    rows = dict(re.findall(r"^- \[[^\]]+\]\(https://[^/]+/agent-tui/([^)]*)\): (.+)$", text, re.M))
    expected = {"" if page == "index" else f"{page}/" for page in (*PAGES, "changelog", "security")}
    assert set(rows) == expected
    assert [row for row in rows.values() if "](" in row or len(row) > 250] == []


def test_the_schema_of_the_settings_is_where_its_address_says(site: Path):
    assert (site / "reference/config.schema.json").exists()
