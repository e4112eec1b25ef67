"""Finds words in everything that was said in a conversation."""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from agent_tui.features.recall.originals import (
    RecallableEntry,
    call_answered_by,
    call_subject,
    describe_entry,
    entry_minute,
    entry_text,
    is_recallable,
    reply_text,
    rows_of,
)
from agent_tui.features.recall.terms import TermSet
from agent_tui.messages import (
    AssistantMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    texts_in,
)
from agent_tui.sessions.entries import BranchSummaryEntry, CompactionEntry, Entry, MessageEntry
from agent_tui.text_search import fold, split_query

_MAX_HITS = 10
_MAX_NEAREST = 3
"""Hits returned if no message has all of the words."""

_OWN_TOOLS = frozenset({"recall", "compact", "why"})
"""Tools whose calls and results only repeat what was said before."""

_RANKED_BY_LINE = 50
"""Matches whose lines are examined: later ones are not shown."""

_SHORT_ROW_CHARS = 120
_SHOWN_ROW_CHARS = 200

_NONE: Set[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that contains the words.

    Args:
        entry_id: The id of its entry.
        what: What it is, in a few words.
        written_at: Minute it was written.
        row_number: Number, from 1, of the first row (see `rows_of`) with the most of the words.
        rows: That row, shortened around the words, and a short one before and after it, each with
            its number.
        missing: Words it does not contain.
        older_alike: How many older messages would look the same; they are not hits themselves.
    """

    entry_id: str
    what: str
    written_at: str
    row_number: int
    rows: tuple[tuple[int, str], ...]
    missing: tuple[str, ...]
    older_alike: int = 0


@dataclass(frozen=True, slots=True)
class SearchFindings:
    """The result of a search: the best hits first; `matches` of `searched` messages matched.

    If no message has all words, the hits have as many of them as possible, at least half.
    """

    hits: tuple[Hit, ...]
    matches: int
    searched: int


@dataclass(frozen=True, slots=True)
class _Match:
    """A message with words of the query; `age` counts from the newest entry."""

    entry: RecallableEntry
    age: int
    count: int
    missing: tuple[str, ...]

    @property
    def is_summary(self) -> bool:
        """Whether it repeats what other messages say."""
        return isinstance(self.entry, CompactionEntry | BranchSummaryEntry)


def terms_of(query: str) -> tuple[str, ...]:
    """The words and the "exact phrases" of a query, each once."""
    by_folded = {fold(text): text for text, _ in split_query(query)}
    return tuple(text for folded, text in by_folded.items() if folded.strip())


def search_history(entries: Sequence[Entry], terms: Sequence[str]) -> SearchFindings:
    """Messages that contain all `terms`, in their text or in the call that they answer.

    Originals come before summaries, then those with the most words in one row, with the most
    occurrences, the newest. 100,000 entries with 140 MB of text take 0.5 to 1.1 s, three if every
    one has accented letters.

    Args:
        entries: Newest first.
        terms: From `terms_of`, at least one.
    """
    wanted = TermSet(terms)
    matches, searched = _matches(entries, wanted)
    matches.sort(key=lambda match: (match.is_summary, -match.count, match.age))
    best = matches[:_RANKED_BY_LINE]
    closer = [_rank_by_line(match, wanted, _older(entries, match.age)) for match in best]
    closer.sort(key=lambda seen: seen[0])  # stable: equal items keep their order
    return SearchFindings(tuple(_distinct([hit for _, hit in closer])), len(matches), searched)


def _matches(entries: Sequence[Entry], wanted: TermSet) -> tuple[list[_Match], int]:
    """The messages with the most of the words, at least half, and how many were searched.

    Starts with the oldest, since a call's subject also counts for its result.
    """
    fewest, searched = (len(wanted) + 1) // 2, 0
    matches: list[_Match] = []
    named: dict[str, Set[bytes]] = {}
    for age in range(len(entries) - 1, -1, -1):
        entry = entries[age]
        if not is_recallable(entry) or (text := _text_to_search(entry)) is None:
            continue
        searched += 1
        folded = wanted.fold_text(text)
        found = wanted.find_in(folded)
        by_call = _words_of_call(entry, found, wanted, named)
        found = found | by_call if by_call else found
        if len(found) < fewest:
            continue
        if len(found) > fewest:
            fewest = len(found)
            matches.clear()
        count = wanted.count_in(folded) + len(by_call)
        matches.append(_Match(entry, age, count, wanted.without(found)))
    return matches, searched


def _words_of_call(
    entry: RecallableEntry, found: Set[bytes], wanted: TermSet, named: dict[str, Set[bytes]]
) -> Set[bytes]:
    """The words in the subject of the call that `entry` answers.

    Args:
        entry: The result.
        found: The words in it.
        wanted: All words.
        named: The words found in each call, by its id; updated here.
    """
    if (found or named) and isinstance(entry, MessageEntry):
        message = entry.message
        if isinstance(message, ToolResultMessage):
            return named.get(message.tool_call_id, _NONE)
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls:
                named.pop(call.id, None)
                if found and (about := wanted.find_in(wanted.fold_text(call_subject(call)))):
                    named[call.id] = about
    return _NONE


def _text_to_search(entry: RecallableEntry) -> str | None:
    """The text of `entry`; for a reply's calls, the texts in their arguments."""
    if not isinstance(entry, MessageEntry):
        return entry_text(entry)
    message = entry.message
    if isinstance(message, ToolResultMessage):
        return None if message.tool_name in _OWN_TOOLS else entry_text(entry)
    if not isinstance(message, AssistantMessage):
        return entry_text(entry)
    texts: list[str] = []
    for part in message.content:
        if isinstance(part, ToolCall):
            if part.name not in _OWN_TOOLS:
                texts += (part.name, *texts_in(part.arguments))
        elif isinstance(part, TextContent):
            texts.append(part.text)
    return "\n".join(texts)


def _rank_by_line(
    match: _Match, wanted: TermSet, older: Iterable[Entry]
) -> tuple[tuple[bool, int], Hit]:
    """The hit for `match`, and a rank that needs a closer look at its text."""
    rows = rows_of(_text_with_searched_rows(match.entry))
    at, together = _best_row(rows, wanted, len(wanted) - len(match.missing))
    shown = [(at + 1, _excerpt(rows[at], wanted))]
    for beside in (at - 1, at + 1):
        if 0 <= beside < len(rows) and 0 < len(text := rows[beside].strip()) <= _SHORT_ROW_CHARS:
            shown.append((beside + 1, text))
    hit = Hit(
        entry_id=match.entry.id,
        what=describe_entry(match.entry, call_answered_by(match.entry, older)),
        written_at=entry_minute(match.entry),
        row_number=at + 1,
        rows=tuple(sorted(shown)),
        missing=match.missing,
    )
    return (match.is_summary, -together), hit


def _excerpt(row: str, wanted: TermSet) -> str:
    """`row` without blanks at its ends; for a long one the part around the first word."""
    row = row.strip()
    if len(row) <= _SHOWN_ROW_CHARS:
        return row
    first = wanted.first_place(row)
    start = min(max(first - _SHOWN_ROW_CHARS // 4, 0), len(row) - _SHOWN_ROW_CHARS)
    end = start + _SHOWN_ROW_CHARS
    return f"{'…' if start else ''}{row[start:end]}{'…' if end < len(row) else ''}"


def _best_row(rows: Sequence[str], wanted: TermSet, possible: int) -> tuple[int, int]:
    """The first row with the most words (`possible` of them occur at all), and how many."""
    best_at, most = 0, 0
    for at, row in enumerate(rows):
        found = len(wanted.find_in(wanted.fold_text(row)))
        if found > most:
            best_at, most = at, found
            if most == possible:
                break
    return best_at, most


def _older(entries: Sequence[Entry], age: int) -> Iterator[Entry]:
    return (entries[older] for older in range(age + 1, len(entries)))


def _text_with_searched_rows(entry: RecallableEntry) -> str:
    """The text of `entry`, with empty rows for calls that are not searched."""
    if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
        return reply_text(entry.message, _OWN_TOOLS)
    return entry_text(entry)


def _distinct(hits: Sequence[Hit]) -> Iterator[Hit]:
    """The first few that look different; the others are only counted."""
    alike: dict[tuple[str, tuple[tuple[int, str], ...]], list[Hit]] = {}
    for hit in hits:
        alike.setdefault((hit.what, hit.rows), []).append(hit)
    most = _MAX_NEAREST if hits and hits[0].missing else _MAX_HITS
    for group in list(alike.values())[:most]:
        yield replace(group[0], older_alike=len(group) - 1)
