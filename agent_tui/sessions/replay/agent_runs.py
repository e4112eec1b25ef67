"""What helpers of a conversation took, which its own replies do not tell."""

from agent_tui.messages import AssistantMessage, Cost, Usage
from agent_tui.sessions.entries import (
    CompactionEntry,
    CustomEntry,
    Entry,
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
    used = [usage for usage in map(_usage_in, log.entries) if usage is not None]
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


def _usage_in(entry: Entry) -> Usage | None:
    match entry:
        case MessageEntry(message=AssistantMessage() as message):
            return message.usage
        case CompactionEntry(usage=usage):
            return usage
        case _:
            return None
