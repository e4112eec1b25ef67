"""The changes a conversation made to files: each edit, and their combined result."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    FileTouches,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.safe_paths import follow_shown, path_from, real_path
from agent_tui.sessions.entries import Entry, MessageEntry
from agent_tui.sessions.replay.file_changes import complete_result
from agent_tui.tools.files.diffs import before_diff, diffs_by_file, unified_diff
from agent_tui.tools.files.opening import read_judged_file

_MOST_FILE_BYTES = 5_000_000


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One change to one file.

    Attributes:
        name: The file as the diff names it, else its full path.
        diff: The change; empty for a command, which leaves no diff.
        turn: Number of the user message that led to it; the first is 1.
        asked: That message.
        command: The command that changed it; empty for an edit.
    """

    name: str
    diff: str
    turn: int
    asked: str
    command: str = ""


def file_edits(entries: Sequence[Entry]) -> tuple[FileEdit, ...]:
    """The changes to files recorded in `entries` (oldest first), in order."""
    by_id = {entry.id: entry for entry in entries}
    completed = {
        result.id: result for e in entries if (result := complete_result(e, by_id)) is not None
    }
    edits: list[FileEdit] = []
    calls: dict[str, ToolCall] = {}
    turn, asked = 0, ""
    for entry in entries:
        match completed.get(entry.id, entry):
            case MessageEntry(message=UserMessage() as said):
                turn, asked = turn + 1, said.text
            case MessageEntry(message=AssistantMessage() as reply):
                calls.update((call.id, call) for call in reply.tool_calls)
            case MessageEntry(message=ToolResultMessage() as result):
                details = result.tool_details
                for part in diffs_by_file(details.diff or ""):
                    edits.append(FileEdit(part.name, part.text, turn, asked))
                call = calls.get(result.tool_call_id)
                command = str(call.arguments.get("command", "")) if call is not None else ""
                if command and not details.diff:
                    edits += _by_command(command, details.files, turn, asked)
            case MessageEntry(message=BashExecutionMessage(files=files) as ran) if files:
                edits += _by_command(ran.command, files, turn, asked)
            case _:
                pass
    return tuple(edits)


def _by_command(command: str, files: FileTouches, turn: int, asked: str) -> Iterable[FileEdit]:
    names = dict.fromkeys((*files.written, *files.edited))
    return (FileEdit(name, "", turn, asked, command) for name in names)


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file, and the combined result of its edits.

    Attributes:
        path: The path of the file.
        diff: From before the first edit to the current file; if unknown, the single edits in order.
        edits: The edits that make it up.
        is_whole: Whether `diff` spans from before the first edit until now.
    """

    path: Path
    diff: str
    edits: tuple[FileEdit, ...]
    is_whole: bool

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that changed it."""
        return tuple(dict.fromkeys(edit.command for edit in self.edits if edit.command))


def find_changed_files(edits: Iterable[FileEdit], cwd: Path) -> tuple[ChangedFile, ...]:
    """The files of `edits`, in the order of their first change. Reads them.

    Args:
        edits: In the order they were made.
        cwd: The folder the names are relative to.
    """
    by_path: dict[Path, list[FileEdit]] = {}
    root = real_path(cwd)
    for edit in edits:
        by_path.setdefault(follow_shown(root / edit.name), []).append(edit)
    return tuple(_combine_edits(path, made, root) for path, made in by_path.items())


def _combine_edits(path: Path, edits: Sequence[FileEdit], root: Path) -> ChangedFile:
    diffs = [edit.diff for edit in edits if edit.diff]
    before = after = _text_of(path)
    for diff in reversed(diffs):
        before = before_diff(before, diff) if before is not None else None
    if before is None or after is None:
        return ChangedFile(path, "".join(diffs), tuple(edits), is_whole=False)
    diff = unified_diff(before, after, path_from(path, root)).text
    return ChangedFile(path, diff, tuple(edits), is_whole=True)


def _text_of(path: Path) -> str | None:
    """The file's text with plain newlines; empty if it does not exist, None if it is not text.

    None for a large file too: a diff of it could not be read. None for one behind a link.
    """
    try:
        content = read_judged_file(path, _MOST_FILE_BYTES)
        if content is None:
            return None
        return content.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError):
        return None
