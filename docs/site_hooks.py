"""Additions to the build of the site: files of the repository, pictures of screens, ``llms.txt``.

The pages link to files of the repository as they lie, so that the links also work in a checkout
and on the host of the repository. Here such a link becomes one to the site, or to the host.
"""

import posixpath
import re
from pathlib import Path
from urllib.parse import unquote

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = "docs/pages"
INCLUDED = {"changelog.md": "CHANGELOG.md", "security.md": "SECURITY.md"}
"""Pages of the site that are files of the repository."""

_SCREENS = re.compile(
    r"tests/ui/__snapshots__/test_pictures/test_the_screen_looks_as_it_did\[([\w-]+)\]\.svg"
)
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.M | re.S)
_CELL = re.compile(r"<td>.*?</td>", re.S)
_SENTENCE_END = re.compile(r"(?<=[a-z0-9)`*]\.)\s")
_first_sentences: dict[str, str] = {}
_navigation: list[Navigation] = []


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the included pages, and the screens that a page shows."""
    for page, source in INCLUDED.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    shown = {
        name
        for page in files.documentation_pages()
        for name in _SCREENS.findall(unquote(page.content_string))
    }
    for name in sorted(shown):
        for variant in _variants(name):
            uri, source = f"screens/{variant}.svg", _screen(variant)
            picture = File.generated(config, uri, abs_src_path=str(source))
            picture.inclusion = InclusionLevel.NOT_IN_NAV
            files.append(picture)
    return files


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Remember the navigation for ``llms.txt``."""
    _navigation[:] = [nav]
    return nav


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to files of the repository at the site, or at the host of the repository."""
    here = page.file.src_uri
    _first_sentences[here] = first_sentence(markdown)
    source = INCLUDED.get(here, f"{PAGES}/{here}")

    def rewritten(link: re.Match[str]) -> str:
        path, hash_sign, anchor = link["target"].partition("#")
        if not path or ":" in path:
            return link[0]
        named = posixpath.normpath(posixpath.join(posixpath.dirname(source), unquote(path)))
        if screen := _SCREENS.fullmatch(named):
            return _picture(link["text"], screen[1], here)
        own = {file: page for page, file in INCLUDED.items()}
        if named in own or named.startswith(f"{PAGES}/"):
            target = own.get(named, named.removeprefix(f"{PAGES}/"))
            path = posixpath.relpath(target, posixpath.dirname(here) or ".")
        else:
            kind = "raw" if link["image"] else "tree" if (ROOT / named).is_dir() else "blob"
            path = f"{config.repo_url}/{kind}/main/{named}"
        return f"{link['image']}[{link['text']}]({path}{hash_sign}{anchor})"

    pieces, end = [], 0
    for code in _CODE.finditer(markdown):
        pieces += [_LINK.sub(rewritten, markdown[end : code.start()]), code[0]]
        end = code.end()
    return "".join((*pieces, _LINK.sub(rewritten, markdown[end:])))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Take the escape of ``|`` out of code in tables, where the host of the repository wants it."""
    return _CELL.sub(lambda cell: cell[0].replace("\\|", "|"), html)


def on_post_build(config: MkDocsConfig) -> None:
    """Write ``llms.txt``: every page with what its first sentence says."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}"]
    for item in _navigation[0].items:
        if isinstance(item, Page):
            lines += ["", f"## {item.title}", "", _row(item, config)]
        elif isinstance(item, Section):
            lines += ["", f"## {item.title}", ""]
            lines += [_row(page, config) for page in item.children if isinstance(page, Page)]
    (Path(config.site_dir) / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def first_sentence(markdown: str) -> str:
    """The first sentence of the first paragraph; links lead nowhere there."""
    text = re.sub(r"^(---\n.*?^---\n|```.*?^```)", "", markdown, flags=re.M | re.S)
    for paragraph in text.split("\n\n"):
        line = " ".join(paragraph.split())
        if line and not re.match(r"[#|!>*-] ?|\d+\.|    ", line) and paragraph[:4] != "    ":
            plain = _LINK.sub(r"\g<text>", line)
            return _SENTENCE_END.split(plain)[0].rstrip(":")
    return ""


def _row(page: Page, config: MkDocsConfig) -> str:
    about = _first_sentences[page.file.src_uri]
    return f"- [{page.title}]({config.site_url}{page.url}){f': {about}' if about else ''}"


def _picture(text: str, name: str, page: str) -> str:
    """The screen, dark and light where there are both; the theme shows one of them."""
    start = "../" * page.count("/")
    dark, *light = (f"{start}screens/{variant}.svg" for variant in _variants(name))
    if not light:
        return f"![{text}]({dark})"
    return f"![{text}]({dark}#only-dark)![{text}]({light[0]}#only-light)"


def _variants(name: str) -> tuple[str, ...]:
    light = name.replace("-agent-dark-", "-agent-light-")
    return (name, light) if light != name and _screen(light).exists() else (name,)


def _screen(name: str) -> Path:
    folder = ROOT / "tests/ui/__snapshots__/test_pictures"
    return folder / f"test_the_screen_looks_as_it_did[{name}].svg"
