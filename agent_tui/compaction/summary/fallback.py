"""What the log says of a conversation, where no model sums it up."""

from dataclasses import dataclass

from agent_tui.compaction.shorten import one_line, shorten_middle
from agent_tui.compaction.transcript.text import escape_tags
from agent_tui.sessions.entries import Ledger
from agent_tui.tokens import TokenCounter

_MESSAGE_CHARS = 400
_REPLY_CHARS = 1_200
_SHORTEST_REQUEST = 10
"""Shorter messages ("ok", "wow") ask for nothing."""


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What the log says of a conversation, no model needed.

    Args:
        ledger: Facts of the whole conversation.
        last_reply: Text of the newest reply that leaves the context.
    """

    ledger: Ledger
    last_reply: str


def fallback_summary(log_facts: LogFacts, *, counter: TokenCounter, max_tokens: int) -> str:
    """What was asked, what is open and the last reply, in at most `max_tokens`.

    Where that is too much, requests go first, from one third on: the first ones say what all of it
    is about, and the last ones where it stands.
    """
    ledger = log_facts.ledger
    lines = [
        f"- asked: {one_line(text, _MESSAGE_CHARS)}"
        for text in reversed(ledger.user_messages)
        if len(text) >= _SHORTEST_REQUEST
    ]
    lines += [f"- open: {todo}" for todo in ledger.open_todos]
    if log_facts.last_reply:
        reply = one_line(shorten_middle(log_facts.last_reply, _REPLY_CHARS), 2 * _REPLY_CHARS)
        lines.append(f"- last reply: {reply}")
    while lines and counter.count_text("\n".join(lines)) > max_tokens:
        lines.pop(len(lines) // 3)
    return escape_tags("\n".join(lines))
