"""Refuses shell text that bash could read differently from the grammar."""

import re
import unicodedata
from collections.abc import Iterator

from tree_sitter import Node

MAX_COMMAND_CHARS = 20_000
_FORBIDDEN_IN_WORD = re.compile(r"(?<!\\)(?:\\\\)*[;|&<>()`\n]|(?<!\\)(?:\\\\)*\$[({]")
_SUBSTITUTION = re.compile(r"(?<!\\)(?:\\\\)*(?:`|\$\()")
_HARMLESS_GAP = re.compile(r"(?:[ \t\n]|\\\n)*")
_LOST_DASH = re.compile(rb"[ \t]+-[ \t]+")
_OPERATORS = frozenset(b";&|()<>\n")
_DELIMITER = re.compile(r"(?P<quote>['\"]?)(?P<name>\w+)(?P=quote)")
_PLAIN_ARITHMETIC = re.compile(r"\$\(\([\d\s+*/%()-]*\)\)")
_LOOKUP = re.compile(
    r"\$\{#?\w+\}"
    r"|\$\{\w+(?:%%?|##?|\^\^?|,,?|//?|:?[-+])(?:[^$`\\{}]|\$\w)*\}"
    r"|\$\{\w+: ?\d+(?::\d+)?\}"
)
_ODD_TEST = re.compile(r"-[vR]\b|-(?:eq|ne|lt|le|gt|ge)\b|<|>|\$\(\(|`")


class UnparsableError(Exception):
    """The command cannot be judged; carries the reason, for the user, and the part it concerns."""

    def __init__(self, reason: str, part: str = "") -> None:
        super().__init__(reason)
        self.part = part


def check_characters(command: str) -> None:
    """Refuse characters that hide what a command does.

    Raises:
        UnparsableError: Control, invisible or unassigned characters, or far too many characters.
    """
    if len(command) > MAX_COMMAND_CHARS:
        raise UnparsableError("it is too long")
    if command.isascii() and not _CONTROL.search(command):
        return
    for at, character in enumerate(command):
        if character in "\n\t" or " " <= character <= "~":
            continue
        category = unicodedata.category(character)
        if category in ("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp") or character in _BLANKS:
            name = unicodedata.name(character, f"U+{ord(character):04X}")
            why = f"it contains an invisible or control character ({name})"
            before, behind = command[:at].encode("utf-8", "replace"), command[at:]
            whole = before + behind.encode("utf-8", "replace")
            raise UnparsableError(why, _line_at(whole, len(before)))


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_BLANKS = "\u115f\u1160\u3164\uffa0\u2800\u034f"
"""Letters and marks, by category, that are invisible."""


def check_coverage(root: Node, source: bytes) -> None:
    """Refuse a tree whose leaves leave out text, or that splits what bash reads as one word.

    Text that is left out would run unseen. A backslash at the end of a line with no blank beside it
    joins the words around it, which the grammar treats as two.

    Raises:
        UnparsableError: There is such text.
    """
    at = 0
    for leaf in _leaves(root):
        if leaf.start_byte < at:
            continue
        gap = source[at : leaf.start_byte]
        if not _is_gap(gap) and not is_lost_dash(gap, leaf):
            raise _not_covered(source, at)
        beside = source[at - 1 : at] + source[leaf.start_byte : leaf.start_byte + 1]
        if at > 0 and gap and not gap.replace(b"\\\n", b"") and not set(beside) & _OPERATORS:
            why = "a backslash joins two lines within a word"
            raise UnparsableError(why, _line_at(source, leaf.start_byte))
        at = leaf.end_byte
    if not _is_gap(source[at:]):
        raise _not_covered(source, at)


def check_syntax(root: Node, source: bytes) -> None:
    """Refuse text that the grammar cannot parse.

    Raises:
        UnparsableError: It cannot; the part is the line of the first error.
    """
    if root.has_error:
        wrong = root
        while below := next((each for each in wrong.children if each.has_error), None):
            wrong = below
        line = _line_at(source, wrong.start_byte)
        raise UnparsableError("the shell syntax is not understood", line)


def _not_covered(source: bytes, at: int) -> UnparsableError:
    start = at + len(source[at:]) - len(source[at:].lstrip())
    return UnparsableError("part of the text is not understood", _line_at(source, start))


def _line_at(source: bytes, at: int) -> str:
    """The line that contains byte `at`."""
    start = source.rfind(b"\n", 0, at) + 1
    return source[start:].partition(b"\n")[0].decode("utf-8")


def is_lost_dash(gap: bytes, behind: Node) -> bool:
    """Whether `gap` is the word ``-`` of ``python - <<EOF``, for which the grammar has no node."""
    return behind.type in ("<<", "<<-") and _LOST_DASH.fullmatch(gap) is not None


