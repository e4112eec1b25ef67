"""Splits a bash command into every part that would run, without running anything.

The grammar (tree-sitter-bash) is close to bash but differs, so only known forms are trusted.
Unlisted node types, text that no node covers, and words with characters that bash would not leave
in a word make the command unjudgeable.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tree_sitter import Language, Node, Parser

from agent_tui.permissions.shell.checks import (
    UnparsableError,
    check_characters,
    check_comment,
    check_coverage,
    check_heredoc,
    check_literal,
    check_substitution,
    check_syntax,
    is_lost_dash,
    is_plain_arithmetic,
    is_plain_condition,
    node_text,
    only_looks_up,
)
from agent_tui.permissions.shell.words import (
    SAFE_VARIABLE,
    CommandPart,
    PartKind,
    Word,
    word_of,
)
from agent_tui.permissions.shell.wrappers import unwrap

_MAX_DEPTH = 120
_MAX_WRAPPERS = 8
_MAX_PATTERN_CHARS = 1_000
"""Comparing names with a pattern takes time quadratic in its length."""


@dataclass(frozen=True, slots=True)
class Redirection:
    """A file that the shell itself opens. `replaces`: its present content goes."""

    target: Word
    writes: bool
    source: str
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class ShellParts:
    """Everything a command would do, in the order of its text.

    `problem` is set if the command cannot be judged at all; then only it and `problem_part` count,
    the text it concerns, which is empty if unknown. A wrapper is listed too, before the command it
    wraps.
    """

    commands: tuple[CommandPart, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    problem: str = ""
    problem_part: str = ""

    @property
    def is_compound(self) -> bool:
        """Whether several commands would run, not counting wrappers."""
        return sum(not part.wrapper for part in self.commands) > 1


def split_command(command: str) -> ShellParts:
    """Split `command` into its parts; never raises."""
    try:
        return _Splitter(command, depth=0).split()
    except UnparsableError as error:
        return ShellParts(problem=str(error), problem_part=error.part)


_STRUCTURE_TYPES = """
    program list pipeline subshell compound_statement redirected_statement negated_command
    for_statement if_statement elif_clause else_clause while_statement do_group comment
    case_statement case_item command_name word number string raw_string string_content concatenation
    simple_expansion command_substitution process_substitution variable_name special_variable_name
    herestring_redirect heredoc_redirect heredoc_start heredoc_body heredoc_content heredoc_end
    file_descriptor binary_expression brace_expression ansi_c_string expansion unary_expression
    parenthesized_expression regex extglob_pattern translated_string test_operator
"""
_STRUCTURE = frozenset(_STRUCTURE_TYPES.split())
"""Node types that in themselves run nothing and set nothing."""

_STATEMENTS = frozenset(
    {"command", "redirected_statement", "variable_assignment", "declaration_command"}
)
_WORD_TYPE_NAMES = """
    word number string raw_string concatenation simple_expansion expansion command_substitution
    process_substitution ansi_c_string translated_string brace_expression arithmetic_expansion
