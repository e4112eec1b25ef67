"""What the model is told of its context's fill, behind the results that were there when it was."""

from collections.abc import Iterator

from agent_tui.messages import ContextNote, Message, TextContent, ToolResultMessage
from agent_tui.sessions.context import Context
from agent_tui.sessions.entries import milliseconds


def sent_messages(context: Context) -> tuple[Message, ...]:
    """The messages of the next request: those of `context` with the notes that still hold.

    A note is part of its result for the model alone: nothing else takes it for output. What was
    written before a compaction or an edit tells of another context, and is not told any more.
    """
    noted = dict(_notes(context))
    messages = [item.message for item in context.messages]
    for index, note in noted.items():
        result = messages[index]
        assert isinstance(result, ToolResultMessage)
        content = (*result.content, TextContent(text=note.text))
        messages[index] = result.model_copy(update={"content": content})
    return tuple(messages)


def newest_note(context: Context) -> ContextNote | None:
    """What the model of `context` was told last of how full it is."""
    return next((note for _, note in _notes(context)), None)


def _notes(context: Context) -> Iterator[tuple[int, ContextNote]]:
    """The notes that hold, newest first, with the indices of their messages."""
    compaction = context.compaction
    since_ms = milliseconds(compaction.timestamp) if compaction is not None else 0
    for index in range(len(context.messages) - 1, context.fresh_from - 1, -1):
        message = context.messages[index].message
        if isinstance(message, ToolResultMessage) and message.timestamp >= since_ms:
            note = message.context_note
            if note is not None:
                yield index, note
