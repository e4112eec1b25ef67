"""What a call had printed when the user interrupted it: kept for the model and for the screen."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from agent_tui.agent.turn.so_far import OutputSoFar
from agent_tui.commands.command_output import command_output
from agent_tui.events import BashFinished, ToolFinished, ToolOutputDelta
from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.providers.wires.chat import openai_messages
from agent_tui.tools.shorten import OutputLimits
from agent_tui.ui.chat.history_blocks import bash_block, with_result
from agent_tui.ui.transcript.blocks import ToolBlock
from tests.support.runtime import collect, of_kind, only
from tests.support.wire_rules import openai_problems


async def _abort_once_printed(runtime, events, marks):
    """The events of an activity that is aborted once each of `marks` was printed."""
    seen, printed = [], ""
    async with aclosing(events) as stream:
        async for event in stream:
            seen.append(event)
            if isinstance(event, ToolOutputDelta):
                printed += event.text
                if all(mark in printed for mark in marks):
                    runtime.abort()
    return seen


async def test_the_next_request_holds_what_an_interrupted_command_printed(stage):
    command = "echo first; echo last; sleep 100"
    provider = ScriptedProvider(
        [Reply(tool_calls=(call("c1", "bash", command=command),)), Reply(text="I see.")]
    )
    runtime = stage.runtime(provider)
    events = await _abort_once_printed(runtime, runtime.submit("go"), ["last"])
    result = only(events, ToolFinished).message
    printed, _, ending = result.text.partition("\n[")
    assert printed == "first\nlast"
    assert ending.startswith("interrupted after ")
    assert " s by the user" in ending
    assert result.is_error
    assert result.tool_details.ending == "cancelled"
    await collect(runtime.submit("what did it print?"))
    request = provider.requests[-1]
    sent = openai_messages(request.system, request.messages)
    assert openai_problems(sent) == []
    assert "first\\nlast\\n[interrupted after" in str(sent)


async def test_the_screen_keeps_the_lines_of_an_interrupted_command(stage):
    command = "seq 20; sleep 100"
    runtime = stage.runtime([Reply(tool_calls=(call("c1", "bash", command=command),))])
    events = await _abort_once_printed(runtime, runtime.submit("go"), ["20\n"])
    message = only(events, ToolFinished).message
    block = with_result(ToolBlock("c1", "bash", command), message)
    assert block.status == "cancelled"
    assert block.output.split() == [str(number) for number in range(1, 21)]
    assert block.printed_lines == 20
    shown = command_output(message)
    assert shown is not None
    assert shown.result.startswith("interrupted after ")
    assert shown.result.endswith(" · 20 lines")


async def test_each_of_parallel_calls_keeps_its_own_output(stage):
    for name in ("a", "b"):
        (stage.workspace / name).write_text(f"content of {name}\n")
    calls = tuple(call(f"c{name}", "bash", command=f"tail -f {name}") for name in ("a", "b"))
    done = call("cl", "bash", command="cat a")
    runtime = stage.runtime([Reply(tool_calls=(done, *calls))])
    events, seen = [], set()
    async with aclosing(runtime.submit("go")) as stream:
        async for event in stream:
            events.append(event)
            if isinstance(event, ToolOutputDelta | ToolFinished):
                seen.add((type(event), event.call_id))
            awaited = {(ToolFinished, "cl"), (ToolOutputDelta, "ca"), (ToolOutputDelta, "cb")}
            if awaited <= seen:
                runtime.abort()
    texts = {event.call_id: event.message.text for event in of_kind(events, ToolFinished)}
    assert list(texts) == ["cl", "ca", "cb"]
    assert texts["cl"] == "content of a\n[exit code 0]"
    assert texts["ca"].startswith("content of a\n[interrupted after ")
    assert texts["cb"].startswith("content of b\n[interrupted after ")


async def test_a_long_output_is_cut_and_stays_on_disk(stage):
    lines = 30_000
    command = f"seq {lines}; echo end; sleep 100"
    runtime = stage.runtime([Reply(tool_calls=(call("c1", "bash", command=command),))])
    events = await _abort_once_printed(runtime, runtime.submit("go"), ["end"])
    message = only(events, ToolFinished).message
    details = message.tool_details
    assert details.truncated
    assert details.printed_lines == lines + 1
    assert details.full_output_path is not None
    assert details.full_output_path in message.text
    whole = Path(details.full_output_path).read_text().split()
    assert whole == [*map(str, range(1, lines + 1)), "end"]
    assert len(message.text) < 60_000


async def test_a_cut_output_of_the_users_own_command_stays_on_disk_too(stage):
    runtime = stage.runtime([])
    command = "seq 30000; echo end; sleep 100"
    running = runtime.run_bash(command, in_context=True)
    message = only(await _abort_once_printed(runtime, running, ["end"]), BashFinished).message
    assert message.cancelled
    assert message.truncated
    assert message.printed_lines == 30_001
    assert message.full_output_path is not None
    assert Path(message.full_output_path).read_text().endswith("30000\nend\n")
    block = bash_block("c", message)
    assert block.status == "cancelled"
    assert block.output.endswith("30000\nend")
    assert "[interrupted after " in message.output


@pytest.mark.parametrize("printed", ["", "step 1\nstep 2\n"])
def test_a_tool_that_only_streams_keeps_the_end_of_what_it_said(printed):
    seen = []
    so_far = OutputSoFar(lambda text, skipped=0: seen.append(text), OutputLimits())
    assert so_far.interrupted(0).for_model.startswith("Not run")
    so_far.began_s = 100.0
    for line in printed.splitlines(keepends=True):
        so_far(line)
    output = so_far.interrupted(112.4)
    assert "".join(seen) == printed
    assert output.is_error
    assert output.for_person.ending == "cancelled"
    if printed:
        assert output.for_model.startswith("step 1\nstep 2\n[interrupted after 12 s by the user")
        assert output.for_person.printed_lines == 2
    else:
        assert output.for_model.startswith("Interrupted after 12 s by the user")
        assert output.for_person.printed_lines is None


def test_what_a_tool_said_is_bounded_in_memory_and_for_the_model():
    limits = OutputLimits(max_bytes=2_000)
    so_far = OutputSoFar(lambda _text, _skipped=0: None, limits)
    so_far.began_s = 0.0
    for number in range(10_000):
        so_far(f"line {number}\n")
    output = so_far.interrupted(1)
    assert output.for_person.printed_lines == 10_000
    assert "line 9999\n[interrupted" in output.for_model
    assert len(output.for_model) < 2_200


async def test_what_a_helper_did_is_in_its_interrupted_result(stage):
    (stage.workspace / "a.txt").write_text("one\n")
    gate = asyncio.Event()
    replies = [
        Reply(tool_calls=(call("c1", "explore", task="look around"),)),
        Reply(tool_calls=(call("h1", "read", path="a.txt"),)),
        Reply(text="I found", gate=gate),
    ]
    runtime = stage.runtime(replies)
    events = await _abort_once_printed(runtime, runtime.submit("go"), ["a.txt"])
    text = only(events, ToolFinished).message.text
    assert "a.txt" in text
    assert "[interrupted after " in text
