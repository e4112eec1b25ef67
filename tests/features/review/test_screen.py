"""The review on the screen: files, hunks, comments, and what is done with them."""

import asyncio
import os
import subprocess
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import Static

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.features.review.actions import ReviewActions, has_open_calls
from agent_tui.features.review.changes import FileChange, Hunk
from agent_tui.features.review.comments import Comment, ReviewState, comment_entry, read_state
from agent_tui.features.review.screen import ReviewScreen
from agent_tui.features.review.sources import Review, ReviewLoader
from agent_tui.features.review.view import ReviewView, list_files
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import AssistantMessage, ToolResultMessage, UserMessage
from agent_tui.sessions.entries import MessageEntry
from agent_tui.ui.lines_field import LinesField
from agent_tui.ui.screens.choice import ChoiceScreen
from agent_tui.ui.screens.modal import PageScreen
from agent_tui.ui.theme.palette import Palette
from tests.features.review.test_sources import git
from tests.support.runtime import Stage
from tests.ui.app_support import Ui, held, running_app

BEFORE = "".join(f"line {n}\n" for n in range(1, 41))
SMALL_SIZES = (60, 24)


def write(name: str, content: str) -> Reply:
    return Reply(tool_calls=(call(f"w{name}{len(content)}", "write", path=name, content=content),))


def edit(name: str, old: str, new: str) -> Reply:
    change: dict[str, object] = {"old": old, "new": new}
    return Reply(tool_calls=(call(f"e{name}{new}", "edit", path=name, edits=[change]),))


def working(stage: Stage, *more: Reply) -> AgentRuntime:
    """Two hunks in a.py, and a new file."""
    (stage.workspace / "a.py").write_text(BEFORE)
    replies = [
        edit("a.py", "line 3\n", "line three\n"),
        edit("a.py", "line 30\n", "line thirty\n"),
        write("new.py", 'def f():\n    """A\n    text."""\n'),
        Reply("Done."),
    ]
    return stage.runtime([*replies, *more], mode="full")


def view(ui: Ui) -> ReviewView:
    return ui.app.screen.query_one(ReviewView)


def text(ui: Ui) -> str:
    """All rows, also those out of sight."""
    shown = view(ui)
    lines = [line.row.rstrip() for n in range(len(shown.items)) for line in shown._lines(n)]
    return "\n".join(lines)


def title(ui: Ui) -> str:
    return str(ui.app.screen.query_one("#page-title", Static).render())


def state(ui: Ui) -> ReviewState:
    return read_state(ui.runtime.conversation.log.entries)


async def opened(ui: Ui, line: str = "/diff") -> None:
    await ui.submit(line)
    await ui.until(lambda: isinstance(ui.app.screen, ReviewScreen))
    await ui.until(lambda: ui.app.screen.query(ReviewView))
    await ui.until(lambda: view(ui).items)
    await ui.drawn()


async def reloaded(ui: Ui) -> None:
    assert isinstance(ui.app.screen, ReviewScreen)
    await ui.app.screen.reload()


async def acted(ui: Ui) -> None:
    """Until keys would act at once."""
    screen = ui.app.screen
    assert isinstance(screen, ReviewScreen)
    await ui.until(lambda: not screen._is_acting)
    await ui.drawn()


def cursor_row(ui: Ui) -> str:
    return "".join(line.row for line in view(ui)._lines(view(ui).cursor))


async def press_until(ui: Ui, key: str, is_so: str) -> None:
    """Press `key` until the row of the cursor has `is_so`."""
    for _ in range(80):
        if is_so in cursor_row(ui):
            return
        await ui.pilot.press(key)
    raise AssertionError(text(ui))


async def comment(ui: Ui, words: str) -> None:
    count = len(state(ui).comments)
    await ui.pilot.press("c")
    await ui.until(lambda: isinstance(ui.app.focused, LinesField))
    await ui.write(words)
    await ui.pilot.press("enter")
    await ui.until(lambda: len(state(ui).comments) > count)
    await ui.until(lambda: isinstance(ui.app.screen, ReviewScreen))
    await ui.drawn()


