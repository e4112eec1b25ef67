"""Real commands at each moment of a conversation, over the real runtime."""

import asyncio
import json
import os
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path

import pytest

from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.config import HookEvent, HookSettings, PermissionMode
from agent_tui.events import (
    ApprovalRequested,
    CompactionFailed,
    CompactionFinished,
    Notice,
    QueueChanged,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from agent_tui.features.context.undo import undo_compaction
from agent_tui.features.hooks.feature import FEATURE
from agent_tui.features.hooks.part import HooksPart
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.providers.wires.chat import openai_messages
from agent_tui.sessions.entries import CustomMessageEntry
from agent_tui.tools.processes.keeper import ProcessKeeper
from tests.support.patience import PATIENCE_S
from tests.support.runtime import GOOD_SUMMARY, Stage, collect, of_kind, only, roles, summary_or
from tests.support.wire_rules import openai_problems


def hook(
    command: str, matcher: str = "", timeout_s: float = PATIENCE_S
) -> tuple[HookSettings, ...]:
    return (HookSettings(command=command, matcher=matcher, timeout_s=timeout_s),)


def noting(stage: Stage, name: str = "seen") -> str:
    """A command that keeps what it reads, one line each."""
    return f"cat >> {stage.folder}/{name}; echo >> {stage.folder}/{name}"


def noted(stage: Stage, name: str = "seen") -> list[dict]:
    return [json.loads(line) for line in (stage.folder / name).read_text().splitlines() if line]


def said(value: Mapping[str, object]) -> str:
    """A command that prints `value` as JSON."""
    return f"cat > /dev/null; echo '{json.dumps(value)}'"


def hook_texts(runtime) -> list[str]:
    entries = runtime.conversation.log.path_entries()
    told = [e for e in entries if isinstance(e, CustomMessageEntry)]
    return [e.text for e in told if e.custom_type.startswith("hook")]


def decision(name: str, reason: str = "because") -> str:
    own = {"permissionDecision": name, "permissionDecisionReason": reason}
    return said({"hookSpecificOutput": {"hookEventName": "PreToolUse", **own}})


WRITE = call("c1", "write", path="a.txt", content="one\n")


def writing(stage: Stage, mode: PermissionMode = "full", **hooks: tuple[HookSettings, ...]):
    """A runtime whose model writes a file and is done."""
    given: dict[HookEvent, tuple[HookSettings, ...]] = hooks  # pyright: ignore
    return stage.runtime([Reply(tool_calls=(WRITE,)), Reply(text="Done.")], mode=mode, hooks=given)


async def test_a_hook_reads_the_call_in_shared_terms(stage):
    runtime = writing(stage, PreToolUse=hook(noting(stage)), PostToolUse=hook(noting(stage)))
    await collect(runtime.submit("go"))
    before, after = noted(stage)
    log, path = runtime.conversation.log, str(stage.workspace / "a.txt")
    assert before == {
        "session_id": log.header.id,
        "transcript_path": str(log.path),
        "cwd": str(stage.workspace),
        "permission_mode": "bypassPermissions",
        "model": "scripted/test",
        "hook_event_name": "PreToolUse",
        "tool_name": "Write",
        "tool_use_id": "c1",
        "tool_input": {"file_path": path, "content": "one\n"},
        "paths": [path],
    }
    assert after["hook_event_name"] == "PostToolUse"
    assert after["tool_input"] == before["tool_input"]
    assert after["tool_response"]["is_error"] is False


@pytest.mark.parametrize("matcher", ["Write", "Edit|Write", "write", "create_file", "*", "W.*"])
async def test_exit_code_2_refuses_a_call_that_its_matcher_means(stage, matcher):
    runtime = writing(stage, PreToolUse=hook("echo not here >&2; exit 2", matcher))
    events = await collect(runtime.submit("go"))
    result = only(events, ToolFinished).message
    assert result.is_error
    assert result.text == "Not run: a hook refused this call: not here"
    assert not (stage.workspace / "a.txt").exists()
    kinds = [type(e) for e in events if isinstance(e, ToolStarted | ToolFinished)]
    assert kinds == [ToolStarted, ToolFinished]


async def test_other_calls_are_left_alone(stage):
    others = hook("exit 2", "Edit|Bash|Rewrite|Writer")
    runtime = writing(stage, PreToolUse=(*others, *hook(noting(stage), "Write")))
    await collect(runtime.submit("go"))
    assert (stage.workspace / "a.txt").exists()
    assert len(noted(stage)) == 1


async def test_a_hook_is_told_how_a_command_ended_and_not_of_what_never_ran(stage):
    calls = (
        call("c1", "bash", command="echo hi; exit 3"),
        call("c2", "read", path="nowhere.txt"),
    )
    script = [Reply(tool_calls=calls), Reply(text="Done.")]
    runtime = stage.runtime(script, hooks={"PostToolUse": hook(noting(stage))})
    await collect(runtime.submit("go"))
    (seen,) = noted(stage)
    assert seen["tool_input"] == {"command": "echo hi; exit 3"}
    response = seen["tool_response"]
    assert (response["exit_code"], response["is_error"]) == (3, True)
    assert response["stdout"] == response["content"]
    assert response["content"].startswith("hi\n")


async def test_an_edit_hook_sees_a_patch_too(stage):
    patch = "*** Begin Patch\n*** Add File: b.txt\n+one\n*** End Patch"
    script = [Reply(tool_calls=(call("c1", "apply_patch", patch=patch),)), Reply(text="Done.")]
    runtime = stage.runtime(script, hooks={"PreToolUse": hook(noting(stage), "Edit|Write")})
    await collect(runtime.submit("go"))
    (seen,) = noted(stage)
    assert (seen["tool_name"], seen["paths"]) == ("apply_patch", [str(stage.workspace / "b.txt")])


async def test_allow_never_loosens_a_verdict(stage):
    runtime = writing(stage, mode="plan", PreToolUse=hook(decision("allow")))
    events = await collect(runtime.submit("go"))
    assert "Plan mode is on" in only(events, ToolFinished).message.text
    assert not (stage.workspace / "a.txt").exists()


async def test_the_person_is_still_asked_after_an_allow(stage):
    runtime = writing(stage, mode="ask", PreToolUse=hook(decision("allow")))
    events = await answered(runtime, "no")
    assert of_kind(events, ApprovalRequested)
    assert not (stage.workspace / "a.txt").exists()


async def answered(runtime, choice):
    events = []
    async with aclosing(runtime.submit("go")) as stream:
        async for event in stream:
            events.append(event)
            if isinstance(event, ApprovalRequested):
                runtime.pending_approvals.answer(event.request.id, ApprovalAnswer(choice))
    return events


async def test_ask_has_the_person_asked_about_what_would_run_unasked(stage):
    runtime = writing(stage, PreToolUse=hook(decision("ask", "look at it")))
    events = await answered(runtime, "once")
    request = only(events, ApprovalRequested).request
    assert (request.reason, request.session_rule, request.is_edit) == ("look at it", "", False)
    assert (stage.workspace / "a.txt").exists()


async def test_ask_is_a_no_where_nobody_can_be_asked(stage):
    script = [Reply(tool_calls=(WRITE,)), Reply(text="Done.")]
    hooks = {"PreToolUse": hook(decision("ask", "look at it"))}
    runtime = stage.runtime(script, hooks=hooks, is_interactive=False)
    events = await collect(runtime.submit("go"))
    assert "look at it" in only(events, ToolFinished).message.text
    assert not (stage.workspace / "a.txt").exists()


async def test_other_arguments_are_judged_and_told(stage):
    updated = {"file_path": "b.txt", "content": "two\n"}
    own = {"hookEventName": "PreToolUse", "updatedInput": updated}
    runtime = writing(stage, PreToolUse=hook(said({"hookSpecificOutput": own})))
    events = await collect(runtime.submit("go"))
    assert (stage.workspace / "b.txt").read_text() == "two\n"
    assert not (stage.workspace / "a.txt").exists()
    assert only(events, ToolStarted).arguments == {"path": "b.txt", "content": "two\n"}
    assert "a hook changed the arguments" in only(events, ToolFinished).message.text


async def test_other_arguments_do_not_pass_what_the_rules_forbid(stage):
    outside = {"file_path": str(stage.folder / "outside.txt"), "content": "two\n"}
    own = {"hookEventName": "PreToolUse", "updatedInput": outside, "permissionDecision": "allow"}
    script = [Reply(tool_calls=(WRITE,)), Reply(text="Done.")]
    runtime = stage.runtime(
        script,
        mode="plan",
        hooks={"PreToolUse": hook(said({"hookSpecificOutput": own}))},
    )
    events = await collect(runtime.submit("go"))
    assert only(events, ToolFinished).message.is_error
    assert not (stage.folder / "outside.txt").exists()


@pytest.mark.parametrize(
    "command",
    [
        "echo 'E501 line too long' >&2; exit 2",
        said({"decision": "block", "reason": "E501 line too long"}),
        said({"hookSpecificOutput": {"additionalContext": "E501 line too long"}}),
    ],
)
async def test_findings_after_an_edit_are_in_its_result(stage, command):
    runtime = writing(stage, PostToolUse=hook(command, "Edit|Write"))
    events = await collect(runtime.submit("go"))
    result = only(events, ToolFinished).message
    assert not result.is_error
    assert result.text.endswith("[PostToolUse hook]\nE501 line too long")
    assert "E501" in stage.model.requests[1].messages[-1].content[0].text
    is_told = any("found: E501 line too long" in notice.text for notice in of_kind(events, Notice))
    assert is_told == ("additionalContext" not in command)


async def test_the_model_is_told_what_a_hook_made_of_its_file(stage):
    again = call("c2", "write", path="a.txt", content="two\n")
    script = [Reply(tool_calls=(WRITE,)), Reply(tool_calls=(again,)), Reply(text="Done.")]
    hooks = {"PostToolUse": hook("echo formatted >> a.txt", "Write")}
    runtime = stage.runtime(script, hooks=hooks)
    events = await collect(runtime.submit("go"))
    told = f"(changed by the hook: {stage.workspace / 'a.txt'})"
    for finished in of_kind(events, ToolFinished):
        assert not finished.message.is_error
        assert finished.message.text.endswith(told)
    assert (stage.workspace / "a.txt").read_text() == "two\nformatted\n"


async def test_continue_false_ends_the_turn(stage):
    command = said({"continue": False, "stopReason": "enough"})
    runtime = writing(stage, PostToolUse=hook(command))
    events = await collect(runtime.submit("go"))
    assert only(events, TurnFinished).outcome == "aborted"
    assert "A hook ended the turn: enough" in [n.text for n in of_kind(events, Notice)]
    assert (stage.workspace / "a.txt").exists()


async def test_continue_false_before_a_call_ends_the_turn_without_it(stage):
    runtime = writing(stage, PreToolUse=hook(said({"continue": False, "stopReason": "enough"})))
    events = await collect(runtime.submit("go"))
    assert only(events, TurnFinished).outcome == "aborted"
    assert "refused this call: enough" in only(events, ToolFinished).message.text
    assert not (stage.workspace / "a.txt").exists()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo broken >&2; exit 1", "exit code 1: broken"),
        ("no-such-program", "exit code 127"),
        ("kill -9 $$", "killed by signal 9"),
        ("echo '{\"decision\": 3}'", "decision must be text"),
        ("echo '{broken'", "not usable"),
        ("sleep 60", "timed out after 0.2 s"),
        ("trap '' TERM; sleep 60 & exec sleep 60", "timed out after 0.2 s"),
        ("yes", "timed out after 0.2 s"),
    ],
)
async def test_a_failing_hook_is_told_and_loses_nothing(stage, command, why):
    timeout_s = 0.2 if "0.2" in why else PATIENCE_S
    runtime = writing(stage, PreToolUse=hook(command, timeout_s=timeout_s))
    events = await collect(runtime.submit("go"))
    (notice,) = [n.text for n in of_kind(events, Notice) if "PreToolUse hook failed" in n.text]
    assert why in notice
    assert (stage.workspace / "a.txt").read_text() == "one\n"
    assert only(events, TurnFinished).outcome == "done"
    (result,) = runtime.part(HooksPart).hooks.results.values()
    assert why in result.outcome


