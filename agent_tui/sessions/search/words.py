"""The words of a session file: its texts, folded so that case and accents do not matter."""

import re
import unicodedata
from collections.abc import Iterator
from typing import cast

from pydantic import JsonValue
from pydantic_core import from_json

from agent_tui.messages import JsonObject
from agent_tui.safe_text import strip_escape_sequences

WORD_CHARS = 32
"""Longer words are known by their beginning: nobody types the whole of a hash."""

_ACCENTS = re.compile("[\u0300-\u036f]")
_IDEOGRAPH = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(f"[{_IDEOGRAPH}]|[^\\W_{_IDEOGRAPH}]+")
_APART = bytes(
    code if code >= 0x80 else ord(chr(code).lower()) if chr(code).isalnum() else 0x20
    for code in range(256)
)
"""Bytes of UTF-8 in lower case, ASCII signs as spaces: `bytes.split` is the quickest there is."""


def fold(text: str) -> str:
    """`text` in lower case and without accents; of an ASCII text each character stays in place."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text).casefold()
    return _ACCENTS.sub("", unicodedata.normalize("NFKD", plain))


def words_of(text: str) -> set[str]:
    """The different words of `text`, folded: runs of letters and digits, or one ideograph."""
    found: set[str] = set()
    for run in set(text.encode(errors="replace").translate(_APART).split()):
        if run.isascii():
            found.add(run[:WORD_CHARS].decode())
        else:
            found.update(word[:WORD_CHARS] for word in word_list(run.decode(errors="replace")))
    return found


def word_list(text: str) -> list[str]:
    """The words of `text`, folded and whole, in order."""
    return cast("list[str]", _WORD.findall(fold(text)))


def is_ideograph(word: str) -> bool:
    """Whether `word` is one of a script that writes no spaces between words."""
    return bool(re.match(f"[{_IDEOGRAPH}]", word))


def load_record(line: bytes) -> JsonObject | None:
    """The object on a line; None where it cannot be read."""
    try:
        value = cast(JsonValue, from_json(line))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def record_text(entry: JsonObject) -> str:
    """What a person may look for in an entry: what was said, called, answered, named."""
    text = "\n".join(_texts(entry))
    return strip_escape_sequences(text) if "\x1b" in text else text


def _texts(entry: JsonObject) -> Iterator[str]:
    match entry:
        case {"type": "message", "message": {"role": "bashExecution", **message}}:
            yield from _strings([message.get("command"), message.get("output")])
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


def title_part(entry: JsonObject) -> tuple[str, str]:
    """The name an entry gives to its session and the prompt it holds; empty where none."""
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
                    yield from _strings([call.get("name"), call.get("arguments")])
                case _:
                    pass


def _strings(value: JsonValue) -> Iterator[str]:
    """All texts in `value`, however deep."""
    waiting: list[JsonValue] = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case list(items):
                waiting.extend(reversed(items))
            case dict(fields):
                waiting.extend(reversed(fields.values()))
            case _:
                pass
