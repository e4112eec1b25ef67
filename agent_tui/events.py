"""What happens in a conversation, as typed events for every front end.

Ordering rules: an event with an ``entry_id`` follows the writing of that entry to the session
file. `TurnStarted` ... `TurnFinished` bracket a turn. Deltas and exactly one `ReplyFinished`
follow `ReplyStarted`, even after an interruption. Exactly one `ToolFinished` with the same
``call_id`` follows each `ToolStarted`. No event holds a widget, a class or a Future.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, cast

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Job,
    JsonObject,
    Pin,
    Todo,
    ToolResultMessage,
    TurnFacts,
)
from agent_tui.tokens import ContextUsage

CompactionReason: TypeAlias = Literal["manual", "threshold", "overflow", "tool"]
SessionChangeReason: TypeAlias = Literal["new", "resumed", "compacted", "renamed", "forked"]
TurnOutcome: TypeAlias = Literal["done", "aborted", "error", "length", "limit"]


NoticeSubject: TypeAlias = Literal["", "question", "answer", "job", "plan", "file"]
"""A question beside the conversation and its answer, a background job, a plan, a pinned file."""


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """Your message is in the session file and the first request is about to be sent."""


@dataclass(frozen=True, slots=True)
class UserMessageAdded:
    """Your message is now part of the conversation (sent, steered or queued)."""

    entry_id: str
    text: str
    image_count: int = 0


@dataclass(frozen=True, slots=True)
class ReplyStarted:
    """A request was sent; nothing has arrived yet."""

    model: str


@dataclass(frozen=True, slots=True)
class ReplyAwaited:
    """No part of the current reply has arrived for `waited_s` seconds. Sent once a minute.

    `is_alive`: the server still sends pings, comments or empty deltas.
    """

    waited_s: float
    is_alive: bool


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More visible text of the current reply."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More reasoning text of the current reply."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """The model is writing a tool call: `argument_chars` characters of arguments so far."""

    name: str
    argument_chars: int


@dataclass(frozen=True, slots=True)
class ReplyFinished:
    """The reply, complete or interrupted (`message.stop_reason`), is in the session file."""

    entry_id: str
    message: AssistantMessage


@dataclass(frozen=True, slots=True)
class ReplyDiscarded:
    """The current reply is discarded.

    An error came before its first token. With `was_shown`, the reply starts again.
    """

    was_shown: bool = False


@dataclass(frozen=True, slots=True)
class CutReplyDropped:
    """The model repeats a reply that was cut off, in full.

    The partial replies in `entry_ids` no longer belong to the conversation.
    """

    entry_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool call is about to be checked and run. `title` is one line to show."""

    call_id: str
    name: str
    arguments: JsonObject
    title: str


@dataclass(frozen=True, slots=True)
class ToolOutputDelta:
    """Live output of a running tool. `skipped_lines` lines before `text` are left out."""

    call_id: str
    text: str
    skipped_lines: int = 0


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """The tool's result is in the session file."""

    entry_id: str
    call_id: str
    message: ToolResultMessage


@dataclass(frozen=True, slots=True)
class BashStarted:
    """Your ``!`` command is running; its output comes as `ToolOutputDelta`."""

    call_id: str
    command: str