async def test_an_abort_ends_the_hook_and_answers_the_call(stage):
    started = stage.folder / "started"
    runtime = writing(
        stage, PreToolUse=hook(f"echo $$ > {started}.new; mv {started}.new {started}; sleep 60")
    )
    events = []
    async with aclosing(runtime.submit("go")) as stream:
        waiting = asyncio.create_task(_there(started))
        waiting.add_done_callback(lambda _done: runtime.abort())
        async for event in stream:
            events.append(event)
    assert only(events, TurnFinished).outcome == "aborted"
    assert only(events, ToolFinished).message.is_error
    assert not _runs(int(started.read_text()))


async def test_an_abort_amid_a_hook_behind_a_call_keeps_its_result(stage):
    started = stage.folder / "started"
    runtime = writing(stage, PostToolUse=hook(f"touch {started}; sleep 60"))
    events = []
    async with aclosing(runtime.submit("go")) as stream:
        waiting = asyncio.create_task(_there(started))
        waiting.add_done_callback(lambda _done: runtime.abort())
        async for event in stream:
            events.append(event)
    result = only(events, ToolFinished).message
    assert not result.is_error
    assert "a.txt" in result.text


async def _there(path: Path) -> None:
    while not path.exists():
        await asyncio.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_no_key_comes_back_through_a_hook(stage):
    script = [Reply(tool_calls=(WRITE,)), Reply(text="Done.")]
    hooks = {"PreToolUse": hook("echo it is topsecretvalue >&2; exit 2")}
    runtime = stage.runtime(script, hooks=hooks, secrets=("topsecretvalue",))
    events = await collect(runtime.submit("go"))
    assert "topsecretvalue" not in only(events, ToolFinished).message.text


