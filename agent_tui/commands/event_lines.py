"""Events in words, for fronts without a screen: `--plain`, `-p` and editors."""

from collections.abc import Iterator, Sequence
from typing import assert_never

from agent_tui import events
from agent_tui.commands.core.short_words import short_time
from agent_tui.durations import clock_time, format_duration, format_remaining
from agent_tui.messages import Todo, TurnFacts
from agent_tui.safe_text import printable_line
from agent_tui.sessions.replay.changes import MADE_WITHOUT_MODEL
from agent_tui.sessions.replay.notes import end_of_job_line
from agent_tui.sessions.replay.pins import pin_line

_MOST_NAMED = 5
"""Most changed files of a turn that are named."""


def event_line(event: events.AgentEvent) -> str:
    """A sentence or two about `event` for the user.

    Returns:
        Text that may contain what others wrote: whoever shows it must make it harmless. Empty if
        there is nothing to say, and for events that each front shows in its own way (replies,
        calls, questions, the end of a turn).
    """
    match event:
        case events.Notice(text=text) | events.CompactionFailed(text):
            return text
        case events.RetryScheduled(attempt, most, delay_s, reason):
            return f"{reason} {_next_try(attempt, most, delay_s)}"
        case events.LimitWaitStarted(wait_s=wait_s):
            return f"{limit_wait_reason(event)} Continuing in {format_remaining(wait_s)}."
        case events.LimitWaitEnded(reason=reason, waited_s=waited_s):
            return f"{reason} Continuing after {format_remaining(waited_s)}."
        case events.ReplyDiscarded(was_shown=True):
            return "The reply is starting over; disregard the text so far."
        case events.ReplyAwaited(waited_s, is_alive):
            return waiting_line(waited_s, is_alive=is_alive)
        case events.ContextWarning(level=level, compacts_at=compacts_at):
            return warning_text(event) if level == "warn" or not compacts_at else ""
        case events.CompactionStarted(tokens_before=before):
            return f"Compacting {before:,} tokens."
        case events.CompactionFinished(
            tokens_before=before, tokens_after=after, note=note, is_fallback=is_fallback
        ):
            return compaction_line(before, after, note, is_fallback=is_fallback)
        case events.TextPinned(pin=pin, is_changed=is_changed):
            return f"{printable_line(pin_line(pin, is_changed=is_changed))}."
        case events.JobEnded(job):
            return printable_line(end_of_job_line(job))
        case events.LoopAdvanced(number=number, count=count):
            return f"Round {number} of {count}."
        case events.FeatureEvent():
            return events.line_of(event)
        case events.ScopeEntered(label=label):
            return f"Started: {label}."
        case events.ScopeLeft(label=label):
            return f"Finished: {label}."
        case events.SessionChanged():
            return _session(event)
        case events.TurnRecorded(facts=facts):
            took, changed = _turn_facts(facts, _MOST_NAMED)
            told = "; ".join(filter(None, (took and f"took {took}", changed)))
            return f"{told[:1].upper()}{told[1:]}."
        case events.WentBack(text=text):
            taken_back = f" Undone: {printable_line(text)}" if text.strip() else ""
            return f"Back at an earlier message.{taken_back}"
        case (
            events.TurnStarted()
            | events.TurnFinished()
            | events.UserMessageAdded()
            | events.ApprovalRequested()
            | events.ReplyStarted()
            | events.ReplyFinished()
            | events.ReplyDiscarded()
            | events.TextDelta()
            | events.ThinkingDelta()
            | events.ToolCallDelta()
            | events.ToolStarted()
            | events.ToolOutputDelta()
            | events.ToolFinished()
            | events.BashStarted()
            | events.BashFinished()
            | events.ApprovalResolved()
            | events.FormOpened()
            | events.FormClosed()
            | events.JobStarted()
            | events.CompactionProgress()
            | events.ScopeProgress()
            | events.BranchSummaryProgress()
            | events.QueueChanged()
            | events.ContextChanged()
            | events.TotalsChanged()
            | events.ModelChanged()
            | events.CutReplyDropped()
            | events.TodosChanged()
            | events.PlanHandedOver()
        ):
            return ""
        case _:
            assert_never(event)


def limit_wait_reason(event: events.LimitWaitStarted) -> str:
    """Why the turn waits, and until when by the local clock."""
    ends = "It resets at" if event.is_reset else "Next try at"
    return f"{event.reason} {ends} {clock_time(event.until_s, event.until_s - event.wait_s)}."


def waiting_line(waited_s: float, *, is_alive: bool) -> str:
    """The line about a slow reply.

    Args:
        waited_s: Seconds since the last text.
        is_alive: Whether the server shows signs of life.
    """
    if is_alive:
        return (
            f"The model has been thinking for {format_duration(waited_s)}; its server is connected."
        )
    return f"No data from the model's server for {format_duration(waited_s)}. Still waiting."


class RetryLines:
    """Says why a request is retried, once for each reason."""

    def __init__(self) -> None:
        self._reason = ""

    def line(self, event: events.RetryScheduled) -> str:
        """The line for `event`, given those before it."""
        is_told = event.attempt > 1 and event.reason == self._reason
        self._reason = event.reason
        if is_told:
            return _next_try(event.attempt, event.max_attempts, event.delay_s)
        return event_line(event)


