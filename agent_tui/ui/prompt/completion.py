"""What can be completed at the cursor, and with what. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from textual.fuzzy import FuzzySearch

from agent_tui.ui.commands.registry import Command

MAX_ITEMS = 50


@dataclass(frozen=True, slots=True)
class NameQuery:
    """The name of a slash command is being written."""

    typed: str
    start: int = 0


@dataclass(frozen=True, slots=True)
class ArgumentQuery:
    """The argument of a slash command is being written."""

    name: str
    typed: str
    start: int


@dataclass(frozen=True, slots=True)
class MentionQuery:
    """The path after an ``@`` is being written; `start` is the column of the ``@``."""

    typed: str
    start: int


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
    """

    label: str
    insert: str
    hint: str = ""
    description: str = ""
    matched: tuple[int, ...] = ()
    runs: bool = False


_MENTION = re.compile(r"(?:^|(?<=[\s(\[{\"'`,;]))@(?:\"([^\"]*)|([^\s\"]*))$")
_NAME = re.compile(r"^/([\w-]*)$")
_ARGUMENT = re.compile(r"^/([\w-]+) +(\S*)$")


def query_at(line_before_cursor: str, *, is_first_line: bool) -> Query | None:
    """What is being written at the cursor, None if nothing that has a menu."""
    if is_first_line:
        if name := _NAME.match(line_before_cursor):
            return NameQuery(name[1])
        if argument := _ARGUMENT.match(line_before_cursor):
            return ArgumentQuery(argument[1], argument[2], argument.start(2))
    if mention := _MENTION.search(line_before_cursor):
        return MentionQuery(mention[1] or mention[2] or "", mention.start())
    return None


def command_items(commands: Sequence[Command], typed: str) -> tuple[MenuItem, ...]:
    """The commands that match, best first; names that begin with `typed` before all others."""
    search = FuzzySearch()
    ranked: list[tuple[float, int, MenuItem]] = []
    for order, entry in enumerate(commands):
        name, matched, score = _best_name(search, entry, typed)
        if typed and not score:
            continue
        item = MenuItem(
            label="/" + name,
            insert=f"/{name} " if entry.argument_hint else f"/{name}",
            hint=entry.argument_hint,
            description=entry.description,
            matched=tuple(offset + 1 for offset in matched),
            runs=not entry.needs_argument,
        )
        ranked.append((-score, order, item))
    return tuple(item for _, _, item in sorted(ranked, key=lambda entry: entry[:2]))


def _best_name(
    search: FuzzySearch, entry: Command, typed: str
) -> tuple[str, tuple[int, ...], float]:
    """The name or alias that matches best, where, and how well (0: not at all)."""
    best: tuple[str, tuple[int, ...], float] = (entry.name, (), 0.0)
    if not typed:
        return best
    for name in (entry.name, *entry.aliases):
        score, offsets = search.match(typed, name)
        if score and name.startswith(typed.lower()):
            score += 100.0
        if score > best[2]:
            best = (name, tuple(offsets), score)
    return best


def choice_items(choices: Iterable[str], typed: str) -> tuple[MenuItem, ...]:
    """The arguments that match, best first.

    An option is found by its dashes: a free text that happens to have letters of it is none.
    """
    search = FuzzySearch()
    ranked: list[tuple[float, int, MenuItem]] = []
    for order, choice in enumerate(choices):
        if choice.startswith("-") and typed and not choice.startswith(typed):
            continue
        score, offsets = search.match(typed, choice) if typed else (1.0, ())
        if score:
            item = MenuItem(choice, choice, matched=tuple(offsets), runs=True)
            ranked.append((-score, order, item))
    ordered = sorted(ranked, key=lambda entry: entry[:2])
    return tuple(item for _, _, item in ordered[:MAX_ITEMS])


def mention_item(path: str) -> MenuItem:
    """The menu line for a path; one with blanks is quoted. A folder ends with a slash."""
    written = f'@"{path}"' if re.search(r"\s", path) else f"@{path}"
    blank = "" if path.endswith("/") else " "
    return MenuItem(path, written + blank)
