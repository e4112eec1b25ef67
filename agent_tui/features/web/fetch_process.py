"""The process behind `fetch`, killed when a page or its server takes too long.

Reads one JSON request from stdin and prints one JSON answer. Started with ``python -P -m``. Faults
of the parsing libraries, and their memory use, stay in this process.
"""

import json
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Final
from urllib.parse import urljoin

from bs4 import BeautifulSoup, Tag
from markdownify import MarkdownConverter

from agent_tui.errors import ToolError
from agent_tui.features.web.download import DownloadedPage, Downloader
from agent_tui.features.web.exchange import Fetched, FetchRequest, Moved
from agent_tui.messages import JsonObject
from agent_tui.tools.files.documents import document_text
from agent_tui.tools.files.text_files import decode

_LEFT_OUT: Final = (
    "script,style,noscript,template,svg,iframe,object,embed,canvas,video,audio,nav,form,button,"
    "input,select,textarea,dialog,title,link,meta,[hidden],[aria-hidden=true]"
)
_MAX_URL_CHARS = 500
_LANGUAGE = re.compile(r"(?:language|lang|highlight-source|highlight)-([\w+#.-]+)")
_MANY_EMPTY_LINES = re.compile(r"\n(?:[ \t]*\n){2,}")


def _language(code: Tag) -> str:
    """The language of a ``pre``, as highlighters write it into classes."""
    tags = [code, *code.select("code"), *(tag for tag in [code.parent] if tag is not None)]
    classes = [str(name) for tag in tags for name in tag.get_attribute_list("class") if name]
    found = next(filter(None, map(_LANGUAGE.fullmatch, classes)), None)
    return found[1] if found else ""


def page_markdown(content: bytes, charset: str, url: str) -> str:
    """The readable part of a page: its only ``main``, or else its body, with its title above.

    Hidden elements are left out, links made absolute.

    Args:
        content: The HTML.
        charset: As the server names it; empty if the page itself says it.
        url: The address of the page.
    """
    page = BeautifulSoup(content, "lxml", from_encoding=charset or None)
    title = " ".join(page.title.get_text().split()) if page.title else ""
    mains = page.select("main, [role=main]")
    part = mains[0] if len(mains) == 1 else page.body or page
    for tag in part.select(_LEFT_OUT):
        tag.decompose()
    base = page.select_one("base[href]")
    _make_absolute(part, urljoin(url, _attribute(base, "href")) if base else url)
    converter = MarkdownConverter(
        heading_style="atx",
        bullets="-",
        escape_asterisks=False,
        escape_underscores=False,
        code_language_callback=_language,
    )
    try:
        text = converter.convert_soup(part)
    except RecursionError:
        text = part.get_text("\n")
    text = _MANY_EMPTY_LINES.sub("\n\n", text).strip()
    return f"Title: {title}\n\n{text}" if title else text


def _attribute(tag: Tag, name: str) -> str:
    value = tag.get(name)
    return value if isinstance(value, str) else ""


def _make_absolute(part: Tag, base: str) -> None:
    for link in part.select("a"):
        try:
            target = urljoin(base, _attribute(link, "href").strip())
        except ValueError:
            target = ""
        is_useful = target.startswith(("http://", "https://")) and len(target) <= _MAX_URL_CHARS
        if is_useful and link.get_text(strip=True) and not _attribute(link, "href").startswith("#"):
            link["href"] = target
        else:
            link.unwrap()
    for image in part.select("img"):
        image.replace_with(_attribute(image, "alt"))


def _text(page: DownloadedPage) -> str:
    if page.is_markup:
        return page_markdown(page.content, page.charset, page.url)
    document = document_text(Path(page.url.partition("?")[0]), page.content)
    if document is not None:
        return document
    if page.charset:
        return page.content.decode(page.charset, "replace")
    if (file := decode(page.content)) is not None:
        return file.text
    if page.is_cut and b"\0" not in page.content:  # the cut may split a character
        return page.content.decode("utf-8", "replace")
    raise ToolError(f"{page.url} is not text.")


def answer(request: FetchRequest) -> JsonObject:
    """What to print: the page's text, where it has moved to, or why there is none."""
    try:
        page = Downloader(may_be_private=request.may_be_private).get(request.url)
        if isinstance(page, Moved):
            return {"moved_to": page.url}
        return {**asdict(Fetched(page.url, page.media_type, _text(page), page.is_cut))}
    except ToolError as error:
        return {"error": str(error)}


def main() -> None:
    """Answer one request."""
    request = FetchRequest(**json.loads(sys.stdin.buffer.read()))
    sys.stdout.buffer.write(json.dumps(answer(request)).encode())


if __name__ == "__main__":
    main()
