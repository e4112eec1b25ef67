"""A goal waits for the user's answer, and stops if there is none."""

import asyncio

from agent_tui.events import FormOpened, TurnFinished
from agent_tui.features.goal.parse import parse_goal
from agent_tui.features.goal.settings import GoalSettings
from agent_tui.features.tour.scripted import Reply
from agent_tui.messages import JsonObject
from agent_tui.tools.form import CANCELLED, Elicitation
from tests.features.ask_user.test_tool import DATABASE, ask
from tests.features.goal.pursuit import open_goal, pursue
from tests.support.runtime import Stage, collect, of_kind, only


async def test_a_goal_waits_for_the_answer_and_stays_open_without_one(stage: Stage):
    left = asyncio.Event()

    async def fill(_form: Elicitation) -> JsonObject:
        await left.wait()
        return CANCELLED

    runtime = stage.runtime([Reply(tool_calls=(ask(DATABASE),)), Reply("Next.")])
    runtime.let_answer(fill)
    goal = parse_goal("Build it. --check true", GoalSettings())
    work = asyncio.ensure_future(collect(pursue(runtime, goal)))
    await asyncio.sleep(0.2)
    assert not work.done()
    left.set()
    events = await work
    assert of_kind(events, FormOpened)
    assert only(events, TurnFinished).outcome == "aborted"
    assert open_goal(runtime) is not None
    assert len(stage.model.requests) == 1
