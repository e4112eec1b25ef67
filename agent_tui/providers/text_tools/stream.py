"""Taking written tool calls out of a reply while it comes."""

import json
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence

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
from agent_tui.providers.text_tools.offered import OfferedTools
from agent_tui.providers.text_tools.provenance import SentTexts
from agent_tui.providers.text_tools.quoting import CALL_FENCES
from agent_tui.providers.text_tools.reader import WrittenReply, read_calls
from agent_tui.providers.text_tools.scan import scan
from agent_tui.providers.text_tools.source import Source

_GROWTH = 1.3
"""How much longer a reply must be before what is held back is looked at again.

Looking at the whole reply each time it has grown by a factor is linear in all.
"""
_MIN_GROWTH_CHARS = 400
_MAX_TAIL_CHARS = 600
"""How much is looked through with each piece; what is longer waits for the whole to grow."""

_LOOK_BACK_CHARS = 4
"""How many characters before a place say whether a call may begin there."""

_NAMESPACES = ("", "functions.", "default_api.", "tool.", "tools.", "api.")
_LINE = r"(?:^[ ]{0,3})"
_MARKS = r"(?:`{3,}|~{3,})"
_SPACE_IN_LINE = r"[^\S\n]*"
_MAX_PARTIAL_TAG_CHARS = 60


class CallFilter:
    """Shows a reply's text as it comes and holds back what may become a call.

    However the text is cut into pieces, what is shown in all is what `read_calls` leaves of the
    whole. White space is held until something follows it, for it may stand before a call.
    """

    def __init__(self, tools: Sequence[ToolSpec], sent: SentTexts) -> None:
        self._tools = tools
        self._sent = sent
        self._openers = _Openers(tools)
        self._offered = OfferedTools(tools)
        self._pieces: list[str] = []
        self._chars = 0
        self._shown_chars = 0
        self._blank: list[str] = []
        self._cleared_chars = 0
        self._tail = ""
        self._rescan_at: float | None = None
        self._has_given_up = False

    def feed(self, text: str) -> str:
        """Take in the next piece; what may be shown now."""
        if self._has_given_up:
            return text
        self._pieces.append(text)
        self._chars += len(text)
        if self._rescan_at is None:
            return self._show_tail(self._tail + text)
        if self._chars < self._rescan_at:
            return ""
        return self._rescan()

    def finish(self) -> WrittenReply:
        """The reply is complete: the text not shown yet, and the calls in the whole of it."""
        if self._has_given_up:
            return WrittenReply("")
        self._has_given_up = True
        whole = "".join(self._pieces)
        reply = read_calls(whole, self._tools, self._sent)
        shown = whole[: self._shown_chars]
        if reply.calls and reply.text.startswith(shown):
            return WrittenReply(reply.text[len(shown) :], reply.calls)
        return WrittenReply(whole[len(shown) :], refused=reply.refused)

    def give_up(self) -> str:
        """What is held back, as text; all that follows passes as it is."""
        if self._has_given_up:
            return ""
        self._has_given_up = True
        return "".join(self._pieces)[self._shown_chars :]

    def _show_tail(self, tail: str) -> str:
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

    def _rescan(self) -> str:
        """Look at the whole reply again: what is held may have turned out to be text."""
        whole = "".join(self._pieces)
        decided = scan(Source(whole), self._offered).decided
        begin = self._cleared_chars
        if decided <= begin:
            self._hold()
            return ""
        self._rescan_at = None
        if decided < self._chars:
            self._hold()
        end = min(decided, self._openers.may_begin(whole, begin + 1))
        return self._clear(whole, begin, end)

    def _clear(self, text: str, begin: int, end: int) -> str:
        """What of `text[begin:end]`, which is no call, may be shown."""
        self._cleared_chars += end - begin
        self._tail = text[max(end - _LOOK_BACK_CHARS, 0) :]
        return self._shown(text[begin:end])

    def _hold(self) -> None:
        self._rescan_at = max(self._chars * _GROWTH, self._chars + _MIN_GROWTH_CHARS)

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
            if isinstance(chunk, RestartChunk):
                held = CallFilter(tools, sent)
            for piece in _passed_on(chunk, held):
                yield piece
    except ProviderError:
        for piece in _as_chunks(held.give_up()):
            yield piece
        raise
    for piece in _as_chunks(held.give_up()):
        yield piece


def _passed_on(chunk: Chunk, held: CallFilter) -> list[Chunk]:
    """What follows from `chunk`: nothing, itself, or what was held back before it."""
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


class _Openers:
    """Finds every place where `scan` may find a call, and some where it will not."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        names = [space + tool.name for tool in tools for space in _NAMESPACES]
        infos = "|".join(sorted(CALL_FENCES, key=len, reverse=True))
        begun_fence = rf"{_MARKS}[ ]*(?:{infos}){_SPACE_IN_LINE}\n\s*+"
        callees = "|".join(map(re.escape, names))
        before_callee = r"(?:\[\s{0,80})?(?:print\s?\(\s{0,80})?"
        python = rf"{before_callee}(?:{callees})(?:\.call)?\("
        self._whole = re.compile(
            rf"""
              {TAG_OPENER}
            | {CALL_PLACE}{CALL_OBJECT}
            | {_LINE}{python}
            | {_LINE}{begun_fence}(?:{CALL_OBJECT}|{python}|{TAG_OPENER})
            """,
            re.X | re.I | re.M,
        )
        partial_object = r"""[\[{](?:\s{0,80}[\[{]){0,3}\s{0,80}(?:["']\w{0,20})?"""
        partial_callee = _any_beginning([*names, "print(", "functools"])
        partial_python = rf"{before_callee}{partial_callee}(?:\.call?|\.ca?)?"
        partial_tag = r"(?:<[|｜]?[\w▁:]{0,40}[|｜]?|\[[a-z_]{0,11})"
        self._partial = re.compile(
            rf"""
            (?: {CALL_PLACE}{partial_object}
              | {_LINE}(?:{partial_python})?
              | {_LINE}(?:`+|~+)[^`\n]*
              | {_LINE}{begun_fence}(?:{partial_object}|{partial_python}|{partial_tag})?
            )\Z
            """,
            re.X | re.I | re.M,
        )
        self._partial_tag = re.compile(rf"{partial_tag}\Z", re.I)

    def first(self, text: str, begin: int) -> int | None:
        """Where the first opener from `begin` on is."""
        match = self._whole.search(text, begin)
        return match.start() if match else None

    def may_begin(self, text: str, begin: int) -> int:
        """From where on the end of `text` may yet become an opener; its length where nothing."""
        tag = self._partial_tag.search(text, max(begin, len(text) - _MAX_PARTIAL_TAG_CHARS))
        line = self._partial.search(text, begin)
        return min([match.start() for match in (tag, line) if match], default=len(text))


def _any_beginning(words: Iterable[str]) -> str:
    """A pattern for every beginning of one of `words`, the empty one included."""
    return "(?:" + "|".join(_beginnings(word) for word in sorted(set(words))) + ")"


def _beginnings(word: str) -> str:
    pattern = ""
    for character in reversed(word):
        pattern = f"(?:{re.escape(character)}{pattern})?"
    return pattern
