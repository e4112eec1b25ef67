"""What must hold of strategy `hybrid` beside what holds of every planner of edits."""

from dataclasses import dataclass, field

import pytest
from hypothesis import strategies as st

from agent_tui.compaction.outcome import Outcome
from agent_tui.errors import NothingToCompactError
from agent_tui.messages import AssistantMessage, UserMessage
from agent_tui.providers.base import Provider
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import CompactionEntry, Entry, MessageEntry
from agent_tui.sessions.replay.changes import newest_change, undo_mark
from agent_tui.tokens import TokenCounter
from tests.compaction.compacting import edited, size
from tests.compaction.writer import Writer
from tests.features.strategies.hybrid.scene import planned, shortened
from tests.support.context_checks import assert_sendable, context_bytes
from tests.support.histories import SOME_OR_ALL, changed_histories, for_every, histories
from tests.support.importers.formats import read_recorded
from tests.support.trajectories import some_trajectories, trajectory

TARGETS = st.sampled_from([1, 200, 1_000, 5_000])


@dataclass(frozen=True)
class Case:
    """A session, how far to go with it, and whether there is a model."""

    path: tuple[Entry, ...] = field(repr=False)
    target: int
    has_model: bool

    @property
    def writer(self) -> Provider | None:
        return Writer([shortened]) if self.has_model else None

    def plan(self, counter: TokenCounter, path: tuple[Entry, ...] | None = None) -> Outcome:
        """The plan, which has no edits where the strategy says that there is nothing to do."""
        try:
            return planned(path or self.path, counter, target=self.target, writer=self.writer)
        except NothingToCompactError:
            before = size(path or self.path, counter)
            return Outcome((), before, before, {})


PATHS = st.one_of(changed_histories(), histories())
CASES = st.tuples(PATHS, TARGETS, st.booleans()).map(lambda drawn: Case(*drawn))


@SOME_OR_ALL
def test_the_newest_messages_stay_byte_for_byte(examples: int, counter: TokenCounter) -> None:
    def check(case: Case) -> None:
        after = edited(case.path, case.plan(counter))
        users = {
            entry.id: entry.message
            for entry in case.path
            if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage)
        }
        said = [key for key, m in users.items() if not m.text.startswith("<returncode>")]
        left = {(i.entry_id, i.message.role): i.message for i in build_context(after).messages}
        spoken = [
            item
            for item in build_context(case.path).messages
            if item.entry_id in users or isinstance(item.message, AssistantMessage)
        ]
        for item in spoken[-5:]:  # an output whose call was taken out counts as said
            if item.entry_id in said or isinstance(item.message, AssistantMessage):
                assert left[item.entry_id, item.message.role] == item.message

    for_every(CASES, examples, check)


@pytest.mark.parametrize("name", some_trajectories())
@pytest.mark.parametrize(
    "cuts",
    [
        pytest.param(1, id="some"),
        pytest.param(100, id="all", marks=[pytest.mark.slow, pytest.mark.timeout(3_600)]),
    ],
)
def test_recorded_sessions_stay_sendable_at_their_cuts(
    name: str, cuts: int, counter: TokenCounter
) -> None:
    recorded = read_recorded(trajectory(name)).entries
    whole = tuple(entry for entry in recorded if not isinstance(entry, CompactionEntry))
    for end in range(len(whole), 0, -max(len(whole) // cuts, 1)):
        case = Case(whole[:end], 3_000, has_model=False)
        plan = case.plan(counter)
        after = edited(case.path, plan)
        assert_sendable(after)
        assert case.plan(counter, after).edits == ()
        if plan.edits:
            assert context_bytes((*after, undo_mark(newest_change(after)))) == context_bytes(
                case.path
            )
