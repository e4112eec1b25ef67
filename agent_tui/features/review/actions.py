"""What is done with changes: take a hunk back, stage it, commit; and what is kept about them."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.commands.core.short_words import count_text
from agent_tui.errors import AgentTuiError
from agent_tui.events import AgentEvent
from agent_tui.features.review.changes import (
    FileChange,
    Hunk,
    HunkLine,
    text_of,
    without_hunk,
)
from agent_tui.features.review.comments import (
    Comment,
    ReviewedFile,
    ReviewState,
    comment_entry,
    review_message,
    reviewed_entry,
)
from agent_tui.features.review.sources import ReviewLoader, name_of
from agent_tui.features.review.staging import Staging, read_index
from agent_tui.messages import AssistantMessage, ToolResultMessage
from agent_tui.regular_files import read_regular_file
from agent_tui.secret_text import mask_values
from agent_tui.sessions.entries import CustomEntry, Entry, MessageEntry, new_entry_id
from agent_tui.sessions.file.kept_files import digest_of
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.file_changes import FileVersion, Restore, RestorePlan
from agent_tui.tools.files.versions import FILE, LINK, store_version, version_of
from agent_tui.tools.git.command import GitSilentError, ask_git, git_argv
from agent_tui.tools.git.private_folder import argv_without_files
from agent_tui.tools.git.status import git_folder
from agent_tui.tools.processes.keeper import ProcessKeeper

_TOOK_BACK = "(The user took this change in {name} back:\n{lines}Read the file again to edit it.)"
_CALL_RUNS = "A call or a compaction is running, and may change files. Try again when it has ended."
_NOT_AS_SHOWN = "This change is no longer as it was shown. Look at it again."
_ANOTHER_KIND = "{name} was a file and is a link now, or the opposite: take all its changes back."


@dataclass(frozen=True, slots=True)
class CommitDraft:
    """What a commit would have.

    Attributes:
        root: The top of the repository.
        names: The staged files, relative to it.
        listed: They as git lists them, such as ``new file: a.py``.
        message: What git proposes as the message, such as that of a merge; empty for nothing.
    """

    root: Path
    names: tuple[str, ...]
    listed: tuple[str, ...]
    message: str


class ReviewActions:
    """Acts on changes for the conversation of `runtime`.

    Args:
        runtime: Has the conversation.
        loader: Reads files again.
        keeper: Starts git.
    """

    def __init__(self, runtime: AgentRuntime, loader: ReviewLoader, keeper: ProcessKeeper) -> None:
        self._runtime = runtime
        self._loader = loader
        self._keeper = keeper

    # What is kept

    def keep(self, state: ReviewState, *comments: Comment) -> None:
        """Record new or changed comments in the session.

        Raises:
            SessionError: The session cannot be written.
        """
        for comment in comments:
            state.take(self._record(comment))

    def write_message(self, state: ReviewState) -> str:
        """The message with all open comments, which count as sent now; empty if there are none.

        Raises:
            SessionError: The session cannot be written.
        """
        comments = state.unsent()
        self.keep(state, *(one.model_copy(update={"state": "sent"}) for one in comments))
        return review_message(comments) if comments else ""

    def mark_reviewed(self, state: ReviewState, change: FileChange, *, is_reviewed: bool) -> None:
        """Record whether the user has reviewed a file as it is.

        Raises:
            SessionError: The session cannot be written.
        """
        mark = ReviewedFile(path=change.name, digest=change.digest, is_reviewed=is_reviewed)
        log = self._writable_log()
        state.take(log.append(reviewed_entry(mark)))

    def _record(self, comment: Comment) -> CustomEntry:
        secrets = self._runtime.services.secrets
        safe = comment.model_copy(
            update={
                "text": mask_values(comment.text, secrets),
                "lines": tuple(mask_values(line, secrets) for line in comment.lines),
            }
        )
        return self._writable_log().append(comment_entry(safe))

    def _writable_log(self) -> SessionLog:
        runtime = self._runtime
        if runtime.is_busy:
            runtime.sessions.require_writable()
        else:
            runtime.sessions.prepare_to_write()
        return runtime.conversation.log

    def new_id(self, state: ReviewState) -> str:
        """An id for a new comment."""
        return new_entry_id(set(state.comments))

    # Files

    async def take_back(self, change: FileChange, hunks: Sequence[Hunk]) -> tuple[AgentEvent, ...]:
        """Take `hunks` of a file back, if they are as shown; ``/undo`` offers to redo it.

        While a turn runs, this works between its calls, any of which may change the file.

        Raises:
            AgentTuiError: They are not as shown, a call runs, or the file cannot be stored.
        """
        runtime = self._runtime
        fresh = await self._loader.reload(change)
        wanted = text_of(fresh.after)
        for hunk in reversed(hunks):
            found = fresh.find(hunk.key)
            wanted = without_hunk(wanted, found) if found and wanted is not None else None
        if wanted is None:
            raise AgentTuiError(_NOT_AS_SHOWN)
        is_gone = not wanted and change.before is None
        plan = await asyncio.to_thread(self._plan, fresh, None if is_gone else wanted)
        is_of_file = is_gone or fresh.after is None
        taken = f"{count_text(len(hunks), 'hunk')} taken back in {change.name}."
        lines = "".join(map(_quoted, (line for hunk in hunks for line in hunk.lines)))
        told = mask_values(
            _TOOK_BACK.format(name=change.name, lines=lines), runtime.services.secrets
        )
        shown = "" if is_of_file else taken
        if not runtime.is_busy:
            return await runtime.files.carry_out(plan, tells_model=True, told=told, shown=shown)
        if runtime.is_compacting or has_open_calls(runtime.conversation.log.path_entries()):
            raise AgentTuiError(_CALL_RUNS)
        events = await runtime.files.carry_out(plan, shown=shown, is_beside_turn=True)
        is_done = (await self._loader.reload(change)).after != fresh.after
        note = f"The model will be told: {change.name} taken back"
        return (*events, *(runtime.tell_model(told, note) if is_done else ()))

    def _plan(self, fresh: FileChange, wanted: str | None) -> RestorePlan:
        conversation, path = self._runtime.conversation, fresh.path
        present = version_of(path, open_texts=conversation.services.open_texts)
        if present.digest != (digest_of(fresh.after) if fresh.after is not None else ""):
            raise AgentTuiError(_NOT_AS_SHOWN)
        version = FileVersion()
        if wanted is not None:
            content = wanted.encode("utf-8")
            mode = _mode_for(fresh, content, present.mode)
            version = store_version(content, mode, conversation.kept_files)
        return RestorePlan((Restore(str(path), present, version),))

    # Git

    async def stage(self, change: FileChange, hunk: Hunk | None = None) -> str:
        """Stage a file or a `hunk` of it, or unstage what is staged; returns what was done.

        Raises:
            AgentTuiError: The hunk is not as shown, git does not run here or refuses, or the hunk
                cannot be staged alone.
        """
        fresh = await self._loader.reload(change)
        if hunk is not None and fresh.find(hunk.key) is None:
            raise AgentTuiError(_NOT_AS_SHOWN)
        root, name = await self._loader.place_in_git(change.path)
        staging = Staging(self._keeper, root, self._environ)
        try:
            if hunk is not None:
                return await staging.switch_hunk(name, fresh, hunk)
            names = [name]
            if change.was_path is not None:
                names.append((await self._loader.place_in_git(change.was_path))[1])
            return await staging.switch_files(names)
        except GitSilentError as error:
            raise AgentTuiError(f"Git did not stage it: {error}.") from error

    async def unstage(self, change: FileChange, hunk: Hunk | None = None) -> None:
        """Take a file or a `hunk` of it out of git's index, if it is there.

        Args:
            change: The file as it was shown, before its changes were taken back.
            hunk: The hunk; None for all that the index has of the file.

        Raises:
            AgentTuiError: Git does not run here or refuses, or the hunk cannot be unstaged alone.
        """
        root, name = await self._loader.place_in_git(change.path)
        staging = Staging(self._keeper, root, self._environ)
        try:
            if hunk is not None:
                await staging.unstage_hunk(name, change, hunk)
            else:
                await staging.unstage_files([name])
        except GitSilentError as error:
            raise AgentTuiError(f"Git did not unstage it: {error}.") from error

    async def prepare_commit(self) -> CommitDraft:
        """What a commit would have now, and what git proposes as its message.

        Raises:
            AgentTuiError: Git does not run here, nothing is staged, or a file is in conflict.
        """
        root = await self._loader.top_of(self._runtime.conversation.cwd)
        try:
            files = await read_index(self._keeper, root, self._environ)
            folder = await git_folder(self._keeper, root, self._environ)
        except GitSilentError as error:
            raise AgentTuiError(f"Git does not tell what is staged: {error}.") from error
        undecided = [name_of(root / one.name, root) for one in files if one.is_in_conflict]
        if undecided:
            raise AgentTuiError(
                f"Not committed: {undecided[0]} is in conflict.",
                "Resolve it, then stage it with git add.",
            )
        names = tuple(name_of(root / one.name, root) for one in files)
        is_merge = (folder / "MERGE_HEAD").exists()
        if not names and not is_merge:
            raise AgentTuiError("Nothing is staged.", "s stages a hunk or a file.")
        message = await asyncio.to_thread(_proposed_message, folder)
        listed = tuple(f"{file.act}: {name}" for file, name in zip(files, names, strict=True))
        return CommitDraft(root, names, listed, message)

    def commit_argv(self, root: Path, message: Path) -> tuple[str, ...]:
        """The command that commits; in a folder that is not trusted, without hooks.

        Args:
            root: The top of the repository.
            message: The file with the message; beside it, an empty folder is made for git.

        Raises:
            AgentTuiError: There is no repository.
        """
        trust = self._runtime.services.trust
        options = ("--cleanup=strip", "-F", str(message))
        if trust.state_of(trust.folder_to_ask_about(root)) == "trusted":
            return ("git", "commit", *options)
        settings = ("commit.gpgSign=false", "gc.auto=0", "maintenance.auto=false")
        empty = message.with_name("empty")
        empty.mkdir()
        try:
            return argv_without_files(
                root, self._environ, empty, "commit", *options, settings=settings
            )
        except GitSilentError as error:
            raise AgentTuiError(f"Git does not commit: {error}.") from error

    async def newest_commit(self, root: Path) -> str:
        """The short hash of the commit that ``HEAD`` names; empty if git does not tell."""
        argv = git_argv("rev-parse", "--short", "HEAD")
        with suppress(GitSilentError):
            return os.fsdecode(await ask_git(self._keeper, argv, root, self._environ)).strip()
        return ""

    @property
    def _environ(self) -> Mapping[str, str]:
        return self._runtime.services.person_environ


def _proposed_message(folder: Path) -> str:
    """The message that git prepared in its `folder` for a merge, a revert or a squash."""
    for name in ("MERGE_MSG", "SQUASH_MSG"):
        try:
            text = read_regular_file(folder / name).decode("utf-8", "replace")
        except OSError:
            continue
        return "\n".join(line for line in text.splitlines() if not line.startswith("#")).strip()
    return ""


def _mode_for(change: FileChange, content: bytes, present: int) -> int:
    """The mode of the file at `change` with `content`; as before if that is all as before.

    Args:
        change: The change.
        content: What it is to contain.
        present: Its mode now; 0 if it is not there.

    Raises:
        AgentTuiError: It would have some lines of a file and some of a link.
    """
    if content == change.before:
        return change.before_mode or present or FILE
    modes = {present, change.before_mode} - {0}
    if len(modes) > 1 and LINK in modes:
        raise AgentTuiError(_ANOTHER_KIND.format(name=change.name))
    return present or change.before_mode or FILE


def has_open_calls(path: Sequence[Entry]) -> bool:
    """Whether calls of the newest reply on `path` have no result yet."""
    is_open: set[str] = set()
    for entry in path:
        match entry:
            case MessageEntry(message=AssistantMessage() as reply):
                is_open = {call.id for call in reply.tool_calls}
            case MessageEntry(message=ToolResultMessage() as result):
                is_open.discard(result.tool_call_id)
            case _:
                pass
    return bool(is_open)


def _quoted(line: HunkLine) -> str:
    """A line as the model reads it, with its number."""
    return f"    {line.new or line.old}| {line.sign}{line.text.removesuffix(chr(10))}\n"
