"""Replies that come by several tries, for fronts that cannot take back what they have shown."""

from collections.abc import Iterator

from agent_tui.events import (
    AgentEvent,
    CutReplyDropped,
    ReplyDiscarded,
    ReplyFinished,
    ReplyStarted,
    TextDelta,
    TurnStarted,
)


class SaidOnce:
    """Leaves out words that repeat those of a try that was cut.

    A model that is asked to go on from a cut reply may begin it anew. Its words are held back
    for as long as they are those that stand there already; what they add follows as text.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._held = ""
        self._has_spoken = False

    def of(self, event: AgentEvent) -> Iterator[AgentEvent]:
        """The events to show in the place of `event`."""
        match event:
            case TurnStarted():
                self._parts.clear()
                yield event
            case ReplyStarted():
                self._held, self._has_spoken = "", False
                yield event
            case TextDelta(text):
                if words := self._new_words(text):
                    yield TextDelta(words)
            case CutReplyDropped():
                pass
            case ReplyFinished(message=message) if message.stop_reason == "error":
                self._parts.append(message.text)
                yield event
            case ReplyFinished():
                held = "" if self._has_spoken else _without_spaces(self._held)
                if held and held not in self._said:
                    yield TextDelta(self._held)
                self._parts.clear()
                yield event
            case ReplyDiscarded(was_shown):
                yield ReplyDiscarded(was_shown and self._has_spoken)
            case _:
                yield event

    def _new_words(self, text: str) -> str:
        """What is to be said now that `text` came; empty while it may repeat what was said."""
        if self._has_spoken:
            return text
        self._held += text
        begun, said = _without_spaces(self._held), self._said
        if any(one.startswith(begun) for one in said):
            return ""
        self._has_spoken = True
        repeated = next((one for one in said if one and begun.startswith(one)), "")
        return _after(self._held, len(repeated)).lstrip() if repeated else self._held

    @property
    def _said(self) -> list[str]:
        """What a reply may repeat: all that stands there of it, and less and less of its end."""
        parts = [_without_spaces(part) for part in self._parts]
        return ["".join(parts[at:]) for at in range(len(parts))]


def _without_spaces(text: str) -> str:
    return "".join(text.split())


def _after(text: str, count: int) -> str:
    """What follows the first `count` characters of `text` that are no spaces."""
    for at, char in enumerate(text):
        if not count:
            return text[at:]
        count -= not char.isspace()
    return ""
