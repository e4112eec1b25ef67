"""The model picker: every model that can be used now, with price, window, state and source."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual.binding import Binding, BindingType

from agent_tui.commands.core.front import ModelSource
from agent_tui.commands.core.known_models import KnownModels
from agent_tui.commands.model import facts_of, find_with_present, in_order, is_same
from agent_tui.providers.base import FoundModel, ModelRef
from agent_tui.ui.screens.picker import PickerRow, PickerScreen

_WIDTH_FOR_PRICES = 100
"""Columns of the terminal from which on there is room for prices beside whole names."""


class ModelPicker(PickerScreen[ModelRef]):
    """Returns the chosen model.

    Args:
        models: Where the models come from.
        present: The model in use.
        known: Which were chosen before, and which are marked.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "mark", "Mark", priority=True)]
    heading = "Choose a model"
    placeholder = "Type to search, or a full model name such as openai/gpt-5"
    nothing = "No models: no API key is set and no local server is running."
    column_titles = ("$ in/out", "window", "state", "from")

    def __init__(
        self, models: ModelSource, present: ModelRef, known: KnownModels | None = None
    ) -> None:
        super().__init__()
        self._models = models
        self._present = present
        self._known = known or KnownModels()
        self._found: tuple[FoundModel, ...] = ()

    @property
    def keys_hint(self) -> str:
        """The line at the bottom."""
        return "↑↓ move · enter choose · ctrl+s favourite · esc close"

    async def load_rows(self) -> Sequence[PickerRow[ModelRef]]:
        """The models found: the present one, favourites, those chosen last, then the others."""
        await asyncio.to_thread(self._known.load)
        self._found = await find_with_present(self._models, self._present)
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
