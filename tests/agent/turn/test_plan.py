"""A plan that is handed over, from plan mode to the work and over a compaction."""

import shutil
from pathlib import Path

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.attachments import approving_message, plan_approved_by
from agent_tui.config import PermissionMode
from agent_tui.events import (
    AgentEvent,
    ApprovalRequest,
    ApprovalRequested,
    Notice,
    PlanHandedOver,
    TodosChanged,
    ToolFinished,
    TurnFinished,
)
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import ToolResultMessage, UserMessage
from agent_tui.sessions.entries import MessageEntry
from tests.support.runtime import GOOD_SUMMARY, Stage

PLAN = "# Shout\n\n1. Change greet\n2. Run the tests"
HANDED_OVER = Reply(tool_calls=(call("p1", "plan", plan=PLAN),))


def planning(stage: Stage, *replies: Reply, mode: PermissionMode = "plan") -> AgentRuntime:
    return stage.runtime([HANDED_OVER, *replies], mode=mode)


async def answered(
    runtime: AgentRuntime, answer: ApprovalAnswer, asked: list[ApprovalRequest]
) -> list[AgentEvent]:
    events: list[AgentEvent] = []
    async for event in runtime.submit("make it shout"):
        events.append(event)
        if isinstance(event, ApprovalRequested):
            asked.append(event.request)
            runtime.pending_approvals.answer(event.request.id, answer)
    return events


def said(runtime: AgentRuntime) -> list[str]:
    messages = (e.message for e in runtime.conversation.log.entries if isinstance(e, MessageEntry))
    return [message.text for message in messages if isinstance(message, UserMessage)]


def result(runtime: AgentRuntime) -> ToolResultMessage:
    messages = (e.message for e in runtime.conversation.log.entries if isinstance(e, MessageEntry))
    return next(message for message in messages if isinstance(message, ToolResultMessage))


async def test_an_approved_plan_is_worked_by_and_is_the_to_do_list(tmp_path: Path):
    runtime, asked = planning(Stage(tmp_path), Reply("Done.")), list[ApprovalRequest]()
    events = await answered(runtime, ApprovalAnswer("session"), asked)
    (request,) = asked
    assert (request.body_kind, request.body, request.title) == ("plan", PLAN, "Shout")
    assert runtime.conversation.permissions.mode == "accept-edits"
    assert [todo.text for todo in runtime.conversation.todos] == ["Change greet", "Run the tests"]
    assert any(isinstance(event, TodosChanged) for event in events)
    assert any(isinstance(e, Notice) and "accept-edits" in e.text for e in events)
    assert said(runtime) == ["make it shout", f"I approve this plan. Follow it:\n\n{PLAN}"]
    assert "approved the plan." in result(runtime).text


async def test_with_once_each_change_is_asked_about(tmp_path: Path):
    runtime = planning(Stage(tmp_path), Reply("Done."))
    await answered(runtime, ApprovalAnswer("once"), [])
    assert runtime.conversation.permissions.mode == "ask"


async def test_the_plan_is_what_the_person_made_of_it(tmp_path: Path):
    runtime = planning(Stage(tmp_path), Reply("Done."))
    await answered(runtime, ApprovalAnswer("once", plan="1. Only this"), [])
    assert said(runtime)[1] == "I approve this plan. Follow it:\n\n1. Only this"
    assert "with changes" in result(runtime).text
    assert [todo.text for todo in runtime.conversation.todos] == ["Only this"]


async def test_what_is_missing_goes_to_the_model_which_goes_on_planning(tmp_path: Path):
    runtime = planning(Stage(tmp_path), Reply("I will think of the docs."))
    await answered(runtime, ApprovalAnswer("no", "what about the docs?"), [])
    assert runtime.conversation.permissions.mode == "plan"
    assert result(runtime).text.endswith("They say: what about the docs?")
    assert result(runtime).tool_details.user_words == "what about the docs?"
    assert said(runtime) == ["make it shout"]
    assert runtime.conversation.todos == []


async def test_outside_of_plan_mode_there_is_nothing_to_approve(tmp_path: Path):
    runtime, asked = planning(Stage(tmp_path), Reply("Ok."), mode="ask"), list[ApprovalRequest]()
    await answered(runtime, ApprovalAnswer("once"), asked)
    assert (asked, result(runtime).is_error) == ([], True)


