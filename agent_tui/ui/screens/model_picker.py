"""The model picker: every model that can be used now, with price, window, state and source."""

from collections.abc import Sequence
from dataclasses import replace

from agent_tui.providers.base import FoundModel, ModelInfo, ModelRef
from agent_tui.ui.options import ModelSource
from agent_tui.ui.sanitise import safe_text
from agent_tui.ui.screens.picker import PickerRow, PickerScreen
from agent_tui.ui.status_bar import short_count, short_via

WIDTH_FOR_PRICES = 100
"""Columns of the terminal from which on there is room for prices beside whole names."""


class ModelPicker(PickerScreen[ModelRef]):
    """Returns the chosen model.

    Args:
        models: Where the models come from.
        present: The model in use.
    """

    heading = "Choose a model"
    placeholder = "Type to search, or a full model name such as openai/gpt-5"
    nothing = "No model can be reached: no key is set and no local server answers."
    column_titles = ("$ in/out", "window", "state", "from")

    def __init__(self, models: ModelSource, present: ModelRef) -> None:
        super().__init__()
        self._models = models
        self._present = present

    async def load_rows(self) -> Sequence[PickerRow[ModelRef]]:
        """The models found, the present one first, then as they come: what is nearest first."""
        found = await self._models.found()
        rows = [model_row(model, is_present=_is_same(model.ref, self._present)) for model in found]
        if self.size.width < WIDTH_FOR_PRICES:
            self.column_titles = self.column_titles[1:]
            rows = [replace(row, columns=row.columns[1:]) for row in rows]
        return sorted(rows, key=lambda row: not _is_same(row.value, self._present))


def model_row(model: FoundModel, *, is_present: bool) -> PickerRow[ModelRef]:
    """A model as a line; one at a server has the name it has there."""
    info = model.info
    mark = "● " if is_present else "  "
    is_assumed = info.source == "guess"
    columns = (
        _prices(info),
        ("~" if is_assumed else "") + short_count(info.window),
        safe_text(model.state, keep_newlines=False),
        safe_text(short_via(model.via), keep_newlines=False),
    )
    title = _name_at_server(model.ref) if model.ref.base_url else model.ref.name
    search = f"{model.ref.name} {model.via}"
    return PickerRow(model.ref, mark + title, columns, search)


def _is_same(ref: ModelRef, present: ModelRef) -> bool:
    """Whether both lead to one model; one at a server may be asked for by two names."""
    if ref.base_url != present.base_url:
        return False
    return present.name in ((ref.name, ref.model_id) if ref.base_url else (ref.name,))


def _name_at_server(ref: ModelRef) -> str:
    """Without the name of the protocol; of a file's path (llama.cpp's names) the last part."""
    name = ref.model_id if ref.provider == "openai" else ref.name
    return name.rpartition("/")[2] if name.endswith(".gguf") else name


def _prices(info: ModelInfo) -> str:
    """Dollars per million tokens in and out."""
    if info.input_price is None and info.output_price is None:
        return "–"
    return f"{_price(info.input_price)}/{_price(info.output_price)}"


def _price(dollars_per_million: float | None) -> str:
    return "–" if dollars_per_million is None else f"{dollars_per_million:.2f}"
