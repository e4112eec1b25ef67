"""What a message mentions: ``@path`` and ``@server:uri`` are attached, ``/skill`` is loaded."""

import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from agent_tui.attachments import AttachedFile, without_attachments, without_instructions
from agent_tui.errors import ToolError, UsageError
from agent_tui.messages import ImageContent
from agent_tui.safe_paths import is_file, is_folder, resolve_path, scan_folder
from agent_tui.text import markdown_prose
from agent_tui.tools.base import ToolOutput
from agent_tui.tools.files.images import ImageFile, read_image
from agent_tui.tools.files.opening import open_judged_file
from agent_tui.tools.files.text_files import Window, read_window
from agent_tui.tools.shorten import OutputLimits, keep_head, output_limits

ResourceReader: TypeAlias = Callable[[str, str, OutputLimits], Awaitable[ToolOutput | None]]
"""Reads a URI of a server; None if there is no such server. Raises `ToolError`."""

_RESOURCE = re.compile(
    r"(?:^|(?<=[\s(\[{\"'`,;]))@([A-Za-z0-9][\w-]*):([A-Za-z][A-Za-z0-9+.-]*:[^\s\"<>]+)"
)
_MOST = 10


@dataclass(frozen=True, slots=True)
class AttachedResource:
    """A resource that a message mentions.

    Args:
        written: The text after the @.
        text: Its text for the model; empty if it could not be read.
        images: Its images.
        problem: Why it could not be read.
    """

    written: str
    text: str = ""
    images: tuple[ImageContent, ...] = ()
    problem: str = ""


async def read_mentioned(
    text: str, window: int, read: ResourceReader
) -> Sequence[AttachedResource]:
    """Read each resource that `text` mentions once; names of unknown servers are skipped.

    Args:
        text: What the user wrote.
        window: Tokens of the model's window; 0 if unknown.
        read: Reads one resource.
    """
    named: Mapping[str, tuple[str, str]] = {
        f"{found[1]}:{uri}": (found[1], uri)
        for found in _RESOURCE.finditer(_QUOTED.sub("", text))
        if (uri := found[2].rstrip(_TRAILING))
    }
    attached: list[AttachedResource] = []
    limits = output_limits(window, max(len(named), 1))
    for written, (server, uri) in list(named.items())[:_MOST]:
        try:
            output = await read(server, uri, limits)
        except ToolError as error:
            attached.append(AttachedResource(written, problem=str(error)))
            continue
        if output is not None:
            attached.append(AttachedResource(written, output.for_model, output.images))
    return attached


_ASK_FOR_IT = "To include it, ask the model to read it; you are asked to approve that."
_MAX_LISTED = 200
MAX_ATTACHMENTS = 20
_BINARY_PROBE_BYTES = 8_000

_MENTION = re.compile(
    r"(?:^|(?<=[\s(\[{\"'`,;]))@(?:\"([^\"\n]+)\"(:\d+(?:-\d+)?(?!\w))?|([^\s\"]+))"
)
_QUOTED = re.compile(r"^ *\d+\| .*$", re.MULTILINE)
"""A line of a file, quoted with its number: what it says is no mention."""

_SKILL = re.compile(r"(?:^|(?<=[\s(]))(?:/(\w[\w-]*)|\$(\w[\w-]*))(?![\w/-])(?![.:=]\w)")
"""``/name`` in any case, as commands are; ``$name`` as written, since ``$NAME`` is a variable."""

_SPOKEN = re.compile(r"(?<!\w)(?:([\"']).*?\1(?!\w)|“.*?”|„.*?[“”]|‘.*?’|«.*?»)")
"""What stands between quotation marks on one line; an apostrophe is none."""

_LINES = re.compile(r"(.+):(\d+)(?:-(\d+))?")
_LIKE_A_FILE = re.compile(r"\.\w{1,8}$")
_TRAILING = ".,;:!?)]}'`"


