"""What is attached to a user's message, and which part of it the user typed."""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_FILE = re.compile(
    r'\n\n<file path="(?P<path>[^"\n]*)"(?: lines="(?P<first>\d+)-\d+")?>\n'
    r"(?P<text>.*?)\n</file>(?=\n\n<|\Z)",
    re.DOTALL,
)
_CUT = "\n[cut here: "
_ATTACHED = re.compile(r'\n\n<(?:file|folder) path="([^"\n]*)"')
_EARLIER_WORK = re.compile(r"\n\n<earlier-work>\n[^<]*\n</earlier-work>\Z")
_INSTRUCTIONS = re.compile(
    r"\n\n<command-instructions>\n.*?\n</command-instructions>(?=\n\n<|\Z)", re.DOTALL
)

_OUR_TAGS = re.compile(
    r"</?(?:file|folder|earlier-work|command-instructions|instructions)(?:\s[^<>\n]*)?>"
)


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """A file attached to a message.

    Args:
        path: As the user wrote it.
        first: Number of the first line; 1 for the beginning.
        text: The attached part.
        is_whole: Whether that is the whole file.
    """

    path: str
    first: int
    text: str
    is_whole: bool


def find_attached_files(text: str) -> Iterator[AttachedFile]:
    """The text files attached to the message `text`."""
    for found in _FILE.finditer(text, len(without_attachments(text))):
        body, _, cut = found["text"].partition(_CUT)
        is_whole = found["first"] is None and not cut
        yield AttachedFile(html.unescape(found["path"]), int(found["first"] or 1), body, is_whole)


def earlier_work_block(lines: list[str]) -> str:
    """The block that names similar earlier sessions, one per line of `lines`."""
    return "\n".join(
        ("<earlier-work>", *(html.escape(line, quote=False) for line in lines), "</earlier-work>")
    )


def instructions_block(text: str) -> str:
    """The block for a command's detailed instructions to the model.

    Its name is not ``<instructions>``, which users write themselves and which is never hidden.
    """
    return f"<command-instructions>\n{text}\n</command-instructions>"


def without_tags(text: str) -> str:
    """A message without the tags around attachments."""
    return _OUR_TAGS.sub("", text)


def without_instructions(text: str) -> str:
    """A message without the blocks of `instructions_block`."""
    return _INSTRUCTIONS.sub("", text)


def without_attachments(text: str) -> str:
    """The user's text from what went to the model: without files, hints and instructions."""
    text = without_instructions(_EARLIER_WORK.sub("", text))
    for start in _ATTACHED.finditer(text):
        written = html.unescape(start[1])
        if f"@{written}" in text[: start.start()] or f'@"{written}"' in text[: start.start()]:
            return text[: start.start()]
    return text


def split_pastes(text: str, typed: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """The consecutive parts of a message, and whether each is pasted.

    Args:
        text: The message, or a shortened form of it.
        typed: Its typed parts, in order; without any, all of it counts as typed.
    """
    at = 0
    for part in typed:
        start = text.find(part, at)
        if start > at:
            yield text[at:start], True
        if start >= 0:
            yield part, False
            at = start + len(part)
    if at < len(text):
        yield text[at:], bool(typed)


_APPROVED = "I approve this plan. Follow it:\n\n"
_FORMERLY = "I approve this plan. Work by it:\n\n"
"""The text in sessions of earlier versions."""


def approving_message(plan: str) -> str:
    """The message that stands for the user's approval of `plan`."""
    return f"{_APPROVED}{plan}"


def plan_approved_by(message: str) -> str:
    """The plan that `message` approves; empty if it approves none."""
    openings = (opening for opening in (_APPROVED, _FORMERLY) if message.startswith(opening))
    return message.removeprefix(opening) if (opening := next(openings, "")) else ""
