"""Describes the files attached to a message, for the user."""

from agent_tui.attachments import AttachedFile, find_attached_files
from agent_tui.commands.core.short_words import count_text, size_text


def describe_attached(text: str) -> tuple[str, ...]:
    """The name and size of each text file attached to the message `text`."""
    return tuple(map(_describe, find_attached_files(text)))


def _describe(file: AttachedFile) -> str:
    count = len(file.text.splitlines())
    lines = count_text(count, "line")
    if not file.is_whole:
        lines = f"lines {file.first:,} to {file.first + count - 1:,}"
    return f"{file.path} · {lines} · {size_text(len(file.text.encode('utf-8', 'replace')))}"
