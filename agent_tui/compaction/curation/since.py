"""Notes that were written ahead, brought up to date with the steps made since."""

from collections.abc import Iterator, Sequence

from agent_tui.compaction.curation.answer import KeepChoice
from agent_tui.compaction.ledger.files import normalise_path
from agent_tui.compaction.sections.commands import is_commit
from agent_tui.compaction.sections.history import Done, read_history
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
    "{which} older than the notes, which say what became of that work. The files above are as they "
    "are after all messages."
)
_BEFORE = "(before the newest {steps})"
_MOST_NAMED = 6
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
    ids = [entry.id for entry in path]
    at = ids.index(choice.through) + 1 if choice.through in ids else len(ids)
    steps = [event for event in read_history(path[at:]) if isinstance(event, Done)]
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


def older_than_notes(choice: KeepChoice, path: Sequence[Entry]) -> str:
    """The block that says which of the messages behind a summary are older than its notes.

    They begin before the notes end, and would read like new work.

    Args:
        choice: The model's answer.
        path: Entries from the root to the leaf.
    """
    ids = [entry.id for entry in path]
    at = ids.index(choice.through) + 1 if choice.through in ids else len(ids)
    before = [event for event in read_history(path[:at]) if isinstance(event, Done)]
    if not choice.notes or not before:
        return ""
    last = action_label(before[-1].output.action)
    is_all = not any(isinstance(event, Done) for event in read_history(path[at:]))
    which = "All of them are" if is_all else f"Those up to `{last}` are"
    return tag_blocks(("messages-below", [_OLDER.format(which=which)]))


def _changes(steps: Sequence[Done], folders: Sequence[str]) -> Iterator[str]:
    """What `steps` changed or checked, in words."""
    for step in steps:
        action, has_failed = step.output.action, step.output.has_failed
        failed = " (failed)" if has_failed else ""
        if action.kind in ("write", "edit") and not has_failed:
            yield f"changed {normalise_path(action.path, folders)}"
        elif is_commit(step.output) or is_test(action.command):
            yield f"ran `{one_line(action.command, _COMMAND_CHARS)}`{failed}"
