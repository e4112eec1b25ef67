"""Begin a conversation, and turn a session file into one that can continue."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import takewhile
from pathlib import Path
from typing import Final, TypeAlias

from agent_tui.agent.conversation import Conversation
from agent_tui.agent.part import Part, offered_tools
from agent_tui.agent.prompt.context_files import ContextFile, load_context_files
from agent_tui.agent.prompt.fitted_prompt import FittedPrompt, PromptFitter, PromptParts, fit_prompt
from agent_tui.agent.prompt.prompt_files import find_skills
from agent_tui.agent.services import RuntimeServices
from agent_tui.config import PermissionMode
from agent_tui.config.model_addresses import display_address, is_loopback
from agent_tui.errors import AgentTuiError, SessionError
from agent_tui.events import AgentEvent, ModelChanged, Notice
from agent_tui.messages import (
    AssistantMessage,
    ThinkingLevel,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
)
from agent_tui.paths import find_manual
from agent_tui.permissions.trust import WithheldFile
from agent_tui.permissions.verdict import Permissions
from agent_tui.providers.base import ModelRef, model_name
from agent_tui.safe_paths import is_folder
from agent_tui.safe_text import printable_line
from agent_tui.sessions.context import newest_base_url, newest_model, newest_thinking_level
from agent_tui.sessions.entries import (
    CustomEntry,
    Entry,
    Header,
    MessageEntry,
    ModelChangeEntry,
    ThinkingLevelChangeEntry,
    as_thinking_level,
    leaf_of,
)
from agent_tui.sessions.file.kept_files import KeptFiles, folder_of
from agent_tui.sessions.lineage.chain import parent_file
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.file_changes import restore_to_finish
from agent_tui.sessions.replay.notes import jobs_on, own_usage
from agent_tui.text import is_same_path
from agent_tui.tool_names import is_remote
from agent_tui.tools.files.versions import version_of
from agent_tui.tools.job_table import JobTable
from agent_tui.tools.selection import select_tools

_PULLED: Final = (
    "Pulled from {source}: nothing in it is approved here, and anybody may have written it."
)
_BESIDE: Final = "{count:,} pulled {are} on another branch, from {names}: /tree switches to it."
_MOST_NAMES: Final = 3

PartsNow: TypeAlias = Callable[[], Sequence[Part]]
"""What features do in a conversation at the time of the call."""

PERMISSION_MODE: Final = "permission_mode"
"""Custom type of the entry that records the permission mode in force from there on."""


def new_log(
    services: RuntimeServices, cwd: Path, model: ModelRef, thinking: ThinkingLevel
) -> SessionLog:
    """An empty session log; its file is created with the first entry."""
    launch_cwd = services.launch_cwd
    header = Header(
        cwd=str(cwd),
        provider=model.provider,
        model_id=model.model_id,
        base_url=display_address(model.base_url) or None,
        thinking_level=thinking,
        launch_cwd=str(launch_cwd) if launch_cwd and launch_cwd != cwd else None,
        origin=services.origin or None,
    )
    if services.keeps_sessions:
        return services.store.create(header)
    return SessionLog.create(None, header)


@dataclass(frozen=True, slots=True)
class FolderFiles:
    """A folder's files for the agent: AGENTS.md files in force, and all files withheld."""

    in_force: tuple[ContextFile, ...]
    withheld: tuple[WithheldFile, ...]


def load_folder_files(services: RuntimeServices, cwd: Path) -> FolderFiles:
    """Load the files of `cwd` as they are now, according to the folder's trust."""
    trust = services.trust
    in_force = load_context_files(services.user_config_dir, cwd, trust.may_obey)
    return FolderFiles(in_force, trust.withheld(cwd))


def open_conversation(
    services: RuntimeServices,
    log: SessionLog,
    cwd: Path,
    model: ModelRef,
    thinking: ThinkingLevel,
    permissions: Permissions,
    fit: PromptFitter,
    jobs: JobTable,
) -> Conversation:
    """The conversation that `log` holds, ready for its next turn."""
    conversation = Conversation(
        log=log,
        cwd=cwd,
        model=model,
        model_info=services.model_info(model),
        thinking=thinking,
        services=services,
        permissions=permissions,
        fit=fit,
        jobs=jobs,
        kept_files=_open_kept_files(services, log),
    )
    _take_up_history(conversation)
    return conversation


def _open_kept_files(services: RuntimeServices, log: SessionLog) -> KeptFiles:
    """Stores file contents beside the session, and reads those of the sessions before it."""
    if log.path is None or log.is_read_only:
        return KeptFiles(None)

    def earlier() -> Iterator[Path]:
        file, parent, seen = log.path, log.header.parent_session, set[Path]()
        while parent and (file := parent_file(parent, file, services.store)) is not None:
            if file in seen:
                return
            seen.add(file)
            yield folder_of(file)
            try:
                with SessionLog.open(file, read_only=True) as before:
                    parent = before.header.parent_session
            except SessionError:
                return

    return KeptFiles(folder_of(log.path), earlier)


