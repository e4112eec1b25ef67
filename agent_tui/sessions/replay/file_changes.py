"""Changes of files: what calls and commands changed, and how to restore it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agent_tui.messages import FileTouches, Stored, StoredPath, ToolResultMessage
from agent_tui.sessions.entries import CustomEntry, Entry, MessageEntry, custom_entry, custom_value

FILE_CHANGES = "file_changes"
"""The custom type of the entry."""

NOT_PULLED = "its content was not pulled; whoever has it: agent-tui sessions push --with-files"
"""Why the content of a file is missing."""


class FileVersion(Stored):
    """A file at one moment: the hash of its content and its mode; both empty if there is none.

    The content of a link is its target. ``is_kept``: the content is stored beside the session;
    ``why_not`` says why it is not.
    """

    digest: str = ""
    mode: int = 0
    is_kept: bool = False
    why_not: str = ""

    def is_as(self, other: "FileVersion") -> bool:
        """Whether both are the same on disk."""
        return (self.digest, self.mode) == (other.digest, other.mode)

    @property
    def can_be_had(self) -> bool:
        """Whether the file can be restored to this version."""
        return self.is_kept or not self.digest


class RecordedFileChange(Stored):
    """One change of one file, whose path is absolute."""

    path: StoredPath
    before: FileVersion
    after: FileVersion


class FileChanges(Stored):
    """Changes made together: by a call, a command, or a restore (``is_restore``).

    ``undoes`` is the id of the entry of the restore that this one undoes.
    """

    changes: tuple[RecordedFileChange, ...] = ()
    is_restore: bool = False
    undoes: str = ""


def file_changes_entry(changes: FileChanges) -> CustomEntry:
    """The entry that records `changes`."""
    return custom_entry(FILE_CHANGES, changes)


def is_file_changes(entry: Entry) -> bool:
    """Whether `entry` records changes of files."""
    return isinstance(entry, CustomEntry) and entry.custom_type == FILE_CHANGES


def file_changes_in(entry: Entry) -> FileChanges | None:
    """The changes in `entry`; None for any other entry or an unreadable one."""
    return custom_value(entry, FILE_CHANGES, FileChanges)


def changes_here(entry: Entry) -> FileChanges | None:
    """The changes in `entry` if they were made in this clone; None for any other entry.

    What others pushed never decides which files are written.
    """
    return file_changes_in(entry) if entry.pulled_from is None else None


@dataclass(frozen=True, slots=True)
class Restore:
    """One file to restore.

    Attributes:
        path: Its absolute path.
        present: Its present version.
        wanted: The version to restore.
    """

    path: str
    present: FileVersion
    wanted: FileVersion


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The effect of going back on files.

    Attributes:
        restores: Files to restore.
        left: Files that stay changed, and why.
        undoes: The id of the entry of the restore that it undoes; empty if it undoes none.
    """

    restores: tuple[Restore, ...] = ()
    left: tuple[tuple[str, str], ...] = ()
    undoes: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do or report."""
        return not self.restores and not self.left


SOMEBODY_ELSE = "changed outside this session"
CHANGED_THERE = "changed in another clone, and pulled from {name}"
NOT_KEPT = "its content was not saved"

ReadVersion = Callable[[str], FileVersion]


def plan_restore(written: Sequence[Entry], entry_id: str | None, now: ReadVersion) -> RestorePlan:
    """The plan to restore files to their state when `entry_id` was the newest entry.

    Changes reach the disk in the order in which entries were written, on whatever branch. So each
    file is restored to before its first change after that entry. A file that is not as the session
    left it was changed by somebody else, and stays. So does what changed in another clone.

    Args:
        written: All entries of the session, in the order they were written.
        entry_id: The entry; None for before all of them. The message itself if its turn is undone:
            what it follows may be far older, if the conversation went back before it was sent.
        now: Reads a file's version.
    """
    ids = [entry.id for entry in written]
    since = written[ids.index(entry_id) + 1 :] if entry_id in ids else written
    targets: dict[str, FileVersion] = {}
    for recorded in filter(None, map(changes_here, since)):
        for change in recorded.changes:
            targets.setdefault(change.path, change.before)
    plan = _plan(targets, _last_known(written), now)
    left = tuple((path, _who_changed(path, written, now) or why) for path, why in plan.left)
    there = tuple(_left_there(since, entry_id, targets, now))
    return RestorePlan(plan.restores, (*left, *there))


def plan_taking_back(written: Sequence[Entry], now: ReadVersion) -> RestorePlan:
    """The plan to undo the newest restore that is not undone yet; empty if there is none.

    Only restores after all other changes count, and those before a message only until one of
    them is undone. A restore of which nothing can be undone is passed over.

    Args:
        written: All entries of the session, in the order they were written.
        now: Reads a file's version.
    """
    known, first = _last_known(written), RestorePlan()
    for entry_id, changes in _open_restores(written, now):
        plan = _plan({change.path: change.before for change in changes}, known, now)
        if plan.restores:
            return replace(plan, undoes=entry_id)
        first = plan if first.is_empty else first
    return first


def restore_to_finish(written: Sequence[Entry], now: ReadVersion) -> RestorePlan:
    """The part of the newest restore that the program's end interrupted."""
    newest = next(filter(None, map(changes_here, reversed(written))), None)
    if newest is None or not newest.is_restore:
        return RestorePlan()
    undone = [change for change in newest.changes if now(change.path).is_as(change.before)]
    targets = {change.path: change.after for change in undone}
    return replace(_plan(targets, _last_known(written), now), undoes=newest.undoes)


