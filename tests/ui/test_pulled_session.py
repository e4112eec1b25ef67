"""A session of another clone on the screen: pulled, opened, explained, undone."""

from pathlib import Path

import pytest

from agent_tui.features.session_picker.screen import SessionPicker
from agent_tui.ui.screens.picker import RowList
from agent_tui.ui.transcript.blocks import UserBlock
from tests.support.showcase import LINE, PULL, sharing_showcase
from tests.ui.app_support import Ui, listed

SIZE = 100, 28


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home"))


async def open_pulled(ui: Ui) -> None:
    await ui.send(PULL)
    await ui.send("/resume")
    await ui.until(lambda: isinstance(ui.app.screen, SessionPicker))
    await ui.until(lambda: ui.app.screen.query_one(RowList).count == 1)
    assert "(from Ada L)" in "\n".join(listed(ui.app.screen))
    await ui.pilot.press("enter")
    asked = "Invoices are off by a cent. Find out why and fix it."
    await ui.until(lambda: UserBlock(asked) in ui.blocks)
    await ui.settle()


async def test_a_pulled_session_opens_in_this_clone_and_its_lines_are_explained(
    tmp_path: Path,
) -> None:
    async with sharing_showcase(tmp_path, SIZE) as ui:
        await open_pulled(ui)
        assert any("Pulled from Ada L" in notice for notice in ui.notices)
        assert ui.runtime.conversation.permissions.mode == "ask", "Ada worked in full mode"
        assert ui.runtime.conversation.cwd == ui.workspace
        await ui.submit(LINE)
        await ui.until(lambda: len(ui.app.screen_stack) > 1)
        await ui.until(lambda: "Ada L asked" in "\n".join(shown(ui)))


@pytest.mark.parametrize("with_files", [True, False])
async def test_undo_names_the_files_that_others_changed_and_leaves_them(
    tmp_path: Path, with_files: bool
) -> None:
    async with sharing_showcase(tmp_path, SIZE, with_files=with_files) as ui:
        await open_pulled(ui)
        file = ui.workspace / "tally.py"
        before = file.read_text()
        await ui.send("/undo")
        await ui.until(lambda: any("was not restored" in notice for notice in ui.notices))
        (notice,) = [one for one in ui.notices if "was not restored" in one]
        assert "tally.py" in notice
        assert "changed in another clone, and pulled from Ada L" in notice
        assert file.read_text() == before


def shown(ui: Ui) -> list[str]:
    """The rows of what lies over the chat."""
    strips = ui.app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip) for strip in strips]
