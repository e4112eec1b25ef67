"""What a person looks for, and where a text has it."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent_tui.sessions.search.words import WORD_CHARS, fold, is_ideograph, word_list

_PART = re.compile(r'"([^"]*)("?)|([^\s"]+)')
_MOST_NEEDLES = 24
_MOST_CHARS = 400
_SHORTEST_BEGINNING = 2
"""Letters of a word that is only begun, before what begins so is looked for."""


@dataclass(frozen=True, slots=True)
class Needle:
    """One word or phrase that must occur.

    `words` are what an index of words is asked for. `is_certain`: where those are, the needle
    is; else the text must be looked at. `is_begun`: more letters may follow. `text` is folded,
    `pattern` finds it in a folded text where no word begins before it, `raw` is how a line of
    a session file has it.
    """

    words: tuple[str, ...]
    is_certain: bool
    is_begun: bool
    text: str
    pattern: re.Pattern[str]
    raw: bytes


def needles(query: str) -> tuple[Needle, ...]:
    """The words and quoted phrases of `query`; any text is a query.

    A word that the query ends with may be only begun; its first letter alone is not yet one.
    Of very long queries the beginning counts.
    """
    cut = query[:_MOST_CHARS].replace("\0", " ")
    found: dict[str, Needle] = {}
    for text, is_begun in _parts(cut):
        if len(found) < _MOST_NEEDLES and (needle := _needle(text, is_begun)):
            found[needle.text] = needle
    return tuple(found.values())


def _parts(query: str) -> Iterator[tuple[str, bool]]:
    """Each word or phrase of `query`, and whether more of it may follow."""
    for match in _PART.finditer(query):
        at_end = match.end() == len(query)
        phrase, closing, word = match.groups()
        if word is None:
            yield phrase, at_end and not closing
        else:
            yield word, at_end


def _needle(text: str, is_begun: bool) -> Needle | None:
    folded = " ".join(fold(text).split())
    words = word_list(folded)
    ends_in_word = bool(words) and folded.endswith(words[-1])
    is_begun = is_begun and ends_in_word and not is_ideograph(folded[-1])
    if not folded or (is_begun and len(folded) < _SHORTEST_BEGINNING):
        return None
    pattern = re.escape(folded)
    if words and folded.startswith(words[0]) and not is_ideograph(folded[0]):
        pattern = r"(?<![^\W_])" + pattern
    if ends_in_word and not is_begun and not is_ideograph(folded[-1]):
        pattern += r"(?![^\W_])"
    return Needle(
        words=tuple(dict.fromkeys(word[:WORD_CHARS] for word in words)),
        is_certain=words == [folded] and len(folded) <= WORD_CHARS,
        is_begun=is_begun,
        text=folded,
        pattern=re.compile(pattern),
        raw=json.dumps(folded, ensure_ascii=False)[1:-1].encode(errors="replace"),
    )
