from dataclasses import replace

import pytest

from agent_tui.agent.turn.repetition import (
    ALIKE_AT,
    MOST_REFUSED,
    REMARK_AT,
    RENUMBERED_AT,
    SILENT_AT,
    STUCK_AT,
    LoopWatch,
    Repetition,
    goes_round,
)
from agent_tui.events import CompactionFinished, ToolFinished, TurnFinished
from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.messages import (
    AssistantMessage,
    FileTouches,
    ToolCall,
    ToolDetails,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.entries import MessageEntry
from agent_tui.tools.base import ToolOutput
from tests.support.compaction_ways import SUMMARY, Scene, Script
from tests.support.importers.formats import read_recorded
from tests.support.rows import each_row
from tests.support.runtime import collect, of_kind, only
from tests.support.trajectories import trajectories, trajectory


def test_a_call_with_another_result_or_other_arguments_is_no_repetition():
    repetition = Repetition()
    for number in range(3 * STUCK_AT):
        output = ToolOutput(f"line {number}")
        assert repetition.with_remark(call("c", "bash", command="tail log"), output) == output
        same = ToolOutput("same")
        assert repetition.with_remark(call("c", "read", path=f"{number}.txt"), same) == same
    assert not repetition.stuck


@pytest.mark.parametrize("names", ["ab", "abc", "abcd", "abcde"])
def test_going_round_in_a_circle_is_noticed_too(names):
    repetition = Repetition()
    for _ in range(STUCK_AT):
        for name in names:
            repetition.with_remark(call("c", "read", path=name), ToolOutput(name))
    assert repetition.stuck


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
    assert not repetition.stuck


def test_a_command_that_changes_a_file_each_time_is_no_circle():
    repetition = Repetition()
    details = ToolDetails(files=FileTouches(edited=("/a.py",)))
    for _ in range(3 * STUCK_AT):
        repetition.with_remark(call("c", "bash", command="./step"), ToolOutput("ok", details))
    assert not repetition.stuck


def test_a_command_not_made_before_may_have_changed_something():
    repetition = Repetition()
    for number in range(3 * STUCK_AT):
        repetition.count_reply(is_refused=False)
        repetition.with_remark(call("c", "bash", command=f"./set {number}"), ToolOutput("ok"))
        repetition.with_remark(call("c", "bash", command="pytest -q"), ToolOutput("1 failed"))
    assert not repetition.stuck


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
    assert repetition.stuck


@each_row("name", trajectories() or ["none"])
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
    assert (end.outcome, end.can_continue) == ("limit", True)
    assert "repeating tool calls without making progress" in end.error


async def test_a_call_with_small_changes_is_stopped_at_a_limit_that_is_named(stage):
    def made(request):
        number = len(provider.requests)
        return Reply(
            tool_calls=(call(f"c{number}", "bash", command=f"test {number} -gt 0 && echo yes"),)
        )

    provider = ScriptedProvider(made)
    runtime = stage.runtime(provider)
    end = only(await collect(runtime.submit("go")), TurnFinished)
    assert len(provider.requests) == ALIKE_AT
    assert (end.outcome, end.can_continue) == ("limit", True)
    assert f"calls of {ALIKE_AT} replies had the same result" in end.error
    assert "/model" in end.error


async def test_a_model_that_only_writes_calls_nobody_can_run_is_stopped(stage):
    def made_up(request):
        number = len(provider.requests)
        return Reply(tool_calls=(call(f"c{number}", f"search{number}", query="x"),))

    provider = ScriptedProvider(made_up)
    events = await collect(stage.runtime(provider).submit("go"))
    assert len(of_kind(events, ToolFinished)) == MOST_REFUSED
    assert only(events, TurnFinished).outcome == "limit"


def test_a_call_that_can_be_run_ends_a_row_of_refused_ones():
    repetition = Repetition()
    for number in range(3 * MOST_REFUSED):
        repetition.count_reply(is_refused=number % MOST_REFUSED != 0)
    assert not repetition.stuck


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


async def test_the_third_of_the_same_looks_is_told_however_often_the_model_compacts(stage):
    reads = [Reply(tool_calls=(call(f"c{n}", "ls"),)) for n in range(3)]
    asks = Reply(tool_calls=(call("k1", "compact"),))
    script = Script(Reply(text=SUMMARY))
    script.turns.extend((*reads[:2], asks, *reads[2:]))
    scene = Scene(stage, script, 40_000)
    events = await collect(scene.begin())
    assert only(events, CompactionFinished).reason == "tool"
    results = [event.message for event in of_kind(events, ToolFinished)]
    told = ["3 times with the same result" in result.text for result in results]
    assert [result.tool_name for result in results] == ["ls", "ls", "compact", "ls"]
    assert told == [False, False, False, True]


def _lines(first: int, last: int) -> ToolOutput:
    text = "\n".join(f"{number}\tx = {number}" for number in range(first, last + 1))
    return ToolOutput(f"{text}\n[lines {first}-{last} of 900; use offset={last + 1} for more]")


def test_a_file_read_in_ranges_is_progress_whatever_is_asked_in_between():
    repetition = Repetition()
    clean = call("s", "bash", command="git status"), ToolOutput("clean\n[exit code 0]")
    for first in range(1, 900, 50):
        assert repetition.with_remark(*clean) == clean[1]
        read = call("r", "read", path="a.py", offset=first)
        assert repetition.with_remark(read, _lines(first, first + 49)) == _lines(first, first + 49)
        assert repetition.has_progressed
    assert not repetition.stuck


@pytest.mark.parametrize("last", [80, 60, 100])
def test_a_range_read_again_is_no_progress_wherever_it_is_cut(last: int):
    repetition = Repetition()
    read = call("r", "read", path="a.py")
    repetition.with_remark(read, _lines(1, 100))
    assert repetition.has_progressed
    repetition.with_remark(read, _lines(1, last))
    assert not repetition.has_progressed


_SAME = ToolOutput("(no output)\n[exit code 0]")
_ALMOST = {
    "sleep": lambda n: call("c", "bash", command=f"sleep {n}"),
    "flags": lambda n: call("c", "bash", command="grep -" + "nirwloHhc"[n % 9] * (n + 1) + " x a"),
    "search": lambda n: call("c", "grep", pattern="x", context=n),
}


@pytest.mark.parametrize("name", _ALMOST)
def test_one_call_with_small_changes_is_told_and_then_stopped(name: str):
    repetition = Repetition()
    remarks: list[bool] = []
    while not repetition.stuck:
        repetition.count_reply(is_refused=False)
        told = repetition.with_remark(_ALMOST[name](len(remarks)), _SAME)
        remarks.append(f"after {ALIKE_AT}, the turn is stopped" in told.for_model)
    assert len(remarks) == ALIKE_AT
    assert remarks.index(True) == ALIKE_AT // 2 - 1
    assert str(ALIKE_AT) in repetition.stuck


def test_equal_results_with_something_new_in_between_are_no_circle():
    repetition = Repetition()
    for number in range(3 * ALIKE_AT):
        repetition.count_reply(is_refused=False)
        repetition.with_remark(call("c", "bash", command=f"./set {number}"), _SAME)
        if number % ALIKE_AT // 2 == 0:
            log = ToolOutput(f"{'=' * number} done\n[exit code 0]")
            repetition.with_remark(call("c", "bash", command="tail -1 log"), log)
    assert not repetition.stuck


def test_a_wait_may_take_as_many_calls_as_any_equal_results():
    repetition = Repetition()
    poll = call("c", "bash", command="sleep 5; curl -s localhost:8000")
    slow = ToolOutput("[exit code 7]", ToolDetails(elapsed_ms=5_000), is_error=True)
    for _ in range(ALIKE_AT - 1):
        repetition.count_reply(is_refused=False)
        repetition.with_remark(poll, slow)
    assert not repetition.stuck
    repetition.count_reply(is_refused=False)
    repetition.with_remark(poll, slow)
    assert repetition.stuck


def test_many_calls_of_one_reply_with_the_same_result_are_one_look():
    repetition = Repetition()
    repetition.count_reply(is_refused=False)
    for number in range(3 * ALIKE_AT):
        none = ToolOutput("No matches.")
        assert repetition.with_remark(call("c", "grep", pattern=f"p{number}"), none) == none
    assert not repetition.stuck


def test_a_plan_and_a_job_that_are_looked_at_at_each_step_are_no_circle():
    repetition = Repetition()
    for number in range(3 * ALIKE_AT):
        repetition.count_reply(is_refused=False)
        plan = ToolOutput(f"{number} of {3 * ALIKE_AT} done")
        assert repetition.with_remark(call("t", "todo", todos=[f"step {number}"]), plan) == plan
        assert not repetition.has_progressed
        state = ToolOutput(f"(no output)\n[job 1: running for {number} s]")
        assert repetition.with_remark(call("j", "job", id="1", wait=1), state) == state
    assert not repetition.stuck


def test_a_long_output_is_the_same_though_each_is_stored_in_its_own_file():
    repetition = Repetition()
    for number in range(STUCK_AT):
        path = f"/outputs/bash-{number}.log"
        details = ToolDetails(full_output_path=path)
        output = ToolOutput(
            f"1\n[... 9 lines, 9 bytes left out ...]\n[whole output: {path}]", details
        )
        repetition.with_remark(call("c", "bash", command="cat big"), output)
    assert repetition.stuck


def test_a_file_that_cannot_be_read_is_no_progress():
    repetition = Repetition()
    output = ToolOutput("There is no file x1.py.", is_error=True)
    repetition.with_remark(call("r", "read", path="x1.py"), output)
    assert not repetition.has_progressed


def test_the_same_test_run_after_each_edit_is_progress():
    repetition = Repetition()
    run, failed = call("c", "bash", command="pytest -q"), ToolOutput("1 failed", is_error=True)
    for number in range(3 * ALIKE_AT):
        repetition.count_reply(is_refused=False)
        repetition.with_remark(*_written(f"x = {number}", diff="-x\n+y"))
        assert repetition.has_progressed
        assert repetition.with_remark(run, failed) == failed
        assert repetition.has_progressed
    assert not repetition.stuck


def test_a_file_that_alternates_between_two_texts_is_a_circle():
    repetition, replies = Repetition(), 0
    run = call("c", "bash", command="pytest -q")
    while not repetition.stuck and replies < 100:
        old, new = ("one", "two") if replies % 2 else ("two", "one")
        repetition.count_reply(is_refused=False)
        repetition.with_remark(*_written(new, diff=f"-{old}\n+{new}"))
        repetition.with_remark(run, ToolOutput(f"1 failed in 0.{replies} s", is_error=True))
        replies += 1
    assert 2 * REMARK_AT < replies <= 2 * STUCK_AT + 2
    assert not repetition.has_progressed


def test_a_change_made_again_beside_new_ones_is_no_circle():
    repetition = Repetition()
    for number in range(3 * STUCK_AT):
        for made in (
            _written("print", diff="+print"),
            _written("", diff="-print"),
            _written(str(number), diff=f"+{number}"),
        ):
            repetition.with_remark(*made)
        assert repetition.has_progressed
    assert not repetition.stuck


def test_a_long_task_of_commands_that_print_nothing_is_work():
    repetition, stuck_after = Repetition(), 0
    while not repetition.stuck:
        stuck_after += 1
        repetition.count_reply(is_refused=False)
        call = ToolCall(id="c", name="bash", arguments={"command": f"mv {stuck_after} done"})
        repetition.with_remark(call, ToolOutput("[exit code 0]", ToolDetails(printed_lines=0)))
    assert stuck_after == SILENT_AT
    assert str(SILENT_AT) in repetition.stuck


def test_the_same_command_that_prints_the_time_is_no_progress_until_a_file_changes():
    repetition = Repetition()
    command = call("c", "bash", command="cat a.py; date +%s%N")
    seen: list[bool] = []
    for number in range(3):
        repetition.with_remark(command, ToolOutput(f"x = 1\n{number}"))
        seen.append(repetition.has_progressed)
    repetition.with_remark(*_written("2", diff="+2"))
    repetition.with_remark(command, ToolOutput("x = 2\n4"))
    assert (seen, repetition.has_progressed) == ([True, False, False], True)


def _progress(*steps: tuple[str, str]) -> list[bool]:
    repetition = Repetition()
    seen: list[bool] = []
    for command, printed in steps:
        repetition.with_remark(call("c", "bash", command=command), ToolOutput(printed))
        seen.append(repetition.has_progressed)
    return seen


def test_a_command_that_the_model_numbers_itself_is_progress_once():
    assert _progress(*((f"echo step {n}", f"step {n}") for n in range(14, 20))) == [
        True,
        *[False] * 5,
    ]
    repetition = Repetition()
    for number in range(3):
        step = call("c", "bash", command=f"echo step {number}")
        repetition.with_remark(step, ToolOutput(f"step {number}"))
        assert repetition.has_progressed
        repetition.with_remark(*_written(str(number), diff="+x"))


def test_other_lines_of_a_file_that_a_command_shows_are_progress():
    words = ["import os", "import sys", "def main():", "    return 1"]
    steps = [(f"sed -n {n}p a.py", word) for n, word in enumerate(words)]
    assert _progress(*steps) == [True] * 4
    assert _progress(*steps, *steps)[4:] == [False] * 4


_DETAILS = ToolDetails(printed_lines=1)
_CIRCLES = {
    "echo": lambda n: (f"echo step {n}", f"step {n}"),
    "clock": lambda n: ("date +%T", f"08:00:{n}"),
    "both": lambda n: (f"echo {n}; date", f"{n}\nSun Nov 29 08:04:{n} UTC 2026"),
}


def _stops_after(*make, most: int = 1_000) -> tuple[Repetition, list[str]]:
    """What the model is shown of calls made in turn, one a reply, until it is stopped."""
    repetition, shown = Repetition(), []
    while not repetition.stuck and len(shown) < most:
        repetition.count_reply(is_refused=False)
        command, printed, *details = make[len(shown) % len(make)](len(shown))
        output = ToolOutput(printed, *(details or [_DETAILS]))
        made = repetition.with_remark(call("c", "bash", command=command), output)
        shown.append(made.for_model.removeprefix(printed))
    return repetition, shown


@pytest.mark.parametrize("name", _CIRCLES)
def test_calls_that_differ_in_digits_alone_are_told_and_then_stopped(name: str):
    repetition, remarks = _stops_after(_CIRCLES[name])
    assert len(remarks) == RENUMBERED_AT + 1  # the first one was new
    told = [bool(remark) for remark in remarks]
    assert told == [number >= RENUMBERED_AT // 2 for number in range(RENUMBERED_AT + 1)]
    assert f"after {RENUMBERED_AT}, the turn is stopped" in remarks[-1]
    assert f"calls of {RENUMBERED_AT} replies differed only in digits" in repetition.stuck


_WAITED = ToolDetails(printed_lines=1, elapsed_ms=2_000)
_POLLS = {
    "wait": [lambda n: ("sleep 2; curl -s :80", f"{n} %", _WAITED)],
    "wait, then look": [
        lambda n: ("sleep 60", "done", _WAITED),
        lambda n: ("curl -s :80", f"{n} %"),
    ],
    "tests": [lambda n: (f"pytest tests/test_{n}.py", f"1 passed in 0.{n}s")],
    "silent": [lambda n: (f"mv {n} done", "[exit code 0]", ToolDetails(printed_lines=0))],
}


@pytest.mark.parametrize(("is_new", "most"), [(True, SILENT_AT), (False, RENUMBERED_AT)])
def test_numbered_commands_that_may_change_something_are_work_while_the_number_is_new(
    is_new: bool, most: int
):
    repetition, replies = Repetition(), 0
    while not repetition.stuck:
        replies += 1
        repetition.count_reply(is_refused=False)
        command = call("c", "bash", command=f"./migrate {replies if is_new else 7}")
        output = ToolOutput(f"migrated {replies}: ok", _DETAILS)
        repetition.with_remark(command, output, only_reads=False)
    assert replies == most + 1


async def test_numbered_commands_of_the_project_go_on_until_they_are_done(stage):
    script = stage.workspace / "migrate"
    script.write_text("#!/bin/sh\necho migrated $1\n")
    script.chmod(0o755)
    steps = [
        Reply(tool_calls=(call(f"c{n}", "bash", command=f"./migrate {n}"),))
        for n in range(RENUMBERED_AT + 5)
    ]
    provider = ScriptedProvider([*steps, Reply(text="Done.")])
    end = only(await collect(stage.runtime(provider).submit("go")), TurnFinished)
    assert end.outcome == "done"


@pytest.mark.parametrize("name", _POLLS)
def test_waits_tests_and_silent_commands_may_go_on_ten_times_as_long(name: str):
    _, shown = _stops_after(*_POLLS[name])
    assert SILENT_AT <= len(shown) <= SILENT_AT + 2


def test_something_new_between_renumbered_calls_is_progress():
    news = (word + other for word in "abcdefgh" for other in "abcdefgh")
    steps = [_CIRCLES["echo"]] * (RENUMBERED_AT // 2 - 1)
    repetition, remarks = _stops_after(*steps, lambda n: ("tail log", next(news)), most=400)
    assert not repetition.stuck
    assert not any(remarks)


async def test_a_clock_that_is_asked_again_and_again_ends_the_turn_as_a_limit(stage):
    def made(request):
        number = len(provider.requests)
        return Reply(tool_calls=(call(f"c{number}", "bash", command=f"echo step {number}"),))

    provider = ScriptedProvider(made)
    end = only(await collect(stage.runtime(provider).submit("go")), TurnFinished)
    assert len(provider.requests) == RENUMBERED_AT + 1
    assert (end.outcome, end.can_continue) == ("limit", True)
    assert "differed only in digits" in end.error