async def test_with_nobody_there_the_turn_ends_with_the_plan(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = stage.runtime([HANDED_OVER], mode="plan", is_interactive=False)
    events = await answered(runtime, ApprovalAnswer("once"), [])
    assert PlanHandedOver("p1", PLAN) in events
    assert events[-1] == TurnFinished("done")
    assert (len(stage.model.requests), result(runtime).is_error) == (1, False)


async def test_a_no_without_words_ends_the_turn(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = stage.runtime([HANDED_OVER], mode="plan")
    events = await answered(runtime, ApprovalAnswer("no"), [])
    assert events[-1] == TurnFinished("aborted", can_continue=True)
    assert (len(stage.model.requests), runtime.conversation.permissions.mode) == (1, "plan")
    assert result(runtime).tool_details.ending == "declined"


async def test_a_file_that_the_plan_mentions_does_not_go_along(tmp_path: Path):
    stage = Stage(tmp_path)
    (stage.workspace / "notes.txt").write_text("private words", "utf-8")
    mentions = call("p1", "plan", plan="1. Look at @notes.txt")
    runtime = stage.runtime([Reply(tool_calls=(mentions,)), Reply("Done.")], mode="plan")
    await answered(runtime, ApprovalAnswer("once"), [])
    assert said(runtime)[1] == "I approve this plan. Follow it:\n\n1. Look at @notes.txt"


async def test_an_approval_is_not_lost_when_the_turn_is_stopped_at_once(tmp_path: Path):
    runtime = Stage(tmp_path).runtime([HANDED_OVER], mode="plan")
    async for event in runtime.submit("make it shout"):
        if isinstance(event, ApprovalRequested):
            runtime.pending_approvals.answer(event.request.id, ApprovalAnswer("once"))
        if isinstance(event, ToolFinished):
            runtime.abort()
    assert said(runtime)[1:] == [f"I approve this plan. Follow it:\n\n{PLAN}"]
    assert runtime.conversation.queue.messages == []


async def test_the_plan_comes_behind_all_results_of_its_reply(tmp_path: Path):
    stage = Stage(tmp_path)
    both = Reply(tool_calls=(call("p1", "plan", plan=PLAN), call("l1", "ls")))
    runtime = stage.runtime([both, Reply("Done.")], mode="plan")
    await answered(runtime, ApprovalAnswer("once"), [])
    kinds = [message.role for message in stage.model.requests[-1].messages]
    assert kinds == ["user", "assistant", "toolResult", "toolResult", "user"]


def test_approvals_of_earlier_versions_are_recognised():
    assert plan_approved_by("I approve this plan. Work by it:\n\n# Shout") == "# Shout"
    assert plan_approved_by(approving_message("# Shout")) == "# Shout"
    assert plan_approved_by("I approve of it.") == ""


async def test_a_session_with_an_approved_plan_is_resumed_with_it(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = stage.runtime([HANDED_OVER, Reply("Done.")], mode="plan")
    await answered(runtime, ApprovalAnswer("once", plan="1. Only this"), [])
    again = stage.runtime([])
    await again.sessions.open(runtime.conversation.log.header.id, mode="fork")
    assert [todo.text for todo in again.conversation.todos] == ["Only this"]
    assert again.conversation.request().messages == runtime.conversation.request().messages


async def test_a_session_killed_at_the_question_goes_on_without_an_approval(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = stage.runtime([HANDED_OVER], mode="plan")
    again = stage.runtime([Reply("Yes.")], mode="plan")
    async for event in runtime.submit("make it shout"):
        if isinstance(event, ApprovalRequested):  # what the file holds now is left by a kill
            await again.sessions.open(runtime.conversation.log.header.id, mode="fork")
            runtime.abort()
    await answered(again, ApprovalAnswer("no"), [])
    messages = again.conversation.request().messages
    kinds = [message.role for message in messages]
    assert kinds == ["user", "assistant", "toolResult", "user", "assistant"]
    assert [m.is_error for m in messages if isinstance(m, ToolResultMessage)] == [True]
    assert (again.conversation.todos, again.conversation.permissions.mode) == ([], "plan")


async def test_a_session_killed_behind_an_approval_opens_in_the_mode_that_it_chose(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = stage.runtime([HANDED_OVER, Reply("Done.")], mode="plan")
    modes: list[str] = []
    async for event in runtime.submit("make it shout"):
        if isinstance(event, ApprovalRequested):
            runtime.pending_approvals.answer(event.request.id, ApprovalAnswer("session"))
        elif isinstance(event, Notice) and event.text.startswith("Plan approved"):
            path = runtime.conversation.log.path
            assert path is not None
            killed = path.with_name("killed.jsonl")
            shutil.copy(path, killed)
            again = stage.runtime([], mode="ask")
            await again.sessions.open(str(killed))
            modes.append(again.conversation.permissions.mode)
    assert modes == ["accept-edits"]


async def test_the_tools_follow_the_mode(tmp_path: Path):
    runtime = planning(Stage(tmp_path), Reply("Done."))
    before = {tool.name for tool in runtime.conversation.prompt.tools}
    await answered(runtime, ApprovalAnswer("session"), [])
    after = {tool.name for tool in runtime.conversation.prompt.tools}
    assert ("plan" in before, "write" in before) == (True, False)
    assert ("plan" in after, "write" in after) == (False, True)


async def test_a_compaction_keeps_the_plan_word_for_word(tmp_path: Path):
    runtime = planning(Stage(tmp_path), Reply("Done."), Reply(GOOD_SUMMARY), Reply("Yes."))
    await answered(runtime, ApprovalAnswer("session"), [])
    async for _event in runtime.compact():
        pass
    request = runtime.conversation.request()
    context = "\n".join([request.system, *(message.text for message in request.messages)])
    assert "1. Change greet\n2. Run the tests" in context
    assert [todo.text for todo in runtime.conversation.todos] == ["Change greet", "Run the tests"]
