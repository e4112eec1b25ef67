"""The `recall` tool: returns originals that the context no longer contains."""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import dropwhile
from pathlib import Path

from pydantic import Field

from agent_tui.errors import ToolError
from agent_tui.features.recall.history_search import Hit, SearchFindings, search_history, terms_of
from agent_tui.features.recall.originals import (
    RecallableEntry,
    call_answered_by,
    call_subject,
    describe_entry,
    entry_images,
    entry_minute,
    entry_text,
    is_recallable,
    rows_of,
    whole_output_path,
)
from agent_tui.messages import ToolCall, ToolDetails
from agent_tui.safe_paths import is_file
from agent_tui.sessions.entries import Entry
from agent_tui.tools.base import History, Intent, ToolArguments, ToolContext, ToolOutput
from agent_tui.tools.registry import OfferedTool, ToolHost, offer_tool
from agent_tui.tools.shorten import OutputLimits, keep_head, size_bytes

_MOST_IMAGES = 3
_MOST_NAMED = 5
_MOST_HITS_ELSEWHERE = 3
_SESSION_ID_CHARS = 8
_NEAR_PERCENT = 75
"""Similarity of ids that differ in one or two of eight characters."""

_MARK = re.compile(r"^\W*(?:recall\b\W*)?|\W+$", re.IGNORECASE)
_NOTE_BYTES = 80
"""Bytes reserved for the hint on how to get the rest."""

_LEAST_TEXT_BYTES = 100
_HOW_TO_GO_ON = "Recall an id to see it in full, or from a line with offset."


class RecallArguments(ToolArguments):
    """Arguments of `recall`: either `id` or `query`."""

    id: str = ""
    query: str = Field(default="", description='words that must all occur, "exact phrases"')
    offset: int = Field(default=0, ge=0, description="first line")


@dataclass(frozen=True, slots=True)
class RecallTool:
    """Searches everything that was said, in this session and those it continues."""

    name: str = "recall"
    description: str = (
        "Get an earlier message or output in full, by id or search words.\n"
        "For a line ending with [recall ID], a detail the summary lacks, or exact words from "
        "before. Not for files: use read.\n"
        "A query also searches this project's other sessions, with ids SESSION:ENTRY."
    )
    arguments_type: type[RecallArguments] = RecallArguments

    def intent(self, arguments: RecallArguments, context: ToolContext) -> Intent:
        """No access outside the program.

        Raises:
            ToolError: Not exactly one of id and query was given.
        """
        wanted, query = _bare_id(arguments.id), arguments.query.strip()
        if bool(wanted) == bool(query):
            problem = "Give only one of them" if wanted else "Give one of them"
            raise ToolError(
                f"{problem}: id for one original, as in [recall ID], or query for words to search "
                "for, such as query='timeout \"exact phrase\"'."
            )
        if query and not terms_of(query):
            raise ToolError(f"{query} contains no word to search for.")
        title = f"recall {wanted}" if wanted else f'recall "{" ".join(query.split())}"'
        return Intent(title=title, access="none")

    async def run(self, arguments: RecallArguments, context: ToolContext) -> ToolOutput:
        """The original with that id, or the messages with those words."""
        return await asyncio.to_thread(_recall, arguments, context)


def make_tool(_host: ToolHost) -> OfferedTool:
    """The tool, as it is offered."""
    return offer_tool(RecallTool(), before="explore")


def _recall(arguments: RecallArguments, context: ToolContext) -> ToolOutput:
    history, limits = context.history, context.limits
    if wanted := _bare_id(arguments.id):
        session, colon, entry_id = wanted.rpartition(":")
        elsewhere = _entries_of(session, history) if colon else ()
        walked = elsewhere if colon else history.entries()
        entry = _find(entry_id, walked, "that session" if colon else history)
        again = elsewhere if colon else history.entries()
        older = dropwhile(lambda other: other is not entry, again)
        call = call_answered_by(entry, older)
        name = f"{session}{colon}{entry.id}"
        return _original(entry, name, call, arguments.offset, limits)
    entries = list(history.entries())
    terms = terms_of(arguments.query)
    found = search_history(entries, terms)
    own = {(entry.id, entry.timestamp) for entry in entries}
    others = _in_other_sessions(arguments.query, terms, own, history)
    return _hits(found, others, history, limits)


