"""What an editor is told of the agent's events."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from acp.schema import AgentThoughtChunk

from agent_tui.events import (
    AgentEvent,
    CompactionFinished,
    CutReplyDropped,
    LoopAdvanced,
    ReplyAwaited,
    ReplyFinished,
    ReplyStarted,
    TextDelta,
    TurnFinished,
)
from agent_tui.features.acp.updates import Updates, replay_updates
from agent_tui.messages import AssistantMessage, TextContent
from agent_tui.sessions.entries import CompactionDetails, CompactionEntry


def told(*events: AgentEvent) -> list[str]:
    updates = Updates(cast(Any, SimpleNamespace()))
    found = (cast(Any, update) for event in events for update in updates.of(event))
    return [update.content.text.strip("\n") for update in found]


def test_how_a_turn_ended_is_told_once():
    failed = TurnFinished("error", "The key was refused.", can_continue=True)
    reply = AssistantMessage(content=(), stop_reason="error", error_message=failed.error)
    assert told(failed) == ["Error: The key was refused. /retry continues."]
    assert told(ReplyFinished("r", reply), failed) == told(failed)
    assert told(TurnFinished("limit", "3 requests were made.")) == ["3 requests were made."]
    assert told(TurnFinished("length")) == ["The reply was cut off at the model's output limit."]
    assert told(TurnFinished("done")) == []


def test_a_reply_that_is_begun_anew_is_gone_on_with():
    words = TextDelta("The sky ")
    cut = AssistantMessage(content=(TextContent(text="The sky "),), stop_reason="error")
    again = (ReplyStarted("m"), words, CutReplyDropped(("r",)), TextDelta("is blue."))
    assert told(words, ReplyFinished("r", cut), *again) == ["The sky ", "is blue."]


def test_why_a_summary_has_no_model_and_what_else_goes_on_is_told():
    compacted = CompactionFinished(
        "e", "manual", "s", 9_000, 2_000, "", is_fallback=True, note="No key."
    )
    assert told(compacted, LoopAdvanced(2, 3)) == [
        "*Context compacted from 9,000 to 2,000 tokens. No key.*",
        "*Round 2 of 3.*",
    ]


def test_waiting_for_words_is_told_beside_the_answer():
    (update,) = Updates(cast(Any, SimpleNamespace())).of(ReplyAwaited(125.0, False))
    assert isinstance(update, AgentThoughtChunk)
    assert told(ReplyAwaited(125.0, False)) == [
        "*No data from the model's server for 2m 05s. Still waiting.*"
    ]


def test_what_a_model_writes_cannot_steer_a_terminal():
    assert told(TextDelta("\x1b]52;c;AAAA\x07done")) == ["␛]52;c;AAAA␇done"]


def test_a_session_that_is_loaded_says_why_a_summary_has_no_model():
    details = CompactionDetails(note="No key.", is_fallback=True)
    entry = CompactionEntry(
        id="e",
        first_kept_entry_id="f",
        summary="s",
        tokens_before=9_000,
        tokens_after=2_000,
        details=details,
    )
    (update,) = replay_updates([entry], Path("/w"))
    assert cast(Any, update).content.text.strip("\n*") == (
        "Context compacted from 9,000 to 2,000 tokens. No key."
    )
