"""The words and commands a shell text is made of: what is known of each before it runs."""

import re
from dataclasses import dataclass
from typing import Literal

from tree_sitter import Node

_PATTERN = re.compile(r"[*?\[]")
_ESCAPE = re.compile(r"\\(.|\n)", re.DOTALL)
_ESCAPE_IN_QUOTES = re.compile(r"\\([\"\\$`\n])")
_TILDE_OF_SOMEONE = re.compile(r"~[^/]")


@dataclass(frozen=True, slots=True)
class Word:
    """One word. `value` is None where only the run will tell (variables, substitutions, braces).

    `is_pattern`: unquoted ``*``, ``?`` or ``[`` make the shell put file names in its place.
    `has_tilde`: the shell puts the home folder in place of its first character.
    """

    source: str
    value: str | None
    is_pattern: bool = False
    has_tilde: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the program gets exactly `value`."""
        return self.value is not None and not self.is_pattern


PartKind = Literal["command", "construct", "opaque"]


@dataclass(frozen=True, slots=True)
class CommandPart:
    """One command that would run.

    `kind` ``construct``: not a simple command but something that sets state (an assignment, a
    loop, a function). ``opaque``: what it runs cannot be known from its text. `assignments` are
    the ``A=1`` before it. `wrapper` is the command around it (``timeout 5``, ``xargs``), and
    `is_wrapped_plainly` says that the wrapper adds no power and no arguments of its own.
    """

    source: str
    words: tuple[Word, ...] = ()
    assignments: tuple[str, ...] = ()
    kind: PartKind = "command"
    wrapper: str = ""
    is_wrapped_plainly: bool = True
    note: str = ""

    @property
    def name(self) -> str:
        """The program's name as written, or empty where only the run will tell."""
        return self.words[0].value or "" if self.words else ""

    @property
    def arguments(self) -> tuple[Word, ...]:
        """The words after the name."""
        return self.words[1:]


def word_of(node: Node, source: bytes) -> Word:
    """The word a node of the syntax tree stands for."""
    text = source[node.start_byte : node.end_byte].decode("utf-8")
    match node.type:
        case "word" | "number":
            return _unquoted(text)
        case "raw_string":
            return Word(text, text[1:-1])
        case "string":
            return Word(text, _quoted(node, text))
        case "concatenation":
            return _joined(text, [word_of(child, source) for child in node.children])
        case _:
            return Word(text, None)


def _unquoted(text: str) -> Word:
    bare = _ESCAPE.sub("", text)
    if "{" in bare.replace("{}", ""):
        return Word(text, None)
    if _TILDE_OF_SOMEONE.match(text):
        return Word(text, None)
    value = _ESCAPE.sub(lambda found: "" if found[1] == "\n" else found[1], text)
    return Word(text, value, bool(_PATTERN.search(bare)), text.startswith("~"))


def _quoted(node: Node, text: str) -> str | None:
    """The text of a double-quoted string, or None where anything in it is expanded."""
    if any(child.type not in ('"', "string_content") for child in node.children):
        return None
    if "$" in _ESCAPE.sub("", text) or "`" in _ESCAPE.sub("", text):
        return None
    return _ESCAPE_IN_QUOTES.sub(lambda found: "" if found[1] == "\n" else found[1], text[1:-1])


def _joined(text: str, pieces: list[Word]) -> Word:
    values = [piece.value for piece in pieces]
    known = [value for value in values if value is not None]
    # Braces come as words of their own within a concatenation; the shell expands them.
    is_brace = any(piece.source in ("{", "}") for piece in pieces)
    if len(known) < len(values) or (is_brace and "{" in text.replace("{}", "")):
        return Word(text, None)
    is_pattern = any(piece.is_pattern for piece in pieces)
    return Word(text, "".join(known), is_pattern, pieces[0].has_tilde)
