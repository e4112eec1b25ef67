"""What is told at the end of a turn: how long it took, and which files changed."""

from collections.abc import Iterable
from pathlib import Path

from agent_tui.messages import ToolResultMessage, TurnFacts
from agent_tui.sessions.entries import CustomEntry, Entry, MessageEntry, custom_value
from agent_tui.sessions.replay.file_changes import FileVersion, file_changes_in

TURN_FACTS = "turn_facts"
"""The custom type of the entry."""

_MOST_NAMED = 20
"""Of the changed files so many are named; a command can change thousands."""

_TOLD_MS = 5_000
_TOLD_WITH_TOOLS_MS = 1_000


def turn_facts(entries: Iterable[Entry], elapsed_ms: int, cwd: Path) -> TurnFacts | None:
    """What is told of a turn; None for one that was short and changed nothing.

    Args:
        entries: Those that the turn added.
        elapsed_ms: How long it took.
        cwd: The workspace.
    """
    results: list[ToolResultMessage] = []
    versions: dict[str, tuple[FileVersion, FileVersion]] = {}
    touched: dict[str, None] = {}
    for entry in entries:
        match entry:
            case MessageEntry(message=ToolResultMessage() as result):
                results.append(result)
                files = result.tool_details.files
                touched.update(dict.fromkeys((*files.written, *files.edited)))
            case _ if (found := file_changes_in(entry)) is not None:
                for change in found.changes:
                    before, _ = versions.get(change.path, (change.before, change.after))
                    versions[change.path] = (before, change.after)
                    touched[change.path] = None
            case _:
                pass
    unchanged = {path for path, (before, after) in versions.items() if before.is_as(after)}
    changed = [_shown(path, cwd) for path in touched if path not in unchanged]
    told_ms = _TOLD_WITH_TOOLS_MS if results else _TOLD_MS
    if not changed and elapsed_ms < told_ms:
        return None
    named = tuple(changed[:_MOST_NAMED])
    return TurnFacts(elapsed_ms=elapsed_ms, changed=named, more=len(changed) - len(named))


def turn_facts_entry(facts: TurnFacts) -> CustomEntry:
    """The entry that records `facts` at the end of their turn."""
    data = facts.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return CustomEntry(custom_type=TURN_FACTS, data=data)


def turn_facts_in(entry: Entry) -> TurnFacts | None:
    """What `entry` records; None for any other entry and one that cannot be read."""
    return custom_value(entry, TURN_FACTS, TurnFacts)


def _shown(path: str, cwd: Path) -> str:
    place = Path(path)
    return place.relative_to(cwd).as_posix() if place.is_relative_to(cwd) else path
