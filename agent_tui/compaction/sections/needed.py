"""The outputs that the work goes on from: they are shortened last."""

from collections.abc import Sequence

from agent_tui.compaction.sections.errors import open_error_entries
from agent_tui.compaction.sections.history import Done, Event, read_history
from agent_tui.compaction.sections.task import task_texts
from agent_tui.sessions.entries import Entry

_FILES_AT_WORK = 8
"""Files changed last; the views of others are looked at again anyway."""


def needed_entries(path: Sequence[Entry]) -> frozenset[str]:
    """Entries of `path` that the work goes on from.

    They hold the text of an open task, an open error, or the newest view of a file that was
    changed lately.
    """
    events = read_history(path)
    tasks = (task.entry_id for task in task_texts(events))
    return frozenset((*tasks, *open_error_entries(events), *_newest_views(events)))


def _newest_views(events: Sequence[Event]) -> list[str]:
    """The newest read of each of the files that were changed last."""
    done = [event for event in reversed(events) if isinstance(event, Done)]
    changed = dict.fromkeys(
        event.output.file_key
        for event in done
        if event.output.action.kind in ("write", "edit") and event.output.file_key
    )
    waiting = set(list(changed)[:_FILES_AT_WORK])
    views: list[str] = []
    for event in done:
        output = event.output
        if output.action.kind == "read" and not output.has_failed and output.file_key in waiting:
            waiting.discard(output.file_key)
            views.append(event.entry_id)
    return views
