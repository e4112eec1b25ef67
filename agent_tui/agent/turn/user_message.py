"""The user's messages: waiting in the queue, and completed with files and images."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent_tui.agent.prompt.mentions import AttachedResource, attach
from agent_tui.errors import IN_CHAT, Ways
from agent_tui.messages import ImageContent, TextContent, UserContent, UserMessage
from agent_tui.providers.base import ModelInfo


@dataclass(frozen=True, slots=True, eq=False)
class NewMessage:
    """A message of the user's that is not in the session yet.

    Args:
        text: All of it.
        images: What goes with it.
        typed: The parts of `text` that were typed around long pastes; None without pastes.
        shown: Its form on the screen while it waits, with marks for long pastes; empty for `text`.
    """

    text: str
    images: tuple[ImageContent, ...] = ()
    typed: tuple[str, ...] | None = None
    shown: str = ""


@dataclass(slots=True)
class MessageQueue:
    """The queued messages, oldest first."""

    messages: list[NewMessage] = field(default_factory=list[NewMessage])

    @property
    def shown(self) -> tuple[str, ...]:
        """The messages as shown on the screen."""
        return tuple(message.shown or message.text for message in self.messages)

    @property
    def first(self) -> NewMessage | None:
        """The message to deliver next; None if there is none."""
        return self.messages[0] if self.messages else None

    def take_first(self) -> None:
        """Remove the first message, which was delivered."""
        del self.messages[0]

    def take_all(self) -> tuple[NewMessage, ...]:
        """Empty the queue; returns its messages."""
        taken = tuple(self.messages)
        self.messages.clear()
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
        ways: Those of whoever reads the notices.
    """
    refusal = image_refusal(info, ways)
    attached = attach(
        text, cwd, info.window, image_refusal=refusal, why_held=why_held, resources=resources
    )
    pictures = (*images, *attached.images)
    content: str | tuple[UserContent, ...] = attached.text
    if pictures:
        content = (TextContent(text=attached.text), *pictures)
    return UserMessage(content=content), attached.notices
