"""Finding the sessions that other agents keep on this machine; nothing of theirs is written."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from pydantic import JsonValue

from agent_tui.messages import JsonObject
from agent_tui.sessions.importers.claude_tree import is_of_the_program
from agent_tui.sessions.importers.codex_items import (
    codex_item,
    folder_in,
    is_notice,
    is_preamble,
)
from agent_tui.sessions.importers.fields import as_list, as_object, text_at
from agent_tui.sessions.importers.json_files import read_json
from agent_tui.sessions.listing.summary import one_line

ForeignAgent: TypeAlias = Literal["pi", "claude", "codex"]

FOREIGN_AGENTS: Final[tuple[ForeignAgent, ...]] = ("pi", "claude", "codex")
"""The agents whose sessions are looked for."""

_HEAD_BYTES = 256 * 1024
"""How far into a file the search for its first prompt goes: Codex begins with long rules."""

_HEAD_LINES = 60
_SIDE_FILES = "agent-"
"""How Claude Code's files of subagents begin."""


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A session of another agent, as far as the beginning of its file tells.

    `cwd` is the empty path where the file names none. `title` is its name, else the first
    prompt, one line of at most 200 characters.
    """

    path: Path
    agent: ForeignAgent
    cwd: Path
    title: str
    modified: datetime
    size_bytes: int


@dataclass(slots=True)
class _Head:
    """What is known of a file so far; `prompt` is asked for last."""

    is_session: bool = False
    cwd: str = ""
    name: str = ""
    prompt: str = ""

    @property
    def is_whole(self) -> bool:
        return bool(self.is_session and self.cwd and self.prompt)


def foreign_sessions(
    home: Path,
    environ: Mapping[str, str],
    agents: Sequence[ForeignAgent] = FOREIGN_AGENTS,
) -> list[ForeignFile]:
    """The sessions of other agents, newest first. Only the head of each file is read.

    Files that cannot be read or hold no session are passed over, and so are those of Claude
    Code's subagents.

    Args:
        home: The person's home folder.
        environ: For the variables with which the agents are told another folder.
        agents: Whose sessions.
    """
    found = [
        file
        for agent in agents
        for path in _FINDERS[agent](home, environ)
        if (file := _looked_at(path, agent)) is not None
    ]
    return sorted(found, key=lambda file: (file.modified, str(file.path)), reverse=True)


def _pi_files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    folder = _folder(environ.get("PI_CODING_AGENT_DIR", ""), ".pi/agent", home)
    return folder.glob("sessions/*/*.jsonl")


def _claude_files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    folder = _folder(environ.get("CLAUDE_CONFIG_DIR", ""), ".claude", home)
    files = folder.glob("projects/*/*.jsonl")
    return (file for file in files if not file.name.startswith(_SIDE_FILES))


def _codex_files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    folder = _folder(environ.get("CODEX_HOME", ""), ".codex", home)
    yield from folder.glob("sessions/*/*/*/rollout-*.jsonl")
    yield from folder.glob("sessions/rollout-*.jsonl")


_FINDERS: Final[Mapping[ForeignAgent, Callable[[Path, Mapping[str, str]], Iterator[Path]]]] = (
    MappingProxyType({"pi": _pi_files, "claude": _claude_files, "codex": _codex_files})
)


def _folder(named: str, usual: str, home: Path) -> Path:
    """The folder a variable names, else the usual one; both from `home` where they begin there."""
    return home / (named.removeprefix("~/") or usual)


def _looked_at(path: Path, agent: ForeignAgent) -> ForeignFile | None:
    head = _Head()
    take = _TAKERS[agent]
    try:
        status = path.stat()
        for number, line in _head_lines(path):
            take(head, number, line)
            if head.is_whole:
                break
    except OSError:
        return None
    if not head.is_session:
        return None
    return ForeignFile(
        path=path,
        agent=agent,
        cwd=Path(head.cwd),
        title=one_line(head.name or head.prompt),
        modified=datetime.fromtimestamp(status.st_mtime, UTC),
        size_bytes=status.st_size,
    )


def _head_lines(path: Path) -> Iterator[tuple[int, JsonObject]]:
    """The first lines that are JSON objects and whole within the bytes that are looked at."""
    room = _HEAD_BYTES
    with path.open("rb") as file:
        for number in range(1, _HEAD_LINES + 1):
            line = file.readline(room)
            room -= len(line)
            if not line or (not line.endswith(b"\n") and room <= 0):
                return
            try:
                value = read_json(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                yield number, value


def _take_pi(head: _Head, number: int, line: JsonObject) -> None:
    match text_at(line, "type"):
        case "session":
            head.is_session = True
            head.cwd = text_at(line, "cwd")
        case "session_info":
            head.name = text_at(line, "name") or head.name
        case "message":
            message = as_object(line.get("message"))
            if message.get("role") == "user":
                head.prompt = head.prompt or _text(message.get("content"))
        case _:
            pass


def _take_claude(head: _Head, number: int, line: JsonObject) -> None:
    head.name = text_at(line, "customTitle", "aiTitle") or head.name
    if line.get("isSidechain") is True or line.get("type") not in ("user", "assistant"):
        return
    head.is_session = True
    head.cwd = head.cwd or text_at(line, "cwd")
    text = _text(as_object(line.get("message")).get("content"))
    is_said = line.get("type") == "user" and line.get("isMeta") is not True
    if is_said and not is_of_the_program(text):
        head.prompt = head.prompt or text


def _take_codex(head: _Head, number: int, line: JsonObject) -> None:
    item = codex_item(number, line)
    if item is None:
        return
    head.is_session = True
    if item.kind in ("session_meta", "turn_context"):
        head.cwd = head.cwd or text_at(item.payload, "cwd")
    elif item.payload.get("type") == "message" and item.payload.get("role") == "user":
        text = _text(item.payload.get("content"))
        head.cwd = head.cwd or folder_in(text)
        if not (is_preamble(text) or is_notice(text)):
            head.prompt = head.prompt or text


_TAKERS: Final[Mapping[ForeignAgent, Callable[[_Head, int, JsonObject], None]]] = MappingProxyType(
    {"pi": _take_pi, "claude": _take_claude, "codex": _take_codex}
)


def _text(content: JsonValue) -> str:
    if isinstance(content, str):
        return content
    texts = (text_at(as_object(part), "text") for part in as_list(content))
    return " ".join(text for text in texts if text)
