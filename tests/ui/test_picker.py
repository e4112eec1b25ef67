"""The base of all pickers: many rows, fast typing, the width of the rows."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

import pytest
from textual.content import Content
from textual.types import CSSPathType
from textual.widgets import Input

from agent_tui.ui.screens import picker
from agent_tui.ui.screens.picker import PickerRow, PickerScreen, RowList, column_widths, picker_line
from tests.ui.app_support import Ui, listed, running_app


class Numbers(PickerScreen[int]):
    """Picks a number; counts how many rows were drawn."""

    CSS_PATH: ClassVar[CSSPathType | None] = Path(picker.__file__).with_name("picker.tcss")
    column_titles = ("age",)

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count
        self.drawn = 0

    async def load_rows(self) -> Sequence[PickerRow[int]]:
        return [PickerRow(n, f"row {n}", columns=("now",)) for n in range(self._count)]

    def _line(self, index: int, width: int) -> Content:
        self.drawn += 1
        return super()._line(index, width)


@asynccontextmanager
async def picking(root: Path, count: int) -> AsyncGenerator[tuple[Ui, Numbers, list[int | None]]]:
    async with running_app(root) as ui:
        screen, picked = Numbers(count), list[int | None]()
        await ui.app.push_screen(screen, picked.append)
        await ui.until(lambda: screen.query_one(RowList).count > 0)
        await ui.settle()
        yield ui, screen, picked


def rows_fit(screen: Numbers) -> bool:
    """Every row is as wide as the room beside the scrollbar."""
    width = screen.query_one(RowList).scrollable_content_region.width
    return all(len(line) == width for line in listed(screen))


@pytest.mark.thorough
async def test_rows_stay_whole_as_the_scrollbar_comes_and_goes(tmp_path: Path):
    async with picking(tmp_path, 60) as (ui, screen, _):
        field = screen.query_one(Input)
        for wanted in ("59", "", "59"):
            field.value = wanted
            has_bar = not wanted
            await ui.until(
                lambda has_bar=has_bar: screen.query_one(RowList).show_vertical_scrollbar is has_bar
            )
            await ui.until(lambda: rows_fit(screen))


async def test_enter_takes_what_was_typed_before_the_rows_are_drawn(tmp_path: Path):
    async with picking(tmp_path, 300) as (ui, _, picked):
        await ui.pilot.press("2", "9", "9", "enter")
        await ui.until(lambda: picked)
        assert picked == [299]


async def test_of_many_rows_the_last_is_reached_and_only_those_in_sight_are_drawn(tmp_path: Path):
    async with picking(tmp_path, 20_000) as (ui, screen, picked):
        rows = screen.query_one(RowList)
        rows.move_to(19_999)
        await ui.settle()
        assert rows.scroll_offset.y + rows.size.height == 20_000
        assert screen.drawn < 500
        await ui.pilot.press("enter")
        await ui.until(lambda: picked)
        assert picked == [19_999]


def test_a_long_title_leaves_its_tag_whole():
    row = PickerRow("", "long " * 30, ("model", "5m"), tag="  (tally)")
    shown = picker_line(row, column_widths([row.columns]), 60, 16)
    assert shown.cell_length == 60
    assert "…  (tally)" in shown.plain


def test_a_long_tag_takes_what_a_short_title_leaves():
    row = PickerRow("", "Fix it", ("5m",), tag=f" – {'last line ' * 9}")
    shown = picker_line(row, column_widths([row.columns]), 60, 16)
    assert shown.cell_length == 60
    assert shown.plain.startswith("Fix it – last line last line last line last line last")
    assert "…  5m" in shown.plain
