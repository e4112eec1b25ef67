"""What happens in a conversation, as typed facts for whoever shows it.

Ordering rules: an event that names an ``entry_id`` comes after that entry is in the session
file. `TurnStarted` ... `TurnFinished` bracket a turn; `ReplyStarted` is followed by deltas and
exactly one `ReplyFinished`, also when interrupted; each `ToolStarted` by exactly one
`ToolFinished` with the same ``call_id``. No event holds a widget, a class or a Future.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

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
    """The person's message is in the file and the first request is about to leave."""


@dataclass(frozen=True, slots=True)
class UserMessageAdded:
    """A message of the person is part of the conversation (sent, steered or queued)."""

    entry_id: str
    text: str
    image_count: int = 0


@dataclass(frozen=True, slots=True)
class ReplyStarted:
    """A request left; nothing has come back yet."""

    model: str


@dataclass(frozen=True, slots=True)
class ReplyAwaited:
    """Nothing of the present reply has come for `waited_s` seconds: said once a minute.

    `is_alive`: the server sends signs of life (pings, comments, empty deltas) meanwhile.
    """

    waited_s: float
    is_alive: bool


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More visible text of the present reply."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More reasoning text of the present reply."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """The model is writing a tool call; `argument_chars` so far."""

    name: str
    argument_chars: int


@dataclass(frozen=True, slots=True)
class ReplyFinished:
    """The reply, whole or interrupted (`message.stop_reason`), is in the file."""

    entry_id: str
    message: AssistantMessage


@dataclass(frozen=True, slots=True)
class ReplyDiscarded:
    """Nothing of the present reply is kept.

    An error came before its first token, or `was_shown`: the reply begins anew.
    """

    was_shown: bool = False


@dataclass(frozen=True, slots=True)
class CutReplyDropped:
    """The model gives the whole of a cut reply once more.

    The parts kept in `entry_ids` no longer belong to the conversation.
    """

    entry_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool call is about to be judged and run. `title` is one line for the person."""

    call_id: str
    name: str
    arguments: JsonObject
    title: str


@dataclass(frozen=True, slots=True)
class ToolOutputDelta:
    """Output of a running tool, as it comes; `skipped_lines` are left out before `text`."""

    call_id: str
    text: str
    skipped_lines: int = 0


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """The tool's result is in the file."""

    entry_id: str
    call_id: str
    message: ToolResultMessage


@dataclass(frozen=True, slots=True)
class BashStarted:
    """A command of the person's (``!``) runs; its output comes as `ToolOutputDelta`."""

    call_id: str
    command: str


@dataclass(frozen=True, slots=True)
class BashFinished:
    """The command of the person's ended and is in the file."""

    entry_id: str
    call_id: str
    message: BashExecutionMessage


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What will happen if the person agrees, and why they are asked.

    `body` is the exact command, a unified diff or a plan (Markdown): `body_kind` says which.
    `session_rule` is the rule that "for this session" and "always" would add, as text,
    or empty where no rule may be made. `part_rules` together
    allow what asks in a command, part by part and mostly with other arguments; empty for none.
    `is_loss`: it may do what no undo brings back, so a front proposes to say no.
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


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """The turn waits for an answer."""

    request: ApprovalRequest


@dataclass(frozen=True, slots=True)
class ApprovalResolved:
    """The answer came (or the turn was aborted, then `allowed` is false)."""

    request_id: str
    allowed: bool


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """A request failed and is tried again after `delay_s` seconds."""

    attempt: int
    max_attempts: int
    delay_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class ContextChanged:
    """How full the context window is now."""

    usage: ContextUsage


@dataclass(frozen=True, slots=True)
class ContextWarning:
    """A threshold was crossed upward: ``warn`` or ``trigger``. Once per crossing.

    Room is made by itself at `compacts_at` percent of the window; 0 where it is not.
    """

    usage: ContextUsage
    level: Literal["warn", "trigger"]
    compacts_at: int = 0


@dataclass(frozen=True, slots=True)
class TotalsChanged:
    """Tokens and cost of this session so far; `cost_usd` is 0 where no price is known."""

    input_tokens: int
    output_tokens: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """Messages typed while the turn runs and not yet delivered, oldest first."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TodosChanged:
    """The model's plan."""

    todos: tuple[Todo, ...]


