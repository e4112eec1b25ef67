"""What a person sees of a fault: on the command line, as JSON lines, and on the screen."""

import html
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from agent_tui.features.print.printer import ExitCode, OutputFormat, print_turn
from agent_tui.providers import limits
from agent_tui.providers.base import ModelRef
from agent_tui.ui.theme.palette import palette_of
from tests.faults.conversation import FINE, Conversation
from tests.faults.table import BEFORE_BREAK, BREAKS, OVERFLOW, PASSING, REFUSALS, Row
from tests.support.openai_server import OpenAiServer, Reply, rate_limited
from tests.support.patience import PATIENCE_S
from tests.support.screen import Screen, screen

SAID: dict[str, Row] = {
    **REFUSALS,
    "too large": OVERFLOW,
}
"""Ends the turn at once, with one line."""

ON_SCREEN = tuple(
    SAID[name]
    for name in (
        "401",
        "404",
        "429 for quota",
        "400",
        "too large",
    )
)
BROKEN: dict[str, Row] = {
    "a connection lost": BREAKS["reset"],
    "an error in the middle": BREAKS["an error event"],
    "an end without a reason": BREAKS["no finish reason"],
    "a broken chunk": BREAKS["a broken chunk"],
}
"""Is gone on from after a wait."""

WAITED = {name: PASSING[name] for name in ("429 in seconds", "502 in html", "529")} | BROKEN


async def printed(talk: Conversation, form: OutputFormat) -> tuple[ExitCode, str, str]:
    """Exit code, what is written to stdout and what to stderr."""
    out, err = io.StringIO(), io.StringIO()
    code = await print_turn(talk.runtime, "hello", form, out=out, err=err)
    return code, out.getvalue(), err.getvalue()


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("row", SAID.values(), ids=SAID)
async def test_on_the_command_line_it_is_one_line_and_exit_code_1(
    talk: Conversation, row: Row
) -> None:
    talk.server.play(*[talk.of(row)] * 2)  # an overflow is asked again, shorter
    code, out, err = await printed(talk, "text")
    assert code == ExitCode.FAILED
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith("agent-tui: ")
    assert [word for word in row.words if word not in last] == []
    assert err.count(talk.model.name) == 1
    assert "Traceback" not in err


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("row", WAITED.values(), ids=WAITED)
async def test_on_the_command_line_each_wait_is_a_line(talk: Conversation, row: Row) -> None:
    talk.server.play(talk.of(row), FINE)
    code, out, err = await printed(talk, "text")
    begun = BEFORE_BREAK if row in BROKEN.values() else ""
    assert (code, out) == (ExitCode.DONE, f"{begun}Fine.\n")
    (line,) = err.splitlines()
    assert [word for word in (*row.words, "(2 of 10)") if word not in line] == []


class Terminal(io.StringIO):
    """Where a line can be replaced."""

    def isatty(self) -> bool:
        return True


@pytest.mark.asyncio(loop_scope="session")
async def test_on_a_terminal_the_waits_are_one_line_that_is_gone_at_the_end(
    talk: Conversation,
) -> None:
    talk.server.play(*[PASSING["529"].answers["openai"]] * 3, FINE)
    out, err = io.StringIO(), Terminal()
    await print_turn(talk.runtime, "hello", "text", out=out, err=err)
    lines = err.getvalue().split("\r\x1b[K")
    assert [re.findall(r"\d of 10", line) for line in lines] == [
        ["2 of 10"],
        ["3 of 10"],
        ["4 of 10"],
        [],
    ]
    assert "\n" not in err.getvalue()
    assert max(map(len, lines)) < 80


@pytest.mark.asyncio(loop_scope="session")
async def test_in_a_log_the_reason_is_told_once(talk: Conversation) -> None:
    talk.server.play(*[PASSING["529"].answers["openai"]] * 3, FINE)
    _, _, err = await printed(talk, "text")
    assert err.count("overloaded") == 1
    assert [line[-10:] for line in err.splitlines()[1:]] == ["(3 of 10).", "(4 of 10)."]


@pytest.mark.asyncio(loop_scope="session")
async def test_the_printed_result_has_a_cut_reply_once(talk: Conversation) -> None:
    cut = Reply(text=BEFORE_BREAK, ending="reset")
    talk.server.play(cut, cut, Reply(text=f"{BEFORE_BREAK}blue."))
    assert (await printed(talk, "text"))[:2] == (ExitCode.DONE, f"{BEFORE_BREAK}blue.\n")


@pytest.mark.asyncio(loop_scope="session")
async def test_a_reply_that_is_always_cut_is_one_error_with_what_to_do(talk: Conversation) -> None:
    talk.server.play(*[Reply(text=BEFORE_BREAK, ending="reset")] * 10)
    code, out, err = await printed(talk, "text")
    assert (code, out) == (ExitCode.FAILED, f"{BEFORE_BREAK}\n")
    assert err.count(" of 10)") == 9
    (error,) = [line for line in err.splitlines() if line.startswith("agent-tui: ")]
    assert "mid-reply" in error
    assert "try again" in error


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("row", {**SAID, **WAITED}.values(), ids={**SAID, **WAITED})
async def test_as_json_lines_it_ends_with_a_result_that_says_it(
    talk: Conversation, row: Row
) -> None:
    is_over = row in SAID.values()
    talk.server.play(talk.of(row), talk.of(row) if is_over else FINE)
    code, out, err = await printed(talk, "stream-json")
    assert err == ""
    events = [json.loads(line) for line in out.splitlines()]
    kinds = [event["type"] for event in events]
    assert kinds.count("TurnFinished") == 1
    assert kinds.count("RetryScheduled") == (0 if is_over else 1)
    assert kinds.count("ReplyStarted") == kinds.count("ReplyFinished") + kinds.count(
        "ReplyDiscarded"
    )
    result = events[-1]
    assert (result["type"], result["exit_code"]) == ("result", int(code))
    assert result["outcome"] == ("error" if is_over else "done")
    if is_over:
        assert [word for word in row.words if word not in result["error"]] == []


