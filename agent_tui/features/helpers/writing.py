"""Helpers that write, each in its own worktree; the user decides what comes over."""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.part import Host
from agent_tui.errors import ToolError
from agent_tui.events import Notice
from agent_tui.features.helpers.delegate_tool import WritingHelpers, branch_words, changes_diff
from agent_tui.features.helpers.explorer import HelperStarter, short_task
from agent_tui.features.helpers.helper_work import HelperWork
from agent_tui.features.helpers.kinds import READING_TOOLS, writing_fitter
from agent_tui.features.helpers.settings import HelperSettings
from agent_tui.features.helpers.tool_subset import ToolSubset
from agent_tui.features.helpers.worktrees import WorkLeft, Worktrees
from agent_tui.tools.base import ToolOutput
from agent_tui.tools.files.diffs import line_counts
from agent_tui.tools.git.command import GitSilentError
from agent_tui.tools.git.worktree import Worktree
from agent_tui.tools.selection import select_tools

WRITING_TOOLS = ("edit", "apply_patch", "write")
_MOST_FILES_NAMED = 30


class WorktreeHelpers(HelperStarter, WritingHelpers):
    """Helpers that write.

    Args:
        host: This and the next: see `HelperStarter`.
        emit: See there.
        open_worktrees: Returns what creates their worktrees.
        work: What helpers did that was not brought over, by branch. They add to it.
    """

    def __init__(
        self,
        host: Host,
        emit: Emit,
        open_worktrees: Callable[[], Worktrees],
        work: dict[str, HelperWork],
    ) -> None:
        super().__init__(host, emit)
        self._open_worktrees = open_worktrees
        self._work = work

    async def answer_call(self, task: str, say: Callable[[str], None]) -> ToolOutput:
        """Have a helper do `task` in a new worktree; returns its answer and its branch.

        Its worktree begins with the user's uncommitted changes. At the end, all it did is committed
        to the branch. If the call is cancelled, the worktree stays as it is.

        Raises:
            ToolError: Helpers cannot write here.
            UsageError: The folder in the settings cannot be used.
            WorktreeError: The worktree cannot be created.
        """
        cwd = self._conversation.cwd
        if not self._services.settings.of(HelperSettings).writing_helpers:
            raise ToolError("Helpers may not write: the setting writing_helpers is off.")
        if self._conversation.permissions.mode == "plan":
            raise ToolError("In plan mode, helpers can only read: use explore.")
        if not await asyncio.to_thread(self._services.trust.may_run_git, cwd):
            raise ToolError("Helpers can only write in a trusted git repository.")
        worktrees = self._open_worktrees()
        repository = await worktrees.repository(cwd)
        name = f"agent-tui/{branch_words(task)}-{secrets.token_hex(2)}"
        worktree, lock = await worktrees.create(cwd, name, runs_filters=False)
        try:
            base = await worktrees.helpers.begin(worktree, repository.top)
            below = worktree.path / cwd.relative_to(repository.top)
            place = below if await asyncio.to_thread(below.is_dir) else worktree.path
            helper = self._helper(task, place)
            answer = await self._run(helper, task, say)
            work, left = await self._settle(worktrees, worktree, repository.top, base, task)
        except BaseException:
            said = f"The helper was interrupted. Its worktree stays: {worktree.path}"
            self._emit(Notice("warning", said))
            await asyncio.to_thread(worktrees.records.store, worktree, "kept")
            raise
        finally:
            lock.release()
        if left.is_any:
            self._emit(Notice("info", f"A helper's worktree is kept: {left}. {worktree.path}"))
        return self._told(answer, work, left)

    def work_on(self, branch: str) -> HelperWork:
        """What the helper of `branch` did.

        Raises:
            ToolError: No helper of this conversation has that branch.
        """
        known = self._work
        if branch not in known:
            names = ", ".join(known) or "none"
            raise ToolError(
                f"No helper of this conversation has the branch {branch!r}. Branches: {names}. "
                "Merge others with git."
            )
        return known[branch]

    async def drop(self, work: HelperWork) -> None:
        """Delete the branch of `work`, which was brought over."""
        self._work.pop(work.worktree.branch, None)
        await self._open_worktrees().drop_branch(work.worktree, work.tip)

    def _helper(self, task: str, cwd: Path) -> Conversation:
        conversation, services = self._conversation, self._services
        mode = "full" if conversation.permissions.mode == "full" else "accept-edits"
        permissions = services.make_permissions(cwd, mode)
        permissions.continue_from(conversation.permissions)
        suited = select_tools(services.toolbox.specs, conversation.model.model_id)
        wanted = {*READING_TOOLS, *WRITING_TOOLS} & {spec.name for spec in suited}
        toolbox = ToolSubset(services.toolbox, wanted)
        return self._open(
            f"delegate: {short_task(task)}",
            conversation.model,
            toolbox,
            cwd,
            permissions.for_writing_helper(),
            writing_fitter(toolbox.specs, cwd),
        )

    async def _settle(
        self, worktrees: Worktrees, worktree: Worktree, top: Path, base: str, task: str
    ) -> tuple[HelperWork, WorkLeft]:
        """Commit what the helper did, and remove its folder; the branch stays if there is work.

        Returns the work, and what git left out of it, so that the folder stays.
        """
        done = "not committed"
        try:
            tip = await worktrees.helpers.commit(worktree, short_task(task))
            done = f"on the branch {worktree.branch}, but git cannot show it here"
            work = await worktrees.helpers.work(worktree, top, base, tip)
        except GitSilentError as error:
            raise ToolError(f"The helper's work is {done} ({error}).") from error
        left = await worktrees.remove_folder(worktree)
        if work.changes or work.left_out:
            self._work[worktree.branch] = work
        elif not left.is_any:
            await worktrees.drop_branch(worktree, tip)
        return work, left

    def _told(self, answer: ToolOutput, work: HelperWork, left: WorkLeft) -> ToolOutput:
        """The helper's answer with what it changed, and how to bring that over."""
        if left.is_any:
            kept = f"(Not on its branch, only in {work.worktree.path}: {left}.)"
            answer = replace(answer, for_model=f"{answer.for_model}\n\n{kept}")
        if not (work.changes or work.left_out):
            changed = "" if left.is_any else "\n\n(It changed no files.)"
            return replace(answer, for_model=f"{answer.for_model}{changed}")
        diff = changes_diff(work)
        added, removed = line_counts(diff)
        names = [*(change.name for change in work.changes), *work.left_out]
        shown = ", ".join(names[:_MOST_FILES_NAMED]) + (", ..." * (len(names) > _MOST_FILES_NAMED))
        branch = work.worktree.branch
        said = (
            f"{answer.for_model}\n\n(Changed on the branch {branch}, not here: {shown}, "
            f"+{added} -{removed}. delegate bring={branch} merges it here; "
            f"git diff {work.base[:10]} {branch} shows it.)"
        )
        summary = f"{answer.for_person.summary}, +{added} -{removed}"
        details = answer.for_person.model_copy(update={"summary": summary})
        return replace(answer, for_model=said, for_person=details)
