"""The main job on a small real model: pulled, asked, streamed, compacted, gone on with.

The model is weak, so nothing here looks at its wit.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import CompactionEntry
from agent_tui.sessions.log import SessionLog
from agent_tui.ui.screens.choice import ChoiceScreen
from tests.support.patience import PATIENCE_S
from tests.support.screen import Screen, screen
from tests.support.trajectories import trajectory

pytestmark = [
    pytest.mark.real_model,
    pytest.mark.timeout(900),
    # A process that a kill left without an owner is collected after the loop that began it.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, real_model_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of the test's own, and a small window: the pulled model is linked into them."""
    monkeypatch.setenv("AGENT_TUI_LOCAL__CONTEXT", "2048")
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"AGENT_TUI_{name}_DIR", str(tmp_path / name.lower()))
    models = tmp_path / "data" / "models"
    models.parent.mkdir()
    shutil.copytree(real_model_data / "models", models, copy_function=os.link)
    for name in list(os.environ):
        if name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    (tmp_path / "workspace").mkdir()
    monkeypatch.chdir(tmp_path / "workspace")


def start(*argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "agent_tui", "--local", *argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*argv: str) -> tuple[int, dict, str]:
    process = start(*argv, "--output-format", "json")
    out, err = process.communicate(timeout=600)
    return process.returncode, json.loads(out) if out else {}, err


def check_answered(code: int, result: dict, err: str) -> None:
    """It said something; that it may go on without end, and is stopped, is its weakness."""
    assert result["result"].strip(), err
    is_cut = result["outcome"] == "length" or "repeating the same text" in result["error"]
    assert code == 0 or is_cut, result


def sessions(folder: Path) -> list[Path]:
    return sorted((folder / "data" / "sessions").rglob("*.jsonl"))


def children(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def ended(processes: list[psutil.Process]) -> bool:
    return not psutil.wait_procs(processes, timeout=PATIENCE_S)[1]


def test_a_question_is_answered_in_the_shell_and_gone_on_with(tmp_path):
    code, result, err = run("-p", "What is the capital of France? Answer in one sentence.")
    assert code == 0, err
    assert result["result"].strip()
    assert result["tokens"]["output"] > 0
    assert result["context"]["is_estimate"] is False

    check_answered(*run("-c", "-p", "Say it once more."))
    (file,) = sessions(tmp_path)
    log = SessionLog.open(file, read_only=True)
    assert (log.header.provider, log.header.model_id) == ("local", "smollm2")
    assert len(build_context(log.path_entries()).messages) >= 4


async def answered(here: Screen, text: str) -> None:
    before = len(here.app.runtime.conversation.log.path_entries())
    await here.send(text)
    await here.until(lambda: len(here.app.runtime.conversation.log.path_entries()) > before + 1)
    await here.until_idle()


async def test_a_reply_streams_on_the_screen():
    async with screen("--local") as here:
        lengths: set[int] = set()
        entries = here.app.runtime.conversation.log.path_entries
        for _ in range(3):  # a weak model now and then says a word and ends, or only repeats it
            before = len(entries())

            def is_answered(before: int = before) -> bool:
                lengths.add(len(here.text))
                return len(entries()) > before + 1

            lengths.clear()
            await here.send("Tell me a short story about a ship.")
            await here.until(is_answered)
            await here.until_idle()
            if len(lengths) > 5 and here.last_message.text.strip() in here.text:
                break
        assert here.last_message.stop_reason in ("stop", "length", "error")
        assert here.last_message.text.strip() in here.text
        assert len(lengths) > 5, "it came all at once"
        assert here.app.runtime.conversation.model_info.source == "server"
        assert "[ctx: " in here.app.view.status.fields().usage.label


def part_of(source: Path, target: Path, *, first: int, count: int) -> Path:
    """The header of a recorded session and `count` of its lines."""
    lines = source.read_text(encoding="utf-8").split("\n")
    target.write_text("\n".join((lines[0], *lines[first : first + count], "")), encoding="utf-8")
    return target


async def test_a_recorded_session_is_compacted_and_gone_on_with(tmp_path, monkeypatch):
    source = trajectory("pi/before-compaction.jsonl")
    monkeypatch.setenv("AGENT_TUI_LOCAL__CONTEXT", "4096")
    # From a question of the person's on, about 2,700 tokens.
    session = part_of(source, tmp_path / "recorded.jsonl", first=91, count=12)
    async with screen("--local", "-r", str(session)) as here:
        await here.until(lambda: isinstance(here.app.screen, ChoiceScreen))
        await here.pilot.press("c")  # the folder it was recorded in is not on this machine
        await here.until(lambda: here.app.runtime.conversation.log.path == session)
        before = here.app.runtime.conversation.log
        await here.until(lambda: here.app.runtime.conversation.model_info.window == 4_096)
        await here.send("/compact")
        await here.until(lambda: here.app.runtime.conversation.log is not before)
        await here.until_idle()
        compacted = here.app.runtime.conversation.log
        assert compacted.header.parent_session == str(session)
        (entry,) = [e for e in compacted.path_entries() if isinstance(e, CompactionEntry)]
        # Whatever the model made of it: the form, and what code knows for certain.
        assert "<said-by-the-person>" in entry.summary
        assert "</modified-files>" in entry.summary or "</read-files>" in entry.summary
        assert entry.details.ledger is not None
        assert entry.details.ledger.user_messages
        child = compacted.path

    check_answered(*run("-c", "-p", "What do we do next?"))
    assert child is not None
    log = SessionLog.open(child, read_only=True)
    assert len(build_context(log.path_entries()).messages) >= 2


@pytest.mark.parametrize("who", ["server", "program", "both"])
def test_after_a_kill_no_process_is_left_and_the_session_is_whole(tmp_path, who):
    process = start("-p", "Write a very long story.", "--output-format", "stream-json")
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["type"] == "TextDelta":
            break
    family = children(process.pid)
    (server,) = [p for p in family if "agent_tui.features.local.server" in p.cmdline()]
    if who in ("server", "both"):
        server.send_signal(signal.SIGKILL)
    if who in ("program", "both"):
        process.kill()
    rest, _ = process.communicate(timeout=600)
    assert ended(family)
    if who == "server":  # it is started again, and the turn goes on to an end of its own
        assert "TurnFinished" in rest
    (file,) = sessions(tmp_path)
    log = SessionLog.open(file)
    assert build_context(log.path_entries()).messages
    log.close()
    check_answered(*run("-c", "-p", "Are you there?"))
