"""A conversation as messages that can be shortened."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agent_tui.messages import Message
from agent_tui.sessions.actions import Output
from agent_tui.sessions.entries import EditContent

EditTier: TypeAlias = Literal[0, 1, 2, 3]
"""What an edit does: 0 removes what is shown elsewhere, 1 cuts the text.

2 leaves one line of metadata, 3 leaves another wording or nothing.
"""

Content: TypeAlias = str | tuple[EditContent, ...] | None
"""What a `ContextEditEntry` replaces a message with; None removes the message."""

UNEDITED = -1
"""The tier of a message without an edit."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One message that can be shortened. `message` is as originally written.

    `written_tokens` is its size then. `tokens` is its size now, with its edit of tier `edited_tier`
    (`UNEDITED` for none). `output` is set if the message is the result of an action, whatever its
    role.
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
