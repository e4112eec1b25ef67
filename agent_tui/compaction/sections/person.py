"""The user's messages word for word: repetitions are dropped first, statements last."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from agent_tui.compaction.ledger.pinned import find_rules, sentences_of
from agent_tui.compaction.sections.history import HistoryEvent, Replied, Said
from agent_tui.compaction.tiers.forms import keep_ends
from agent_tui.omissions import one_line, recall_mark
from agent_tui.tokens import TokenCounter

_LEAST_TOKENS = 60
"""A message is not shortened below this before another one is dropped completely."""

_LONG_TOKENS = 300
"""A longer message is usually pasted text; its middle matters least."""

_NUMBER_TOKENS = 4
"""Tokens of the number before a message."""

_LINE_CHARS = 60
_ANSWER_WORDS = 8
_QUESTION_CHARS = 300
_NEWEST = 2
_SHORT_WORDS = 4
_PLAIN, _BESIDE, _STATEMENT = 1, 2, 3
_SAME = 0.8
_SMALL_WORD = 3
_GAP = "[…] "
_LEFT_OUT = "[{count} of the later messages left out; recall finds them{ids}]"

_WORD = re.compile(r"[^\W_][\w./:@$%#+-]*")
_VALUE = re.compile(r"\d|[./_@$%#]\w|\w[A-Z]|`")
_NAME = re.compile(r"(?<!^)(?<![.!?:]\s)\b[A-Z]\w*")
_ASSIGNS = re.compile(r"\w[:=]\s+\w")


@dataclass(frozen=True, slots=True)
class Spoken:
    """The user's messages as a summary shows them; `left_out` of them are not shown."""

    lines: list[str]
    left_out: int = 0


@dataclass(slots=True)
class _Sentence:
    """One sentence of a message.

    `worth`: 0 is nothing new, 1 is plain, 2 is plain beside a statement, 3 is a statement: a rule,
    or a sentence with a value or a name.
    """

    text: str
    worth: int
    tokens: float
    is_there: bool = True


@dataclass(slots=True)
class _Message:
    entry_id: str
    text: str
    tokens: int
    sentences: list[_Sentence]
    is_whole: bool = True


def choose_messages(
    messages: Sequence[tuple[str, str]], room_tokens: int, counter: TokenCounter
) -> Spoken:
    """The messages within `room_tokens`, oldest first.

    If not all fit, these are dropped in order until the rest fits: sentences that a later message
    repeats or that say nothing ("go on"), the middle of long messages, plain sentences from the
    oldest on, those beside a statement, and finally whole messages with a rule, number, name or
    value. Such a message leaves its beginning and the id to recall it, or the id alone if space is
    short. The first message and the newest ones stay.

    Args:
        messages: Entry id and text of each, oldest first.
        room_tokens: Limit of all together.
        counter: Counts their tokens.
    """
    sizes = [counter.count_text(text) + _NUMBER_TOKENS for _, text in messages]
    if sum(sizes) <= room_tokens:
        return Spoken([text for _, text in messages])
    kept = _read(messages, sizes, counter)
    over: float = sum(sizes) - room_tokens
    over -= _leave_out(kept, 0, over)
    over = _shorten_long(kept, over, counter)
    for worth in (_PLAIN, _BESIDE):
        over -= _leave_out(kept, worth, over)
    _leave_out_statements(kept, over, counter)
    return _within(list(_lines(kept)), room_tokens, counter)


def questions_answered(events: Sequence[HistoryEvent]) -> dict[str, str]:
    """For each short message that answers a question, the end of the reply with the question."""
    return {
        said.text: " ".join(reply.text[-_QUESTION_CHARS:].split())
        for reply, said in pairwise(events)
        if isinstance(said, Said)
        and isinstance(reply, Replied)
        and len(said.text.split()) <= _ANSWER_WORDS
        and "?" in reply.text[-_QUESTION_CHARS:]
    }


def with_questions(
    lines: Sequence[str], asked: Mapping[str, str], room_tokens: int, counter: TokenCounter
) -> list[str]:
    """`lines` followed by the questions they answer, newest first, as far as there is space."""
    told: list[str] = []
    for line in reversed(lines):
        behind = f" [in answer to: …{asked[line]}]" if line in asked else ""
        tokens = counter.count_text(behind)
        if tokens <= room_tokens:
            room_tokens -= tokens
            line += behind
        told.append(line)
    return told[::-1]


def _read(
    messages: Sequence[tuple[str, str]], sizes: Sequence[int], counter: TokenCounter
) -> list[_Message]:
    """Split the messages into sentences, newest first, to find what is repeated later."""
    later: defaultdict[str, list[frozenset[str]]] = defaultdict(list)
    found: list[_Message] = []
    for (entry_id, text), tokens in zip(reversed(messages), reversed(sizes), strict=True):
        rules = find_rules(text)
        sentences: list[_Sentence] = []
        for sentence in sentences_of(text):
            words = frozenset(word.casefold() for word in _WORD.findall(sentence))
            longest = max(words, key=lambda word: (len(word), word), default="")
            is_said = any(_is_said(words, other) for other in later[longest])
            worth = 0 if is_said or not words else _worth(sentence, words, rules)
            share = (tokens - _NUMBER_TOKENS) * len(sentence) / max(len(text), 1)
            sentences.append(_Sentence(sentence, worth, share))
            if not is_said:
                for word in words:
                    later[word].append(words)
        message = _Message(entry_id, text, tokens, sentences)
        if _states(message):
            for part in sentences:
                part.worth = _BESIDE if part.worth == _PLAIN else part.worth
        found.append(message)
    return found[::-1]