async def test_a_message_can_be_refused_before_it_is_recorded(stage):
    hooks = {"UserPromptSubmit": hook("grep -q password && { echo no keys >&2; exit 2; }; exit 0")}
    runtime = stage.runtime([Reply(text="Hello.")], hooks=hooks)
    events = await collect(runtime.submit("my password is x"))
    ending = only(events, TurnFinished)
    assert (ending.outcome, ending.error) == ("error", "A hook refused the message: no keys")
    assert roles(runtime) == []
    await collect(runtime.submit("hello"))
    assert roles(runtime) == ["user", "assistant"]


async def test_a_queued_message_can_be_refused_and_is_told(stage):
    hooks = {"UserPromptSubmit": hook("grep -q password && { echo no keys >&2; exit 2; }; exit 0")}
    runtime = stage.runtime([Reply(text="Hello."), Reply(text="Again.")], hooks=hooks)
    runtime.enqueue("password x")
    events = await collect(runtime.submit("hello"))
    assert any("password x" in n.text and "no keys" in n.text for n in of_kind(events, Notice))
    assert of_kind(events, QueueChanged)[-1].texts == ()
    assert roles(runtime) == ["user", "assistant"]


async def test_what_hooks_print_at_the_beginning_goes_to_the_model_once(stage):
    start = f"{noting(stage)}; echo the branch is main"
    hooks = {
        "SessionStart": hook(start),
        "UserPromptSubmit": hook(
            said({"hookSpecificOutput": {"additionalContext": "it is <noon>"}})
        ),
        "SessionEnd": hook(noting(stage)),
    }
    runtime = stage.runtime([Reply(text="One."), Reply(text="Two.")], hooks=hooks)
    await collect(runtime.submit("hello"))
    first = '<hook event="SessionStart">\nthe branch is main\n</hook>'
    noon = '<hook event="UserPromptSubmit">\nit is &lt;noon&gt;\n</hook>'
    assert hook_texts(runtime) == [first, noon]
    assert first in [message.content for message in stage.model.requests[0].messages]
    await collect(runtime.submit("and again"))
    assert hook_texts(runtime) == [first, noon, noon]
    await runtime.sessions.start_new()
    await runtime.aclose()
    seen = [(one["hook_event_name"], one.get("source") or one["reason"]) for one in noted(stage)]
    assert seen == [("SessionStart", "startup"), ("SessionEnd", "other")]


