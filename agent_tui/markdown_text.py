"""What Markdown says, without its signs: for lists, which show a text on one line."""

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


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # only where a list is shown

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
