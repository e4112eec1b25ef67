"""Commands about sessions: leave one, open one, name it, write it to a file."""

from collections.abc import Sequence

from agent_tui.agent.export_file import export_target, write_export
from agent_tui.agent.mentions import without_attachments
from agent_tui.agent.session_manager import OpenMode
from agent_tui.errors import AgentTuiError
from agent_tui.messages import AssistantMessage, UserMessage
from agent_tui.plain.command_table import command
from agent_tui.plain.counted import counted
from agent_tui.plain.host import PlainHost
from agent_tui.plain.narrator import ME
from agent_tui.plain.trusting import ask_about_workspace
from agent_tui.sessions.entries import Entry, MessageEntry
from agent_tui.sessions.file.status import SessionStatus
from agent_tui.sessions.listing.summary import SessionSummary, one_line

_MOST_LISTED = 20
_TITLE_CHARS = 80


@command()
def new(host: PlainHost, _argument: str) -> None:
    """Begin an empty session; this one stays as it is."""
    host.show(host.agent.wait(host.runtime.sessions.start_new()))
    host.refresh_usage()


@command()
def clear(host: PlainHost, argument: str) -> None:
    """Begin an empty session; /resume brings this one back."""
    new.run(host, argument)


@command("[id or name]", aliases=("sessions",))
def resume(host: PlainHost, argument: str) -> None:
    """Go on with an earlier session of this folder, chosen from a list."""
    ref: int | str | None = argument
    if not argument:
        runtime = host.runtime
        sessions = [
            found
            for found in runtime.services.store.list(runtime.conversation.cwd)
            if found.id != runtime.conversation.log.header.id
        ][:_MOST_LISTED]
        if not sessions:
            host.say("There is no other session of this folder.")
            return
        if len(sessions) == _MOST_LISTED:
            host.say(f"The newest {_MOST_LISTED}; any other opens by its id or name.")
        ref = host.asker.numbered("a session's id or name", [session_row(s) for s in sessions])
        if isinstance(ref, int):
            ref = str(sessions[ref].path)
    if ref:
        open_session(host, str(ref))


def session_row(found: SessionSummary) -> str:
    """A session in one line."""
    title = one_line(found.name or found.first_prompt or "no message yet", _TITLE_CHARS)
    when = found.modified.astimezone().strftime("%d %B %Y %H:%M")
    return f"{title}. {when}, {counted(found.message_count, 'message')}."


def open_session(host: PlainHost, ref: str, *, keep_model: bool = False) -> None:
    """Go on with the session `ref` means, once what stands in the way was asked.

    Raises:
        AgentTuiError: It cannot be opened.
    """
    runtime = host.runtime
    look = host.agent.wait(runtime.sessions.status(ref))
    if look.owner_pid is not None:
        host.say("This session is open in another agent-tui; only one can write to it.")
        prompt = "r look at it read-only, f go on in a copy, n leave it: "
        choices: dict[str, OpenMode | None] = {"r": "read-only", "f": "fork", "n": None}
        mode, is_here = host.asker.letter(prompt, choices), not look.has_folder
    else:
        mode, is_here = _mode_and_place(host, look)
    if mode is None:
        return
    opening = runtime.sessions.open(str(look.path), keep_model=keep_model, mode=mode, here=is_here)
    host.show(host.agent.wait(opening))
    host.refresh_usage()
    host.lines.lines(
        opened_lines(runtime.conversation.log.name, runtime.conversation.log.path_entries())
    )
    ask_about_workspace(host)


def _mode_and_place(host: PlainHost, look: SessionStatus) -> tuple[OpenMode | None, bool]:
    """How to go on, None for not at all; and whether in the present folder."""
    if look.has_folder:
        return "write", False
    host.say(f"This session worked in {look.cwd}, which does not exist now.")
    prompt = (
        f"c continue it in {host.runtime.conversation.cwd}, f go on there in a copy, n leave it: "
    )
    choices: dict[str, OpenMode | None] = {"c": "write", "f": "fork", "n": None}
    return host.asker.letter(prompt, choices), True


def opened_lines(name: str, entries: Sequence[Entry]) -> list[str]:
    """What was opened, and what was said last in it."""
    messages = [entry.message for entry in entries if isinstance(entry, MessageEntry)]
    called = f" {one_line(name)}" if name else ""
    lines = [f"Session{called} is open, {counted(len(messages), 'message')}. Last in it:"]
    asked = next((m.text for m in reversed(messages) if isinstance(m, UserMessage)), "")
    replies = (m.text for m in reversed(messages) if isinstance(m, AssistantMessage) and m.text)
    if asked:
        lines.append(f"You: {without_attachments(asked)}")
    if reply := next(replies, ""):
        lines.append(f"{ME} {reply}")
    return lines


@command("<name>")
def name(host: PlainHost, argument: str) -> None:
    """Name this session."""
    runtime = host.runtime
    if not argument:
        present = runtime.conversation.log.name
        said = f"This session is called {present}." if present else "This session has no name."
        host.say(f"{said} Use /name and a name.")
        return
    wanted = one_line(argument)
    host.show(host.agent.call(lambda: runtime.sessions.rename(wanted)))
    host.say(f"Session named: {wanted}")


@command()
def fork(host: PlainHost, _argument: str) -> None:
    """Go on in a copy of this session; this one stays as it is."""
    host.show(host.agent.wait(host.runtime.branches.fork()))


@command("[md|html|jsonl] [path]")
def export(host: PlainHost, argument: str) -> None:
    """Write the conversation to a file."""
    log = host.runtime.conversation.log
    if not log.entries:
        host.say("There is nothing to export yet.")
        return
    kind, path = export_target(argument, log, host.runtime.conversation.cwd)
    try:
        write_export(kind, path, log)
    except FileExistsError as error:
        raise AgentTuiError(f"{path} exists already.", "Name another file.") from error
    except OSError as error:
        raise AgentTuiError(f"{path} cannot be written: {error.strerror}.") from error
    host.say(f"Exported to {path}")
