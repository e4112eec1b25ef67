"""Counting tokens: estimates, corrected by what each provider really counted."""

import importlib.util
import os
import re
import threading
import weakref
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from operator import ne
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from agent_tui.messages import (
    AssistantContent,
    AssistantMessage,
    BashExecutionMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    ToolSpec,
    UserContent,
    UserMessage,
)

if TYPE_CHECKING:
    import tiktoken

_LETTERS_BEYOND_ASCII = (
    "\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u1fff\u2c00-\u2fef\u3041-\ufaff"
    "\ufe70-\ufefc\U00010000-\U0001efff\U00020000-\U0003ffff"
)

_CAPITALS, _INNER_WORD, _DIGITS, _SIGNS, _BLANKS = 1.54, 1.27, 1.1, 0.85, 1.1
"""Tokens of one piece of ASCII: capitals, a word right behind another piece (``Name`` of
``someName``), up to three digits, signs, blanks or newlines."""

_WORDS = {
    " ": (0.95, 6, 0.15),
    '"': (1.13, 6, 0.29),
    "_": (1.13, 6, 0.29),
    ".": (1.13, 6, 0.29),
    "": (1.2, 4, 0.27),
}
"""Tokens of a word by the sign before it (empty: any other): how many for the first letters, how
many letters these are, and tokens of each further letter."""

_FIRST_SIGNS, _MOST_SIGNS, _FURTHER_SIGN = 2, 8, 0.19
"""Further signs in a run cost this much each, up to a maximum."""

_LONG, _CHANGED_CHAR, _SAME_LETTER, _SAME_SIGN = 16, 0.5, 0.12, 0.016
"""Longer ASCII pieces are no words: beyond this many characters, each costs so much if it differs
from the one before, or is the same letter, or the same sign or blank."""

_SCRIPTS = (
    (0x0000, 0.37),  # Latin
    (0x0370, 0.35),  # Greek
    (0x0400, 0.26),  # Cyrillic
    (0x0530, 0.35),  # Armenian, Hebrew, Arabic
    (0x0900, 0.35),  # Indic
    (0x0E00, 0.42),  # Thai and its neighbours
    (0x1E00, 0.37),  # Latin of Vietnamese
    (0x2000, 0.40),  # signs
    (0x3041, 0.61),  # kana
    (0x3100, 0.85),  # Han
    (0xAC00, 0.64),  # Hangul
    (0xF900, 0.85),  # Han
    (0xFE00, 0.60),  # full width signs
    (0x10000, 1.70),  # emoji
)
"""Tokens of a character in a piece that is not all ASCII, from this code point on."""
_STARTS = [start for start, _ in _SCRIPTS]


def rough_tokens(text: str) -> int:
    """Tokens of `text`, within about 10 % on a page of prose, code, JSON or logs.

    The text is split where o200k_base splits it, and each piece costs what pieces of its kind
    cost on average. The averages are a least-squares fit of the relative error to tiktoken's
    counts of 2,200 excerpts of 3-6 kB: Python, JavaScript, C, shell, HTML, CSS, Markdown, JSON,
    tool schemas, diffs, file listings, 310 texts of recorded agent sessions, and translated
    messages of programs. The mean error of each kind of code, and of prose in English, Chinese,
    Japanese, Korean, Russian, German, French and Spanish, is at most 9 %. Other languages in
    Latin letters have up to 20 % more tokens than this says, base64 17 % more, and hexadecimal
    digits 12 % fewer. It is never more than the bytes of `text`.
    """
    pieces = Counter[str](_pieces().findall(text))
    tokens = sum(times * _tokens_of(piece) for piece, times in pieces.items())
    return max(round(tokens), 1) if pieces else 0


@cache
def _pieces() -> re.Pattern[str]:
    """o200k_base's own pattern, with the letters beyond ASCII as one class of small ones."""
    letters = f"A-Za-z{_LETTERS_BEYOND_ASCII}"
    word = rf"(?:[A-Z]*[a-z{_LETTERS_BEYOND_ASCII}]+|[A-Z]+)(?:'(?:s|t|re|ve|m|ll|d)\b)?"
    signs = rf" ?[^\s0-9{letters}]+[\r\n/]*"
    blanks = r"\s*[\r\n]+|\s+(?!\S)|\s+"
    return re.compile(rf"[^\r\n0-9{letters}]?{word}|[0-9]{{1,3}}|{signs}|{blanks}")


