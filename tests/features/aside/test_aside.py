"""Questions beside the conversation."""

import asyncio

import pytest

from agent_tui.agent.session.spending import spending_of
from agent_tui.errors import AgentTuiError
from agent_tui.events import TurnFinished
from agent_tui.features.aside.question import ask_aside
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import Cost, Usage
from agent_tui.providers.base import ProviderError
from tests.support.runtime import Stage, collect, only, roles

SPENT = Usage(input=100, output=10, cost=Cost(total=0.25))


async def test_the_answer_is_counted_and_stays_out_of_the_context(stage: Stage):
    runtime = stage.runtime([Reply("Hello."), Reply("It is Rust.", usage=SPENT), Reply("Fine.")])
    await collect(runtime.submit("look around"))
    before, cost_usd = runtime.conversation.request(), runtime.conversation.totals.cost_usd
    assert await ask_aside(runtime, "which language?") == "It is Rust."
    asked = stage.model.requests[-1]
    assert asked.messages[:-1] == before.messages
    assert asked.tools == before.tools
    assert "which language?" in asked.messages[-1].text
    assert runtime.conversation.request() == before
    assert runtime.conversation.totals.cost_usd == cost_usd + 0.25
    await collect(runtime.submit("go on"))
    assert not any("Rust" in message.text for message in stage.model.requests[-1].messages)
    (spent,) = spending_of(runtime.conversation.log).replies
    assert spent.requests == 3


async def test_it_does_not_wait_for_a_turn_nor_disturb_it(stage: Stage):
    gate = asyncio.Event()
    look = call("c1", "ls", path=".")
    script = [Reply(tool_calls=(look,)), Reply("Slow.", gate=gate), Reply("Quick.")]
    runtime = stage.runtime(script)
    running = asyncio.create_task(collect(runtime.submit("go")))
    while len(stage.model.requests) < 2:
        await asyncio.sleep(0)
    assert await ask_aside(runtime, "how far?") == "Quick."
    assert not running.done()
    gate.set()
    assert only(await running, TurnFinished).outcome == "done"
    assert roles(runtime) == ["user", "assistant", "toolResult", "assistant"]


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply(tool_calls=(call("c1", "ls", path="."),)), "gave no answer"),
        (Reply(error=ProviderError("auth", "No key.")), "No key."),
    ],
)
async def test_what_is_no_answer_is_said(stage: Stage, reply: Reply, told: str):
    runtime = stage.runtime([reply])
    with pytest.raises(AgentTuiError, match=told):
        await ask_aside(runtime, "why?")
    assert roles(runtime) == []
