"""``/undo``, ``/tree`` and Esc Esc ask what goes back where files were changed."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from agent_tui.features.tour.scripted import Reply, call
from agent_tui.features.tree.diff_screen import ChangeScreen, DiffScreen
from agent_tui.features.tree.screen import TreeScreen
from agent_tui.ui.screens.choice import ChoiceScreen
from tests.support.runtime import Stage
from tests.ui.app_support import Ui, listed, running_app


def changing(tmp_path: Path) -> AbstractAsyncContextManager[Ui]:
    """A conversation whose model is about to write two files."""
    stage = Stage(tmp_path)
    (stage.workspace / "old.txt").write_text("one\ntwo\n")
    calls = (
        call("r", "read", path="old.txt"),
        call("e", "edit", path="old.txt", old_text="two", new_text="2\n3"),
        call("w", "write", path="new.txt", content="new\n"),
    )
    replies = [*(Reply(tool_calls=(each,)) for each in calls), Reply(text="Done.")]
    more = [Reply(text="Again."), Reply(text="And again.")]
    return running_app(tmp_path, stage=stage, runtime=stage.runtime([*replies, *more]))


def facts(ui: Ui) -> str:
    return "\n".join(str(widget.render()) for widget in ui.app.screen.query("Static"))


async def question(ui: Ui, line: str) -> str:
    await ui.submit(line)
    await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
    await ui.settle()
    return facts(ui)


def present(tmp_path: Path) -> tuple[str, bool]:
    folder = tmp_path / "workspace"
    return (folder / "old.txt").read_text(), (folder / "new.txt").exists()


BEFORE, AFTER = ("one\ntwo\n", False), ("one\n2\n3\n", True)


async def test_both_go_back_and_that_is_taken_back(tmp_path: Path):
    async with changing(tmp_path) as ui:
        await ui.send("Change them")
        asked = await question(ui, "/undo")
        assert "To before your message: Change them" in asked
        assert "old.txt: +1 -2" in asked
        assert "new.txt: is deleted" in asked
        assert present(tmp_path) == AFTER
        await ui.pilot.press("b")
        await ui.until(lambda: ui.text == "Change them")
        assert present(tmp_path) == BEFORE
        done = "1 file restored: old.txt. 1 file deleted: new.txt."
        assert ui.notices[-1] == f"{done} /undo offers to redo the file changes."
        await ui.pilot.press("ctrl+u")
        said = "yes: put old.txt, new.txt back as they were before the undo"
        assert said in await question(ui, "/undo")
        await ui.pilot.press("y")
        await ui.until(lambda: present(tmp_path) == AFTER)


async def test_after_an_undo_the_first_row_redoes_it_and_names_the_files(tmp_path: Path):
    async with changing(tmp_path) as ui:
        await ui.send("Change them")
        await question(ui, "/undo")
        await ui.pilot.press("f")
        await ui.until(lambda: present(tmp_path) == BEFORE)
        said = "›r  redo files only: put old.txt, new.txt back as they were before the undo"
        assert said in await question(ui, "/undo")
        await ui.pilot.press("r")
        await ui.until(lambda: present(tmp_path) == AFTER)


async def test_a_redo_is_offered_until_files_change_also_after_a_message(tmp_path: Path):
    async with changing(tmp_path) as ui:
        await ui.send("Change them")
        await question(ui, "/undo")
        await ui.pilot.press("f")
        await ui.until(lambda: present(tmp_path) == BEFORE)
        await ui.send("Well")
        asked = await question(ui, "/undo")
        assert "›t  " in asked  # it undoes the message that followed first
        assert "r  redo files only: put old.txt, new.txt back as they were before the undo" in asked
        await ui.pilot.press("r")
        await ui.until(lambda: present(tmp_path) == AFTER)


async def test_the_changes_are_shown_before_it_is_decided(tmp_path: Path):
    async with changing(tmp_path) as ui:
        await ui.send("Change them")
        await question(ui, "/undo")
        await ui.pilot.press("d")
        await ui.until(lambda: isinstance(ui.app.screen, DiffScreen))
        await ui.until(lambda: len(listed(ui.app.screen)) == 2)
        assert {row.split()[0] for row in listed(ui.app.screen)} == {"old.txt", "new.txt"}
        await ui.pilot.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, ChangeScreen))
        await ui.until(lambda: "two" in facts(ui))
        await ui.pilot.press("escape")
        await ui.until(lambda: isinstance(ui.app.screen, DiffScreen))
        await ui.pilot.press("escape")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        await ui.pilot.press("escape")
        await ui.settle()
        assert present(tmp_path) == AFTER
        assert ui.text == ""


async def test_talk_alone_goes_back_and_a_message_that_changed_nothing_asks_nothing(tmp_path: Path):
    async with changing(tmp_path) as ui:
        await ui.send("Change them")
        await question(ui, "/undo")
        await ui.pilot.press("t")
        await ui.until(lambda: ui.text == "Change them")
        assert present(tmp_path) == AFTER
        await ui.pilot.press("ctrl+u")
        await ui.send("Otherwise")
        await ui.submit("/tree")
        await ui.until(lambda: isinstance(ui.app.screen, TreeScreen))
        await ui.settle()
        await ui.pilot.press("enter")  # no file has changed since, so nothing is asked
        await ui.until(lambda: ui.text == "Otherwise")
        assert present(tmp_path) == AFTER


async def test_a_returned_message_stays_if_undo_behind_it_is_cancelled(tmp_path: Path):
    async with changing(tmp_path) as ui:
        await ui.send("Change them")
        await ui.send("Well")
        await ui.write("/undo")
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.text == "Well")
        await ui.write("/undo")
        await ui.pilot.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        await ui.pilot.press("escape")
        await ui.until(lambda: not isinstance(ui.app.screen, ChoiceScreen))
        assert ui.text == "Well"


@pytest.mark.thorough
async def test_the_tree_asks_too(tmp_path: Path):
    async with changing(tmp_path) as ui:
        await ui.send("Change them")
        await ui.submit("/tree")
        await ui.until(lambda: isinstance(ui.app.screen, TreeScreen))
        await ui.settle()
        await ui.pilot.press("home")
        await ui.pilot.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        await ui.pilot.press("f")
        await ui.until(lambda: present(tmp_path) == BEFORE)
        assert ui.text == ""
        assert ui.answers == ["", "", "", "Done."]


async def test_what_somebody_else_changed_is_named_before_and_after(tmp_path: Path):
    async with changing(tmp_path) as ui:
        await ui.send("Change them")
        (tmp_path / "workspace" / "old.txt").write_text("theirs")
        assert "old.txt stays: changed outside this session" in await question(ui, "/undo")
        await ui.pilot.press("b")
        await ui.until(lambda: not (tmp_path / "workspace" / "new.txt").exists())
        assert ui.notices[-1] == "old.txt was not restored: changed outside this session."
        assert (tmp_path / "workspace" / "old.txt").read_text() == "theirs"


async def test_the_way_may_be_named(tmp_path: Path):
    async with changing(tmp_path) as ui:
        await ui.send("/undo")
        assert ui.notices[-1] == "Nothing to undo yet."
        await ui.send("Change them")
        await ui.send("/undo everything")
        assert ui.notices[-1] == "/undo takes both, talk, files, not everything."
        await ui.send("/undo files")
        await ui.until(lambda: present(tmp_path) == BEFORE)
        assert ui.text == ""
