"""Joins a stream's many small pieces into fewer, and splits huge ones."""

from collections.abc import Iterator
from dataclasses import replace

from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    NoticeChunk,
    RestartChunk,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from agent_tui.text import repair_text

MAX_REPLY_CHARS = 20_000_000
"""Characters; no model writes more: many times the longest reply."""

MAX_PIECE_CHARS = 32_000
"""Keeps a JSON line far below the reader's limit, whatever one delta holds."""


_CALL_CHARS = 100


def size_of(chunk: Chunk) -> int:
    """Characters that the model wrote, plus a constant for each call."""
    match chunk:
        case TextChunk(text, signature) | ThinkingChunk(text, signature):
            return len(text) + len(signature or "")
        case ToolCallChunk(arguments_json=text, name=name, signature=signature):
            return len(text) + len(signature) + (_CALL_CHARS if name else 0)
        case _:
            return 0


def is_part_of_reply(chunk: Chunk) -> bool:
    """Whether `chunk` holds part of a reply, or says that the model is thinking.

    An empty delta does not: a server can send those forever.
    """
    return size_of(chunk) > 0 or isinstance(chunk, ThinkingChunk)


class Coalescer:
    """Collects chunks between two flushes; adjacent chunks of one kind are merged.

    Lone surrogates are repaired. The first half of a pair is held back until the second arrives, as
    servers split text in the middle of a character.
    """

    def __init__(self) -> None:
        self._ready: list[Chunk] = []
        self._last: Chunk | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to take."""
        return self._last is None and not self._ready

    def add(self, chunk: Chunk) -> None:
        """Take in the next chunk."""
        if self._last is None:
            self._last = chunk
        elif (merged := _merge(self._last, chunk)) is not None:
            self._last = merged
        else:
            self._ready.append(self._last)
            self._last = chunk

    def take(self, *, is_end: bool = False) -> tuple[Chunk, ...]:
        """The chunks since the last call, repaired and in pieces of bounded size."""
        chunks = self._ready
        self._ready = []
        if self._last is not None:
            kept_back = None if is_end else _half_character(self._last)
            if kept_back is None:
                chunks.append(self._last)
                self._last = None
            else:
                whole, self._last = kept_back
                chunks.append(whole)
        return tuple(piece for chunk in chunks for piece in _pieces(chunk))


def _merge(first: Chunk, second: Chunk) -> Chunk | None:
    match first, second:
        case TextChunk(signature=None), TextChunk():
            return TextChunk(first.text + second.text, second.signature)
        case ThinkingChunk(signature=None, redacted=False), ThinkingChunk(redacted=False):
            return ThinkingChunk(first.text + second.text, second.signature)
        case ToolCallChunk(), ToolCallChunk(id="", name="") if first.index == second.index:
            return replace(
                first,
                arguments_json=first.arguments_json + second.arguments_json,
                signature=second.signature or first.signature,
            )
        case _:
            return None


def _half_character(chunk: Chunk) -> tuple[Chunk, Chunk] | None:
    """`chunk` without half a surrogate pair at its end, and that half; None if there is none."""
    match chunk:
        case TextChunk(text, None) | ThinkingChunk(text, None, False) if _ends_in_half(text):
            return replace(chunk, text=text[:-1]), replace(chunk, text=text[-1])
        case ToolCallChunk(index, _, _, text) if _ends_in_half(text):
            return replace(chunk, arguments_json=text[:-1]), ToolCallChunk(index, "", "", text[-1])
        case _:
            return None


def _ends_in_half(text: str) -> bool:
    return "\ud800" <= text[-1:] <= "\udbff"


def _pieces(chunk: Chunk) -> Iterator[Chunk]:
    match chunk:
        case TextChunk(text, signature) | ThinkingChunk(text, signature):
            *parts, last = _cut(text)
            for part in parts:
                yield replace(chunk, text=part, signature=None)
            if last or signature is not None:
                yield replace(chunk, text=last)
        case ToolCallChunk(index, _, _, text):
            first, *parts = _cut(text)
            yield replace(chunk, arguments_json=first)
            for part in parts:
                yield ToolCallChunk(index, "", "", part)
        case UsageChunk() | FinishChunk() | RestartChunk() | NoticeChunk():
            yield chunk


def _cut(text: str) -> list[str]:
    """`text`, repaired, in pieces; at least one, which may be empty."""
    repaired = repair_text(text)
    starts = range(0, len(repaired), MAX_PIECE_CHARS)
    return [repaired[start : start + MAX_PIECE_CHARS] for start in starts] or [""]