"""
_WORD_TYPES = frozenset(_WORD_TYPE_NAMES.split())
_CONDITION_TYPES = frozenset({"test_command", "unary_expression", "binary_expression"})
_TEXT_REDIRECTS = frozenset({"heredoc_redirect", "herestring_redirect"})
_REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})


class _Splitter:
    """Walks one syntax tree."""

    def __init__(self, command: str, depth: int) -> None:
        check_characters(command)
        if depth > _MAX_WRAPPERS:
            raise UnparsableError("too many nested commands")
        self._source = command.encode("utf-8")
        self._depth = depth
        self._commands: list[CommandPart] = []
        self._redirections: list[Redirection] = []
        self._statement: Node | None = None  # the latest statement begun

    def split(self) -> ShellParts:
        import tree_sitter_bash  # native code, only needed to judge commands

        root = Parser(Language(tree_sitter_bash.language())).parse(self._source).root_node
        check_syntax(root, self._source)
        check_coverage(root, self._source)
        try:
            self._walk(root, 0)
        except UnparsableError as error:
            if not error.part and self._statement is not None:
                error.part = self._text(self._statement)
            raise
        return ShellParts(tuple(self._commands), tuple(self._redirections))

    def _text(self, node: Node) -> str:
        return node_text(node, self._source)

    def _word(self, node: Node) -> Word:
        word = word_of(node, self._source)
        if word.is_pattern and len(word.source) > _MAX_PATTERN_CHARS:
            raise UnparsableError("a file pattern is too long")
        return word

    def _walk(self, node: Node, level: int) -> None:
        if level > _MAX_DEPTH:
            raise UnparsableError("nested too deeply")
        kind = node.type
        if kind in _STATEMENTS:
            self._statement = node
        if kind == "command":
            self._add_command(node)
        elif kind == "file_redirect":
            self._add_redirection(node)
        elif node.is_named:
            self._check_other(node, kind)
        for child in _flat(node) if kind == "list" else node.children:
            self._walk(child, level + 1)

    def _check_other(self, node: Node, kind: str) -> None:
        """Check or record a node that is neither a command nor a redirection to a file."""
        match kind:
            case "test_command":
                self._add_condition(node)
            case "expansion" if not only_looks_up(self._text(node)):
                self._add(node, "opaque", "an expansion that sets or runs something")
            case "arithmetic_expansion":
                if not is_plain_arithmetic(self._text(node)):
                    self._add(node, "construct", "arithmetic with variables")
            case "compound_statement" if self._text(node).startswith("(("):
                self._add(node, "construct", "an arithmetic statement")
            case "variable_assignment":
                self._add_assignment(node)
            case "for_statement":
                self._add_loop(node)
            case _ if kind not in _STRUCTURE:
                self._add(node, "construct", kind.replace("_", " "))
            case _:
                self._check_text(node, kind)

    def _check_text(self, node: Node, kind: str) -> None:
        """Refuse text in a structural node that bash could read differently."""
        match kind:
            case "heredoc_body" | "string" | "word":
                check_literal(node, self._source)
            case "command_substitution":
                check_substitution(node, self._source)
            case "heredoc_redirect":
                check_heredoc(node, self._source)
                _refuse_lost_words(node)
            case "herestring_redirect":
                _refuse_lost_words(node)
            case "comment":
                check_comment(node, self._source)
            case _:
                pass

    def _add(self, node: Node, kind: PartKind, note: str) -> None:
        self._commands.append(CommandPart(self._text(node), kind=kind, note=note))

    def _add_assignment(self, node: Node) -> None:
        if node.parent is not None and node.parent.type == "command":
            return  # belongs to its command
        name = node.children[0]
        value = node.children[-1]
        is_plain = (
            len(node.children) <= 3
            and name.type == "variable_name"
            and SAFE_VARIABLE.fullmatch(self._text(name)) is not None
            and (value.type in _WORD_TYPES or value.type == "=")
            and node.children[1].type == "="
        )
        if is_plain:
            values = [value] if value.type in _WORD_TYPES else []
            self._add_assigned(node, values)
        else:
            given = tuple(map(self._word, filter(_is_word, (value,))))
            note = "sets a variable"
            self._commands.append(
                CommandPart(self._text(node), values=given, kind="construct", note=note)
            )

    def _add_loop(self, node: Node) -> None:
        """Record that ``for NAME in WORDS`` sets a variable to each of the words."""
        name = node.child_by_field_name("variable")
        is_for = node.children[0].type == "for"
        if is_for and name is not None and SAFE_VARIABLE.fullmatch(self._text(name)):
            self._add_assigned(node, _arguments(node))
        else:
            self._add(node, "construct", "a loop")

    def _add_assigned(self, node: Node, values: Sequence[Node]) -> None:
        """Record a variable that later commands may read, with the words it is set to."""
        words = (Word("", ""), *map(self._word, values))
        self._commands.append(CommandPart(self._text(node), words, kind="assignment"))

    def _add_condition(self, node: Node) -> None:
        """Record a condition: ``[ ... ]`` is a command, ``[[ ... ]]`` has its own syntax."""
        text = self._text(node)
        if text.startswith("[["):
            if not is_plain_condition(text):
                self._add(node, "construct", "a test with an expression")
            return
        words = [
            self._word(leaf)
            if leaf.type in _WORD_TYPES
            else Word(self._text(leaf), self._text(leaf))
            for leaf in _condition_words(node)
        ]
        self._commands.append(CommandPart(text, (Word("[", "["), *words)))

    def _add_redirection(self, node: Node) -> None:
        _refuse_lost_words(node)
        operator = next((c.type for c in node.children if not c.is_named), "")
        target = node.child_by_field_name("destination")
        if target is None:
            if operator not in (">&-", "<&-"):
                raise UnparsableError("a redirection without a target")
            return
        word = self._word(target)
        if operator in (">&", "<&") and (word.value or "").rstrip("-").isdigit():
            return
        writes = operator not in ("<", "<&")
        replaces = writes and operator not in (">>", "&>>", "<>")
        self._redirections.append(Redirection(word, writes, self._text(node), replaces))

    def _add_command(self, node: Node) -> None:
        self._add_unwrapped(replace(self._part(node), reads_pipe=_reads_pipe(node)), 0)

    def _part(self, node: Node) -> CommandPart:
        """The command as written, including words that follow a redirection."""
        assignments: list[str] = []
        values: list[Word] = []
        words: list[Word] = []
        for child in node.children:
            if child.type == "variable_assignment":
                assignments.append(self._text(child))
                values += map(self._word, filter(_is_word, child.children[-1:]))
            elif child.type == "command_name":
                words.extend(self._word(part) for part in child.children)
            elif child.type in _WORD_TYPES:
                words.append(self._word(child))
            elif child.is_named and child.type not in _REDIRECTS:
                words.append(Word(self._text(child), None))
        parent = node.parent
        if parent is not None and parent.type == "redirected_statement":
            behind = node.next_sibling
            if behind is not None and behind.type == "heredoc_redirect":
                gap = self._source[node.end_byte : behind.start_byte]
                words += [Word("-", "-")] if is_lost_dash(gap, behind.children[0]) else []
            for child in parent.children:
                if child.type in _REDIRECTS:
                    words.extend(self._word(extra) for extra in _words_after_target(child))
        text = self._text(node)
        given = self._input(node)
        return CommandPart(text, tuple(words), tuple(assignments), tuple(values), input=given)

    def _input(self, command: Node) -> str:
        """The text of the command's here-documents and here-strings."""
        around = command.parent
        is_redirected = around is not None and around.type == "redirected_statement"
        beside = around.children if around is not None and is_redirected else ()
        redirects = [one for one in (*command.children, *beside) if one.type in _TEXT_REDIRECTS]
        return "\n".join(map(self._text, redirects))

    def _add_unwrapped(self, part: CommandPart, wrappers: int) -> None:
        """Record `part` and the commands it wraps, if its text shows them."""
        if wrappers > _MAX_WRAPPERS:
            raise UnparsableError("too many nested commands")
        found = unwrap(part)
        self._commands.append(found.outer)
        for inner in found.commands:
            self._add_unwrapped(inner, wrappers + 1)
        for script in found.scripts:
            nested = _Splitter(script, self._depth + 1).split()
            outer = found.outer
            self._commands.extend(
                replace(
                    command,
                    wrapper=command.wrapper or outer.name,
                    is_wrapped_plainly=command.is_wrapped_plainly and outer.is_wrapped_plainly,
                )
                for command in nested.commands
            )
            self._redirections.extend(nested.redirections)


