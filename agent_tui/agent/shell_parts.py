"""Splitting a bash command into every part that would run, without running anything.

The grammar (tree-sitter-bash) is close to bash but not bash, so this trusts only what it knows:
node types that are not listed, text that no node covers, and words that hold characters bash
would not leave in a word all make the command one that cannot be judged.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tree_sitter import Language, Node, Parser

from agent_tui.agent.shell_words import CommandPart, Word, word_of
from agent_tui.agent.shell_wrappers import unwrap

_MAX_COMMAND_CHARS = 20_000
_MAX_DEPTH = 120
_MAX_WRAPPERS = 8


@dataclass(frozen=True, slots=True)
class Redirection:
    """A file the shell itself opens."""

    target: Word
    writes: bool


@dataclass(frozen=True, slots=True)
class ShellParts:
    """Everything a command would do, in the order of its text.

    `problem` is set where the command cannot be judged at all; then nothing else counts.
    A wrapper is listed too, before the command it wraps.
    """

    commands: tuple[CommandPart, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    problem: str = ""


class _Unparsable(Exception):
    """Carries the reason, for the person."""


def split_command(command: str) -> ShellParts:
    """The parts of `command`; never raises."""
    try:
        return _Splitter(command, depth=0).split()
    except _Unparsable as error:
        return ShellParts(problem=str(error))


_STRUCTURE_TYPES = """
    program list pipeline subshell compound_statement redirected_statement negated_command
    if_statement elif_clause else_clause while_statement do_group comment
    command_name word number string raw_string string_content concatenation simple_expansion
    command_substitution process_substitution variable_name special_variable_name
    herestring_redirect heredoc_redirect heredoc_start heredoc_body heredoc_content heredoc_end
    file_descriptor binary_expression brace_expression ansi_c_string expansion unary_expression
    parenthesized_expression regex extglob_pattern translated_string test_operator
