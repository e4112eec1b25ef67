"""The `bash` tool: one shell command in the workspace."""

import asyncio
import hashlib
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path

from pydantic import Field

from agent_tui.errors import ToolError
from agent_tui.messages import Job, ToolDetails
from agent_tui.safe_paths import real_path
from agent_tui.tools.base import (
    CallInterrupted,
    CommandPlace,
    Intent,
    ToolArguments,
    ToolContext,
    ToolOutput,
)
from agent_tui.tools.command_sandbox import (
    NO_SANDBOX,
    CommandRun,
    CommandSandbox,
    CommandStart,
)
from agent_tui.tools.git.changes import GitChanges, Snapshot
from agent_tui.tools.job_table import MAX_RUNNING
from agent_tui.tools.processes.environment import outside_environ
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.processes.shell import (
    IN_BACKGROUND,
    ShellCommand,
    ShellOrder,
    ShellResult,
    interruption_of,
)

_LONGEST_TIMEOUT_S = 3_600
_SETTLE_S = 1.0
"""Seconds: a background command that fails at once is reported like any other command."""

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
    outside: bool = Field(default=False, description="run outside the sandbox; needs permission")
    why: str = Field(default="", description="with outside: what it needs there")


@dataclass(frozen=True, slots=True)
class BashTool:
    """Runs commands without a terminal; see `ShellCommand` for their limits.

    The model's commands run in `sandbox`, if there is one, unless they request `outside`. `changes`
    finds the files a command changed after the result, however it ended.

    Commands requested in the background, commands that exceed the default timeout, and what a
    command of the model leaves running continue as jobs of the conversation. So does any command
    that the user moves to the background.
    """

    keeper: ProcessKeeper
    changes: GitChanges
    sandbox: CommandSandbox = NO_SANDBOX
    name: str = "bash"
    description: str = (
        "Run a command with bash in the workspace.\n"
        "No terminal, no input. For files prefer read, edit, write, grep and find."
    )
    arguments_type: type[BashArguments] = BashArguments

    def intent(self, arguments: BashArguments, context: ToolContext) -> Intent:
        """The exact command; the approvals determine what it may touch."""
        command = arguments.command
        if "\0" in command:
            raise ToolError("command contains a NUL character. Remove it.")
        if not context.is_persons and (refusal := self.sandbox.refusal(context.cwd)):
            raise ToolError(f"{refusal}.")
        place = self._place(arguments, context)
        if place == "outside" and not arguments.why.strip():
            raise ToolError(_NEEDS_WHY)
        bound = (command, str(real_path(context.cwd)), place, str(arguments.background))
        return Intent(
            title=" ".join(command.split()),
            access="execute",
            command=command,
            place=place,
            is_coarse=place == "inside" and self.sandbox.is_coarse(context.cwd),
            purpose=" ".join(arguments.why.split()) if place == "outside" else "",
            body=command,
            body_kind="command",
            note="runs in the background" if arguments.background else "",
            fingerprint=hashlib.sha256(
                "\0".join(bound).encode("utf-8", "surrogatepass")
            ).hexdigest(),
        )

    def _place(self, arguments: BashArguments, context: ToolContext) -> CommandPlace:
        if context.is_persons or not self.sandbox.is_on(context.cwd):
            return "open"
        return "outside" if arguments.outside else "inside"

    async def run(self, arguments: BashArguments, context: ToolContext) -> ToolOutput:
        """Run the command: its output, shortened if long, and how it ended or which job it is."""
        if arguments.background and context.jobs.is_full:
            raise ToolError(f"{MAX_RUNNING} background jobs are running; stop one with job first.")
        run = self._prepare(arguments, context)
        await run.begin()
        try:
            output, command = await self._run(arguments, context, run)
        except BaseException:
            await run.give_up()
            raise
        try:
            return await run.finish(output, command)
        except Exception as error:  # noqa: BLE001 - the command has run: its output is never lost
            return replace(output.with_failure(error), is_error=True)

    def _prepare(self, arguments: BashArguments, context: ToolContext) -> CommandRun:
        """The run of a command, where it is to run."""
        place, environ = self._place(arguments, context), context.environ
        if place == "outside":
            environ = outside_environ(environ)
        how = CommandStart(self.keeper, environ, tuple(context.secrets))
        if place == "inside":
            return self.sandbox.run(arguments.command, context, how)
        return CommandRun(how)

    async def _run(
        self, arguments: BashArguments, context: ToolContext, run: CommandRun
    ) -> tuple[ToolOutput, ShellCommand]:
        """The result of a command, and the command, which may continue as a job."""
        keeper, environ, secrets = await run.start()
        order = ShellOrder(arguments.command, context.cwd, environ, context.output_dir, secrets)
        known, before = await self._before(context)
        find_changes = None if before is None else partial(self.changes.since, before)
        command = ShellCommand(keeper, order, context.emit)
        result: ShellResult | None = None
        failures, hints = list[Exception](), tuple[str, ...]()
        try:
            jobs = await _wait(command, arguments, context)
            result = command.result(context.limits)
            note = partial(context.files.note_command, known, arguments.command, result.text)
            with _keep_errors(failures):
                await asyncio.to_thread(note, context.cwd)
        except asyncio.CancelledError as cancelled:
            await command.stop()
            output = _interrupted(command, result or command.result(context.limits))
            raise CallInterrupted(replace(output, find_changes=find_changes)) from cancelled
        except BaseException:
            await command.stop()
            command.output.drop_file()
            raise
        ending, in_full = _ending(command, result, jobs)
        details = _details(command, result, ending, jobs)
        is_error = bool(result.exit_code != 0 or result.excess)
        is_error = is_error and not (jobs and result.exit_code is None)
        with _keep_errors(failures):
            hints = tuple(await run.hints(result.text, is_error=is_error))
        output = ToolOutput(
            result.for_model(in_full, hints),
            details,
            is_error=is_error,
            find_changes=find_changes,
        )
        return reduce(ToolOutput.with_failure, failures, output), command

    async def _before(self, context: ToolContext) -> tuple[tuple[Path, ...], Snapshot | None]:
        """The known files as they are now, and the state of the work tree."""
        if context.only_reads:
            return (), None
        snapshot = self.changes.snapshot(context.cwd, context.environ)
        if context.is_persons or not context.files.seen:
            return (), await snapshot
        reading = asyncio.to_thread(context.files.find_unchanged)
        return await asyncio.gather(reading, snapshot)