def _entries_of(session: str, history: History) -> list[Entry]:
    """The entries of another session of the project, newest first."""
    named = history.others_named(session)
    if len(named) == 1:
        return list(reversed(named[0].entries))
    problem = f"{len(named)} sessions begin" if named else "No readable session begins"
    raise ToolError(f"{problem} with {session} in this project. Search with query instead.")


def _in_other_sessions(
    query: str, terms: Sequence[str], own: Set[tuple[str, str]], history: History
) -> str:
    """Matches of `terms` in other sessions of the project, a few messages of each.

    Args:
        query: The query.
        terms: Its words.
        own: Ids and times of the conversation's own entries.
        history: Provides the sessions.
    """
    sessions, late = history.others_with(query)
    blocks: list[str] = []
    for session in sessions:
        entries = [e for e in reversed(session.entries) if (e.id, e.timestamp) not in own]
        whole = [hit for hit in search_history(entries, terms).hits if not hit.missing]
        short = session.id[:_SESSION_ID_CHARS]
        named = [replace(hit, entry_id=f"{short}:{hit.entry_id}") for hit in whole]
        blocks += map(_block, named[:_MOST_HITS_ELSEWHERE])
    if late:
        blocks.append(f"({late} of them could not be searched.)")
    return "\n\n".join(["In other sessions of this project:", *blocks]) if blocks else ""


def _bare_id(text: str) -> str:
    """`text` without the brackets and the word that ids are written with."""
    return _MARK.sub("", text.strip())


def _find(wanted: str, entries: Iterable[Entry], searched: History | str) -> RecallableEntry:
    """The entry with that id, or the only one whose id begins with it."""
    begun: dict[str, RecallableEntry] = {}
    ids: dict[str, RecallableEntry] = {}
    for entry in entries:
        if not is_recallable(entry):
            continue
        if entry.id == wanted:
            return entry
        ids.setdefault(entry.id, entry)
        if entry.id.casefold().startswith(wanted.casefold()):
            begun.setdefault(entry.id, entry)
    if len(begun) == 1:
        return next(iter(begun.values()))
    if begun:
        raise ToolError(
            f"{wanted} matches {len(begun)} ids: {_list_entries(begun)}. Give more characters."
        )
    from rapidfuzz import fuzz, process  # 4 MB and 20 ms, and seldom needed

    near = process.extractOne(wanted, list(ids), scorer=fuzz.ratio, score_cutoff=_NEAR_PERCENT)
    hint = (
        f"Nearest: {_list_entries({near[0]: ids[near[0]]})}."
        if near
        else "Search with query instead."
    )
    where = searched if isinstance(searched, str) else _describe_search(len(ids), searched)
    raise ToolError(f"No message {wanted} among {where}. {hint}")


def _list_entries(entries: Mapping[str, RecallableEntry]) -> str:
    shown = [f"{entry.id} ({describe_entry(entry, None)})" for entry in entries.values()]
    return ", ".join(shown[:_MOST_NAMED]) + (", ..." if len(shown) > _MOST_NAMED else "")


def _original(
    entry: RecallableEntry, name: str, call: ToolCall | None, offset: int, limits: OutputLimits
) -> ToolOutput:
    """The lines of `entry` from `offset` on, as many as the limits allow."""
    rows = rows_of(entry_text(entry))
    first = max(offset, 1)
    if first > len(rows):
        raise ToolError(f"{name} has {len(rows)} lines; offset {offset} is past its end.")
    size = "1 line" if len(rows) == 1 else f"{len(rows):,} lines"
    head = f"[{name} · {describe_entry(entry, call)} · {entry_minute(entry)} · {size}]"
    images = entry_images(entry) if offset <= 1 else ()
    notes = [f"first {_MOST_IMAGES} of {len(images)} images"] if len(images) > _MOST_IMAGES else []
    if path := _still_there(whole_output_path(entry)):
        notes.append(f"whole output: {path}; use read")
    room = limits.max_bytes - sum(map(size_bytes, [head, *notes])) - _NOTE_BYTES
    text, last = _fitting(rows, first, limits.max_lines, max(room, _LEAST_TEXT_BYTES))
    if last < len(rows):
        notes.append(f"lines {first}-{last} of {len(rows)}; id={name} offset={last + 1} for more")
    details = ToolDetails(
        summary=f"{size} of {call_subject(call) if call else describe_entry(entry, None)}",
        truncated=last < len(rows),
    )
    lines = [head, text or "(no text)", *(f"[{note}]" for note in notes)]
    return ToolOutput("\n".join(lines), details, images=images[:_MOST_IMAGES])


