"""kill -9 at any moment: what was shown as done is in the file, and the file goes on."""

import json
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agent_tui.messages import UserMessage
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import MessageEntry
from agent_tui.sessions.log import SessionLog

ROUNDS = 50
EVENTS_OF_THE_TOUR = 120
"""About as many as the tour's first turn emits; a kill comes after a random one of them."""


def run_and_kill(folder: Path, after_events: int) -> list[dict]:
    """Start the tour, kill it after so many events, and return the events that were shown."""
    environ = {
        **os.environ,
        **{f"AGENT_TUI_{n}_DIR": str(folder / n.lower()) for n in ("CONFIG", "DATA", "CACHE")},
    }
    argv = [sys.executable, "-m", "agent_tui", "--demo", "--permission-mode", "full"]
    argv += ["-p", "go", "--output-format", "stream-json"]
    process = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environ, cwd=folder
    )
    assert process.stdout is not None
    shown = []
    try:
        for line in process.stdout:
            shown.append(json.loads(line))
            if len(shown) >= after_events:
                break
    finally:
        process.kill()
        rest = process.stdout.read().split(b"\n")[:-1]
        process.stdout.close()
        process.wait()
    return shown + [json.loads(line) for line in rest]


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


def test_nothing_shown_as_done_is_lost_when_killed_fifty_times(tmp_path):
    chance = random.Random(20260101)
    moments = [chance.randint(1, EVENTS_OF_THE_TOUR) for _ in range(ROUNDS)]
    folders = [tmp_path / str(number) for number in range(ROUNDS)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(4) as pool:
        shown = list(pool.map(run_and_kill, folders, moments))
    for folder, events in zip(folders, shown, strict=True):
        check_nothing_is_lost(folder, events)
    assert sum(any(e.get("entry_id") for e in events) for events in shown) > ROUNDS / 2
    assert any(e["type"] == "ToolFinished" for events in shown for e in events)
