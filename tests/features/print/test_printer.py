import asyncio
import io
import json
import shutil
from contextlib import aclosing

import pytest

from agent_tui.config import PermissionMode
from agent_tui.events import ReplyFinished
from agent_tui.features.print import printer
from agent_tui.features.print.printer import ExitCode, OutputFormat, print_turn
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.providers.base import ModelRef, ProviderError
from agent_tui.providers.silence import Wait
from agent_tui.sessions.log import SessionLog
from tests.support.compaction_ways import talk
from tests.support.runtime import MODEL, Stage
from tests.support.waiting import WaitingProvider

ERASE_SCREEN = "\x1b[2J"
SET_CLIPBOARD = "\x1b]52;c;cm0gLXJm\x07"


async def printed(
    stage: Stage,
    *script: Reply,
    output_format: OutputFormat = "text",
    model: ModelRef = MODEL,
    mode: PermissionMode = "full",
) -> tuple[ExitCode, str, str]:
    out, err = io.StringIO(), io.StringIO()
    runtime = stage.runtime(script, model=model, mode=mode, is_interactive=False)
    code = await print_turn(runtime, "go", output_format, out=out, err=err)
    return code, out.getvalue(), err.getvalue()


async def test_text_is_the_last_reply_alone_and_the_work_goes_to_the_error_stream(stage):
    write = call("c1", "write", path="a.txt", content="one\n")
    code, out, err = await printed(stage, Reply("First.", tool_calls=(write,)), Reply("Done."))
    assert (code, out) == (ExitCode.DONE, "Done.\n")
    assert err == "* create a.txt\n- Changed a.txt.\n"


async def test_nothing_a_model_or_a_tool_wrote_steers_the_terminal(stage):
    command = f"echo '{SET_CLIPBOARD}'; false"
    calls = (
        call("c1", "bash", command=command),
        call("c2", "read", path=f"{ERASE_SCREEN}b.txt"),
    )
    answer = Reply(f"All {ERASE_SCREEN}done{SET_CLIPBOARD}.")
    code, out, err = await printed(stage, Reply(tool_calls=calls), answer)
    assert (code, out) == (ExitCode.DONE, "All done.\n")
    assert "\x1b" not in err
    assert "\x07" not in err


async def test_the_error_of_a_server_is_printed_without_control_characters(stage):
    error = ProviderError("auth", f"Bad key{ERASE_SCREEN}.", "Use /model.")
    code, out, err = await printed(stage, Reply(error=error))
    assert (code, out) == (ExitCode.FAILED, "")
    assert err == "agent-tui: Bad key. Use /model.\n"


async def test_a_very_long_command_and_what_it_printed_take_one_line_each(stage):
    command = "echo " + "x" * 5_000 + "\ntrue"
    _, _, err = await printed(
        stage, Reply(tool_calls=(call("c1", "bash", command=command),)), Reply("ok")
    )
    assert [line[:6] for line in err.splitlines()] == ["* echo", "    xx"]
    assert max(map(len, err.splitlines())) < 300


async def test_a_few_lines_of_what_commands_printed_go_to_the_error_stream(stage):
    commands = ("seq 1 400", "echo 'a.c:1:2: error: x'; seq 1 40; exit 3", "true")
    calls = (Reply(tool_calls=(call(f"c{c}", "bash", command=c),)) for c in commands)
    _, _, err = await printed(stage, *calls, Reply("ok"))
    assert err.splitlines() == [
        "* seq 1 400",
        "  400 lines",
        "    … +395 lines",
        *(f"    {n}" for n in range(396, 401)),
        "* echo 'a.c:1:2: error: x'; seq 1 40; exit 3",
        "  ! exit 3 · 41 lines",
        "    a.c:1:2: error: x",
        "    … +36 lines",
        *(f"    {n}" for n in range(37, 41)),
        "* true",
    ]


async def test_the_steps_of_a_plan_go_to_the_error_stream_when_they_are_made_or_changed(stage):
    def plan(status: str) -> Reply:
        todos = [{"text": "Read", "status": status}, {"text": "Write", "status": "pending"}]
        return Reply(tool_calls=(call(f"c-{status}", "todo", todos=todos),))

    _, _, err = await printed(stage, plan("in_progress"), plan("completed"), Reply("ok"))
    assert err.splitlines() == [
        "* plan: 0 of 2 done",
        "    [>] Read",
        "    [ ] Write",
        "* plan: 1 of 2 done",
    ]


@pytest.mark.parametrize(
    ("reply", "code", "outcome"),
    [
        (Reply("Half a", cut=True), ExitCode.FAILED, "error"),
        (Reply("Whole."), ExitCode.DONE, "done"),
    ],
)
async def test_the_outcome_is_in_the_result_and_in_the_exit_code(stage, reply, code, outcome):
    got, out, err = await printed(stage, reply, output_format="json")
    result = json.loads(out)
    assert (got, result["exit_code"], result["outcome"]) == (code, int(code), outcome)
    assert result["result"] == reply.text
    assert result["session_path"] == str(next(stage.sessions.rglob("*.jsonl")))
    assert err == ""


async def test_the_result_has_what_was_cut_together_with_the_rest_of_it(stage):
    cut = [Reply("Half", finish="length"), Reply(" a", finish="length"), Reply(" loaf.")]
    runtime = stage.runtime(cut)
    out, err = io.StringIO(), io.StringIO()
    code = await print_turn(runtime, "go", "json", out=out, err=err)
    assert (code, json.loads(out.getvalue())["result"]) == (ExitCode.DONE, "Half a loaf.")