def _tokens_of(piece: str) -> float:
    if not piece.isascii():
        return sum(_SCRIPTS[bisect_right(_STARTS, ord(sign)) - 1][1] for sign in piece)
    if len(piece) == 1:
        return 1.0
    if len(piece) > _LONG:
        rest = piece[_LONG:]
        changed = sum(map(ne, rest, rest[1:]))
        same = (len(rest) - changed) * (_SAME_LETTER if rest[0].isalpha() else _SAME_SIGN)
        return _tokens_of_usual(piece) + _CHANGED_CHAR * changed + same
    return _tokens_of_usual(piece)


def _tokens_of_usual(piece: str) -> float:
    first, last = piece[0], piece[-1]
    if first.isdigit():
        return _DIGITS
    if last.isalpha():
        if not last.islower():
            return _CAPITALS
        if first.isalpha():
            return _INNER_WORD
        tokens, letters, further = _WORDS.get(first, _WORDS[""])
        return tokens + further * max(len(piece) - 1 - letters, 0)
    if piece.isspace():
        return _BLANKS
    signs = min(len(piece.strip(" ")), _MOST_SIGNS)
    return _SIGNS + _FURTHER_SIGN * max(signs - _FIRST_SIGNS, 0)


MESSAGE_OVERHEAD_TOKENS = 4
"""Role and separators around a message (OpenAI cookbook, "how to count tokens")."""

IMAGE_TOKENS = 1_600
"""Upper end of what Anthropic and OpenAI charge for one image of usual size."""

_ENCODING = "o200k_base"
_SLICE_CHARS = 16_000
"""tiktoken's time grows faster than its input on text without spaces, and a pattern that searches
all of a long text stops every other thread; slices bound both."""

_CACHE_ENTRIES = 50_000


def percent_of(part: int, whole: int) -> int:
    """`part` in percent of `whole`, rounded; below 100 unless it is full; 0 if `whole` is 0."""
    if whole <= 0:
        return 0
    nearest = (200 * part + whole) // (2 * whole)
    return min(nearest, 99) if part < whole else nearest


@dataclass(frozen=True, slots=True)
class ContextUsage:
    """How full the context window is.

    `is_estimate`: `used` is not based on the provider's figure, or too much came after it.
    """

    used: int
    window: int
    is_estimate: bool

    @property
    def fraction(self) -> float:
        """`used` as a fraction of `window`; 0.0 if the window is unknown."""
        return self.used / self.window if self.window > 0 else 0.0

    @property
    def percent(self) -> int:
        """The fraction in percent, rounded; at most 99 unless the window is full."""
        return percent_of(self.used, self.window)

    @property
    def shown_percent(self) -> str:
        """The percentage as people read it: ``72%``, with ``~`` before an estimate.

        ``…`` if the window is unknown, as it is before the first count.
        """
        if self.window <= 0:
            return "…"
        return f"{'~' if self.is_estimate else ''}{self.percent}%"

    @property
    def label(self) -> str:
        """The text of the status bar: ``[ctx: 72%]``, ``[ctx: ~12%]``."""
        return f"[ctx: {self.shown_percent}]"


