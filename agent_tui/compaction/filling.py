"""What fills a context, in words."""

from collections import Counter
from collections.abc import Iterable, Sequence

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
from agent_tui.tokens import TokenCounter

_NAMED = 3


def what_fills(messages: Sequence[Message], counter: TokenCounter) -> str:
    """The largest sources of `messages` with their shares: ``read src/a.py 41 %, ...``.

    Results of the same call, whatever their number, are one source; so are all replies and all
    messages of the person.
    """
    tokens = Counter[str]()
    for source, message in _sources(messages):
        tokens[source] += counter.count_message(message)
    total = tokens.total()
    return ", ".join(
        f"{source} {100 * count // total} %"
        for source, count in tokens.most_common(_NAMED)
        if count
    )


def _sources(messages: Sequence[Message]) -> Iterable[tuple[str, Message]]:
    calls: dict[str, ToolCall] = {}
    for message in messages:
        match message:
            case UserMessage():
                source = "your messages"
            case AssistantMessage():
                calls.update((call.id, call) for call in message.tool_calls)
                source = "replies and calls"
            case ToolResultMessage():
                subject = subject_of_call(message.tool_name, calls.get(message.tool_call_id))
                source = one_line(subject, 60)
            case BashExecutionMessage():
                source = one_line(f"! {message.command}", 60)
        yield source, message