@dataclass(frozen=True, slots=True)
class TextPinned:
    """A text was put before the model that no compaction takes away: a skill's, or instructions.

    `is_changed`: its file says something else than before.
    """

    entry_id: str
    pin: Pin
    is_changed: bool = False


@dataclass(frozen=True, slots=True)
class PlanHandedOver:
    """In plan mode: the model hands over a plan, in Markdown, for the person to decide on.

    Where nobody can be asked (``-p``) the turn ends with it, and it is the result.
    """

    call_id: str
    plan: str


@dataclass(frozen=True, slots=True)
class JobStarted:
    """A command goes on in the background; comes before the result that says so."""

    job: Job


@dataclass(frozen=True, slots=True)
class JobEnded:
    """A background command has ended; comes when it does, between turns, too."""

    job: Job


@dataclass(frozen=True, slots=True)
class CompactionStarted:
    """A compaction runs; nothing is written until it succeeds."""

    reason: CompactionReason
    focus: str
    tokens_before: int


@dataclass(frozen=True, slots=True)
class CompactionProgress:
    """`phase` for the person ("summarising 2/3"); `summary_chars` received so far."""

    phase: str
    summary_chars: int


@dataclass(frozen=True, slots=True)
class CompactionFinished:
    """The compaction is in the file (a new one after ``/compact``).

    `summary` is empty where messages were only made shorter; then `freed` and `messages` say by
    tier how many tokens that freed and how many messages it changed. `strategy` names another way
    than the tiers, `statistics` says what that did to how many messages.
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
    """Nothing was written; `message` says why, in a whole sentence."""

    message: str


@dataclass(frozen=True, slots=True)
class SessionChanged:
    """Another session file is written from now on (or none, then `path` is None)."""

    session_id: str
    path: Path | None
    name: str
    reason: SessionChangeReason


@dataclass(frozen=True, slots=True)
class BranchSummaryProgress:
    """What is left behind is being summarised; nothing is written until that is done."""

    phase: str
    summary_chars: int


@dataclass(frozen=True, slots=True)
class WentBack:
    """The conversation goes on from the entry `leaf_id` (None: from its beginning).

    `text` is the person's message that comes after it, to be changed and sent again; empty
    where they went back to something else. `image_count` images were with that message.
    """

    leaf_id: str | None
    text: str
    image_count: int = 0


@dataclass(frozen=True, slots=True)
class LoopAdvanced:
    """Round `number` of `count` of a loop begins; one `TurnFinished` ends the whole loop."""

    number: int
    count: int


@dataclass(frozen=True, slots=True)
class ScopeEntered:
    """A scope begins."""

    entry_id: str
    label: str


@dataclass(frozen=True, slots=True)
class ScopeProgress:
    """A scope has ended and is being summed up; what was said stays until that is done."""

    phase: str
    summary_chars: int


@dataclass(frozen=True, slots=True)
class ScopeLeft:
    """A scope has been left.

    `summary` stands for what was in it, or is empty where all of that stays. Sizes in tokens of
    the whole request; 0 without a summary.
    """

    entry_id: str
    label: str
    summary: str = ""
    tokens_before: int = 0
    tokens_after: int = 0


@dataclass(frozen=True, slots=True)
class ModelChanged:
    """The next request goes to this model."""

    model: str
    window: int


@dataclass(frozen=True, slots=True)
class Notice:
    """One line for you. `about` says what it belongs to, where that is more than the program."""

    level: Literal["info", "warning", "error"]
    text: str
    about: NoticeSubject = ""


@dataclass(frozen=True, slots=True)
class TurnRecorded:
    """What a turn took and changed is in the file; comes before its `TurnFinished`.

    Not for a turn that was short and changed nothing.
    """

    entry_id: str
    facts: TurnFacts


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The turn is over; `error` is for the person when `outcome` is ``error`` or ``limit``.

    ``limit``: it took as many requests, or the run cost as much, as was allowed.
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
    | RetryScheduled
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
    | ScopeEntered
    | ScopeProgress
    | ScopeLeft
    | ModelChanged
    | Notice
    | TurnRecorded
    | TurnFinished
)