@dataclass(frozen=True, slots=True)
class BashFinished:
    """Your ``!`` command has ended and is in the session file."""

    entry_id: str
    call_id: str
    message: BashExecutionMessage


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What happens if you agree, and why you are asked.

    `body` is the exact command, a unified diff or a plan (Markdown); `body_kind` says which.
    `session_rule` is the rule that "for this session" and "always" would add, as text;
    empty if no rule may be added. `part_rules` together allow the parts of a command that need
    approval, usually with other arguments too; empty for none. `is_loss`: it may cause loss that
    undo cannot restore, so a front end suggests to decline. `is_edit`: accept-edits mode would
    allow it unasked, so "all edits" is an answer. `frees_commands`: an answer that changes to
    accept-edits mode also lets commands run unasked, because they run in a sandbox.
    """

    id: str
    call_id: str
    tool_name: str
    title: str
    body: str
    body_kind: Literal["command", "diff", "text", "plan"]
    reason: str
    session_rule: str
    part_rules: tuple[str, ...] = ()
    is_loss: bool = False
    is_edit: bool = False
    frees_commands: bool = False

    @property
    def accepted(self) -> str:
        """What runs unasked after an answer that changes to accept-edits mode."""
        return "edits and sandboxed commands" if self.frees_commands else "edits"


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """The turn is waiting for your answer."""

    request: ApprovalRequest


@dataclass(frozen=True, slots=True)
class ApprovalResolved:
    """The answer arrived, or the turn was aborted (then `allowed` is false)."""

    request_id: str
    allowed: bool


@dataclass(frozen=True, slots=True)
class FormOpened:
    """A tool call is waiting for your answers; `title` is its first question."""

    call_id: str
    title: str


@dataclass(frozen=True, slots=True)
class FormClosed:
    """The answers arrived, or there are none."""

    call_id: str


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """A request failed and is retried after `delay_s` seconds."""

    attempt: int
    max_attempts: int
    delay_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class LimitWaitStarted:
    """The model's limit is reached or its server fails: the turn waits, then sends its request.

    The wait ends at `until_s`, in seconds since 1970; that is in `wait_s` seconds. `is_reset`: the
    server stated that its limit resets then. An abort ends the wait and the turn.
    """

    model: str
    reason: str
    until_s: float
    wait_s: float
    is_reset: bool = True


@dataclass(frozen=True, slots=True)
class LimitWaitEnded:
    """The wait is over after `waited_s` seconds; the request is sent again."""

    model: str
    reason: str
    waited_s: float


@dataclass(frozen=True, slots=True)
class ContextChanged:
    """How full the context window is now."""

    usage: ContextUsage


@dataclass(frozen=True, slots=True)
class ContextWarning:
    """Context usage rose above a threshold, ``warn`` or ``trigger``. Sent once per crossing.

    agent-tui compacts automatically at `compacts_at` percent of the window; 0 if it does not.
    """

    usage: ContextUsage
    level: Literal["warn", "trigger"]
    compacts_at: int = 0


@dataclass(frozen=True, slots=True)
class TotalsChanged:
    """Tokens and cost of this session so far; `cost_usd` is 0 if no price is known."""

    input_tokens: int
    output_tokens: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """What is not delivered yet, oldest first: messages you typed during the turn, and notes.

    The notes tell the model what you did, such as taking a change back.
    """

    texts: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TodosChanged:
    """The model's to-do list changed."""

    todos: tuple[Todo, ...]


@dataclass(frozen=True, slots=True)
class TextPinned:
    """A skill or an instructions file was added to the context; compaction does not remove it.

    `is_changed`: the file has changed since it was last added.
    """

    entry_id: str
    pin: Pin
    is_changed: bool = False


@dataclass(frozen=True, slots=True)
class PlanHandedOver:
    """In plan mode, the model submits a plan in Markdown for your approval.

    If nobody can be asked (``-p``), the turn ends and the plan is the result.
    """

    call_id: str
    plan: str


@dataclass(frozen=True, slots=True)
class JobStarted:
    """A command continues in the background. Precedes the tool result that reports it."""

    job: Job


@dataclass(frozen=True, slots=True)
class JobEnded:
    """A background command has ended. Can also arrive between turns."""

    job: Job


@dataclass(frozen=True, slots=True)
class CompactionStarted:
    """A compaction is running; nothing is written until it succeeds."""

    reason: CompactionReason
    focus: str
    tokens_before: int


@dataclass(frozen=True, slots=True)
class CompactionProgress:
    """`phase` to show ("choosing what to keep") and `summary_chars` received so far."""

    phase: str
    summary_chars: int


@dataclass(frozen=True, slots=True)
class CompactionFinished:
    """The compaction is in the session file (a new file after ``/compact``).

    `summary` is empty if messages were only shortened; then `freed` and `messages` give the tokens
    freed and the messages changed, by tier. `strategy` names the strategy if it was not the tiers;
    `statistics` says what it did to how many messages.
    """

    entry_id: str
    reason: CompactionReason
    summary: str
    tokens_before: int
    tokens_after: int
    summarised_by: str
    is_fallback: bool
    note: str = ""
    freed: Mapping[int, int] = field(default_factory=dict[int, int])
    messages: Mapping[int, int] = field(default_factory=dict[int, int])
    strategy: str = ""
    statistics: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class CompactionFailed:
    """Nothing was written; `message` says why, in a full sentence."""

    message: str


@dataclass(frozen=True, slots=True)
class SessionChanged:
    """The session is now written to a different file, or to none (then `path` is None)."""

    session_id: str
    path: Path | None
    name: str
    reason: SessionChangeReason


@dataclass(frozen=True, slots=True)
class BranchSummaryProgress:
    """The branch you are leaving is being summarised; nothing is written until that is done."""

    phase: str
    summary_chars: int


@dataclass(frozen=True, slots=True)
class WentBack:
    """The conversation continues from the entry `leaf_id` (None: from its beginning).

    `text` is your message after that entry, to edit and send again; empty if you went back to
    something else. `image_count` images were attached to that message.
    """

    leaf_id: str | None
    text: str
    image_count: int = 0


