"""Refusals by the user, found in the texts that other programs record as results of calls."""

import re

from agent_tui.messages import ToolDetails

_REFUSED = re.compile(
    r"The user doesn't want to (?:proceed with this tool use|take this action right now)\."
    r"|The user rejected permission to use this specific tool call\b"
    r"|The tool call is rejected by the user\."
    r"|(?:exec command|patch) rejected by user\b"
    r"|\[Operation Cancelled\] Reason: User (?:did not allow tool call|denied execution)"
)
"""How such results begin, in this order: Claude Code, opencode, Kimi, Codex, Gemini CLI."""

_REASON = re.compile(
    r" (?:the user said|with the following feedback|User feedback):\s*(?P<words>.+?)\s*"
    r"(?:\n\nNote: The user's next message .*)?\Z",
    re.DOTALL,
)
"""The user's reason, and what Claude Code may add to it."""


def note_refusal(details: ToolDetails, text: str) -> ToolDetails:
    """`details` of a failed call with the user's refusal, if `text`, its result, states one."""
    if details.ending or not _REFUSED.match(text):
        return details
    reason = _REASON.search(text)
    words = reason["words"] if reason else ""
    return details.model_copy(update={"ending": "declined", "user_words": words})
