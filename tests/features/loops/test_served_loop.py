"""A loop over a real folder: the real provider, a real server, real tools and files."""

import json
from pathlib import Path

import pytest

from agent_tui.events import LoopAdvanced, ScopeLeft, ToolFinished, TurnFinished
from agent_tui.features.loops.plan import parse_loop
from agent_tui.providers.base import ModelRef
from agent_tui.providers.host import ProviderHost
from tests.features.loops.running import run_loop
from tests.support.openai_server import Answer, Call, OpenAiServer, RecordedRequest, Reply
from tests.support.runtime import Stage, collect, lines_of, of_kind, only
from tests.support.wire_rules import openai_problems

NAMES = ("parse.py", "store.py", "report.py")
SUMMARY = "parse.py and store.py are sound; report.py has an unused import in line 1."
SECRET_PLACE = "the marker violet-heron stands here"


class Service:
    """A model that reads the file it is asked about, then says something; and sums up."""

    def __init__(self) -> None:
        self.turns: list[RecordedRequest] = []
        self.summaries: list[RecordedRequest] = []

    def answer(self, request: RecordedRequest) -> Answer:
        if "tools" not in request.body:
            self.summaries.append(request)
            return Reply(text=(SUMMARY,), usage=(500, 20))
        self.turns.append(request)
        last = request.body["messages"][-1]
        if last["role"] == "tool":
            return Reply(text=("It is sound.",), usage=(800, 5))
        asked = str(last["content"])
        number = len(self.turns)
        if "heron" in asked:
            return Reply(
                tool_calls=(Call("recall", {"query": "violet-heron"}, id=f"c{number}"),),
                usage=(500, 20),
            )
        name = next(name for name in NAMES if name in asked.rpartition("Check")[2])
        return Reply(tool_calls=(Call("read", {"path": name}, id=f"c{number}"),), usage=(700, 20))


def write_files(folder: Path) -> None:
    for name in NAMES:
        lines = "".join(f"def {name[0]}{n}(value):\n    return value + {n}\n" for n in range(60))
        (folder / name).write_text(f"# {name}: {SECRET_PLACE}\n{lines}")


@pytest.mark.asyncio(loop_scope="session")
async def test_a_loop_over_three_files_leaves_one_summary_and_everything_in_the_file(
    stage: Stage, host: ProviderHost
):
    service = Service()
    with OpenAiServer() as server:
        server.play(*[service.answer] * 20)
        write_files(stage.workspace)
        runtime = stage.runtime(host, model=ModelRef("some-model", server.base_url, "THE_KEY"))
        plan = parse_loop(f'over {",".join(NAMES)} compress["what is wrong"] Check {{item}}.')
        events = await collect(run_loop(runtime, plan))
        texts = [message.text for message in runtime.conversation.request().messages]
        later = await collect(runtime.submit("Where was the violet-heron?"))
        await runtime.aclose()
    assert only(events, TurnFinished).outcome == "done"
    assert len(of_kind(events, LoopAdvanced)) == 3
    assert only(events, ScopeLeft).summary == SUMMARY
    label = plan.label
    assert texts == [f"==> {label}", f"<summary>\n{SUMMARY}\n</summary>\n<== {label}"]
    (asked,) = service.summaries
    prompt = json.dumps(asked.body["messages"])
    assert all(name in prompt for name in (*NAMES, "what is wrong", "Round 3"))
    for request in (*service.turns, *service.summaries):
        assert openai_problems(request.body["messages"]) == []
    assert lines_of(runtime).count(SECRET_PLACE.encode()) >= 3
    (found,) = of_kind(later, ToolFinished)
    assert not found.message.is_error
    assert SECRET_PLACE in found.message.text
    assert only(later, TurnFinished).outcome == "done"
