"""What a person may look for in a line of a session file, read without building an entry."""

from collections.abc import Iterator
from typing import cast

from pydantic import JsonValue
from pydantic_core import from_json

from agent_tui.attachments import without_tags
from agent_tui.markdown_text import markdown_words
from agent_tui.messages import JsonObject, texts_in
from agent_tui.safe_text import strip_escape_sequences

_MOST_MARKDOWN = 20_000
"""Characters; a longer reply is shown as it was written."""


def load_record(line: bytes) -> JsonObject | None:
    """The object on a line; None where it cannot be read."""
    try:
        value = cast(JsonValue, from_json(line))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def record_text(entry: JsonObject) -> str:
    """What a person may look for in a record: what was said, called, answered, named."""
    text = "\n".join(_texts(entry))
    return strip_escape_sequences(text) if "\x1b" in text else text


def _texts(entry: JsonObject) -> Iterator[str]:
    match entry:
        case {"type": "message", "message": {"role": "bashExecution", **message}}:
            yield from texts_in([message.get("command"), message.get("output")])
        case {"type": "message", "message": {"content": content}}:
            yield from _content(content)
        case {"type": "custom_message", "content": content}:
            yield from _content(content)
        case {"type": "compaction" | "branch_summary", "summary": str(summary)}:
            yield summary
        case {"type": "session_info", "name": str(name)}:
            yield name
        case {"type": "label", "label": str(label)}:
            yield label
        case _:
            return


def drawn_text(entry: JsonObject) -> str:
    """`record_text` as people read it: Markdown of a model drawn, tags of our own left out."""
    text = record_text(entry)
    markdown = text[: _markdown_length(entry)]
    if not markdown:
        return without_tags(text)
    drawn = markdown_words(markdown) if len(markdown) <= _MOST_MARKDOWN else markdown
    return drawn + text[len(markdown) :]


def _markdown_length(entry: JsonObject) -> int:
    """How much of `record_text` of a record is what a model wrote for people; it comes first."""
    match entry:
        case {"type": "message", "message": {"role": "assistant", "content": list(content)}}:
            calls = (number for number, part in enumerate(content) if _is_call(part))
            said: JsonObject = {"content": content[: next(calls, len(content))]}
            return len(record_text({"type": "message", "message": said}))
        case {"type": "compaction" | "branch_summary"}:
            return len(record_text(entry))
        case _:
            return 0


def _is_call(part: JsonValue) -> bool:
    return isinstance(part, dict) and part.get("type") == "toolCall"


def title_part(entry: JsonObject) -> tuple[str, str]:
    """The name a record gives to its session and the prompt it holds; empty where none."""
    match entry:
        case {"type": "session_info"}:
            return record_text(entry), ""
        case {"type": "message", "message": {"role": "user"}}:
            return "", record_text(entry)
        case _:
            return "", ""


def _content(content: JsonValue) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            match part:
                case {"type": "text", "text": str(text)}:
                    yield text
                case {"type": "thinking", "thinking": str(thinking)}:
                    yield thinking
                case {"type": "toolCall", **call}:
                    yield from texts_in([call.get("name"), call.get("arguments")])
                case _:
                    pass
