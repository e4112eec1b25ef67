"""The modes of approval, in the words of the user."""

from typing import get_args

from agent_tui.config import PermissionMode

PERMISSION_MODES: tuple[PermissionMode, ...] = get_args(PermissionMode)
MODES: tuple[tuple[PermissionMode, str], ...] = (
    ("plan", "reads only"),
    ("ask", "reads freely; asks before it writes files or runs commands"),
    ("accept-edits", "also edits files here freely; asks before commands outside the sandbox"),
    ("full", "runs everything except what always asks"),
)
"""Each mode, and what the model may do in it."""
