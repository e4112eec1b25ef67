"""Sessions to be made smaller by ``agent-tui compact``, and what is looked at afterwards."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from agent_tui.features.compact_file.subcommand import run_command
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import Entry
from agent_tui.sessions.log import SessionLog
from agent_tui.tokens import ExactCounter
from tests.support.context_checks import assert_normalised
from tests.support.runtime import GOOD_SUMMARY
from tests.support.talk import Talk

KEYS = {
    "path",
    "tokens_before",
    "tokens_after",
    "tiers",
    "summary",
    "read_files",
    "modified_files",
    "pinned",
    "fallback",
    "target_tokens",
    "note",
    "seconds",
    "strategy",
    "statistics",
}
GOAL = "Look closely at step 0 to step 11 and leave lock0.txt, lock1.txt and the others alone."
SUMMARY = (
    GOOD_SUMMARY.replace("Make the greeting polite.", GOAL)
    .replace("greet.py", "lock3.txt and the other lock files, found nothing new")
    .replace("Change the greeting.", "Look closely at the next step; no lock file may be touched.")
)
TOO_SHORT = "claude-code/spotter-short.jsonl"
COUNTER = ExactCounter()


def work() -> tuple[Entry, ...]:
    talk = Talk()
    for number in range(12):
        talk.user(f"Step {number}. Never touch lock{number}.txt. " + "Please look closely. " * 30)
        talk.reply("I looked at it and found nothing new. " * 60)
    return talk.path


def as_json(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert run_command([*argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def snapshot(folder: Path) -> dict[str, str]:
    """Every file below `folder` with what it holds."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def tokens_of(log: SessionLog) -> int:
    context = build_context(log.path_entries(), carryover=log.header.compaction)
    assert_normalised(context.messages)
    return COUNTER.count_messages(item.message for item in context.messages)
