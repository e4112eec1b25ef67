"""The recorded sessions of a folder, and the places to cut them at."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.errors import SessionError
from agent_tui.messages import AssistantMessage, Message, UserMessage
from agent_tui.sessions.entries import CompactionEntry, Entry, MessageEntry
from tests.support.importers.formats import read_recorded

CALLS_AFTER = 60
_ENDINGS = (".jsonl", ".json", ".traj")


@dataclass(frozen=True)
class RealCompaction:
    """What the agent that wrote the file put in place of the history before `cut`."""

    cut: int
    summary: str
    kept_from: int


@dataclass(frozen=True)
class RecordedSession:
    """The whole conversation of one file, as if it had never been compacted."""

    name: str
    cwd: str
    entries: tuple[MessageEntry, ...]
    compactions: tuple[RealCompaction, ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of `entries`."""
        return tuple(entry.message for entry in self.entries)


def recorded_sessions(folders: Sequence[Path]) -> Iterator[RecordedSession]:
    """Every file below `folders` that can be read, in the order of their names."""
    for folder in folders:
        files = [folder] if folder.is_file() else sorted(folder.rglob("*"))
        for file in files:
            if file.is_file() and file.name.endswith(_ENDINGS):
                try:
                    session = read_recorded(file)
                except SessionError as error:
                    print(f"left out: {error.message}")
                    continue
                yield _whole(file, session.header.cwd or "/", session.entries)


def _whole(file: Path, cwd: str, entries: Sequence[Entry]) -> RecordedSession:
    kept: list[MessageEntry] = []
    position: dict[str, int] = {}
    compactions: list[RealCompaction] = []
    for entry in entries:
        position[entry.id] = len(kept)
        if isinstance(entry, CompactionEntry):
            first = position.get(entry.first_kept_entry_id, len(kept))
            compactions.append(RealCompaction(len(kept), entry.summary, first))
        elif isinstance(entry, MessageEntry):
            kept.append(entry)
    return RecordedSession(file.stem, cwd, tuple(kept), tuple(compactions))


def cuts(session: RecordedSession) -> list[int]:
    """Every tenth of the session after which 60 calls follow, and its real compactions."""
    messages = session.messages
    calls = [len(m.tool_calls) if isinstance(m, AssistantMessage) else 0 for m in messages]
    found = {compaction.cut for compaction in session.compactions if compaction.cut}
    for tenth in range(1, 10):
        at = len(messages) * tenth // 10
        while at < len(messages) and not isinstance(messages[at], UserMessage | AssistantMessage):
            at += 1
        if at and sum(calls[at:]) >= CALLS_AFTER:
            found.add(at)
    return sorted(found)