@dataclass(frozen=True, slots=True)
class LoopAdvanced:
    """Round `number` of `count` of a loop starts. One `TurnFinished` ends the whole loop."""

    number: int
    count: int


@dataclass(frozen=True, slots=True)
class Standing:
    """What a feature shows above the prompt of the screen. Without a text, there is no line.

    Attributes:
        progress: The text that comes first.
        hint: Follows it while nothing runs.
        about: The less visible text behind it.
        is_for_pauses: Whether the line is hidden while something runs.
    """

    progress: str = ""
    hint: str = ""
    about: str = ""
    is_for_pauses: bool = False


class FeatureEvent:
    """An event of a feature. It says itself what users read, so no front has a case for it.

    Its class is a frozen dataclass that the feature names in its `events`. Texts may contain what
    others wrote: fronts make them harmless.
    """

    __slots__ = ()

    def line(self) -> str:
        """A sentence or two for the user; empty if there is nothing to say."""
        return ""

    def standing(self) -> Standing:
        """What is above the prompt until the next event of this class.

        The screen shows it in place of `line`, if it has a text.
        """
        return Standing()


def standing_of(event: FeatureEvent) -> Standing:
    """What `event` puts above the prompt. A fault of its feature is shown in its place."""
    try:
        shown = cast(object, event.standing())
    except Exception as error:  # noqa: BLE001 - others wrote it
        return Standing(about=_fault_of(event, "standing", error))
    if isinstance(shown, str):
        return Standing(progress=shown)
    if isinstance(shown, Standing):
        return shown
    return Standing(about=_fault_of(event, "standing", TypeError(f"it returned {shown!r}")))


def line_of(event: FeatureEvent) -> str:
    """The sentence of `event` for the user. A fault of its feature is told in its place."""
    try:
        return str(event.line() or "")
    except Exception as error:  # noqa: BLE001 - others wrote it
        return _fault_of(event, "line", error)


def _fault_of(event: FeatureEvent, method: str, error: Exception) -> str:
    return f"{type(event).__qualname__}.{method} failed: {type(error).__name__}: {error}"


@dataclass(frozen=True, slots=True)
class ScopeEntered:
    """A scope starts."""

    entry_id: str
    label: str


@dataclass(frozen=True, slots=True)
class ScopeProgress:
    """A scope has ended and is being summarised; its messages stay until that is done."""

    phase: str
    summary_chars: int


@dataclass(frozen=True, slots=True)
class ScopeLeft:
    """A scope was exited.

    `summary` replaces its messages; empty if they all stay. Sizes are tokens of the whole request;
    0 without a summary.
    """

    entry_id: str
    label: str
    summary: str = ""
    tokens_before: int = 0
    tokens_after: int = 0


@dataclass(frozen=True, slots=True)
class ModelChanged:
    """The next request uses this model."""

    model: str
    window: int


@dataclass(frozen=True, slots=True)
class Notice:
    """One line to show. `about` says what it is about, if not the program."""

    level: Literal["info", "warning", "error"]
    text: str
    about: NoticeSubject = ""


@dataclass(frozen=True, slots=True)
class TurnRecorded:
    """A turn's cost and changes are in the session file. Precedes its `TurnFinished`.

    Not sent for a short turn that changed nothing.
    """

    entry_id: str
    facts: TurnFacts


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The turn is over. Show `error` if `outcome` is ``error`` or ``limit``.

    ``limit``: the turn reached its limit of requests, the run its limit of cost, or the model made
    no progress: it repeated calls, or only compactions happened.
    """

    outcome: TurnOutcome
    error: str = ""
    can_continue: bool = False


AgentEvent: TypeAlias = (
    TurnStarted
    | UserMessageAdded
    | ReplyStarted
    | ReplyAwaited
    | TextDelta
    | ThinkingDelta
    | ToolCallDelta
    | ReplyFinished
    | ReplyDiscarded
    | CutReplyDropped
    | ToolStarted
    | ToolOutputDelta
    | ToolFinished
    | BashStarted
    | BashFinished
    | ApprovalRequested
    | ApprovalResolved
    | FormOpened
    | FormClosed
    | RetryScheduled
    | LimitWaitStarted
    | LimitWaitEnded
    | ContextChanged
    | ContextWarning
    | TotalsChanged
    | QueueChanged
    | TodosChanged
    | TextPinned
    | PlanHandedOver
    | JobStarted
    | JobEnded
    | CompactionStarted
    | CompactionProgress
    | CompactionFinished
    | CompactionFailed
    | SessionChanged
    | BranchSummaryProgress
    | WentBack
    | LoopAdvanced
    | FeatureEvent
    | ScopeEntered
    | ScopeProgress
    | ScopeLeft
    | ModelChanged
    | Notice
    | TurnRecorded
    | TurnFinished
)
