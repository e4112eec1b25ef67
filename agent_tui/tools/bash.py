"""The `bash` tool: one shell command in the workspace."""

import asyncio
import hashlib
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import Field

from agent_tui.messages import Job, ToolDetails
from agent_tui.tools.base import Intent, Place, ToolArguments, ToolContext, ToolError, ToolOutput
from agent_tui.tools.git.changes import GitChanges, Snapshot
from agent_tui.tools.jobs.table import MAX_RUNNING
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.processes.sandbox import Sandbox, refusal_hint
from agent_tui.tools.processes.shell import ShellCommand, ShellOrder, ShellResult

_LONGEST_TIMEOUT_S = 3_600
_SETTLE_S = 1.0
"""A background command that fails at once (a name misspelt, a port in use) is told as any other."""

_OWN_NETWORK = "the sandbox isolates each command's network: other commands cannot reach its ports"


_NEEDS_WHY = "outside needs why: say in a few words what the command needs outside the sandbox."


class BashArguments(ToolArguments):
    """Arguments of `bash`."""

    command: str = Field(min_length=1)
    timeout: float | None = Field(
        default=None,
        gt=0,
        le=_LONGEST_TIMEOUT_S,
        description="seconds, then it is killed; if omitted, it becomes a job after 120",
    )
    background: bool = Field(default=False, description="run as a job: servers, long work")
    outside: bool = Field(default=False, description="run outside the sandbox; asks the user")
    why: str = Field(default="", description="with outside: what it needs there")


@dataclass(frozen=True, slots=True)
class BashTool:
    """Runs commands without a terminal; see `ShellCommand` for what bounds them.

    Those of the model run in `sandbox`, where there is one. The files a command changed are found
    by `changes` after the result, however the command ended.

    What is wanted in the background, what takes longer than anybody said it may, and what a
    command of the model's leaves running goes on as a job of the conversation.
    """

    keeper: ProcessKeeper
    changes: GitChanges
    sandbox: Sandbox | None = None
    name: str = "bash"
    arguments_type: type[BashArguments] = BashArguments

    def intent(self, arguments: BashArguments, context: ToolContext) -> Intent:
        """The exact command; what it may touch is for the approvals to find out."""
        command = arguments.command
        if "\0" in command:
            raise ToolError("command contains a NUL character. Remove it.")
        sandbox = None if context.is_persons else self.sandbox
        if sandbox is not None and (refusal := sandbox.refusal(context.cwd)):
            raise ToolError(f"{refusal}.")
        place = self._place(arguments, context)
        if place == "outside" and not arguments.why.strip():
            raise ToolError(_NEEDS_WHY)
        goes_on = arguments.background
        bound = "\0".join((command, str(context.cwd.resolve()), place, str(goes_on)))
        return Intent(
            title=" ".join(command.split()),
            access="execute",
            command=command,
            place=place,
            purpose=" ".join(arguments.why.split()) if place == "outside" else "",
            body=command,
            body_kind="command",
            note="runs in the background" if goes_on else "",
            fingerprint=hashlib.sha256(bound.encode("utf-8", "surrogatepass")).hexdigest(),
        )

    def _place(self, arguments: BashArguments, context: ToolContext) -> Place:
        if context.is_persons or self.sandbox is None or not self.sandbox.state(context.cwd).is_on:
            return "open"
        return "outside" if arguments.outside else "inside"

    async def run(self, arguments: BashArguments, context: ToolContext) -> ToolOutput:
        """Output, shortened if long, and how it ended or as which job it goes on."""
        if arguments.background and context.jobs.is_full:
            raise ToolError(f"{MAX_RUNNING} background jobs are running; stop one with job first.")
        prefix: tuple[str, ...] = ()
        if self.sandbox is not None and self._place(arguments, context) == "inside":
            prefix = await asyncio.to_thread(self.sandbox.prefix, context.cwd)
        files = context.files
        known: tuple[Path, ...] = ()
        before: Snapshot | None = None
        if not context.only_reads:
            if not context.is_persons:
                known = await asyncio.to_thread(files.known_as_they_are)
            before = await self.changes.snapshot(context.cwd, context.environ)
        command = ShellCommand(self.keeper, _order(arguments, context, prefix), context.emit)
        try:
            jobs = await _wait(command, arguments, context)
            result = command.result(context.limits)
            await asyncio.to_thread(
                files.note_command, known, arguments.command, result.text, context.cwd
            )
        except BaseException:
            await command.stop()
            command.output.drop_file()
            raise
        path = result.full_output_path
        if path is None and not jobs:
            command.output.drop_file()
        details = ToolDetails(
            summary=_ending(result, jobs),
            exit_code=result.exit_code,
            truncated=result.is_cut,
            full_output_path=None if path is None else os.fspath(path),
            printed_lines=result.printed_lines,
            jobs=jobs,
        )
        is_error = bool(result.exit_code != 0 or result.excess)
        is_error = is_error and not (jobs and result.exit_code is None)
        hint = refusal_hint(result.text) if prefix and is_error else ""
        if prefix and jobs:
            hint = _OWN_NETWORK
        return ToolOutput(
            result.for_model(details.summary, hint),
            details,
            is_error=is_error,
            find_changes=None if before is None else partial(self.changes.since, before),
        )


def _order(arguments: BashArguments, context: ToolContext, prefix: tuple[str, ...]) -> ShellOrder:
    return ShellOrder(
        command=arguments.command,
        cwd=context.cwd,
        environ=context.environ,
        output_dir=context.output_dir,
        prefix=prefix,
        secrets=context.secrets,
    )


async def _wait(
    command: ShellCommand, arguments: BashArguments, context: ToolContext
) -> tuple[Job, ...]:
    """Wait for `command` as long as it may take; the job as which it goes on, if it does."""
    if arguments.background:
        await command.wait(_SETTLE_S)
    else:
        await command.wait_for_shell(arguments.timeout or context.default_timeout_s)
    if not command.is_running:
        return ()
    is_late = command.exit_code is None and arguments.timeout is not None
    may_go_on = arguments.background or not is_late
    if context.is_persons or context.jobs.is_full or not may_go_on:
        await command.stop()
        return ()
    return (context.jobs.add(command).fact,)


def _ending(result: ShellResult, jobs: tuple[Job, ...]) -> str:
    if not jobs:
        return result.ending
    id = jobs[0].id
    if result.exit_code is not None:
        return f"{result.ending}; what is still running is job {id}"
    return f"continues in the background: job {id}"
