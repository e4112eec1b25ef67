from dataclasses import replace

import pytest

from agent_tui.agent.turn.repetition import (
    MOST_REFUSED,
    REMARK_AT,
    STUCK_AT,
    LoopWatch,
    Repetition,
    goes_round,
)
from agent_tui.events import CompactionFinished, ToolFinished, TurnFinished
from agent_tui.messages import (
    AssistantMessage,
    FileTouches,
    ToolCall,
    ToolDetails,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.providers.scripted.provider import Reply, ScriptedProvider, call
from agent_tui.sessions.entries import MessageEntry
from agent_tui.tools.base import ToolOutput
from tests.support.compaction_ways import SUMMARY, Scene, Script
from tests.support.importers.formats import read_recorded
from tests.support.runtime import collect, of_kind, only
from tests.support.trajectories import trajectories, trajectory


def test_a_call_with_another_result_or_other_arguments_is_no_repetition():
    repetition = Repetition()
    for number in range(3 * STUCK_AT):
        output = ToolOutput(f"line {number}")
        assert repetition.with_remark(call("c", "bash", command="tail log"), output) == output
        same = ToolOutput("same")
        assert repetition.with_remark(call("c", "read", path=f"{number}.txt"), same) == same
    assert not repetition.is_stuck


@pytest.mark.parametrize("names", ["ab", "abc", "abcd", "abcde"])
def test_going_round_in_a_circle_is_noticed_too(names):
    repetition = Repetition()
    for _ in range(STUCK_AT):
        for name in names:
            repetition.with_remark(call("c", "read", path=name), ToolOutput(name))
    assert repetition.is_stuck


def _written(content: str, *, diff: str) -> tuple[ToolCall, ToolOutput]:
    details = ToolDetails(diff=diff, files=FileTouches(written=("/a.py",)))
    return call("w", "write", path="a.py", content=content), ToolOutput("Replaced.", details)


@pytest.mark.parametrize("command", ["python -m compileall -q .", "sed -i s/1/2/ a.py"])
def test_a_check_that_says_the_same_after_each_change_is_no_circle(command):
    repetition = Repetition()
    check, silent = call("c", "bash", command=command), ToolOutput("(no output)\n[exit code 0]")
    for number in range(3 * STUCK_AT):
        repetition.with_remark(*_written(f"x = {number}", diff="-x\n+y"))
        assert repetition.with_remark(check, silent) == silent
    assert not repetition.is_stuck


def test_a_command_that_changes_a_file_each_time_is_no_circle():
    repetition = Repetition()
    details = ToolDetails(files=FileTouches(edited=("/a.py",)))
    for _ in range(3 * STUCK_AT):
        repetition.with_remark(call("c", "bash", command="./step"), ToolOutput("ok", details))
    assert not repetition.is_stuck


def test_a_command_not_made_before_may_have_changed_something():
    repetition = Repetition()
    for number in range(3 * STUCK_AT):
        repetition.with_remark(call("c", "bash", command=f"./set {number}"), ToolOutput("ok"))
        repetition.with_remark(call("c", "bash", command="pytest -q"), ToolOutput("1 failed"))
    assert not repetition.is_stuck


@pytest.mark.parametrize(
    "between",
    [
        _written("x", diff=""),
        (call("w", "edit", path="a.py"), ToolOutput("old is not in a.py.", is_error=True)),
        (call("r", "read", path="b.py"), ToolOutput("x")),
        (call("b", "bash", command="ls"), ToolOutput("a.py")),
    ],
    ids=["the same written", "an edit that failed", "a look", "the same command"],
)
def test_what_changes_nothing_does_not_hide_a_circle(between):
    repetition = Repetition()
    for _ in range(STUCK_AT + 1):
        repetition.with_remark(call("c", "bash", command="pytest -q"), ToolOutput("1 failed"))
        repetition.with_remark(*between)
    assert repetition.is_stuck


@pytest.mark.parametrize("name", trajectories() or ["none"])
def test_no_recorded_run_that_worked_is_told_that_it_goes_in_circles(name):
    repetition = Repetition()
    calls: dict[str, ToolCall] = {}
    entries = read_recorded(trajectory(name)).entries
    for message in (entry.message for entry in entries if isinstance(entry, MessageEntry)):
        match message:
            case UserMessage():
                repetition = Repetition()
            case AssistantMessage():
                calls |= {made.id: made for made in message.tool_calls}
            case ToolResultMessage() if message.tool_call_id in calls:
                output = ToolOutput(message.text, is_error=message.is_error)
                assert repetition.with_remark(calls[message.tool_call_id], output) == output
            case _:
                pass


async def test_a_model_that_repeats_itself_is_told_and_then_stopped(stage):
    (stage.workspace / "a.txt").write_text("one\n")
    provider = ScriptedProvider(lambda _: Reply(tool_calls=(call("c", "read", path="a.txt"),)))
    runtime = stage.runtime(provider)
    events = await collect(runtime.submit("go"))
    results = [event.message.text for event in of_kind(events, ToolFinished)]
    assert len(results) == STUCK_AT
    remarks = ["same result" in text for text in results]
    assert remarks == [number >= REMARK_AT for number in range(1, STUCK_AT + 1)]
    end = only(events, TurnFinished)
    assert (end.outcome, end.can_continue) == ("error", True)
    assert "repeating tool calls without making progress" in end.error


async def test_a_model_that_only_writes_calls_nobody_can_run_is_stopped(stage):
    def made_up(request):
        number = len(provider.requests)
        return Reply(tool_calls=(call(f"c{number}", f"search{number}", query="x"),))

    provider = ScriptedProvider(made_up)
    events = await collect(stage.runtime(provider).submit("go"))
    assert len(of_kind(events, ToolFinished)) == MOST_REFUSED
    assert only(events, TurnFinished).outcome == "error"


def test_a_call_that_can_be_run_ends_a_row_of_refused_ones():
    repetition = Repetition()
    for number in range(3 * MOST_REFUSED):
        repetition.count_reply(is_refused=number % MOST_REFUSED != 0)
    assert not repetition.is_stuck


async def test_the_next_turn_begins_anew(stage):
    (stage.workspace / "a.txt").write_text("one\n")
    reads = [Reply(tool_calls=(call("c", "read", path="a.txt"),))] * (REMARK_AT - 1)
    runtime = stage.runtime([*reads, Reply(text="Done."), *reads, Reply(text="Done again.")])
    await collect(runtime.submit("go"))
    events = await collect(runtime.submit("once more"))
    assert only(events, TurnFinished).outcome == "done"
    assert not any("same result" in e.message.text for e in of_kind(events, ToolFinished))


@pytest.mark.parametrize(
    "text",
    [
        "-" * 4_000,
        "| 0 | 0 | 0 | 0 |\n" * 200,
        "".join(f"line {number} of the listing\n" for number in range(300)),
        "x = fold(a, b)\n" * 9,
    ],
)
def test_rulers_tables_and_listings_are_no_loop(text):
    watch = LoopWatch()
    assert not any(watch.is_looping(text[i : i + 7]) for i in range(0, len(text), 7))


@pytest.mark.parametrize(
    "passage", ["You are here to help. ", "\n- the same file again, and again"]
)
def test_a_passage_without_end_is_a_loop_however_it_is_cut(passage):
    text = "It begins well. " + passage * 100
    for size in (1, 9, 500):
        watch = LoopWatch()
        assert any(watch.is_looping(text[i : i + size]) for i in range(0, len(text), size))


async def test_a_reply_in_a_loop_is_stopped_and_kept(stage):
    runtime = stage.runtime([Reply(text="Well. " + "I can help you with that. " * 500)])
    conversation = runtime.conversation
    conversation.model_info = replace(conversation.model_info, writes_calls=True)
    end = only(await collect(runtime.submit("hi")), TurnFinished)
    assert (end.outcome, end.can_continue) == ("error", True)
    assert "repeating the same text" in end.error
    kept = runtime.conversation.log.path_entries()[-1].message.text
    assert kept.startswith("Well. I can help")
    assert len(kept) < 2_000


def test_a_count_without_end_goes_round_and_a_listing_does_not():
    assert goes_round("One, then:\n" + "".join(f"- {number}\n" for number in range(400)))
    assert not goes_round("".join(f"line {number} of the listing\n" for number in range(300)))
    assert not goes_round("0" * 399)


@pytest.mark.parametrize("is_weak", [True, False])
async def test_a_count_that_was_cut_is_not_gone_on_from_by_a_weak_model(stage, is_weak):
    count = "".join(f"- {number}\n" for number in range(400))
    provider = ScriptedProvider([Reply(text=count, finish="length"), Reply(text="Done.")])
    runtime = stage.runtime(provider)
    conversation = runtime.conversation
    conversation.model_info = replace(conversation.model_info, writes_calls=is_weak)
    end = only(await collect(runtime.submit("hi")), TurnFinished)
    assert end.outcome == ("length" if is_weak else "done")
    assert end.can_continue == is_weak
    assert len(provider.requests) == (1 if is_weak else 2)


def test_a_call_made_again_after_its_result_has_gone_is_no_circle():
    repetition = Repetition()
    read = call("c", "read", path="a.py")
    for _ in range(10):
        for _ in range(2):
            assert repetition.with_remark(read, ToolOutput("same")).for_model == "same"
        repetition.forget_single_calls()
    assert not repetition.is_stuck


async def test_what_is_read_again_after_the_compact_tool_is_no_circle(stage):
    reads = [Reply(tool_calls=(call(f"c{n}", "ls"),)) for n in range(4)]
    asks = Reply(tool_calls=(call("k1", "compact"),))
    script = Script(Reply(text=SUMMARY))
    script.turns.extend((*reads[:2], asks, *reads[2:]))
    scene = Scene(stage, script, 40_000)
    events = await collect(scene.begin())
    assert only(events, CompactionFinished).reason == "tool"
    results = [event.message.text for event in of_kind(events, ToolFinished)]
    assert not any("with the same result" in text for text in results)


def test_a_circle_goes_on_being_one_across_compactions():
    repetition = Repetition()
    read = call("c", "read", path="a.py")
    for _ in range(2):
        for _ in range(3):
            repetition.with_remark(read, ToolOutput("same"))
        repetition.forget_single_calls()
    assert repetition.is_stuck
