"""Notes that were written ahead, brought up to date with the steps made since."""

from collections.abc import Iterator, Sequence

from agent_tui.compaction.curation.answer import KeepChoice
from agent_tui.compaction.ledger.files import normalise_path
from agent_tui.compaction.sections.commands import is_commit
from agent_tui.compaction.sections.history import Done, read_history
from agent_tui.compaction.summary.templates import Template
from agent_tui.compaction.tiers.describe import action_label
from agent_tui.compaction.tiers.outputs import is_test
from agent_tui.compaction.transcript import escape_tags
from agent_tui.omissions import one_line
from agent_tui.sessions.entries import Entry

_END = (
    "(These notes end before the newest {steps}, which the messages at the end show; where the two "
    "differ, those hold.{done}{older})"
)
_OLDER = (
    "The messages below{through} are older than these notes, which say what became of that work."
)
_BEFORE = "(before the newest {steps})"
_MOST_NAMED = 6
_COMMAND_CHARS = 80


def notes_now(
    choice: KeepChoice, path: Sequence[Entry], template: Template, folders: Sequence[str]
) -> str:
    """The notes of `choice`, with a mark where they end, and without what is superseded.

    The newest messages below them begin before they end, and read like new work. What was in
    progress goes with a later commit; a line on the state goes if the tests that it
    names ran again, as the state of the work has the newest result.

    Args:
        choice: The model's answer.
        path: Entries from the root to the leaf.
        template: The form of the notes.
        folders: Paths of the working folder.
    """
    ids = [entry.id for entry in path]
    at = ids.index(choice.through) + 1 if choice.through in ids else len(ids)
    known = [event for event in read_history(path[:at]) if isinstance(event, Done)]
    steps = [event for event in read_history(path[at:]) if isinstance(event, Done)]
    bodies = {h: body for h, body in template.parse(choice.notes).items() if h}
    if not bodies:
        return choice.notes
    if not steps:
        older = f"({_OLDER.format(through='')})\n\n" if known else ""
        return f"{older}{choice.notes}"
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
    last = f", up to `{action_label(known[-1].output.action)}`," if known else ""
    older = f" {escape_tags(_OLDER.format(through=last))}" if known else ""
    end = _END.format(steps=count, done=since, older=older)
    return f"{end}\n\n{template.render(bodies)}"


def _changes(steps: Sequence[Done], folders: Sequence[str]) -> Iterator[str]:
    """What `steps` changed or checked, in words."""
    for step in steps:
        action, has_failed = step.output.action, step.output.has_failed
        failed = " (failed)" if has_failed else ""
        if action.kind in ("write", "edit") and not has_failed:
            yield f"changed {normalise_path(action.path, folders)}"
        elif is_commit(step.output) or is_test(action.command):
            yield f"ran `{one_line(action.command, _COMMAND_CHARS)}`{failed}"
