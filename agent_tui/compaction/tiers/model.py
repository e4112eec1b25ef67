"""The values that the tiers work on, and the plan they make."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pydantic import JsonValue

from agent_tui.messages import JsonObject, Message
from agent_tui.sessions.entries import ContextEditEntry, EditContent

Tier: TypeAlias = Literal[0, 1, 2]

EditTier: TypeAlias = Tier | Literal[3]
"""Tier 3: a message put into fewer words by a model, as a strategy other than the tiers does."""

ActionKind: TypeAlias = Literal["read", "write", "edit", "run", "other"]

Content: TypeAlias = str | tuple[EditContent, ...] | None
"""What a `ContextEditEntry` puts in a message's place; None takes the message out."""

UNEDITED = -1
"""The tier of a message that no edit has touched."""


@dataclass(frozen=True, slots=True)
class TierPlan:
    """Edits that free part of the context, and what they free. All sizes in estimated tokens.

    Args:
        edits: At most one for a message, in the order of the messages; all of one batch.
        tokens_before: Size of the next request as it is.
        tokens_after: Its size with `edits`.
        freed: By tier, what its edits free; an edit does all that lower tiers do to its message
            and counts for its own tier alone. The sum is `tokens_before` less `tokens_after`.
        protected_over_target: What no tier may touch is larger than the target by itself, so
            that protected tool outputs were shortened too, where that was of use.
    """

    edits: tuple[ContextEditEntry, ...]
    tokens_before: int
    tokens_after: int
    freed: Mapping[int, int]
    protected_over_target: bool


@dataclass(frozen=True, slots=True)
class Action:
    """One call of a tool, whatever the tool is called in the program that wrote the session.

    `path` is as the model wrote it; `command` is set where something was run.
    """

    tool: str
    kind: ActionKind
    path: str = ""
    command: str = ""
    arguments: JsonObject = field(default_factory=dict[str, JsonValue])


@dataclass(frozen=True, slots=True)
class Output:
    """What an action gave back. `number` counts the outputs of the conversation from 1.

    `todo` is the step of the plan that was being worked on; `file_key` is the same for the same
    file, however its path was spelled, and empty where no file was named.
    """

    action: Action
    text: str
    has_failed: bool
    number: int
    exit_code: int | None = None
    summary: str = ""
    is_truncated: bool = False
    todo: str = ""
    file_key: str = ""


@dataclass(frozen=True, slots=True)
class Unit:
    """One message that a tier may change.

    `message` is as it was written and `written_tokens` what it took then, `thinking_tokens` of
    that a reply's thinking. `tokens` is what it takes now, with the edit of tier `edited_tier`
    that it already has (`UNEDITED` for none). `id_tokens` of both come from ids that the
    context had to change. `output` is set where the message is the outcome of an action,
    whatever its role.
    """

    entry_id: str
    position: int
    message: Message
    written_tokens: int
    thinking_tokens: int
    tokens: int
    id_tokens: int
    edited_tier: int
    is_protected: bool
    is_display_only: bool = False
    output: Output | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """One way to make a unit smaller; `tokens_after` is a guess unless `is_exact`."""

    unit: Unit
    tier: Tier
    tokens_after: int
    make: Callable[[], Content]
    is_exact: bool = False
