"""The repositories of a conversation as git describes them at the moment of a compaction."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from agent_tui.messages import AssistantMessage
from agent_tui.safe_paths import real_path, resolve_path
from agent_tui.sessions.entries import Entry, MessageEntry, RepositoryState, milliseconds
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.outputs import action_of
from agent_tui.sessions.replay.changes import newest_compaction
from agent_tui.sessions.shell_files import programs_run
from agent_tui.tools.git.command import GitSilentError
from agent_tui.tools.git.repository import read_repository
from agent_tui.tools.git.status import nearest_git
from agent_tui.tools.processes.keeper import ProcessKeeper

MOST_REPOSITORIES = 3
PATIENCE_S = 2.0
_MOST_REPLIES = 1_000


@dataclass(frozen=True, slots=True)
class RepositoryReader:
    """Asks git about the repositories in which a conversation worked.

    Args:
        keeper: Starts git.
        may_run_git: Whether git may run in a folder.
        environ: The environment of commands.
    """

    keeper: ProcessKeeper
    may_run_git: Callable[[Path], bool]
    environ: Mapping[str, str]

    async def read(self, log: SessionLog, cwd: Path) -> tuple[RepositoryState, ...]:
        """The states of at most `MOST_REPOSITORIES`, that of `cwd` first.

        Left out are those whose folder is gone, not trusted or of another owner, and those about
        which git says nothing within `PATIENCE_S` altogether.

        Args:
            log: The session, whose earlier compaction may have recorded the states then.
            cwd: Its working folder.
        """
        path = log.path_entries()
        newest = newest_compaction(path)
        earlier = newest.details.repositories if newest is not None else ()
        since = {state.root: state.since for state in earlier}
        began_s = milliseconds(log.header.timestamp) // 1_000
        found: dict[str, RepositoryState] = {}
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                for top in await asyncio.to_thread(self._tops, path, cwd):
                    with suppress(GitSilentError):
                        state = await read_repository(
                            self.keeper,
                            top,
                            self.environ,
                            began_s=began_s,
                            since=since.get(str(top)),
                        )
                        found[state.root] = state
        return tuple(found.values())

    def _tops(self, path: Sequence[Entry], cwd: Path) -> list[Path]:
        """The top folders of the repositories to ask about; none if `cwd` is gone."""
        if not cwd.is_dir():
            return []
        if "GIT_DIR" in self.environ:
            return [cwd] if self.may_run_git(cwd) else []
        tops: dict[Path, None] = {}
        for folder in _folders(path, cwd):
            git = nearest_git(folder, self.environ)
            if git is not None and git.parent not in tops and self.may_run_git(git.parent):
                tops[git.parent] = None
                if len(tops) == MOST_REPOSITORIES:
                    break
        return list(tops)


def _folders(path: Sequence[Entry], cwd: Path) -> Iterator[Path]:
    """The folders of changed files and of commands, that of `cwd` first, then the newest first."""
    yield real_path(cwd)
    messages = (entry.message for entry in reversed(path) if isinstance(entry, MessageEntry))
    replies = (message for message in messages if isinstance(message, AssistantMessage))
    for reply in islice(replies, _MOST_REPLIES):
        for action in map(action_of, reversed(reply.tool_calls)):
            named = [action.path] if action.kind in ("write", "edit") else []
            for program, arguments in programs_run(action.command) if action.command else ():
                if program == "cd" or (program == "git" and arguments[:1] == ("-C",)):
                    named += arguments[-1:] if program == "cd" else arguments[1:2]
            for name in filter(None, named):
                with suppress(OSError):
                    yield resolve_path(name, cwd)
