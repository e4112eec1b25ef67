"""What fills a context: its largest sources, in words for the user."""

from collections import Counter

from agent_tui.compaction.tiers.describe import action_label
from agent_tui.messages import AssistantMessage
from agent_tui.sessions.context import Context, is_summary
from agent_tui.sessions.outputs import read_outputs
from agent_tui.tokens import TokenCounter

_NAMED_SOURCES = 3
_LABEL_CHARS = 60


def largest_sources(context: Context, counter: TokenCounter) -> str:
    """The largest sources of `context` with their shares: ``read src/a.py 41 %, ...``.

    All results of the same call are one source; so are all replies and all user messages. Sources
    below one percent are not named.
    """
    tokens = Counter[str]()
    outputs = read_outputs([item.message for item in context.messages])
    for item, output in zip(context.messages, outputs, strict=True):
        if output is not None:
            source = action_label(output.action, _LABEL_CHARS)
        elif isinstance(item.message, AssistantMessage):
            source = "replies and calls"
        else:
            source = "the summary" if is_summary(item, context) else "your messages"
        tokens[source] += counter.count_message(item.message)
    total = max(tokens.total(), 1)
    shares = (
        (source, 100 * count // total) for source, count in tokens.most_common(_NAMED_SOURCES)
    )
    return ", ".join(f"{source} {percent} %" for source, percent in shares if percent)
