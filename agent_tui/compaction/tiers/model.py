"""A conversation as messages that can be made smaller, and what they are the outcome of."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pydantic import JsonValue

from agent_tui.compaction.ledger.tool_names import ActionKind
from agent_tui.messages import FileTouches, JsonObject, Message
from agent_tui.sessions.entries import EditContent

EditTier: TypeAlias = Literal[0, 1, 2, 3]
"""What an edit does: 0 leaves out what is seen elsewhere, 1 cuts, 2 leaves a line of metadata, 3
leaves other words or nothing."""

Content: TypeAlias = str | tuple[EditContent, ...] | None
"""What a `ContextEditEntry` puts in a message's place; None takes the message out."""

UNEDITED = -1
"""The tier of a message that no edit has touched."""


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
    """What an action gave back.

    `file_key` is the same for the same file, however its path was spelled, and empty where no file
    was named. `files` is what the tool says that it touched; None where it says nothing of files.
    """

    action: Action
    text: str
    has_failed: bool
    exit_code: int | None = None
    summary: str = ""
    is_truncated: bool = False
    file_key: str = ""
    files: FileTouches | None = None


@dataclass(frozen=True, slots=True)
class Unit:
    """One message that can be made smaller.

    `message` is as it was written and `written_tokens` what it took then. `tokens` is what it
    takes now, with the edit of tier `edited_tier` that it already has (`UNEDITED` for none).
    `output` is set where the message is the outcome of an action, whatever its role.
    """

    entry_id: str
    position: int
    message: Message
    written_tokens: int
    tokens: int
    edited_tier: int
    is_protected: bool
    is_display_only: bool = False
    output: Output | None = None
