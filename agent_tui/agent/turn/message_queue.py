"""What the person said while a turn runs, until it is delivered or taken back."""

from dataclasses import dataclass, field

from agent_tui.messages import ImageContent


@dataclass(frozen=True, slots=True, eq=False)
class QueuedMessage:
    """One message; `shown` is how it is shown while it waits, its long pastes as marks."""

    text: str
    images: tuple[ImageContent, ...] = ()
    shown: str = ""


@dataclass(slots=True)
class MessageQueue:
    """The messages, oldest first."""

    messages: list[QueuedMessage] = field(default_factory=list[QueuedMessage])

    @property
    def shown(self) -> tuple[str, ...]:
        """How they are shown."""
        return tuple(message.shown or message.text for message in self.messages)

    @property
    def first(self) -> QueuedMessage | None:
        """The one to be delivered next."""
        return self.messages[0] if self.messages else None

    def take_first(self) -> None:
        """The first one is delivered."""
        del self.messages[0]

    def take_all(self) -> tuple[QueuedMessage, ...]:
        """Empty the queue."""
        taken = tuple(self.messages)
        self.messages.clear()
        return taken