@contextmanager
def _keep_errors(failures: list[Exception]) -> Generator[None]:
    """Add what the block raises to `failures`: the command has run, its output is never lost."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - reported with the output
        failures.append(error)


async def _wait(
    command: ShellCommand, arguments: BashArguments, context: ToolContext
) -> tuple[Job, ...]:
    """Wait for `command` within its time; returns the job it becomes, if it does."""
    if arguments.background:
        await command.wait(_SETTLE_S)
    else:
        with context.jobs.awaiting(command):
            await _wait_in_front(command, arguments, context)
    if not command.is_running:
        return ()
    is_late = command.exit_code is None and arguments.timeout is not None
    may_go_on = context.leaves_jobs and (arguments.background or not is_late)
    if context.jobs.is_full or not (may_go_on or command.is_moved):
        await command.stop()
        return ()
    return (context.jobs.add(command).fact,)


async def _wait_in_front(
    command: ShellCommand, arguments: BashArguments, context: ToolContext
) -> None:
    left_s, waited_s = arguments.timeout or context.default_timeout_s, context.waited_s()
    while left_s > 0 and not await command.wait_for_shell(left_s):
        waited_before_s, waited_s = waited_s, context.waited_s()
        left_s = waited_s - waited_before_s


def _interrupted(command: ShellCommand, result: ShellResult) -> ToolOutput:
    """What the stopped `command` had printed when the user interrupted it."""
    ending, in_full = interruption_of(result.elapsed_s)
    details = _details(command, result, ending).model_copy(update={"ending": "cancelled"})
    return ToolOutput(result.for_model(in_full), details, is_error=True)


def _details(
    command: ShellCommand, result: ShellResult, ending: str, jobs: tuple[Job, ...] = ()
) -> ToolDetails:
    """The details of `result`; the file with the whole output goes if nobody needs it."""
    path = result.full_output_path
    if path is None and not jobs:
        command.output.drop_file()
    return ToolDetails(
        summary=ending,
        exit_code=result.exit_code,
        truncated=result.is_cut,
        full_output_path=None if path is None else os.fspath(path),
        printed_lines=result.printed_lines,
        jobs=jobs,
    )


def _ending(command: ShellCommand, result: ShellResult, jobs: tuple[Job, ...]) -> tuple[str, str]:
    """How the call ended: shortly, for the user, and in full, for the model."""
    if not jobs:
        return result.ending, result.ending
    id = jobs[0].id
    if result.exit_code is not None:
        ending = f"{result.ending}; what is still running is job {id}"
        return ending, ending
    ending = f"{IN_BACKGROUND}: job {id}"
    why = "; the user moved it there" if command.is_moved else ""
    return ending, f"{ending}{why}. Use job to get its further output"
