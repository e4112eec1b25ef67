"""What exit codes, words and JSON of hooks mean."""

import json
from typing import get_args

import pytest

from agent_tui.config import HookEvent
from agent_tui.features.hooks.answer import HookAnswer, HookRun, merge_answers, read_answer
from tests.support.rows import each_row


def answer(event: HookEvent, **said: object) -> HookAnswer:
    return read_answer(event, HookRun(stdout=json.dumps(said)))


def own(event: HookEvent, **said: object) -> HookAnswer:
    return answer(event, hookSpecificOutput={"hookEventName": event, **said})


@each_row("event", get_args(HookEvent))
def test_silence_says_nothing(event: HookEvent):
    assert read_answer(event, HookRun()) == HookAnswer()
    assert answer(event) == HookAnswer()


@pytest.mark.parametrize(
    "event", ["UserPromptSubmit", "PreToolUse", "PostToolUse", "PreCompact", "Stop"]
)
def test_exit_code_2_and_block_refuse(event: HookEvent):
    refused = HookAnswer(refusal="no")
    assert read_answer(event, HookRun(2, "", "no\n")) == refused
    assert read_answer(event, HookRun(2, "no", "")) == refused
    assert answer(event, decision="block", reason="no") == refused
    assert answer(event, decision="deny", reason="no") == refused
    assert read_answer(event, HookRun(2)).refusal == "no reason given"
    assert answer(event, decision="block").refusal == "no reason given"


@pytest.mark.parametrize("event", ["SessionStart", "PostCompact", "SessionEnd"])
def test_where_nothing_can_be_refused_it_is_only_told(event: HookEvent):
    assert read_answer(event, HookRun(2, "", "no")) == HookAnswer(messages=("no",))
    assert answer(event, decision="block", reason="no") == HookAnswer()


@pytest.mark.parametrize("word", ["allow", "approve"])
def test_to_allow_is_to_say_nothing(word: str):
    assert answer("PreToolUse", decision=word, reason="fine") == HookAnswer()
    assert own("PreToolUse", permissionDecision=word) == HookAnswer()


def test_the_strictest_word_of_one_hook_counts():
    said = answer(
        "PreToolUse", decision="block", hookSpecificOutput={"permissionDecision": "allow"}
    )
    assert said.refusal
    assert own("PreToolUse", permissionDecision="deny", permissionDecisionReason="no") == (
        HookAnswer(refusal="no")
    )
    asked = own("PreToolUse", permissionDecision="ask", permissionDecisionReason="look")
    assert asked == HookAnswer(doubt="look")
    assert own("PostToolUse", permissionDecision="deny") == HookAnswer()


def test_plain_words_are_for_the_model_only_at_the_beginning_and_before_a_compaction():
    speaking = [e for e in get_args(HookEvent) if read_answer(e, HookRun(stdout="hi\n")).added]
    assert speaking == ["SessionStart", "UserPromptSubmit", "PreCompact"]


def test_the_other_words():
    assert own("PostToolUse", additionalContext=" more ").added == "more"
    assert answer("PostToolUse", additionalContext="more").added == "more"
    assert answer("Stop", systemMessage="hello").messages == ("hello",)
    assert answer("Stop", **{"continue": False, "stopReason": "enough"}).stops == "enough"
    assert answer("Stop", **{"continue": False}).stops == "no reason given"
    assert answer("Stop", **{"continue": True}).stops == ""
    assert own("PreToolUse", updatedInput={"a": 1}).updated_input == {"a": 1}
    assert own("PostToolUse", updatedInput={"a": 1}).updated_input is None


@each_row(
    ("said", "why"),
    [
        ({"decision": 1}, "decision must be text"),
        ({"hookSpecificOutput": []}, ""),
        ({"hookSpecificOutput": "a"}, "hookSpecificOutput must be an object"),
        ({"hookSpecificOutput": {"hookEventName": "Stop"}}, "hookEventName is 'Stop'"),
        ({"hookSpecificOutput": {"updatedInput": []}}, "updatedInput must be an object"),
        ({"systemMessage": {}}, "systemMessage must be text"),
    ],
)
def test_what_is_of_the_wrong_kind_is_named_and_changes_nothing(said, why):
    found = answer("PreToolUse", **said)
    assert why in found.problem
    assert bool(found.problem) == bool(why)
    assert found == HookAnswer(problem=found.problem)


@pytest.mark.parametrize("text", ["{", '{"a": ' * 100_000, '{"a": 1} and more'])
def test_what_is_no_json_is_named(text: str):
    assert "not usable" in read_answer("Stop", HookRun(stdout=text)).problem


def test_together_they_hold_back_whatever_one_holds_back():
    all_of_them = merge_answers(
        [
            HookAnswer(added="a", messages=("m",)),
            HookAnswer(refusal="r1", problem="p"),
            HookAnswer(refusal="r2", doubt="d", stops="s", updated_input={"x": 1}),
            HookAnswer(added="b", updated_input={"x": 2}),
        ]
    )
    assert all_of_them == HookAnswer(
        refusal="r1\nr2",
        doubt="d",
        added="a\nb",
        stops="s",
        updated_input={"x": 2},
        messages=("m",),
    )
    assert merge_answers([]) == HookAnswer()


def test_what_came_of_it_is_said_in_a_line():
    assert HookAnswer(problem="p", refusal="r").outcome("Stop") == "p"
    assert HookAnswer(refusal="r").outcome("PreToolUse") == "refused: r"
    assert HookAnswer(refusal="r").outcome("PostToolUse") == "found: r"
    assert HookAnswer(refusal="r").outcome("Stop") == "made the model continue: r"
    assert HookAnswer(doubt="d").outcome("PreToolUse") == "asks you first: d"
    assert HookAnswer(added="a").outcome("PreCompact") == "added text"
    assert HookAnswer().outcome("Stop") == "ok"
