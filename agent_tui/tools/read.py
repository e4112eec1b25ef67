"""The `read` tool: a file's numbered lines, the text of a document, or an image."""

import asyncio
import base64
import os
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from pydantic import Field

from agent_tui.errors import ToolError
from agent_tui.messages import FileTouches, ImageContent, ToolDetails
from agent_tui.omissions import more_lines_mark
from agent_tui.tools.base import Intent, ToolArguments, ToolContext, ToolOutput
from agent_tui.tools.files.documents import document_text
from agent_tui.tools.files.images import fit_image, image_size, image_type
from agent_tui.tools.files.text_files import (
    Window,
    WindowedText,
    is_large_text,
    open_text,
    read_bytes,
    read_window,
    resolve_existing,
    take_window,
)
from agent_tui.tools.shorten import MAX_OUTPUT_LINES, OutputLimits, Shortened, keep_head, size_bytes

_KNOWN_BINARIES = (
    (b"PK\x03\x04", "zip archive"),
    (b"\x1f\x8b", "gzip archive"),
    (b"\x7fELF", "ELF program or library"),
    (b"SQLite format 3", "SQLite database"),
)
_KIND_BYTES = 16


class ReadArguments(ToolArguments):
    """Arguments of `read`; lines count from 1."""

    path: str = Field(min_length=1)
    offset: int = Field(default=1, ge=1, description="first line")
    limit: int = Field(default=MAX_OUTPUT_LINES, ge=1, description="number of lines")

    @property
    def is_range(self) -> bool:
        """Whether it was said how many lines are wanted."""
        return "limit" in self.model_fields_set


@dataclass(frozen=True, slots=True)
class ReadTool:
    """Gives the model a file and remembers which version it was given."""

    name: str = "read"
    description: str = (
        "Read a text file (lines numbered), PDF, notebook or image.\n"
        "Long files come in parts: continue with offset, or pass a larger limit if the "
        "context has room."
    )
    arguments_type: type[ReadArguments] = ReadArguments

    def intent(self, arguments: ReadArguments, context: ToolContext) -> Intent:
        """Read access to one file; nothing is opened yet."""
        path = context.resolve(arguments.path, to_read=True)
        return Intent(title=f"read {context.display_name(path)}", access="read", paths=(path,))

    async def run(self, arguments: ReadArguments, context: ToolContext) -> ToolOutput:
        """Lines `offset` to `offset + limit`, numbered."""
        return await asyncio.to_thread(_read, arguments, context)


def _read(arguments: ReadArguments, context: ToolContext) -> ToolOutput:
    path = resolve_existing(arguments.path, context)
    shown = context.display_name(path)
    if path.is_dir():
        raise ToolError(f"{shown} is a folder. Use ls to list it.")
    if is_large_text(path):
        with open_text(path, context) as file:
            return _text(file, path, arguments, context)
    content = read_bytes(path, context)
    if media_type := image_type(content):
        return _image(shown, content, media_type, FileTouches(read=(str(path),)))
    if (document := document_text(path, content)) is not None:
        found = take_window([document], _window(arguments, context.limits))
        return _number_lines(found, path, arguments, context)
    return _text(BytesIO(content), path, arguments, context)


def _text(file: BinaryIO, path: Path, arguments: ReadArguments, context: ToolContext) -> ToolOutput:
    found = read_window(file, _window(arguments, context.limits))
    shown = context.display_name(path)
    if found is None:
        file.seek(0)
        kind, size = _kind_of(file.read(_KIND_BYTES)), file.seek(0, os.SEEK_END)
        raise ToolError(f"{shown} is not text: {kind}, {size:,} bytes.")
    text, digest = found
    context.files.remember(path, digest)
    if not text.total_lines:
        details = ToolDetails(summary="empty", files=FileTouches(read=(str(path),)))
        return ToolOutput(f"{shown} is empty.", details)
    return _number_lines(text, path, arguments, context)


def _window(arguments: ReadArguments, limits: OutputLimits) -> Window:
    return Window(
        first=arguments.offset,
        count=arguments.limit if arguments.is_range else limits.max_lines,
        max_bytes=max(limits.max_bytes, limits.range_bytes),
        max_line_chars=limits.max_line_chars,
    )


def _number_lines(
    found: WindowedText, path: Path, arguments: ReadArguments, context: ToolContext
) -> ToolOutput:
    """The requested lines with numbers and, if there are more, how to continue.

    A requested range is returned whole if it fits; otherwise the usual limits apply.
    """
    first, total, limits = arguments.offset, found.total_lines, context.limits
    if first > total:
        shown = context.display_name(path)
        raise ToolError(f"{shown} has {total} lines; offset {first} is past its end.")
    whole = "\n".join(f"{number}\t{line}" for number, line in enumerate(found.lines, start=first))
    last_wanted = min(first + arguments.limit - 1, total)
    is_all = first + len(found.lines) - 1 == last_wanted
    if arguments.is_range and is_all and size_bytes(whole) <= limits.range_bytes:
        kept = Shortened(whole)
    else:
        kept = keep_head(whole, max_lines=limits.max_lines, max_bytes=limits.max_bytes)
    last = first + kept.text.count("\n")
    text = kept.text
    if last == total:
        count = last - first + 1
        summary, is_cut = f"{count} line{'s' * (count != 1)}", kept.is_cut
    else:
        cap = limits.cap if last < last_wanted else ""
        text = f"{text}\n{more_lines_mark(first, last, total, cap)}"
        summary, is_cut = f"lines {first}-{last} of {total}", True
    touches = FileTouches(read=(str(path),))
    return ToolOutput(text, ToolDetails(summary=summary, truncated=is_cut, files=touches))


def _image(shown: str, content: bytes, media_type: str, touches: FileTouches) -> ToolOutput:
    fitted = fit_image(content)
    if not fitted:
        raise ToolError(
            f"{shown} is an image of {len(content):,} bytes that cannot be reduced enough to send."
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
