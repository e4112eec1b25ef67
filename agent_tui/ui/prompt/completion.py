"""What can be completed at the cursor, and with what. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from agent_tui.commands.core.command import Command, Completion, Completions
from agent_tui.ui.prompt.ranking import FuzzyMatch, fuzzy_match

MAX_ITEMS = 50


@dataclass(frozen=True, slots=True)
class NameQuery:
    """The name of a slash command is being written."""

    typed: str
    start: int = 0
    kind: Literal["name"] = "name"


@dataclass(frozen=True, slots=True)
class ArgumentQuery:
    """The argument of a slash command is being written; `typed` is all of it so far."""

    name: str
    typed: str
    start: int
    kind: Literal["argument"] = "argument"


@dataclass(frozen=True, slots=True)
class MentionQuery:
    """The path after an ``@`` is being written; `start` is the column of the ``@``."""

    typed: str
    start: int
    kind: Literal["mention"] = "mention"


Query: TypeAlias = NameQuery | ArgumentQuery | MentionQuery


@dataclass(frozen=True, slots=True)
class MenuItem:
    """One line of the menu.

    Attributes:
        label: What it is, first column.
        insert: The text that replaces what was typed from the query's start to the cursor.
        hint: Argument hint, beside the label.
        description: Second column.
        matched: Offsets in `label` that match what was typed.
        runs: Whether Enter sends the prompt once this was inserted.
        stands_for: Whether `insert` is an id that nobody types: what was typed is not it yet.
    """

    label: str
    insert: str
    hint: str = ""
    description: str = ""
    matched: tuple[int, ...] = ()
    runs: bool = False
    stands_for: bool = False


_MENTION = re.compile(r"(?:^|(?<=[\s(\[{\"'`,;]))@(?:\"([^\"]*)|([^\s\"]*))$")
_NAME = re.compile(r"^/([\w:-]*)$")
_ARGUMENT = re.compile(r"^/([\w:-]+)\s+(.*)$")


def query_at(line_before_cursor: str, *, is_first_line: bool) -> Query | None:
    """The text being completed at the cursor; None if it has no menu."""
    if mention := _MENTION.search(line_before_cursor):
        return MentionQuery(mention[1] or mention[2] or "", mention.start())
    if is_first_line:
        if name := _NAME.match(line_before_cursor):
            return NameQuery(name[1])
        if argument := _ARGUMENT.match(line_before_cursor):
            return ArgumentQuery(argument[1], argument[2], argument.start(2))
    return None


def command_items(commands: Sequence[Command], typed: str) -> tuple[MenuItem, ...]:
    """The commands that match, best first; names that begin with `typed` before all others."""
    ranked: list[tuple[float, int, MenuItem]] = []
    for order, entry in enumerate(commands):
        name, match = _best_name(entry, typed)
        if match is None:
            continue
        item = MenuItem(
            label="/" + name,
            insert=f"/{name} " if entry.argument_hint else f"/{name}",
            hint=entry.argument_hint,
            description=entry.description,
            matched=tuple(offset + 1 for offset in match.offsets),
            runs=not entry.needs_argument,
        )
        ranked.append((-match.score, order, item))
    return _in_order(ranked)[:MAX_ITEMS]


def _best_name(entry: Command, typed: str) -> tuple[str, FuzzyMatch | None]:
    """The best matching name or alias, and its match."""
    best_name, best = entry.name, fuzzy_match(typed, entry.name)
    for name in entry.aliases:
        match = fuzzy_match(typed, name)
        if match is not None and (best is None or match.score > best.score):
            best_name, best = name, match
    return best_name, best


def argument_items(offer: Completions, typed: str) -> tuple[MenuItem, ...]:
    """The completions of the argument, best first.

    If nothing matches the whole text, an option may still follow free words.
    """
    choices = [Completion(entry) if isinstance(entry, str) else entry for entry in offer]
    whole = _rank(choices, typed)
    words, dash, begun = typed.rpartition(" -")
    if whole or not dash:
        return whole
    return tuple(
        MenuItem(choice.text, f"{words} {choice.text}", description=choice.description, runs=True)
        for choice in choices
        if choice.text.startswith(f"-{begun}")
    )


def _rank(choices: Sequence[Completion], typed: str) -> tuple[MenuItem, ...]:
    ranked: list[tuple[float, int, MenuItem]] = []
    for order, choice in enumerate(choices):
        match = _match(choice, typed)
        if match is None:
            continue
        item = MenuItem(
            label=choice.label or choice.text,
            insert=choice.text,
            description=choice.description,
            matched=match.offsets,
            runs=not choice.text.endswith(" "),
            stands_for=bool(choice.label),
        )
        ranked.append((-match.score, order, item))
    return _in_order(ranked)[:MAX_ITEMS]


def _match(choice: Completion, typed: str) -> FuzzyMatch | None:
    """How `choice` fits.

    An option is found by its dashes: a free text that happens to have letters of it is none.
    Of a choice with several words those before the last must be written out.
    """
    if choice.label:
        is_id = bool(typed) and choice.text.startswith(typed)
        return FuzzyMatch(0.0, ()) if is_id else fuzzy_match(typed, choice.label)
    if choice.text.startswith("-") and not choice.text.startswith(typed):
        return None
    head, last = split_last_word(typed)
    if not choice.text.lower().startswith(head.lower()):
        return None
    match = fuzzy_match(last, choice.text[len(head) :])
    if match is None:
        return None
    return FuzzyMatch(match.score, tuple(offset + len(head) for offset in match.offsets))


def path_items(paths: Sequence[str], typed: str) -> tuple[MenuItem, ...]:
    """Paths for the last word of an argument; they are written as they are, without quotes."""
    head, last = split_last_word(typed)
    return tuple(MenuItem(path, head + path, matched=_letters(path, last)) for path in paths)


def split_last_word(typed: str) -> tuple[str, str]:
    """Everything up to the last blank, with it, and what comes after."""
    head, blank, last = typed.rpartition(" ")
    return head + blank, last


def resource_items(choices: Mapping[str, str], typed: str) -> tuple[MenuItem, ...]:
    """The menu lines for servers and resources that match the `typed` text after the ``@``."""
    offered = [Completion(text, about) for text, about in choices.items()]
    return tuple(
        replace(item, insert=f"@{item.insert}" + " " * (not item.insert.endswith(":")), runs=False)
        for item in _rank(offered, typed)
    )


def mention_item(path: str, typed: str = "") -> MenuItem:
    """The menu line for a path; one with blanks is quoted. A folder ends with a slash."""
    before, after = ('@"', '"') if re.search(r"\s", path) else ("@", "")
    insert = before + path + ("" if path.endswith("/") else after + " ")
    return MenuItem(path, insert, matched=_letters(path, typed))


def _letters(path: str, typed: str) -> tuple[int, ...]:
    match = fuzzy_match(typed, path)
    return match.offsets if match is not None else ()


def _in_order(ranked: list[tuple[float, int, MenuItem]]) -> tuple[MenuItem, ...]:
    return tuple(item for _, _, item in sorted(ranked, key=lambda entry: entry[:2]))
