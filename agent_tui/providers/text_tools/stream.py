"""Takes written tool calls out of a reply as it arrives."""

import json
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

import regex

from agent_tui.messages import ToolSpec
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    ProviderError,
    RestartChunk,
    TextChunk,
    ToolCallChunk,
)
from agent_tui.providers.text_tools.forms import CALL_OBJECT, CALL_PLACE, TAG_OPENER
from agent_tui.providers.text_tools.provenance import SentTexts
from agent_tui.providers.text_tools.reader import WrittenReply, read_calls
from agent_tui.providers.text_tools.scan import CALL_FENCES

_LOOK_BACK_CHARS = 4
"""How many characters before a place decide whether a call may begin there."""

_FENCES = "|".join(sorted(CALL_FENCES, key=len, reverse=True))
_MAY_BE_CALL = regex.compile(
    rf"""
    {TAG_OPENER}
  | {CALL_PLACE}(?:{CALL_OBJECT})
  | ^[ ]{{0,3}} (?:`{{3,}}|~{{3,}}) [ ]*(?:{_FENCES})[^\S\n]*\n \s*+ (?:{CALL_OBJECT}|{TAG_OPENER})
    """,
    regex.X | regex.I | regex.M,
)
"""Finds every place where `scan` may find a call, and some where it will not."""


class CallFilter:
    """Shows a reply's text as it arrives, up to where a call may begin.

    However the text is split into pieces, the text shown in total is what `read_calls` leaves of
    the whole. White space is held back until something follows it, as it may precede a call.
    """

    def __init__(self, tools: Sequence[ToolSpec], sent: SentTexts) -> None:
        self._tools = tools
        self._sent = sent
        self._pieces: list[str] = []
        self._shown_chars = 0
        self._blank: list[str] = []
        self._tail = ""
        self._cleared = 0
        self._is_holding = False
        self._is_over = False

    def feed(self, text: str) -> str:
        """Take in the next piece; returns the text that may be shown now."""
        if self._is_over:
            return text
        self._pieces.append(text)
        if self._is_holding:
            return ""
        tail = self._tail + text
        found = _MAY_BE_CALL.search(tail, pos=self._cleared, partial=True)
        self._is_holding = found is not None and not found.partial
        end = found.start() if found else len(tail)
        shown = self._without_blank_end(tail[self._cleared : end])
        begin = max(end - _LOOK_BACK_CHARS, 0)
        self._tail, self._cleared = tail[begin:], end - begin
        return shown

    def finish(self) -> WrittenReply:
        """The reply is complete: returns the text not shown yet, and all its calls."""
        if self._is_over:
            return WrittenReply("")
        self._is_over = True
        whole = "".join(self._pieces)
        reply = read_calls(whole, self._tools, self._sent)
        shown = whole[: self._shown_chars]
        if reply.calls and reply.text.startswith(shown):
            return WrittenReply(reply.text[len(shown) :], reply.calls)
        return WrittenReply(whole[len(shown) :], refused=reply.refused)

    def give_up(self) -> str:
        """Return the held text; everything after it passes unchanged."""
        if self._is_over:
            return ""
        self._is_over = True
        return "".join(self._pieces)[self._shown_chars :]

    def _without_blank_end(self, text: str) -> str:
        """`text` with the held white space before it, and without white space at its end."""
        body = text.rstrip()
        if not body:
            self._blank.append(text)
            return ""
        shown = "".join([*self._blank, body])
        self._blank = [text[len(body) :]]
        self._shown_chars += len(shown)
        return shown


async def filter_calls(
    chunks: AsyncIterator[Chunk], tools: Sequence[ToolSpec], sent: SentTexts
) -> AsyncGenerator[Chunk, None]:
    """`chunks`, with the tool calls in their text turned into calls.

    If the server itself reports calls, the text is left alone. A reply cut by its length ends like
    any other if there are calls, since only complete calls are read. A call that was meant but is
    unreadable is passed on as written: it is not JSON, so the model gets an error that it can
    correct, as for a broken call in the request format.

    Raises:
        ProviderError: As `chunks` does; held text is yielded first.
    """
    held = CallFilter(tools, sent)
    try:
        async for chunk in chunks:
            if isinstance(chunk, RestartChunk):
                held = CallFilter(tools, sent)
            for piece in _chunks_to_pass_on(chunk, held):
                yield piece
    except ProviderError:
        for piece in _as_chunks(held.give_up()):
            yield piece
        raise
    for piece in _as_chunks(held.give_up()):
        yield piece


def _chunks_to_pass_on(chunk: Chunk, held: CallFilter) -> list[Chunk]:
    """The chunks to pass on for `chunk`: none, itself, or held text before it."""
    match chunk:
        case TextChunk(text):
            return _as_chunks(held.feed(text))
        case ToolCallChunk() | FinishChunk("contentFilter"):
            return [*_as_chunks(held.give_up()), chunk]
        case FinishChunk(reason):
            rest = held.finish()
            is_cut = rest.refused is not None and reason == "length"
            has_calls = bool(rest.calls or rest.refused)
            return [*_pieces(rest), FinishChunk("toolUse") if has_calls and not is_cut else chunk]
        case _:
            return [chunk]


def _as_chunks(text: str) -> list[Chunk]:
    return [TextChunk(text)] if text else []


def _pieces(rest: WrittenReply) -> list[Chunk]:
    pieces = _as_chunks(rest.text)
    calls = [(call.name, json.dumps(call.arguments), "") for call in rest.calls]
    if refused := rest.refused:
        calls.append((refused.name, refused.written, refused.problem))
    for index, (name, arguments, problem) in enumerate(calls):
        call_id = f"call_{secrets.token_hex(12)}"
        pieces.append(ToolCallChunk(index, call_id, name, arguments, problem))
    return pieces
