"""One command of the model in the sandbox, and what the model and the user are told after it."""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from agent_tui.features.sandbox.hints import errors_in, outside_hint, stray_hint, wall_hint
from agent_tui.features.sandbox.walls import Walls
from agent_tui.features.sandbox.watch import ObeyedWatch, Settled
from agent_tui.safe_paths import show_name
from agent_tui.tools.base import ToolContext, ToolOutput
from agent_tui.tools.command_sandbox import CommandRun, CommandStart
from agent_tui.tools.held_files import HeldFile
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.processes.shell import ShellCommand

_MOST_TOLD = 5
_THEIRS = "the user may have written it"
_WALL_FELL = (
    "the sandbox ended while this ran, and with it all jobs; the next command gets a new one"
)


@dataclass(slots=True)
class SandboxedRun(CommandRun):
    """A command in the sandbox `wall`; `watch` examines what it leaves, None for nothing.

    Args:
        wall: The sandbox.
        command: The command.
        context: That of its call.
        watch: The watch on the working folders.
    """

    wall: Walls
    command: str
    context: ToolContext
    watch: ObeyedWatch | None
    _keeper: ProcessKeeper = field(init=False)
    _refusals: int = field(default=0, init=False)

    async def begin(self) -> None:
        """Note the state of the working folders.

        Raises:
            ToolError: It cannot be noted, so the command may not run.
        """
        if (watch := self.watch) is not None:
            watch.hidden.may_show = self.context.may_show
            await watch.note()
            watch.hidden.note_command(self.command)

    async def start(self) -> CommandStart:
        """Set up the sandbox, or update it; return how the command is started inside.

        Raises:
            ToolError: It cannot be set up, or has ended.
        """
        cwd, is_read_only = self.context.cwd, not self.context.may_write
        self._keeper = await self.wall.keeper(cwd, is_read_only=is_read_only)
        environ = self.wall.environ(cwd, self.how.environ, is_read_only=is_read_only)
        tokens = await asyncio.to_thread(self.wall.shown_tokens, cwd)
        self._refusals = self.wall.refusals
        return CommandStart(self._keeper, environ, (*self.how.secrets, *tokens))

    async def hints(self, output: str, *, is_error: bool) -> Sequence[str]:
        """Return what the sandbox probably has to do with how the command ended."""
        hints = await asyncio.to_thread(self._hints, output, is_error)
        return [*map(show_name, hints)]

    def _hints(self, output: str, is_error: bool) -> Sequence[str]:
        wall, cwd, home = self.wall, self.context.cwd, os.fspath(self.wall.home)
        hints = [stray_hint(strays, home)] if (strays := wall.strays()) else []
        if is_error and self._keeper.is_over:
            return [*hints, _WALL_FELL]
        errors = output if is_error else errors_in(self.command, output)
        if hidden := wall.hidden_hints(cwd, self.command, errors, is_error=is_error):
            return [*hints, *hidden]
        if errors:
            view, is_told = wall.view(cwd), wall.refusals > self._refusals
            hint = wall_hint(errors, view, is_network_told=is_told)
            hints.append(hint or ("" if view.stand_in else outside_hint(errors)))
        return list(filter(None, hints))

    async def give_up(self) -> None:
        """Judge what it left so far; held files come with the next result."""
        if self.watch is not None:
            await self.watch.hold(is_told=False)
            self.watch.hidden.forget_command(self.command)

    async def finish(self, output: ToolOutput, command: ShellCommand) -> ToolOutput:
        """Judge what it left, and watch it further if it continues as a job.

        Raises:
            ToolError: Our folder for it cannot be used.
        """
        wall, watch, context = self.wall, self.watch, self.context
        if watch is None:
            return output
        is_job = bool(output.for_person.jobs)
        if is_job:
            command.call_when_over(partial(wall.look_again, watch, self.command))
            await wall.follow(context.cwd, context.jobs)
        settled = await watch.hold(is_over=not is_job)
        if not is_job:
            watch.hidden.forget_command(self.command)
        output = replace(
            output,
            held=settled.held,
            holder=_HeldFiles(wall, watch, context.cwd),
            notice=show_name(settled.notice),
        )
        try:
            lines = [*_after(settled, context), *self._hidden_notices(watch, output)]
        except Exception as error:  # noqa: BLE001 - the user still decides on what is held
            return output.with_failure(error)
        return replace(output, for_model="\n".join((output.for_model, *map(show_name, lines))))

    def _hidden_notices(self, watch: ObeyedWatch, output: ToolOutput) -> Iterator[str]:
        hint = watch.hidden.hint(self.command, output.for_model) if output.is_error else ""
        notices = filter(None, (hint, *watch.hidden.take_notices(output.for_model)))
        if not self.wall.is_coarse(self.context.cwd):
            yield from (f"[{notice}]" for notice in notices)


@dataclass(frozen=True, slots=True)
class _HeldFiles:
    """The files that a command in the sandbox `wall` left in `cwd`, which `watch` holds."""

    wall: Walls
    watch: ObeyedWatch
    cwd: Path

    async def decide(self, held: HeldFile, may_stay: bool) -> HeldFile:
        """Do what the user decided on `held`; returns where it is."""
        return await self.watch.decide(held, may_stay)

    async def find_held(self) -> tuple[HeldFile, ...]:
        """What there is to decide on now. What is followed is covered at once: a job may go on."""
        found = await self.watch.find_held()
        await self.wall.keeper(self.cwd)
        return found


def describe_held(found: Iterable[HeldFile], show: Callable[[Path], str]) -> Iterator[str]:
    """One line for each path of `found`, for the model and the user.

    Args:
        found: What the user decides on; of one path, a part may be set aside and a part in place.
        show: How a path is shown.
    """
    by_path = dict[Path, list[HeldFile]]()
    for held in found:
        by_path.setdefault(held.path, []).append(held)
    for path, versions in by_path.items():
        shown, first = show(path), versions[0]
        kind = "changed" if first.before else "new"
        is_any_in_place = any(held.is_in_place for held in versions)
        if all(held.is_in_place for held in versions):
            done = f"not held back, as {_THEIRS}: {shown}"
        else:
            done = f"held back: {shown}"
            kind += f"; what is there now stays, as {_THEIRS}" if is_any_in_place else ""
        yield f"{done} ({kind}): {first.who}; the user decides"


def _after(settled: Settled, context: ToolContext) -> Iterator[str]:
    """What the model is told about files that outside programs read."""
    for path in settled.brought[:_MOST_TOLD]:
        yield f"[{context.display_name(path)} was changed to a version in the user's commits]"
    for line in describe_held(settled.held, context.display_name):
        yield f"[{line}]"
    if settled.notice:
        yield f"[{settled.notice}]"
