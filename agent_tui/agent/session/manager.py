"""The present session of a conversation: beginning, opening, forking and leaving sessions."""

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.agent.compaction.background import BackgroundSummary
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.guarded_part import part_itself
from agent_tui.agent.part import Part
from agent_tui.agent.prompt.fitted_prompt import PromptFitter
from agent_tui.agent.services import RuntimeServices
from agent_tui.agent.session.earlier import open_known
from agent_tui.agent.session.opening import (
    PERMISSION_MODE,
    FolderFiles,
    interruption_note,
    last_thinking_level,
    load_folder_files,
    missing_changes,
    mode_left_in,
    model_to_resume,
    new_log,
    open_conversation,
    prompt_fitter,
    pulled_notes,
    restore_note,
    working_folder,
)
from agent_tui.agent.turn.limit_wait import take_up_stand_in, wait_to_continue
from agent_tui.agent.turn.pending_approvals import close_walls
from agent_tui.config import PermissionMode
from agent_tui.errors import AgentTuiError, SessionError, SessionNotWritableError
from agent_tui.events import (
    AgentEvent,
    CompactionFinished,
    ModelChanged,
    Notice,
    SessionChanged,
    SessionChangeReason,
    TodosChanged,
    WentBack,
)
from agent_tui.messages import ThinkingLevel
from agent_tui.permissions.verdict import Permissions
from agent_tui.providers.base import ModelRef
from agent_tui.sessions.entries import CustomEntry, SessionInfoEntry
from agent_tui.sessions.file.kept_files import folder_of
from agent_tui.sessions.file.writer import SessionStatus, session_status
from agent_tui.sessions.importers.import_session import import_session
from agent_tui.sessions.lineage.chain import (
    KnownSession,
    PastSessions,
    is_of_another_program,
    read_known,
    snapshot,
)
from agent_tui.sessions.lineage.joined import (
    ContinuationPoint,
    JoinedTree,
    fork_session,
    join_trees,
)
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.partial_reply import store_partial_reply
from agent_tui.sessions.replay.file_changes import changes_here
from agent_tui.sessions.replay.notes import end_of_job_line
from agent_tui.tools.job_table import JobTable

OpenMode: TypeAlias = Literal["write", "read-only", "fork"]
"""How to open a session: to continue it, to read it, or to continue in a copy."""

TAKEN_OVER = "Imported from another agent: {count:,} entries. The original file is unchanged."
_IN_MEMORY = "Continuing in memory: from now on nothing is saved."
READ_ONLY = "This session is open read-only: you cannot add to it."
READ_ONLY_HINT = "/fork continues in a copy."
_WENT_BACK = "went_back"
"""Custom type of the entry that records the message the user was at when leaving."""
_LEFT_IN = "Permission mode: {mode}, as you left this session. /permissions changes it."
_LEFT_IN_FULL = (
    "You left this session in full mode. It opens in {mode}: /permissions full chooses full again."
)
_BACK_HERE = "You went back to this message. /tree shows what came after it."


@dataclass(frozen=True, slots=True)
class _Opened:
    """A session that was opened, the folder to work in, and notices about both.

    `left_in`: the permission mode it was left in; a file from elsewhere may name any.
    """

    log: SessionLog
    cwd: Path
    notices: tuple[Notice, ...]
    left_in: PermissionMode | None


