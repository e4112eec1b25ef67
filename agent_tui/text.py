"""Text made fit to store or send, and the text of Markdown without its markup."""

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import takewhile
from operator import is_not
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from pydantic import JsonValue


_ODD_BYTE = re.compile("[\udc80-\udcff]")
_INDENTED = re.compile(r"^(?= {4}|\t)", re.MULTILINE)
_QUOTE_END = re.compile(r"^( {0,3}>.*\n)(?! {0,3}>)", re.MULTILINE)
_ENCODED_BYTE = re.compile("\0([89a-f][0-9a-f])")


def markdown_words(markdown: str) -> str:
    """The text of `markdown`, a line for each paragraph, heading, row or piece of code."""
    lines = _lines(_parser().parse(markdown))
    return "\n".join(line for line in lines if line.strip())


def markdown_sections(markdown: str) -> list[str]:
    """`markdown` split before each heading; joining the parts with newlines gives it back.

    The first part is the text before any heading, if there is some.
    """
    lines = markdown.split("\n")
    headings = (token for token in _parser().parse(markdown) if token.type == "heading_open")
    starts = [token.map[0] for token in headings if token.map and not token.level]
    ends = [*starts, len(lines)] if not starts or starts[0] else [*starts[1:], len(lines)]
    return ["\n".join(lines[a:b]) for a, b in zip([0, *ends], ends, strict=False)]


def close_fence(markdown: str) -> str:
    """The line that ends the fenced code that `markdown` leaves open; empty if it leaves none."""
    last = _parser().parse(f"{markdown}\n\nx")[-1]
    return last.markup if last.type == "fence" else ""


def code_blocks(markdown: str) -> list[str]:
    """The contents of the blocks of code in `markdown`, in order."""
    tokens = _parser().parse(markdown)
    return [token.content for token in tokens if token.type in ("fence", "code_block")]


def blank_fences(markdown: str) -> str:
    """`markdown` with each line of fenced code, and the fences, empty."""
    lines = markdown.split("\n")
    for token in _parser().parse(markdown):
        if token.type == "fence" and token.map:
            first, end = token.map
            lines[first:end] = [""] * len(lines[first:end])
    return "\n".join(lines)


def markdown_prose(markdown: str) -> str:
    """The sentences in `markdown` with their marks and line ends; code and quotes are left out.

    People leave out empty lines that Markdown asks for. So a line indented by four blanks is code
    right below a paragraph too, and a quote ends with its last ``>``.
    """
    separated = _QUOTE_END.sub(r"\1\n", _INDENTED.sub("\n", markdown))
    paragraphs: list[str] = []
    quotes = 0
    for token in _parser().parse(separated):
        if token.type in ("blockquote_open", "blockquote_close"):
            quotes += token.nesting
        elif token.type == "inline" and not quotes:
            paragraphs.append("".join(map(_prose, token.children or ())))
    return "\n".join(paragraphs)


def find_lists(markdown: str) -> "Iterator[tuple[str, tuple[str, ...]]]":
    """The outermost lists in `markdown`: what introduces each, and its items as written.

    The introduction is the last line of the paragraph or heading right before the list; empty if
    there is none. Two lists with different marks in a row have one introduction. Lines below an
    item that are not indented are not part of it here.
    """
    lines = markdown.split("\n")
    introduction, items, starts = "", list[str](), False
    for token in _parser().parse(markdown):
        if token.level == 0 and token.type in ("paragraph_open", "heading_open") and token.map:
            introduction, starts = lines[token.map[1] - 1], True
        elif token.level == 1 and token.type == "list_item_open" and token.map:
            first, *others = lines[slice(*token.map)]
            indented = takewhile(lambda line: not line or line[0].isspace(), others)
            items.append("\n".join((first, *indented)))
        elif token.level == 0 and token.type.endswith("_list_close"):
            yield (introduction if starts else ""), tuple(items)
            items = []
        elif token.level == 0 and token.nesting >= 0 and not token.type.endswith("_list_open"):
            starts = starts and token.type == "inline"


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # costs 20 ms; few need it

    return MarkdownIt("commonmark", {"html": False, "maxNesting": 100}).enable(
        ["table", "strikethrough"]
    )


def _lines(tokens: "Sequence[Token]") -> "Iterator[str]":
    for token in tokens:
        if token.type == "inline":
            yield "".join(map(_text, token.children or ()))
        elif token.type in ("fence", "code_block"):
            yield token.content


def _text(token: "Token") -> str:
    return " " if token.type in ("softbreak", "hardbreak") else token.content


def _prose(token: "Token") -> str:
    if token.type in ("softbreak", "hardbreak"):
        return "\n"
    return token.markup if token.type == "code_inline" else token.content or token.markup


def repair_text(text: str) -> str:
    """`text` with surrogate pairs joined and lone surrogates replaced by U+FFFD.

    Returns the same object when there is nothing to repair.
    """
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def encode_path(path: str) -> str:
    """`path` as text that every encoding can write; `decode_path` restores it.

    A byte that is not UTF-8, in Python a lone surrogate, becomes NUL and its two hex digits. No
    path contains NUL, so any other path is its own encoded form. Other surrogates are repaired.
    """
    if path.isascii():
        return path
    return repair_text(_ODD_BYTE.sub(lambda odd: f"\0{ord(odd[0]) - 0xDC00:02x}", path))


def decode_path(text: str) -> str:
    """The path that `encode_path` encoded as `text`."""
    return _ENCODED_BYTE.sub(lambda odd: chr(0xDC00 + int(odd[1], 16)), text)


def is_same_path(stored: str, path: str) -> bool:
    """Whether a record means `path`; older ones have it with its odd bytes replaced."""
    return stored in (path, repair_text(path))


def repair_json(value: "JsonValue") -> "JsonValue":
    """`value` with every text in it repaired, keys included, and null for NaN and infinities.

    Returns the same object when there is nothing to repair.
    """
    match value:
        case str():
            return repair_text(value)
        case float() if not math.isfinite(value):
            return None
        case list():
            items = [repair_json(item) for item in value]
            return items if any(map(is_not, items, value)) else value
        case dict():
            keys = [repair_text(key) for key in value]
            inner = [repair_json(item) for item in value.values()]
            if any(map(is_not, keys, value)) or any(map(is_not, inner, value.values())):
                return dict(zip(keys, inner, strict=True))
            return value
        case _:
            return value
