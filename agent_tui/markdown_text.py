"""The text of Markdown without its markup, and its sections."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


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
