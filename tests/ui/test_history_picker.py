"""The search through what was sent before."""

from pathlib import Path

from agent_tui.drafts.draft import Draft
from agent_tui.ui.screens.listing import HistoryPicker
from tests.ui.app_support import running_app
from tests.ui.previews import marked_words, painted


async def test_a_draft_is_shown_whole_with_the_searched_words_marked(tmp_path: Path):
    async with running_app(tmp_path, size=(120, 40)) as ui:
        for draft in ("one **bold** line", "first\nthe needle\nand Needles", "last"):
            ui.app.prompt.remember(Draft(draft))
        await ui.pilot.press("ctrl+r")
        await ui.until(lambda: isinstance(ui.app.screen, HistoryPicker))
        await ui.settle()
        assert "last" in painted(ui)
        await ui.write("needle")
        await ui.until(lambda: "the needle" in painted(ui))
        assert "and Needles" in painted(ui)
        assert marked_words(ui) == ["needle", "Needle"]
        await ui.pilot.press(*["backspace"] * 6)
        await ui.write("bold")
        await ui.until(lambda: "one **bold** line" in painted(ui))
        await ui.write("nothing-like-it")
        await ui.until(lambda: painted(ui) == "")
