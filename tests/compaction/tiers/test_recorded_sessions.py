"""The tiers on sessions of real agents, on machines that have them."""

import pytest

from agent_tui.config import CompactionSettings
from agent_tui.providers.wires.anthropic import anthropic_payload
from agent_tui.providers.wires.chat import openai_messages
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import CompactionEntry, Entry
from agent_tui.tokens import TokenCounter
from tests.compaction.compacting import edited
from tests.compaction.tiers.planning import messages, planned
from tests.support.context_checks import assert_normalised
from tests.support.importers.formats import read_recorded
from tests.support.trajectories import trajectory
from tests.support.wire_rules import anthropic_problems, openai_problems

DEFAULTS = CompactionSettings()
EVERY_FORMAT = (
    "pi/before-compaction.jsonl",
    "claude-code/spotter-4d5611e5.jsonl",
    "mini-swe-agent/pylint-dev__pylint-6528.traj.json",
    "swe-agent/marshmallow-1867-fc.traj",
    "openhands/runtime-basic.json",
)


def recorded(name: str) -> tuple[Entry, ...]:
    """All entries of a recorded session, as if it had never been compacted."""
    entries = read_recorded(trajectory(name)).entries
    return tuple(entry for entry in entries if not isinstance(entry, CompactionEntry))


@pytest.mark.parametrize(
    ("name", "least_share"),
    [
        ("pi/before-compaction.jsonl", 0.75),
        ("claude-code/spotter-4d5611e5.jsonl", 0.75),
        ("claude-code/spotter-8463c716.jsonl", 0.75),
        ("mini-swe-agent/pylint-dev__pylint-6528.traj.json", 0.70),
    ],
)
def test_three_quarters_go_without_a_model(
    name: str, least_share: float, counter: TokenCounter
) -> None:
    plan = planned(recorded(name), counter, settings=DEFAULTS)
    assert 1 - plan.tokens_after / plan.tokens_before >= least_share


@pytest.mark.parametrize("name", EVERY_FORMAT)
def test_what_is_left_of_a_real_session_can_be_sent(name: str, counter: TokenCounter) -> None:
    path = recorded(name)
    for target in (0, 20_000, 100_000):
        plan = planned(path, counter, target=target, settings=DEFAULTS)
        after = edited(path, plan)
        assert_normalised(build_context(after).messages)
        assert openai_problems(openai_messages("", messages(after))) == []
        assert anthropic_problems(anthropic_payload("", messages(after))) == []
        assert counter.count_messages(messages(after)) == plan.tokens_after
        assert planned(after, counter, target=target, settings=DEFAULTS).edits == ()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "step", [pytest.param(53, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", EVERY_FORMAT)
def test_every_cut_of_a_real_session_stays_legal_and_stable(
    name: str, step: int, counter: TokenCounter
) -> None:
    path = recorded(name)
    for cut in range(1, len(path) + 1, step):
        part = path[:cut]
        plan = planned(part, counter, target=3_000)
        after = edited(part, plan)
        assert plan.tokens_after <= plan.tokens_before
        assert_normalised(build_context(after).messages)
        assert openai_problems(openai_messages("", messages(after))) == []
        assert planned(after, counter, target=3_000).edits == ()