def _is_said(words: frozenset[str], other: frozenset[str]) -> bool:
    """Whether `other` contains nearly all of `words`, including every longer word and value."""
    missing = words - other
    return all(len(word) <= _SMALL_WORD and not _VALUE.search(word) for word in missing) and len(
        missing
    ) <= (1 - _SAME) * len(words)


def _worth(sentence: str, words: frozenset[str], rules: Sequence[str]) -> int:
    plain = sentence.strip()
    if any(plain in rule or rule in plain for rule in rules):
        return _STATEMENT
    if _VALUE.search(plain) or _NAME.search(plain) or _ASSIGNS.search(plain):
        return _STATEMENT
    if len(words) <= _SHORT_WORDS:
        return 0
    return _PLAIN


def _states(message: _Message) -> bool:
    return any(sentence.worth >= _STATEMENT for sentence in message.sentences)


def _leave_out(messages: Sequence[_Message], worth: int, over: float) -> float:
    """Leave out sentences of `worth`, oldest first; returns the tokens saved."""
    found = [
        (message, sentence)
        for message in messages[1:-_NEWEST]
        for sentence in message.sentences
        if sentence.worth == worth and sentence.is_there and message.is_whole
    ]
    gained = 0.0
    for message, sentence in found:
        if gained >= over:
            break
        sentence.is_there = False
        is_all = not any(one.is_there for one in message.sentences)
        gained += sentence.tokens + _NUMBER_TOKENS * is_all
    return gained


def _leave_out_statements(messages: Sequence[_Message], over: float, counter: TokenCounter) -> None:
    """Leave out messages with statements, longest first, until `over` tokens are saved.

    Each is left out whole: a rule without the value beside it would mean something else.
    """
    found = [
        (sum(part.tokens for part in message.sentences if part.is_there), message)
        for message in messages[1:-_NEWEST]
        if message.is_whole and any(part.is_there for part in message.sentences)
    ]
    for tokens, message in sorted(found, key=lambda one: -one[0]):
        if over <= 0:
            break
        for part in message.sentences:
            part.is_there = False
        over -= max(tokens - counter.count_text(_rest(message)), 0)


def _shorten_long(messages: Sequence[_Message], over: float, counter: TokenCounter) -> float:
    """Cut the middle of long messages, all to the same size; returns the tokens still too many."""
    long = [
        message
        for message in messages
        if message.tokens > _LONG_TOKENS and all(part.is_there for part in message.sentences)
    ]
    if over <= 0 or not long:
        return over
    sizes = [message.tokens for message in long]
    share = max(_equal_share(sizes, int(sum(sizes) - over)), _LEAST_TOKENS)
    for message in long:
        if message.tokens > share:
            ends = max((share - 20) // 2, 10)
            message.text = keep_ends(
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


def _lines(messages: Sequence[_Message]) -> Iterator[tuple[str, str | None]]:
    """The messages as shortened so far.

    Each comes with its id if only its beginning is left, and "" if nothing is.
    """
    for message in messages:
        there = any(sentence.is_there for sentence in message.sentences)
        if there or not message.is_whole or not message.sentences:
            yield _text(message), None
        elif _states(message):
            yield _rest(message), message.entry_id
        else:
            yield "", ""


def _rest(message: _Message) -> str:
    return f"{one_line(message.text, _LINE_CHARS)} {recall_mark(message.entry_id)}"


def _text(message: _Message) -> str:
    if not message.is_whole or all(sentence.is_there for sentence in message.sentences):
        return message.text
    parts: list[str] = []
    for sentence in message.sentences:
        if sentence.is_there:
            parts.append(sentence.text)
        elif parts[-1:] != [_GAP]:
            parts.append(_GAP)
    return "".join(parts).strip()


def _within(lines: Sequence[tuple[str, str | None]], room: int, counter: TokenCounter) -> Spoken:
    """Those `lines` that fit, of shortened messages the newest ones, and the ids of the rest."""
    sizes = [counter.count_text(text) + _NUMBER_TOKENS for text, _ in lines]
    ids = [entry_id for _, entry_id in lines if entry_id]
    id_tokens = max((counter.count_text(one) + 1 for one in ids), default=1)
    room -= sum(size for (_, rest), size in zip(lines, sizes, strict=True) if rest is None)
    most_ids = min(len(ids), max(room, 0) // id_tokens)
    room -= id_tokens * most_ids
    shown: list[str] = []
    left_out: list[str] = []
    for (text, rest), size in zip(reversed(lines), reversed(sizes), strict=True):
        if rest and size - id_tokens <= room:
            room -= size - id_tokens
        elif rest is not None:
            left_out.append(rest)
            continue
        shown.append(text)
    if left_out:
        named = " ".join([one for one in left_out if one][:most_ids][::-1])
        ids_text = f": {named}" if named else ""
        shown.insert(-1, _LEFT_OUT.format(count=len(left_out), ids=ids_text))
    return Spoken(shown[::-1], sum(rest is not None for _, rest in lines))


def _equal_share(sizes: Sequence[int], room: int) -> int:
    """The size to which the largest ones must shrink so that all fit."""
    left, share = room, max(sizes, default=0)
    for number, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - number)
        if size > share:
            return share
        left -= size
    return max(sizes, default=0)
