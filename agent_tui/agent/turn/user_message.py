"""The user's messages: waiting in the queue, and completed with files and images."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent_tui.agent.prompt.mentions import AttachedResource, attach
from agent_tui.attachments import AttachedFile, without_attachments
from agent_tui.errors import IN_CHAT, Ways
from agent_tui.events import QueueChanged
from agent_tui.messages import ImageContent, TextContent, UserContent, UserMessage
from agent_tui.providers.base import ModelInfo


@dataclass(frozen=True, slots=True, eq=False)
class NewMessage:
    """A message of the user's that is not in the session yet.

    Args:
        text: All of it.
        images: What goes with it.
        typed: The parts of `text` that were typed around pastes; None if all of it was.
        shown: Its form on the screen while it waits, with marks for long pastes; empty for `text`.
        is_command: Whether it is a command, after ``!``, which runs between turns.
    """

    text: str
    images: tuple[ImageContent, ...] = ()
    typed: tuple[str, ...] | None = None
    shown: str = ""
    is_command: bool = False

    @property
    def typed_text(self) -> str:
        """The text without pastes and attached files."""
        return without_attachments(self.text) if self.typed is None else "\n".join(self.typed)


@dataclass(frozen=True, slots=True)
class NoteToModel:
    """What the model is told about an act of the user's, who cannot edit it.

    Args:
        text: What the model reads.
        shown: One line for the user while it waits.
    """

    text: str
    shown: str


@dataclass(slots=True)
class MessageQueue:
    """The queued messages, oldest first, and the notes that precede them."""

    messages: list[NewMessage] = field(default_factory=list[NewMessage])
    notes: list[NoteToModel] = field(default_factory=list[NoteToModel])

    @property
    def shown(self) -> tuple[str, ...]:
        """The messages as shown on the screen."""
        return tuple(message.shown or message.text for message in self.messages)

    @property
    def change(self) -> QueueChanged:
        """The event that shows what waits."""
        return QueueChanged(self.shown, tuple(note.shown for note in self.notes))

    @property
    def first(self) -> NewMessage | None:
        """The message to deliver next; None if there is none, or a command precedes it."""
        first = next(iter(self.messages), None)
        return None if first is None or first.is_command else first

    def take_first(self) -> None:
        """Remove the first message, which was delivered."""
        del self.messages[0]

    def take_all(self) -> tuple[NewMessage, ...]:
        """Empty the queue; returns its messages."""
        return self._take(len(self.messages))

    def take_next(self) -> tuple[NewMessage, ...]:
        """Remove and return what is next: the messages before a command, or one command."""
        commands = (n for n, message in enumerate(self.messages) if message.is_command)
        return self._take(next(commands, len(self.messages)) or 1)

    def _take(self, count: int) -> tuple[NewMessage, ...]:
        taken = tuple(self.messages[:count])
        del self.messages[:count]
        return taken


def image_refusal(info: ModelInfo, ways: Ways = IN_CHAT) -> str:
    """Why this model gets no images; empty if it supports them."""
    if info.sees_images:
        return ""
    known = "may not support images" if info.source == "guess" else "does not support images"
    said = f"{info.name} {known}; the path is sent as text. Switch models with {{model}}."
    return ways.fill(said)


def user_message(
    text: str,
    images: tuple[ImageContent, ...],
    cwd: Path,
    info: ModelInfo,
    why_held: Callable[[Path], str] = lambda _path: "",
    *,
    resources: Sequence[AttachedResource] = (),
    in_context: Sequence[AttachedFile] = (),
    ways: Ways = IN_CHAT,
) -> tuple[UserMessage, tuple[str, ...]]:
    """The message, and notices about it for the user. Reads files.

    Args:
        text: The typed text; files are attached to it once.
        images: Images given with it; they precede those it mentions.
        cwd: What paths are relative to.
        info: The model that will read it.
        why_held: Why a mentioned file is not attached without asking; empty if it may be.
        resources: The mentioned resources that servers returned.
        in_context: The files that messages in the context have; they are attached only if changed.
        ways: Those of whoever reads the notices.
    """
    refusal = image_refusal(info, ways)
    attached = attach(
        text,
        cwd,
        info.window,
        image_refusal=refusal,
        why_held=why_held,
        resources=resources,
        in_context=in_context,
    )
    pictures = (*images, *attached.images)
    content: str | tuple[UserContent, ...] = attached.text
    if pictures:
        content = (TextContent(text=attached.text), *pictures)
    return UserMessage(content=content), attached.notices
