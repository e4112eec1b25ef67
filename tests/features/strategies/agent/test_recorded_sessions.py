"""The compression agent on sessions of real agents, on machines that have them."""

from dataclasses import replace

import pytest

from agent_tui.compaction.conversation import ledger_of
from agent_tui.config import CompactionSettings
from agent_tui.providers.wires.anthropic import anthropic_payload
from agent_tui.providers.wires.chat import openai_messages
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import CompactionEntry
from agent_tui.tokens import TokenCounter
from tests.compaction.compacting import edited
from tests.compaction.tiers.planning import messages
from tests.features.strategies.agent.diligent_agent import diligent_reply
from tests.features.strategies.agent.scene import Scene
from tests.support.context_checks import assert_normalised
from tests.support.importers.formats import read_recorded
from tests.support.trajectories import trajectory
from tests.support.wire_rules import anthropic_problems, openai_problems


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "least_segments"),
    [
        ("claude-code/spotter-ae4a77f8.jsonl", 4),
        ("mini-swe-agent/django__django-11138.traj.json", 4),
        pytest.param("pi/before-compaction.jsonl", 8, marks=pytest.mark.slow),
    ],
)
async def test_a_real_session_comes_down_and_can_be_sent(
    name: str, least_segments: int, counter: TokenCounter
) -> None:
    entries = read_recorded(trajectory(name)).entries
    path = tuple(entry for entry in entries if not isinstance(entry, CompactionEntry))
    before = counter.count_messages(messages(path))
    scene = Scene(counter, diligent_reply, path, target_tokens=500 + before // 7)
    scene.settings = CompactionSettings(keep_recent_tokens=before // 20)
    plan = await scene.plan()
    assert plan.tokens_after <= scene.target_tokens
    assert plan.statistics["segments_replaced"] >= least_segments
    after = edited(path, plan)
    assert_normalised(build_context(after).messages)
    assert openai_problems(openai_messages("", messages(after))) == []
    assert anthropic_problems(anthropic_payload("", messages(after))) == []
    assert ledger_of(replace(scene.request, path=after)) == ledger_of(scene.request)
