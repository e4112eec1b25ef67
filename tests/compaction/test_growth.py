"""A compaction of a conversation that is twice as long takes about twice the work."""

import cProfile
import pstats
from collections.abc import Callable

import pytest

from agent_tui.compaction.draft import make_draft
from agent_tui.config import CompactionSettings
from agent_tui.tokens import TokenCounter
from tests.compaction.compacting import request_for
from tests.compaction.sections.scene import begun, run
from tests.support.talk import Talk

STEPS = 200
MOST_TIMES = 2.6


def check(talk: Talk, number: int) -> None:
    """A test of its own file, every third one of which fails."""
    output = f"E   ValueError: {number}\n1 failed" if number % 3 == 0 else "1 passed"
    run(talk, f"pytest -q tests/test_{number}.py::test_a", output, int(number % 3 == 0))


def look(talk: Talk, number: int) -> None:
    run(talk, f"grep -n name_{number} src/a.py", f"{number}: name_{number} = {number}")


def edit(talk: Talk, number: int) -> None:
    new = f"value = {number}"
    talk.tool("edit", {"path": f"src/a{number}.py", "old": "value = 0", "new": new}, "edited")


@pytest.mark.parametrize("step", [check, look, edit])
def test_twice_as_many_small_steps_are_twice_the_work(
    step: Callable[[Talk, int], None], counter: TokenCounter
) -> None:
    def calls_for(steps: range) -> int:
        talk = begun()
        for number in steps:
            step(talk, number)
        request = request_for(
            talk.path, settings=CompactionSettings(), window=20_000, target_tokens=4_000
        )
        profile = cProfile.Profile()
        profile.runcall(make_draft, request, counter=counter)
        return pstats.Stats(profile).total_calls  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]

    calls_for(range(STEPS))  # what is only made once
    once = calls_for(range(1_000, 1_000 + STEPS))
    twice = calls_for(range(2_000, 2_000 + 2 * STEPS))
    assert twice < MOST_TIMES * once, f"{once:,} calls, then {twice:,}"