def _open_restores(
    written: Sequence[Entry], now: ReadVersion
) -> Iterator[tuple[str, Sequence[RecordedFileChange]]]:
    """The restores that are not undone: the ids of their entries and the changes, newest first."""
    undone: dict[str, set[str]] = {}
    for entry in reversed(written):
        recorded = changes_here(entry)
        if recorded is None:
            if undone and isinstance(entry, MessageEntry) and entry.pulled_from is None:
                return
            continue
        if not recorded.is_restore:
            return
        if recorded.undoes:
            # The program may have ended before it wrote the files of the newest one.
            done = {
                change.path
                for change in recorded.changes
                if undone or not now(change.path).is_as(change.before)
            }
            undone.setdefault(recorded.undoes, set()).update(done)
            continue
        gone = undone.get(entry.id, set())
        if left := [change for change in recorded.changes if change.path not in gone]:
            yield entry.id, left


def _plan(
    targets: dict[str, FileVersion], known: dict[str, tuple[FileVersion, ...]], now: ReadVersion
) -> RestorePlan:
    restores: list[Restore] = []
    left: list[tuple[str, str]] = []
    for path, wanted in targets.items():
        present = now(path)
        if present.is_as(wanted):
            continue
        if not any(present.is_as(version) for version in known[path]):
            left.append((path, SOMEBODY_ELSE))
        elif not wanted.can_be_had:
            left.append((path, wanted.why_not or NOT_KEPT))
        else:
            restores.append(Restore(path, present, wanted))
    return RestorePlan(tuple(restores), tuple(left))


def _last_known(written: Iterable[Entry]) -> dict[str, tuple[FileVersion, ...]]:
    """How the session last left each file; two versions if it may have ended in between."""
    known: dict[str, tuple[FileVersion, ...]] = {}
    for entry in written:
        found = changes_here(entry)
        for change in found.changes if found is not None else ():
            ways = (change.after, change.before) if found and found.is_restore else (change.after,)
            known[change.path] = ways
    return known


def _who_changed(path: str, written: Sequence[Entry], now: ReadVersion) -> str:
    """Says that somebody's pulled change left the file at `path` as it is now; else empty."""
    present = now(path)
    for entry in reversed(written):
        recorded = file_changes_in(entry) if entry.pulled_from else None
        for change in recorded.changes if recorded is not None else ():
            if change.path == path and change.after.is_as(present):
                return CHANGED_THERE.format(name=entry.pulled_from)
    return ""


def _left_there(
    since: Sequence[Entry], entry_id: str | None, here: Collection[str], now: ReadVersion
) -> Iterable[tuple[str, str]]:
    """Files that others changed below `entry_id`, and not only here, with why they stay."""
    below, before = {entry_id}, dict[str, tuple[FileVersion, str]]()
    for entry in since:
        if entry.parent_id not in below:
            continue
        below.add(entry.id)
        recorded = file_changes_in(entry) if entry.pulled_from else None
        for change in recorded.changes if recorded is not None else ():
            before.setdefault(change.path, (change.before, entry.pulled_from or ""))
    for path, (version, name) in before.items():
        if path not in here and not now(path).is_as(version):
            yield path, CHANGED_THERE.format(name=name)


COMMAND_CHANGES = "command_changes"
"""The custom type of the entry."""


class CommandChanges(Stored):
    """The ``files`` changed by the command whose result is entry ``target_id``."""

    target_id: str
    files: FileTouches


def changes_entry(target_id: str, files: FileTouches) -> CustomEntry:
    """The entry that records the `files` changed by the command with the result `target_id`."""
    return custom_entry(COMMAND_CHANGES, CommandChanges(target_id=target_id, files=files))


def result_changed(entry: Entry) -> str:
    """The id of the result whose changes `entry` records; empty for any other entry."""
    changes = _changes_in(entry)
    return changes.target_id if changes is not None else ""


def complete_result(entry: Entry, by_id: Mapping[str, Entry]) -> MessageEntry | None:
    """The result in `by_id` whose changes `entry` records, with them; None if there is none.

    What was pulled completes no result of this clone.
    """
    changes = _changes_in(entry)
    recorded = by_id.get(changes.target_id) if changes is not None else None
    if changes is None or (entry.pulled_from and recorded and recorded.pulled_from is None):
        return None
    match recorded:
        case MessageEntry(message=ToolResultMessage() as result):
            details = result.details if isinstance(result.details, dict) else {}
            files = changes.files.model_dump(mode="json", by_alias=True, exclude_defaults=True)
            completed = result.model_copy(update={"details": {**details, "files": files}})
            return recorded.model_copy(update={"message": completed})
        case _:
            return None


def _changes_in(entry: Entry) -> CommandChanges | None:
    return custom_value(entry, COMMAND_CHANGES, CommandChanges)
