"""Small conversations, and the events that the sections read off them."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_tui.compaction.sections.file_states import FileReader, FileState
from agent_tui.compaction.sections.history import HistoryEvent, read_history
from tests.support.talk import Talk

FOLDERS = ("/project",)


def begun(text: str = "Please fix the parser.") -> Talk:
    talk = Talk()
    talk.user(text)
    return talk


def run(talk: Talk, command: str, output: str = "", exit_code: int = 0) -> None:
    """A command that the model ran; it failed where its exit code says so."""
    talk.tool(
        "bash", {"command": command}, output, exit_code=exit_code, is_error=exit_code not in (0,)
    )


def ran(*commands: tuple[str, str, int]) -> tuple[HistoryEvent, ...]:
    """The events of commands with their outputs and exit codes."""
    talk = begun()
    for command, output, exit_code in commands:
        run(talk, command, output, exit_code)
    return read_history(talk.path)


def called(*calls: tuple[str, Mapping[str, Any], str]) -> tuple[HistoryEvent, ...]:
    """The events of calls of tools that went well: name, arguments, output."""
    talk = begun()
    for name, arguments, output in calls:
        talk.tool(name, dict(arguments), output)
    return read_history(talk.path)


def replied(*texts: str) -> tuple[HistoryEvent, ...]:
    """The events of replies, each to a message of the person's."""
    talk = Talk()
    for number, text in enumerate(texts):
        talk.user(f"turn {number}")
        talk.reply(text)
    return read_history(talk.path)


def files_after(*calls: tuple[str, Mapping[str, Any], str]) -> list[FileState]:
    """The files after calls that went well, the one touched last first."""
    return FileReader(FOLDERS).read(called(*calls))


def file_after(*calls: tuple[str, Mapping[str, Any], str]) -> FileState:
    """The only file that calls touched."""
    (file,) = files_after(*calls)
    return file


def numbered(lines: Sequence[str], first: int = 1) -> str:
    """Lines as tools show them, each behind its number."""
    return "".join(f"{number:6d}\t{line}\n" for number, line in enumerate(lines, first))
