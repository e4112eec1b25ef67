"""The `read` tool: a file's lines with their numbers, the text of a document, or an image."""

import base64
from dataclasses import dataclass

from pydantic import Field

from agent_tui.messages import FileTouches, ImageContent, ToolDetails
from agent_tui.omissions import more_lines_mark
from agent_tui.tools.base import (
    Intent,
    ToolArguments,
    ToolContext,
    ToolError,
    ToolOutput,
    in_thread,
)
from agent_tui.tools.files.documents import document_text
from agent_tui.tools.files.images import fit_image, image_size, image_type
from agent_tui.tools.files.text_files import decode, missing_file_error, read_bytes
from agent_tui.tools.limits import MAX_OUTPUT_LINES, OutputLimits
from agent_tui.tools.shorten import cut_line, keep_head

_KNOWN_BINARIES = (
    (b"PK\x03\x04", "zip archive"),
    (b"\x1f\x8b", "gzip archive"),
    (b"\x7fELF", "ELF program or library"),
    (b"SQLite format 3", "SQLite database"),
)


class ReadArguments(ToolArguments):
    """Arguments of `read`; lines count from 1."""

    path: str = Field(min_length=1)
    offset: int = Field(default=1, ge=1, description="first line")
    limit: int = Field(default=MAX_OUTPUT_LINES, ge=1, description="number of lines")


@dataclass(frozen=True, slots=True)
class ReadTool:
    """Gives the model a file and remembers which version of it was given."""

    name: str = "read"
    arguments_type: type[ReadArguments] = ReadArguments

    def intent(self, arguments: ReadArguments, context: ToolContext) -> Intent:
        """Reads one file; nothing is opened yet."""
        path = context.resolve(arguments.path)
        return Intent(title=f"read {context.shown(path)}", access="read", paths=(path,))

    async def run(self, arguments: ReadArguments, context: ToolContext) -> ToolOutput:
        """Lines `offset` to `offset + limit`, numbered."""
        return await in_thread(lambda: _read(arguments, context))


def _read(arguments: ReadArguments, context: ToolContext) -> ToolOutput:
    path = context.resolve(arguments.path)
    shown = context.shown(path)
    if path.is_dir():
        raise ToolError(f"{shown} is a folder. Use ls to see what is in it.")
    if not path.exists():
        raise missing_file_error(path, context)
    content = read_bytes(path, context)
    touches = FileTouches(read=(str(path),))
    if media_type := image_type(content):
        return _image(shown, content, media_type, touches)
    if (document := document_text(path, content)) is not None:
        text, summary, is_cut = _numbered(document, arguments, context.limits, shown)
        return ToolOutput(text, ToolDetails(summary=summary, truncated=is_cut, files=touches))
    file = decode(content)
    if file is None:
        raise ToolError(f"{shown} is not text: {_kind_of(content)}, {len(content):,} bytes.")
    context.files.remember(path, content)
    if not file.text:
        return ToolOutput(f"{shown} is empty.", ToolDetails(summary="empty", files=touches))
    text, summary, is_cut = _numbered(file.text, arguments, context.limits, shown)
    return ToolOutput(text, ToolDetails(summary=summary, truncated=is_cut, files=touches))


def _numbered(
    text: str, arguments: ReadArguments, limits: OutputLimits, shown: str
) -> tuple[str, str, bool]:
    """The lines asked for with numbers and, if there is more, how to go on; summary; cut?"""
    lines = text.removesuffix("\n").split("\n")
    first = arguments.offset
    if first > len(lines):
        raise ToolError(f"{shown} has {len(lines)} lines; offset {first} is past its end.")
    wanted = lines[first - 1 : first - 1 + min(arguments.limit, limits.max_lines)]
    numbered = [
        f"{number}\t{cut_line(line, limits.max_line_chars)}"
        for number, line in enumerate(wanted, start=first)
    ]
    kept = keep_head("\n".join(numbered), max_lines=limits.max_lines, max_bytes=limits.max_bytes)
    last = first + kept.text.count("\n")
    if last == len(lines):
        count = last - first + 1
        return kept.text, f"{count} line{'s' * (count != 1)}", kept.is_cut
    note = more_lines_mark(first, last, len(lines))
    return f"{kept.text}\n{note}", f"lines {first}-{last} of {len(lines)}", True


def _image(shown: str, content: bytes, media_type: str, touches: FileTouches) -> ToolOutput:
    fitted = fit_image(content)
    if not fitted:
        raise ToolError(
            f"{shown} is an image of {len(content):,} bytes that cannot be made small enough."
        )
    data = base64.b64encode(fitted).decode("ascii")
    image = ImageContent(data=data, mime_type=image_type(fitted))
    summary = f"{media_type}, {len(content):,} bytes"
    if fitted is not content:
        summary += " scaled to {} x {} pixels".format(*image_size(fitted))
    details = ToolDetails(summary=summary, files=touches)
    return ToolOutput(f"Image {shown} ({summary}).", details, images=(image,))


def _kind_of(content: bytes) -> str:
    for signature, kind in _KNOWN_BINARIES:
        if content.startswith(signature):
            return kind
    return "binary data"
