"""The changes made in this conversation, by file and by message."""

import asyncio
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Front, Page, PageSection, Row
from agent_tui.commands.core.short_words import count_text, short_path, task_title
from agent_tui.safe_paths import real_path
from agent_tui.safe_text import safe_text
from agent_tui.tools.files.diffs import line_counts
from agent_tui.tools.files.edit_history import (
    ChangedFile,
    FileEdit,
    file_edits,
    find_changed_files,
)

_STEP_BY_STEP = "These lines were also changed elsewhere, so each edit is shown as it was made."


@dataclass(frozen=True, slots=True)
class DiffItem:
    """One item in the list of changes: a file, or the changes after a message.

    Attributes:
        title: The file, or the message.
        diff: A unified diff; may have several files, or be empty.
        notes: Other facts, one line each.
    """

    title: str
    diff: str
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> tuple[int, int]:
        """Numbers of added and removed lines."""
        return line_counts(self.diff)


@dataclass(frozen=True, slots=True)
class DiffPage:
    """The changes of a conversation, in both orders.

    Attributes:
        by_file: Each file with the result of all edits.
        by_turn: Each message that led to changes, with the changes as made.
    """

    by_file: tuple[DiffItem, ...]
    by_turn: tuple[DiffItem, ...]

    async def page(self) -> Page:
        """The files with their diffs, a section each."""
        return Page("What changed", tuple(_section(change) for change in self.by_file))


@command("[file]", aliases=("changes",))
async def diff(front: Front, argument: str) -> None:
    """Show the files changed in this conversation."""
    runtime = front.runtime
    history, cwd = runtime.history(), runtime.conversation.cwd

    def work_out() -> DiffPage:
        edits = file_edits([*history.entries()][::-1])
        wanted = [edit for edit in edits if argument.lower() in edit.name.lower()]
        return diff_page(wanted, find_changed_files(wanted, cwd), cwd)

    shown = await asyncio.to_thread(work_out)
    if shown.by_file:
        await front.show(shown)
    elif argument:
        front.say(f"No file changed in this conversation matches {argument}.")
    else:
        front.say("No files changed in this conversation.")


def diff_page(edits: list[FileEdit], files: tuple[ChangedFile, ...], cwd: Path) -> DiffPage:
    """The page for `edits`, whose results are `files`."""
    by_turn = tuple(
        _turn(number, list(made)) for number, made in groupby(edits, lambda edit: edit.turn)
    )
    return DiffPage(tuple(_file(file, cwd) for file in files), by_turn)


def _file(file: ChangedFile, cwd: Path) -> DiffItem:
    root = real_path(cwd)
    if file.path.is_relative_to(root):
        title = file.path.relative_to(root).as_posix()
    else:
        title = short_path(file.path, Path.home())
    turns = sorted({edit.turn for edit in file.edits})
    notes = [f"changed after {_messages(turns)}"]
    if not file.is_whole:
        notes.append(_STEP_BY_STEP)
    elif not file.diff and not file.commands:
        notes.append("It is back to its original content.")
    notes += [f"changed by a command (no diff): {command}" for command in file.commands]
    return DiffItem(title, file.diff, tuple(notes))


def _turn(number: int, edits: list[FileEdit]) -> DiffItem:
    asked = task_title(edits[0].asked) or "before the first message"
    commands = [
        f"{edit.name}: changed by a command (no diff): {edit.command}"
        for edit in edits
        if edit.command
    ]
    return DiffItem(f"{number}. {asked}", "".join(edit.diff for edit in edits), tuple(commands))


def _messages(turns: list[int]) -> str:
    listed = ", ".join(map(str, turns))
    return f"message {listed}" if len(turns) == 1 else f"messages {listed}"


def _section(change: DiffItem) -> PageSection:
    added, removed = change.counts
    heading = f"{change.title} (+{count_text(added, 'line')}, -{count_text(removed, 'line')})"
    lines: list[Row] = [("", safe_text(note)) for note in change.notes]
    lines += [("", line) for line in change.diff.rstrip("\n").split("\n")[2:]]
    return PageSection(heading, tuple(lines))
