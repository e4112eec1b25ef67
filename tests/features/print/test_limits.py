"""Runs that end because they took as much as they were allowed."""

import asyncio
import io
import json
from typing import Literal

import pytest

from agent_tui.features.print.answer_schema import NO_TERMS, RunTerms, TimeLimit
from agent_tui.features.print.printer import ExitCode, OutputFormat, print_turn
from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.messages import Cost, Usage
from agent_tui.providers.access import AdaptingProvider
from agent_tui.providers.base import ModelInfo, ModelRef, ModelRequest
from agent_tui.providers.silence import Wait
from agent_tui.providers.spend_limits import Budget
from tests.support.runtime import GOOD_SUMMARY, Stage, roles
from tests.support.waiting import WaitingProvider

PRICED = ModelInfo("openai/some", 100_000, 1_000, input_price=1.0, output_price=2.0)
LOOK = call("c1", "ls", path=".")
SPENT = Usage(input=10, output=1, cost=Cost(total=0.3))


async def run(
    runtime, output_format: OutputFormat = "json", terms: RunTerms = NO_TERMS
) -> tuple[ExitCode, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = await print_turn(runtime, "go", output_format, out=out, err=err, terms=terms)
    return code, out.getvalue(), err.getvalue()


async def test_a_turn_ends_after_so_many_replies_with_the_results_of_the_last(stage: Stage):
    script = [Reply(tool_calls=(LOOK,)), Reply(tool_calls=(LOOK,)), Reply("never")]
    runtime = stage.runtime(script, most_replies=2, is_interactive=False)
    code, out, _ = await run(runtime)
    result = json.loads(out)
    assert (code, result["exit_code"], result["outcome"]) == (ExitCode.LIMIT, 3, "limit")
    assert result["error"] == "Stopped: --max-turns 2 reached."
    assert roles(runtime) == ["user", "assistant", "toolResult", "assistant", "toolResult"]


async def test_an_answer_with_the_last_reply_is_an_answer(stage: Stage):
    script = [Reply(tool_calls=(LOOK,)), Reply("Done.")]
    code, out, _ = await run(stage.runtime(script, most_replies=2, is_interactive=False), "text")
    assert (code, out) == (ExitCode.DONE, "Done.\n")


async def test_no_request_is_made_once_the_budget_is_spent(stage: Stage):
    script = ScriptedProvider([Reply(tool_calls=(LOOK,), usage=SPENT), Reply("never")])
    provider = AdaptingProvider(script, lambda _: PRICED, Budget(0.2))
    runtime = stage.runtime(provider, model=ModelRef(PRICED.name), is_interactive=False)
    code, _, err = await run(runtime, "text")
    assert code == ExitCode.LIMIT
    assert "$0.3000 spent, --max-cost is $0.2." in err
    assert len(script.requests) == 1


@pytest.mark.parametrize("has_steps", [False, True])
async def test_a_run_in_which_only_compactions_happen_ends_with_a_limit(
    stage: Stage, has_steps: bool
):
    (stage.workspace / "a.py").write_text("".join(f"value {n} of a table\n" for n in range(3_000)))

    def script(request: ModelRequest) -> Reply:
        if request.purpose == "summary":
            return Reply(GOOD_SUMMARY)
        number = len(provider.requests)
        if has_steps and number % 4 == 0:
            step = call(f"c{number}", "bash", command=f"echo step {number}")
            return Reply(tool_calls=(step,))
        look = call(f"c{number}", "read", path="a.py", offset=1 + number % 7, limit=150)
        return Reply(tool_calls=(look,))

    provider = ScriptedProvider(script)
    code, out, err = await run(stage.runtime(provider, window=10_000, is_interactive=False), "text")
    assert (code, out) == (3, ""), err
    assert "Stopped: the context was compacted 3 times" in err


class Gate(asyncio.Event):
    """Holds a reply, and tells when that is held."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()

    async def wait(self) -> Literal[True]:
        self.reached.set()
        return await super().wait()


@pytest.mark.parametrize("output_format", ["json", "stream-json"])
async def test_the_end_of_the_time_keeps_what_came_and_is_named(stage: Stage, output_format):
    gate = Gate()
    runtime = stage.runtime([Reply("So far", gate=gate)], is_interactive=False)
    limit = TimeLimit(600)
    running = asyncio.create_task(run(runtime, output_format, RunTerms(time_limit=limit)))
    await gate.reached.wait()
    limit.is_over = True
    runtime.abort()
    code, out, _ = await running
    result = json.loads(out.splitlines()[-1])
    assert (code, result["exit_code"], result["outcome"]) == (ExitCode.TIMEOUT, 124, "timeout")
    assert result["error"] == "Stopped: --max-time 10m reached."
    assert result["result"] == "So far"


async def test_what_is_done_when_its_time_ends_is_done(stage: Stage):
    terms = RunTerms(time_limit=TimeLimit(600, is_over=True))
    code, out, err = await run(stage.runtime([Reply("Done.")]), "text", terms)
    assert (code, out, err) == (ExitCode.DONE, "Done.\n", "")


WRITE = call("c1", "write", path="a.txt", content="x")
ERASE = call("c2", "bash", command="rm -rf /")


async def test_calls_that_were_refused_are_in_the_result_and_the_last_line(stage: Stage):
    script = [Reply(tool_calls=(WRITE, ERASE, LOOK)), Reply("Pity.")]
    code, out, err = await run(stage.runtime(script, mode="ask", is_interactive=False))
    result = json.loads(out)
    assert (code, result["outcome"]) == (ExitCode.DONE, "done")
    refused = result["refused_calls"]
    assert [(one["tool"], one["title"]) for one in refused] == [
        ("write", "create a.txt"),
        ("bash", "rm -rf /"),
    ]
    assert refused[0]["reason"] == "needs approval: changes a file"
    last = err.splitlines()[-1]
    assert last.startswith("agent-tui: 2 tool calls refused: create a.txt (needs approval: changes")
    assert "rm -rf /" in last


async def test_a_refused_call_is_an_exit_code_where_that_is_asked_for(stage: Stage):
    script = [Reply(tool_calls=(WRITE,)), Reply("Pity.")]
    runtime = stage.runtime(script, mode="ask", is_interactive=False)
    code, out, err = await run(runtime, "text", RunTerms(fails_on_refusal=True))
    assert (code, int(code), out) == (ExitCode.REFUSED, 4, "Pity.\n")
    assert err.splitlines()[-1].startswith("agent-tui: 1 tool call refused: create a.txt (")


async def test_nothing_refused_is_no_failure_and_no_word(stage: Stage):
    script = [Reply(tool_calls=(LOOK, call("c2", "read", path="missing"))), Reply("Done.")]
    runtime = stage.runtime(script, mode="ask", is_interactive=False)
    code, out, err = await run(runtime, terms=RunTerms(fails_on_refusal=True))
    assert (code, json.loads(out)["refused_calls"], err) == (ExitCode.DONE, [], "")


@pytest.mark.parametrize("output_format", ["text", "json", "stream-json"])
async def test_waiting_for_words_is_told_beside_the_result(stage: Stage, output_format):
    provider = WaitingProvider([Reply("At last.")], (Wait(61, 1), Wait(130, 1)))
    code, out, err = await run(stage.runtime(provider), output_format)
    assert code == ExitCode.DONE
    assert "At last." in out
    assert err.splitlines() == [
        "The model has been thinking for 1m 01s; its server is connected.",
        "The model has been thinking for 2m 10s; its server is connected.",
    ]


async def test_the_part_of_a_script_that_was_refused_is_in_the_last_line(stage: Stage):
    erase = call("c1", "bash", command="ls\n" * 70 + "rm -rf $scratch/\n")
    script = [Reply(tool_calls=(erase,)), Reply("Pity.")]
    _, out, err = await run(stage.runtime(script, mode="full", is_interactive=False))
    part = "needs approval: rm -rf $scratch/: recursive rm: $scratch/ is known only"
    assert json.loads(out)["refused_calls"][0]["reason"].startswith(part)
    assert part in err.splitlines()[-1]
