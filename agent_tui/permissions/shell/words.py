"""The words and commands of a shell text: what is known of each before it runs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from tree_sitter import Node

SAFE_VARIABLE = re.compile(r"(?!\w*_proxy\b)[a-z_][a-z0-9_]*")
"""Names of variables without meaning for the shell or for programs."""

OUTPUT_OF_A_COMMAND = "/dev/fd/63"
"""What the program receives for ``<(...)``: a file to read."""

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*[:+?!]*=")
"""The start of an argument that gives a variable a value, also in the forms of ``make``."""

_PATTERN = re.compile(r"[*?\[]")
_ESCAPE = re.compile(r"\\(.|\n)", re.DOTALL)
_ESCAPE_IN_QUOTES = re.compile(r"\\([\"\\$`\n])")
_TILDE_OF_SOMEONE = re.compile(r"~[^/]")
_GIT_SUFFIX = re.compile(r"@\{[\w-]*\}")
_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")


@dataclass(frozen=True, slots=True)
class Word:
    """One word. `value` is None if known only at run time (variables, substitutions, braces).

    `is_pattern`: the shell replaces unquoted ``*``, ``?`` or ``[`` with file names. `has_tilde`:
    the shell replaces its first character with the home folder.
    """

    source: str
    value: str | None
    is_pattern: bool = False
    has_tilde: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the program receives exactly `value`."""
        return self.value is not None and not self.is_pattern


PartKind = Literal["command", "assignment", "construct", "opaque"]


@dataclass(frozen=True, slots=True)
class CommandPart:
    """One command that would run.

    `kind` ``assignment``: sets a variable without meaning for programs. ``construct``: sets other
    state (``PATH=.``, a function). ``opaque``: its text does not show what it runs. `assignments`
    are the ``A=1`` before it; `values` are the values of these, or of the variable that it sets.
    `wrapper` is the command around it (``timeout 5``, ``xargs``), and `is_wrapped_plainly` says
    that the wrapper adds neither power nor arguments. `reads_pipe`: it reads what another command
    prints. `input` is the text of its here-documents and here-strings.
    """

    source: str
    words: tuple[Word, ...] = ()
    assignments: tuple[str, ...] = ()
    values: tuple[Word, ...] = ()
    kind: PartKind = "command"
    wrapper: str = ""
    is_wrapped_plainly: bool = True
    note: str = ""
    reads_pipe: bool = False
    input: str = ""

    @property
    def name(self) -> str:
        """The program's name as written; empty if known only at run time."""
        return self.words[0].value or "" if self.words else ""

    @property
    def program(self) -> str:
        """The name without its folder."""
        return self.name.rpartition("/")[2]

    @property
    def arguments(self) -> tuple[Word, ...]:
        """The words after the name."""
        return self.words[1:]

    @property
    def command_line(self) -> str:
        """The program and its arguments, one space between; empty for what is not known yet."""
        return " ".join([self.program, *(word.value or "" for word in self.arguments)])

    @property
    def assigned(self) -> tuple[Word, ...]:
        """The values of all variables: those before the program, and ``make SHELL=./x``."""
        arguments = (
            replace(word, value=ASSIGNMENT.sub("", word.value, count=1))
            for word in self.arguments
            if word.value is not None and ASSIGNMENT.match(word.value)
        )
        return (*self.values, *arguments)

    @property
    def given(self) -> tuple[Word, ...]:
        """What a program is given: the words after its name, and the values of variables."""
        return (*self.arguments, *self.values)


_KNOWN_VARIABLES: Mapping[str, Word] = {
    "HOME": Word("~", "~", has_tilde=True),
    "PWD": Word(".", "."),
}
"""Variables the shell sets itself. ``$PWD`` is any folder that the command may be in."""


def word_of(node: Node, source: bytes) -> Word:
    """The word that a node of the syntax tree represents.

    Args:
        node: A word, string, expansion, or several of them joined.
        source: The whole text.
    """
    text = source[node.start_byte : node.end_byte].decode("utf-8")
    match node.type:
        case "word" | "number":
            return _read_unquoted(text)
        case "raw_string":
            return Word(text, text[1:-1])
        case "ansi_c_string" if "\\" not in text:
            return Word(text, text[2:-1])
        case "string":
            return _read_quoted(node, text, source)
        case "concatenation":
            pieces = [word_of(child, source) for child in node.children]
            return _join(text, pieces)
        case "simple_expansion" | "expansion":
            known = _find_known(text)
            return Word(text, None) if known is None else replace(known, source=text)
        case "process_substitution" if text.startswith("<("):
            return Word(text, OUTPUT_OF_A_COMMAND)
        case _:
            return Word(text, None)


def _find_known(expansion: str) -> Word | None:
    found = _VARIABLE.fullmatch(expansion)
    return _KNOWN_VARIABLES.get(found[1] or found[2]) if found is not None else None


def _read_unquoted(text: str) -> Word:
    bare = _ESCAPE.sub("", text)
    if _may_be_braces(bare):
        return Word(text, None)
    if _TILDE_OF_SOMEONE.match(text):
        return Word(text, None)
    value = _ESCAPE.sub(lambda found: "" if found[1] == "\n" else found[1], text)
    return Word(text, value, bool(_PATTERN.search(bare)), text.startswith("~"))


def _may_be_braces(text: str) -> bool:
    """Whether the shell may expand braces in `text`; ``{}`` and ``@{u}..`` stay as they are."""
    text = _GIT_SUFFIX.sub("", text)
    return "{" in text and ("," in text or ".." in text)


def _read_quoted(node: Node, text: str, source: bytes) -> Word:
    """A double-quoted string; without a value if it expands anything unknown."""
    values: list[str] = []
    has_tilde = False
    for child in node.children:
        piece = source[child.start_byte : child.end_byte].decode("utf-8")
        if child.type in ("simple_expansion", "expansion"):
            known = _find_known(piece)
            if known is None or known.value is None:
                return Word(text, None)
            values.append(known.value)
            has_tilde = has_tilde or known.has_tilde
        elif child.type not in ('"', "string_content") or _holds_substitution(piece):
            return Word(text, None)
    if not values:
        inside = text[1:-1]
        return Word(text, _ESCAPE_IN_QUOTES.sub(_unescape, inside))
    # Text between expansions may have no node, so the values are put into the whole text.
    filled = iter(values)
    inside = _VARIABLE.sub(lambda _found: next(filled, ""), text[1:-1])
    if "\\" in text or next(filled, None) is not None:
        return Word(text, None)
    return Word(text, inside, has_tilde=has_tilde and inside.startswith("~"))


def _holds_substitution(text: str) -> bool:
    bare = _ESCAPE.sub("", text)
    return "$" in bare or "`" in bare


def _unescape(found: re.Match[str]) -> str:
    return "" if found[1] == "\n" else found[1]


def _join(text: str, pieces: list[Word]) -> Word:
    known = [piece.value for piece in pieces if piece.value is not None]
    # Within a concatenation, braces are separate words; the shell expands them.
    if len(known) < len(pieces) or _may_be_braces(text):
        return Word(text, None)
    return Word(
        text,
        "".join(known),
        is_pattern=any(piece.is_pattern for piece in pieces),
        has_tilde=pieces[0].has_tilde,
    )
