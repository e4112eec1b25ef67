"""Entries beside the messages: a turn's facts, hooks' texts, ended jobs, helpers' usage."""

import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from agent_tui.config import HookEvent
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Cost,
    Job,
    ToolResultMessage,
    TurnFacts,
    Usage,
)
from agent_tui.safe_paths import path_from
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    Header,
    MessageEntry,
    Requests,
    custom_entry,
    custom_value,
)
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.file_changes import FileVersion, file_changes_in

TURN_FACTS = "turn_facts"
"""The custom type of the entry."""

_MOST_NAMED = 20
"""Most changed files that are named; a command can change thousands."""

_TOLD_MS = 5_000
_TOLD_WITH_TOOLS_MS = 1_000


def turn_facts(entries: Iterable[Entry], elapsed_ms: int, cwd: Path) -> TurnFacts | None:
    """The facts of a turn; None if it was short and changed nothing.

    Args:
        entries: The entries that the turn added.
        elapsed_ms: Its duration.
        cwd: The workspace.
    """
    results: list[ToolResultMessage] = []
    versions: dict[str, tuple[FileVersion, FileVersion]] = {}
    touched: dict[str, None] = {}
    for entry in entries:
        match entry:
            case MessageEntry(message=ToolResultMessage() as result):
                results.append(result)
                files = result.tool_details.files
                touched.update(dict.fromkeys((*files.written, *files.edited)))
            case _ if (found := file_changes_in(entry)) is not None:
                for change in found.changes:
                    if found.is_restore and change.path not in versions:
                        continue  # the user took back what an earlier turn changed
                    before, _ = versions.get(change.path, (change.before, change.after))
                    versions[change.path] = (before, change.after)
                    touched[change.path] = None
            case _:
                pass
    unchanged = {path for path, (before, after) in versions.items() if before.is_as(after)}
    changed = [path_from(path, cwd) for path in touched if path not in unchanged]
    told_ms = _TOLD_WITH_TOOLS_MS if results else _TOLD_MS
    if not changed and elapsed_ms < told_ms:
        return None
    named = tuple(changed[:_MOST_NAMED])
    return TurnFacts(elapsed_ms=elapsed_ms, changed=named, more=len(changed) - len(named))


def turn_facts_entry(facts: TurnFacts) -> CustomEntry:
    """The entry that records `facts` at the end of their turn."""
    data = facts.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return CustomEntry(custom_type=TURN_FACTS, data=data)


def turn_facts_in(entry: Entry) -> TurnFacts | None:
    """The facts in `entry`; None for any other entry or an unreadable one."""
    return custom_value(entry, TURN_FACTS, TurnFacts)


_TOLD = "hook"
_KEPT = "hook_kept"


def hook_entry(event: HookEvent, text: str) -> CustomMessageEntry:
    """The entry that tells the model what a hook on `event` said."""
    said = html.escape(text, quote=False)
    content = f'<hook event="{event}">\n{said}\n</hook>'
    kind = _KEPT if event == "PreCompact" else _TOLD
    return CustomMessageEntry(custom_type=kind, content=content, display=False)


def was_kept_by_hook(entry: Entry) -> bool:
    """Whether `entry` is text that a hook wanted to keep after a compaction."""
    return isinstance(entry, CustomMessageEntry) and entry.custom_type == _KEPT


def find_superseded(path: Sequence[Entry]) -> frozenset[str]:
    """Ids of texts of which only the newest counts.

    That are those that hooks kept after compactions, and of notes that the user restored files,
    those on files that the next notes name, too.
    """
    kept = [entry.id for entry in path if was_kept_by_hook(entry)]
    gone, told = set(kept[:-1]), dict[str, frozenset[str]]()
    for entry in path:
        if isinstance(entry, MessageEntry):
            told = {}
        elif isinstance(entry, CustomMessageEntry) and entry.custom_type == _RESTORED:
            names = frozenset(map(str, entry.details if isinstance(entry.details, list) else ()))
            gone.update(id for id, earlier in told.items() if earlier <= names)
            told[entry.id] = names or frozenset([entry.id])
    return frozenset(gone)


_RESTORED = "files_restored"


def note_to_model(text: str, files: Sequence[str] = ()) -> CustomMessageEntry:
    """The entry that tells the model what the user did to `files`; it is not shown."""
    return CustomMessageEntry(custom_type=_RESTORED, content=text, display=False, details=[*files])


_STOPPED = "turn_stopped"
_CONTINUED = "turn_continued"
_STOP_TEXT = "(The user stopped this turn here.)"
_CONTINUE_TEXT = "(The user asks you to continue the stopped turn.)"


def stop_entry() -> CustomMessageEntry:
    """The entry that tells the model, at the end of a turn, that the user stopped it."""
    return CustomMessageEntry(custom_type=_STOPPED, content=_STOP_TEXT, display=False)