def check_literal(node: Node, source: bytes) -> None:
    """Refuse a word, string or here-document in which bash would see more than the grammar.

    Raises:
        UnparsableError: It holds a substitution or shell syntax without a node of its own.
    """
    if node.type == "word":
        if _FORBIDDEN_IN_WORD.search(node_text(node, source)):
            raise UnparsableError("a word contains shell syntax")
        return
    if node.type == "heredoc_body" and _is_quoted_heredoc(node, source):
        return
    if _SUBSTITUTION.search(_text_outside_expansions(node, source)):
        raise UnparsableError("a string contains a substitution that is not understood")


def check_heredoc(node: Node, source: bytes) -> None:
    """Refuse a here-document that bash could end elsewhere.

    Raises:
        UnparsableError: Its delimiter is not a plain word, or it does not end at its delimiter.
    """
    start = _child(node, "heredoc_start")
    body, end = _child(node, "heredoc_body"), _child(node, "heredoc_end")
    found = _DELIMITER.fullmatch(node_text(start, source)) if start is not None else None
    if found is None or body is None or end is None or node_text(end, source) != found["name"]:
        raise UnparsableError("the end of a here-document is unclear")
    before, after = source[: body.start_byte], source[end.end_byte : end.end_byte + 1]
    lines = node_text(body, source).split("\n")
    strips = any(child.type == "<<-" for child in node.children)
    ends_early = any((line.lstrip("\t") if strips else line) == found["name"] for line in lines)
    if not strips:  # the grammar leaves the blanks before the first word out of the body
        before = before.rstrip(b" \t")
    to_end = source[: end.start_byte]  # the grammar takes a delimiter after blanks for the end
    ends_line = (to_end.rstrip(b"\t") if strips else to_end).endswith(b"\n")
    is_certain = ends_line and before.endswith(b"\n") and after in (b"", b"\n")
    if ends_early or not is_certain:
        raise UnparsableError("the end of a here-document is unclear")


def check_substitution(node: Node, source: bytes) -> None:
    """Refuse backquotes with a backslash in them: bash removes it and parses them again.

    Raises:
        UnparsableError: There is such a backslash.
    """
    text = node_text(node, source)
    if text.startswith("`") and "\\" in text:
        raise UnparsableError("nested backquotes")


def check_comment(node: Node, source: bytes) -> None:
    """Refuse a ``#`` in the middle of a word that the grammar takes for a comment.

    Raises:
        UnparsableError: Nothing separates it from the word before.
    """
    before = source[node.start_byte - 1 : node.start_byte] if node.start_byte else b" "
    if before not in (b" ", b"\t", b"\n", b";", b"&", b"|", b"("):
        raise UnparsableError("a # in the middle of a word")


def only_looks_up(expansion: str) -> bool:
    """Whether ``${...}`` only reads a variable (no assignment, indirection, ``@P``)."""
    return _LOOKUP.fullmatch(expansion) is not None


def is_plain_arithmetic(text: str) -> bool:
    """Whether ``$((...))`` holds only numbers; bash evaluates names in it recursively."""
    return _PLAIN_ARITHMETIC.fullmatch(text) is not None


def is_plain_condition(text: str) -> bool:
    """Whether ``[[ ... ]]`` only compares text and tests files; arithmetic can run commands."""
    return _ODD_TEST.search(text) is None


def node_text(node: Node, source: bytes) -> str:
    """The text a node covers."""
    return source[node.start_byte : node.end_byte].decode("utf-8")


def _is_gap(text: bytes) -> bool:
    return _HARMLESS_GAP.fullmatch(text.decode("utf-8")) is not None


def _is_quoted_heredoc(body: Node, source: bytes) -> bool:
    start = _child(body.parent, "heredoc_start") if body.parent is not None else None
    return start is not None and any(quote in node_text(start, source) for quote in "'\"\\")


def _child(node: Node, kind: str) -> Node | None:
    return next((child for child in node.children if child.type == kind), None)


def _text_outside_expansions(node: Node, source: bytes) -> str:
    pieces: list[bytes] = []
    at = node.start_byte
    for child in node.children:
        if child.is_named and child.type not in ("string_content", "heredoc_content"):
            pieces.append(source[at : child.start_byte])
            at = child.end_byte
    return b" ".join([*pieces, source[at : node.end_byte]]).decode("utf-8")


def _leaves(node: Node) -> Iterator[Node]:
    pending = [node]
    while pending:
        current = pending.pop()
        if current.child_count == 0 or current.type in ("string", "heredoc_body", "raw_string"):
            yield current
        else:
            pending.extend(reversed(current.children))
