"""Where changes come from: the session's own record, git's work tree, two commits."""

import asyncio
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeAlias

from agent_tui.agent.conversation import Conversation
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.cli.folders import worktree_records
from agent_tui.errors import AgentTuiError, UsageError
from agent_tui.features.review.changes import (
    FileChange,
    Side,
    file_change,
    pair_renames,
    with_present,
)
from agent_tui.features.review.comments import ReviewState, read_state
from agent_tui.features.review.edit_history import file_edits, find_changed_files
from agent_tui.features.review.staging import (
    FileStatus,
    IndexMark,
    mark_hunks,
    read_checked_out,
    read_index,
)
from agent_tui.messages import UserMessage
from agent_tui.regular_files import read_at
from agent_tui.safe_paths import is_folder, open_folder, path_from, real_path, resolve_path
from agent_tui.sessions.entries import Entry, MessageEntry
from agent_tui.sessions.replay.file_changes import FileVersion, changes_here
from agent_tui.tools.files.diffs import before_diff
from agent_tui.tools.files.versions import FILE, LINK, PROGRAM, TOO_LARGE
from agent_tui.tools.git.command import GitSilentError, ask_git, git_argv
from agent_tui.tools.git.status import (
    diff_trees,
    git_folder,
    read_work_tree,
    top_folder,
)
from agent_tui.tools.git.trees import read_blobs
from agent_tui.tools.git.worktree_records import main_folder
from agent_tui.tools.processes.keeper import ProcessKeeper

_MOST_FILE_BYTES: Final = 5_000_000
_ONLY_IN_INDEX: Final = "changed in git's index alone"
_AS_COMMITTED: Final = "as in the last commit"
_UNREADABLE: Final = "cannot be read"
_NOT_STORED: Final = "the earlier content was not stored"
_MOST_NAMED = 5
_LAST, _SESSION = "since your last message", "in this session"
_GIT = "since the last commit"

MakeChange: TypeAlias = Callable[[Path, bytes | None, bytes | None, str, int], FileChange]
"""Makes the change of a file from its contents before and after, a note, and its mode before."""


@dataclass(frozen=True, slots=True)
class Review:
    """Changes to look at.

    Attributes:
        what: What was asked for.
        title: What they are, in a few words.
        changes: The files.
        state: Comments and marks.
        is_present: Whether the changed files are as they are in the folder now.
        in_index: What git's index has of files and hunks, by the names of the files and the keys of
            the hunks; the key of a file is empty. Files that are not shown are part of it.
        left_out: What changed and is not shown; empty for nothing.
        is_read: Whether the changes are known; otherwise they are still read.
    """

    what: str
    title: str
    changes: tuple[FileChange, ...]
    state: ReviewState
    is_present: bool = True
    in_index: Mapping[tuple[str, str], IndexMark] = field(
        default_factory=dict[tuple[str, str], IndexMark]
    )
    left_out: str = ""
    is_read: bool = True

    def source_of(self, side: Side) -> str:
        """What a comment on a line of this side keeps as its `Comment.source`."""
        return "" if self.is_present and side == "new" else self.what


