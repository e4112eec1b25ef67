"""The running conversation: its turn, queue, loops, side questions, tools and jobs."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from agent_tui.agent.part import offered_tools
from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import (
    Choice,
    Front,
    Listing,
    Page,
    PageSection,
    Question,
    Row,
    has_model,
)
from agent_tui.events import Notice, NoticeSubject
from agent_tui.messages import BashExecutionMessage, ToolResultMessage, ToolSpec
from agent_tui.safe_text import safe_output, strip_control_characters
from agent_tui.sessions.entries import MessageEntry
from agent_tui.tools.job_table import BackgroundCommand
from agent_tui.tools.selection import select_tools


@command()
async def abort(front: Front, _argument: str) -> None:
    """Stop what is running and keep the partial output."""
    if not front.interrupt():
        front.say("Nothing is running.")


@command("<text>")
async def queue(front: Front, argument: str) -> None:
    """Send a message to the running turn."""
    if argument:
        await front.send(argument)
    else:
        front.say("Add the message: /queue <text>", "warning")


@command(aliases=("continue",), refusal="A turn is already running. Use /queue to add to it.")
async def retry(front: Front, _argument: str) -> None:
    """Continue after an error or interruption."""
    if not front.runtime.conversation.log.entries:
        front.say("Nothing to continue yet.", "warning")
    elif await has_model(front):
        await front.run(front.runtime.continue_turn())


@command("<question>")
async def btw(front: Front, argument: str) -> None:
    """Ask a side question, even during a turn; it stays out of the context."""
    if not argument:
        front.say("Add a question: /btw what does this flag do?", "warning")
        return
    if not await has_model(front):
        return
    if front.can_ask:  # the answer can take a while, and others may come first
        _tell(front, f"/btw {argument}", "question")
    answer = await front.runtime.ask_aside(argument)
    _tell(front, strip_control_characters(answer), "answer")
    front.show_events((front.runtime.conversation.totals,))


def _tell(front: Front, text: str, about: NoticeSubject) -> None:
    """Say `text`; a screen shows it by its subject."""
    if front.screen is None:
        front.say(text)
    else:
        front.show_events((Notice("info", text, about),))


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
        front.say("No command is running that could go on in the background.")


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
    await front.show(Page(f"Job {job.id}", sections))


@command()
async def tools(front: Front, _argument: str) -> None:
    """List the model's tools."""
    runtime = front.runtime
    offered = runtime.conversation.prompt.tools
    tokens = runtime.services.counter.count_tools(offered)
    model = runtime.conversation.model_info
    model_id = runtime.conversation.model.model_id
    is_planning = runtime.conversation.permissions.mode == "plan"
    specs = offered_tools(
        runtime.parts,
        select_tools(runtime.services.toolbox.specs, model_id, is_planning=is_planning),
        model.window,
        is_planning=is_planning,
    )
    await front.show(tools_page(offered, specs, tokens))


@command()
async def output(front: Front, _argument: str) -> None:
    """Show the last output in full."""
    for entry in reversed(front.runtime.conversation.log.path_entries()):
        match entry:
            case MessageEntry(message=ToolResultMessage() as result):
                title, text = result.tool_name, result.text
            case MessageEntry(message=BashExecutionMessage() as own):
                title, text = f"! {own.command}", own.output
            case _:
                continue
        lines = safe_output(text).rstrip().split("\n")
        rows = tuple(("", line) for line in lines)
        await front.show(Page(f"Output of {title}", (PageSection("", rows),)))
        return
    front.say("No output yet.")


def tools_page(offered: Sequence[ToolSpec], specs: Sequence[ToolSpec], tokens: int) -> Page:
    """The tools on offer, and those of `specs` that do not fit the model's window.

    Each with the first sentence of its full description. `tokens` is the size of those on offer.
    """
    names = {spec.name for spec in offered}
    rows = [(spec.name, _first_sentence(spec.description)) for spec in specs]
    has = tuple(row for row in rows if row[0] in names)
    left_out = tuple(row for row in rows if row[0] not in names)
    sections = [PageSection("", has)]
    if left_out:
        sections.append(PageSection("Left out: the model's context window is too small", left_out))
    title = f"The model's tools · about {tokens:,} tokens per request"
    return Page(title, tuple(sections))


def _first_sentence(text: str) -> str:
    line = " ".join(text.strip().partition("\n\n")[0].split())
    sentence, dot, _ = line.partition(". ")
    return sentence + dot.strip()