def _reads_pipe(command: Node) -> bool:
    reader = command
    while reader.parent is not None and (
        reader.parent.type == "redirected_statement"
        # the grammar nests a | b | c || d
        or (reader.parent.type in ("pipeline", "list") and reader.prev_sibling is None)
    ):
        reader = reader.parent
    return reader.parent is not None and reader.parent.type == "pipeline"


def _is_word(node: Node) -> bool:
    return node.type in _WORD_TYPES


def _arguments(node: Node) -> list[Node]:
    return list(filter(_is_word, node.children))


def _condition_words(test: Node) -> Iterator[Node]:
    """The words between ``[`` and ``]`` in order, operators included."""
    pending = [test]
    while pending:
        node = pending.pop()
        if node.type in _CONDITION_TYPES:
            pending.extend(reversed(node.children))
        elif node.type not in ("[", "]"):
            yield node


def _refuse_lost_words(redirect: Node) -> None:
    """Refuse words after a redirection that belong to no visible command."""
    parent = redirect.parent
    is_whole = parent is not None and parent.type == "redirected_statement"
    body = parent.child(0) if is_whole and parent is not None else None
    if (body is None or body.type != "command") and _words_after_target(redirect):
        raise UnparsableError("words follow a redirection")


def _flat(node: Node) -> Iterator[Node]:
    """The nodes that ``a && b || c`` joins, which the grammar nests."""
    pending = [node]
    while pending:
        current = pending.pop()
        if current.type == "list":
            pending.extend(reversed(current.children))
        else:
            yield current


def _words_after_target(redirect: Node) -> Sequence[Node]:
    """Words of the command that the grammar puts into a preceding redirection."""
    if redirect.named_child_count < 2 and redirect.type != "heredoc_redirect":
        return ()
    words = [child for child in redirect.children if child.type in _WORD_TYPES]
    is_heredoc = redirect.type == "heredoc_redirect"
    return words if is_heredoc else words[1:]
