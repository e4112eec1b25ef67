"""What goes along with a person's message, and what of it they typed."""

import html
import re
from collections.abc import Iterator
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
    """A file that went along with a message.

    Args:
        path: As the person wrote it.
        first: Number of the first line; 1 for the beginning.
        text: What of it went along.
        is_whole: Whether that is all of it.
    """

    path: str
    first: int
    text: str
    is_whole: bool


def attached_files(text: str) -> Iterator[AttachedFile]:
    """The text files that went along with the message `text`."""
    for found in _FILE.finditer(text, len(without_attachments(text))):
        body, _, cut = found["text"].partition(_CUT)
        is_whole = found["first"] is None and not cut
        yield AttachedFile(html.unescape(found["path"]), int(found["first"] or 1), body, is_whole)


def earlier_work_block(lines: list[str]) -> str:
    """The block that names sessions which began alike; each of `lines` is one of them."""
    return "\n".join(
        ("<earlier-work>", *(html.escape(line, quote=False) for line in lines), "</earlier-work>")
    )


def instructions_block(text: str) -> str:
    """The block for what a command of the program tells the model in detail.

    People write ``<instructions>`` themselves, and theirs are never hidden: the name is another.
    """
    return f"<command-instructions>\n{text}\n</command-instructions>"


def without_tags(text: str) -> str:
    """A message without the tags that hold what went along with it."""
    return _OUR_TAGS.sub("", text)


def without_instructions(text: str) -> str:
    """A message without the blocks of `instructions_block`."""
    return _INSTRUCTIONS.sub("", text)


def without_attachments(text: str) -> str:
    """What the person asked, from what went to the model: without files, hints, instructions."""
    text = without_instructions(_EARLIER_WORK.sub("", text))
    for start in _ATTACHED.finditer(text):
        written = html.unescape(start[1])
        if f"@{written}" in text[: start.start()] or f'@"{written}"' in text[: start.start()]:
            return text[: start.start()]
    return text


_APPROVED = "I approve this plan. Follow it:\n\n"
_FORMERLY = "I approve this plan. Work by it:\n\n"
"""In sessions of earlier versions."""


def approving_message(plan: str) -> str:
    """What the person is taken to say by approving `plan`."""
    return f"{_APPROVED}{plan}"


def approved_plan(message: str) -> str:
    """The plan that `message` approves; empty where it approves none."""
    openings = (opening for opening in (_APPROVED, _FORMERLY) if message.startswith(opening))
    return message.removeprefix(opening) if (opening := next(openings, "")) else ""
