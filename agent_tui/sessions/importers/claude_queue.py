"""What was typed in Claude Code while a turn ran: its queue, as the session's file tells of it."""

from dataclasses import dataclass

from agent_tui.messages import JsonObject
from agent_tui.sessions.importers.fields import joined_text, text_at


@dataclass(slots=True)
class QueuedMessage:
    """One message in the queue.

    Args:
        number: Of the line that queued it, from 1.
        timestamp: When it was queued, as the line has it.
        text: What was typed, or what the program itself queued.
        is_said: Whether the file holds it as a message of its own, too.
    """

    number: int
    timestamp: str
    text: str
    is_said: bool = False


class ClaudeQueue:
    """The ``queue-operation`` lines of a file, followed in their order.

    ``enqueue`` has the text. ``dequeue`` and ``remove`` take out the oldest, which the model is
    given then: at the start of a turn as an ordinary line, within one without any. ``popAll``
    takes everything back into the prompt.
    """

    def __init__(self) -> None:
        self._waiting: list[QueuedMessage] = []
        self._given: list[QueuedMessage] = []

    def take(self, number: int, data: JsonObject) -> None:
        """One line; `number` is its place in the file, from 1."""
        text = joined_text(data.get("content"))
        match data.get("operation"):
            case "enqueue" if text.strip():
                self._waiting.append(QueuedMessage(number, text_at(data, "timestamp"), text))
            case "dequeue" | "remove" if self._waiting:
                named = (at for at, one in enumerate(self._waiting) if one.text == text)
                self._given.append(self._waiting.pop(next(named, 0)))
            case "popAll":
                self._waiting.clear()
            case _:
                pass

    def was_said(self, text: str) -> None:
        """`text` is in the file as a message: alone, or with others a line each."""
        for message in (*self._given, *self._waiting):
            if f"\n{message.text.strip()}\n" in f"\n{text.strip()}\n":
                message.is_said = True

    def given(self) -> list[QueuedMessage]:
        """What the model was given since the last call of this and stands nowhere else."""
        given, self._given = self._given, []
        return [message for message in given if not message.is_said]

    def never_given(self) -> list[QueuedMessage]:
        """What is still to be answered at the end of the file."""
        return [message for message in (*self._given, *self._waiting) if not message.is_said]
