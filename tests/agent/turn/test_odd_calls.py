"""Calls that break what looks at them end no turn: the model is told, or the person is asked."""

from collections.abc import Sequence

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.events import ApprovalRequested, ToolFinished, TurnFinished
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import ToolCall, ToolResultMessage, Usage
from agent_tui.permissions.command_judge import CommandJudge
from agent_tui.tools.read import ReadTool
from tests.support.odd_texts import LONG_PATTERN, ODD_TEXTS
from tests.support.runtime import Stage, collect, of_kind, only


async def _results(runtime: AgentRuntime) -> list[ToolResultMessage]:
    """The results of a turn that has to come to its good end."""
    events = await collect(runtime.submit("go"))
    assert only(events, TurnFinished).outcome == "done"
    return [event.message for event in of_kind(events, ToolFinished)]


def _runtime(stage: Stage, *calls: ToolCall, **how: object) -> AgentRuntime:
    # Long calls are compacted, which may ask the model twice what to keep.
    replies = [Reply(tool_calls=calls, usage=Usage()), *[Reply(text="Done.")] * 3]
    return stage.runtime(replies, **how)  # type: ignore[arg-type]


def _harmless(text: str) -> Sequence[ToolCall]:
    quoted = "'" + text.replace("'", "") + "'"
    return (
        call("c1", "read", path=text or "."),
        call("c2", "grep", pattern="x", path=text or "."),
        call("c3", "find", pattern=text or "x"),
        call("c4", "ls", path=text or "."),
        call("c5", "bash", command=f"grep -rnE {quoted} src"),
        call("c6", "bash", command=f": {quoted}"),
        call("c7", "todo", todos=text),
        call("c8", "recall", query=text or "x"),
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=name, marks=[pytest.mark.thorough] * (len(text) >= 100_000))
        for name, text in ODD_TEXTS.items()
    ],
)
async def test_odd_arguments_end_no_turn(stage: Stage, text: str):
    (stage.workspace / "circle").symlink_to("circle")
    (stage.workspace / "src").mkdir()
    calls = _harmless(text)
    runtime = _runtime(stage, *calls, is_interactive=False, window=50_000_000)
    assert [one.tool_call_id for one in await _results(runtime)] == [one.id for one in calls]


@pytest.mark.parametrize("mode", ["ask", "full", "plan"])
async def test_a_search_for_many_words_runs_in_every_mode(stage: Stage, mode: str):
    (stage.workspace / "src").mkdir()
    (stage.workspace / "src" / "a.py").write_text("word_7\n")
    search = call("c1", "bash", command=f"grep -rnE '{LONG_PATTERN}' src")
    (result,) = await _results(_runtime(stage, search, mode=mode))
    assert "src/a.py:1:word_7" in result.text


def _break(*_given: object) -> None:
    raise ZeroDivisionError("secret words of a model")


def _take_faults(runtime: AgentRuntime) -> list[BaseException]:
    faults: list[BaseException] = []
    runtime.services.report_fault = faults.append
    return faults


@pytest.mark.parametrize("method", ["intent", "run"])
async def test_whatever_a_tool_raises_is_an_error_for_the_model(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, method: str
):
    monkeypatch.setattr(ReadTool, method, _break)
    (stage.workspace / "a.txt").write_text("x")
    calls = (call("c1", "read", path="a.txt"), call("c2", "ls"))
    runtime = _runtime(stage, *calls)
    faults = _take_faults(runtime)
    broken, listed = await _results(runtime)
    assert broken.is_error
    assert "read failed with an internal error (ZeroDivisionError)" in broken.text
    assert "secret words" not in broken.text
    assert "a.txt" in listed.text
    assert [type(fault) for fault in faults] == [ZeroDivisionError]


async def test_a_command_that_breaks_its_judge_is_asked_about_and_logged(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(CommandJudge, "facts", property(_break))
    runtime = _runtime(stage, call("c1", "bash", command="echo hello"), mode="full")
    faults = _take_faults(runtime)
    asked: list[ApprovalRequested] = []
    finished: list[ToolFinished] = []
    async for event in runtime.submit("go"):
        if isinstance(event, ApprovalRequested):
            asked.append(event)
            runtime.pending_approvals.answer(event.request.id, ApprovalAnswer("once"))
        elif isinstance(event, ToolFinished):
            finished.append(event)
    assert ["permission check failed" in one.request.reason for one in asked] == [True]
    assert [one.request.session_rule for one in asked] == [""]
    assert "hello" in finished[0].message.text
    assert faults


async def test_a_command_that_breaks_its_judge_is_refused_where_nobody_is_asked(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(CommandJudge, "facts", property(_break))
    runtime = _runtime(
        stage, call("c1", "bash", command="touch made"), mode="full", is_interactive=False
    )
    (result,) = await _results(runtime)
    assert "permission check failed" in result.text
    assert not (stage.workspace / "made").exists()
