"""New entry kind: a class in ``sessions/entries.py`` and its case in ``sessions/context.py``."""

import json

import pytest

from tests.recipes.program_copy import ROOT, ProgramCopy

ENTRIES = "agent_tui/sessions/entries.py"
CONTEXT = "agent_tui/sessions/context.py"
KIND = '''\
class ReminderEntry(_Entry):
    """Something to think of; in the context as the person's."""

    type: Literal["reminder"] = "reminder"
    text: str


'''
CASE = """\
        case ReminderEntry():
            return UserMessage(content=entry.text, timestamp=milliseconds(entry.timestamp))
"""
LINE = {
    "type": "reminder",
    "id": "a10000ff",
    "parentId": "a1000001",
    "timestamp": "2026-03-02T09:30:00.000Z",
    "text": "The March file has two headers.",
}


@pytest.fixture
def unread(tmp_path) -> ProgramCopy:
    """The kind is there, and nothing comes of it yet."""
    made = ProgramCopy(tmp_path, "New entry kind")
    made.insert_before(ENTRIES, "class UnknownEntry(_Entry)", KIND)
    made.insert_before(ENTRIES, "    | SessionInfoEntry,\n", "    | ReminderEntry\n")
    return made


@pytest.fixture
def copy(unread) -> ProgramCopy:
    unread.insert_before(CONTEXT, "    SessionInfoEntry,\n", "    ReminderEntry,\n")
    unread.insert_before(CONTEXT, "        case BranchSummaryEntry():\n", CASE)
    return unread


@pytest.mark.thorough
def test_the_type_checker_names_the_place_that_misses_it_and_no_other(unread):
    assert unread.type_errors("agent_tui.sessions.entries") == {CONTEXT}


@pytest.mark.thorough
def test_the_model_is_told_of_it_and_the_session_can_be_gone_on_with(copy):
    example = (ROOT / "sessions.example" / "1-tools.jsonl").read_text("utf-8")
    first_two = "".join(example.splitlines(keepends=True)[:2])
    file = copy.work / "session.jsonl"
    file.write_text(first_two + json.dumps(LINE) + "\n", encoding="utf-8")
    shown = copy.run("context", str(file), "--format", "openai", "--json")
    assert LINE["text"] in shown.stdout, shown.stderr
    gone_on = copy.run("-m", "scripted/tour", "-r", str(file), "-p", "help")
    assert gone_on.returncode == 0, gone_on.stderr
    kept = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert LINE in kept
    assert len(kept) > 3
