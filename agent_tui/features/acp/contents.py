"""What an editor shows as Markdown or as a diff, and the prompts it sends."""

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from acp import schema
from acp.helpers import text_block, tool_content, tool_diff_content

from agent_tui.agent.turn.user_message import NewMessage
from agent_tui.events import ApprovalRequest
from agent_tui.messages import ImageContent
from agent_tui.regular_files import read_regular_file
from agent_tui.safe_paths import path_exists
from agent_tui.safe_text import safe_text
from agent_tui.tools.files.diffs import after_diff, before_diff, diffs_by_file

CallContent: TypeAlias = schema.ContentToolCallContent | schema.FileEditToolCallContent
PromptBlock: TypeAlias = (
    schema.TextContentBlock
    | schema.ImageContentBlock
    | schema.AudioContentBlock
    | schema.ResourceContentBlock
    | schema.EmbeddedResourceContentBlock
)

_MOST_FILE_BYTES = 1_000_000
_MOST_TITLE_CHARS = 2_000
_FENCES = re.compile(r"^`{3,}", re.MULTILINE)
_LANGUAGES = {"diff": "diff", "command": "sh"}


def fence(text: str, language: str = "") -> str:
    """`text` as a Markdown block that shows it unchanged."""
    fence = "`" * max((len(each) + 1 for each in _FENCES.findall(text)), default=3)
    return f"{fence}{language}\n{safe_text(text).rstrip()}\n{fence}"


def in_lines(text: str) -> str:
    """`text` as Markdown that keeps its line breaks."""
    return safe_text(text).replace("\n", "  \n")


def output_of(text: str) -> schema.ContentToolCallContent:
    """The output of a call."""
    return tool_content(text_block(fence(text)))


def file_diffs(diff: str, cwd: Path) -> list[CallContent]:
    """The files of an applied diff, before and after, if they have not changed since."""
    return list(_both(diff, cwd, before_diff, is_made=True))


def question_contents(request: ApprovalRequest, cwd: Path) -> list[CallContent]:
    """The subject of a question: the exact command, change or plan, and why it is asked.

    The subject comes first, because editors with a view for changes use the first part.
    """
    why: list[CallContent] = []
    if request.reason:
        why.append(tool_content(text_block(in_lines(request.reason))))
    if request.body_kind == "plan":
        return [tool_content(text_block(safe_text(request.body))), *why]
    if request.body_kind == "diff":
        files = list(_both(request.body, cwd, after_diff, is_made=False))
        if files and len(files) == len(diffs_by_file(request.body)):
            return [*files, *why]
    if not request.body:
        return why
    language = _LANGUAGES.get(request.body_kind, "")
    return [tool_content(text_block(fence(request.body, language))), *why]


def title_of(request: ApprovalRequest) -> str:
    """The title of a question: the whole command, as some editors show nothing else."""
    is_command = request.body_kind == "command" and len(request.body) <= _MOST_TITLE_CHARS
    return request.body if is_command else request.title


def _both(
    diff: str, cwd: Path, other_side: Callable[[str, str], str | None], *, is_made: bool
) -> Iterator[schema.FileEditToolCallContent]:
    """Both sides of each file in `diff`; the side that is not on disk is computed."""
    for part in diffs_by_file(diff):
        path = cwd / part.name
        present = _text(path)
        other = other_side(present or "", part.text)
        if other is None or (present is None and path_exists(path)):
            continue
        if is_made:
            yield tool_diff_content(str(path), present or "", other)
        else:
            yield tool_diff_content(str(path), other, present)


def _text(path: Path) -> str | None:
    try:
        if path.stat().st_size > _MOST_FILE_BYTES:
            return None
        return read_regular_file(path).decode("utf-8").replace("\r\n", "\n")
    except (OSError, ValueError):
        return None


def read_prompt(blocks: Sequence[PromptBlock]) -> NewMessage:
    """An editor's prompt as a message; the texts that the editor attached are not typed."""
    parts: list[str] = []
    typed: list[str] = []
    images: list[ImageContent] = []
    for block in blocks:
        match block:
            case schema.TextContentBlock(text=text):
                parts.append(text)
                typed.append(text.strip())
            case schema.ImageContentBlock(data=data, mime_type=mime_type):
                base64.b64decode(data, validate=True)
                images.append(ImageContent(data=data, mime_type=mime_type))
            case schema.ResourceContentBlock(uri=uri, name=name):
                parts.append(_mention(uri, name))
                typed.append(parts[-1])
            case schema.EmbeddedResourceContentBlock(
                resource=schema.TextResourceContents(uri=uri, text=text)
            ):
                parts.append(f'<file path="{_path_of(uri) or uri}">\n{text}\n</file>')
            case _:
                pass
    text = "\n".join(filter(None, parts)).strip()
    has_more = len(typed) < len(parts)
    return NewMessage(text, tuple(images), tuple(filter(None, typed)) if has_more else None)


def _mention(uri: str, name: str) -> str:
    path = _path_of(uri)
    return f'@"{path}"' if path else f"{name}: {uri}"


def _path_of(uri: str) -> str:
    parts = urlsplit(uri)
    return str(Path(unquote(parts.path))) if parts.scheme == "file" else ""