def _fitting(rows: Sequence[str], first: int, max_lines: int, max_bytes: int) -> tuple[str, int]:
    """The rows from number `first` on that fit, at least part of one; the last row's number."""
    kept: list[str] = []
    for row in rows[first - 1 : first - 1 + max_lines]:
        max_bytes -= size_bytes(row)
        if max_bytes < 0:
            break
        kept.append(row)
    if not kept:
        room = max_bytes + size_bytes(rows[first - 1])
        kept = [keep_head(rows[first - 1], max_lines=1, max_bytes=room).text]
    last = first + len(kept) - 1
    text = "".join(kept)
    return text if last == len(rows) else text.removesuffix("\n"), last


def _still_there(path: str | None) -> str:
    return path if path and is_file(Path(path)) else ""


def _hits(found: SearchFindings, others: str, history: History, limits: OutputLimits) -> ToolOutput:
    """The conversation's hits, then `others`, each with at least half of the space."""
    if not others:
        return _own_hits(found, history, limits)
    half = limits.max_bytes // 2
    kept = keep_head(others, max_lines=limits.max_lines // 2, max_bytes=half).text
    room = limits.max_bytes - size_bytes(kept) - size_bytes(_HOW_TO_GO_ON) - 4
    own = _own_hits(found, history, replace(limits, max_bytes=room))
    parts = [own.for_model.removesuffix(_HOW_TO_GO_ON).rstrip(), kept, _HOW_TO_GO_ON]
    return replace(own, for_model="\n\n".join(parts))


def _own_hits(found: SearchFindings, history: History, limits: OutputLimits) -> ToolOutput:
    searched = _describe_search(found.searched, history)
    if not found.hits:
        text = f"Nothing found in {searched}. Try fewer or other words."
        return ToolOutput(text, ToolDetails(summary="nothing found"))
    if found.hits[0].missing:
        head = f"No message matches all of it ({searched}). Nearest:"
    else:
        count = "1 message matches" if found.matches == 1 else f"{found.matches:,} messages match"
        head = f"{count} ({searched})."
    room = limits.max_bytes - size_bytes(head) - size_bytes(_HOW_TO_GO_ON) - 2
    blocks: list[str] = []
    for block in map(_block, found.hits):
        room -= size_bytes(block) + 2
        if blocks and room < 0:
            break
        blocks.append(block)
    if room < 0 and len(blocks) == 1:
        blocks = [blocks[0].partition("\n")[0]]
    shown = "1 message" if found.matches == 1 else f"{found.matches:,} messages"
    summary = "no full match" if found.hits[0].missing else shown
    text = "\n\n".join([head, *blocks, _HOW_TO_GO_ON])
    return ToolOutput(text, ToolDetails(summary=summary, truncated=len(blocks) < found.matches))


def _block(hit: Hit) -> str:
    about = [hit.entry_id, hit.what, hit.written_at, f"line {hit.row_number}"]
    about += [f"without {', '.join(hit.missing)}"] if hit.missing else []
    about += [f"{hit.older_alike} similar, older"] if hit.older_alike else []
    return "\n".join([" · ".join(about), *(f"  {number}: {row}" for number, row in hit.rows)])


def _describe_search(messages: int, history: History) -> str:
    sessions = "1 session" if history.session_count == 1 else f"{history.session_count} sessions"
    lost = Path(history.missing).name
    more = f"; the previous session, {lost}, cannot be read" if lost else ""
    return f"{messages:,} messages in {sessions}{more}"