"""
_STRUCTURE = frozenset(_STRUCTURE_TYPES.split())
"""Node types that by themselves run and set nothing."""

_FORBIDDEN_IN_WORD = re.compile(r"(?<!\\)(?:\\\\)*[;|&<>()`\n]|(?<!\\)(?:\\\\)*\$[({]")
_SUBSTITUTION = re.compile(r"(?<!\\)(?:\\\\)*(?:`|\$\()")
_HARMLESS_GAP = re.compile(r"(?:[ \t\n]|\\\n)*")
_PLAIN_ARITHMETIC = re.compile(r"\$\(\([\d\s+*/%()-]*\)\)")
_HARMLESS_TEST = re.compile(
    r"\[\[? +(?:! +)?-[efdrwxsLhnz] +(?:[\w./@:+-]+|\"[\w./@:+ -]*\"|'[^']*') +\]\]?"
)


class _Splitter:
    """Walks one syntax tree."""

    def __init__(self, command: str, depth: int) -> None:
        _check_characters(command)
        if depth > _MAX_WRAPPERS:
            raise _Unparsable("too many commands within commands")
        self._source = command.encode("utf-8")
        self._depth = depth
        self._commands: list[CommandPart] = []
        self._redirections: list[Redirection] = []

    def split(self) -> ShellParts:
        import tree_sitter_bash  # native code that only judging commands needs

        root = Parser(Language(tree_sitter_bash.language())).parse(self._source).root_node
        if root.has_error:
            raise _Unparsable("the shell syntax is not understood")
        self._check_coverage(root)
        self._walk(root, 0)
        return ShellParts(tuple(self._commands), tuple(self._redirections))

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8")

    def _walk(self, node: Node, level: int) -> None:
        if level > _MAX_DEPTH:
            raise _Unparsable("nested too deeply")
        match node.type:
            case "command":
                self._add_command(node)
            case "file_redirect":
                self._add_redirection(node)
            case "test_command":
                if not _HARMLESS_TEST.fullmatch(self._text(node)):
                    self._add_construct(node, "a test with an expression")
            case "expansion" if not _reads_only(node):
                self._add_opaque(node, "an expansion that sets or runs something")
            case "arithmetic_expansion":
                if not _PLAIN_ARITHMETIC.fullmatch(self._text(node)):
                    self._add_construct(node, "arithmetic with variables")
            case "compound_statement" if self._text(node).startswith("(("):
                self._add_construct(node, "an arithmetic statement")
            case "variable_assignment" if node.parent and node.parent.type == "command":
                pass  # part of its command
            case "comment":
                self._check_comment(node)
            case "heredoc_body" | "string" | "word":
                self._check_literal(node)
            case kind if node.is_named and kind not in _STRUCTURE:
                self._add_construct(node, kind.replace("_", " "))
            case _:
                pass
        for child in node.children:
            self._walk(child, level + 1)

    def _add_construct(self, node: Node, note: str) -> None:
        text = self._text(node)
        self._commands.append(CommandPart(text, kind="construct", note=note))

    def _add_opaque(self, node: Node, note: str) -> None:
        self._commands.append(CommandPart(self._text(node), kind="opaque", note=note))

    def _add_redirection(self, node: Node) -> None:
        operator = next((c.type for c in node.children if not c.is_named), "")
        target = node.child_by_field_name("destination")
        if target is None:
            if operator not in (">&-", "<&-"):
                raise _Unparsable("a redirection without a target")
            return
        word = word_of(target, self._source)
        if operator in (">&", "<&") and (word.value or "").rstrip("-").isdigit():
            return
        self._redirections.append(Redirection(word, writes=operator not in ("<", "<&")))

    def _add_command(self, node: Node) -> None:
        assignments: list[str] = []
        words: list[Word] = []
        for index, child in enumerate(node.children):
            if child.type == "variable_assignment":
                assignments.append(self._text(child))
            elif node.field_name_for_child(index) == "name":
                words.extend(word_of(part, self._source) for part in child.children)
            elif node.field_name_for_child(index) == "argument":
                words.append(word_of(child, self._source))
        part = CommandPart(self._text(node), tuple(words), tuple(assignments))
        self._add_unwrapped(part, 0)

    def _add_unwrapped(self, part: CommandPart, wrappers: int) -> None:
        """`part`, and what it wraps, as far as its text tells."""
        if wrappers > _MAX_WRAPPERS:
            raise _Unparsable("too many commands within commands")
        found = unwrap(part)
        self._commands.append(found.outer)
        for inner in found.commands:
            self._add_unwrapped(inner, wrappers + 1)
        for script in found.scripts:
            nested = _Splitter(script, self._depth + 1).split()
            plainly = found.outer.is_wrapped_plainly
            label = found.outer.name
            self._commands.extend(
                replace(command, wrapper=label, is_wrapped_plainly=plainly)
                for command in nested.commands
            )
            self._redirections.extend(nested.redirections)

    def _check_literal(self, node: Node) -> None:
        """Refuse text in which bash would see more than the grammar did."""
        if node.type == "word":
            if _FORBIDDEN_IN_WORD.search(self._text(node)):
                raise _Unparsable("a word holds characters of shell syntax")
            return
        if node.type == "heredoc_body":
            start = next((s for s in _siblings(node) if s.type == "heredoc_start"), None)
            if start is not None and any(quote in self._text(start) for quote in "'\"\\"):
                return
        if _SUBSTITUTION.search(self._text_outside_expansions(node)):
            raise _Unparsable("a text holds a substitution that is not understood")

    def _text_outside_expansions(self, node: Node) -> str:
        pieces: list[bytes] = []
        at = node.start_byte
        for child in node.children:
            if child.is_named and child.type not in ("string_content", "heredoc_content"):
                pieces.append(self._source[at : child.start_byte])
                at = child.end_byte
        return b" ".join([*pieces, self._source[at : node.end_byte]]).decode("utf-8")

    def _check_comment(self, node: Node) -> None:
        before = self._source[node.start_byte - 1 : node.start_byte] if node.start_byte else b" "
        if before not in (b" ", b"\t", b"\n", b";", b"&", b"|", b"("):
            raise _Unparsable("a # in the middle of a word")

    def _check_coverage(self, root: Node) -> None:
        """Refuse a tree whose leaves leave out text: what is left out would run unseen."""
        at = 0
        for leaf in _leaves(root):
            if leaf.start_byte < at:
                continue
            gap = self._source[at : leaf.start_byte].decode("utf-8")
            if not _HARMLESS_GAP.fullmatch(gap):
                raise _Unparsable("part of the text is not understood")
            at = leaf.end_byte
        if not _HARMLESS_GAP.fullmatch(self._source[at:].decode("utf-8")):
            raise _Unparsable("part of the text is not understood")


def _check_characters(command: str) -> None:
    if len(command) > _MAX_COMMAND_CHARS:
        raise _Unparsable("the command is very long")
    for character in command:
        if character in "\n\t" or " " <= character <= "~":
            continue
        category = unicodedata.category(character)
        if category in ("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"):
            name = unicodedata.name(character, f"U+{ord(character):04X}")
            raise _Unparsable(f"it holds an invisible or control character ({name})")


def _reads_only(expansion: Node) -> bool:
    """Whether ``${...}`` only looks a variable up (no assignment, indirection, ``@P``)."""
    operators = {child.type for child in expansion.children if not child.is_named}
    return not operators & {"=", ":=", "@", "!", ":?", "?"}


def _leaves(node: Node) -> Iterator[Node]:
    pending = [node]
    while pending:
        current = pending.pop()
        if current.child_count == 0 or current.type in ("string", "heredoc_body", "raw_string"):
            yield current
        else:
            pending.extend(reversed(current.children))


def _siblings(node: Node) -> list[Node]:
    return node.parent.children if node.parent is not None else []
