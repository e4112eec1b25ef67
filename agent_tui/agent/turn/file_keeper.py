"""Store file contents before and after each change, so that they can be restored."""

import asyncio
import stat
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from agent_tui.agent.conversation import Conversation
from agent_tui.safe_paths import is_folder
from agent_tui.sessions.file.kept_files import MOST_FILE_BYTES
from agent_tui.sessions.replay.file_changes import (
    FileChanges,
    FileVersion,
    RecordedFileChange,
    file_changes_entry,
)
from agent_tui.tools.base import Intent
from agent_tui.tools.files.versions import FILE, LINK, PROGRAM, TOO_LARGE, store_version, version_of
from agent_tui.tools.files.walk import relative_files
from agent_tui.tools.git.status import TreeDifference, nearest_git
from agent_tui.tools.git.trees import Tree, WorkTrees, is_too_large

_MOST_WALKED: Final = 10_000
_MODES = frozenset({FILE, PROGRAM, LINK})


class FileKeeper:
    """Records in the session what calls and commands change in files.

    Edits are recorded in every conversation that can store contents; changes by commands only if
    the services can inspect work trees.

    Args:
        conversation: The one whose files are watched.
        environ: The environment for git.
    """

    def __init__(self, conversation: Conversation, environ: Mapping[str, str]) -> None:
        self._conversation = conversation
        self._environ = environ
        self._newest: FileChanges | None = None

    def take_newest(self) -> str:
        """The changes recorded since the last call as a text; empty if there are none."""
        newest, self._newest = self._newest, None
        return newest.model_dump_json() if newest is not None else ""

    @asynccontextmanager
    async def watch(self, intent: Intent) -> AsyncGenerator[None, None]:
        """Record what is changed inside the block, however it ends.

        Raises:
            SessionError: The changes cannot be recorded.
        """
        trees = self._conversation.services.trees
        if not self._conversation.kept_files.is_there:
            yield
        elif intent.access == "write":
            before = await asyncio.to_thread(self._versions, intent.paths)
            try:
                yield
            finally:
                after = await asyncio.to_thread(self._versions, intent.paths)
                changes = map(_change, intent.paths, before, after)
                self._record([change for change in changes if change is not None])
        elif intent.access in ("execute", "outside") and trees is not None:
            tree = await self._look(trees)
            try:
                yield
            finally:
                if tree is not None:
                    self._record(await self._changes_since(trees, tree))
        else:
            yield

    async def find_unkept(self, intent: Intent, places: Sequence[Path]) -> tuple[Path, ...] | None:
        """The files with work in them that neither a commit nor undo could bring back.

        Ignored files do not count. If git may not be asked in a repository, each large file counts.
        None if that is unknown, as it is of commands in no repository.

        Args:
            intent: What would be done.
            places: The files and folders that it would replace or remove.
        """
        large = await asyncio.to_thread(lambda: tuple(filter(_may_hold_large, places)))
        if not large:
            return ()
        trees, is_edit = self._conversation.services.trees, intent.access == "write"
        tree = None
        if trees is not None and self._conversation.kept_files.is_there:
            tree = await self._look(trees)
        if trees is None or tree is None:
            marker = await asyncio.to_thread(nearest_git, self._conversation.cwd, self._environ)
            is_known = is_edit or (marker and not any(path.parent == path for path in large))
            return await asyncio.to_thread(_find_large, large) if is_known else None
        unkept = await trees.find_unkept(tree, self._environ, places)
        beside = (path for path in large if is_edit and not path.is_relative_to(tree.root))
        return None if unkept is None else (*unkept, *beside)

    async def _look(self, trees: WorkTrees) -> Tree | None:
        cwd = self._conversation.cwd
        if not await asyncio.to_thread(self._conversation.services.trust.may_run_git, cwd):
            return None
        return await trees.look(cwd, self._environ)

    async def _changes_since(self, trees: WorkTrees, before: Tree) -> list[RecordedFileChange]:
        after = await self._look(trees)
        if after is None:
            return []
        changed = [
            file
            for file in trees.changes(before, after)
            if {file.before_mode, file.after_mode} <= _MODES | {0}
        ]
        ids = [file.before_id for file in changed if file.before_id]
        contents = await trees.contents(before.root, ids)
        return await asyncio.to_thread(
            _of_command, self._conversation, before.root, changed, contents
        )

    def _versions(self, paths: Sequence[Path]) -> list[FileVersion]:
        conversation = self._conversation
        why_held = conversation.permissions.why_attaching_asks
        kept, open_texts = conversation.kept_files, conversation.services.open_texts
        return [version_of(path, kept, why_held, open_texts) for path in paths]

    def _record(self, changes: Sequence[RecordedFileChange]) -> None:
        if changes:
            self._newest = FileChanges(changes=tuple(changes))
            self._conversation.log.append(file_changes_entry(self._newest))


def _may_hold_large(path: Path) -> bool:
    """Whether `path` is a file that is too large to keep, or a folder."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) or status.st_size > MOST_FILE_BYTES


def _find_large(places: Sequence[Path]) -> tuple[Path, ...]:
    """The files too large to keep at or below `places`, which are such files or folders."""
    found = list[Path]()
    for place in places:
        below = [place / name for name in relative_files(place, _MOST_WALKED)]
        found += filter(_may_hold_large, below if is_folder(place) else (place,))
    return tuple(found)


def _of_command(
    conversation: Conversation,
    root: Path,
    changed: Sequence[TreeDifference],
    contents: Mapping[str, bytes],
) -> list[RecordedFileChange]:
    """The changes that a command made, with the earlier contents that git has."""
    kept, why_held = conversation.kept_files, conversation.permissions.why_attaching_asks
    changes: list[RecordedFileChange] = []
    for file in changed:
        path, before = root / file.name, FileVersion()
        if file.before_id:
            why = TOO_LARGE if is_too_large(file.before_id) else why_held(path)
            content = contents.get(file.before_id)
            if content is None or why:
                digest = f"git:{file.before_id}"
                before = FileVersion(digest=digest, mode=file.before_mode, why_not=why)
            else:
                before = store_version(content, file.before_mode, kept)
        change = _change(path, before, version_of(path, kept, why_held))
        if change is not None:
            changes.append(change)
    return changes


def _change(path: Path, before: FileVersion, after: FileVersion) -> RecordedFileChange | None:
    if before.is_as(after):
        return None
    return RecordedFileChange(path=str(path), before=before, after=after)
