"""What the requests of one session took, without those of the session it goes on from."""

from agent_tui.messages import AssistantMessage, Usage
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomEntry,
    Entry,
    Header,
    MessageEntry,
)
from agent_tui.sessions.replay.agent_runs import run_in


def was_copied(header: Header, entry: Entry) -> bool:
    """Whether `entry` came from the session that the one of `header` goes on from."""
    return header.parent_session is not None and entry.timestamp < header.timestamp


def own_usage(header: Header, entry: Entry) -> Usage | None:
    """What the request that made `entry` took, helpers included; None where this session made none.

    What was copied was counted where it came from, and so was the summary a session begins with.
    """
    if was_copied(header, entry):
        return None
    match entry:
        case MessageEntry(message=AssistantMessage() as reply):
            return reply.usage
        case CompactionEntry(usage=usage) if entry.parent_id:
            return usage
        case BranchSummaryEntry(usage=usage):
            return usage
        case CustomEntry() if (run := run_in(entry)) is not None:
            return run.usage
        case _:
            return None