async def test_what_was_said_at_the_beginning_outlives_a_refused_message(stage):
    hooks = {
        "SessionStart": hook("echo the branch is main"),
        "UserPromptSubmit": hook("grep -q password && exit 2; exit 0"),
    }
    runtime = stage.runtime([Reply(text="One."), Reply(text="Two.")], hooks=hooks)
    await collect(runtime.submit("password"))
    assert hook_texts(runtime) == []
    for _ in range(2):
        await collect(runtime.submit("hello"))
        assert hook_texts(runtime) == ['<hook event="SessionStart">\nthe branch is main\n</hook>']


async def test_another_session_ends_the_one_before(stage):
    ends = (*hook(noting(stage), "clear"), *hook("exit 1", "resume"), *hook("exit 1", "clear"))
    hooks = {"SessionStart": hook(noting(stage)), "SessionEnd": ends}
    runtime = stage.runtime([Reply(text="One."), Reply(text="Two.")], hooks=hooks)
    await collect(runtime.submit("hello"))
    first = runtime.conversation.log.header.id
    await runtime.sessions.start_new()
    await collect(runtime.submit("hello"))
    second = runtime.conversation.log.header.id
    seen = [(one["session_id"], one.get("source") or one["reason"]) for one in noted(stage)]
    assert seen == [(first, "startup"), (first, "clear"), (second, "clear")]