async def test_files_hunks_and_counts_are_shown(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        assert title(ui) == "Changes since your last message · 2 files +5 -2"
        shown = text(ui)
        assert "▾ a.py  +2 -2" in shown
        assert "▾ new.py  +3 -0  new file" in shown
        assert " 3 - line 3\n 3 + line three" in shown
        assert "line 20" not in shown
        await ui.pilot.press("escape")
        await ui.until(lambda: not isinstance(ui.app.screen, ReviewScreen))


async def test_old_and_new_lines_are_side_by_side_on_a_wide_screen(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(160, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        row = next(row for row in text(ui).split("\n") if "line three" in row)
        left, _, right = row.partition("│")
        assert " 3 - line 3" in left
        assert " 3 + line three" in right
        await ui.pilot.resize_terminal(80, 24)
        await ui.until(lambda: "│" not in text(ui))


async def test_comments_are_sent_as_one_message_and_follow_their_lines(tmp_path: Path):
    stage = Stage(tmp_path)
    again = [edit("a.py", "line 1\n", "zero\nline 1\n"), Reply("Better.")]
    runtime = working(stage, *again)
    async with running_app(tmp_path, stage=stage, runtime=runtime, size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        await press_until(ui, "down", "+ line three")
        await comment(ui, "Why?")
        await press_until(ui, "down", "+ line thirty")
        await ui.pilot.press("shift+down")
        await reloaded(ui)  # a selection stays
        await comment(ui, "Hm.")
        assert "2 comments to send" in title(ui)
        await ui.pilot.press("m")
        await ui.until(lambda: len(ui.sent) == 2 and not ui.is_running)
        assert ui.sent[1] == (
            "I reviewed the changes and have 2 comments:\n\n"
            "1. a.py, line 3 after the change\n    3| line three\nWhy?\n\n"
            "2. a.py, lines 30-31 after the change\n    30| line thirty\n    31| line 31\nHm.\n\n"
            "Address each comment, or say why not."
        )
        await ui.pilot.press("escape")
        await ui.until(lambda: not isinstance(ui.app.screen, ReviewScreen))
        await opened(ui, "/diff session")
        rows = text(ui).split("\n")
        at = next(n for n, row in enumerate(rows) if "+ line three" in row)
        assert rows[at].split()[0] == "4"
        assert rows[at + 1].strip() == "┃ you · sent"
        await press_until(ui, "down", "you · sent")
        await ui.pilot.press("r")
        await ui.until(lambda: "┃ you · resolved" in text(ui))


async def test_a_comment_that_is_left_is_there_again_also_when_the_screen_opens_again(
    tmp_path: Path,
):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        await press_until(ui, "down", "+ line three")
        for expected in ("Why", "Why not"):
            await ui.pilot.press("c")
            await ui.until(lambda: isinstance(ui.app.focused, LinesField))
            await ui.write(expected.removeprefix("Why") if " " in expected else expected)
            assert isinstance(ui.app.focused, LinesField)
            assert ui.app.focused.text == expected
            await ui.pilot.press("escape")
            await ui.until(lambda: isinstance(ui.app.screen, ReviewScreen))
            await ui.drawn()
        (draft,) = state(ui).comments.values()
        assert (draft.text, draft.place, draft.state) == ("Why not", "a.py:3", "draft")
        await ui.pilot.press("escape")
        await ui.until(lambda: not isinstance(ui.app.screen, ReviewScreen))
        assert ui.text == ""
        await opened(ui)
        assert "Why not" in text(ui)
        await press_until(ui, "down", "+ line three")
        await ui.pilot.press("c")
        await ui.until(lambda: isinstance(ui.app.focused, LinesField))
        assert isinstance(ui.app.focused, LinesField)
        assert ui.app.focused.text == "Why not"
        await ui.write("!")
        await ui.until(lambda: [one.text for one in state(ui).comments.values()] == ["Why not!"])
        await ui.pilot.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, ReviewScreen))
        await acted(ui)
        assert [(one.text, one.state) for one in state(ui).comments.values()] == [
            ("Why not!", "open")
        ]


@pytest.mark.thorough
async def test_an_unfinished_change_of_a_comment_is_beside_it(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        await press_until(ui, "down", "+ line three")
        await comment(ui, "Why not!")
        await press_until(ui, "down", "┃ you")
        await ui.pilot.press("c")
        await ui.until(lambda: isinstance(ui.app.focused, LinesField))
        await ui.write("?")
        await ui.pilot.press("escape")
        await ui.until(lambda: isinstance(ui.app.screen, ReviewScreen))
        await acted(ui)
        assert [(one.text, one.state) for one in state(ui).comments.values()] == [
            ("Why not!", "open"),
            ("Why not!?", "draft"),
        ]
        await ui.pilot.press("c")
        await ui.until(lambda: isinstance(ui.app.focused, LinesField))
        await ui.pilot.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, ReviewScreen))
        await acted(ui)
        assert [(one.text, one.state) for one in state(ui).comments.values()] == [
            ("Why not!?", "open"),
            ("Why not!?", "dropped"),
        ]


async def test_a_git_that_cannot_be_started_is_said_and_the_message_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_words: object, **_options: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    stage, drafts = Stage(tmp_path), list[str]()
    module = "agent_tui.features.review.screen"
    monkeypatch.setattr(
        f"{module}.edit_text", lambda draft, *_: drafts.append(draft) or "Say three"
    )
    monkeypatch.setattr(f"{module}.subprocess.run", fail)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        monkeypatch.setattr(ui.app, "suspend", nullcontext)
        git(stage.workspace, "init", "-q")
        await ui.send("Change it.")
        git(stage.workspace, "add", "new.py")
        await opened(ui)
        for count in (1, 2):
            await ui.pilot.press("C")
            await ui.until(lambda count=count: len(ui.toasts) == count)
        assert ui.toasts[-1] == "Git cannot be started: No such file or directory."
        assert drafts[-1].startswith("Say three\n")


async def test_an_editor_that_fails_commits_nothing_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stage = Stage(tmp_path)
    editor = tmp_path / "editor.sh"
    editor.write_text("#!/bin/sh\nexit 3\n")
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(editor))
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        monkeypatch.setattr(ui.app, "suspend", nullcontext)
        git(stage.workspace, "init", "-q")
        await ui.send("Change it.")
        git(stage.workspace, "add", "new.py")
        await opened(ui)
        await ui.pilot.press("C")
        await ui.until(lambda: ui.toasts)
        assert ui.toasts == ["The editor ended with exit code 3."]


