"""What is kept of a reply that broke off, until another try gives it once more."""

from agent_tui.messages import AssistantMessage
from agent_tui.sessions.entries import MessageEntry


class CutReply:
    """The parts of one reply that came by several tries, each cut, oldest first.

    A model that is asked to go on may begin anew. Then the parts stand there twice.
    """

    def __init__(self) -> None:
        self._parts: list[MessageEntry] = []
        self._may_come_again = False

    @property
    def last_id(self) -> str:
        """The entry of the newest part; empty where none is kept."""
        return self._parts[-1].id if self._parts else ""

    def add(self, part: MessageEntry) -> None:
        """One more part is in the session."""
        self._parts.append(part)

    def begin_try(self) -> None:
        """The model is asked once more."""
        self._may_come_again = bool(self._parts)

    def take_given_anew(self, text: str) -> tuple[MessageEntry, ...]:
        """The newest parts that a reply which begins with `text` contains; they are forgotten.

        A part that is thinking alone is in every reply: nobody can be asked to go on from it.
        """
        if not self._may_come_again:
            return ()
        begun = _without_spaces(text)
        for at in range(len(self._parts)):
            if begun.startswith(self._text_from(at)):
                given, self._parts = self._parts[at:], self._parts[:at]
                return tuple(given)
        self._may_come_again = self.holds(text)
        return ()

    def holds(self, text: str) -> bool:
        """Whether a reply cut after `text` says nothing that is not kept."""
        begun = _without_spaces(text)
        return any(self._text_from(at).startswith(begun) for at in range(len(self._parts)))

    def _text_from(self, at: int) -> str:
        texts = (part.message.text for part in self._parts[at:] if _is_reply(part))
        return _without_spaces("".join(texts))


def _is_reply(part: MessageEntry) -> bool:
    return isinstance(part.message, AssistantMessage)


def _without_spaces(text: str) -> str:
    return "".join(text.split())