def retry_line(event: events.RetryScheduled) -> str:
    """The same with the reason last, for lines that may be too short for it."""
    next_try = _next_try(event.attempt, event.max_attempts, event.delay_s)
    return f"{next_try} {event.reason}"


def _next_try(attempt: int, most: int, delay_s: float) -> str:
    """The number of the next attempt, counting the first request."""
    return f"Retrying in {format_remaining(delay_s)} ({attempt + 1} of {most + 1})."


def turn_end_line(event: events.TurnFinished) -> str:
    """Why a turn ended, and how to continue; empty for a normal end."""
    match event.outcome:
        case "error":
            text = f"Error: {event.error}"
        case "limit":
            text = event.error
        case "length":
            text = "The reply was cut off at the model's output limit."
        case "aborted":
            text = "Stopped."
        case "done":
            return ""
        case _:
            assert_never(event.outcome)
    return f"{text} /retry continues.".strip() if event.can_continue else text


def turn_facts_line(facts: TurnFacts, most_named: int = _MOST_NAMED) -> str:
    """``2m 05s · changed src/a.py, tests/test_a.py +3``; names at most `most_named` files."""
    return " · ".join(filter(None, _turn_facts(facts, most_named)))


def _turn_facts(facts: TurnFacts, most_named: int) -> tuple[str, str]:
    """The duration and the changes of a turn; each may be empty."""
    took = short_time(facts.elapsed_ms / 1_000) if facts.elapsed_ms >= 1_000 else ""
    named = facts.changed[:most_named]
    more = len(facts.changed) - len(named) + facts.more
    files = printable_line(", ".join(named), 1_000) + (f" +{more:,}" if more else "")
    return took, f"changed {files}" if named else ""


def plan_steps(todos: Sequence[Todo]) -> list[str]:
    """The steps of a plan, one per line with their state: ``[x] Read the parser``."""
    signs = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]"}
    return [f"{signs[todo.status]} {printable_line(todo.text)}" for todo in todos]


def compaction_line(before: int, after: int, note: str, *, is_fallback: bool) -> str:
    """The effect of a compaction on the context's size, and a note about it.

    Args:
        before: Tokens.
        after: Tokens.
        note: How the summary was made; may be empty.
        is_fallback: Whether no model made it.
    """
    note = note or (f"The summary was {MADE_WITHOUT_MODEL}." if is_fallback else "")
    return f"Context compacted from {before:,} to {after:,} tokens. {note}".strip()


def _session(event: events.SessionChanged) -> str:
    match event.reason:
        case "new":
            return "New session started. The previous one is kept."
        case "compacted":
            return "Continuing in a new session file. /uncompact undoes this."
        case "forked":
            return "Continuing in a copy of the session."
        case "resumed" | "renamed":
            return ""
        case _:
            assert_never(event.reason)


class RepeatFilter:
    """Leaves out text that repeats an attempt that was cut off.

    A model that is asked to continue a cut reply may start it again. Its text is held back while it
    repeats what is already there; the rest is shown.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._held = ""
        self._has_spoken = False

    def of(self, event: events.AgentEvent) -> Iterator[events.AgentEvent]:
        """The events to show instead of `event`."""
        match event:
            case events.TurnStarted():
                self._parts.clear()
                yield event
            case events.ReplyStarted():
                self._held, self._has_spoken = "", False
                yield event
            case events.TextDelta(text):
                if words := self._new_words(text):
                    yield events.TextDelta(words)
            case events.CutReplyDropped():
                pass
            case events.ReplyFinished(message=message) if message.stop_reason == "error":
                self._parts.append(message.text)
                yield event
            case events.ReplyFinished():
                held = "" if self._has_spoken else _without_spaces(self._held)
                if held and held not in self._said:
                    yield events.TextDelta(self._held)
                self._parts.clear()
                yield event
            case events.ReplyDiscarded(was_shown):
                yield events.ReplyDiscarded(was_shown and self._has_spoken)
            case _:
                yield event

    def _new_words(self, text: str) -> str:
        """The text to show after `text` arrived; empty while it may repeat earlier text."""
        if self._has_spoken:
            return text
        self._held += text
        begun, said = _without_spaces(self._held), self._said
        if any(one.startswith(begun) for one in said):
            return ""
        self._has_spoken = True
        repeated = next((one for one in said if one and begun.startswith(one)), "")
        return _after(self._held, len(repeated)).lstrip() if repeated else self._held

    @property
    def _said(self) -> list[str]:
        """The texts that a reply may repeat: everything shown, and each shorter end of it."""
        parts = [_without_spaces(part) for part in self._parts]
        return ["".join(parts[at:]) for at in range(len(parts))]


def _without_spaces(text: str) -> str:
    return "".join(text.split())


def _after(text: str, count: int) -> str:
    """What follows the first `count` non-space characters of `text`."""
    for at, char in enumerate(text):
        if not count:
            return text[at:]
        count -= not char.isspace()
    return ""


def warning_text(event: events.ContextWarning) -> str:
    """The warning shown when the context fills."""
    filled = f"Context window {event.usage.shown_percent} full."
    if not event.compacts_at:
        return f"{filled} /compact frees space."
    return f"{filled} Compacts automatically at {event.compacts_at}%; /compact does it now."