async def test_what_changed_since_a_comment_is_said(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        await press_until(ui, "down", "+ line three")
        await comment(ui, "Why?")
        file = stage.workspace / "a.py"
        file.write_text(file.read_text().replace("line three", "line 3!"))
        await reloaded(ui)
        assert "┃ you · not sent yet · its lines changed since" in text(ui)


async def test_a_reviewed_file_is_folded_until_it_changes(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        await ui.pilot.press("space")
        await ui.until(lambda: "▸ a.py  +2 -2  ✓ reviewed" in text(ui))
        assert "line three" not in text(ui)
        await ui.pilot.press("escape")
        await ui.until(lambda: not isinstance(ui.app.screen, ReviewScreen))
        await opened(ui)
        assert "✓ reviewed" in text(ui)
        assert "line three" not in text(ui)
        file = stage.workspace / "a.py"
        file.write_text(file.read_text() + "more\n")
        await reloaded(ui)
        assert "✓ reviewed" not in text(ui)
        assert "line three" in text(ui)


async def test_a_hunk_is_taken_back_the_model_is_told_and_undo_redoes_it(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        await press_until(ui, "down", "+ line three")
        await ui.pilot.press("x")
        file = stage.workspace / "a.py"
        await ui.until(lambda: file.read_text() == BEFORE.replace("line 30\n", "line thirty\n"))
        await ui.until(lambda: "line three" not in text(ui))
        assert ui.toasts == ["1 hunk taken back in a.py. /undo offers to redo the file changes."]
        request = ui.runtime.conversation.request()
        told = [m.text for m in request.messages if isinstance(m, UserMessage)][-1]
        assert "The user took this change in a.py back" in told
        assert "    3| -line 3\n    3| +line three\n" in told
        await ui.pilot.press("escape")
        await ui.until(lambda: not isinstance(ui.app.screen, ReviewScreen))
        await ui.submit("/undo")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        await ui.settle()
        await ui.pilot.press("r")
        await ui.until(lambda: "line three" in file.read_text())


async def test_fast_keys_act_in_order_each_on_what_the_cursor_is_on_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stage, gate = Stage(tmp_path), asyncio.Event()
    runtime = stage.runtime([])
    for number in range(4):
        (stage.workspace / f"f{number}.py").write_text(f"{number}\n")
    git(stage.workspace, "init", "-q")
    acted, find, load = list[str](), ReviewActions.stage, ReviewLoader.load

    async def stage_when_let(
        actions: ReviewActions, change: FileChange, hunk: Hunk | None = None
    ) -> str:
        acted.append(change.name)
        await gate.wait()
        return await find(actions, change, hunk)

    async def load_when_let(loader: ReviewLoader, what: str) -> Review:
        if acted:
            await gate.wait()
        return await load(loader, what)

    monkeypatch.setattr(ReviewActions, "stage", stage_when_let)
    monkeypatch.setattr(ReviewLoader, "load", load_when_let)
    async with running_app(tmp_path, stage=stage, runtime=runtime, size=(120, 40)) as ui:
        await opened(ui, "/diff git")
        for key in ("s", "right_square_bracket", "s", "right_square_bracket", "s", "n"):
            ui.app.simulate_key(key)
        await ui.until(lambda: acted)
        await ui.drawn()
        assert acted == ["f0.py"]
        assert view(ui).cursor == 0
        gate.set()
        await ui.until(lambda: len(acted) == 3)
        await ui.until(lambda: "3 staged" in title(ui))
        assert acted == ["f0.py", "f1.py", "f2.py"]
        item = view(ui).item
        assert item is not None
        assert (item.kind, item.file) == ("hunk", 2)


@pytest.mark.thorough
async def test_an_action_keeps_its_target_while_the_cursor_moves(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        await press_until(ui, "down", "+ line three")
        screen = ui.app.screen
        assert isinstance(screen, ReviewScreen)
        screen.action_take_back()
        screen.action_end(1)
        file = stage.workspace / "a.py"
        await ui.until(lambda: file.read_text() == BEFORE.replace("line 30\n", "line thirty\n"))
        assert (stage.workspace / "new.py").exists()


@pytest.mark.thorough
async def test_keys_after_the_one_that_opens_a_field_are_written_there(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        for key in "cxs":
            ui.app.simulate_key(key)
        await ui.until(lambda: isinstance(ui.app.focused, LinesField))
        field = ui.app.focused
        assert isinstance(field, LinesField)
        await ui.until(lambda: field.text == "xs")
        assert "line three" in (stage.workspace / "a.py").read_text()


@pytest.mark.thorough
async def test_esc_waits_for_an_action_and_a_second_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stage, gate = Stage(tmp_path), asyncio.Event()

    async def never(*_arguments: object) -> str:
        await gate.wait()
        return "staged"

    monkeypatch.setattr(ReviewActions, "stage", never)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        await ui.pilot.press("s", "escape")
        await ui.drawn()
        assert isinstance(ui.app.screen, ReviewScreen)
        await ui.pilot.press("escape")
        await ui.until(lambda: not isinstance(ui.app.screen, ReviewScreen))


async def test_beside_a_turn_a_hunk_is_taken_back_between_calls(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = working(stage, held("I think."))
    async with running_app(tmp_path, stage=stage, runtime=runtime, size=(120, 40)) as ui:
        await ui.send("Change it.")
        await ui.submit("Go on.")
        await ui.until(lambda: ui.is_running)
        await opened(ui, "/diff session")
        await press_until(ui, "down", "+ line three")
        await ui.pilot.press("x")
        file = stage.workspace / "a.py"
        await ui.until(lambda: "line three" not in file.read_text())
        queue = ui.runtime.conversation.queue
        await ui.until(lambda: queue.notes)
        assert queue.change.notes == ("The model will be told: a.py taken back",)
        assert not queue.messages  # Alt+Up takes no text of the program
        ui.runtime.abort()
        await ui.until(lambda: not ui.is_running)
        request = ui.runtime.conversation.request()
        told = [m.text for m in request.messages if isinstance(m, UserMessage)][-1]
        assert "The user took this change in a.py back" in told


def test_calls_without_a_result_are_open():
    asked = MessageEntry(
        message=AssistantMessage(
            content=(call("c1", "read", path="a"), call("c2", "bash", command="ls")),
            stop_reason="toolUse",
        )
    )
    results = [
        MessageEntry(message=ToolResultMessage(tool_call_id=each, tool_name="read", content=()))
        for each in ("c1", "c2")
    ]
    assert not has_open_calls([])
    assert has_open_calls([asked])
    assert has_open_calls([asked, results[0]])
    assert not has_open_calls([asked, *results])


async def test_a_new_file_taken_back_is_gone(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        await press_until(ui, "down", "+ def f")
        await ui.pilot.press("x")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        assert title(ui) == "Delete new.py?"
        await ui.pilot.press("y")
        await ui.until(lambda: not (stage.workspace / "new.py").exists())
        await ui.until(lambda: ui.toasts)
        assert ui.toasts[-1] == "1 file deleted: new.py. /undo offers to redo the file changes."


async def test_a_hunk_that_is_not_as_shown_is_shown_again(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        await press_until(ui, "down", "+ line three")
        file = stage.workspace / "a.py"
        changed = file.read_text().replace("line three", "line THREE")
        file.write_text(changed)
        await ui.pilot.press("x")
        await ui.until(lambda: "line THREE" in text(ui))
        assert "no longer as it was shown" in ui.toasts[-1]
        assert file.read_text() == changed


async def test_a_helper_reviews_and_its_findings_are_kept_or_dropped(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = working(stage, Reply("a.py:3: Spell it.\nnew.py:1: Unused.\n"))
    async with running_app(tmp_path, stage=stage, runtime=runtime, size=(120, 40)) as ui:
        await ui.send("Change it.")
        await ui.send("/review")
        await ui.until(lambda: "The helper has 2 findings" in ui.notices[-1])
        await opened(ui)
        await press_until(ui, "down", "Spell it.")
        await ui.pilot.press("a")
        await ui.until(lambda: "1 comment to send" in title(ui))
        await press_until(ui, "down", "Unused.")
        await ui.pilot.press("d")
        await ui.until(lambda: "Unused." not in text(ui))
        assert [one.state for one in state(ui).comments.values()] == ["open", "dropped"]
        assert ui.toasts == ["Comment dropped. D brings it back."]
        await ui.pilot.press("D")
        await ui.until(lambda: "Unused." in text(ui))
        assert [one.state for one in state(ui).comments.values()] == ["open", "found"]


async def test_why_is_asked_about_the_line(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        await press_until(ui, "down", "+ line three")
        await ui.pilot.press("w")
        await ui.until(lambda: isinstance(ui.app.screen, PageScreen))
        heading = str(ui.app.screen.query_one("#page-title", Static).render())
        assert heading == "a.py:3: line three"


async def test_the_editor_opens_at_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    stage, seen = Stage(tmp_path), list[tuple[Path, int]]()
    edited = "agent_tui.features.review.screen.edit_file"
    monkeypatch.setattr(edited, lambda _app, file, line: seen.append((file, line)))
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        await press_until(ui, "down", "+ line thirty")
        await ui.pilot.press("e")
        await ui.until(lambda: seen)
        assert seen == [(stage.workspace / "a.py", 30)]


async def test_a_comment_survives_a_kill(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        await press_until(ui, "down", "+ line three")
        await comment(ui, "Why?")
        written = ui.path.read_bytes()
        assert b'"text":"Why?"' in written.replace(b'": "', b'":"')


@pytest.mark.parametrize("size", [SMALL_SIZES, (200, 50)])
async def test_hostile_names_and_contents_are_harmless(tmp_path: Path, size: tuple[int, int]):
    stage = Stage(tmp_path)
    name = "a\x1b[31m\u202eb.py"
    runtime = stage.runtime(
        [write(name, "x\x1b]0;t\x07\r\n\u202e\x9b2J" + "w" * 300 + "\n"), Reply("Done.")],
        mode="full",
    )
    async with running_app(tmp_path, stage=stage, runtime=runtime, size=size) as ui:
        await ui.send("Change it.")
        await opened(ui)
        rows = [view(ui).render_line(y).text for y in range(view(ui).size.height)]
        rows += [title(ui), text(ui)]
        shown = "".join(rows)
        assert "␛]0;t␇" in shown
        assert not any(sign in shown for sign in "\x1b\x07\u202e\x9b\r")
        assert all(len(row) == view(ui).size.width for row in rows[:-2])


async def test_nothing_changed_is_said(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        said = [
            ("/diff", "Nothing changed in this session."),
            ("/diff", "/diff git shows what is not committed."),
            ("/diff nosuch", "No branch, commit or changed file has the name nosuch."),
        ]
        for line, words in said:
            await ui.send(line)  # if reading takes long, a screen shows that it reads
            await ui.until(lambda words=words: ui.notices and words in ui.notices[-1])
            await ui.until(lambda: len(ui.app.screen_stack) == 1)
            git(tmp_path / "workspace", "init", "-q")


async def test_the_screen_opens_while_the_changes_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stage, may_end, load = Stage(tmp_path), asyncio.Event(), ReviewLoader.load

    async def load_slowly(loader: ReviewLoader, what: str) -> Review:
        await may_end.wait()
        return await load(loader, what)

    monkeypatch.setattr(ReviewLoader, "load", load_slowly)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui, "/diff session")
        assert title(ui) == "Changes session · reading…"
        assert text(ui).strip() == "Reading the changes…"
        may_end.set()
        await ui.until(lambda: "line three" in text(ui))
        assert "in this session · 2 files" in title(ui)


async def test_keys_go_to_headings_with_their_lines_and_to_comments(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = stage.runtime([])
    for number in range(12):
        (stage.workspace / f"f{number:02}.py").write_text("".join(f"{n}\n" for n in range(9)))
    git(stage.workspace, "init", "-q")
    asked: list[str] = []

    async def explain(_screen: ReviewScreen, place: str) -> None:
        asked.append(place)

    async with running_app(tmp_path, stage=stage, runtime=runtime, size=(120, 30)) as ui:
        await opened(ui, "/diff git")
        shown = view(ui)
        for number in range(1, 6):
            await ui.pilot.press("]")
            await ui.drawn()
            at = shown.cursor
            assert shown.items[at].file == number
            assert shown._tops[at + 8] < shown.scroll_offset.y + shown.size.height
        assert isinstance(ui.app.screen, ReviewScreen)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ReviewScreen, "_explain", explain)
            await ui.pilot.press("w")
            await ui.until(lambda: asked == ["f05.py:1"])
        await comment(ui, "Why?")
        await ui.pilot.press("home", "N")
        await ui.until(lambda: shown.item is not None and shown.item.kind == "comment")
        await ui.pilot.press("P")
        assert shown.item is not None
        assert shown.item.kind == "comment"


async def test_the_cursor_stays_with_its_line_or_the_nearest(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 20)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        await press_until(ui, "down", "+ line three")
        row = view(ui)._tops[view(ui).cursor] - view(ui).scroll_offset.y
        file = stage.workspace / "a.py"
        file.write_text("zero\n" + file.read_text().replace("line 2\n", "line two\nmore\n"))
        await reloaded(ui)
        assert "+ line three" in cursor_row(ui)
        assert view(ui)._tops[view(ui).cursor] - view(ui).scroll_offset.y == row
        file.write_text(file.read_text().replace("line three\n", ""))
        await reloaded(ui)
        assert int(cursor_row(ui).split()[0]) in (3, 4, 5, 6)
        await press_until(ui, "n", "⋯ 2")
        await ui.pilot.press("x")
        await acted(ui)
        assert "⋯ 1-" in cursor_row(ui)
        file.write_text(BEFORE)
        await reloaded(ui)
        assert "▾ new.py" in cursor_row(ui)


async def test_a_new_finding_unfolds_its_file(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        await ui.pilot.press("space")
        await ui.until(lambda: "line three" not in text(ui))
        found = Comment(id="f1", path="a.py", text="Wrong.", by="helper", state="found")
        ui.runtime.conversation.log.append(comment_entry(found))
        await reloaded(ui)
        await ui.until(lambda: "Wrong." in text(ui))
        await ui.pilot.press("home", "enter")
        await reloaded(ui)
        assert "Wrong." not in text(ui)


async def test_five_thousand_lines_are_there_at_once(tmp_path: Path):
    stage = Stage(tmp_path)
    lines = "".join(f"value_{n} = {n}\n" for n in range(5_000))
    runtime = stage.runtime([write("big.py", lines), Reply("Done.")], mode="full")
    async with running_app(tmp_path, stage=stage, runtime=runtime, size=(120, 40)) as ui:
        await ui.send("Write it.")
        await opened(ui)
        shown = view(ui)
        assert shown.virtual_size.height == 5_002
        assert len(shown._drawn) < 200
        await ui.pilot.press("end")
        await ui.until(lambda: "value_4999" in shown.render_line(shown.size.height - 1).text)
        assert len(shown._drawn) < 400


@pytest.fixture(autouse=True)
def _no_editor(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EDITOR", "VISUAL"):
        if name in os.environ:
            monkeypatch.delenv(name)


async def test_a_click_moves_the_cursor_folds_a_file_and_goes_to_one(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        shown = view(ui)
        row = next(y for y in range(20) if "line three" in shown.render_line(y).text)
        await ui.pilot.click(ReviewView, offset=(10, row))
        assert shown.render_line(row).text.startswith("▌")
        await ui.pilot.click(ReviewView, offset=(10, row + 2), shift=True)
        assert len(shown.selection) == 3
        await ui.pilot.click("#review-list", offset=(3, 1))
        await ui.until(lambda: shown.item is not None and shown.item.file == 1)
        await ui.pilot.click(ReviewView, offset=(10, 0))
        await ui.until(lambda: "▸ a.py" in text(ui))
        await ui.pilot.click(ReviewView, offset=(10, 0))
        await ui.until(lambda: "▾ a.py" in text(ui))


async def test_a_drag_selects_lines(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        shown = view(ui)
        row = next(y for y in range(20) if "line three" in shown.render_line(y).text)
        await ui.pilot.mouse_down(ReviewView, offset=(10, row))
        await ui.pilot.hover(ReviewView, offset=(10, row + 2))
        await ui.pilot.mouse_up(ReviewView, offset=(10, row + 2))
        await ui.pilot.hover(ReviewView, offset=(10, row + 4))
        assert len(shown.selection) == 3
        assert shown.render_line(row).text.startswith("▌")
        await ui.pilot.click(ReviewView, offset=(10, row))
        assert len(shown.selection) == 1


async def test_a_text_is_searched_in_lines_and_names_and_from_match_to_match(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        shown = view(ui)
        await ui.pilot.press("slash", *"LINE", "backspace", "backspace", "backspace", "backspace")
        await ui.pilot.press(*"line", "enter")
        await ui.settle()
        found = [shown.cursor]
        for key in (".", ".", ","):
            await ui.pilot.press(key)
            found.append(shown.cursor)
        assert found == [*sorted(set(found)), found[1]]
        assert len(set(found)) == 3
        for number in set(found):
            assert shown.items[number].kind == "line"
        await ui.pilot.press("slash", "end", *(["backspace"] * 4), *"new.p", "enter")
        await ui.until(lambda: shown.item is not None and shown.item.file == 1)
        await ui.pilot.press("slash", "end", *(["backspace"] * 5), *"Line", "enter")
        await ui.until(lambda: ui.toasts == ["Nothing here has Line."])
        assert shown.item is not None
        assert shown.item.kind == "file"


async def test_what_the_model_changes_meanwhile_is_shown(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        assert isinstance(ui.app.screen, ReviewScreen)
        await ui.app.screen.look()
        file = stage.workspace / "a.py"
        file.write_text(file.read_text().replace("line three", "line changed by others"))
        await ui.app.screen.look()
        assert "line changed by others" in text(ui)
        file.write_text(BEFORE)
        (stage.workspace / "new.py").unlink()
        await ui.app.screen.look()
        assert "Nothing changed here." in text(ui)
        await ui.pilot.press("x", "s", "e", "w", "c", "space", "enter", "d", "n", "m")
        await ui.until(lambda: "No comments to send" in "".join(ui.toasts))


async def test_what_ends_after_the_screen_was_closed_draws_nothing(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        await ui.send("Change it.")
        await opened(ui)
        screen = ui.app.screen
        assert isinstance(screen, ReviewScreen)
        await ui.pilot.press("t", "escape", "escape")
        await ui.until(lambda: not isinstance(ui.app.screen, ReviewScreen))
        (stage.workspace / "a.py").write_text(BEFORE)
        await screen.look()
        await screen.reload()
        await ui.drawn()


async def test_what_is_staged_is_committed_with_the_message_that_was_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stage = Stage(tmp_path)
    written = iter(["# only a remark", "Say three\n\n# a remark", "Say three\n"])
    drafts: list[str] = []
    runs: list[tuple[str, ...]] = []
    texts: list[str] = []

    def edit_draft(draft: str, _edit: object, name: str) -> str:
        assert name == "COMMIT_EDITMSG"
        drafts.append(draft)
        return next(written)

    def run(argv: tuple[str, ...], **_options: object) -> subprocess.CompletedProcess[str]:
        runs.append(argv)
        texts.append(Path(argv[-1]).read_text())
        return subprocess.CompletedProcess(argv, len(runs) % 2)

    module = "agent_tui.features.review.screen"
    monkeypatch.setattr(f"{module}.edit_text", edit_draft)
    monkeypatch.setattr(f"{module}.subprocess.run", run)
    monkeypatch.setattr(f"{module}.wait_for_enter", lambda: None)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        monkeypatch.setattr(ui.app, "suspend", nullcontext)
        git(stage.workspace, "init", "-q")
        await ui.send("Change it.")
        await opened(ui)
        await ui.pilot.press("C")
        await ui.until(lambda: "Nothing is staged" in "".join(ui.toasts))
        await press_until(ui, "down", "+ def f")
        await ui.pilot.press("s")
        await ui.until(lambda: "⋯ 1-3  staged" in text(ui))
        await ui.pilot.press("C")
        await ui.until(lambda: "the message is empty" in "".join(ui.toasts))
        await ui.pilot.press("C")
        await ui.until(lambda: "Git did not commit" in "".join(ui.toasts))
        await ui.pilot.press("C")
        await ui.until(lambda: "Committed 1 file" in "".join(ui.toasts))
    assert runs[0][:2] == ("git", "commit")
    assert texts == ["Say three\n"] * 2
    assert "#   new file: new.py" in drafts[0]
    assert [draft.startswith("Say three\n") for draft in drafts] == [False, False, True]


async def test_what_is_taken_back_is_unstaged(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=working(stage), size=(120, 40)) as ui:
        git(stage.workspace, "init", "-q")
        git(stage.workspace, "add", "a.py")
        git(stage.workspace, "commit", "-qm", "first")
        await ui.send("Change it.")
        await opened(ui, "/diff git")
        await press_until(ui, "down", "+ line three")
        await ui.pilot.press("s")
        await ui.until(lambda: "⋯ 1-6  staged" in text(ui))
        assert "▾ a.py  +2 -2  partly staged" in text(ui)
        marks = {("a.py", ""): "partly staged"}
        screen = ui.app.screen
        assert isinstance(screen, ReviewScreen)
        rows = list_files(replace(screen.review, in_index=marks), 0, 36, Palette())
        assert "".join(part.text for part in rows[0].segments).endswith("+2 -2 s")
        assert "1 staged" in title(ui)
        await ui.pilot.press("x")
        await ui.until(lambda: "The hunk is unstaged." in ui.toasts)
        await ui.until(lambda: "staged" not in title(ui))
        await press_until(ui, "down", "▾ new.py")
        await ui.pilot.press("s")
        await ui.until(lambda: "▾ new.py  +3 -0  new file  staged" in text(ui))
        (stage.workspace / "new.py").unlink()
        await reloaded(ui)
        await ui.until(lambda: "▾ new.py  +0 -0  changed in git's index alone" in text(ui))
        await ui.pilot.press("x", "y")
        await ui.until(lambda: "new.py is unstaged." in ui.toasts)
        await acted(ui)
        assert git(stage.workspace, "status", "--short") == " M a.py\n"
        assert isinstance(ui.app.screen, ReviewScreen)
        await ui.app.screen.look()
        git(stage.workspace, "add", "a.py")
        await ui.app.screen.look()
        assert "▾ a.py  +1 -1  staged" in text(ui)


async def test_a_review_by_a_helper_can_be_stopped(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = working(stage, held("a.py:3: Hm."))
    async with running_app(tmp_path, stage=stage, runtime=runtime, size=(120, 40)) as ui:
        await ui.send("Change it.")
        await ui.submit("/review")
        await ui.until(lambda: ui.is_running and "A helper reviews 2 files" in ui.notices[-1])
        await ui.pilot.pause()
        await ui.pilot.press("escape")
        await ui.until(lambda: not ui.is_running)
        assert not state(ui).comments
        await ui.send("/diff")
        await ui.until(lambda: isinstance(ui.app.screen, ReviewScreen))