class ReviewLoader:
    """Finds changes for the conversation of `runtime`.

    Args:
        runtime: Has the conversation.
        keeper: Starts git.

    Attributes:
        index_file: The file of git's index that was read last; None without one.
    """

    def __init__(self, runtime: AgentRuntime, keeper: ProcessKeeper) -> None:
        self._runtime = runtime
        self._keeper = keeper
        self.index_file: Path | None = None
        self._made: dict[Path, tuple[object, FileChange]] = {}

    async def load(self, what: str) -> Review:
        """The changes that `what` names, with what is staged of them.

        Args:
            what: ``last``, ``session``, ``git``, ``worktree NAME``, ``folder PATH`` for what is not
                committed there (in a worktree of ours: all its work), a commit for all since then,
                ``A..B``, or part of the name of a file; empty for ``last``, or ``session`` if that
                is empty.

        Raises:
            AgentTuiError: Git cannot tell, or there is no such worktree.
        """
        review = await self._load(what)
        if not review.is_present:
            return review
        try:
            return await self._with_index(review)
        except (AgentTuiError, GitSilentError):
            return review  # there is no repository, or git may not run in it

    async def _with_index(self, review: Review) -> Review:
        """`review` with what git's index has, also of files that it does not show."""
        cwd = self._runtime.conversation.cwd
        if review.changes:
            root, _ = await self.place_in_git(review.changes[0].path)
        else:
            root = await self.top_of(cwd)
        self.index_file = await git_folder(self._keeper, root, self._environ) / "index"
        files = await read_index(self._keeper, root, self._environ)
        ids = [one for file in files for one in (file.head_id, file.index_id) if one.strip("0")]
        blobs = await read_blobs(self._keeper, root, ids, self._environ)
        changes = review.changes
        if review.what == "git":
            changes += tuple(self._as_committed(changes, root, files))
        by_path = {_in_real_folder(one.path): one for one in changes}
        renamed = {_in_real_folder(one.was_path): one for one in changes if one.was_path}
        marks: dict[tuple[str, str], IndexMark] = {}
        staged: list[str] = []
        undecided: list[str] = []
        for file in files:
            if file.mark is None:
                continue
            if (change := by_path.get(root / file.name)) is None:
                if (moved := renamed.get(root / file.name)) is not None:
                    marks.setdefault((moved.name, ""), "partly staged")
                    continue
                name = name_of(root / file.name, cwd)
                (undecided if file.is_in_conflict else staged).append(name)
                marks[name, ""] = file.mark
                continue
            marks[change.name, ""] = file.mark
            head, index = [
                await self._as_checked_out(root, file.name, blob, blobs, change.after)
                for blob in (file.head_id, file.index_id)
            ]
            hunks = mark_hunks(change, index, head) if not file.is_in_conflict else ()
            marks |= {(change.name, key): mark for key, mark in hunks}
        others = _others_words("Staged", staged), _others_words("In conflict", undecided)
        notes = filter(None, (review.left_out, *others))
        changes = tuple(sorted(changes, key=lambda one: one.name))
        return replace(review, changes=changes, in_index=marks, left_out=" ".join(notes))

    def _as_committed(
        self, changes: Sequence[FileChange], root: Path, files: Sequence[FileStatus]
    ) -> Iterator[FileChange]:
        """The files in conflict that are as in the last commit, so not among `changes`."""
        shown = {_in_real_folder(one.path) for one in changes}
        for file in files:
            path = root / file.name
            if file.is_in_conflict and path not in shown:
                content, note = read_present(path)
                if content is not None:
                    yield self._change(path, content, content, note or _AS_COMMITTED)

    async def _as_checked_out(
        self,
        root: Path,
        name: str,
        blob: str,
        blobs: Mapping[str, bytes],
        present: bytes | None,
    ) -> bytes | None:
        """The content of `blob`, with the line ends of `present` if git converts them."""
        content = blobs.get(blob)
        if content is None or b"\r\n" in content or b"\r\n" not in (present or b""):
            return content
        try:
            return await read_checked_out(self._keeper, root, blob, name, self._environ)
        except GitSilentError:
            return content

    async def _load(self, what: str) -> Review:
        history = self._runtime.history()
        entries = await asyncio.to_thread(lambda: [*history.entries()][::-1])
        state = read_state(entries)
        word, _, rest = what.partition(" ")
        if word == "git" and not rest:
            return await self._uncommitted(what, state)
        if word == "worktree" and rest:
            return await self._worktree(what, rest.strip(), state)
        if word == "folder" and rest:
            return await self._folder(what, rest.strip(), state)
        if what in ("", "last"):
            changes = await self._recorded(entries[_last_message(entries) :])
            if changes or what:
                return Review("last", _LAST, changes, state)
        elif what != "session" and (found := await self._committed(what, state)) is not None:
            return found
        changes = await self._recorded(entries)
        if what not in ("", "session"):
            wanted = what.lower()
            changes = tuple(one for one in changes if wanted in one.name.lower())
            if not changes and not resolve_path(what, self._runtime.conversation.cwd).exists():
                why = f"No branch, commit or changed file has the name {what}."
                raise UsageError(why, "/diff git shows what is not committed.")
            return Review(what, f"{_SESSION}, {what}", changes, state)
        return Review("session", _SESSION, changes, state)

    async def reload(self, change: FileChange) -> FileChange:
        """`change` with the present content of its file."""
        after, note = await asyncio.to_thread(read_present, change.path)
        return with_present(change, after, note)

    async def present_file(self, written: str) -> FileChange:
        """The file that the user names, as it is now.

        Raises:
            UsageError: It is not there, or cannot be read.
        """
        cwd = self._runtime.conversation.cwd
        path = resolve_path(written, cwd)
        after, note = await asyncio.to_thread(read_present, path)
        if after is None:
            raise UsageError(f"{written}: {note or 'there is no such file'}.")
        return self._change(path, after, after, note)

    async def top_of(self, folder: Path) -> Path:
        """The top of the repository around `folder`.

        Raises:
            AgentTuiError: There is none, or git may not run there.
        """
        trust = self._runtime.services.trust
        if not await asyncio.to_thread(trust.may_run_git, folder):
            why = f"Git does not run in {folder}: the folder is not trusted."
            raise AgentTuiError(why, "/trust decides on it.")
        try:
            return await top_folder(self._keeper, folder, self._environ)
        except GitSilentError as error:
            raise AgentTuiError(f"There is no git repository in {folder} ({error}).") from error

    async def place_in_git(self, path: Path) -> tuple[Path, str]:
        """The top of the repository that `path` belongs to, and its name there.

        Raises:
            AgentTuiError: There is none, or git may not run there.
        """
        there = next(folder for folder in path.parents if is_folder(folder))
        root = await self.top_of(there)
        real = _in_real_folder(path)
        if not real.is_relative_to(root):
            raise AgentTuiError(f"{path} is not in the repository {root}.")
        return root, real.relative_to(root).as_posix()

    async def _recorded(self, entries: Sequence[Entry]) -> tuple[FileChange, ...]:
        conversation = self._runtime.conversation
        return await asyncio.to_thread(recorded_changes, conversation, entries, self._change)

    async def _uncommitted(self, what: str, state: ReviewState) -> Review:
        root = await self.top_of(self._runtime.conversation.cwd)
        changes, left_out = await self._against(root, "")
        return Review(what, _GIT, changes, state, left_out=left_out)

    async def _worktree(self, what: str, name: str, state: ReviewState) -> Review:
        main = main_folder(real_path(self._runtime.conversation.cwd))
        known = await asyncio.to_thread(worktree_records().of_repository, main)
        found = next((one for one in known if one.name == name and one.exists), None)
        if found is None:
            names = ", ".join(one.name for one in known if one.exists) or "none"
            raise UsageError(f"There is no worktree {name!r}.", f"Worktrees here: {names}.")
        root = await self.top_of(found.path)
        changes, left_out = await self._against(root, found.start)
        return Review(what, f"in the worktree {name}", changes, state, left_out=left_out)

    async def _folder(self, what: str, named: str, state: ReviewState) -> Review:
        folder = real_path(resolve_path(named, self._runtime.conversation.cwd))
        worktree = await asyncio.to_thread(worktree_records().around, folder)
        root = await self.top_of(folder)
        start = worktree.start if worktree else ""
        changes, left_out = await self._against(root, start)
        return Review(what, f"in {named}", changes, state, left_out=left_out)

    async def _against(self, root: Path, start: str) -> tuple[tuple[FileChange, ...], str]:
        """The present files in `root` against the commit `start`; empty for the last one.

        Returns:
            The changes, and what is left out of them.
        """
        keeper, environ = self._keeper, self._environ
        try:
            tree = await read_work_tree(keeper, root, environ)
            ids, modes = dict(tree.dirty), dict(tree.modes)
            if start and tree.head:
                moved = await diff_trees(keeper, root, start, tree.head, environ)
                files = [one for one in moved if not one.is_of_submodule]
                ids |= {one.name: one.before_id for one in files}
                modes |= {one.name: one.before_mode for one in files}
        except GitSilentError as error:
            raise _silent(root, error) from error
        blobs = await read_blobs(keeper, root, filter(None, ids.values()), environ)
        found: list[FileChange] = []
        for name, blob in ids.items():
            path, mode = root / name, modes.get(name, 0)
            after, note = await asyncio.to_thread(read_present, path)
            before = await self._as_checked_out(root, name, blob, blobs, after)
            if blob and before is None:
                note = note or _NOT_STORED
            note = note or _mode_words(mode, _mode_at(path))
            if before == after and name in tree.staged and not start:
                note = note or _ONLY_IN_INDEX
            if before != after or note:
                made = await asyncio.to_thread(self._change, path, before, after, note, mode)
                found.append(made)
        changes = await asyncio.to_thread(pair_renames, found)
        return tuple(changes), _left_out_words(tree.left_out)

    async def _committed(self, what: str, state: ReviewState) -> Review | None:
        """The changes between two commits or since one; None if `what` does not name any."""
        cwd = self._runtime.conversation.cwd
        is_range = ".." in what
        try:
            root = await self.top_of(cwd)
        except AgentTuiError:
            if is_range:
                raise
            return None
        old, dots, new = what.partition("...") if "..." in what else what.partition("..")
        before, after = [await self._commit(root, end or "HEAD") for end in (old, new)]
        if not (before and after):
            if is_range:
                raise UsageError(f"Git knows no commits {what}.", "Write it like main..HEAD.")
            return None
        if not dots:
            changes, left_out = await self._against(root, before)
            return Review(what, f"since {what}", changes, state, left_out=left_out)
        try:
            if dots == "...":
                argv = git_argv("merge-base", before, after)
                before = (await self._ask(root, *argv)).decode("ascii").strip()
            moved = await diff_trees(self._keeper, root, before, after, self._environ)
        except GitSilentError as error:
            raise _silent(root, error) from error
        files = [one for one in moved if not one.is_of_submodule]
        ids = [one for file in files for one in (file.before_id, file.after_id) if one]
        blobs = await read_blobs(self._keeper, root, ids, self._environ)

        def compare() -> tuple[FileChange, ...]:
            pairs = [
                (root / file.name, blobs.get(file.before_id), blobs.get(file.after_id))
                for file in files
            ]
            return tuple(pair_renames(self._change(*pair, "") for pair in pairs))

        changes = await asyncio.to_thread(compare)
        return Review(what, f"in {what}", changes, state, is_present=False)

    async def _commit(self, root: Path, name: str) -> str:
        """The id of the commit `name`; empty if there is none."""
        argv = git_argv(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
        )
        try:
            return (await self._ask(root, *argv)).decode("ascii").strip().splitlines()[-1]
        except (GitSilentError, UnicodeDecodeError, IndexError):
            return ""

    async def _ask(self, root: Path, *argv: str) -> bytes:
        return await ask_git(self._keeper, argv, root, self._environ)

    def _change(
        self,
        path: Path,
        before: bytes | None,
        after: bytes | None,
        note: str,
        before_mode: int = 0,
    ) -> FileChange:
        """A change; one that was found before is not worked out again."""
        known, made = self._made.get(path, (None, None))
        if made is None or known != (before, after, note, before_mode):
            name = name_of(path, self._runtime.conversation.cwd)
            made = file_change(name, path, before, after, note=note, before_mode=before_mode)
            self._made[path] = (before, after, note, before_mode), made
        return made

    @property
    def _environ(self) -> Mapping[str, str]:
        return self._runtime.services.person_environ


