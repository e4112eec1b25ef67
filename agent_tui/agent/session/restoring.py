"""Restore files to their state at an earlier place of the conversation."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.agent.conversation import Conversation
from agent_tui.agent.session.manager import SessionManager
from agent_tui.events import AgentEvent, Notice
from agent_tui.safe_paths import path_from, real_path
from agent_tui.sessions.entries import CustomMessageEntry, MessageEntry
from agent_tui.sessions.lineage.joined import ContinuationPoint
from agent_tui.sessions.replay.file_changes import (
    FileChanges,
    FileVersion,
    RecordedFileChange,
    Restore,
    RestorePlan,
    changes_here,
    file_changes_entry,
    plan_restore,
    plan_taking_back,
    restore_to_finish,
)
from agent_tui.sessions.replay.notes import note_to_model
from agent_tui.tools.files.diffs import unified_diff
from agent_tui.tools.files.versions import make_so, text_of_version, version_of

_NOT_UNDOABLE = "its current content could not be saved"
_REDOES = " /undo offers to redo the file changes."
_UNDOES_MORE = " /undo offers to undo the restore before it."
_CHANGED_MEANWHILE = "it has changed since"
_NAMED = 10


@dataclass(frozen=True, slots=True)
class Difference:
    """What restoring one file changes in it. `diff` is empty if it cannot be shown."""

    path: Path
    diff: str
    what: str


class FileRestorer:
    """Restores files for the conversation of `sessions`."""

    def __init__(self, sessions: SessionManager) -> None:
        self._sessions = sessions

    async def plan_for(self, place: ContinuationPoint) -> RestorePlan:
        """The plan to restore files to their state at `place`; changes nothing.

        At a user's message, that is their state when it was sent.
        """
        at = place.leaf_id if place.said is None else place.entry.id
        return await asyncio.to_thread(lambda: plan_restore(place.all_entries(), at, self._now))

    async def plan_taking_back(self) -> RestorePlan:
        """The plan to undo the newest restore of files that is not undone yet."""
        written = tuple(self._sessions.conversation.log.entries)
        return await asyncio.to_thread(plan_taking_back, written, self._now)

    @property
    def is_said_since_restore(self) -> bool:
        """Whether a message follows the newest record of file changes."""
        for entry in reversed(self._sessions.conversation.log.entries):
            if changes_here(entry) is not None:
                return False
            if isinstance(entry, MessageEntry) and entry.pulled_from is None:
                return True
        return False

    async def plan_going_on(self) -> RestorePlan:
        """The plan to finish a restore that the program's end interrupted."""
        written = tuple(self._sessions.conversation.log.entries)
        return await asyncio.to_thread(restore_to_finish, written, self._now)

    async def differences(self, plan: RestorePlan) -> tuple[Difference, ...]:
        """What `plan` changes, to show to the user."""
        conversation = self._sessions.conversation
        return await asyncio.to_thread(
            lambda: tuple(_difference(conversation, restore) for restore in plan.restores)
        )

    def notices_of_left(self, plan: RestorePlan) -> tuple[AgentEvent, ...]:
        """Notices about the files that `plan` leaves as they are."""
        return tuple(_notices_of_left(plan.left, self._sessions.conversation.cwd))

    async def carry_out(
        self,
        plan: RestorePlan,
        *,
        tells_model: bool = False,
        told: str = "",
        shown: str = "",
        is_beside_turn: bool = False,
    ) -> tuple[AgentEvent, ...]:
        """Restore the files of `plan`, each in one step or not at all.

        The present contents are first recorded in the session, so that the restore can be undone
        even if the program ends in the middle.

        Args:
            plan: What to do; files that changed meanwhile stay.
            tells_model: Whether to tell the model, because the conversation stays where it is.
            told: The message to the model; by default, one that names the files.
            shown: What the user reads once it is done; by default, what became of which files.
            is_beside_turn: Whether a turn runs, which is between its calls. The model must be told
                in another way then: its calls and their results stay together.

        Raises:
            AgentTuiError: Something runs, or the session cannot be written.
        """
        if not is_beside_turn:
            self._sessions.require_idle()
            self._sessions.prepare_to_write()
        conversation = self._sessions.conversation
        ready, left = await asyncio.to_thread(_keep_contents, conversation, plan.restores)
        if ready:
            conversation.log.append(file_changes_entry(_record_of(ready, plan.undoes)))
            conversation.log.sync()
        done, failed = await asyncio.to_thread(_write_files, conversation, ready)
        if tells_model and done:
            not_done = (*plan.left, *left, *failed)
            is_redo = bool(plan.undoes)
            note = _note_to_model(done, not_done, conversation.cwd, told, is_redo=is_redo)
            conversation.log.append(note)
        more = _REDOES
        if plan.undoes:
            more = _UNDOES_MORE if (await self.plan_taking_back()).restores else ""
        redone = "Redone, files only: " if plan.undoes else ""
        shown = shown or f"{redone}{_done_words(done, conversation.cwd)}"
        said = (Notice("info", f"{shown}{more}"),) if done else ()
        return (*said, *_notices_of_left((*plan.left, *left, *failed), conversation.cwd))

    def _now(self, path: str) -> FileVersion:
        return _present(self._sessions.conversation, path)


