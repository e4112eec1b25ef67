"""Lines of real files that real sessions changed; Claude Code's notes say what the files were."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest

from agent_tui.features.why.line_history.changes import (
    RecordedChange,
    changes_of_file,
    in_order_of_time,
)
from agent_tui.features.why.line_history.kept_lines import lines_of
from agent_tui.features.why.line_history.replay import Made, Replay, replay_changes
from agent_tui.messages import JsonObject
from agent_tui.sessions.importers.builder import ForeignSession
from agent_tui.sessions.importers.formats import read_foreign
from agent_tui.sessions.lineage.known_session import KnownSession
from agent_tui.tools.call_edits import DiffEdit, Replacements, WrittenText
from tests.support.trajectories import trajectory

CLAUDE = [f"claude-code/spotter-{name}.jsonl" for name in ("4d5611e5", "8463c716", "ae4a77f8")]
PI = "pi/before-compaction.jsonl"


def changes_in(session: ForeignSession) -> list[RecordedChange]:
    return in_order_of_time([KnownSession(session.header, None, session.entries)])


def added(change: RecordedChange) -> set[str]:
    """The lines that the call itself names as new."""
    match change.edit:
        case DiffEdit(diff):
            return {line[1:] for line in diff.split("\n")[3:] if line.startswith("+")}
        case WrittenText(text):
            return set(lines_of(text))
        case Replacements(edits):
            return {line for edit in edits for line in edit.new.split("\n")}
        case _:
            return set()


def noted_texts(file: Path) -> Iterator[tuple[str, str, str]]:
    """The call, the path and the text before it, of each edit whose note has the whole file."""
    for line in file.read_text("utf-8").splitlines():
        data = cast(JsonObject, json.loads(line))
        noted = data.get("toolUseResult")
        if not isinstance(noted, dict) or not isinstance(noted.get("originalFile"), str):
            continue
        message = cast(JsonObject, data["message"])
        (block,) = cast(list[JsonObject], message["content"])
        yield str(block["tool_use_id"]), str(noted["filePath"]), str(noted["originalFile"])


def check_lines(changes: Sequence[RecordedChange], replay: Replay, text: str) -> tuple[int, int]:
    """Check every answer; returns how many lines only one call names as new, and are answered."""
    one_maker = answered = 0
    lines = lines_of(text)
    named = [added(change) for change in changes]
    for line, origins in zip(lines, replay.lines, strict=True):
        makers = [at for at, new in enumerate(named) if line in new]
        (origin, *others) = origins
        is_answered = isinstance(origin, Made) and not others
        if is_answered:
            assert isinstance(origin, Made)
            assert origin.change in makers
        if len(makers) == 1 and lines.count(line) == 1:
            one_maker += 1
            answered += is_answered
    return one_maker, answered


def count_answered(name: str) -> tuple[int, int]:
    """Lines before each edit of a session of Claude Code: those one call made, and the answered."""
    file = trajectory(name)
    session = read_foreign(file)
    changes = changes_in(session)
    total = answered = 0
    for call_id, path, text in noted_texts(file):
        of_file = changes_of_file(changes, path)
        ids = [change.call.id if change.call else "" for change in of_file]
        if call_id not in ids:  # the call failed
            continue
        earlier = of_file[: ids.index(call_id)]
        replay = replay_changes(earlier, text, session.contents.get)
        some, right = check_lines(earlier, replay, text)
        total, answered = total + some, answered + right
    return total, answered


@pytest.mark.parametrize("name", CLAUDE)
def test_lines_of_an_imported_session_are_answered_and_none_is_wrong(name: str):
    total, answered = count_answered(name)
    assert total > 500
    assert answered >= total - 2


def test_calls_alone_answer_what_they_prove():
    session = read_foreign(trajectory(PI))
    changes = changes_in(session)
    total = answered = 0
    for path in {change.path for change in changes}:
        of_file = changes_of_file(changes, path)
        versions = replay_changes(of_file, "", session.contents.get).versions
        text = next((known.after for known in reversed(versions) if known.after), "")
        replay = replay_changes(of_file, text, session.contents.get)
        some, right = check_lines(of_file, replay, text)
        total, answered = total + some, answered + right
    assert total > 500
    assert answered > 100
