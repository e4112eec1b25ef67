"""Deciding what a compaction keeps: the model's choice, and the person's marks on it."""

from pathlib import Path

from agent_tui.features.context.keeping_screen import KeepingScreen, PreviewScreen
from agent_tui.features.tour.scripted import Reply
from agent_tui.ui.screens.picker import RowList
from tests.support.long_work import SUMMARY
from tests.ui.app_support import Ui, listed
from tests.ui.test_compacting import at_work, opened, summaries

ANSWER = f"<notes>\n{SUMMARY}\n</notes>\n<keep>\n#6\n#7 1-4\n</keep>"


async def _asked(ui: Ui, line: str = "/compact --preview") -> KeepingScreen:
    """The screen, once the model has answered."""
    await opened(ui, line, "after /compact")
    await ui.pilot.press("m")
    await ui.until(lambda: isinstance(ui.app.screen, KeepingScreen))
    screen = ui.app.screen
    assert isinstance(screen, KeepingScreen)
    await ui.until(lambda: screen.query_one(RowList).count > 0)
    await ui.settle()
    return screen


def _kept(ui: Ui) -> list[str]:
    """What stands word for word in the summary, as the model sees it."""
    context = ui.runtime.conversation.context()
    summary = next(
        item.message.text for item in context.messages if "<said-by" in item.message.text
    )
    return summary.partition("</kept>")[0].split("<excerpt")[1:]


def _rows(screen: KeepingScreen) -> list[str]:
    return [" ".join(line.split()) for line in listed(screen)]


def _message(screen: KeepingScreen) -> str:
    return str(screen.query_one("#picker-message").render())


async def _go_to(ui: Ui, screen: KeepingScreen, at: int) -> None:
    await ui.pilot.press("home", *(["down"] * at))
    await ui.settle()


def _questions(ui: Ui) -> int:
    """How often the model was asked what stays, without requests for additions to an answer."""
    return sum("Answer in two parts." in r.messages[-1].text for r in ui.stage.model.requests)


async def test_the_model_is_asked_only_after_a_key_and_its_choice_is_shown(tmp_path: Path):
    async with at_work(tmp_path, Reply(text=ANSWER)) as ui:
        file = ui.path.read_bytes()
        await opened(ui, "/compact --preview", "after /compact")
        assert ui.stage.model.requests == []
        assert isinstance(ui.app.screen, PreviewScreen)
        await ui.pilot.press("escape")
        screen = await _asked(ui)
        assert _questions(ui) == 1
        notes, first, second, _, _, third, fourth, fifth = _rows(screen)[:8]
        assert notes == "the model's notes written"
        assert first.split()[-2] == "goes"
        assert second.split()[-2] == third.split()[-2] == "stays"
        assert fourth.split()[-2] == "kept"
        assert fifth.split()[-3:-1] == ["kept", "1-4"]
        assert _rows(screen)[-1].split()[-2] == "stays"
        assert "tokens are kept word for word." in _message(screen)
        await ui.pilot.press("escape")
        await ui.settle()
        assert len(ui.app.screen_stack) == 1
        assert ui.path.read_bytes() == file


async def test_enter_makes_the_compaction_that_was_shown(tmp_path: Path):
    async with at_work(tmp_path, Reply(text=ANSWER)) as ui:
        screen = await _asked(ui)
        await _go_to(ui, screen, 1)
        await ui.pilot.press("a")
        kept = screen.present_row
        await ui.pilot.press("down", "down", "down", "down", "down", "d")
        dropped = screen.present_row
        await ui.settle()
        assert kept is not None
        assert dropped is not None
        rows = _rows(screen)
        assert "always kept" in rows[1]
        assert "dropped by you" in rows[6]
        await ui.pilot.press("enter")
        await ui.until(lambda: bool(summaries(ui)))
        await ui.settle()
        assert _questions(ui) == 1
        (block,) = summaries(ui)
        assert "The help shows the options as a table" in block.summary
        (lasting,) = [part for part in _kept(ui) if 'kept="always"' in part]
        assert kept.title.split()[1] in lasting
        assert not any(dropped.title.split()[1] in part for part in _kept(ui))


async def test_a_mark_is_taken_back_and_the_newest_messages_need_none(tmp_path: Path):
    async with at_work(tmp_path) as ui:
        screen = await _asked(ui, "/compact --preview --model none")
        assert ui.stage.model.requests == []
        before = _rows(screen)
        assert "About 0 of" in _message(screen)
        await ui.pilot.press("k")
        assert "kept by you" in _rows(screen)[0]
        await ui.pilot.press("k")
        assert _rows(screen) == before
        await ui.pilot.press(*["pagedown"] * 20, "k")
        await ui.settle()
        assert _message(screen) == "It is among the newest messages, which stay."
        await ui.pilot.press("slash", *"schema", "enter")
        await ui.settle()
        assert 0 < len(_rows(screen)) < len(before)
        assert isinstance(ui.app.screen, KeepingScreen)


async def test_context_leads_to_the_same_choice(tmp_path: Path):
    async with at_work(tmp_path, Reply(text=ANSWER)) as ui:
        await opened(ui, "/context", "What a compaction would free")
        await ui.pilot.press("m")
        await ui.until(lambda: isinstance(ui.app.screen, KeepingScreen))
        await ui.until(lambda: ui.app.screen.query_one(RowList).count > 0)
        await ui.pilot.press("enter")
        await ui.until(lambda: bool(summaries(ui)))
        assert _questions(ui) == 1


async def test_without_a_model_what_was_marked_is_kept(tmp_path: Path):
    async with at_work(tmp_path, Reply(text=SUMMARY)) as ui:
        screen = await _asked(ui, "/compact --preview --model none")
        await ui.pilot.press("k")
        row = screen.present_row
        assert row is not None
        await ui.pilot.press("enter")
        await ui.until(lambda: bool(summaries(ui)))
        await ui.settle()
        assert ui.stage.model.requests == []
        (kept,) = _kept(ui)
        assert row.title.split()[1] in kept
