"""Small pickers: of a `Listing`, of models, themes, earlier drafts, commands and actions."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, Generic, TypeAlias, TypeVar

from textual import getters
from textual.binding import Binding, BindingType
from textual.fuzzy import FuzzySearch

from agent_tui.commands.core.command import Command
from agent_tui.commands.core.front import Listing, ModelSource
from agent_tui.commands.core.known_models import KnownModels
from agent_tui.commands.model import facts_of, find_with_present, in_order, is_same
from agent_tui.drafts.draft import Draft
from agent_tui.key_actions import KeyMap
from agent_tui.providers.base import FoundModel, ModelRef
from agent_tui.ui.parts import any_app
from agent_tui.ui.screens.picker import PickerRow, PickerScreen, search_rows
from agent_tui.ui.screens.session_preview import preview_lines
from agent_tui.ui.theme.themes import theme_kind
from agent_tui.ui.transcript.blocks import UserBlock

ValueT = TypeVar("ValueT")
_MOST_ROWS = 1_000
"""A longer draft is cut in the preview."""
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
        """The rows that match, best first."""
        return rank_rows(palette_rows(self._choices, self._keys), wanted)

    def row_highlighted(self, row: PickerRow[PaletteChoice]) -> None:
        """Show how to do it without the palette."""
        match row.value:
            case Command() as command:
                also = "  (goes to the prompt)" if command.needs_argument else ""
                self.say(f"{command.usage}{also}")
            case Binding() as binding:
                self.say(self._keys.hint(binding.id or "", "does this in the chat"))


def palette_rows(choices: Iterable[PaletteChoice], keys: KeyMap) -> list[PickerRow[PaletteChoice]]:
    """One row per choice: what it does, and its name at the right."""
    return [
        PickerRow(choice, choice.description, (_name(choice, keys),), search=_also(choice, keys))
        for choice in choices
    ]


def _name(choice: PaletteChoice, keys: KeyMap) -> str:
    return f"/{choice.name}" if isinstance(choice, Command) else keys.first_key(choice.id or "")


def _also(choice: PaletteChoice, keys: KeyMap) -> str:
    if isinstance(choice, Command):
        return " ".join(choice.aliases)
    return keys.all_shown(choice.id or "")


def rank_rows(
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


class HistoryPicker(PickerScreen[Draft]):
    """Returns a draft to write on.

    Args:
        drafts: Oldest first.
    """

    heading = "Earlier prompts"
    nothing = "No prompts in this project yet."
    has_preview = True

    def __init__(self, drafts: Sequence[Draft]) -> None:
        super().__init__()
        self._drafts = tuple(drafts)

    async def load_rows(self) -> Sequence[PickerRow[Draft]]:
        """The drafts, newest first."""
        return [_row(draft) for draft in reversed(self._drafts)]

    def row_highlighted(self, row: PickerRow[Draft]) -> None:
        """Show the whole draft as the chat shows it."""
        blocks = (UserBlock(row.value.text),)
        paint = partial(preview_lines, blocks, self.wanted, most_rows=_MOST_ROWS)
        self.preview_end.show(paint)


def _row(draft: Draft) -> PickerRow[Draft]:
    first_line, _, rest = draft.text.strip().partition("\n")
    return PickerRow(draft, first_line, search=rest)


class ThemePicker(PickerScreen[str]):
    """Returns the chosen theme's name; closing it brings the first theme back.

    Args:
        names: All themes.
        present: The one in use.
        try_on: Uses a theme.
    """

    app = getters.app(any_app)
    heading = "Choose a theme"
    nothing = "No themes."

    def __init__(self, names: Sequence[str], present: str, try_on: Callable[[str], None]) -> None:
        super().__init__()
        self._names = tuple(names)
        self._before = present
        self._try_on = try_on

    async def load_rows(self) -> Sequence[PickerRow[str]]:
        """The themes, the one in use first."""
        ordered = sorted(self._names, key=lambda name: name != self._before)
        known = self.app.available_themes
        return [PickerRow(name, name, (theme_kind(known[name]),)) for name in ordered]

    def row_highlighted(self, row: PickerRow[str]) -> None:
        """Apply the theme as a preview."""
        self._try_on(row.value)

    def action_leave(self) -> None:
        """Clear the search, else close and restore the earlier theme."""
        if not self.wanted:
            self._try_on(self._before)
        super().action_leave()


class ListingScreen(PickerScreen[ValueT], Generic[ValueT]):
    """Returns the value of the chosen row.

    Args:
        listing: The items.
        note: A line below the rows.
        present: The value that is highlighted at first.
    """

    def __init__(
        self, listing: Listing[ValueT], *, note: str = "", present: ValueT | None = None
    ) -> None:
        super().__init__()
        self.heading = listing.title
        self.nothing = listing.empty
        self._listing = listing
        self.standing_note = note
        self._present = present

    async def load_rows(self) -> Sequence[PickerRow[ValueT]]:
        """The choices, with their details at the right."""
        return [
            PickerRow(choice.value, choice.label, (choice.details,))
            for choice in self._listing.choices
        ]

    def first_row(self, rows: Sequence[PickerRow[ValueT]]) -> int:
        """The index of the present value."""
        return next((n for n, row in enumerate(rows) if row.value == self._present), 0)


_WIDTH_FOR_PRICES = 100
"""Columns of the terminal from which on there is room for prices beside whole names."""


class ModelPicker(PickerScreen[ModelRef]):
    """Returns the chosen model.

    Args:
        models: Where the models come from.
        present: The model in use.
        known: Which were chosen before, and which are marked.
        found: The only models to choose from; None for all that can be found.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "mark", "Mark", priority=True)]
    heading = "Choose a model"
    placeholder = "Type to search, or a full model name such as openai/gpt-6.1-sol"
    nothing = "No models: no API key is set and no local server is running."
    column_titles = ("$ in/out", "window", "state", "from")

    def __init__(
        self,
        models: ModelSource,
        present: ModelRef,
        known: KnownModels | None = None,
        found: tuple[FoundModel, ...] | None = None,
    ) -> None:
        super().__init__()
        self._models = models
        self._present = present
        self._known = known or KnownModels()
        self._only = found
        self._found: tuple[FoundModel, ...] = ()

    @property
    def keys_hint(self) -> str:
        """The line at the bottom."""
        return "↑↓ move · enter choose · ctrl+s favourite · esc close"

    async def load_rows(self) -> Sequence[PickerRow[ModelRef]]:
        """The models found: the present one, favourites, those chosen last, then the others."""
        await asyncio.to_thread(self._known.load)
        self._found = self._only or await find_with_present(self._models, self._present)
        if self.size.width < _WIDTH_FOR_PRICES:
            self.column_titles = type(self).column_titles[1:]
        return self._rows_in_order()

    def _rows_in_order(self) -> Sequence[PickerRow[ModelRef]]:
        rows = [
            model_row(
                model,
                is_present=is_same(model.ref, self._present),
                is_favourite=self._known.is_favourite(model.ref),
            )
            for model in in_order(self._found, self._present, self._known)
        ]
        columns = len(self.column_titles)
        return [replace(row, columns=row.columns[-columns:]) for row in rows]

    async def action_mark(self) -> None:
        """Ctrl+S: make the highlighted model a favourite, or no longer."""
        if (row := self.present_row) is not None:
            await asyncio.to_thread(self._known.mark, row.value)
            self.show_rows(self._rows_in_order())


def model_row(
    model: FoundModel, *, is_present: bool, is_favourite: bool = False
) -> PickerRow[ModelRef]:
    """A model as a line; one at a server has the name it has there."""
    mark = "● " if is_present else "★ " if is_favourite else "  "
    facts = facts_of(model)
    state = facts.state or ("in use" if is_present else "")
    columns = (facts.prices, facts.window, state, facts.via)
    title = _name_at_server(model.ref) if model.ref.base_url else model.ref.name
    search = f"{model.ref.name} {model.via}"
    return PickerRow(model.ref, mark + title, columns, search)


def _name_at_server(ref: ModelRef) -> str:
    """Without the name of the protocol; of a file's path (llama.cpp's names) the last part."""
    name = ref.model_id if ref.provider == "openai" else ref.name
    return name.rpartition("/")[2] if name.endswith(".gguf") else name