def prompt_fitter(
    services: RuntimeServices, cwd: Path, context_files: Sequence[ContextFile], parts: PartsNow
) -> PromptFitter:
    """Returns a fitter that uses the tools available at the time of each call."""
    toolbox, day, files = services.toolbox, date.today(), tuple(context_files)
    manual = find_manual()

    def fit(window: int, model_id: str, is_planning: bool) -> FittedPrompt:
        skills = find_skills(cwd, services.user_config_dir, services.trust).by_name.values()
        told = tuple((each.name, each.description) for each in skills if each.is_for_model)
        is_boxed = services.sandbox.is_on(cwd)

        def suited(specs: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
            own = select_tools(
                [spec for spec in specs if not is_remote(spec.name)],
                model_id,
                is_planning=is_planning,
                has_skills=bool(told),
                has_sandbox=is_boxed,
            )
            return tuple(offered_tools(parts(), own, window, is_planning=is_planning))

        prompt_parts = PromptParts(
            cwd=cwd,
            day=day,
            specs=suited(toolbox.specs),
            short_specs=suited(toolbox.short_specs),
            outside=services.remote_tools.offer,
            context_files=files,
            skills=told,
            added_folders=services.added_folders,
            has_sandbox=is_boxed,
            manual=manual,
        )
        fitted = fit_prompt(prompt_parts, window, services.counter)
        return replace(fitted, model_id=model_id, is_planning=is_planning)

    return fit


def model_to_resume(
    log: SessionLog, present: ModelRef, services: RuntimeServices
) -> tuple[ModelRef, str]:
    """The model with which a session continues, and a note for the user (or empty).

    A session file may name a server on this machine or the one in the settings, but no other
    address: the file could come from anywhere. Logins in addresses are never stored.
    """
    name, settings = last_model_name(log), services.settings
    base_url = display_address(newest_base_url(log.path_entries(), log.header))
    if not name or (name, base_url) == (present.name, display_address(present.base_url)):
        return present, ""
    if base_url:
        if base_url == display_address(settings.base_url):
            return ModelRef(name, settings.base_url, settings.api_key_env), ""
        if is_loopback(base_url):
            return ModelRef(name, base_url), ""
        return present, (
            f"This session used {name} at {base_url}, which is not in your settings; "
            f"continuing with {present.name}."
        )
    try:
        return services.resolve_model(name), ""
    except AgentTuiError as error:
        return present, f"{error} Continuing with {present.name}."


def model_change(model: ModelRef) -> ModelChangeEntry:
    """The entry that records the switch to `model`."""
    return ModelChangeEntry(
        provider=model.provider,
        model_id=model.model_id,
        base_url=display_address(model.base_url) or None,
    )


def missing_changes(
    log: SessionLog, model: ModelRef, thinking: ThinkingLevel
) -> tuple[ModelChangeEntry | ThinkingLevelChangeEntry, ...]:
    """Entries to write so that `log` reopens with `model` and `thinking`."""
    changes: list[ModelChangeEntry | ThinkingLevelChangeEntry] = []
    if model.name != last_model_name(log):
        changes.append(model_change(model))
    if thinking != last_thinking_level(log):
        changes.append(ThinkingLevelChangeEntry(thinking_level=thinking))
    return tuple(changes)


def last_model_name(log: SessionLog) -> str:
    """The model that a session last used; empty if the file does not say."""
    provider, model_id = newest_model(log.path_entries())
    if not model_id:
        provider, model_id = log.header.provider, log.header.model_id
    return model_name(provider, model_id)


def last_thinking_level(log: SessionLog) -> ThinkingLevel:
    """The thinking level that a session last used; unknown levels become ``off``."""
    newest = newest_thinking_level(log.path_entries())
    return as_thinking_level(newest or log.header.thinking_level)


def mode_left_in(log: SessionLog) -> PermissionMode | None:
    """The permission mode in which a session was left; None if the file does not say."""
    for entry in reversed(log.entries):
        match entry:
            case CustomEntry(
                custom_type=name, data="ask" | "accept-edits" | "plan" | "full" as mode
            ) if name == PERMISSION_MODE:
                return mode
            case _:
                pass
    return None


def _take_up_history(conversation: Conversation) -> None:
    """Restore the totals, the plan and the jobs of a new conversation from its log.

    Spending and call ids of abandoned branches count too; the plan is that of the present branch.
    Entries copied from another session (older than this one) are not counted again. The header has
    the spending before /compact.
    """
    log = conversation.log
    for entry in log.entries:
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
            conversation.tool_call_ids.update(call.id for call in entry.message.tool_calls)
        if (usage := own_usage(log.header, entry)) is not None:
            conversation.count(usage)
    carried = log.header.compaction
    for spent in carried.spent if carried else ():
        conversation.count(spent.usage)
    earlier = carried.handover.state.jobs if carried and carried.handover else {}
    conversation.known_jobs.update(jobs_on(log.path_entries(), earlier))
    conversation.jobs.spare(conversation.known_jobs)
    for entry in reversed(log.path_entries()):
        match entry:
            case MessageEntry(message=ToolResultMessage(details={"todos": list()}) as result):
                conversation.todos[:] = result.tool_details.todos or ()
                break
            case _:
                pass


def interruption_note(log: SessionLog) -> str:
    """The note about a turn that was cut off; empty if the last turn ended normally."""
    if log.is_read_only:
        return ""
    is_cut_off = was_cut_off(reversed(log.path_entries()))
    return "The last turn was interrupted. /retry continues it." if is_cut_off else ""


def was_cut_off(newest_first: Iterable[Entry]) -> bool:
    """Whether the last turn did not come to its end, by the newest message of a session."""
    match next((e.message for e in newest_first if isinstance(e, MessageEntry)), None):
        case AssistantMessage() as reply:
            return bool(reply.tool_calls) or reply.stop_reason in ("aborted", "error")
        case UserMessage() | ToolResultMessage():
            return True
        case _:
            return False


def pulled_notes(log: SessionLog) -> Iterator[str]:
    """The notes about what others wrote in the session, also beside the place where it continues.

    What was pulled before the last entry of this clone is not new.
    """
    if (source := log.header.pulled_from) is not None:
        yield _PULLED.format(source=printable_line(source.name))
    if (leaf := leaf_of(log.entries)) is None or leaf.pulled_from:
        return
    path = {entry.id for entry in log.path_entries()}
    newest = takewhile(lambda entry: entry.id != leaf.id, reversed(log.entries))
    beside = [one for one in newest if isinstance(one, MessageEntry) and one.id not in path]
    if beside:
        names = sorted({printable_line(one.pulled_from or "") for one in beside})
        are = "message is" if len(beside) == 1 else "messages are"
        yield _BESIDE.format(count=len(beside), are=are, names=", ".join(names[:_MOST_NAMES]))


def restore_note(log: SessionLog) -> str:
    """The note about a restore of files that the program's end interrupted. Reads the files."""
    plan = restore_to_finish(log.entries, lambda path: version_of(Path(path)))
    if not plan.restores:
        return ""
    return (
        f"The program ended while restoring files; {len(plan.restores)} are not restored yet. "
        "/undo finishes or reverts that."
    )


def working_folder(log: SessionLog, present: Path, *, here: bool = False) -> tuple[Path, str]:
    """The folder to continue in, and a note for the user about it (or empty).

    Args:
        log: The session.
        present: The folder the user is in.
        here: Stay there, even if the session worked elsewhere.
    """
    if not log.header.cwd or is_same_path(log.header.cwd, str(present)):
        return present, ""
    folder = Path(log.header.cwd)
    if not is_folder(folder):
        return present, f"This session's folder {folder} is gone; working in {present}."
    if here:
        return present, f"Working in {present}; this session was started in {folder}."
    return folder, f"Working in {folder}, this session's folder."


def choose_model(
    conversation: Conversation, model: ModelRef, services: RuntimeServices
) -> tuple[AgentEvent, ...]:
    """Use `model`; resets what stopped automatic compaction with another model."""
    is_begun = bool(conversation.log.entries)
    if model != conversation.model:
        if is_begun:
            conversation.log.append(model_change(model))
        conversation.model = model
        conversation.model_info = services.model_info(model)
        if not is_begun:
            _restart_empty_log(conversation, services)
    conversation.breaker = conversation.breaker.after_success()
    conversation.left_by_compaction = 0
    changed = ModelChanged(model.name, conversation.model_info.window)
    return (changed, conversation.use_window(conversation.usage.used))


_GUESSED = (
    "Context window of {name} unknown; assuming {window:,} tokens. "
    'Set `window` under [models."{name}"] in your settings.'
)


async def learn_model(
    conversation: Conversation, services: RuntimeServices
) -> tuple[AgentEvent, ...]:
    """Update what is known of the model, above all its window, from the model's own server."""
    known = await services.learn_model(conversation.model)
    events: list[AgentEvent] = []
    if known != conversation.model_info:
        conversation.model_info = known
        events.append(ModelChanged(conversation.model.name, known.window))
    if known.source == "guess" and known.window and conversation.told_guess != known.name:
        conversation.told_guess = known.name
        events.append(Notice("info", _GUESSED.format(window=known.window, name=known.name)))
    return tuple(events)


def choose_thinking(
    conversation: Conversation, level: ThinkingLevel, services: RuntimeServices
) -> tuple[AgentEvent, ...]:
    """Set the thinking level."""
    is_begun = bool(conversation.log.entries)
    if level != conversation.thinking:
        if is_begun:
            conversation.log.append(ThinkingLevelChangeEntry(thinking_level=level))
        conversation.thinking = level
        if not is_begun:
            _restart_empty_log(conversation, services)
    return (Notice("info", f"Thinking: {level}"),)


def _restart_empty_log(conversation: Conversation, services: RuntimeServices) -> None:
    """Write the new model or thinking level into the header of a log that is still empty."""
    conversation.log.close()
    conversation.log = new_log(
        services, conversation.cwd, conversation.model, conversation.thinking
    )
