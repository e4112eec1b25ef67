"""The `job` tool: new output of a background command; waiting for it; stopping it."""

import os
from dataclasses import dataclass

from pydantic import Field

from agent_tui.errors import ToolError
from agent_tui.messages import ToolDetails
from agent_tui.tools.base import Intent, ToolArguments, ToolContext, ToolOutput
from agent_tui.tools.job_table import BackgroundCommand

_LONGEST_WAIT_S = 3_600


class JobArguments(ToolArguments):
    """Arguments of `job`."""

    id: str | None = None
    wait: float | None = Field(
        default=None, ge=0, le=_LONGEST_WAIT_S, description="seconds to wait for it to end"
    )
    stop: bool = False


@dataclass(frozen=True, slots=True)
class JobTool:
    """Gives access to the background commands of the conversation."""

    name: str = "job"
    description: str = (
        "Get new output from a background job.\n"
        "Without id: all jobs. You are told when one ends; all end with the session."
    )
    arguments_type: type[JobArguments] = JobArguments

    def intent(self, arguments: JobArguments, context: ToolContext) -> Intent:
        """Needs no approval: it does nothing beyond what was agreed when the command began."""
        if arguments.id is None:
            if arguments.stop:
                raise ToolError("stop needs an id.")
            return Intent("background jobs", "none")
        job = context.jobs.require(arguments.id)
        verb = "stop " if arguments.stop else ""
        return Intent(f"{verb}{job.id}: {job.fact.shown}", "none")

    async def run(self, arguments: JobArguments, context: ToolContext) -> ToolOutput:
        """The job's new output and state."""
        if arguments.id is None:
            return _all_jobs(context)
        job = context.jobs.require(arguments.id)
        if arguments.stop:
            await job.stop()
        elif arguments.wait:
            await job.command.wait(arguments.wait)
        result = job.command.result(context.limits)
        fact, path = job.fact, result.full_output_path
        details = ToolDetails(
            summary=fact.ending or "running",
            exit_code=result.exit_code,
            truncated=result.is_cut,
            full_output_path=None if path is None else os.fspath(path),
            printed_lines=result.printed_lines,
            jobs=(fact,),
        )
        is_idle = job.is_running and not (result.text or arguments.wait)
        advice = "; set wait to give it time" if is_idle else ""
        return ToolOutput(result.for_model(f"job {job.id}: {job.state}{advice}"), details)


def _all_jobs(context: ToolContext) -> ToolOutput:
    jobs = context.jobs.seen
    lines = [_line(job) for job in jobs]
    running = sum(job.is_running for job in jobs)
    details = ToolDetails(summary=f"{running} running", jobs=tuple(job.fact for job in jobs))
    return ToolOutput("\n".join(lines) or "(none)", details)


def _line(job: BackgroundCommand) -> str:
    return f"{job.id}: {job.fact.shown} [{job.state}]"