async def test_a_hook_sends_the_model_on_a_few_times_at_most(stage):
    hooks = {"Stop": hook(f"{noting(stage)}; echo run the tests first >&2; exit 2")}
    runtime = stage.runtime([Reply(text=f"Done {n}.") for n in range(6)], hooks=hooks)
    events = await collect(runtime.submit("go"))
    assert only(events, TurnFinished).outcome == "done"
    assert len(stage.model.requests) == 4
    assert hook_texts(runtime) == ['<hook event="Stop">\nrun the tests first\n</hook>'] * 3
    seen = [(one["stop_hook_active"], one["last_assistant_message"]) for one in noted(stage)]
    assert seen == [(False, "Done 0."), (True, "Done 1."), (True, "Done 2."), (True, "Done 3.")]
    assert "made the model continue: run the tests first" in str(of_kind(events, Notice))


LONG = "word " * 4_000


def full_conversation(stage, hooks, window=16_000):
    """A runtime whose first message is worth compacting."""
    return stage.runtime(summary_or(Reply(text="Fine.")), window=window, hooks=hooks)


async def test_what_a_hook_wants_kept_stands_behind_a_compaction_word_for_word(stage):
    keep = "Ticket 4711: never touch legacy/"
    hooks = {
        "PreCompact": hook(f"{noting(stage)}; echo '{keep}'"),
        "PostCompact": hook(noting(stage)),
    }
    runtime = full_conversation(stage, hooks, window=40_000)
    for _ in range(3):
        await collect(runtime.submit(LONG))
    events = await collect(runtime.compact("the tickets"))
    finished = only(events, CompactionFinished)
    kept = f'<hook event="PreCompact">\n{keep}\n</hook>'
    assert runtime.conversation.request().messages[-1].content == kept
    before, after = [one for one in noted(stage) if one.get("trigger") == "manual"]
    assert before["custom_instructions"] == "the tickets"
    assert (after["tokens_before"], after["tokens_after"]) == (
        finished.tokens_before,
        finished.tokens_after,
    )
    assert GOOD_SUMMARY.split("\n")[1] in after["compact_summary"]


async def test_only_the_newest_of_what_was_kept_is_there(stage):
    counting = f"echo x >> {stage.folder}/count; echo Ticket $(wc -l < {stage.folder}/count)."
    runtime = full_conversation(stage, {"PreCompact": hook(counting)})
    made = 0
    for _ in range(8):
        made += len(of_kind(await collect(runtime.submit(LONG)), CompactionFinished))
    count = len((stage.folder / "count").read_text().splitlines())
    assert made > 1
    seen = str(runtime.conversation.request().messages)
    assert [f"Ticket {number}." in seen for number in range(1, count + 1)] == [
        number == count for number in range(1, count + 1)
    ]


