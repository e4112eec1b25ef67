"""Waiting for the person does not use up a command's time."""

from agent_tui.tools.base import ToolContext
from agent_tui.tools.registry import default_toolbox
from tests.support.tool_calls import KEEPER


async def test_the_time_a_question_takes_does_not_count_for_the_timeout(
    context: ToolContext,
) -> None:
    waits = iter([0.0, 30.0, 30.0])
    context.waited_s = lambda: next(waits)
    call = default_toolbox(KEEPER).prepare("bash", {"command": "sleep 1.3", "timeout": 1}, context)
    output = await call.run()
    assert output.for_person.exit_code == 0


async def test_without_a_question_the_timeout_is_what_it_is(context: ToolContext) -> None:
    call = default_toolbox(KEEPER).prepare("bash", {"command": "sleep 20", "timeout": 1}, context)
    output = await call.run()
    assert output.is_error
    assert "stopped after 1 s" in output.for_model
