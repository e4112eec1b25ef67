"""What a compaction keeps at the cuts of recorded sessions, on machines that have them."""

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

import pytest

from agent_tui.compaction.draft import make_draft
from agent_tui.compaction.ledger.pinned import find_rules
from agent_tui.compaction.outcome import CompactionResult, child_entries
from agent_tui.compaction.plan import live_entries, previous_summary
from agent_tui.compaction.sections.history import Done, read_history
from agent_tui.config import CompactionSettings
from agent_tui.errors import CompactionError
from agent_tui.messages import UserMessage
from agent_tui.sessions.entries import (
    CompactionEntry,
    ContextEditEntry,
    Entry,
    MessageEntry,
)
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import newest_change, undo_mark
from agent_tui.sessions.shell_files import shell_changes
from agent_tui.tokens import TokenCounter
from tests.compaction.compacting import (
    assert_newest_stay,
    compacted,
    edited,
    in_place,
    is_shown,
    request_for,
    seen,
    size,
)
from tests.compaction.tiers.planning import Tier, planned
from tests.support.context_checks import assert_sendable, context_bytes
from tests.support.importers.formats import read_recorded
from tests.support.session_values import header
from tests.support.trajectories import some_trajectories, trajectory

WINDOW = 200_000
DEFAULTS = CompactionSettings()
SHORT = 24
"""A session of so few entries is checked at every cut."""

PINS_CHARS = 3_000
"""So much of rules there is room for in any case."""

TIERS: tuple[Tier, ...] = (0, 1, 2)
TARGETS = (0, 3_000, 20_000, 60_000)

pytestmark = [
    pytest.mark.parametrize("name", some_trajectories()),
    pytest.mark.parametrize(
        "most",
        [
            pytest.param(2, id="some"),
            pytest.param(1_000_000, id="all", marks=[pytest.mark.slow, pytest.mark.timeout(7_200)]),
        ],
    ),
]


def test_the_tiers_leave_what_can_be_sent_and_can_be_taken_back(
    name: str, most: int, counter: TokenCounter
) -> None:
    for number, path in enumerate(_cuts(name, most)):
        before = context_bytes(path)
        for tier in TIERS:
            target = TARGETS[(number + tier) % len(TARGETS)]
            plan = planned(path, counter, target=target, up_to=tier, settings=DEFAULTS)
            after = edited(path, plan)
            assert_sendable(after)
            assert plan.tokens_after <= plan.tokens_before
            assert planned(after, counter, target=target, up_to=tier, settings=DEFAULTS).edits == ()
            if plan.edits:
                assert context_bytes((*after, undo_mark(newest_change(after)))) == before


def test_a_compaction_keeps_what_it_says_and_can_be_taken_back(
    name: str, most: int, counter: TokenCounter
) -> None:
    known: set[str] = set()
    before = 0
    for path in _cuts(name, most):
        if len(path) < before:
            known.clear()
        before = len(path)
        result = compacted(path, counter, settings=DEFAULTS, window=WINDOW, cwd="/w")
        if result is None:
            assert size(path, counter) <= WINDOW // 2
            continue
        _assert_rules_are_kept(path, result)
        files = {*result.carryover.read_files, *result.carryover.modified_files}
        present = in_place(path, result)
        for after in (present, child_entries(result)):
            assert_sendable(after)
            assert size(after, counter) < size(path, counter)
            assert result.summary in seen(after)[0].message.text
            assert_newest_stay(path, after, result)
            _assert_the_next_one_begins_there(after, result, counter)
        assert context_bytes((*present, undo_mark(newest_change(present)))) == context_bytes(path)
        assert {PurePath(file).name for file in known - files} <= _removed(path)
        known = files


def _removed(path: Sequence[Entry]) -> set[str]:
    """Names of the files that commands removed."""
    outputs = (event.output for event in read_history(path) if isinstance(event, Done))
    gone = (shell_changes(output.action.command).removed for output in outputs)
    return {PurePath(file).name for files in gone for file in files}


@pytest.mark.thorough
def test_a_session_that_was_resumed_shows_the_same(
    name: str, most: int, counter: TokenCounter, tmp_path: Path
) -> None:
    for number, path in enumerate(_cuts(name, 1 if most == 2 else 12)):
        file = tmp_path / f"{number}.jsonl"
        with SessionLog.write(file, header(), path, "none") as log:
            log.append_many(planned(log.path_entries(), counter, settings=DEFAULTS).edits)
            result = compacted(log.path_entries(), counter, settings=DEFAULTS, window=WINDOW)
            if result is not None:
                log.append_many((*result.edits, result.entry("threshold")))
            live = context_bytes(log.path_entries())
        with SessionLog.open(file, read_only=True) as log:
            assert context_bytes(log.path_entries()) == live


def _cuts(name: str, most: int) -> Iterator[tuple[Entry, ...]]:
    """The beginnings of a session, as recorded and as if it had never been compacted."""
    recorded = read_recorded(trajectory(name)).entries
    whole = tuple(entry for entry in recorded if not isinstance(entry, CompactionEntry))
    for path in (recorded, whole) if len(whole) < len(recorded) else (whole,):
        step = 1 if len(path) <= SHORT else max(len(path) // most, 1)
        for end in sorted(range(len(path), 0, -step)):
            if seen(path[:end]):
                yield path[:end]


def _assert_rules_are_kept(path: Sequence[Entry], result: CompactionResult) -> None:
    said = [
        sentence
        for entry in path
        if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage)
        for sentence in find_rules(entry.message.text)
    ]
    if sum(len(sentence) + 3 for sentence in said) <= PINS_CHARS:
        assert all(is_shown(sentence, result) for sentence in said)


def _assert_the_next_one_begins_there(
    after: Sequence[Entry], result: CompactionResult, counter: TokenCounter
) -> None:
    """What the first compaction kept is all in the second one's hands."""
    try:
        request = request_for(after, settings=DEFAULTS, window=WINDOW)
        cut = make_draft(request, counter=counter).plan
    except CompactionError:
        return
    assert previous_summary(after, None) == result.summary
    kept = [entry.id for entry in cut.kept_entries if not isinstance(entry, ContextEditEntry)]
    assert [*(one.id for one in cut.summarised), *kept] == [
        entry.id for entry in live_entries(after)
    ]
