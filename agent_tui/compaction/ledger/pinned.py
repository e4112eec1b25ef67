"""Rules that the user stated, found in the user's own sentences and kept word for word."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from agent_tui.omissions import SENTENCE_END
from agent_tui.text import find_lists

MAX_SENTENCE_CHARS = 500
"""A longer sentence is pasted text rather than a rule."""

MAX_PINNED_CHARS = 8_000

_ITEM_SIZE = 3
"""Of the list mark and the line break, in characters or, at most, in tokens."""

_OWN_WORDS_CHARS = 4_000
"""Of a longer message, only the beginning and the end are the user's own; the middle is pasted."""

_STRONG = re.compile(
    r"\b(never|always|must(?:n['’]?t)?|don['’]?t|do not|does not have to|doesn['’]?t have to"
    r"|should(?: not|n['’]?t)|shall not|may not|not allowed|forbidden|required to"
    r"|under no circumstances|at all times|from now on"
    r"|niemals|immer|muss|müssen|nicht ändern|auf keinen fall)\b",
    re.IGNORECASE,
)
_MILD = re.compile(
    r"\b(only|prefer(?:s|red|ably)?|avoid|make sure|be sure to|ensure|instead of|rather than"
    r"|at (?:most|least)|no (?:more|longer) than|without (?:any|using|changing|touching|breaking)"
    r"|remember (?:to|that)|stick (?:to|with)|bevorzug\w*|vermeide\w*|nur|statt)\b",
    re.IGNORECASE,
)
_NO_RULE = re.compile(
    r"\bi (?:don['’]?t|do not|must(?:n['’]?t)?|can only) "
    r"(?:know|understand|think|see|remember|recall|get|believe|admit|have missed|be missing)\b"
    r"|^\W*(?!(?:(?:can|could|would|will) you|please)\b).*\?\W*$",
    re.IGNORECASE | re.DOTALL,
)
_RULES = re.compile(r"\b(?:rules?|regeln?)\b", re.IGNORECASE)
"""What an introduction of a list of rules calls them."""

_FENCE = re.compile(r"^[ \t]*(```|~~~)", re.MULTILINE)
_FENCED = re.compile(
    r"^[ \t]*(?P<fence>```|~~~).*?(?:^[ \t]*(?P=fence)|\Z)", re.MULTILINE | re.DOTALL
)
_TAGGED = re.compile(r"<(?P<tag>[a-z][\w-]*)(?:\s[^<>\n]*)?>\s*\n.*?</(?P=tag)>", re.DOTALL | re.I)
_FOREIGN_LINE = re.compile(
    r"^\s*(?:>|\$ |[{}\[\]<|]|at \S+ ?\(|File \"|Traceback |\d{4}-\d\d-\d\d[T ]|[+-]{3} |@@ )"
    r"|[{;]\s*$|\":|=>|\bdef \w+\(|\bfunction\b.*\("
)
_CONTINUES = re.compile(r"^\s*[a-z`(]")
_WRAPPED_CHARS = 50
"""An editor wrapped a line at least this long if the next one begins in lower case."""
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+")


@lru_cache(maxsize=1_024)
def find_rules(text: str) -> tuple[str, ...]:
    """The sentences of a user's message that state a rule, in order, exactly as written.

    Fenced code, quoted lines, tagged blocks and lines that look like code or logs are not the
    user's own words. A sentence that runs over several lines keeps its line breaks. In a
    list that is introduced as rules and has a sentence that states one, every sentence is a rule.
    """
    listed = frozenset(_listed_rules(text))
    sentences = dict.fromkeys(own_sentences(text))
    return tuple(one for one in sentences if one in listed or _is_rule(one))


def _listed_rules(text: str) -> Iterator[str]:
    """The sentences of the lists that are introduced as rules."""
    if not _RULES.search(text):
        return
    for introduction, items in find_lists(_own_words(text)):
        if _RULES.search(introduction):
            sentences = [one for item in items for one in own_sentences(item)]
            if any(map(_is_rule, sentences)):
                yield from filter(_is_of_rule_size, sentences)


def own_sentences(text: str) -> Iterator[str]:
    """The sentences of a user's message, without list marks, as far as they are the user's own.

    Fenced code, quoted lines, tagged blocks and lines that look like code or logs are left out. So
    is the middle of a very long message.
    """
    for paragraph in _paragraphs(_own_words(text)):
        for sentence in SENTENCE_END.split(paragraph):
            if own := _ITEM.sub("", sentence).strip():
                yield own


def is_strong(sentence: str) -> bool:
    """Whether the rule is an order or a prohibition rather than a preference."""
    return bool(_STRONG.search(sentence))


def fit_pins(
    newest_first: Iterable[str],
    room: int = MAX_PINNED_CHARS,
    size_of: Callable[[str], int] = len,
) -> tuple[str, ...]:
    """As many pins as fit: preferences are dropped before orders, and old ones before new ones.

    Args:
        newest_first: The pins.
        room: Limit of all together, in the unit of `size_of`.
        size_of: Measures a pin; by default in characters.
    """
    pins = tuple(dict.fromkeys(newest_first))
    taken: set[str] = set()
    for wants_strong in (True, False):
        for pin in pins:
            size = size_of(pin) + _ITEM_SIZE
            if is_strong(pin) is wants_strong and size <= room:
                taken.add(pin)
                room -= size
    return tuple(pin for pin in pins if pin in taken)


def _own_words(text: str) -> str:
    parts = [text]
    if len(text) > 2 * _OWN_WORDS_CHARS:
        fences = _FENCE.findall(text, 0, len(text) - _OWN_WORDS_CHARS)
        opening = f"{fences[-1]}\n" if len(fences) % 2 else ""  # the end begins inside code
        parts = [text[:_OWN_WORDS_CHARS], opening + text[-_OWN_WORDS_CHARS:]]
    return "\n\n".join(_TAGGED.sub("\n\n", _FENCED.sub("\n\n", part)) for part in parts)


def _paragraphs(text: str) -> list[str]:
    """The lines of `text`, with lines that an editor wrapped joined again."""
    paragraphs: list[str] = []
    wrapped = False
    for line in text.split("\n"):
        if _FOREIGN_LINE.search(line):
            wrapped = False
            continue
        if wrapped and _CONTINUES.match(line):
            paragraphs[-1] += f"\n{line}"
        else:
            paragraphs.append(line)
        wrapped = len(line) >= _WRAPPED_CHARS
    return paragraphs


def _is_of_rule_size(sentence: str) -> bool:
    return 4 <= len(sentence) <= MAX_SENTENCE_CHARS


def _is_rule(sentence: str) -> bool:
    if not _is_of_rule_size(sentence) or _NO_RULE.search(sentence):
        return False
    return bool(_STRONG.search(sentence) or _MILD.search(sentence))
