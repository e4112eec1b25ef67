"""The command palette: every slash command and every action with a key, found by typing."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from textual.binding import Binding
from textual.fuzzy import FuzzySearch

from agent_tui.commands.core.command import Command
from agent_tui.ui.screens.picker import PickerRow, PickerScreen, search_rows

PaletteChoice: TypeAlias = Command | Binding

_BEGINS, _IN_NAME, _WHOLE_WORDS, _IN_WORDS = 5.0, 4.0, 3.0, 2.0
_LEAST_LETTERS = 3
"""Fewer are a part of almost every description."""


class CommandPalette(PickerScreen[PaletteChoice]):
    """Returns the command or the binding that was chosen.

    Args:
        commands: All slash commands.
        actions: What keys do; named by their descriptions.
    """

    heading = "What do you want to do?"
    placeholder = "Type a part of it"
    nothing = "There is nothing to do."

    def __init__(self, commands: Iterable[Command], actions: Iterable[Binding]) -> None:
        super().__init__()
        self._choices = (*commands, *actions)

    async def load_rows(self) -> Sequence[PickerRow[PaletteChoice]]:
        """The commands in their order, then the actions."""
        return palette_rows(self._choices)

    def matching(self, wanted: str) -> Sequence[PickerRow[PaletteChoice]]:
        """The best first."""
        return ranked_rows(palette_rows(self._choices), wanted)

    def row_highlighted(self, row: PickerRow[PaletteChoice]) -> None:
        """Say how to do it without the palette."""
        match row.value:
            case Command() as command:
                also = "  (goes into the prompt)" if command.needs_argument else ""
                self.say(f"{command.usage}{also}")
            case Binding() as binding:
                self.say(f"{_key(binding)} does it in the chat")


def palette_rows(choices: Iterable[PaletteChoice]) -> list[PickerRow[PaletteChoice]]:
    """One row a choice: what it does, and how it is called at the right."""
    return [
        PickerRow(choice, choice.description, (_name(choice),), search=_also(choice))
        for choice in choices
    ]


def _name(choice: PaletteChoice) -> str:
    return f"/{choice.name}" if isinstance(choice, Command) else _key(choice)


def _key(binding: Binding) -> str:
    """The first of its keys as it is written elsewhere."""
    return binding.key.partition(",")[0]


def _also(choice: PaletteChoice) -> str:
    return " ".join(choice.aliases) if isinstance(choice, Command) else choice.key


def ranked_rows(
    rows: Sequence[PickerRow[PaletteChoice]], wanted: str
) -> list[PickerRow[PaletteChoice]]:
    """The rows that match `wanted`, best first: by their names, then by what they do.

    Where nothing does, those whose words are like it.
    """
    typed = wanted.strip().lower().lstrip("/")
    if not typed:
        return list(rows)
    search = FuzzySearch()
    ranked = [(_score(search, row, typed), row) for row in rows]
    found = [row for score, row in sorted(ranked, key=lambda pair: -pair[0]) if score > 0]
    return found or search_rows(rows, typed)


def _score(search: FuzzySearch, row: PickerRow[PaletteChoice], typed: str) -> float:
    """How well a row matches; 0 for not at all. Below 1 only letters of a name."""
    names = [name.lstrip("/").lower() for name in (*row.columns, *row.search.split())]
    if any(name.startswith(typed) for name in names):
        return _BEGINS
    if any(typed in name for name in names):
        return _IN_NAME
    words = f"{row.title} {' '.join(names)}".lower()
    if set(typed.split()) <= set(words.split()):
        return _WHOLE_WORDS
    if len(typed) >= _LEAST_LETTERS and all(word in words for word in typed.split()):
        return _IN_WORDS
    best = max(search.match(typed, name)[0] for name in names)
    return best / (best + 1.0)
