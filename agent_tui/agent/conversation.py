"""The state of one conversation: its log, its model, what the model sees and how full that is."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import JsonValue

from agent_tui.agent.activity import Emit
from agent_tui.agent.prompt.context_files import ContextFile
from agent_tui.agent.prompt.fitted_prompt import FittedPrompt, PromptFitter
from agent_tui.agent.services import RuntimeServices
from agent_tui.agent.turn.request_watch import RequestWatch
from agent_tui.agent.turn.user_message import MessageQueue
from agent_tui.compaction.policy import (
    Breaker,
    ContextLevel,
    ContextLimits,
    RefillWatch,
    context_limits,
    note_due,
    output_reserve_tokens,
    reply_cap_tokens,
)
from agent_tui.config import CompactionSettings
from agent_tui.events import AgentEvent, ContextChanged, ContextWarning, Notice, TotalsChanged
from agent_tui.messages import (
    AssistantMessage,
    ContextNote,
    Job,
    Message,
    Pin,
    PinKind,
    ThinkingContent,
    ThinkingLevel,
    Todo,
    ToolResultMessage,
    Usage,
    UserMessage,
    images_in,
    with_texts,
)
from agent_tui.permissions.trust import WithheldFile
from agent_tui.permissions.verdict import Permissions
from agent_tui.providers.base import ModelInfo, ModelRef, ModelRequest, thinking_effort
from agent_tui.secret_text import mask_values
from agent_tui.sessions.context import (
    Context,
    build_context,
    extend_context,
    messages_to_send,
    newest_note,
    wrap_summary,
)
from agent_tui.sessions.context_size import measure_context
from agent_tui.sessions.entries import CompactionEntry, CustomMessageEntry, Entry, MessageEntry
from agent_tui.sessions.file.kept_files import KeptFiles
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.notes import (
    WITH_ITS_PROGRAM,
    AgentRun,
    end_of_jobs_entry,
    jobs_in,
    note_to_model,
    run_entry,
)
from agent_tui.sessions.replay.pins import pin_of, pins_on
from agent_tui.tokens import ContextUsage
from agent_tui.tools.files.memory import FileMemory
from agent_tui.tools.job_table import JobTable
from agent_tui.tools.shorten import OutputLimits, output_limits


@dataclass(slots=True)
class Conversation:
    """The state that turns and compactions work on. Only the runtime and its turns change it.

    Attributes:
        log: The session.
        cwd: The workspace.
        permissions: The permission engine of that folder.
        fit: Makes the prompt for a window and a model; called again when either changes.
        context_files: The AGENTS.md files in force there.
        withheld_files: The project's files that are ignored because the folder is not trusted.
    """

    log: SessionLog
    cwd: Path
    model: ModelRef
    model_info: ModelInfo
    thinking: ThinkingLevel
    services: RuntimeServices
    permissions: Permissions
    fit: PromptFitter
    context_files: tuple[ContextFile, ...] = ()
    withheld_files: tuple[WithheldFile, ...] = ()
    usage: ContextUsage = field(default_factory=lambda: ContextUsage(0, 0, True))
    queue: MessageQueue = field(default_factory=MessageQueue)
    files: FileMemory = field(default_factory=FileMemory)
    todos: list[Todo] = field(default_factory=list[Todo])
    jobs: JobTable = field(default_factory=JobTable)
    kept_files: KeptFiles = field(default_factory=lambda: KeptFiles(None))
    """The contents of files before and after changes made here."""
    known_jobs: dict[str, Job] = field(default_factory=dict[str, Job])
    """Background commands by id, in the state that the session last recorded."""
    totals: TotalsChanged = field(default_factory=lambda: TotalsChanged(0, 0, 0.0))
    warned_level: ContextLevel = "normal"
    breaker: Breaker = field(default_factory=Breaker)
    refill: RefillWatch = field(default_factory=RefillWatch)
    left_by_compaction: int = 0
    """Tokens in use after the last automatic compaction, its undo, or a failed attempt."""
    is_compacting: bool = False
    """Whether a compaction of this conversation is running."""
    tool_call_ids: set[str] = field(default_factory=set[str])
    """Ids of all calls so far; a new call must not reuse one."""
    fitted: FittedPrompt | None = None
    looked_into: set[Path] = field(default_factory=set[Path])
    """Folders below the workspace that were searched for instructions."""
    told_gone: set[str] = field(default_factory=set[str])
    """Files of pinned texts that the user was told are unreadable."""
    told_note: str = ""
    """The last note about the prompt that the user was shown."""
    told_guess: str = ""
    """The model for which the user was last told that its window is a guess."""
    replayed: tuple[tuple[Entry, ...], Context] | None = None
    """The newest replay and its path; replaying a long session takes 50 ms or more."""
    requests: RequestWatch = field(default_factory=RequestWatch)
    """Compares each request with the one before."""
    limited_until: dict[str, float] = field(default_factory=dict[str, float])
    """When the limits of models reset, in seconds since 1970, by the models' names."""
    stands_in_for: ModelRef | None = None
    """The model that the fallback model replaces until its limit resets."""
    prefix_read_s: float = 0.0
    """When the model was last asked in the background what to keep, in seconds since 1970."""

    @property
    def settings(self) -> CompactionSettings:
        """The compaction settings in force."""
        return self.services.settings.compaction

    @property
    def output_reserve(self) -> int:
        """Tokens kept free for the reply."""
        return output_reserve_tokens(self.model_info.window, self.model_info.max_output)

    @property
    def limits(self) -> ContextLimits:
        """The token counts at which compaction starts, and the size it aims for."""
        return context_limits(self.model_info.window, self.output_reserve, self.settings)

    @property
    def compacts_at(self) -> int:
        """Percent of the window at which compaction starts automatically; 0 if it does not."""
        acts = self.settings.auto and not self.breaker.is_open
        return self.limits.trigger_percent if acts else 0

    @property
    def level(self) -> ContextLevel:
        """The level of the context relative to the thresholds, as last counted."""
        return self.limits.level(self.usage.used)

    @property
    def prompt(self) -> FittedPrompt:
        """System prompt and tools as they fit the present window; can be slow the first time."""
        window = self.model_info.window
        model_id = self.model.model_id
        is_planning = self.permissions.mode == "plan"
        wanted = (window, model_id, is_planning)
        if self.fitted is None or self.fitted.made_for != wanted:
            self.fitted = self.fit(*wanted)
        return self.fitted

    @property
    def room_ends_at(self) -> int:
        """Tokens at which compaction starts; if it is off, the largest prompt that fits."""
        return self.limits.trigger if self.compacts_at else self.limits.most

    def output_limits(self, calls: int = 1, *, given_bytes: int = 0, done: int = 0) -> OutputLimits:
        """How much output the next of the `calls` of one reply may add to the context.

        Args:
            calls: Number of calls in the reply.
            given_bytes: Bytes that the first `done` of them returned.
            done: Number of calls that have a result.
        """
        return output_limits(
            self.model_info.window,
            calls,
            given_bytes=given_bytes,
            done=done,
            room_tokens=max(self.room_ends_at - self.usage.used, 0),
        )

    def note_on_context(self, results: Sequence[Message]) -> ContextNote | None:
        """The note to the model about its context, counting `results`; None if none is due."""
        if self.model_info.window <= 0:
            return None
        ratio = self.services.ratios.ratio(self.model.name)
        added = round(self.services.counter.count_messages(results) * ratio)
        note = ContextNote(
            used=self.usage.used + added,
            window=self.model_info.window,
            limit=self.room_ends_at,
            is_automatic=self.compacts_at > 0,
        )
        is_high = note_due(note, None)  # the last note matters only if one may be due
        return note if is_high and note_due(note, newest_note(self.context())) else None

    def context(self) -> Context:
        """The context that the model sees now."""
        return self._replay(self.log.path_entries())

    @property
    def is_new(self) -> bool:
        """Whether nothing was said yet, neither here nor in a session that this one continues."""
        begun = (MessageEntry, CompactionEntry)
        return not any(isinstance(entry, begun) for entry in self.log.path_entries())

    def request(self) -> ModelRequest:
        """The next request."""
        context = self.context()
        return ModelRequest(
            model=self.model,
            system="\n\n".join([self.prompt.system, *self._system_summary(context)]),
            messages=messages_to_send(context),
            tools=self.prompt.tools,
            max_output_tokens=reply_cap_tokens(self.model_info, self.usage.used),
            thinking=thinking_effort(self.thinking, self.model_info),
            cache_key=self.log.header.id,
        )

    def append(self, message: Message) -> MessageEntry:
        """Write a message, without secrets, to the log and bring the totals up to date."""
        entry = self.log.append(
            MessageEntry(message=without_secrets(message, self.services.secrets))
        )
        self.known_jobs.update((job.id, job) for job in jobs_in(entry))
        if isinstance(message, AssistantMessage):
            self.count(message.usage)
            self.tool_call_ids.update(call.id for call in message.tool_calls)
            self.refill = self.refill.after_reply()
        elif isinstance(message, UserMessage):
            self.refill = self.refill.after_progress()
        return entry

    def count(self, usage: Usage) -> None:
        """Add the usage of one more request to the totals."""
        before = self.totals
        self.totals = TotalsChanged(
            before.input_tokens + usage.input + usage.cache_read + usage.cache_write,
            before.output_tokens + usage.output,
            before.cost_usd + usage.cost.total,
        )

    def counting(self, emit: Emit) -> Callable[[Usage], None]:
        """Returns a callback that counts requests beside the conversation and emits the totals."""

        def count(usage: Usage) -> None:
            self.count(usage)
            emit(self.totals)

        return count

    def count_run(self, run: AgentRun) -> None:
        """Record and count what a helper used, if it made any request."""
        if run.requests:
            self.log.append(run_entry(run))
            self.count(run.usage)

    def skills_in_use(self) -> dict[str, CustomMessageEntry]:
        """The skills whose texts are in the context, by name."""
        pinned = pins_on(self.log.path_entries())
        return {pin.name: pinned[pin.path] for pin in self.pins("skill")}

    def pins(self, kind: PinKind) -> tuple[Pin, ...]:
        """The pinned texts of one kind; compaction never removes them."""
        found = map(pin_of, pins_on(self.log.path_entries()).values())
        return tuple(pin for pin in found if pin is not None and pin.kind == kind)

    def untold_jobs(self) -> tuple[Job, ...]:
        """Background commands that have ended but that the session records as running."""
        ended: list[Job] = []
        for known in self.known_jobs.values():
            if not known.ending:
                job = self.jobs.find(known.id)
                ending = job.ending if job is not None else WITH_ITS_PROGRAM
                if ending:
                    ended.append(known.model_copy(update={"ending": ending}))
        return tuple(ended)

    def tell_ended_jobs(self) -> None:
        """Record background commands that have ended, once each, so that the model is told."""
        ended = self.untold_jobs()
        if ended:
            self.log.append(end_of_jobs_entry(ended))
            self.known_jobs.update((job.id, job) for job in ended)

    def deliver_notes(self) -> None:
        """Record the notes that wait for the model, which no reply may be running for."""
        notes = self.queue.notes
        while notes:
            self.log.append(note_to_model(notes[0].text))
            del notes[0]

    def use_window(self, used: int) -> ContextChanged:
        """Set the usage to an estimate of `used` tokens in the present model's window at once."""
        self.usage = ContextUsage(used, self.model_info.window, is_estimate=True)
        return ContextChanged(self.usage)

    async def refresh_usage(self) -> tuple[AgentEvent, ...]:
        """Count again, off the event loop, and return the events for what changed."""
        usage = await asyncio.to_thread(self._measure, self.log.path_entries())
        events: list[AgentEvent] = []
        prompt = self.prompt
        if prompt.note and prompt.note != self.told_note:
            note = self.services.ways.fill(prompt.note)
            events.append(Notice("warning" if prompt.is_too_small else "info", note))
        self.told_note = prompt.note
        if usage != self.usage:
            self.usage = usage
            events.append(ContextChanged(usage))
        level = self.level
        if level != self.warned_level:
            rose = (self.warned_level, level) != ("trigger", "warn")
            self.warned_level = level
            if level != "normal" and rose:
                events.append(ContextWarning(usage, level, self.compacts_at))
        return tuple(events)

    @property
    def is_overfull(self) -> bool:
        """Whether the next request is known not to fit; false if the window is only a guess."""
        return self._is_window_known and self.usage.used > self.usage.window

    def surely_holds(self, message: UserMessage) -> bool:
        """Whether `message` fits without counting: a token is at least one byte."""
        if not self._is_window_known:
            return True
        size_bytes = len(message.text.encode("utf-8", "surrogatepass"))
        return not message.images and size_bytes <= self.model_info.window // 4

    def too_large(self, message: UserMessage) -> str:
        """Why the window cannot hold `message` even alone; empty if it can. Counts tokens: slow."""
        ratio = self.services.ratios.ratio(self.model.name)
        window, reply_cap = self.model_info.window, reply_cap_tokens(self.model_info) or 0
        size = round(self.services.counter.count_message(message) * ratio)
        room = window - reply_cap - round(self.overhead_tokens() * ratio)
        if size <= room:
            return ""
        return self.services.ways.fill(
            f"This message is about {size:,} tokens. Even without the conversation so far, this "
            f"model's {window:,}-token context window has space for only about {max(room, 0):,}. "
            "Shorten it, put long text in a file for the model to read in parts, or switch to a "
            "larger window with {model}."
        )

    def advice_if_refused(self) -> str:
        """What helps if a request is too large and nothing can be compacted. Counts tokens: slow.

        Services also limit the bytes of a request, so the size of images is named.
        """
        given = (item.message for item in self.context().messages)
        newest = [one for one in given if isinstance(one, UserMessage | ToolResultMessage)][-1]
        tokens, images = self.services.counter.count_message(newest), images_in(newest.content)
        size = f"{tokens:,} of the request's {max(self.usage.used, tokens):,} tokens"
        advice = ""
        if images:
            count = "an image" if len(images) == 1 else f"{len(images)} images"
            size += f" and {count} ({sum(len(one.data) for one in images) / 1e6:,.1f} MB)"
            advice = "Attach smaller or fewer images, or "
        elif 2 * tokens > self.usage.used:
            advice = "Shorten it, put long text in a file for the model to read in parts, or "
        switch = f"{advice}switch to a model with a larger context window with {{model}}."
        return f"The newest message has about {size}. {switch[0].upper()}{switch[1:]}"

    @property
    def _is_window_known(self) -> bool:
        return self.model_info.window > 0 and self.model_info.source != "guess"

    def overhead_tokens(self) -> int:
        """Estimate of the system prompt and the tool schemas; slow the first time."""
        counter, prompt = self.services.counter, self.prompt
        return counter.count_text(prompt.system) + counter.count_tools(prompt.tools)

    def _replay(self, path: tuple[Entry, ...]) -> Context:
        known = self.replayed  # taken once: threads that measure replay beside the event loop
        if known is not None and known[0] is path:
            return known[1]
        context = extend_context(known[1], known[0], path) if known is not None else None
        if context is None:
            context = build_context(
                path,
                carryover=self.log.header.compaction,
                summary_role=self.settings.summary_role,
            )
        self.replayed = (path, context)
        return context

    def _measure(self, path: tuple[Entry, ...]) -> ContextUsage:
        context, counter = self._replay(path), self.services.counter
        summary = sum(map(counter.count_text, self._system_summary(context)))
        return measure_context(
            context,
            counter=counter,
            ratios=self.services.ratios,
            model=self.model.name,
            window=self.model_info.window,
            overhead_tokens=self.overhead_tokens() + summary,
        )

    def _system_summary(self, context: Context) -> tuple[str, ...]:
        """The summary, if there is one and the settings put it into the system prompt."""
        is_wanted = self.settings.summary_role == "system" and context.summary.strip()
        return (wrap_summary(context.summary),) if is_wanted else ()


_MessageT = TypeVar("_MessageT", bound=Message)


def without_secrets(message: _MessageT, values: Sequence[str]) -> _MessageT:
    """`message` without any of `values`, in any field.

    Returns the same object when there is nothing to mask. Changed thinking loses its signature,
    which would no longer match.
    """
    if not values:
        return message
    before: JsonValue = message.model_dump(mode="json", by_alias=True)
    after = with_texts(before, lambda text: mask_values(text, values))
    if after == before:
        return message
    changed = type(message).model_validate(after)
    if isinstance(message, AssistantMessage) and isinstance(changed, AssistantMessage):
        content = tuple(
            new.model_copy(update={"signature": None})
            if isinstance(new, ThinkingContent) and new != old
            else new
            for old, new in zip(message.content, changed.content, strict=True)
        )
        return changed.model_copy(update={"content": content})
    return changed
