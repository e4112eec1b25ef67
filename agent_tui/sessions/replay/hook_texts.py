"""What hooks tell the model, as entries of the session."""

import html
from collections.abc import Sequence

from agent_tui.config import HookEvent
from agent_tui.sessions.entries import CustomMessageEntry, Entry

_TOLD = "hook"
_KEPT = "hook_kept"


def hook_entry(event: HookEvent, text: str) -> CustomMessageEntry:
    """What tells the model something that a hook on `event` said."""
    said = html.escape(text, quote=False)
    content = f'<hook event="{event}">\n{said}\n</hook>'
    kind = _KEPT if event == "PreCompact" else _TOLD
    return CustomMessageEntry(custom_type=kind, content=content, display=False)


def was_kept_by_hook(entry: Entry) -> bool:
    """Whether `entry` belongs to a compaction: what a hook wanted kept behind it."""
    return isinstance(entry, CustomMessageEntry) and entry.custom_type == _KEPT


def superseded(path: Sequence[Entry]) -> frozenset[str]:
    """The ids of what hooks wanted kept behind earlier compactions: only the newest counts."""
    kept = [entry.id for entry in path if was_kept_by_hook(entry)]
    return frozenset(kept[:-1])