def _present(conversation: Conversation, path: str) -> FileVersion:
    return version_of(Path(path), open_texts=conversation.services.open_texts)


def _keep_contents(
    conversation: Conversation, restores: Sequence[Restore]
) -> tuple[list[Restore], list[tuple[str, str]]]:
    """The restores that can be undone again, and why the others cannot."""
    ready: list[Restore] = []
    left: list[tuple[str, str]] = []
    why_held = conversation.permissions.why_attaching_asks
    kept, open_texts = conversation.kept_files, conversation.services.open_texts
    for restore in restores:
        if why := conversation.permissions.why_not_restored(Path(restore.path)):
            left.append((restore.path, why))
            continue
        present = version_of(Path(restore.path), kept, why_held, open_texts)
        if not present.is_as(restore.present):
            left.append((restore.path, _CHANGED_MEANWHILE))
        elif not present.can_be_had:
            left.append((restore.path, present.why_not or _NOT_UNDOABLE))
        else:
            ready.append(Restore(restore.path, present, restore.wanted))
    return ready, left


def _record_of(restores: Sequence[Restore], undoes: str) -> FileChanges:
    changes = (RecordedFileChange(path=r.path, before=r.present, after=r.wanted) for r in restores)
    return FileChanges(changes=tuple(changes), is_restore=True, undoes=undoes)


def _write_files(
    conversation: Conversation, restores: Sequence[Restore]
) -> tuple[list[Restore], list[tuple[str, str]]]:
    done: list[Restore] = []
    failed: list[tuple[str, str]] = []
    for restore in restores:
        path = Path(restore.path)
        try:
            if not _present(conversation, restore.path).is_as(restore.present):
                failed.append((restore.path, _CHANGED_MEANWHILE))
                continue
            make_so(path, restore.wanted, conversation.kept_files)
            done.append(restore)
        except OSError as error:
            failed.append((restore.path, error.strerror or str(error)))
    return done, failed


def _note_to_model(
    done: Sequence[Restore],
    left: Sequence[tuple[str, str]],
    cwd: Path,
    told: str,
    *,
    is_redo: bool,
) -> CustomMessageEntry:
    """What the model is told: which files went back or forth, and which stayed as they are."""
    names = {restore.path: display_path(restore.path, cwd) for restore in done}
    gone = ", ".join(names[one.path] for one in done if not one.wanted.digest)
    back = ", ".join(names[one.path] for one in done if one.wanted.digest)
    act = "redid the undone changes in" if is_redo else "restored earlier versions of"
    restored = f"The user {act} these files: {back}. Read them again." if back else ""
    deleted = f"The user deleted these files: {gone}." if gone else ""
    stayed = ", ".join(f"{display_path(path, cwd)} ({why})" for path, why in left[:_NAMED])
    stay = f"These stayed as they are: {stayed}." if stayed else ""
    usual = f"({' '.join(filter(None, (restored, deleted, stay)))})"
    return note_to_model(told or usual, [*names.values()])


def _done_words(done: Sequence[Restore], cwd: Path) -> str:
    """What became of which files."""
    by_act: dict[str, list[str]] = {}
    for restore in done:
        is_there = bool(restore.present.digest)
        act = "deleted" if not restore.wanted.digest else "restored" if is_there else "put back"
        by_act.setdefault(act, []).append(restore.path)
    return " ".join(
        f"{len(paths)} file{'s' * (len(paths) != 1)} {act}: {display_paths(paths, cwd)}."
        for act, paths in by_act.items()
    )


def _notices_of_left(left: Sequence[tuple[str, str]], cwd: Path) -> Sequence[AgentEvent]:
    notices: list[AgentEvent] = []
    reasons: dict[str, list[str]] = {}
    for path, why in left:
        reasons.setdefault(why, []).append(path)
    for why, paths in reasons.items():
        was = "was" if len(paths) == 1 else "were"
        notices.append(Notice("warning", f"{display_paths(paths, cwd)} {was} not restored: {why}."))
    return notices


def display_paths(paths: Sequence[str], cwd: Path) -> str:
    """`paths` as shown to the user: the first few, and how many more."""
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return f"{', '.join(display_path(path, cwd) for path in paths[:_NAMED])}{more}"


def display_path(path: str, cwd: Path) -> str:
    """`path` as shown to the user: relative if it is below `cwd`."""
    return path_from(path, real_path(cwd))


def _difference(conversation: Conversation, restore: Restore) -> Difference:
    path = Path(restore.path)
    label = display_path(restore.path, conversation.cwd)
    if not restore.wanted.digest:
        what = "is deleted"
    elif not restore.present.digest:
        what = "is put back"
    else:
        what = ""
    present = text_of_version(restore.present, path)
    wanted = text_of_version(restore.wanted, conversation.kept_files)
    if present is None or wanted is None:
        return Difference(path, "", what or "is not text")
    diff = unified_diff(present, wanted, label)
    return Difference(path, diff.text, what or f"+{diff.added} -{diff.removed}")
