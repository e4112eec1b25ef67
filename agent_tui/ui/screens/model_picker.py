"""The model picker: every model with a key or a running server, with window and price."""

from collections.abc import Sequence

from agent_tui.providers.base import FoundModel, ModelRef
from agent_tui.ui.options import ModelSource
from agent_tui.ui.sanitise import safe_text
from agent_tui.ui.screens.picker import PickerRow, PickerScreen
from agent_tui.ui.status_bar import short_count


class ModelPicker(PickerScreen[ModelRef]):
    """Returns the chosen model.

    Args:
        models: Where the models come from.
        present: The name of the model in use.
    """

    heading = "Choose a model"
    placeholder = "Type to search, or a full model name such as openai/gpt-5"
    nothing = "No model can be reached: no key is set and no local server answers."
    column_titles = ("via", "window", "$ in", "$ out")

    def __init__(self, models: ModelSource, present: str) -> None:
        super().__init__()
        self._models = models
        self._present = present

    async def load_rows(self) -> Sequence[PickerRow[ModelRef]]:
        """The models found, the present one first."""
        found = await self._models.found()
        rows = [model_row(model, is_present=model.ref.name == self._present) for model in found]
        return sorted(rows, key=lambda row: row.value.name != self._present)


def model_row(model: FoundModel, *, is_present: bool) -> PickerRow[ModelRef]:
    """A model as a line."""
    info = model.info
    mark = "● " if is_present else "  "
    columns = (
        safe_text(model.via, keep_newlines=False),
        short_count(info.window),
        _price(info.input_price),
        _price(info.output_price),
    )
    return PickerRow(model.ref, mark + model.ref.name, columns)


def _price(dollars_per_million: float | None) -> str:
    return "–" if dollars_per_million is None else f"{dollars_per_million:.2f}"
