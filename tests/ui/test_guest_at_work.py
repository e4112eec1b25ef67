"""The program as a guest in the terminal, as far as the person sees it."""

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from textual import events

from agent_tui.config import Settings
from agent_tui.features.notify.notifier import LONG_TURN_S
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.ui.chat.lines_above_prompt import ActivityLine
from agent_tui.ui.status.status_line import status_line
from agent_tui.ui.transcript.blocks import WelcomeBlock
from tests.ui.app_support import Ui, held, running_app
from tests.ui.scenes import StillClock


def asks() -> Reply:
    """A call that has to be allowed."""
    return held("", call("c1", "bash", command="touch made.txt"))


async def allow(ui: Ui) -> None:
    ui.approval.arm()
    await ui.pilot.press("y")
    await ui.settle()


def activity(ui: Ui) -> str:
    return str(ui.app.query_one(ActivityLine).render()).strip()


async def test_the_title_says_where_and_what_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    titles: list[str] = []
    async with running_app(tmp_path, asks(), held(), approval_quiet_s=3_600.0) as ui:
        monkeypatch.setattr(ui.app.window.terminal, "set_title", titles.append)
        await ui.send("/name parser")
        await ui.send("go")
        await ui.asked()
        assert titles[-1].endswith(" · asks")
        await allow(ui)
        assert titles[-1].endswith(" · working")
        await ui.finish()
        assert titles[-1].endswith(" · idle")
        assert titles[-1].startswith(ui.status.folder)


async def test_the_mouse_is_left_to_the_terminal_and_taken_back(tmp_path: Path):
    async with running_app(tmp_path, size=(140, 24)) as ui:
        assert "mouse off" not in str(ui.app.status.render())
        await ui.send("/mouse off")
        assert not ui.app.window.terminal.is_mouse_on
        assert "mouse off" in str(status_line(ui.status, 200))
        await ui.write("draft")
        await ui.pilot.press("alt+m")
        await ui.settle()
        assert ui.app.window.terminal.is_mouse_on
        assert ui.text == "draft"
        assert "mouse off" not in str(ui.app.status.render())
        await ui.send("/mouse sideways")
        assert ui.notices[-1] == "/mouse takes on or off, not sideways."


async def test_what_is_dragged_over_stays_selected_and_ctrl_c_copies_it_and_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("TMUX", "STY", "DISPLAY", "WAYLAND_DISPLAY", "TERM_PROGRAM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("SSH_TTY", "/dev/pts/1")
    async with running_app(tmp_path, Reply(text="Done.")) as ui:
        chat = ui.chat
        await ui.send("some words to copy")
        row = next(y for y in range(24) if "some words" in chat.render_line(y).text)
        start = chat.render_line(row).text.index("words")
        await ui.pilot.mouse_down(chat, offset=(start, row))
        await ui.pilot.hover(chat, offset=(start + 4, row))
        await ui.pilot.mouse_up(chat, offset=(start + 4, row))
        await ui.settle()
        assert ui.app.screen.get_selected_text() == "words"
        assert ui.toasts == ["ctrl+c copies the selection."]
        await ui.pilot.press("ctrl+c")
        await ui.settle()
        assert ui.app.clipboard == "words"
        assert ui.toasts[-1].startswith("Sent 5 characters to the terminal (OSC 52)")
        assert ui.app.return_value is None


async def test_the_whole_conversation_goes_to_the_scrollback_and_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    waits: list[str] = []
    terminal = StringIO()
    monkeypatch.setattr(
        "agent_tui.ui.terminal.scrollback.wait_for_enter", lambda: waits.append("waited")
    )
    async with running_app(tmp_path, Reply(text="an answer")) as ui:
        monkeypatch.setattr(ui.app, "suspend", lambda: redirect_stdout(terminal))
        await ui.send("a question")
        await ui.send("/scrollback")
        await ui.until(lambda: waits)
        assert "> a question\n\nan answer\n" in terminal.getvalue()
        assert "Press Enter to return" in terminal.getvalue()


async def test_a_terminal_that_cannot_be_left_is_said(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/scrollback")
        await ui.until(lambda: ui.notices)
        assert ui.notices == ["The conversation is empty."]
        await ui.send("/scrollback")
        await ui.until(lambda: len(ui.notices) == 2)
        assert "/export writes a file" in ui.notices[-1]


async def test_a_new_user_is_told_the_keys_of_the_moment_until_they_are_known(tmp_path: Path):
    file = tmp_path / "newcomer.json"
    file.write_text("8", encoding="utf-8")
    clock = StillClock()
    script = (asks(), Reply(text="Done."), Reply(text="Done."))
    options = {"onboarding_file": file, "clock": clock, "approval_quiet_s": 3_600.0}
    async with running_app(tmp_path, *script, **options) as ui:
        await ui.until(lambda: "ctrl+p" in activity(ui))
        await ui.pilot.press("shift+tab")
        await ui.settle()
        assert "mode: accept-edits" in activity(ui)
        welcome = ui.blocks[0]
        assert isinstance(welcome, WelcomeBlock)
        assert dict(welcome.facts)["mode"].startswith("accept-edits: ")
        await ui.write("/co")
        await ui.settle()
        assert ui.app.prompt.menu.is_open
        assert activity(ui) == ""
        await ui.pilot.press("escape", "ctrl+c")
        await ui.send("the ninth")
        clock.now += 2.0
        assert activity(ui).endswith("esc stops · enter queues what you write")
        await ui.asked()
        assert activity(ui).endswith("esc stops")
        await allow(ui)
        assert "ctrl+p" in activity(ui)
        await ui.send("the tenth")
        assert activity(ui) == ""
    assert file.read_text(encoding="utf-8") == "10\n"


async def test_the_end_of_a_long_turn_calls_who_looks_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clock, rung = StillClock(), []
    settings = Settings.model_validate({"notify": "bell"})
    async with running_app(tmp_path, held(), clock=clock, settings=settings) as ui:
        monkeypatch.setattr(ui.app, "bell", lambda: rung.append("ring"))
        await ui.send("go")
        ui.app.post_message(events.AppBlur())
        await ui.settle()
        clock.now += LONG_TURN_S
        await ui.finish()
        assert rung == ["ring"]
