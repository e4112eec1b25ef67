"""The user's messages: waiting in the queue, and completed with files, images and a hint."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent_tui.agent.prompt.mentions import AttachedResource, attach
from agent_tui.attachments import earlier_work_block
from agent_tui.errors import IN_CHAT, Ways
from agent_tui.messages import ImageContent, TextContent, UserContent, UserMessage
from agent_tui.providers.base import ModelInfo
from agent_tui.safe_text import printable_line
from agent_tui.sessions.listing import SessionSummary
from agent_tui.text_search import fold

_MOST_SESSIONS = 2
_TITLE_CHARS = 80
_LEAST_SHARE = 0.5
"""Least share of the weight of the typed words that the other session's beginning must have."""

_LEAST_WEIGHT = 3
_NAME_WEIGHT = 2
_LEAST_LETTERS = 5
_WORD = re.compile(r"[^\W_][\w./-]*\w")
_IS_NAME = re.compile(r"[\d_./-]")
_COMMON_WORDS = """
about above after again against agent another before below between build change changes
check cleanup could create delete doing error every explain feature files first fixed
folder following function implement improve inside instead issue leave lines looks maybe
module needs other please problem project really remove rename repository right should
simple small start still tests their there these thing things think those through under
update using wants where which while without working works would write wrong
"""
_COMMON = frozenset(_COMMON_WORDS.split())
"""Words that any two tasks may share."""


def resembling(text: str, sessions: Iterable[SessionSummary]) -> Sequence[SessionSummary]:
    """The few of `sessions` whose name and first message share most of the words of `text`.

    A name (something with a digit, dot, slash, dash or underscore) weighs as much as two words.
    Words that any two tasks share do not count.
    """
    wanted = _weights(text)
    least = max(_LEAST_WEIGHT, _LEAST_SHARE * sum(wanted.values()))
    rated = [
        (sum(wanted[word] for word in wanted.keys() & _weights(_beginning(session))), session)
        for session in sessions
    ]
    best = sorted(
        ((weight, session) for weight, session in rated if weight >= least),
        key=lambda found: (found[0], found[1].modified),
        reverse=True,
    )
    return [session for _, session in best[:_MOST_SESSIONS]]


def hint_line(session: SessionSummary) -> str:
    """One line for the model: when the session was, how it began, and how to search it."""
    words = sorted(_weights(_beginning(session)).items(), key=lambda item: -item[1])[:2]
    query = " ".join(word for word, _ in words)
    return (
        f"{session.modified:%Y-%m-%d}: a similar session in this folder: "
        f'"{_title(session)}". recall(query="{query}") searches it.'
    )


def notice(sessions: Sequence[SessionSummary]) -> str:
    """The notice that names `sessions` to the user."""
    named = (f'"{_title(session)}" ({session.modified:%Y-%m-%d})' for session in sessions)
    return f"Similar to {' and '.join(named)}: the model can search it, /resume opens it."


def _title(session: SessionSummary) -> str:
    return printable_line(session.name or session.first_prompt, _TITLE_CHARS)


def _beginning(session: SessionSummary) -> str:
    return f"{session.name}\n{session.first_prompt}"


def _weights(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for word in _WORD.findall(fold(text)):
        if _IS_NAME.search(word):
            found[word] = _NAME_WEIGHT
        elif len(word) >= _LEAST_LETTERS and word not in _COMMON:
            found[word] = 1
    return found


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
    alike: Sequence[SessionSummary] = (),
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
        alike: Earlier sessions to hint at.
        why_held: Why a mentioned file is not attached without asking; empty if it may be.
        resources: The mentioned resources that servers returned.
        ways: Those of whoever reads the notices.
    """
    refusal = image_refusal(info, ways)
    attached = attach(
        text, cwd, info.window, image_refusal=refusal, why_held=why_held, resources=resources
    )
    pictures = (*images, *attached.images)
    told = attached.text
    if alike:
        told = f"{told}\n\n{earlier_work_block([hint_line(session) for session in alike])}"
    content: str | tuple[UserContent, ...] = told
    if pictures:
        content = (TextContent(text=told), *pictures)
    notices = (*attached.notices, *((notice(alike),) if alike else ()))
    return UserMessage(content=content), notices