def continue_entry(path: Sequence[Entry]) -> CustomMessageEntry | None:
    """The entry that tells the model to continue; None unless `path` ends in a stopped turn."""
    for entry in reversed(path):
        if is_stop(entry):
            return CustomMessageEntry(custom_type=_CONTINUED, content=_CONTINUE_TEXT, display=False)
        if isinstance(entry, MessageEntry):
            break
    return None


def is_continuation(entry: Entry) -> bool:
    """Whether `entry` records that the user continued a stopped turn."""
    return isinstance(entry, CustomMessageEntry) and entry.custom_type == _CONTINUED


def is_stop(entry: Entry) -> bool:
    """Whether `entry` records that the user stopped a turn."""
    return isinstance(entry, CustomMessageEntry) and entry.custom_type == _STOPPED


JOBS_ENDED = "jobs_ended"
"""The custom type of the entry that tells the model that background commands have ended."""

WITH_ITS_PROGRAM = "it ended with the program or session that ran it"
"""The ending of a command that the log records as running but that is not."""

_JOBS = TypeAdapter(tuple[Job, ...])


def jobs_on(path: Iterable[Entry], earlier: Mapping[str, Job]) -> dict[str, Job]:
    """The background commands by id, in the last state that `path` records.

    Args:
        path: Entries from the root to the leaf.
        earlier: Those passed on by a parent session.
    """
    known = dict(earlier)
    for entry in path:
        known.update((job.id, job) for job in jobs_in(entry))
    return known


def jobs_in(entry: Entry) -> Sequence[Job]:
    """The background commands in `entry`."""
    match entry:
        case MessageEntry(message=ToolResultMessage(details={"jobs": list()}) as result):
            return result.tool_details.jobs
        case MessageEntry(message=BashExecutionMessage(exclude_from_context=False) as command):
            return command.jobs or ()
        case CustomMessageEntry(custom_type="jobs_ended", details=list() as jobs):
            try:
                return _JOBS.validate_python(jobs)
            except ValidationError:
                return ()
        case _:
            return ()


def end_of_jobs_entry(jobs: Sequence[Job]) -> CustomMessageEntry:
    """The entry that tells the model, once, that `jobs` have ended."""
    return CustomMessageEntry(
        custom_type=JOBS_ENDED,
        content="\n".join(f"({end_of_job_line(job)})" for job in jobs),
        display=False,
        details=_JOBS.dump_python(tuple(jobs), mode="json", by_alias=True),
    )


def end_of_job_line(job: Job) -> str:
    """One line that says that and how `job` has ended."""
    return f"Job {job.id} ({job.shown}) has ended: {job.ending}."


AGENT_RUN = "agent_run"
"""The custom type of the entry."""


class AgentRun(Requests):
    """The usage of one run of a helper, and the ``session`` that records it.

    ``session`` is empty for a question that was asked beside the conversation.
    """

    session: str


def run_of(log: SessionLog, model: str) -> AgentRun:
    """The usage of the helper with the session `log`."""
    used = [usage for entry in log.entries if (usage := own_usage(log.header, entry)) is not None]
    total = Usage(
        input=sum(usage.input for usage in used),
        output=sum(usage.output for usage in used),
        cache_read=sum(usage.cache_read for usage in used),
        cache_write=sum(usage.cache_write for usage in used),
        cost=Cost(total=sum(usage.cost.total for usage in used)),
        is_estimate=any(usage.is_estimate for usage in used),
    )
    return AgentRun(session=log.header.id, model=model, requests=len(used), usage=total)


def run_entry(run: AgentRun) -> CustomEntry:
    """The entry that records `run` in the session of the conversation it worked for."""
    return custom_entry(AGENT_RUN, run)


def run_in(entry: Entry) -> AgentRun | None:
    """The run that `entry` records; None for any other entry."""
    return custom_value(entry, AGENT_RUN, AgentRun)


def was_copied(header: Header, entry: Entry) -> bool:
    """Whether `entry` was copied from the session that the one of `header` continues."""
    return header.parent_session is not None and entry.timestamp < header.timestamp


def own_usage(header: Header, entry: Entry) -> Usage | None:
    """The usage of the request behind `entry`, helpers included; None if this session made none.

    Copied entries are counted in their original session, and so is a session's first summary; what
    was pulled was spent elsewhere.
    """
    if entry.pulled_from or was_copied(header, entry):
        return None
    match entry:
        case MessageEntry(message=AssistantMessage() as reply):
            return reply.usage
        case CompactionEntry(usage=usage) if entry.parent_id:
            return usage
        case BranchSummaryEntry(usage=usage):
            return usage
        case CustomEntry() if (run := run_in(entry)) is not None:
            return run.usage
        case _:
            return None
