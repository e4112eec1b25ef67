import json
import shutil
from pathlib import Path

import pytest

from agent_tui.messages import UserMessage
from agent_tui.providers.wires.chat import openai_messages
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import CompactionEntry, Entry, MessageEntry
from agent_tui.sessions.format.codec import encode_entry, encode_header
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from tests.support.session_values import entry, user

FOLDER = Path(__file__).parents[2] / "sessions.example"
FILES = sorted(FOLDER.glob("*.jsonl"))


def opened(name: str) -> SessionLog:
    return SessionLog.open(FOLDER / name, read_only=True)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_model_sees_of_each_example_what_is_documented(file: Path) -> None:
    log = SessionLog.open(file, read_only=True)
    assert log.warnings == ()
    context = build_context(log.path_entries(), carryover=log.header.compaction)
    expected = json.loads((FOLDER / "expected" / f"{file.stem}.json").read_text("utf-8"))
    sent = openai_messages("", [item.message for item in context.messages])
    assert {"messages": sent} == expected


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_example_is_written_back_with_nothing_lost(file: Path) -> None:
    log = SessionLog.open(file, read_only=True)
    again = [encode_header(log.header), *(encode_entry(item) for item in log.entries)]
    lines = file.read_bytes().split(b"\n")[:-1]
    assert len(lines) == len(again) > 10
    for written, line in zip(again, lines, strict=True):
        assert contains(json.loads(written), json.loads(line))


def contains(whole: object, part: object) -> bool:
    """Whether `whole` has all that `part` has; it may have more keys."""
    match whole, part:
        case dict(), dict():
            return all(key in whole and contains(whole[key], part[key]) for key in part)
        case list(), list():
            return len(whole) == len(part) and all(map(contains, whole, part))
        case _:
            return whole == part


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_example_takes_another_entry(file: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(file, tmp_path))
    with SessionLog.open(copy) as log:
        log.append(entry(user("go on")))
    assert copy.read_bytes().startswith(file.read_bytes())


def test_the_chain_hands_on_summaries_files_and_copied_messages() -> None:
    first, child, grandchild = (
        opened("1-tools.jsonl"),
        opened("2-after-compact.jsonl"),
        opened("3-second-compaction.jsonl"),
    )
    for parent, follower in ((first, child), (child, grandchild)):
        assert follower.header.parent_session == parent.header.id
        carried = follower.header.compaction
        opening = follower.entries[0]
        assert carried is not None
        assert isinstance(opening, CompactionEntry)
        assert opening.summary == carried.summary
        assert opening.details.modified_files == carried.modified_files
        assert opening.first_kept_entry_id == follower.entries[1].id
        copied = _messages(follower.entries[1:5])
        assert set(copied) <= set(_messages(parent.entries))
        assert len(copied) == 4
    before, after = child.header.compaction, grandchild.header.compaction
    assert before is not None
    assert after is not None
    assert set(before.modified_files) <= set(after.modified_files)
    assert "Never touch the files in data/." in after.summary


def _messages(entries: tuple[Entry, ...]) -> dict[str, MessageEntry]:
    return {item.id: item for item in entries if isinstance(item, MessageEntry)}


def test_the_second_compaction_keeps_entries_before_it() -> None:
    log = opened("3-second-compaction.jsonl")
    context = build_context(log.path_entries())
    assert context.compaction is not None
    assert context.compaction.reason == "threshold"
    kept = context.messages[1].message
    assert isinstance(kept, UserMessage)
    assert kept.text == "Print a warning for such a month."


def test_the_branch_that_was_left_is_in_the_file_but_not_in_the_context() -> None:
    log = opened("4-branch.jsonl")
    left = {item.id for item in log.entries} - {item.id for item in log.path_entries()}
    assert len(left) == 4
    assert left.isdisjoint(item.entry_id for item in build_context(log.path_entries()).messages)


def test_the_folder_serves_as_a_session_folder(tmp_path: Path) -> None:
    root = Path(shutil.copytree(FOLDER, tmp_path / "sessions"))
    shown = {found.path.name: found for found in SessionStore(root).list()}
    assert set(shown) == {file.name for file in FILES}
    assert shown["2-after-compact.jsonl"].name == "Thousands with commas"
    assert shown["4-branch.jsonl"].model == "anthropic/claude-haiku-4-5"
