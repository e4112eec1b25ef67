"""What the person said, as a message: with the files it mentions and the images it carries."""

from collections.abc import Callable, Sequence
from pathlib import Path

from agent_tui.agent.prompt.earlier_work import hint_line, notice
from agent_tui.agent.prompt.mentions import AttachedResource, attach
from agent_tui.attachments import earlier_work_block
from agent_tui.messages import ImageContent, TextContent, UserContent, UserMessage
from agent_tui.providers.base import ModelInfo
from agent_tui.sessions.listing.summary import SessionSummary


def image_refusal(info: ModelInfo) -> str:
    """Why this model is sent no images; empty if it sees them."""
    if info.sees_images:
        return ""
    known = "may not support images" if info.source == "guess" else "does not support images"
    return f"{info.name} {known}; the path is sent as text. /model switches models."


def user_message(
    text: str,
    images: tuple[ImageContent, ...],
    cwd: Path,
    info: ModelInfo,
    alike: Sequence[SessionSummary] = (),
    why_held: Callable[[Path], str] = lambda _path: "",
    *,
    resources: Sequence[AttachedResource] = (),
) -> tuple[UserMessage, tuple[str, ...]]:
    """The message, and what the person is to be told of it. Reads files.

    Args:
        text: What was written; files are attached to it once.
        images: What was given with it, before the images it mentions.
        cwd: What paths are relative to.
        info: The model it is for.
        alike: Earlier sessions to hint at.
        why_held: Why a file that is mentioned does not go along unasked; empty where it may.
        resources: What servers gave for those that are mentioned.
    """
    refusal = image_refusal(info)
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
