"""The review on the screen: files, hunks, comments, and what is done with them."""

import os
import subprocess
from contextlib import nullcontext
from pathlib import Path
from subprocess import Popen

import pytest
from textual.widgets import Static

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.features.review.actions import has_open_calls
from agent_tui.features.review.comments import ReviewState, read_state
from agent_tui.features.review.screen import ReviewScreen
from agent_tui.features.review.view import ReviewView
from agent_tui.messages import AssistantMessage, ToolResultMessage, UserMessage
from agent_tui.providers.scripted.provider import Reply, call
from agent_tui.sessions.entries import MessageEntry
from agent_tui.ui.lines_field import LinesField
from agent_tui.ui.screens.choice import ChoiceScreen
from agent_tui.ui.screens.modal import PageScreen
from tests.support.runtime import Stage
from tests.ui.app_support import Ui, held, running_app

BEFORE = "".join(f"line {n}\n" for n in range(1, 41))
SMALL_SIZES = (60, 24)


def git(folder: Path, *words: str) -> None:
    Popen(["git", *words], cwd=folder).wait()


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


async def press_until(ui: Ui, key: str, is_so: str) -> None:
    """Press `key` until the row of the cursor has `is_so`."""
    for _ in range(80):
        if is_so in "".join(line.row for line in view(ui)._lines(view(ui).cursor)):
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


async def test_a_comment_that_is_left_is_there_again_and_returns_to_the_prompt(tmp_path: Path):
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
        assert not state(ui).comments
        await ui.pilot.press("escape")
        await ui.until(lambda: not isinstance(ui.app.screen, ReviewScreen))
        await ui.until(lambda: ui.text == "Why not")


async def test_a_git_that_cannot_be_started_is_said_and_the_message_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_words: object, **_options: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    stage, drafts = Stage(tmp_path), list[str]()
    module = "agent_tui.features.review.screen"
    monkeypatch.setattr(
        f"{module}.edit_text", lambda draft, _edit: drafts.append(draft) or "Say three"
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
        await ui.until(lambda: ui.queued)
        assert "The user took this change in a.py back" in ui.queued[0]
        ui.runtime.abort()
        await ui.until(lambda: not ui.is_running)


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
        await ui.until(lambda: not (stage.workspace / "new.py").exists())


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
        await ui.send("/diff")
        assert ui.notices[-1] == (
            "Nothing changed in this session. /diff git shows what is not committed."
        )


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

    def edit_draft(draft: str, _edit: object) -> str:
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
    assert "#   new.py" in drafts[0]
    assert [draft.startswith("Say three\n") for draft in drafts] == [False, False, True]


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
