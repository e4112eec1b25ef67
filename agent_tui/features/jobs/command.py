"""``/jobs`` and ``/background``: commands that run in the background."""

import asyncio
from collections.abc import Iterator
from typing import Literal, TypeAlias

from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import (
    Choice,
    Front,
    Listing,
    Page,
    PageSection,
    Question,
    Row,
)
from agent_tui.tools.job_table import BackgroundCommand

JobAction: TypeAlias = Literal["output", "stop"]

_NOTHING = "No background jobs."
_SHOWN_LINES = 200


def _completions(front: Front) -> Iterator[Completion]:
    for job in front.runtime.conversation.jobs.jobs:
        yield Completion(job.id, f"show its output: {job.fact.shown}")
        if job.is_running:
            yield Completion(f"stop {job.id}", job.fact.shown)


@command("[ID | stop ID]", completions=_completions)
async def jobs(front: Front, argument: str) -> None:
    """Show or stop background jobs."""
    table = front.runtime.conversation.jobs
    verb, _, id = argument.rpartition(" ")
    if not argument:
        await _choose(front, table.jobs)
    elif verb not in ("", "stop"):
        front.say(f"/jobs takes ID or stop ID, not {argument}.", "warning")
    elif (job := table.find(id)) is None:
        known = ", ".join(job.id for job in table.jobs)
        there_are = f"Jobs: {known}." if known else _NOTHING
        front.say(f"No job {id}. {there_are}", "warning")
    elif verb:
        await _stop(front, job)
    else:
        await _show(front, job)


@command()
async def background(front: Front, _argument: str) -> None:
    """Move the running command to the background."""
    if not front.runtime.conversation.jobs.move_awaited():
        front.say("No command has started that could go on in the background.")


async def _choose(front: Front, known: tuple[BackgroundCommand, ...]) -> None:
    if not known:
        front.say(_NOTHING)
        return
    if not front.can_pick:
        rows = tuple((job.id, f"{job.state}: {job.fact.shown}") for job in known)
        await front.show(Page("Background jobs", (PageSection("", rows),)))
        return
    choices = tuple(
        Choice(job, job.fact.shown, details=f"job {job.id}, {job.state}") for job in known
    )
    picked = await front.pick(Listing("Background jobs", choices, _NOTHING))
    if picked is None or isinstance(picked, str):
        return
    action: JobAction | None = "output"
    if picked.is_running:
        action = await front.ask(_what_then(picked))
    match action:
        case "output":
            await _show(front, picked)
        case "stop":
            await _stop(front, picked)
        case None:
            pass


def _what_then(job: BackgroundCommand) -> Question[JobAction]:
    show: Choice[JobAction] = Choice("output", "show its output", "o")
    stop: Choice[JobAction] = Choice("stop", "stop it", "s")
    return Question(f"Job {job.id}: {job.state}", (job.fact.shown,), (show, stop))


async def _stop(front: Front, job: BackgroundCommand) -> None:
    if job.is_running:
        await job.stop()
    else:
        front.say(f"Job {job.id} has already ended: {job.state}.")


async def _show(front: Front, job: BackgroundCommand) -> None:
    try:
        text = await asyncio.to_thread(job.command.output.last_lines)
    except OSError as error:
        front.say(f"Cannot read the output of job {job.id}: {error.strerror}.", "warning")
        return
    lines = text.rstrip("\n").split("\n")
    facts: list[Row] = [("command", job.command.order.command), ("state", job.state)]
    if (path := job.command.output.path) is not None:
        facts.append(("full output", str(path)))
    printed = tuple(("", line) for line in lines[-_SHOWN_LINES:])
    left_out = len(lines) - len(printed)
    heading = f"Output (last {_SHOWN_LINES} lines)" if left_out > 0 else "Output"
    sections = (PageSection("", tuple(facts)), PageSection(heading, printed))
    await front.show(Page(f"Job {job.id}", sections, opens_at_end=True))