@dataclass(frozen=True, slots=True)
class Mention:
    """A file or folder that a message mentions: as written, its path, and lines (first, last)."""

    written: str
    path: Path
    lines: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Attached:
    """The text and images for the model, and notices for the user."""

    text: str
    images: tuple[ImageContent, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Part:
    """The result of one mention."""

    block: str
    notice: str = ""
    image: ImageContent | None = None


def attach(
    text: str,
    cwd: Path,
    window: int = 0,
    *,
    image_refusal: str = "",
    why_held: Callable[[Path], str] = lambda _path: "",
    resources: Sequence[AttachedResource] = (),
    in_context: Sequence[AttachedFile] = (),
) -> Attached:
    """`text` followed by what its mentions name, each in a ``<file>`` or ``<folder>`` block.

    Quoted lines with their numbers (``12| @name``) mention nothing.

    Paths are relative to `cwd`, ``~`` is the home folder, a path with blanks is written
    ``@"like this"``, and ``:10-20`` after it takes those lines. A mention that names no file
    (``@someone``) changes nothing. Attachments have the size limits of as many tool outputs: a
    larger file is cut, which its block and a notice say; a binary file is given by size only;
    images are attached as images. A text that already has its files attached stays as it is.

    Args:
        text: What the user wrote.
        cwd: The workspace.
        window: Tokens of the model's window; 0 if unknown.
        image_refusal: Why no image can be sent; empty if one can.
        why_held: Why a file (links followed) does not go along unasked, as a text that follows
            its name; empty where it may. What was pasted may mention keys, and so may a link.
        resources: What servers gave for ``@server:uri``; goes along behind the files.
        in_context: The files that messages in the context have. A file whose text is among them
            is named only.
    """
    if without_attachments(text) != without_instructions(text):
        return Attached(text)
    mentions = find_mentions(text, cwd)
    kept = mentions[:MAX_ATTACHMENTS]
    limits = output_limits(window, len(kept))
    parts = [
        _part_not_attached(mention, why)
        if (why := why_held(mention.path))
        else _part(mention, limits, image_refusal, in_context)
        for mention in kept
    ]
    parts += [part for each in resources for part in _resource_parts(each, image_refusal)]
    notices = [part.notice for part in parts if part.notice]
    of_servers = {each.written for each in resources}
    missing = (name for name in _missing(text, cwd) if name not in of_servers)
    notices += [f"@{name} matches no file; nothing is attached." for name in missing]
    if len(mentions) > len(kept):
        left = len(mentions) - len(kept)
        notices.append(f"Only the first {len(kept)} files are attached; {left} more are not.")
    return Attached(
        "\n\n".join([text, *(part.block for part in parts if part.block)]),
        tuple(part.image for part in parts if part.image is not None),
        tuple(dict.fromkeys(notices)),
    )


def find_mentions(text: str, cwd: Path) -> list[Mention]:
    """The existing files and folders that `text` mentions, each once."""
    found: dict[tuple[Path, tuple[int, int] | None], Mention] = {}
    for written in _paths_in(text):
        mention = _existing_mention(written, cwd)
        if mention is not None:
            found.setdefault((mention.path, mention.lines), mention)
    return list(found.values())


def find_skill_names(text: str) -> tuple[str, ...]:
    """``/name`` and ``$name`` in a message, each once; most name a skill or nothing.

    Paths (``/usr/bin``) name none, nor does what is quoted or code.
    """
    if not _SKILL.search(text):
        return ()
    prose = _SPOKEN.sub('""', markdown_prose(_QUOTED.sub("", text)))
    names = (f"/{found[1].lower()}" if found[1] else found[0] for found in _SKILL.finditer(prose))
    return tuple(dict.fromkeys(names))


def _paths_in(text: str) -> Iterator[str]:
    for mention in _MENTION.finditer(_QUOTED.sub("", text)):
        yield mention[1] + (mention[2] or "") if mention[1] else mention[3]


def _existing_mention(written: str, cwd: Path) -> Mention | None:
    for candidate in (written, written.rstrip(_TRAILING)):
        if (path := _existing(candidate, cwd)) is not None:
            return Mention(candidate, path)
        numbered = _LINES.fullmatch(candidate)
        if numbered and (path := _existing(numbered[1], cwd)) is not None and is_file(path):
            first = int(numbered[2])
            return Mention(numbered[1], path, (first, int(numbered[3] or first)))
    return None


def _missing(text: str, cwd: Path) -> Iterator[str]:
    """Mentions that look like file names but name no file."""
    for written in _paths_in(text):
        name = written.rstrip(_TRAILING)
        named = _LINES.fullmatch(name)
        looks_so = _LIKE_A_FILE.search(named[1] if named else name)
        if looks_so and _existing_mention(written, cwd) is None:
            yield name


def _existing(written: str, cwd: Path) -> Path | None:
    if not written:
        return None
    try:
        path = resolve_path(written, cwd)
    except OSError:
        return None
    return path if is_file(path) or is_folder(path) else None


def _part(
    mention: Mention,
    limits: OutputLimits,
    image_refusal: str,
    in_context: Sequence[AttachedFile],
) -> _Part:
    shown = _attribute(mention.written)
    try:
        if mention.path.is_dir():
            listing = _listing(mention.path, limits)
            return _Part(f'<folder path="{shown}">\n{listing}\n</folder>')
        if (image := read_image(mention.path, follow_links=False)) is not None:
            return _image_part(shown, image, image_refusal)
        if mention.lines is not None:
            return _some_lines(mention, mention.lines, limits)
        return _file_part(mention, limits, in_context)
    except OSError as error:
        fault = error.strerror or "unreadable"
        notice = f"@{mention.written} cannot be read: {fault}."
        return _Part(f'<file path="{shown}" error="{_attribute(fault)}" />', notice)
    except UsageError as error:
        return _Part(f'<file path="{shown}" error="too large an image" />', str(error))


def _part_not_attached(mention: Mention, why: str) -> _Part:
    notice = f"@{mention.written} is not attached: {why}. {_ASK_FOR_IT}"
    return _Part(f'<file path="{_attribute(mention.written)}" error="not attached" />', notice)


def _resource_parts(resource: AttachedResource, image_refusal: str) -> Iterator[_Part]:
    shown = _attribute(resource.written)
    if resource.problem:
        yield _Part(
            f'<file path="{shown}" error="cannot be read" />',
            f"@{resource.written} cannot be read: {resource.problem}",
        )
        return
    notice = image_refusal if resource.images else ""
    yield _Part(f'<file path="{shown}">\n{resource.text.rstrip()}\n</file>', notice)
    if not image_refusal:
        yield from (_Part("", image=image) for image in resource.images)


def _image_part(shown: str, image: ImageFile, image_refusal: str) -> _Part:
    facts = f'image="{image.mime_type}" size="{image.width}x{image.height}"'
    if image_refusal:
        return _Part(f'<file path="{shown}" {facts} />', image_refusal)
    return _Part(
        f'<file path="{shown}" {facts} />',
        image=ImageContent(data=image.data, mime_type=image.mime_type),
    )


def _file_part(mention: Mention, limits: OutputLimits, in_context: Sequence[AttachedFile]) -> _Part:
    shown = _attribute(mention.written)
    with open_judged_file(mention.path) as opened:
        size = os.fstat(opened.fileno()).st_size
        data = opened.read(limits.max_bytes)
    if b"\0" in data[:_BINARY_PROBE_BYTES]:
        return _binary_part(mention)
    body = data.decode("utf-8", "replace")
    is_whole = size <= limits.max_bytes
    for file in in_context:
        is_same = (
            file.text == body.rstrip()
            if is_whole
            else file.text.startswith(body.rpartition("\n")[0])
        )
        if (file.path, file.first, file.is_whole) == (mention.written, 1, is_whole) and is_same:
            return _Part(f'<file path="{shown}" same="as attached above" />')
    if is_whole:
        return _Part(f'<file path="{shown}">\n{body.rstrip()}\n</file>')
    whole_lines = body.rpartition("\n")[0]
    next_line = body.count("\n") + 1
    body = whole_lines or body
    sizes = f"{limits.max_bytes:,} of {size:,} bytes"
    note = f"[cut here: {sizes}; to see the rest, read this file with offset={next_line}]"
    notice = f"@{mention.written}: only the first {sizes} attached; the model can read the rest."
    return _Part(f'<file path="{shown}">\n{body}\n{note}\n</file>', notice)


def _some_lines(mention: Mention, wanted: tuple[int, int], limits: OutputLimits) -> _Part:
    first, last = max(wanted[0], 1), max(wanted)
    window = Window(first, last - first + 1, limits.max_bytes, limits.max_line_chars)
    with open_judged_file(mention.path) as file:
        found = read_window(file, window)
    shown = _attribute(mention.written)
    if found is None:
        return _binary_part(mention)
    text, _ = found
    if not text.lines:
        notice = f"@{mention.written} has no line {first}."
        return _Part(f'<file path="{shown}" error="no line {first}" />', notice)
    body, there = "\n".join(text.lines), min(last, text.total_lines)
    kept = keep_head(body, max_lines=limits.max_lines, max_bytes=limits.max_bytes).text
    left = there - first - kept.count("\n")
    more = f"\n[{left:,} more lines left out]" if left else ""
    return _Part(f'<file path="{shown}" lines="{first}-{there}">\n{kept.rstrip()}{more}\n</file>')


def _binary_part(mention: Mention) -> _Part:
    size = mention.path.stat().st_size
    notice = f"@{mention.written} is not text; only its size is sent."
    return _Part(
        f'<file path="{_attribute(mention.written)}" binary="true" bytes="{size}" />', notice
    )


def _listing(folder: Path, limits: OutputLimits) -> str:
    with scan_folder(folder) as (_, entries):
        names = sorted(e.name + ("/" if e.is_dir(follow_symlinks=False) else "") for e in entries)
    listing = "\n".join(names)
    kept = keep_head(
        listing, max_lines=min(_MAX_LISTED, limits.max_lines), max_bytes=limits.max_bytes
    )
    more = f"\n[and {kept.omitted_lines:,} more]" if kept.omitted_lines else ""
    return f"{kept.text}{more}"


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