class SessionManager:
    """Holds the present conversation and switches to other sessions.

    Attributes:
        conversation: The present one.
        parts: What features do in it.
    """

    def __init__(
        self,
        services: RuntimeServices,
        background: BackgroundSummary,
        past: PastSessions,
        is_busy: Callable[[], bool],
        make_parts: Callable[[], tuple[Part, ...]],
        *,
        model: ModelRef,
        cwd: Path,
        mode: PermissionMode,
    ) -> None:
        self._services = services
        self._background = background
        self._past = past
        self._is_busy = is_busy
        self._make_parts = make_parts
        self.parts = make_parts()
        self._is_branch_begun = False
        self._first_mode = mode
        self._jobs = JobTable()
        permissions, files = services.make_permissions(cwd, mode), load_folder_files(services, cwd)
        thinking = services.settings.thinking
        log = new_log(services, cwd, model, thinking)
        self.conversation = self._begin(log, cwd, model, thinking, permissions, files)

    def _begin(
        self,
        log: SessionLog,
        cwd: Path,
        model: ModelRef,
        thinking: ThinkingLevel,
        permissions: Permissions,
        files: FolderFiles,
    ) -> Conversation:
        services, fit = self._services, self._fitter(cwd, files)
        conversation = open_conversation(
            services, log, cwd, model, thinking, permissions, fit, self._jobs
        )
        conversation.context_files, conversation.withheld_files = files.in_force, files.withheld
        return conversation

    def _fitter(self, cwd: Path, files: FolderFiles) -> PromptFitter:
        return prompt_fitter(self._services, cwd, files.in_force, lambda: self.parts)

    def _renew_parts(self) -> None:
        """Make the parts of another session; each follows the one before."""
        before = {type(part): part for part in map(part_itself, self.parts)}
        self.parts = self._make_parts()
        for part in self.parts:
            if (earlier := before.get(type(part_itself(part)))) is not None:
                part.follow(earlier)

    async def start_new(self) -> tuple[AgentEvent, ...]:
        """Leave this session as it is and begin an empty one with the same model."""
        before = self.conversation
        log = new_log(self._services, before.cwd, before.model, before.thinking)
        changes = self._switch(log, before.cwd, before.model, before.thinking, "new")
        ended = await self._leave_jobs()
        return (*changes, *ended, *await self.conversation.refresh_usage())

    async def open(
        self,
        ref: str,
        *,
        keep_model: bool = False,
        mode: OpenMode = "write",
        here: bool = False,
    ) -> tuple[AgentEvent, ...]:
        """Open another session by path, id or name, and continue in its folder with its model.

        The context is not counted yet: that is the slowest step for a long session, and the screen
        must not show another session meanwhile.

        Args:
            ref: As for `SessionStore.open`.
            keep_model: Keep the present model instead of the session's.
            mode: Whether to continue the session, only read it, or continue in a copy; the last two
                also work while another process has it open.
            here: Work in the present folder even if the session's folder exists.

        Raises:
            SessionError: No such session, another process has it open, or work began meanwhile.
        """
        events = await self._open_and_switch(ref, keep_model, mode, here)
        unfinished = tuple(notice for part in self.parts for notice in part.opening_notices())
        if (wait := wait_to_continue(self.conversation)) is not None:
            unfinished = (Notice("info", f"The last turn is waiting. {wait.reason}"),)
        elif not unfinished and (note := interruption_note(self.conversation.log)):
            unfinished = (Notice("info", note),)
        if _was_left_further_back(self.conversation.log):
            unfinished = (*unfinished, Notice("info", _BACK_HERE))
        if note := await asyncio.to_thread(restore_note, self.conversation.log):
            unfinished = (*unfinished, Notice("warning", note))
        return (*events, *unfinished)

    async def _open_and_switch(
        self, ref: str, keep_model: bool, mode: OpenMode, here: bool
    ) -> tuple[AgentEvent, ...]:
        if await asyncio.to_thread(self._is_present, ref):
            if mode == "fork":
                return await self.fork_at(self.conversation.log.leaf_id)
            return (Notice("info", "This session is already open."),)
        opened = await asyncio.to_thread(self._open, ref, mode, here)
        log = opened.log
        self.require_still_idle(log)
        # A long session is 100,000 objects without cycles; each full garbage collection over them
        # would stop the program for 0.1 s or more.
        gc.freeze()
        present, model_note = self.conversation.model, ""
        model = present
        if not keep_model:
            model, model_note = model_to_resume(log, present, self._services)
        permission_mode, mode_note = self._mode_to_resume(opened.left_in)
        reason = "forked" if mode == "fork" else "resumed"
        events = self._switch(log, opened.cwd, model, last_thinking_level(log), reason)
        permissions = self.conversation.permissions
        permissions.mode = permissions.book.limit_mode(permission_mode)
        take_up_stand_in(self.conversation, present)
        if not log.is_read_only:
            log.append_many(missing_changes(log, model, self.conversation.thinking))
        noted = [note for note in (model_note, *log.warnings) if note]
        said = (Notice("info", mode_note),) if mode_note else ()
        notices = (*opened.notices, *(Notice("warning", note) for note in noted), *said)
        header = log.header
        if header.cwd and (way := await self.how_to_return(Path(header.cwd), header.id)):
            notices = (*notices, Notice("info", way))
        left = await self._leave_jobs()
        gone = [
            Notice("info", end_of_job_line(job), "job") for job in self.conversation.untold_jobs()
        ]
        return (*events, *left, *notices, *gone)

    async def _leave_jobs(self) -> tuple[Notice, ...]:
        """End the background commands of the session that was left; returns notices."""
        ended = await self._jobs.leave()
        notices = await close_walls(self._services, self.conversation)
        if not ended:
            return notices
        commands = "; ".join(job.shown for job in ended)
        said = f"Stopped with the session that started them: {commands}"
        return (Notice("info", said, "job"), *notices)

    async def status(self, ref: str) -> SessionStatus:
        """What to know about a session before opening it: its folder, and who has it open.

        Raises:
            SessionError: There is no such session.
        """
        find = partial(self._services.store.find, ref, self.conversation.cwd)
        return await asyncio.to_thread(lambda: session_status(find()))

    async def how_to_return(self, folder: Path, session: str) -> str:
        """How to continue a session where it worked, if a feature knows; else empty.

        Args:
            folder: Where it worked; the folder may be gone.
            session: Its id.
        """
        for part in self.parts:
            if way := await part.way_back(folder, session):
                return way
        return ""

    def trees(self) -> Iterator[JoinedTree]:
        """Yield the present session as a tree, then joined with each one it was compacted from.

        Each step reads a file; use one thread at a time.
        """
        log = self.conversation.log
        return join_trees(snapshot(log), log.leaf_id, self._past)

    async def whole_tree(self) -> JoinedTree:
        """The present session joined with all that it was compacted from."""
        return await asyncio.to_thread(lambda: list(self.trees())[-1])

    async def open_earlier(self, place: ContinuationPoint) -> SessionLog:
        """Open the session of `place`, from which the present one was compacted, for writing.

        Raises:
            SessionError: It cannot be opened.
        """
        store, cwd = self._services.store, self.conversation.cwd
        return await asyncio.to_thread(open_known, place.session, store, cwd)

    async def go_on_in_earlier(
        self, log: SessionLog, place: ContinuationPoint
    ) -> tuple[AgentEvent, ...]:
        """Continue in `log`, as returned by `open_earlier`, instead of the present session.

        Records in it the file changes of later sessions, or they would count as made by someone
        else.

        Raises:
            SessionError: They cannot be written; the present session stays.
        """
        before, known = self.conversation, {entry.id for entry in log.entries}
        now = replace(place, later=(*place.later[:-1], snapshot(before.log)))
        changes = [e for e in now.all_entries() if changes_here(e) and e.id not in known]
        try:
            log.append_many(changes)
        except SessionError:
            log.close()
            raise
        self._is_branch_begun = False  # the session that is left reopens at its end
        events = self.continue_in(log)
        self._is_branch_begun = True
        if changes:
            for path in filter(None, (session.path for session in place.later)):
                await asyncio.to_thread(self.conversation.kept_files.adopt, folder_of(path))
        return events

    async def fork_at(
        self, leaf_id: str | None, earlier: KnownSession | None = None
    ) -> tuple[AgentEvent, ...]:
        """Continue in a copy of this session as it is at `leaf_id` (None: before its beginning).

        Args:
            leaf_id: The last entry of the copy.
            earlier: The session to copy, if it is an earlier one than the present.

        Raises:
            SessionError: There is nothing to copy, it cannot be written, or work began meanwhile.
        """
        before = self.conversation
        source = before.log if earlier is None else read_known(earlier)
        if not source.entries:
            raise SessionError("Nothing to fork yet: the conversation is empty.")
        log = await asyncio.to_thread(self._fork, source, leaf_id, before.cwd)
        self.require_still_idle(log)
        events = self._switch(log, before.cwd, before.model, before.thinking, "forked")
        if source is before.log and leaf_id == source.leaf_id:
            self.conversation.files = before.files  # the model still knows the files it read
        log.append_many(missing_changes(log, before.model, before.thinking))
        counted = await self.conversation.refresh_usage()
        return (*events, *counted, Notice("info", _fork_note(source)))

    def continue_in(self, log: SessionLog) -> tuple[AgentEvent, ...]:
        """Continue in `log`, another session, in the present folder and with the present model."""
        before = self.conversation
        return self._switch(log, before.cwd, before.model, before.thinking, "resumed")

    def follow_compaction(
        self, log: SessionLog, finished: CompactionFinished
    ) -> tuple[AgentEvent, ...]:
        """Continue in `log`, which a compaction of the present session began."""
        before = self.conversation
        changes = self._switch(log, before.cwd, before.model, before.thinking, "compacted")
        return (finished, *changes, self.conversation.use_window(finished.tokens_after))

    def rename(self, name: str) -> tuple[AgentEvent, ...]:
        """Name the present session.

        Raises:
            SessionError: It is open read-only, or cannot be written.
        """
        self.require_writable()
        self.conversation.log.append(SessionInfoEntry(name=name))
        return (self.session_changed("renamed"),)

    def branch_to(self, leaf_id: str | None) -> None:
        """Continue from an earlier entry of this session; nothing is written yet."""
        before = self.conversation
        before.log.branch_to(leaf_id)
        self.conversation = after = self._begin(
            before.log,
            before.cwd,
            before.model,
            before.thinking,
            before.permissions,
            FolderFiles(before.context_files, before.withheld_files),
        )
        self._renew_parts()
        after.totals, after.told_note = before.totals, before.told_note
        self._is_branch_begun = True
        self._background.drop()

    def branch_events(self, text: str, image_count: int) -> tuple[AgentEvent, ...]:
        """The events after `branch_to`; `text` is a message to edit and send again."""
        went_back = WentBack(self.conversation.log.leaf_id, text, image_count)
        return (went_back, self.conversation.totals, TodosChanged(tuple(self.conversation.todos)))

    async def apply_trust(self) -> tuple[AgentEvent, ...]:
        """Apply the folder's trust, as `trust` has it now, to its files; count again.

        Raises:
            AgentTuiError: Something runs.
        """
        self.require_idle()
        conversation, services = self.conversation, self._services
        files = load_folder_files(services, conversation.cwd)
        conversation.context_files, conversation.withheld_files = files.in_force, files.withheld
        conversation.fit = self._fitter(conversation.cwd, files)
        conversation.fitted = None
        before = conversation.permissions
        conversation.permissions = services.make_permissions(conversation.cwd, before.mode)
        conversation.permissions.continue_from(before)
        self._background.drop()
        return (*unread_notices(conversation.permissions), *await conversation.refresh_usage())

    def require_writable(self) -> None:
        """Refuse a write if the session is open read-only.

        Raises:
            SessionError: It is open read-only.
        """
        if self.conversation.log.is_read_only:
            raise SessionError(READ_ONLY, READ_ONLY_HINT)

    def require_idle(self) -> None:
        """Refuse a change of session while work is running.

        Raises:
            AgentTuiError: Something runs.
        """
        if self._is_busy():
            raise AgentTuiError("Something is running.", "{stop}")

    def require_still_idle(self, log: SessionLog) -> None:
        """Close `log`, read or written in a thread, if work began here in the meantime.

        Raises:
            SessionError: It did.
        """
        if self._is_busy():
            log.close()
            raise SessionError("Not opened: a turn has started.", "Try again when it is done.")

    def prepare_to_write(self) -> None:
        """Check that work may begin; at the start of a new branch, first record its model.

        Raises:
            SessionError: The session is open read-only, or cannot be written.
        """
        self.require_writable()
        if self._is_branch_begun:
            conversation = self.conversation
            changes = missing_changes(conversation.log, conversation.model, conversation.thinking)
            conversation.log.append_many(changes)
            self._is_branch_begun = False
        self._record_mode()

    def use_mode(self, mode: PermissionMode) -> None:
        """Change the permission mode; a session that has begun reopens in it, however it ends."""
        self.conversation.permissions.mode = mode
        if self.conversation.log.entries:
            self._record_mode()

    def _record_mode(self) -> None:
        """Record the present mode, unless the session opens in it anyway."""
        log, mode = self.conversation.log, self.conversation.permissions.mode
        default = "ask" if self._services.keeps_mode else self._first_mode
        is_kept = not (log.is_read_only or self._services.origin)
        if is_kept and mode != (mode_left_in(log) or default):
            with suppress(SessionError):  # then it opens in the mode of the settings
                log.append(CustomEntry(custom_type=PERMISSION_MODE, data=mode))

    def leave(self) -> None:
        """Make the session reopen in the state in which the user leaves it.

        That is the current mode, and the current message if they went back to it.
        """
        if self.conversation.log.entries:
            self._record_mode()
        self._keep_place()
        self._note_left()

    def _keep_place(self) -> None:
        log = self.conversation.log
        if self._is_branch_begun and not log.is_read_only:
            with suppress(SessionError):  # then it opens at its end
                log.append(CustomEntry(custom_type=_WENT_BACK))
        self._is_branch_begun = False

    def _note_left(self) -> None:
        """Record the present session as the one that ``-c`` opens here."""
        log, services = self.conversation.log, self._services
        if log.path is not None and not (log.is_read_only or services.origin):
            services.store.note_left(log.path, self.conversation.cwd)

    def _mode_to_resume(self, left_in: PermissionMode | None) -> tuple[PermissionMode, str]:
        """The mode in which to continue a session left in `left_in`, and a note about it.

        The mode changes only in a conversation that has not begun and is still in the mode that the
        program started with: then nobody has chosen one.
        """
        conversation = self.conversation
        mode = conversation.permissions.mode
        is_chosen = self._services.keeps_mode or mode != self._first_mode
        if is_chosen or left_in in (None, mode) or not conversation.is_new:
            return mode, ""
        if left_in == "full":
            return mode, _LEFT_IN_FULL.format(mode=mode)
        return left_in, _LEFT_IN.format(mode=left_in)

    def session_changed(self, reason: SessionChangeReason) -> SessionChanged:
        """The event that announces the present session."""
        log = self.conversation.log
        return SessionChanged(log.header.id, log.path, log.name, reason)

    def _is_present(self, ref: str) -> bool:
        present = self.conversation.log.path
        if present is None or not present.exists():
            return False
        found = self._services.store.find(ref, self.conversation.cwd)
        return found.exists() and found.samefile(present)

    def _open(self, ref: str, mode: OpenMode, here: bool) -> _Opened:
        """Open or copy the session that `ref` names. Blocking."""
        present = self.conversation.cwd
        path = self._services.store.find(ref, present)
        taken_over: list[Notice] = []
        # May be read but never written.
        if is_of_another_program(path, self._services.store.formats):
            imported = import_session(self._services.store, path, cwd=present)
            path = imported.path
            taken_over = [Notice("info", TAKEN_OVER.format(count=imported.entries))]
            taken_over += [Notice("warning", warning) for warning in imported.warnings]
        log, notices = self._open_log(path, mode)
        cwd, folder_note = working_folder(log, present, here=here)
        is_expected = here or str(cwd) == log.header.cwd
        level: Literal["info", "warning"] = "info" if is_expected else "warning"
        notices = (*notices, *(Notice("info", note) for note in pulled_notes(log)))
        notices = [*taken_over, *notices, *([Notice(level, folder_note)] if folder_note else ())]
        match mode:
            case "write":
                pass
            case "read-only":
                notices.append(Notice("warning", f"{READ_ONLY} {READ_ONLY_HINT}"))
            case "fork":
                notices.append(Notice("info", _fork_note(log)))
                notices += [Notice("warning", note) for note in log.warnings]
                log = self._fork(log, log.leaf_id, cwd)
        is_own = path.is_relative_to(self._services.store.root)
        return _Opened(
            log,
            cwd,
            tuple(notices),
            mode_left_in(log) if is_own else None,
        )

    def _open_log(self, path: Path, mode: OpenMode) -> tuple[SessionLog, tuple[Notice, ...]]:
        """Open the session at `path`; one that may not be written opens as a copy in memory."""
        store, cwd = self._services.store, self.conversation.cwd
        try:
            log = store.open(str(path), cwd, read_only=mode != "write")
            if mode == "write":
                store_partial_reply(log)
            return log, ()
        except SessionNotWritableError as error:
            source = store.open(str(path), cwd, read_only=True)
            copy = fork_session(source, source.leaf_id, None, cwd=Path(source.header.cwd or cwd))
            texts = list(source.warnings)
            if self._services.keeps_sessions:  # otherwise the user was told at the start
                texts.append(f"{error.message} {_IN_MEMORY}")
            return copy, tuple(Notice("warning", text) for text in texts)

    def _fork(self, source: SessionLog, leaf_id: str | None, cwd: Path) -> SessionLog:
        """Copy `source`, in memory only if sessions are not kept. Blocking."""
        services = self._services
        launch_cwd = services.launch_cwd
        return fork_session(
            source,
            leaf_id,
            services.store if services.keeps_sessions else None,
            cwd=cwd,
            launch_cwd=launch_cwd if launch_cwd != cwd else None,
            durability=services.settings.durability,
            origin=services.origin,
        )

    def _switch(
        self,
        log: SessionLog,
        cwd: Path,
        model: ModelRef,
        thinking: ThinkingLevel,
        reason: SessionChangeReason,
    ) -> tuple[AgentEvent, ...]:
        """Switch to `log`; never awaits, so that an interruption cannot leave half a change."""
        if reason in ("new", "resumed"):
            self.leave()
        else:
            self._keep_place()
        before, services = self.conversation, self._services
        permissions = before.permissions
        if cwd != before.cwd:
            permissions = services.make_permissions(cwd, permissions.mode)
        notices = () if cwd == before.cwd else unread_notices(permissions)
        files = load_folder_files(services, cwd)
        self.conversation = after = self._begin(log, cwd, model, thinking, permissions, files)
        if reason == "compacted":
            after.queue, after.files, after.todos = before.queue, before.files, before.todos
            after.totals = before.totals
            after.limited_until, after.stands_in_for = before.limited_until, before.stands_in_for
        else:
            self._renew_parts()
        if reason in ("compacted", "forked"):
            self._past.remember(before.log)
        after.told_note = before.told_note
        self._background.drop()
        before.log.close()
        self._note_left()
        return (
            self.session_changed(reason),
            ModelChanged(model.name, after.model_info.window),
            after.totals,
            TodosChanged(tuple(after.todos)),
            *notices,
        )


def unread_notices(permissions: Permissions) -> tuple[Notice, ...]:
    """What to tell the user about deny rules that cannot be read."""
    return tuple(Notice("warning", text) for text in permissions.book.unread_notices)


def _was_left_further_back(log: SessionLog) -> bool:
    newest = next(reversed(log.path_entries()), None)
    return isinstance(newest, CustomEntry) and newest.custom_type == _WENT_BACK


def _fork_note(source: SessionLog) -> str:
    name = f'"{source.name}"' if source.name else source.header.id[:8]
    return f"This is a new session, a copy of {name}. The original is unchanged."
