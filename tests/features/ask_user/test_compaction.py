"""The answers of the user are kept by every way to compact, as what they typed is."""

import pytest
from pydantic import JsonValue

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.compaction.strategies.registry import strategy_descriptions
from agent_tui.events import CompactionFinished
from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.messages import JsonObject, ToolResultMessage
from agent_tui.providers.base import ModelRequest
from agent_tui.tools.form import Elicitation, accept_form
from tests.agent.compaction.test_user_words import LOG, NOTES, next_request, say
from tests.support.runtime import Stage, collect, only

QUESTIONS: JsonValue = [
    {"question": "Which database?", "answers": ["SQLite", "Postgres"]},
    {"question": "Which tests?", "answers": ["unit", "end to end"], "several": True},
]
KEPT = ("Which database? -> Postgres", "Which tests? -> unit, ", "and one for the parser")


async def fill(_form: Elicitation) -> JsonObject:
    return accept_form({"1": ["Postgres"], "2": ["unit", "and one for the parser"]})


def asking(stage: Stage, notes: str) -> tuple[AgentRuntime, ScriptedProvider]:
    def answer(request: ModelRequest) -> Reply:
        if request.purpose == "summary":
            return Reply(text=notes)
        last = request.messages[-1]
        if isinstance(last, ToolResultMessage) or last.text != "Build it.":
            return Reply("Done.")
        return Reply(tool_calls=(call("c1", "ask_user", questions=QUESTIONS),))

    provider = ScriptedProvider(answer)
    runtime = stage.runtime(provider, window=64_000)
    runtime.let_answer(fill)
    return runtime, provider


@pytest.mark.thorough
@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("notes", NOTES)
async def test_answers_survive_summaries(stage: Stage, notes: str, rounds: int):
    runtime, provider = asking(stage, NOTES[notes])
    await say(runtime, "Build it.")
    for _ in range(rounds):
        await say(runtime, LOG, "Go on.", "And then?")
        await collect(runtime.compact())
    told = await next_request(runtime, provider)
    assert all(text in told for text in KEPT)


@pytest.mark.thorough
@pytest.mark.parametrize("strategy", [*strategy_descriptions()])
async def test_answers_survive_every_strategy(stage: Stage, strategy: str):
    runtime, provider = asking(stage, "I cannot help with that.")
    await say(runtime, "Build it.")
    await say(runtime, LOG, *("Go on with the work." for _ in range(6)))
    finished = only(await collect(runtime.compact_here(strategy)), CompactionFinished)
    assert finished.tokens_after < finished.tokens_before
    told = await next_request(runtime, provider)
    assert all(text in told for text in KEPT)
