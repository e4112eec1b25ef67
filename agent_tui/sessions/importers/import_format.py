"""What an importer offers: reading one format, telling it, and finding what its agent keeps."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from agent_tui.messages import JsonObject
from agent_tui.sessions.importers.builder import ForeignSession


@dataclass(slots=True)
class SessionHead:
    """What is known of a file so far; `prompt` is the first one, and asked for last."""

    is_session: bool = False
    cwd: str = ""
    name: str = ""
    prompt: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether nothing further is looked for."""
        return bool(self.is_session and self.cwd and self.prompt)


@dataclass(frozen=True, slots=True)
class SessionFinder:
    """Where an agent keeps its sessions on this machine, and what a list shows of one.

    Attributes:
        agent: What people call the agent: ``Claude Code``.
        files: The files that may be sessions, by the person's home folder and environment.
        read_head: Takes a record, with the number of its line, into what is known of the file.
    """

    agent: str
    files: Callable[[Path, Mapping[str, str]], Iterator[Path]]
    read_head: Callable[[SessionHead, int, JsonObject], None]


def _is_never(_value: JsonValue) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ImportFormat:
    """One format of sessions.

    Attributes:
        name: What a person calls it by, after ``--from``.
        read: Reads a whole file; raises `SessionError` where it is none of this format.
        is_record: Whether a line with this number and value is found in this format alone.
        is_document: The same for a file that is one JSON value.
        finder: Finds those on this machine; None where the agent keeps none.
    """

    name: str
    read: Callable[[Path], ForeignSession]
    is_record: Callable[[int, JsonObject], bool]
    is_document: Callable[[JsonValue], bool] = _is_never
    finder: SessionFinder | None = None


def sessions_folder(named: str, usual: str, home: Path) -> Path:
    """The folder a variable names, else the usual one; both from `home` where they begin there."""
    return home / (named.removeprefix("~/") or usual)
