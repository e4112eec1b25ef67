"""Notes that were written ahead, brought up to date with the steps made since."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from agent_tui.compaction.curation.answer import KeepChoice
from agent_tui.compaction.ledger.files import files_of, normalise_path
from agent_tui.compaction.sections.commands import is_commit
from agent_tui.compaction.sections.file_states import FileState
from agent_tui.compaction.sections.history import Done, HistoryEvent, Said, split_after, steps_in
from agent_tui.compaction.summary.templates import Template
from agent_tui.compaction.tiers.describe import action_label
from agent_tui.compaction.transcript import escape_tags, tag_blocks
from agent_tui.omissions import one_line
from agent_tui.sessions.entries import Entry
from agent_tui.sessions.outputs import is_test

_END = (
    "(These notes end before the newest {steps}, which the messages at the end show; where the two "
    "differ, those hold.{done})"
)
_OLDER = (
    "{which} older than the notes, which say what became of that work. The files above are "
    "newer: as they are after all messages, unless one says that it was perhaps changed "
    "since.{then}"
)
_THEN = " Below, these files are as they were before a change: {files}."
_BEFORE = "(before the newest {steps})"
_MOST_NAMED = 6
_NAME = re.compile(r"(?=\w*(?:[a-z][A-Z]|[_./-]\w))[\w./-]+")
"""A word that is no word of the language: ``lexer.py``, ``session_live``, ``SessionLive``."""

_COMMAND_CHARS = 80


def notes_now(
    choice: KeepChoice, path: Sequence[Entry], template: Template, folders: Sequence[str]
) -> str:
    """The notes of `choice`, with a mark where they end, and without what is superseded.

    What was in progress goes with a later commit; a line on the state goes if the tests that it
    names ran again, as the state of the work has the newest result.

    Args:
        choice: The model's answer.
        path: Entries from the root to the leaf.
        template: The form of the notes.
        folders: Paths of the working folder.
    """
    steps = steps_in(split_after(path, choice.through)[1])
    bodies = {h: body for h, body in template.parse(choice.notes).items() if h}
    if not steps or not bodies:
        return choice.notes
    count = f"{len(steps)} steps" if len(steps) > 1 else "step"
    commands = [event.output.action.command for event in steps]
    tested = [command for command in commands if is_test(command)]
    if any(is_commit(event.output) for event in steps):
        bodies.pop(template.in_progress, None)
    state = bodies.get(template.state, "").split("\n")
    state = [line for line in state if not any(command in line for command in tested)]
    bodies[template.state] = "\n".join(state)
    for heading in template.passing:
        if bodies.get(heading):
            bodies[heading] = f"{_BEFORE.format(steps=count)}\n{bodies[heading]}"
    done = list(dict.fromkeys(_changes(steps, folders)))[:_MOST_NAMED]
    since = escape_tags(f" Since then: {'; '.join(done)}.") if done else ""
    end = _END.format(steps=count, done=since)
    return f"{end}\n\n{template.render(bodies)}"


def older_than_notes(
    choice: KeepChoice,
    path: Sequence[Entry],
    events: Sequence[HistoryEvent],
    doubtful: Sequence[FileState] = (),
) -> str:
    """The block that says which of the messages behind a summary are older than its notes.

    They begin before the notes end, and would read like new work. What the user wrote last is new
    work, even if the notes know it.

    Args:
        choice: The model's answer.
        path: Entries from the root to the leaf.
        events: The events on it, oldest first.
        doubtful: Files that the messages show as they were before a change.
    """
    known = {entry.id for entry in split_after(path, choice.through)[0]}
    steps = [event for event in events if isinstance(event, Done)]
    before = [step for step in steps if step.entry_id in known]
    if not choice.notes or not before:
        return ""
    newest = [event for event in events if isinstance(event, Done | Said)][-1]
    since = newest.entry_id not in known or isinstance(newest, Said)
    last = action_label(before[-1].output.action)
    which = f"Those up to `{last}` are" if since else "All of them are"
    files = escape_tags("; ".join(f"{file.path} ({file.doubt})" for file in doubtful))
    then = _THEN.format(files=files) if files else ""
    return tag_blocks(("messages-below", [_OLDER.format(which=which, then=then)]))


def files_ahead(
    files: Sequence[FileState],
    choice: KeepChoice,
    notes: str,
    path: Sequence[Entry],
    template: Template,
    folders: Sequence[str],
) -> list[FileState]:
    """Those of `files` that the work needs next, the first first.

    A model that chose texts has seen the others, and did not want them.

    Args:
        files: The files in the log.
        choice: The model's answer.
        notes: Its notes as they are by now.
        path: Entries from the root to the leaf.
        template: The form of the notes.
        folders: Paths of the working folder.

    Returns:
        What changed since the notes, then what they name as in progress, blocked or next, in their
        order. All of `files` if the notes have none of these headings.
    """
    bodies = template.parse(notes)
    headings = [h for h in template.headings if h in template.passing and h != template.state]
    if not any(bodies.get(heading) for heading in headings):
        return list(files)
    steps = steps_in(split_after(path, choice.through)[1])
    since = {normalise_path(path, folders) for step in steps for path in files_of(step).modified}
    text = "\n".join(bodies.get(heading, "") for heading in headings)
    words: dict[str, int] = {}
    for place, word in enumerate(_NAME.findall(text)):
        words.setdefault(_plain_stem(word.rstrip(".")), place)
    ahead = {file.path: -1 for file in files if file.path in since}
    for file in files:
        if (place := words.get(_plain_stem(file.path))) is not None:
            ahead.setdefault(file.path, place)
    return sorted((f for f in files if f.path in ahead), key=lambda file: ahead[file.path])


def _plain_stem(path: str) -> str:
    """The name of a file or of what is in it: ``SessionLive`` is in ``session_live.ex``."""
    return re.sub(r"[\W_]", "", PurePosixPath(path).stem).casefold()


def _changes(steps: Sequence[Done], folders: Sequence[str]) -> Iterator[str]:
    """What `steps` changed or checked, in words."""
    for step in steps:
        action, has_failed = step.output.action, step.output.has_failed
        failed = " (failed)" if has_failed else ""
        for path in files_of(step).modified:
            yield f"changed {normalise_path(path, folders)}"
        if is_commit(step.output) or is_test(action.command):
            yield f"ran `{one_line(action.command, _COMMAND_CHARS)}`{failed}"
