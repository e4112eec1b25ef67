"""What the requests of one session and of its helpers took, apart from the session before it."""

from agent_tui.messages import AssistantMessage, Cost, Usage
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomEntry,
    Entry,
    Header,
    MessageEntry,
    Requests,
    custom_entry,
    custom_value,
)
from agent_tui.sessions.log import SessionLog

AGENT_RUN = "agent_run"
"""The custom type of the entry."""


class AgentRun(Requests):
    """What one run of a helper took, and the ``session`` that records it.

    ``session`` is empty for a question that was asked beside the conversation.
    """

    session: str


def run_of(log: SessionLog, model: str) -> AgentRun:
    """What the helper took whose session is `log`."""
    used = [usage for entry in log.entries if (usage := own_usage(log.header, entry)) is not None]
    total = Usage(
        input=sum(usage.input for usage in used),
        output=sum(usage.output for usage in used),
        cache_read=sum(usage.cache_read for usage in used),
        cache_write=sum(usage.cache_write for usage in used),
        cost=Cost(total=sum(usage.cost.total for usage in used)),
        is_estimate=any(usage.is_estimate for usage in used),
    )
    return AgentRun(session=log.header.id, model=model, requests=len(used), usage=total)


def run_entry(run: AgentRun) -> CustomEntry:
    """What records `run` in the session of the conversation it worked for."""
    return custom_entry(AGENT_RUN, run)


def run_in(entry: Entry) -> AgentRun | None:
    """The run that `entry` records; None for any other entry."""
    return custom_value(entry, AGENT_RUN, AgentRun)


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
