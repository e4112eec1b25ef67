"""Text made fit to store or send, and the text of Markdown without its markup."""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from operator import is_not
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from pydantic import JsonValue


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
