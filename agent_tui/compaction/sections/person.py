"""The user's messages word for word: the longest are cut before any is left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from agent_tui.attachments import split_pastes
from agent_tui.compaction.sections.history import is_filler
from agent_tui.compaction.tiers.forms import cut_pastes, keep_ends
from agent_tui.omissions import one_line, recall_mark
from agent_tui.tokens import TokenCounter

LEAST_TOKENS = 60
"""No message is left out while one that is longer than this can still be cut in the middle."""

_LINE_TOKENS = 44
"""If even that is too much, messages are cut to their beginning, down to about this."""

_NUMBER_TOKENS = 4
"""Tokens of the number before a message."""

_MARK_TOKENS = 20
"""Tokens of the mark for what was cut, with its id."""

_STEP = 0.95
_NEWEST = 2
_LEFT_OUT = "[{count} later message{s} left out; recall finds {them}{ids}]"


@dataclass(frozen=True, slots=True)
class Spoken:
    """The user's messages as a summary shows them.

    Args:
        lines: One text a message, oldest first.
        numbers: Which of all messages each line is, from 1; 0 for the note on those left out.
        left_out: The texts of the messages that are not shown at all.
        is_whole: Whether nothing was cut or left out, apart from repetitions and fillers.
    """

    lines: list[str]
    numbers: tuple[int, ...] = ()
    left_out: tuple[str, ...] = ()
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class _Message:
    entry_id: str
    text: str
    tokens: int
    number: int = 0
    least: int = _LINE_TOKENS
    typed: Sequence[str] = ()
    is_staying: bool = False

    def cut_pastes(self, most: int, counter: TokenCounter) -> "_Message":
        """The message with each paste in about `most` tokens."""
        text = cut_pastes(
            self.text, self.typed, most_tokens=most, entry_id=self.entry_id, counter=counter
        )
        tokens = counter.count_text(text) + _NUMBER_TOKENS
        return replace(self, text=text, tokens=tokens) if tokens < self.tokens else self

    def cut(self, most: int, counter: TokenCounter) -> "_Message":
        """The message in about `most` tokens: its two ends, or its beginning if that is little."""
        most = max(most, self.least)
        if self.tokens <= most:
            return self
        room = most - _NUMBER_TOKENS
        if most >= LEAST_TOKENS:
            ends = (room - _MARK_TOKENS) // 2
            tokens, entry_id = self.tokens - _NUMBER_TOKENS, self.entry_id
            text = keep_ends(
                self.text, tokens=tokens, end_tokens=ends, entry_id=entry_id, counter=counter
            )
        else:
            mark = recall_mark(self.entry_id) if self.entry_id else ""
            room -= counter.count_text(mark)
            chars = len(self.text) * room // self.tokens
            text = f"{one_line(self.text, max(chars, 2))} {mark}".rstrip()
        tokens = counter.count_text(text) + _NUMBER_TOKENS
        return replace(self, text=text, tokens=tokens) if tokens < self.tokens else self


def choose_messages(
    messages: Sequence[tuple[str, str]],
    room_tokens: int,
    counter: TokenCounter,
    *,
    typed: Mapping[str, Sequence[str]] = MappingProxyType({}),
    staying: Mapping[str, bool] = MappingProxyType({}),
) -> Spoken:
    """The messages within `room_tokens`, oldest first.

    If not all fit, these go in order until the rest fits: fillers ("go on") and messages that a
    later one repeats; the middle of pastes, all down to the same size, then their ends; the middle
    of the longest messages, all down to the same size; the ends of those that are left; whole
    messages, the longest first, for which one line has the number and the ids. The first message
    and the newest two always stay.

    Args:
        messages: Entry id and text of each, oldest first.
        room_tokens: Limit of all together.
        counter: Counts their tokens.
        typed: The typed parts of texts that hold pastes, by text.
        staying: Entries whose messages are never left out, and whether they are not cut either.
    """
    whole = _measure(messages, counter, typed, staying)
    if sum(message.tokens for message in whole) <= room_tokens:
        return _spoken(whole)
    written = _worth_keeping(whole)
    kept = _cut_pastes(written, room_tokens, counter)
    shown, most = kept, equal_share([message.tokens for message in kept], room_tokens)
    while (used := sum(message.tokens for message in shown)) > room_tokens:
        shown = [message.cut(most, counter) for message in kept]
        if most <= _LINE_TOKENS:
            used = sum(message.tokens for message in shown)
            break
        most = int(most * _STEP)  # marks and line ends took more than was cut for them
    spoken = _leave_out_longest(shown, kept, used - room_tokens, counter)
    return replace(spoken, is_whole=shown == written and not spoken.left_out)


def least_tokens(
    messages: Sequence[tuple[str, str]],
    counter: TokenCounter,
    staying: Mapping[str, bool] = MappingProxyType({}),
) -> int:
    """The tokens that `messages` need if long ones are cut and none is left out.

    For `staying`, see `choose_messages`.
    """
    kept = _worth_keeping(_measure(messages, counter, staying=staying))
    return sum(min(message.tokens, max(message.least, LEAST_TOKENS)) for message in kept)


def _spoken(messages: Sequence[_Message]) -> Spoken:
    """All `messages`, as they are."""
    return Spoken([one.text for one in messages], tuple(one.number for one in messages))


def equal_share(sizes: Sequence[int], room: int) -> int:
    """The size to which the largest ones must shrink so that all fit into `room`."""
    left, share = room, max(sizes, default=0)
    for number, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - number)
        if size > share:
            return share
        left -= size
    return max(sizes, default=0)


def _cut_pastes(messages: list[_Message], room: int, counter: TokenCounter) -> list[_Message]:
    """The messages with their pastes cut to the same size, as far as that is needed."""
    sizes = [
        counter.count_text(part)
        for message in messages
        for part, is_pasted in split_pastes(message.text, message.typed)
        if is_pasted
    ]
    shown, typed_tokens = messages, sum(message.tokens for message in messages) - sum(sizes)
    most = equal_share(sizes, max(room - typed_tokens, 0))
    while sum(message.tokens for message in shown) > room:
        shown = [message.cut_pastes(most, counter) for message in messages]
        if most <= 0:
            break
        most = int(most * _STEP)
    return shown


def _measure(
    messages: Sequence[tuple[str, str]],
    counter: TokenCounter,
    typed: Mapping[str, Sequence[str]] = MappingProxyType({}),
    staying: Mapping[str, bool] = MappingProxyType({}),
) -> list[_Message]:
    """The messages with their sizes; the first and the newest ones are cut less than others."""
    last = len(messages) - _NEWEST
    measured: list[_Message] = []
    for at, (entry_id, text) in enumerate(messages):
        tokens = counter.count_text(text) + _NUMBER_TOKENS
        is_whole = staying.get(entry_id, False)
        least = tokens if is_whole else _LINE_TOKENS if 0 < at < last else LEAST_TOKENS
        parts = () if is_whole else typed.get(text, ())
        measured.append(_Message(entry_id, text, tokens, at + 1, least, parts, entry_id in staying))
    return measured


def _worth_keeping(messages: Sequence[_Message]) -> list[_Message]:
    """`messages` without fillers and without those that a later one repeats."""
    newest = {" ".join(one.text.casefold().split()): at for at, one in enumerate(messages)}
    last = set(newest.values())
    ends = {0, *range(len(messages) - _NEWEST, len(messages))}
    return [
        message
        for at, message in enumerate(messages)
        if at in ends or (at in last and not is_filler(message.text))
    ]


def _leave_out_longest(
    shown: Sequence[_Message], written: Sequence[_Message], over: int, counter: TokenCounter
) -> Spoken:
    """The texts without those that were longest as `written`, to save `over` tokens; and those.

    Of equally long ones, the oldest go first. The first message and the newest ones stay.
    """
    if over <= 0 or len(shown) <= 1 + _NEWEST:
        return _spoken(shown)
    missing = over + counter.count_text(_LEFT_OUT)
    gone: set[int] = set()
    for at in sorted(range(1, len(shown) - _NEWEST), key=lambda at: -written[at].tokens):
        saved = shown[at].tokens - counter.count_text(f" {shown[at].entry_id}")
        if missing > 0 and saved > 0 and not shown[at].is_staying:
            missing -= saved
            gone.add(at)
    if missing >= over:
        return _spoken(shown)
    named = [shown[at].entry_id for at in sorted(gone) if shown[at].entry_id]
    ids = f": {' '.join(named)}" if named else ""
    first, *rest = (message for at, message in enumerate(shown) if at not in gone)
    s, them = ("", "it") if len(gone) == 1 else ("s", "them")
    mark = _LEFT_OUT.format(count=len(gone), s=s, them=them, ids=ids)
    return Spoken(
        [first.text, mark, *(one.text for one in rest)],
        (first.number, 0, *(one.number for one in rest)),
        tuple(written[at].text for at in sorted(gone)),
    )
