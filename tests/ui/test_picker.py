"""The base of all pickers: many rows, fast typing, the width of the rows."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

import pytest
from textual.types import CSSPathType
from textual.widgets import Input, OptionList, Static

from agent_tui.ui.screens import picker
from agent_tui.ui.screens.picker import MAX_SHOWN, PickerRow, PickerScreen
from tests.ui.app_support import Ui, running_app


class Numbers(PickerScreen[int]):
    """Picks a number; counts how often the rows were drawn."""

    CSS_PATH: ClassVar[CSSPathType | None] = Path(picker.__file__).with_name("picker.tcss")
    column_titles = ("age",)

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count
        self.refills = 0

    async def load_rows(self) -> Sequence[PickerRow[int]]:
        return [PickerRow(n, f"row {n}", columns=("now",)) for n in range(self._count)]

    def refill(self) -> None:
        self.refills += 1
        super().refill()


@asynccontextmanager
async def picking(root: Path, count: int) -> AsyncGenerator[tuple[Ui, Numbers, list[int | None]]]:
    async with running_app(root) as ui:
        screen, picked = Numbers(count), list[int | None]()
        await ui.app.push_screen(screen, picked.append)
        await ui.until(lambda: screen.query_one(OptionList).option_count > 0)
        await ui.settle()
        yield ui, screen, picked


def rows_fit(screen: Numbers) -> bool:
    """Every row is as wide as the room beside the scrollbar."""
    listed = screen.query_one(OptionList)
    width = listed.scrollable_content_region.width
    return all(len(str(option.prompt)) == width for option in listed.options)


@pytest.mark.thorough
async def test_rows_stay_whole_as_the_scrollbar_comes_and_goes(tmp_path: Path):
    async with picking(tmp_path, 60) as (ui, screen, _):
        field = screen.query_one(Input)
        for wanted in ("59", "", "59"):
            field.value = wanted
            has_bar = not wanted
            await ui.until(
                lambda has_bar=has_bar: (
                    screen.query_one(OptionList).show_vertical_scrollbar is has_bar
                )
            )
            await ui.until(lambda: rows_fit(screen))


async def test_a_word_typed_at_once_draws_many_rows_once(tmp_path: Path):
    async with picking(tmp_path, 300) as (ui, screen, _):
        before = screen.refills
        field = screen.query_one(Input)
        for typed in ("r", "ro", "row", "row ", "row 2"):
            field.value = typed
        await ui.until(lambda: screen.refills > before)
        await ui.settle()
        assert screen.refills - before <= 2  # once for the text, once for the scrollbar


async def test_enter_takes_what_was_typed_before_the_rows_are_drawn(tmp_path: Path):
    async with picking(tmp_path, 300) as (ui, _, picked):
        await ui.pilot.press("2", "9", "9", "enter")
        await ui.until(lambda: picked)
        assert picked == [299]


@pytest.mark.thorough
async def test_rows_that_are_not_drawn_are_told_of(tmp_path: Path):
    async with picking(tmp_path, MAX_SHOWN + 7) as (ui, screen, _):
        message = screen.query_one("#picker-message", Static)
        await ui.until(lambda: "7 more" in str(message.render()))
