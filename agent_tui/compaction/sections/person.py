"""What the person said, word for word: repetitions go first, what states something goes last."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent_tui.compaction.ledger.pinned import pinned_sentences, sentences_of
from agent_tui.compaction.shorten import one_line
from agent_tui.compaction.tiers.cut import cut_middle
from agent_tui.omissions import recall_mark
from agent_tui.tokens import TokenCounter

_LEAST_TOKENS = 60
"""A message is not shortened below this before all of another one goes."""

_LONG_TOKENS = 300
"""A longer message is a pasted text as a rule; its middle says least."""

_NUMBER_TOKENS = 4
"""What the number before a message takes."""

_LINE_CHARS = 60
_LINE_TOKENS = 24
"""The line that a message leaves which states something, its id included."""

_NEWEST = 2
_SHORT_WORDS = 4
_SAME = 0.8
_GAP = "[…] "
_LEFT_OUT = "[{count} messages left out here; recall finds them]"

_WORD = re.compile(r"[^\W_][\w./:@$%#+-]*")
_VALUE = re.compile(r"\d|[./_@$%#]\w|\w[A-Z]|`")
_NAME = re.compile(r"(?<!^)(?<![.!?:]\s)\b[A-Z]\w*")
_STATES = re.compile(
    r"\b(?:is|are|was|were|will be|has|have|needs?|means|equals|uses|runs|lives|stands)\b"
    r"|[:=]\s",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Sentence:
    """One sentence of a message. `worth`: 0 says nothing new, 1 is plain, 2 states something."""

    text: str
    worth: int
    tokens: int
    is_there: bool = True


@dataclass(slots=True)
class _Message:
    entry_id: str
    text: str
    tokens: int
    sentences: list[_Sentence]
    is_whole: bool = True


def said_by_person(
    messages: Sequence[tuple[str, str]], room_tokens: int, counter: TokenCounter
) -> list[str]:
    """The messages within `room_tokens`, oldest first.

    All of them whole while there is room. Beyond it, these go one after the other until the rest
    fits: sentences that a later message says again or that say nothing ("go on"), the middle of
    long messages, plain sentences from the oldest on, and at last statements (rules, and sentences
    with a number, a name or a value), which leave a line with the id to recall them by. The first
    message and the newest ones stay.

    Args:
        messages: Entry id and text of each, oldest first.
        room_tokens: Bound of all together.
        counter: Measures them.
    """
    sizes = [counter.count_text(text) + _NUMBER_TOKENS for _, text in messages]
    if sum(sizes) <= room_tokens:
        return [text for _, text in messages]
    kept = _read(messages, sizes, counter)
    over = sum(sizes) - room_tokens
    over -= _leave_out(kept, 0, over)
    over = _shorten_long(kept, over, counter)
    for worth in (1, 2):
        over -= _leave_out(kept, worth, over)
    return _within(list(_lines(kept)), room_tokens, counter)


def _read(
    messages: Sequence[tuple[str, str]], sizes: Sequence[int], counter: TokenCounter
) -> list[_Message]:
    """The messages as sentences; the newest come first to tell what is said again later."""
    later: list[frozenset[str]] = []
    found: list[_Message] = []
    for (entry_id, text), tokens in zip(reversed(messages), reversed(sizes), strict=True):
        rules = frozenset(pinned_sentences(text))
        sentences: list[_Sentence] = []
        for sentence in sentences_of(text):
            words = frozenset(word.casefold() for word in _WORD.findall(sentence))
            is_said = any(_is_said(words, other) for other in later)
            worth = 0 if is_said else _worth(sentence, words, rules)
            sentences.append(_Sentence(sentence, worth, counter.count_text(sentence)))
            if words and not is_said:
                later.append(words)
        found.append(_Message(entry_id, text, tokens, sentences))
    return found[::-1]


def _is_said(words: frozenset[str], other: frozenset[str]) -> bool:
    """Whether `other` says what `words` say: nearly the same words, and every value."""
    if not words:
        return True
    if any(_VALUE.search(word) for word in words - other):
        return False
    return len(words & other) >= _SAME * len(words | other)


def _worth(sentence: str, words: frozenset[str], rules: frozenset[str]) -> int:
    if any(sentence in rule or rule in sentence for rule in rules):
        return 2
    if _VALUE.search(sentence) or _NAME.search(sentence):
        return 2
    if len(words) <= _SHORT_WORDS:
        return 0
    return 2 if _STATES.search(sentence) else 1


def _states(message: _Message) -> bool:
    return any(sentence.worth == 2 for sentence in message.sentences)


def _leave_out(messages: Sequence[_Message], worth: int, over: int) -> int:
    """Leave out sentences of `worth`, the oldest first; the tokens that are gained."""
    gained = 0
    for message in messages[1:-_NEWEST]:
        for sentence in message.sentences:
            if gained >= over:
                return gained
            if sentence.worth == worth and sentence.is_there and message.is_whole:
                sentence.is_there = False
                is_all = not any(one.is_there for one in message.sentences)
                left = _LINE_TOKENS if is_all and _states(message) else 0
                gained += sentence.tokens + _NUMBER_TOKENS * is_all - left
    return gained


def _shorten_long(messages: Sequence[_Message], over: int, counter: TokenCounter) -> int:
    """Shorten long messages in the middle, all to the same size; what is still too much."""
    long = [
        message
        for message in messages
        if message.tokens > _LONG_TOKENS and all(part.is_there for part in message.sentences)
    ]
    if over <= 0 or not long:
        return over
    sizes = [message.tokens for message in long]
    share = max(_equal_share(sizes, sum(sizes) - over), _LEAST_TOKENS)
    for message in long:
        if message.tokens > share:
            ends = max((share - 20) // 2, 10)
            message.text = cut_middle(
                message.text,
                tokens=message.tokens,
                end_tokens=ends,
                entry_id=message.entry_id,
                counter=counter,
            )
            size = counter.count_text(message.text)
            over -= message.tokens - size
            message.tokens, message.is_whole = size, False
    return over


def _lines(messages: Sequence[_Message]) -> Iterator[tuple[str, bool]]:
    """The messages as they stand now; True with what is left of one of which all is gone."""
    for message in messages:
        there = [sentence for sentence in message.sentences if sentence.is_there]
        if there or not message.is_whole or not message.sentences:
            yield _text(message), False
        elif _states(message):
            yield f"{one_line(message.text, _LINE_CHARS)} {recall_mark(message.entry_id)}", True
        else:
            yield "", True


def _text(message: _Message) -> str:
    if not message.is_whole or all(sentence.is_there for sentence in message.sentences):
        return message.text
    parts: list[str] = []
    for sentence in message.sentences:
        if sentence.is_there:
            parts.append(sentence.text)
        elif parts[-1:] != [_GAP]:
            parts.append(_GAP)
    return f"{''.join(parts).strip()} {recall_mark(message.entry_id)}"


def _within(lines: list[tuple[str, bool]], room: int, counter: TokenCounter) -> list[str]:
    """`lines`, of those that are left of messages only as many of the newest as fit."""
    sizes = [counter.count_text(text) + _NUMBER_TOKENS for text, _ in lines]
    over = sum(sizes) - room
    shown: list[str] = []
    left_out = 0
    for (text, is_rest), size in zip(lines, sizes, strict=True):
        if is_rest and (over > 0 or not text):
            over -= size
            left_out += 1
            continue
        if left_out:
            shown.append(_LEFT_OUT.format(count=left_out))
            left_out = 0
        shown.append(text)
    return shown if not left_out else [*shown, _LEFT_OUT.format(count=left_out)]


def _equal_share(sizes: Sequence[int], room: int) -> int:
    """The size to which the largest must come down so that all fit."""
    left, share = room, max(sizes, default=0)
    for number, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - number)
        if size > share:
            return share
        left -= size
    return max(sizes, default=0)
