"""What fills a context, in words."""

from collections import Counter
from collections.abc import Iterable

from agent_tui.compaction.outcomes import subject_of_call
from agent_tui.compaction.shorten import one_line
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Message,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.context import Context, is_summary
from agent_tui.tokens import TokenCounter

_NAMED = 3
_SUBJECT_CHARS = 60


def what_fills(context: Context, counter: TokenCounter) -> str:
    """The largest sources of `context` with their shares: ``read src/a.py 41 %, ...``.

    Results of the same call, whatever their number, are one source; so are all replies and all
    messages of the person. What is less than one percent is not named.
    """
    tokens = Counter[str]()
    for source, message in _sources(context):
        tokens[source] += counter.count_message(message)
    total = max(tokens.total(), 1)
    shares = ((source, 100 * count // total) for source, count in tokens.most_common(_NAMED))
    return ", ".join(f"{source} {percent} %" for source, percent in shares if percent)


def _sources(context: Context) -> Iterable[tuple[str, Message]]:
    calls: dict[str, ToolCall] = {}
    for item in context.messages:
        message = item.message
        match message:
            case UserMessage() if is_summary(item, context):
                source = "the summary"
            case UserMessage():
                source = "your messages"
            case AssistantMessage():
                calls.update((call.id, call) for call in message.tool_calls)
                source = "replies and calls"
            case ToolResultMessage():
                subject = subject_of_call(message.tool_name, calls.get(message.tool_call_id))
                source = one_line(subject, _SUBJECT_CHARS)
            case BashExecutionMessage():
                source = one_line(f"! {message.command}", _SUBJECT_CHARS)
        yield source, message
