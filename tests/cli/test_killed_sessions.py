"""kill -9 at any moment: what was shown as done is in the file, and the file goes on."""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO

import pytest

from agent_tui.messages import UserMessage
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import MessageEntry
from agent_tui.sessions.log import SessionLog

ROUNDS = 25
EVENTS_OF_THE_TOUR = 120
"""About as many as the tour's first turn emits; a kill comes after a random one of them."""


NURSERY = """
import os, sys
from agent_tui.__main__ import main
import agent_tui.cli.compose, agent_tui.features.print.printer
from agent_tui.features.tour import replies as demo

demo.DELAY_S_PER_CHUNK = 0.0
print("ready", flush=True)
for line in sys.stdin:
    folder = line.rstrip("\\n")
    if os.fork() == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(folder + "/shown", os.O_WRONLY), 1)
        print(os.getpid(), flush=True)
        os.chdir(folder)
        for name in ("CONFIG", "DATA", "CACHE"):
            os.environ[f"AGENT_TUI_{name}_DIR"] = os.path.join(folder, name.lower())
        sys.argv = ["agent-tui", "--demo", "--permission-mode", "full"]
        sys.argv += ["-p", "go", "--output-format", "stream-json"]
        os._exit(main())
"""
"""Starts the tour in each folder it is told, by a fork: each start would load all of it anew."""


@pytest.fixture
def nursery() -> Iterator[IO[str]]:
    """Takes a line for each folder in which the tour is to start."""
    with subprocess.Popen(
        [sys.executable, "-c", NURSERY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process.stdin


def run_and_kill(nursery: IO[str], folder: Path, after_events: int) -> list[dict]:
    """Start the tour, kill it after so many events, and return the events that were shown."""
    os.mkfifo(folder / "shown")
    nursery.write(f"{folder}\n")
    nursery.flush()
    with (folder / "shown").open("rb") as stream:
        pid = int(stream.readline())
        lines = list(itertools.islice(stream, after_events))
        os.kill(pid, signal.SIGKILL)
        lines += stream.read().split(b"\n")[:-1]
    return [json.loads(line) for line in lines]


def check_nothing_is_lost(folder: Path, shown: list[dict]) -> None:
    promised = [event["entry_id"] for event in shown if event.get("entry_id")]
    files = list((folder / "data" / "sessions").rglob("*.jsonl"))
    if not promised:
        return
    log = SessionLog.open(files[0])
    assert set(promised) <= {entry.id for entry in log.entries}
    log.append(MessageEntry(message=UserMessage(content="still here?")))
    log.close()
    again = SessionLog.open(files[0])
    assert build_context(again.path_entries()).messages[-1].message.text == "still here?"
    again.close()


@pytest.mark.thorough
def test_nothing_shown_as_done_is_lost_when_killed_again_and_again(tmp_path, nursery):
    chance = random.Random(20260101)
    moments = [chance.randint(1, EVENTS_OF_THE_TOUR) for _ in range(ROUNDS)]
    folders = [tmp_path / str(number) for number in range(ROUNDS)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(4) as pool:
        shown = list(pool.map(partial(run_and_kill, nursery), folders, moments))
    for folder, events in zip(folders, shown, strict=True):
        check_nothing_is_lost(folder, events)
    assert sum(any(e.get("entry_id") for e in events) for events in shown) > ROUNDS / 2
    assert any(e["type"] == "ToolFinished" for events in shown for e in events)
