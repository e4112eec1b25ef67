"""Compactions and scopes as blocks of the chat, when they happen and when the log is read again."""

import re
from collections.abc import Sequence

from agent_tui.compaction.curation.excerpts import Excerpt, excerpts_in
from agent_tui.compaction.transcript import OWN_TAGS
from agent_tui.events import CompactionFinished, ScopeLeft
from agent_tui.sessions.entries import CompactionEntry, CustomEntry, Entry
from agent_tui.sessions.replay.changes import (
    MADE_WITHOUT_MODEL,
    UNDONE,
    describe_edits,
    is_undo_mark,
    report_of,
    undone_by,
)
from agent_tui.sessions.replay.scope_entries import ScopeEnter, ScopeExit, ScopeMark
from agent_tui.ui.transcript.blocks import Block, DividerBlock, NoticeBlock, SummaryBlock

_HEADINGS = {
    "said-by-the-person": "What you said",
    "task-text": "The task",
    "work-state": "State of the work",
    "findings": "Findings and decisions",
    "commands-run": "Commands",
    "kept": "Kept word for word",
    "files-now": "Current files",
    "way-so-far": "Steps so far",
    "pinned-constraints": "Your rules",
    "failures": "Failures",
    "open-errors": "Open errors",
    "read-files": "Read files",
    "modified-files": "Changed files",
    "messages-below": "The newest messages",
}
_FACTS = re.compile(rf"^<({'|'.join(_HEADINGS)})>\n(.*?)\n?</\1>$", re.DOTALL | re.MULTILINE)

_TAGS = re.compile(rf"[ \t]*</?(?:{'|'.join(OWN_TAGS)})>[ \t]*\n?")
"""Tags that remain if a block was cut or contains a block."""

_FENCE = "````"
_FILE_START = re.compile(r"^(?=### \S.* \((?:changed|read \d+ times); )", re.MULTILINE)


def compaction_block(event: CompactionFinished) -> SummaryBlock:
    """The line for a new compaction; unfolded, it shows the summary or what was done."""
    note = event.note or (MADE_WITHOUT_MODEL if event.is_fallback else "")
    said = readable_summary(event.summary) or describe_edits(event.messages, event.freed)
    return SummaryBlock(said, event.tokens_before, event.tokens_after, note)


def summary_block(entry: CompactionEntry) -> SummaryBlock:
    """The line for a compaction with a summary, from the log."""
    note = entry.details.note or (MADE_WITHOUT_MODEL if entry.details.is_fallback else "")
    summary = readable_summary(entry.summary)
    return SummaryBlock(summary, entry.tokens_before, entry.tokens_after, note)


def change_block(entry: CustomEntry, entries: Sequence[Entry]) -> SummaryBlock | NoticeBlock | None:
    """The line for a compaction by edits alone, or for one of `entries` that was undone.

    None for others: the chat doesn't show a compaction that began another session.
    """
    if is_undo_mark(entry):
        undone = undone_by(entry)
        is_shown = any(shown.id in undone for shown in entries)
        return NoticeBlock("info", UNDONE) if is_shown else None
    if (report := report_of(entry)) is None:
        return None
    done = describe_edits(report.messages, report.freed)
    return SummaryBlock(done, report.tokens_before, report.tokens_after, report.note)


def scope_start_block(label: str) -> DividerBlock:
    """The line where a scope begins."""
    return DividerBlock(f"start: {label}")


def scope_end_blocks(event: ScopeLeft) -> tuple[Block, ...]:
    """The line at the end of a scope, after its summary, which can be unfolded."""
    end = DividerBlock(f"end: {event.label}")
    if not event.summary:
        return (end,)
    sizes = f"{event.tokens_before:,} -> {event.tokens_after:,} tokens"
    return (SummaryBlock(readable_summary(event.summary), 0, 0, f"summarised ({sizes})"), end)


def mark_blocks(entry_id: str, mark: ScopeMark) -> tuple[Block, ...]:
    """The lines for a mark from the log."""
    match mark:
        case ScopeEnter(label=label):
            return (scope_start_block(label),)
        case ScopeExit():
            return scope_end_blocks(
                ScopeLeft(entry_id, mark.label, mark.summary, mark.tokens_before, mark.tokens_after)
            )
        case _:
            return ()


def readable_summary(summary: str) -> str:
    """`summary` for the user: with facts from code under headings, without tags."""
    return _TAGS.sub("", _FACTS.sub(_readable_facts, summary))


def readable_piece(text: str) -> str:
    """One line from somewhere in a summary, without tags."""
    return " ".join(_TAGS.sub(" ", text).split())


def _readable_facts(block: re.Match[str]) -> str:
    tag, lines = block[1], block[2].split("\n")
    match tag:
        case "read-files" | "modified-files":
            body = [f"- {line}" if line.startswith("+") else f"- `{line}`" for line in lines]
        case "commands-run":
            body = [_FENCE, *lines, _FENCE]
        case "files-now":
            body = [line for file in _FILE_START.split(block[2]) for line in _readable_file(file)]
        case "kept":
            body = [line for excerpt in excerpts_in(block[2]) for line in _readable_kept(excerpt)]
        case _:
            body = lines
    return "\n".join([f"## {_HEADINGS[tag]}", *body])


def _readable_kept(excerpt: Excerpt) -> list[str]:
    span = f", lines {excerpt.first}-{excerpt.last}" if excerpt.first else ""
    return [f"### {excerpt.label}{span}", _FENCE, *excerpt.lines, _FENCE]


def _readable_file(text: str) -> list[str]:
    """A file with its heading; its text is fenced, as it is not Markdown."""
    heading, _, body = text.rstrip("\n").partition("\n")
    return [heading, _FENCE, body, _FENCE] if heading else []
