from agent_tui.agent.repetition import REMARK_AT, STUCK_AT, Repetition
from agent_tui.events import ToolFinished, TurnFinished
from agent_tui.providers.scripted import Reply, ScriptedProvider, call
from agent_tui.tools.base import ToolOutput
from tests.support.runtime import collect, of_kind, only


def test_a_call_with_another_result_or_other_arguments_is_no_repetition():
    repetition = Repetition()
    for number in range(3 * STUCK_AT):
        output = ToolOutput(f"line {number}")
        assert repetition.noticed(call("c", "bash", command="tail log"), output) == output
        same = ToolOutput("same")
        assert repetition.noticed(call("c", "read", path=f"{number}.txt"), same) == same
    assert not repetition.is_stuck


def test_going_round_in_a_circle_is_noticed_too():
    repetition = Repetition()
    for _ in range(STUCK_AT):
        for name in ("a.txt", "b.txt"):
            repetition.noticed(call("c", "read", path=name), ToolOutput(name))
    assert repetition.is_stuck


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
    assert "keeps making the same call" in end.error


async def test_the_next_turn_begins_anew(stage):
    (stage.workspace / "a.txt").write_text("one\n")
    reads = [Reply(tool_calls=(call("c", "read", path="a.txt"),))] * (REMARK_AT - 1)
    runtime = stage.runtime([*reads, Reply(text="Done."), *reads, Reply(text="Done again.")])
    await collect(runtime.submit("go"))
    events = await collect(runtime.submit("once more"))
    assert only(events, TurnFinished).outcome == "done"
    assert not any("same result" in e.message.text for e in of_kind(events, ToolFinished))