class TokenCounter:
    """Estimates tokens without a vocabulary, caching counts by the text's hash.

    See `rough_tokens` for the accuracy; `TokenRatios` corrects it for each model. Of 83 plans for
    8,000 to 48,000 tokens, made of 11 recorded sessions with the ratio for the whole conversation,
    none exceeded its target by more than 4 %, as o200k_base counts it.
    Python's hash has 64 bits and a secret seed, and a text that stays in memory keeps it: a text
    counted again costs no look at its characters, and it is not held on to for it. A message is
    counted once while it lives, as none of them ever changes. Thread-safe.
    """

    def __init__(self) -> None:
        self._cache: dict[int, int] = {}
        self._of_messages: dict[int, tuple[weakref.ref[Message], int]] = {}

    def count_text(self, text: str) -> int:
        """Tokens of `text`; special tokens in it count as the plain text they are."""
        if not text:
            return 0
        key = hash(text)
        known = self._cache.get(key)
        if known is not None:
            return known
        starts = range(0, len(text), _SLICE_CHARS)
        count = sum(self._count_slice(text[start : start + _SLICE_CHARS]) for start in starts)
        if len(self._cache) >= _CACHE_ENTRIES:
            self._cache.clear()
        self._cache[key] = count
        return count

    def _count_slice(self, text: str) -> int:
        return rough_tokens(text)

    def count_message(self, message: Message) -> int:
        """Tokens of one message with its role, calls, arguments and images."""
        key = id(message)
        known = self._of_messages.get(key)
        if known is not None and known[0]() is message:
            return known[1]
        tokens = 0
        if not (isinstance(message, BashExecutionMessage) and message.exclude_from_context):
            tokens = MESSAGE_OVERHEAD_TOKENS + self._count_body(message)
        while_it_lives = weakref.ref(message, lambda _gone: self._of_messages.pop(key, None))
        self._of_messages[key] = (while_it_lives, tokens)
        return tokens

    def count_messages(self, messages: Iterable[Message]) -> int:
        """Sum of `count_message`."""
        return sum(self.count_message(message) for message in messages)

    def count_tools(self, tools: Iterable[ToolSpec]) -> int:
        """Tokens of the tool descriptions as they go over the wire."""
        return sum(self.count_text(tool.model_dump_json()) for tool in tools)

    def _count_body(self, message: Message) -> int:
        match message:
            case UserMessage(content=str() as text):
                return self.count_text(text)
            case UserMessage(content=tuple() as parts) | ToolResultMessage(content=parts):
                return self._count_parts(parts)
            case AssistantMessage():
                return sum(self._count_reply_part(part) for part in message.content)
            case BashExecutionMessage():
                return self.count_text(message.command) + self.count_text(message.output)
            case _:
                return 0

    def _count_parts(self, parts: Iterable[UserContent]) -> int:
        return sum(
            IMAGE_TOKENS if isinstance(part, ImageContent) else self.count_text(part.text)
            for part in parts
        )

    def _count_reply_part(self, part: AssistantContent) -> int:
        match part:
            case TextContent():
                return self.count_text(part.text)
            case ThinkingContent():
                return self.count_text(part.thinking)
            case ToolCall():
                return self.count_text(part.model_dump_json(exclude={"signature"}))
            case _:
                assert_never(part)


class ExactCounter(TokenCounter):
    """Counts tokens as o200k_base does, for processes that soon end.

    The vocabulary (0.3-0.6 s, 77 MB) is loaded on first use, from the copy that litellm's wheel
    carries, so no network is needed.
    """

    def __init__(self) -> None:
        super().__init__()
        self._encoding: tiktoken.Encoding | None = None
        self._lock = threading.Lock()

    def load(self) -> None:
        """Load the vocabulary; a second call does nothing."""
        with self._lock:
            if self._encoding is not None:
                return
            _use_bundled_vocabulary()
            import tiktoken  # 100 ms and a Rust module: only where tokens are counted

            self._encoding = tiktoken.get_encoding(_ENCODING)

    def _count_slice(self, text: str) -> int:
        self.load()
        assert self._encoding is not None
        clean = text.encode("utf-8", "replace").decode("utf-8")
        return len(self._encoding.encode(clean, disallowed_special=()))


class TokenRatios:
    """Per model: provider's count divided by our estimate, from the newest known pair."""

    _LOWEST, _HIGHEST = 0.5, 3.0

    def __init__(self) -> None:
        self._ratios: dict[str, float] = {}

    def ratio(self, model: str) -> float:
        """The factor for an estimate; 1.0 before anything was learned."""
        return self._ratios.get(model, 1.0)

    def observe(self, model: str, *, estimated: int, counted: int) -> None:
        """Learn from one pair; pairs under 500 tokens are ignored."""
        if estimated < 500 or counted <= 0:
            return
        self._ratios[model] = min(max(counted / estimated, self._LOWEST), self._HIGHEST)


def _use_bundled_vocabulary() -> None:
    """Point tiktoken at the vocabulary files inside litellm's wheel, if nothing else is set."""
    if "TIKTOKEN_CACHE_DIR" in os.environ:
        return
    folder = _find_vocabularies()
    if folder is not None:
        os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)


def _find_vocabularies() -> Path | None:
    found = importlib.util.find_spec("litellm")
    for folder in found.submodule_search_locations or () if found else ():
        vocabularies = Path(folder) / "litellm_core_utils" / "tokenizers"
        if vocabularies.is_dir():
            return vocabularies
    return None
