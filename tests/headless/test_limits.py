"""Runs that end because they took as much as they were allowed."""

import io
import json

from agent_tui.headless.printer import ExitCode, OutputFormat, print_turn
from agent_tui.messages import Cost, Usage
from agent_tui.providers.base import ModelInfo, ModelRef
from agent_tui.providers.budget import Budget, BudgetedProvider
from agent_tui.providers.scripted.provider import Reply, ScriptedProvider, call
from agent_tui.providers.text_tools.provider import TextToolProvider
from tests.support.runtime import Stage, roles

PRICED = ModelInfo("openai/some", 100_000, 1_000, input_price=1.0, output_price=2.0)
LOOK = call("c1", "ls", path=".")
SPENT = Usage(input=10, output=1, cost=Cost(total=0.3))


async def run(runtime, output_format: OutputFormat = "json") -> tuple[ExitCode, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = await print_turn(runtime, "go", output_format, out=out, err=err)
    return code, out.getvalue(), err.getvalue()


async def test_a_turn_ends_after_so_many_replies_with_the_results_of_the_last(stage: Stage):
    script = [Reply(tool_calls=(LOOK,)), Reply(tool_calls=(LOOK,)), Reply("never")]
    runtime = stage.runtime(script, most_replies=2, is_interactive=False)
    code, out, _ = await run(runtime)
    result = json.loads(out)
    assert (code, result["exit_code"], result["outcome"]) == (ExitCode.LIMIT, 3, "limit")
    assert result["error"] == "It took 2 replies, the most that were allowed."
    assert roles(runtime) == ["user", "assistant", "toolResult", "assistant", "toolResult"]


async def test_an_answer_with_the_last_reply_is_an_answer(stage: Stage):
    script = [Reply(tool_calls=(LOOK,)), Reply("Done.")]
    code, out, _ = await run(stage.runtime(script, most_replies=2, is_interactive=False), "text")
    assert (code, out) == (ExitCode.DONE, "Done.\n")


async def test_no_request_is_made_once_the_budget_is_spent(stage: Stage):
    script = ScriptedProvider([Reply(tool_calls=(LOOK,), usage=SPENT), Reply("never")])
    budgeted = BudgetedProvider(script, lambda _: PRICED, Budget(0.2))
    provider = TextToolProvider(budgeted, lambda _: PRICED)
    runtime = stage.runtime(provider, model=ModelRef(PRICED.name), is_interactive=False)
    code, _, err = await run(runtime, "text")
    assert code == ExitCode.LIMIT
    assert "$0.3000 were spent, and --max-cost is $0.2." in err
    assert len(script.requests) == 1