async def test_a_compaction_can_be_refused(stage):
    runtime = full_conversation(stage, {"PreCompact": hook("echo not now >&2; exit 2", "manual")})
    await collect(runtime.submit("hello"))
    before = runtime.conversation.log.path_entries()
    events = await collect(runtime.compact())
    why = only(events, CompactionFailed).message
    assert why == "Not compacted: a PreCompact hook refused: not now"
    assert runtime.conversation.log.path_entries() == before


async def test_a_helpers_calls_are_seen_and_its_end_is_not(stage):
    (stage.workspace / "a.txt").write_text("one\n")

    def script(request):
        is_helper = "explore" not in [tool.name for tool in request.tools]
        results = [m for m in request.messages if m.role == "toolResult"]
        if is_helper:
            return (
                Reply(text="It says one.")
                if results
                else Reply(tool_calls=(call("h1", "read", path="a.txt"),))
            )
        return (
            Reply(text="Done.")
            if results
            else Reply(tool_calls=(call("c1", "explore", task="look"),))
        )

    hooks = {
        "PreToolUse": hook(noting(stage)),
        "Stop": hook(noting(stage)),
        "SessionStart": hook(noting(stage)),
    }
    runtime = stage.runtime(script, hooks=hooks)
    await collect(runtime.submit("go"))
    seen = [(one["hook_event_name"], one.get("tool_name")) for one in noted(stage)]
    assert seen == [
        ("SessionStart", None),
        ("PreToolUse", "Task"),
        ("PreToolUse", "Read"),
        ("Stop", None),
    ]


async def test_what_was_kept_goes_with_the_compaction_that_is_undone(stage):
    runtime = full_conversation(stage, {"PreCompact": hook("echo Ticket 4711")})
    await collect(runtime.submit(LONG))
    await collect(runtime.submit(LONG))
    assert hook_texts(runtime) == []
    await collect(runtime.compact())
    assert len(hook_texts(runtime)) == 1
    await undo_compaction(runtime)
    assert hook_texts(runtime) == []


async def test_a_compaction_without_which_nothing_fits_is_not_refused(stage):
    runtime = full_conversation(stage, {"PreCompact": hook("echo not now >&2; exit 2")})
    events = []
    for _ in range(8):
        events += await collect(runtime.submit(LONG))
    assert of_kind(events, CompactionFailed)
    assert any(
        "a PreCompact hook refused: not now" in notice.text for notice in of_kind(events, Notice)
    )
    assert of_kind(events, CompactionFinished)


async def test_what_is_kept_amid_calls_leaves_a_request_that_services_take(stage):
    for number in range(1, 8):
        (stage.workspace / f"f{number}.txt").write_text("word of a line\n" * 600)
    reads = (call(f"c{n}", "read", path=f"f{n}.txt") for n in range(1, 8))
    rounds = iter([*reads, call("c8", "compact", focus="tickets")])

    def script(request):
        if request.purpose == "summary":
            return Reply(text=GOOD_SUMMARY)
        one = next(rounds, None)
        return Reply(tool_calls=(one,)) if one is not None else Reply(text="Done.")

    hooks = {
        "PreCompact": hook("echo Ticket 4711", "auto"),
        "Stop": hook("grep -q '\"stop_hook_active\": true' || { echo go on >&2; exit 2; }"),
    }
    runtime = stage.runtime(script, window=60_000, hooks=hooks)
    events = await collect(runtime.submit("read them all"))
    assert only(events, TurnFinished).outcome == "done"
    assert only(events, CompactionFinished).reason == "tool"
    for request in stage.model.requests:
        messages = openai_messages("", request.messages)
        assert openai_problems(messages) == []
    last = stage.model.requests[-1].messages
    assert "Ticket 4711" in str(last)


async def test_no_process_of_hooks_is_left(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    closed: list[ProcessKeeper] = []
    monkeypatch.setattr(ProcessKeeper, "close", lambda keeper: closed.append(keeper))
    runtime = stage.runtime(
        [Reply(text="Hello.")], hooks={"Stop": hook(noting(stage))}, features=[FEATURE]
    )
    await collect(runtime.submit("hello"))
    assert closed == []
    await runtime.aclose()
    assert len(closed) == 1
