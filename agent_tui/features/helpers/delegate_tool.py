"""The `delegate` tool: a helper changes files in its own worktree, and the user merges them."""

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from agent_tui.errors import ToolError
from agent_tui.features.helpers.helper_work import HelperChange, HelperWork
from agent_tui.features.helpers.three_way import merge
from agent_tui.messages import FileTouches, ToolDetails
from agent_tui.tools.base import Ability, Intent, ToolArguments, ToolContext, ToolOutput
from agent_tui.tools.files.diffs import unified_diff
from agent_tui.tools.files.text_files import FileChange, decode, intent_for, read_bytes
from agent_tui.tools.registry import OfferedTool, ToolHost, offer_tool

_ASKS = "a helper made these changes"


class DelegateArguments(ToolArguments):
    """Arguments of `delegate`: one of both."""

    task: str = ""
    bring: str = Field(default="", description="a helper's branch")


class WritingHelpers(Ability):
    """Helpers that write, each in its own worktree."""

    unavailable: ClassVar[str] = "Helpers that write are not available here."

    @abstractmethod
    async def answer_call(self, task: str, say: Callable[[str], None]) -> ToolOutput:
        """Have a helper do `task` in a new worktree; returns its answer and its branch.

        Raises:
            ToolError: Helpers cannot write here.
        """

    @abstractmethod
    def work_on(self, branch: str) -> HelperWork:
        """What the helper of `branch` did.

        Raises:
            ToolError: No helper of this conversation has that branch.
        """

    @abstractmethod
    async def drop(self, work: HelperWork) -> None:
        """Delete the branch of `work`, which was brought over."""


@dataclass(frozen=True, slots=True)
class DelegateTool:
    """Passes a task to a helper that may write, and applies what it did."""

    name: str = "delegate"
    description: str = (
        "Let a helper do `task` in its own git worktree; `bring` then merges its branch here.\n"
        "For changes apart from yours; several run in parallel. It sees only `task`."
    )
    arguments_type: type[DelegateArguments] = DelegateArguments

    def intent(self, arguments: DelegateArguments, context: ToolContext) -> Intent:
        """Starting a helper changes nothing here; bringing its work over writes its files.

        Raises:
            ToolError: The arguments name neither or both, there is no such work, or it conflicts.
        """
        task, branch = " ".join(arguments.task.split()), arguments.bring.strip()
        if bool(task) == bool(branch):
            raise ToolError("Give either task, or bring with a helper's branch.")
        if task:
            title = f"delegate {task}"
            return Intent(title=title, access="read", paths=(context.resolve("."),))
        changes = _plan_changes(context.use(WritingHelpers).work_on(branch), context)
        intent = intent_for(f"bring over {branch}", *(change for change, _ in changes))
        return intent.deciding(_ASKS)

    async def run(self, arguments: DelegateArguments, context: ToolContext) -> ToolOutput:
        """The helper's answer and its branch, or which files were written."""
        helpers = context.use(WritingHelpers)
        if task := arguments.task.strip():
            return await helpers.answer_call(task, context.emit)
        work = helpers.work_on(arguments.bring.strip())
        output = await asyncio.to_thread(_apply, work, context)
        if work.left_out:
            names = ", ".join(work.left_out)
            said = f"Not brought over: {names}. The branch {work.worktree.branch} has it."
            return ToolOutput(f"{output.for_model}\n{said}", output.for_person)
        await helpers.drop(work)
        return output


def make_delegate(_host: ToolHost) -> OfferedTool:
    """The tool, as it is offered."""
    return offer_tool(DelegateTool())


def changes_diff(work: HelperWork) -> str:
    """What a helper changed, as one diff."""
    return "".join(
        unified_diff(_text(change.before), _text(change.after), change.name).text
        for change in work.changes
    )


def _apply(work: HelperWork, context: ToolContext) -> ToolOutput:
    planned = _plan_changes(work, context)
    done: list[str] = []
    for change, helper in planned:
        try:
            change.write(context)
            if helper.is_program and change.before is None:
                change.path.chmod(0o755)
        except (ToolError, OSError) as error:
            before = f" Already written: {', '.join(done)}." if done else ""
            raise ToolError(f"{error}{before}") from error
        done.append(f"{change.verb} {context.display_name(change.path)} ({change.diff.counts})")
    changes = [change for change, _ in planned]
    added = sum(change.diff.added for change in changes)
    removed = sum(change.diff.removed for change in changes)
    details = ToolDetails(
        summary=f"+{added} -{removed}",
        diff="".join(change.diff.text for change in changes),
        files=FileTouches(
            written=tuple(str(change.path) for change in changes if change.before is None),
            edited=tuple(str(change.path) for change in changes if change.before is not None),
        ),
    )
    said = f"Done: {'; '.join(done)}." if done else "All of it is here already."
    return ToolOutput(said, details)


def _plan_changes(work: HelperWork, context: ToolContext) -> list[tuple[FileChange, HelperChange]]:
    """The changes to make here, none if there is a conflict.

    Raises:
        ToolError: Names the files in conflict, and where the helper's work is.
    """
    planned: list[tuple[FileChange, HelperChange]] = []
    conflicts: list[str] = []
    for change in work.changes:
        path = context.resolve(str(work.top / change.name))
        ours = read_bytes(path, context) if path.exists() else None
        is_merged, after = _merge_change(change, ours)
        if not is_merged:
            conflicts.append(context.display_name(path))
        elif after != ours:
            diff = unified_diff(_text(ours), _text(after), context.display_name(path))
            planned.append((FileChange(path, ours, after, diff), change))
    if conflicts:
        branch = work.worktree.branch
        raise ToolError(
            f"Conflicts in {', '.join(conflicts)}: changed here since the helper began, in the "
            f"same lines. Nothing was written, and the branch {branch} keeps the helper's work. "
            f"See git diff {work.base[:10]} {branch} -- FILE, and make its changes with edit."
        )
    return planned


def _merge_change(change: HelperChange, ours: bytes | None) -> tuple[bool, bytes | None]:
    """Whether a helper's change can be made to `ours`, and the result."""
    if ours in (change.before, change.after):
        return True, change.after
    if ours is None or change.before is None or change.after is None:
        return False, None
    if any(decode(one) is None for one in (ours, change.before, change.after)):
        return False, None
    after = merge(change.before, ours, change.after)
    end, before_end = _line_end(ours), _line_end(change.before)
    if after is None and end and before_end and before_end == _line_end(change.after):
        before, theirs = (_with_line_ends(one, end) for one in (change.before, change.after))
        after = merge(before, ours, theirs)
    return after is not None, after


def _line_end(content: bytes) -> bytes:
    """The line ending of all lines; empty if they differ, or an encoding hides them."""
    if b"\0" in content:
        return b""
    count = content.count(b"\r\n")
    return {content.count(b"\n"): b"\r\n", 0: b"\n"}.get(count, b"")


def _with_line_ends(content: bytes, ends: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n").replace(b"\n", ends)


def _text(content: bytes | None) -> str:
    if content is None:
        return ""
    decoded = decode(content)
    return decoded.raw_text if decoded is not None else f"(binary, {len(content):,} bytes)\n"


def branch_words(task: str) -> str:
    """A few words of `task`, fit for the name of a branch."""
    words = "".join(char if char.isascii() and char.isalnum() else " " for char in task.lower())
    return "-".join(words.split()[:4])[:30].strip("-") or "work"
