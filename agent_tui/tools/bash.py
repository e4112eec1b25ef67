"""The `bash` tool: one shell command in the workspace."""

import asyncio
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pydantic import Field

from agent_tui.errors import ToolError
from agent_tui.messages import Job, ToolDetails
from agent_tui.tools.base import (
    CallInterrupted,
    CommandPlace,
    Intent,
    ToolArguments,
    ToolContext,
    ToolOutput,
)
from agent_tui.tools.git.changes import GitChanges, Snapshot
from agent_tui.tools.job_table import MAX_RUNNING
from agent_tui.tools.processes.environment import outside_environ
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.processes.shell import (
    ShellCommand,
    ShellOrder,
    ShellResult,
    interruption_of,
)
from agent_tui.tools.sandbox.held import HeldFile
from agent_tui.tools.sandbox.hints import errors_in, outside_hint, stray_hint, wall_hint
from agent_tui.tools.sandbox.sandbox import Sandbox
from agent_tui.tools.sandbox.watch import ObeyedWatch, Settled

_LONGEST_TIMEOUT_S = 3_600
_SETTLE_S = 1.0
"""Seconds: a background command that fails at once is reported like any other command."""

_MOST_TOLD = 5
_NEEDS_WHY = "outside needs why: say in a few words what the command needs outside the sandbox."
_WALL_FELL = (
    "the sandbox ended while this ran, and with it all jobs; the next command gets a new one"
)


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
    command of the model leaves running continue as jobs of the conversation.
    """

    keeper: ProcessKeeper
    changes: GitChanges
    sandbox: Sandbox | None = None
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
        sandbox = None if context.is_persons else self.sandbox
        if sandbox is not None and (refusal := sandbox.refusal(context.cwd)):
            raise ToolError(f"{refusal}.")
        place = self._place(arguments, context)
        if place == "outside" and not arguments.why.strip():
            raise ToolError(_NEEDS_WHY)
        bound = (command, str(context.cwd.resolve()), place, str(arguments.background))
        is_coarse = place == "inside" and sandbox is not None and sandbox.is_coarse(context.cwd)
        return Intent(
            title=" ".join(command.split()),
            access="execute",
            command=command,
            place=place,
            is_coarse=is_coarse,
            purpose=" ".join(arguments.why.split()) if place == "outside" else "",
            body=command,
            body_kind="command",
            note="runs in the background" if arguments.background else "",
            fingerprint=hashlib.sha256(
                "\0".join(bound).encode("utf-8", "surrogatepass")
            ).hexdigest(),
        )

    def _place(self, arguments: BashArguments, context: ToolContext) -> CommandPlace:
        if context.is_persons or self.sandbox is None or not self.sandbox.state(context.cwd).is_on:
            return "open"
        return "outside" if arguments.outside else "inside"

    async def run(self, arguments: BashArguments, context: ToolContext) -> ToolOutput:
        """Run the command: its output, shortened if long, and how it ended or which job it is."""
        if arguments.background and context.jobs.is_full:
            raise ToolError(f"{MAX_RUNNING} background jobs are running; stop one with job first.")
        wall = self.sandbox if self._place(arguments, context) == "inside" else None
        watch = None if wall is None else wall.watch(context.cwd)
        if wall is None or watch is None:
            output, _ = await self._run(arguments, context, wall)
            return output
        watch.hidden.may_show = context.may_show
        await watch.note()
        watch.hidden.note_command(arguments.command)
        try:
            output, command = await self._run(arguments, context, wall)
        except BaseException:
            await watch.hold(is_told=False)
            watch.hidden.forget_command(arguments.command)
            raise
        is_job = bool(output.for_person.jobs)
        if is_job:
            command.call_when_over(partial(wall.look_again, watch, arguments.command))
            await wall.follow(context.cwd, context.jobs)
        settled = await watch.hold(is_over=not is_job)
        if not is_job:
            watch.hidden.forget_command(arguments.command)
        lines = [output.for_model, *_after(settled, context)]
        hint = watch.hidden.hint(arguments.command, output.for_model) if output.is_error else ""
        notices = filter(None, (hint, *watch.hidden.take_notices(output.for_model)))
        lines += () if wall.is_coarse(context.cwd) else (f"[{notice}]" for notice in notices)
        return replace(
            output,
            for_model="\n".join(lines),
            held=settled.held,
            settle_held=partial(_settle, wall, watch, context.cwd),
            notice=settled.notice,
        )

    async def _run(
        self, arguments: BashArguments, context: ToolContext, wall: Sandbox | None
    ) -> tuple[ToolOutput, ShellCommand]:
        """The result of a command, and the command, which may continue as a job."""
        keeper, order = await self._prepare(arguments, context, wall)
        known, before = await self._before(context)
        refusals = 0 if wall is None else wall.refusals
        find_changes = None if before is None else partial(self.changes.since, before)
        command = ShellCommand(keeper, order, context.emit)
        result: ShellResult | None = None
        try:
            jobs = await _wait(command, arguments, context)
            result = command.result(context.limits)
            await asyncio.to_thread(
                context.files.note_command, known, arguments.command, result.text, context.cwd
            )
        except asyncio.CancelledError as cancelled:
            await command.stop()
            output = _interrupted(command, result or command.result(context.limits))
            raise CallInterrupted(replace(output, find_changes=find_changes)) from cancelled
        except BaseException:
            await command.stop()
            command.output.drop_file()
            raise
        details = _details(command, result, _ending(result, jobs), jobs)
        is_error = bool(result.exit_code != 0 or result.excess)
        is_error = is_error and not (jobs and result.exit_code is None)
        hints: list[str] = []
        if wall is not None:
            is_told = wall.refusals > refusals
            ran = _Ran(arguments.command, result.text, is_error, is_told)
            hints = await asyncio.to_thread(_hints, wall, keeper, context, ran)
        output = ToolOutput(
            result.for_model(details.summary, hints),
            details,
            is_error=is_error,
            find_changes=find_changes,
        )
        return output, command

    async def _prepare(
        self, arguments: BashArguments, context: ToolContext, wall: Sandbox | None
    ) -> tuple[ProcessKeeper, ShellOrder]:
        """What starts a command, and what it is."""
        keeper, environ, secrets = self.keeper, context.environ, tuple(context.secrets)
        if self._place(arguments, context) == "outside":
            environ = outside_environ(environ)
        if wall is not None:
            is_read_only = not context.may_write
            keeper = await wall.keeper(context.cwd, is_read_only=is_read_only)
            environ = wall.environ(context.cwd, context.environ, is_read_only=is_read_only)
            secrets += await asyncio.to_thread(wall.shown_tokens, context.cwd)
        command = arguments.command
        return keeper, ShellOrder(command, context.cwd, environ, context.output_dir, secrets)

    async def _before(self, context: ToolContext) -> tuple[tuple[Path, ...], Snapshot | None]:
        """The known files as they are now, and the state of the work tree."""
        if context.only_reads:
            return (), None
        snapshot = self.changes.snapshot(context.cwd, context.environ)
        if context.is_persons or not context.files.seen:
            return (), await snapshot
        reading = asyncio.to_thread(context.files.find_unchanged)
        return await asyncio.gather(reading, snapshot)


async def _settle(
    wall: Sandbox, watch: ObeyedWatch, cwd: Path, held: HeldFile, may_stay: bool
) -> HeldFile:
    """Do what the user decided on `held`; returns where it is."""
    moved = await watch.decide(held, may_stay)
    if moved.aside != held.aside:  # what was put back is covered at once: a job may go on
        await wall.keeper(cwd)
    return moved


def _after(settled: Settled, context: ToolContext) -> Iterator[str]:
    """What the model is told about files that outside programs read."""
    for path in settled.brought[:_MOST_TOLD]:
        yield f"[{context.display_name(path)} was updated by git]"
    for held in settled.held:
        yield f"[{held.describe(context.display_name(held.path))}]"
    if settled.notice:
        yield f"[{settled.notice}]"


@dataclass(frozen=True, slots=True)
class _Ran:
    """How a command in the sandbox ran.

    Args:
        command: The command.
        output: What it printed.
        is_error: Whether it failed.
        is_network_told: Whether a refused connection is reported separately.
    """

    command: str
    output: str
    is_error: bool
    is_network_told: bool


def _hints(wall: Sandbox, keeper: ProcessKeeper, context: ToolContext, ran: _Ran) -> list[str]:
    """Hints for the model about the sandbox, after a command in it. Blocking."""
    home = os.fspath(wall.home)
    hints = [stray_hint(strays, home)] if (strays := wall.strays()) else []
    if ran.is_error and keeper.is_over:
        return [*hints, _WALL_FELL]
    errors = ran.output if ran.is_error else errors_in(ran.command, ran.output)
    hint = wall.hidden_hint(context.cwd, ran.command, errors, is_error=ran.is_error)
    if errors and not hint:
        view = wall.view(context.cwd)
        hint = wall_hint(errors, view, is_network_told=ran.is_network_told)
        hint = hint or ("" if view.stand_in else outside_hint(errors))
    return list(filter(None, (*hints, hint)))


async def _wait(
    command: ShellCommand, arguments: BashArguments, context: ToolContext
) -> tuple[Job, ...]:
    """Wait for `command` within its time; returns the job it becomes, if it does."""
    if arguments.background:
        await command.wait(_SETTLE_S)
    else:
        left_s, waited_s = arguments.timeout or context.default_timeout_s, context.waited_s()
        while left_s > 0 and not await command.wait_for_shell(left_s):
            waited_before_s, waited_s = waited_s, context.waited_s()
            left_s = waited_s - waited_before_s
    if not command.is_running:
        return ()
    is_late = command.exit_code is None and arguments.timeout is not None
    may_go_on = arguments.background or not is_late
    if not context.leaves_jobs or context.jobs.is_full or not may_go_on:
        await command.stop()
        return ()
    return (context.jobs.add(command).fact,)


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


def _ending(result: ShellResult, jobs: tuple[Job, ...]) -> str:
    if not jobs:
        return result.ending
    id = jobs[0].id
    if result.exit_code is not None:
        return f"{result.ending}; what is still running is job {id}"
    return f"continues in the background: job {id}"