# The whole program


@pytest.fixture
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders and a key of the test's own; the workspace."""
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"AGENT_TUI_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setenv("THE_KEY", "sk-canary-0123456789")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    monkeypatch.chdir(workspace)
    return workspace


def on(base_url: str) -> list[str]:
    """The arguments that lead to a server."""
    return ["-m", "some-model", "--base-url", base_url, "--api-key-env", "THE_KEY"]


@pytest.mark.slow
@pytest.mark.parametrize("row", SAID.values(), ids=SAID)
def test_the_program_itself_says_it_and_exits_with_1(
    own_folders: Path, server: OpenAiServer, row: Row
) -> None:
    server.play(*[row.answers["openai"]] * 2)
    line = [sys.executable, "-m", "agent_tui", *on(server.base_url), "-p", "hello"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, env=os.environ)
    assert done.returncode == ExitCode.FAILED
    last = done.stderr.splitlines()[-1]
    assert [word for word in row.words if word not in last] == []
    assert "Traceback" not in done.stderr


def drawn(here: Screen) -> str:
    """What stands on the screen, as one line."""
    lines = re.findall(r"<text[^>]*>(.*?)</text>", here.app.export_screenshot())
    return " ".join(html.unescape(" ".join(lines)).split())


def is_drawn(here: Screen, *words: str) -> bool:
    """Whether all `words` stand on the screen."""
    return all(word in drawn(here) for word in words)


@pytest.mark.thorough
async def test_on_the_screen_each_fault_is_told_and_the_prompt_stays_usable(
    own_folders: Path, server: OpenAiServer
) -> None:
    async with screen(*on(server.base_url)) as here:
        for number, row in enumerate(ON_SCREEN):
            server.reset()
            server.play(*[row.answers["openai"]] * 2)
            await here.send(f"question {number}")
            await here.until(lambda: server.chats)
            await here.until_idle()
            await here.until(lambda words=row.words: is_drawn(here, *words))
            told = drawn(here)
            assert "/retry " in told
            assert "Traceback" not in told
            assert "litellm" not in told

        server.reset()
        server.play(rate_limited("60"), FINE)
        await here.send("and a wait?")
        activity = here.app.view.widgets.activity
        await here.until(lambda: activity.state is not None and activity.state.until)
        assert activity.state is not None
        assert "Rate limit reached" in activity.state.detail
        await here.pilot.press("escape")
        await here.until_idle()
        assert len(server.chats) == 1

        server.reset()
        server.play(Reply(text="Here I am."))
        await here.send("still there?")
        await here.until_shown("Here I am.")
        await here.until_idle()

        here.app.runtime.set_model(ModelRef("some-model", "http://127.0.0.1:1/v1"))
        await here.send("is anybody there?")
        await here.until(lambda: activity.state is not None and activity.state.until)
        assert "connection refused" in activity.state.detail
        await here.pilot.press("escape")
        await here.until_idle()


def red(here: Screen) -> str:
    """What stands above the status line in the colour of errors, as one line."""
    colour = palette_of(cast(Any, here.app)).error.color
    assert colour is not None
    svg = here.app.export_screenshot()
    inks = re.findall(rf"\.([\w-]+) {{ fill: {colour.get_truecolor().hex}", svg)
    lines = [line for ink in inks for line in re.findall(rf'<text class="{ink}"[^>]*>(.*?)<', svg)]
    return html.unescape(" ".join(lines)).replace("sandbox\xa0off", "").strip()


@pytest.mark.thorough
async def test_on_the_screen_a_cut_reply_stands_once_and_its_wait_is_one_line(
    own_folders: Path, server: OpenAiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_FIRST_DELAY_S", 0.0)
    cut = Reply(text=BEFORE_BREAK, ending="reset")
    async with screen(*on(server.base_url)) as here:
        server.play(cut, cut, Reply(text=f"{BEFORE_BREAK}blue."))
        await here.send("hello")
        await here.until_shown("blue.")
        await here.until_idle()
        assert drawn(here).count(BEFORE_BREAK) == 1
        assert "Connection lost" not in drawn(here)
        here.app.view.redraw()  # as it is when the session is opened again
        await here.until(lambda: is_drawn(here, "blue."))
        assert drawn(here).count(BEFORE_BREAK) == 1

        server.play(cut, Reply(text="grey."))
        await here.send("and today?")
        await here.until_shown("grey.")
        await here.until_idle()
        here.app.view.redraw()
        await here.until(lambda: is_drawn(here, "grey."))
        assert drawn(here).count(BEFORE_BREAK) == 2
        assert "Connection lost" not in drawn(here)
        assert red(here) == ""

        server.play(*[cut] * 10)
        await here.send("and tomorrow?")
        await here.until(lambda: is_drawn(here, "/retry "))
        assert drawn(here).count("Connection lost") == 1
        assert drawn(here).count(BEFORE_BREAK) == 3
        assert red(here).count("✗") == 1
