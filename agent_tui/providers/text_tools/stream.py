"""Taking written tool calls out of a reply while it comes."""

import json
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass

from agent_tui.messages import ToolSpec
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    ProviderError,
    TextChunk,
    ToolCallChunk,
)
from agent_tui.providers.text_tools.offered import OfferedTools, WrittenCall
from agent_tui.providers.text_tools.openers import LOOK_BACK_CHARS, Openers
from agent_tui.providers.text_tools.provenance import SentTexts
from agent_tui.providers.text_tools.reader import RefusedCall, read_calls
from agent_tui.providers.text_tools.scan import scan
from agent_tui.providers.text_tools.source import Source

_GROWTH = 1.3
"""How much longer a reply must be before what is held back is looked at again.

Looking at the whole reply each time it has grown by a factor is linear in all.
"""
_MIN_GROWTH_CHARS = 400
_MAX_TAIL_CHARS = 600
"""How much is looked through with each piece; what is longer waits for the whole to grow."""


@dataclass(frozen=True, slots=True)
class Rest:
    """The end of a reply: text not shown yet, and the calls that were in the whole of it."""

    text: str
    calls: tuple[WrittenCall, ...] = ()
    refused: RefusedCall | None = None


class CallFilter:
    """Shows a reply's text as it comes and holds back what may become a call.

    However the text is cut into pieces, what is shown in all is what `read_calls` leaves of the
    whole. White space is held until something follows it, for it may stand before a call.
    """

    def __init__(self, tools: Sequence[ToolSpec], sent: SentTexts) -> None:
        self._tools = tools
        self._sent = sent
        self._openers = Openers(tools)
        self._offered = OfferedTools(tools)
        self._pieces: list[str] = []
        self._chars = 0
        self._shown_chars = 0
        self._blank: list[str] = []
        self._cleared_chars = 0
        self._tail = ""
        self._look_again_at: float | None = None
        self._has_given_up = False

    def feed(self, text: str) -> str:
        """Take in the next piece; what may be shown now."""
        if self._has_given_up:
            return text
        self._pieces.append(text)
        self._chars += len(text)
        if self._look_again_at is None:
            return self._look(self._tail + text)
        if self._chars < self._look_again_at:
            return ""
        return self._settle()

    def finish(self) -> Rest:
        """The reply is complete."""
        if self._has_given_up:
            return Rest("")
        self._has_given_up = True
        whole = "".join(self._pieces)
        reply = read_calls(whole, self._tools, self._sent)
        shown = whole[: self._shown_chars]
        if reply.calls and reply.text.startswith(shown):
            return Rest(reply.text[len(shown) :], reply.calls)
        return Rest(whole[len(shown) :], refused=reply.refused)

    def give_up(self) -> str:
        """What is held back, as text; all that follows passes as it is."""
        if self._has_given_up:
            return ""
        self._has_given_up = True
        return "".join(self._pieces)[self._shown_chars :]

    def _look(self, tail: str) -> str:
        """Show what of `tail`, the end of the reply, cannot become a call."""
        begin = self._cleared_chars - (self._chars - len(tail))
        end = self._openers.first(tail, begin)
        if end is None:
            end = self._openers.may_begin(tail, begin)
            if len(tail) - end > _MAX_TAIL_CHARS:
                self._hold()
        else:
            self._hold()
        return self._clear(tail, begin, end)

    def _settle(self) -> str:
        """Look at the whole reply again: what is held may have turned out to be text."""
        whole = "".join(self._pieces)
        decided = scan(Source(whole), self._offered).decided
        begin = self._cleared_chars
        if decided <= begin:
            self._hold()
            return ""
        self._look_again_at = None
        if decided < self._chars:
            self._hold()
        end = min(decided, self._openers.may_begin(whole, begin + 1))
        return self._clear(whole, begin, end)

    def _clear(self, text: str, begin: int, end: int) -> str:
        """What of `text[begin:end]`, which is no call, may be shown."""
        self._cleared_chars += end - begin
        self._tail = text[max(end - LOOK_BACK_CHARS, 0) :]
        return self._shown(text[begin:end])

    def _hold(self) -> None:
        self._look_again_at = max(self._chars * _GROWTH, self._chars + _MIN_GROWTH_CHARS)

    def _shown(self, text: str) -> str:
        """`text`, with the white space before it and without that at its end."""
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
    """`chunks`, with the tool calls in their text made calls.

    Where the server reports calls itself the text is left alone. A reply that was cut by its
    length ends like any other when there are calls: one is only read when it is complete. One
    that was meant and cannot be read goes on as it was written: no JSON, so that it is answered
    with an error that the model can mend, as a broken call in the request format would be.

    Raises:
        ProviderError: as `chunks` does; what was held back is sent before.
    """
    held = CallFilter(tools, sent)
    try:
        async for chunk in chunks:
            match chunk:
                case TextChunk(text):
                    if shown := held.feed(text):
                        yield TextChunk(shown)
                case ToolCallChunk():
                    if rest := held.give_up():
                        yield TextChunk(rest)
                    yield chunk
                case FinishChunk(reason):
                    rest = Rest(held.give_up()) if reason == "contentFilter" else held.finish()
                    for piece in _pieces(rest):
                        yield piece
                    is_cut = rest.refused is not None and reason == "length"
                    has_calls = rest.calls or rest.refused
                    yield FinishChunk("toolUse") if has_calls and not is_cut else chunk
                case _:
                    yield chunk
    except ProviderError:
        if rest := held.give_up():
            yield TextChunk(rest)
        raise
    if rest := held.give_up():
        yield TextChunk(rest)


def _pieces(rest: Rest) -> list[Chunk]:
    pieces: list[Chunk] = [TextChunk(rest.text)] if rest.text else []
    calls = [(call.name, json.dumps(call.arguments), "") for call in rest.calls]
    if refused := rest.refused:
        calls.append((refused.name, refused.written, refused.problem))
    for index, (name, arguments, problem) in enumerate(calls):
        call_id = f"call_{secrets.token_hex(12)}"
        pieces.append(ToolCallChunk(index, call_id, name, arguments, problem))
    return pieces
