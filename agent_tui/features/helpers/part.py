"""Helpers of one conversation: who may be started, and what those that write did."""

import asyncio
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agent_tui.agent.activity import Emit
from agent_tui.agent.part import Host, Part
from agent_tui.cli.folders import worktree_records
from agent_tui.features.helpers.explorer import Explorer
from agent_tui.features.helpers.helper_work import HelperWork
from agent_tui.features.helpers.kinds import find_agents, with_agents
from agent_tui.features.helpers.services import open_worktrees
from agent_tui.features.helpers.settings import HelperSettings
from agent_tui.features.helpers.worktrees import Worktrees
from agent_tui.features.helpers.writing import WorktreeHelpers
from agent_tui.messages import ToolSpec
from agent_tui.safe_text import printable_line
from agent_tui.tools.base import Ability
from agent_tui.tools.git.command import GitSilentError
from agent_tui.tools.processes.keeper import ProcessKeeper

_READING: Final = "explore"
_WRITING: Final = "delegate"
_LARGE_WINDOW: Final = 60_000
"""Tokens. A helper has the same window: in a smaller one it has little space to read, and models
with such windows seldom use helpers well."""


class HelpersPart(Part):
    """Offers the tools that start helpers, and keeps what helpers did until it is brought over."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._work: dict[str, HelperWork] = {}
        self._keeper = ProcessKeeper(host.services.settings.max_processes)

    def follow(self, earlier: Part) -> None:
        """Start git as before."""
        assert isinstance(earlier, HelpersPart)
        self._keeper = earlier._keeper

    async def close(self) -> None:
        """End the process that starts git."""
        self._keeper.close()

    def abilities(self, emit: Emit) -> Sequence[Ability]:
        """What `explore` and `delegate` ask for."""
        host = self.host
        return (
            Explorer(host, emit),
            WorktreeHelpers(host, emit, self._open_worktrees, self._work),
        )

    def offered(
        self, specs: Sequence[ToolSpec], window: int, *, is_planning: bool
    ) -> Sequence[ToolSpec]:
        """`specs` with the kinds of helpers that `explore` can start, or without such tools."""
        services = self.host.services
        left_out = {_READING, _WRITING} if 0 < window < _LARGE_WINDOW else set[str]()
        if is_planning or not services.settings.of(HelperSettings).writing_helpers:
            left_out.add(_WRITING)
        kept = [spec for spec in specs if spec.name not in left_out]
        cwd = self.host.conversation.cwd
        return with_agents(kept, find_agents(cwd, services.user_config_dir, services.trust).by_name)

    async def way_back(self, folder: Path, session: str) -> str:
        """How to continue the session with the id `session` in its worktree, which was removed.

        Empty if `folder` was in none, or git may not run in its repository or does not answer.
        """
        services, records = self.host.services, worktree_records()
        removed = await asyncio.to_thread(records.removed_around, folder)
        if removed is None or not await asyncio.to_thread(
            services.trust.may_run_git, removed.repository
        ):
            return ""
        worktrees = Worktrees(self._keeper, services.person_environ, records)
        try:
            has_branch = await worktrees.has_branch(removed)
        except GitSilentError:
            return ""
        where, name = removed.repository, printable_line(removed.name)
        branch = "; its branch stays" if has_branch else " with its branch"
        command = f"agent-tui --worktree {shlex.quote(name)} -r {session[:8]}"
        return (
            f"Its worktree {name} was removed{branch}. To continue in "
            f"{'that branch' if has_branch else 'a new one'}: "
            f"cd {shlex.quote(str(where))} && {command}"
        )

    def _open_worktrees(self) -> Worktrees:
        services = self.host.services
        return open_worktrees(services.settings, services.person_environ, self._keeper)
