"""The command palette: every slash command and every action with a key, found by typing."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from textual.binding import Binding
from textual.fuzzy import FuzzySearch

from agent_tui.commands.core.command import Command
from agent_tui.key_actions import KeyMap
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
        keys: Which keys do it.
    """

    heading = "What do you want to do?"
    placeholder = "Type to search"
    nothing = "No commands."

    def __init__(
        self, commands: Iterable[Command], actions: Iterable[Binding], keys: KeyMap
    ) -> None:
        super().__init__()
        self._choices = (*commands, *actions)
        self._keys = keys

    async def load_rows(self) -> Sequence[PickerRow[PaletteChoice]]:
        """The commands in their order, then the actions."""
        return palette_rows(self._choices, self._keys)

    def matching(self, wanted: str) -> Sequence[PickerRow[PaletteChoice]]:
        """The best first."""
        return ranked_rows(palette_rows(self._choices, self._keys), wanted)

    def row_highlighted(self, row: PickerRow[PaletteChoice]) -> None:
        """Say how to do it without the palette."""
        match row.value:
            case Command() as command:
                also = "  (goes to the prompt)" if command.needs_argument else ""
                self.say(f"{command.usage}{also}")
            case Binding() as binding:
                self.say(self._keys.hint(binding.id or "", "does this in the chat"))


def palette_rows(choices: Iterable[PaletteChoice], keys: KeyMap) -> list[PickerRow[PaletteChoice]]:
    """One row a choice: what it does, and how it is called at the right."""
    return [
        PickerRow(choice, choice.description, (_name(choice, keys),), search=_also(choice, keys))
        for choice in choices
    ]


def _name(choice: PaletteChoice, keys: KeyMap) -> str:
    return f"/{choice.name}" if isinstance(choice, Command) else keys.shown(choice.id or "")


def _also(choice: PaletteChoice, keys: KeyMap) -> str:
    if isinstance(choice, Command):
        return " ".join(choice.aliases)
    return keys.all_shown(choice.id or "")


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