def _silent(root: Path, error: GitSilentError) -> AgentTuiError:
    return AgentTuiError(f"Git does not tell what changed in {root}: {error}.")


def _left_out_words(names: Sequence[str]) -> str:
    what = "Not shown: changes in submodules and other repositories"
    return f"{what} ({_some_of(names)})." if names else ""


def _others_words(what: str, names: Sequence[str]) -> str:
    return f"{what}, but not among these changes: {_some_of(names)}." if names else ""


def _in_real_folder(path: Path) -> Path:
    return real_path(path.parent) / path.name


def _some_of(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")


def _last_message(entries: Sequence[Entry]) -> int:
    """The index of the user's last message that started a turn; 0 if there is none."""
    for number in range(len(entries) - 1, -1, -1):
        match entries[number]:
            case MessageEntry(message=UserMessage(is_steering=None), pulled_from=None):
                return number
            case _:
                pass
    return 0


def name_of(path: Path, cwd: Path) -> str:
    """`path` as users and the model read it."""
    return path_from(path, real_path(cwd))


def read_present(path: Path) -> tuple[bytes | None, str]:
    """The file at `path`, of a link its target, None if there is none; and why it is not read.

    What is behind a link on the way does not exist: a command may have put it there.
    """
    try:
        with open_folder(path.parent) as folder:
            status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                return os.fsencode(os.readlink(path.name, dir_fd=folder)), ""
            if not stat.S_ISREG(status.st_mode):
                return None, "not a regular file"
            if status.st_size > _MOST_FILE_BYTES:
                return None, TOO_LARGE
            return read_at(folder, path.name, _MOST_FILE_BYTES)[0], ""
    except (FileNotFoundError, NotADirectoryError):
        return None, ""
    except (OSError, ValueError):
        return None, _UNREADABLE


def recorded_changes(
    conversation: Conversation, entries: Sequence[Entry], make: MakeChange
) -> tuple[FileChange, ...]:
    """What the calls and commands recorded in `entries`, oldest first, changed. Reads the files.

    Each file is compared with its content before the first of these changes. If that was not
    stored, as in sessions of other agents, it is worked out from the diffs of the edits.
    """
    cwd, kept = conversation.cwd, conversation.kept_files
    first: dict[str, FileVersion] = {}
    for recorded in filter(None, map(changes_here, entries)):
        for change in recorded.changes:
            first.setdefault(change.path, change.before)
    found: list[FileChange] = []
    for path, version in first.items():
        after, note = read_present(Path(path))
        before = kept.content(version.digest) if version.digest else None
        if version.digest and before is None:
            note = note or version.why_not or _NOT_STORED
        modes = _mode_words(version.mode, _mode_at(Path(path)))
        if before != after or note or modes:
            found.append(make(Path(path), before, after, note or modes, version.mode))
    known = {real_path(path) for path in first}
    found += _edited_changes(entries, cwd, known, make)
    return tuple(pair_renames(found))


def _edited_changes(
    entries: Sequence[Entry], cwd: Path, known: set[Path], make: MakeChange
) -> Iterable[FileChange]:
    """Changes of files that are not `known`, from the diffs of edits."""
    for changed in find_changed_files(file_edits(entries), cwd):
        if real_path(changed.path) in known:
            continue
        after, note = read_present(changed.path)
        before = after
        if changed.is_whole and after is not None and changed.diff:
            present = after.decode("utf-8", "replace").removeprefix("\ufeff")
            earlier = before_diff(present.replace("\r\n", "\n"), changed.diff)
            newline = "\r\n" if "\r\n" in present else "\n"
            before = None if earlier is None else earlier.replace("\n", newline).encode()
        elif changed.diff or changed.commands:
            note = note or _NOT_STORED
        if before != after or note:
            yield make(changed.path, before or None, after, note, 0)


def _mode_at(path: Path) -> int:
    try:
        with open_folder(path.parent) as folder:
            status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except (OSError, ValueError):
        return 0
    if stat.S_ISLNK(status.st_mode):
        return LINK
    return PROGRAM if status.st_mode & stat.S_IXUSR else FILE


def _mode_words(before: int, after: int) -> str:
    """What became of the mode; empty if nothing, or if the file is new or gone."""
    if not before or not after or before == after:
        return ""
    if (before, after) == (PROGRAM, FILE):
        return "no longer executable"
    names = {FILE: "a file", PROGRAM: "executable", LINK: "a link"}
    return f"now {names.get(after, 'of another kind')}"