async def test_a_reply_that_never_ends_is_cut_off_in_the_end(stage):
    runtime = stage.runtime(lambda _request: Reply("more ", finish="length"))
    out, err = io.StringIO(), io.StringIO()
    code = await print_turn(runtime, "go", "json", out=out, err=err)
    result = json.loads(out.getvalue())
    assert (code, result["outcome"], result["result"]) == (ExitCode.FAILED, "length", "more " * 4)


async def test_an_aborted_turn_is_an_interruption(stage):
    runtime = stage.runtime([Reply("never", gate=asyncio.Event())])
    out, err = io.StringIO(), io.StringIO()
    printing = asyncio.create_task(print_turn(runtime, "go", "stream-json", out=out, err=err))
    while "TextDelta" not in out.getvalue():
        await asyncio.sleep(0)
    runtime.abort()
    assert await printing is ExitCode.INTERRUPTED
    kinds = [json.loads(line)["type"] for line in out.getvalue().splitlines()]
    assert kinds[-3:] == ["ReplyFinished", "TurnFinished", "result"]


async def compacted(stage: Stage, output_format: OutputFormat) -> tuple[ExitCode, str, str]:
    """A turn in which the context is compacted, and no summary of a model's will do."""
    runtime = stage.runtime(
        lambda request: Reply(text="" if request.purpose == "summary" else "Fine."),
        window=64_000,
        is_interactive=False,
    )
    talk(runtime.conversation.log, 52)
    out, err = io.StringIO(), io.StringIO()
    code = await print_turn(runtime, "go", output_format, out=out, err=err)
    return code, out.getvalue(), err.getvalue()


async def test_a_compaction_is_told_of_and_who_wrote_its_summary(stage):
    code, out, err = await compacted(stage, "text")
    assert (code, out) == (ExitCode.DONE, "Fine.\n")
    first = err.splitlines()[0]
    assert first.startswith("- Context compacted ")
    assert "tokens. Summary written without a model: scripted/test: " in first


async def test_every_event_of_a_compaction_is_a_line_of_json(stage):
    code, out, _ = await compacted(stage, "stream-json")
    lines = [json.loads(line) for line in out.splitlines()]
    (finished,) = [line for line in lines if line["type"] == "CompactionFinished"]
    assert finished["is_fallback"] is True
    assert finished["tokens_after"] < finished["tokens_before"]
    assert (code, lines[-1]["exit_code"], lines[-1]["result"]) == (ExitCode.DONE, 0, "Fine.")


async def test_a_summary_that_is_long_in_coming_is_told_beside_the_result(stage, monkeypatch):
    minutes = iter(range(0, 600_000, 60))
    monkeypatch.setattr(printer, "monotonic", lambda: next(minutes))
    provider = WaitingProvider(lambda _request: Reply("Fine."), (Wait(61, 61),))
    runtime = stage.runtime(provider, window=64_000, is_interactive=False)
    talk(runtime.conversation.log, 52)
    out, err = io.StringIO(), io.StringIO()
    await print_turn(runtime, "go", "text", out=out, err=err)
    assert any(
        line.startswith("Compacting: ") and line.endswith(", waiting for 1m 01s.")
        for line in err.getvalue().splitlines()
    )


@pytest.mark.parametrize("command", ["rm -r ../sessions", "rm ../sessions/*/*.jsonl"])
async def test_a_session_deleted_in_the_middle_of_a_turn_is_there_afterwards_and_told_once(
    stage, command
):
    delete = call("c1", "bash", command=command)
    look = call("c2", "bash", command="ls")
    runtime = stage.runtime((Reply(tool_calls=(delete,)), Reply(tool_calls=(look,)), Reply("ok")))
    out, err = io.StringIO(), io.StringIO()
    assert await print_turn(runtime, "go", "text", out=out, err=err) == ExitCode.DONE
    assert err.getvalue().count("was deleted while in use") == 1
    log = runtime.conversation.log
    assert SessionLog.open(log.path, read_only=True).entries == log.entries


async def test_a_session_deleted_after_the_last_reply_is_there_afterwards(stage):
    runtime = stage.runtime((Reply("ok"),))
    async with aclosing(runtime.submit("go")) as events:
        async for event in events:
            if isinstance(event, ReplyFinished):
                shutil.rmtree(stage.sessions)
    log = runtime.conversation.log
    assert SessionLog.open(log.path, read_only=True).entries == log.entries


async def test_a_cost_that_is_not_known_is_null(stage):
    for model, cost in ((ModelRef("other/model"), None), (ModelRef("local/model"), 0.0)):
        _, out, _ = await printed(stage, Reply("Done."), output_format="json", model=model)
        assert json.loads(out)["cost_usd"] == cost


async def test_a_plan_is_the_result(stage):
    plan = "# Shout\n\n1. Change greet"
    handed_over = Reply("I have looked.", tool_calls=(call("p1", "plan", plan=plan),))
    code, out, _ = await printed(stage, handed_over, mode="plan")
    assert (code, out) == (ExitCode.DONE, f"{plan}\n")
    _, out, _ = await printed(stage, handed_over, mode="plan", output_format="stream-json")
    told = [json.loads(line) for line in out.splitlines()]
    assert {"type": "PlanHandedOver", "call_id": "p1", "plan": plan} in told
    assert told[-1]["result"] == plan


async def test_the_output_of_calls_that_run_at_the_same_time_names_its_call(stage):
    calls = (call("c1", "bash", command="echo a"), call("c2", "bash", command="echo b"))
    _, _, err = await printed(stage, Reply(tool_calls=calls), Reply("ok"))
    assert err.splitlines() == [
        "* echo a",
        "* echo b",
        "  echo a: 1 line",
        "    a",
        "  echo b: 1 line",
        "    b",
    ]
