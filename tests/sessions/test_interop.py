"""Sessions that go back and forth between us and pi, each opened with the other's own code.

What must differ, because pi does not know it:

- ``context_edit`` entries and marks that take a change back: pi sees the messages as they were
  first, and a compaction that was taken back.
- The header's ``compaction``: a session that has only that opens in pi without its summary. The
  child that ``/compact`` begins has it as an entry too, so pi sees it there.
- Results made up for lost ones, replies with nothing in them, ids told apart: pi mends these
  when it sends, we when the context is built.
- pi writes a session that has no reply yet a second time, as a whole, with its next entry; we
  count each entry once and name the others.
- A file without a header that can be read is emptied by pi when it opens it; by us it is not.
- ``pi --continue`` looks at the first 512 bytes of a file alone, so it passes over sessions with
  a longer header (children of a compaction); ``pi --session FILE`` opens them.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent_tui.messages import AssistantMessage, BashExecutionMessage
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    Carryover,
    CompactionEntry,
    ContextEditEntry,
    Entry,
    Header,
    MessageEntry,
)
from agent_tui.sessions.format.codec import encode_entry
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import undo_mark
from agent_tui.sessions.store import SessionStore
from tests.support.context_checks import assert_sendable
from tests.support.rich_session import PIXEL, rich_log
from tests.support.session_values import entry, header, reply, user

pytestmark = pytest.mark.interop

SCRIPT = Path(__file__).with_name("pi_session.mjs")
PACKAGE = "@mariozechner/pi-coding-agent"


def ask_pi(**order: object) -> Any:
    """What pi's code answers; skips the test where there is no node or no pi."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not here")
    data = json.dumps([str(_package()), order])
    done = subprocess.run([node, str(SCRIPT)], input=data, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _package() -> Path:
    named = os.environ.get("AGENT_TUI_PI_PACKAGE")
    if named:
        return Path(named)
    for folder in SCRIPT.parents:
        package = folder / "node_modules" / PACKAGE
        if package.is_dir():
            return package
    pytest.skip(f"{PACKAGE} is not here; AGENT_TUI_PI_PACKAGE names its folder")


Shown = tuple[str, str, list[tuple[str, str]]]
"""A message as both see it: role, text with images, calls as pairs of id and name."""


def shown_by_pi(messages: list[dict[str, Any]]) -> list[Shown]:
    """pi's messages, those it has roles of its own for as what they are to the model."""
    shown: list[Shown] = []
    for message in messages:
        match message["role"]:
            case "compactionSummary" | "branchSummary":
                shown.append((message["role"], message["summary"], []))
            case "bashExecution":
                if not message.get("excludeFromContext"):
                    text = f"{message['command']}\n{message['output']}"
                    shown.append(("bashExecution", text, []))
            case role:
                content = message["content"]
                parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
                calls = [(p["id"], p["name"]) for p in parts if p["type"] == "toolCall"]
                text = "\n".join(p.get("text") or p.get("data", "") for p in parts if shows(p))
                shown.append(("user" if role == "custom" else role, text, calls))
    return shown


def shows(part: dict[str, Any]) -> bool:
    return part["type"] in ("text", "image")


def shown_by_us(path: tuple[Entry, ...]) -> list[Shown]:
    by_id = {item.id: item for item in path}
    shown: list[Shown] = []
    for item in build_context(path).messages:
        message = item.message
        match by_id[item.entry_id], message:
            case CompactionEntry(summary=summary), _:
                assert summary in message.text
                shown.append(("compactionSummary", summary, []))
            case BranchSummaryEntry(summary=summary), _:
                assert summary in message.text
                shown.append(("branchSummary", summary, []))
            case _, BashExecutionMessage():
                shown.append(("bashExecution", f"{message.command}\n{message.output}", []))
            case _:
                calls: list[tuple[str, str]] = []
                if isinstance(message, AssistantMessage):
                    calls = [(call.id, call.name) for call in message.tool_calls]
                (as_pi_has_it,) = shown_by_pi([message.model_dump(mode="json", by_alias=True)])
                shown.append((message.role, as_pi_has_it[1], calls))
    return shown


def without_edits(path: tuple[Entry, ...]) -> tuple[Entry, ...]:
    return tuple(item for item in path if not isinstance(item, ContextEditEntry))


def test_pi_sees_in_our_session_what_we_see_but_for_edits(tmp_path: Path) -> None:
    with rich_log(tmp_path / "s_1.jsonl") as log:
        pass
    seen = ask_pi(do="open", file=str(log.path))
    path = log.path_entries()
    assert shown_by_pi(seen["messages"]) == shown_by_us(without_edits(path))
    assert shown_by_us(path) != shown_by_us(without_edits(path)), "an edit is in force"
    assert [item["id"] for item in seen["entries"]] == [item.id for item in log.entries]
    assert seen["path"] == [item.id for item in path]
    assert seen["leaf"] == log.leaf_id
    assert seen["header"]["id"] == log.header.id
    assert seen["name"] == "My work"
    assert seen["thinkingLevel"] == "high"
    assert seen["roots"] == 1
    assert len(seen["labels"]) == 1
    assert all(message["role"] in ("user", "assistant", "toolResult") for message in seen["sent"])


def test_pi_sees_in_the_child_of_a_compaction_its_summary_and_its_tail(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions")
    with store.create(Header(cwd="/w", provider="p", model_id="m")) as parent:
        kept = parent.append_many([entry(user("a")), entry(reply("b", ("c1", "read")))])
        summary = "What was done." * 100
        first = CompactionEntry(summary=summary, first_kept_entry_id=kept[0].id)
        child = store.create_child(parent, [first, *kept], Carryover(lastSummary=summary))
    with child:
        child.append(entry(user("go on")))
    seen = ask_pi(do="open", file=str(child.path))
    ours = shown_by_us(child.path_entries())
    assert [item[0] for item in ours].count("toolResult") == 1, "made up: pi does so when it sends"
    assert shown_by_pi(seen["messages"]) == [item for item in ours if item[0] != "toolResult"]
    assert seen["header"]["parentSession"] == str(parent.path)
    assert child.path is not None
    (listed,) = [
        item
        for item in ask_pi(do="list", cwd="/w", sessions=str(child.path.parent))
        if item["id"] == child.header.id
    ]
    assert listed["messageCount"] == 3
    assert listed["firstMessage"] == "a"


def test_pi_does_not_know_that_a_compaction_was_taken_back(tmp_path: Path) -> None:
    with SessionLog.create(tmp_path / "s_1.jsonl", header()) as log:
        log.append_many([entry(user("a")), entry(reply("b"))])
        compaction = log.append(CompactionEntry(summary="S", first_kept_entry_id=""))
        log.append(undo_mark((compaction.id,)))
        log.append(entry(user("c")))
    seen = ask_pi(do="open", file=str(log.path))
    assert [item[:2] for item in shown_by_us(log.path_entries())] == [
        ("user", "a"),
        ("assistant", "b"),
        ("user", "c"),
    ]
    assert [item[:2] for item in shown_by_pi(seen["messages"])] == [
        ("compactionSummary", "S"),
        ("user", "c"),
    ]


def test_we_read_what_pi_appends_to_our_session_and_go_on(tmp_path: Path) -> None:
    with rich_log(tmp_path / "s_1.jsonl") as log:
        before = log.entries
    assert log.path is not None
    seen = ask_pi(do="extend", file=str(log.path))
    with SessionLog.open(log.path) as again:
        assert again.warnings == ()
        assert again.entries[: len(before)] == before
        assert [item.id for item in again.entries] == [item["id"] for item in seen["entries"]]
        assert shown_by_us(without_edits(again.path_entries())) == shown_by_pi(seen["messages"])
        added = again.append(entry(user("and on")))
    seen = ask_pi(do="open", file=str(log.path))
    assert seen["leaf"] == added.id


def test_we_see_in_a_session_of_pi_what_pi_sees(tmp_path: Path) -> None:
    seen = ask_pi(do="write", cwd=str(tmp_path), sessions=str(tmp_path / "pi"), image=PIXEL)
    path = Path(seen["file"])
    original = path.read_bytes()
    with SessionLog.open(path) as log:
        assert log.warnings == ()
        assert log.header.id == seen["header"]["id"]
        assert log.header.cwd == str(tmp_path)
        assert log.name == "My pi work"
        assert [item.id for item in log.entries] == [item["id"] for item in seen["entries"]]
        assert [item.id for item in log.path_entries()] == seen["path"]
        assert shown_by_us(log.path_entries()) == shown_by_pi(seen["messages"])
        assert "secret" not in str(build_context(log.path_entries()))
        assert_sendable(log.path_entries())
        context = build_context(log.path_entries())
        assert (context.provider, context.model_id) == ("p", "m")
        kept = [json.loads(encode_entry(item)) for item in log.entries]
        for ours, theirs in zip(kept, seen["entries"], strict=True):
            assert contains(ours, theirs)
        added = log.append(entry(user("and on")))
    assert path.read_bytes().startswith(original)
    assert ask_pi(do="open", file=str(path))["leaf"] == added.id


def contains(whole: object, part: object) -> bool:
    """Whether `whole` has all that `part` has; it may have more keys."""
    match whole, part:
        case dict(), dict():
            return all(key in whole and contains(whole[key], part[key]) for key in part)
        case list(), list():
            return len(whole) == len(part) and all(map(contains, whole, part))
        case _:
            return whole == part


def test_pi_reads_on_behind_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "s_1.jsonl"
    with SessionLog.create(path, header()) as log:
        log.append_many([entry(user("a")), entry(reply("b"))])
    path.write_bytes(path.read_bytes()[:-30])
    with SessionLog.open(path) as log:
        log.append(entry(user("c")))
    seen = ask_pi(do="open", file=str(path))
    assert shown_by_pi(seen["messages"]) == shown_by_us(log.path_entries())
    assert all(isinstance(item, MessageEntry) for item in log.entries)


def test_what_pi_writes_a_second_time_counts_once(tmp_path: Path) -> None:
    with SessionLog.create(tmp_path / "s_1.jsonl", header()) as log:
        log.append(entry(user("a")))
    assert log.path is not None
    seen = ask_pi(do="extend", file=str(log.path))
    with SessionLog.open(log.path) as again:
        assert [item.id for item in again.path_entries()] == seen["path"]
        assert len(again.entries) == len(seen["path"]) == 3
        assert any("repeats entry" in warning for warning in again.warnings)
