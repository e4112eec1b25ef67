"""The background commands that a session tells of: which run by it, which have ended."""

from collections.abc import Iterable, Mapping, Sequence

from pydantic import TypeAdapter, ValidationError

from agent_tui.messages import Job, ToolResultMessage
from agent_tui.sessions.entries import CustomMessageEntry, Entry, MessageEntry

JOBS_ENDED = "jobs_ended"
"""The custom type of what tells the model that background commands have ended."""

WITH_ITS_PROGRAM = "it ended with the program or session that ran it"
"""How a command ended that runs by the log, and does not."""

_JOBS = TypeAdapter(tuple[Job, ...])


def known_jobs(path: Iterable[Entry], earlier: Mapping[str, Job]) -> dict[str, Job]:
    """The background commands as `path` tells of them last, by their ids.

    Args:
        path: Entries from the root to the leaf.
        earlier: Those that a parent session handed on.
    """
    known = dict(earlier)
    for entry in path:
        known.update((job.id, job) for job in jobs_in(entry))
    return known


def jobs_in(entry: Entry) -> Sequence[Job]:
    """What `entry` tells of background commands."""
    match entry:
        case MessageEntry(message=ToolResultMessage(details={"jobs": list()}) as result):
            return result.tool_details.jobs
        case CustomMessageEntry(custom_type="jobs_ended", details=list() as jobs):
            try:
                return _JOBS.validate_python(jobs)
            except ValidationError:
                return ()
        case _:
            return ()


def ended_entry(jobs: Sequence[Job]) -> CustomMessageEntry:
    """What tells the model, once, that `jobs` have ended."""
    return CustomMessageEntry(
        custom_type=JOBS_ENDED,
        content="\n".join(f"({ended_line(job)})" for job in jobs),
        display=False,
        details=_JOBS.dump_python(tuple(jobs), mode="json", by_alias=True),
    )


def ended_line(job: Job) -> str:
    """That `job` has ended, and how, in one line."""
    return f"Background job {job.id} has ended: {job.ending}. $ {job.shown}"
