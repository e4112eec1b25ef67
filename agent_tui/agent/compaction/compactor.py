"""When to compact, and how a compaction is carried out; the planner decides what it keeps."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from agent_tui.agent.activity import Emit
from agent_tui.agent.compaction.background import BackgroundSummary
from agent_tui.agent.compaction.cache_clock import (
    LEAST_USD,
    ColdPrice,
    cache_state,
    cold_price,
    idle_price_usd,
    whole_price_usd,
)
from agent_tui.agent.compaction.reports import (
    StartTeller,
    describe_kept,
    outcome_event,
    progress_to,
)
from agent_tui.agent.compaction.sources import largest_sources
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.part import Answer, Part, ask_before, carried_entries
from agent_tui.agent.services import RuntimeServices
from agent_tui.agent.session.spending import with_spending
from agent_tui.compaction.outcome import CompactionPreview, Outcome
from agent_tui.compaction.planner import CompactionPlanner
from agent_tui.compaction.policy import RefillWatch, should_compact
from agent_tui.compaction.proposal import Decision, Proposal
from agent_tui.compaction.request import Ahead, Asking, CompactionRequest, ContextSizes, Occasion
from agent_tui.errors import CompactionError, NothingToCompactError, SessionError
from agent_tui.events import (
    CompactionFailed,
    CompactionFinished,
    CompactionReason,
    CompactionStarted,
    Notice,
)
from agent_tui.messages import ToolDetails, Usage
from agent_tui.permissions.protected_paths import ProtectedPaths
from agent_tui.providers.client import OnProgress
from agent_tui.providers.prompt_cache import cache_lifetime
from agent_tui.safe_paths import real_path, resolve_path
from agent_tui.sessions.context import Context
from agent_tui.sessions.log import SessionLog
from agent_tui.tokens import ContextUsage
from agent_tui.tools.base import ToolOutput
from agent_tui.tools.files.opening import open_judged_file
from agent_tui.tools.git.repositories import RepositoryReader
from agent_tui.tools.processes.keeper import ProcessKeeper

_LEAST_USED_TOKENS = 10_000
"""Below this, a compaction that the model asks for is not run: it would free too little."""

_LARGEST_FILE = 400_000
"""Bytes. A larger file is not shown whole."""

_REFUSED = "Not compacted: {by} refused: {why}"

_SINCE_SHARE = 0.2
"""Most that may be said between an advance summary and its compaction: a share of the target."""

_AHEAD_SHARE = 0.1
"""Ask in advance when so much of the target is left until the compaction.

If it was asked earlier, one more step would often make the answer too old.
"""

_LARGE_WINDOW, _EARLY_SHARE = 200_000, 0.7
_WHY_EARLY = (
    "Compacted at {trigger:,} of {window:,} tokens: a larger context costs more with each request."
)

_LONGEST_LIFE_S = 3_600.0
"""If a prefix may live longer than this, the model is not asked in every pause."""

_BEFORE_DEATH_S = 45.0
"""Ask this long before the prefix expires: a request takes time to reach the provider's cache."""

_PAUSE_NOTE = "The model chose what to keep in the pause, while its cache was warm."

_WAIT_NOTE = "The cache went cold during the wait."
_NO_ANSWER = "Not compacted after the wait: the model did not answer. Nothing was changed."

_LOOK_AGAIN_PARTS = 50
"""If the context grew by less than this part of the window, do not check again."""


Confirm: TypeAlias = Callable[[CompactionPreview], Awaitable[str]]
"""Says why a compaction that the user asked for should not be done; empty if it should."""


class Compactor:
    """Compacts one conversation, in place or into a new session file.

    Nothing is written before the whole result is there, so a failure or a cancel leaves the
    session file as it was.

    Args:
        conversation: The conversation.
        services: What conversations share.
        planner: Decides what a compaction keeps.
        background: The summary made in advance.
        parts: What features do in the conversation.
    """

    def __init__(
        self,
        conversation: Conversation,
        services: RuntimeServices,
        planner: CompactionPlanner,
        background: BackgroundSummary,
        parts: Sequence[Part] = (),
    ) -> None:
        self._conversation = conversation
        self._services = services
        self._planner = planner
        self._background = background
        self._parts = parts
        may_run_git = services.trust.may_run_git
        self._repositories = RepositoryReader(ProcessKeeper(), may_run_git, services.environ)

    def is_due(self, usage: ContextUsage) -> bool:
        """Whether an automatic compaction should run before the next request.

        It should if the context is full, or if the model chose what to keep during a pause and the
        cache has since gone cold.
        """
        conversation = self._conversation
        return self._is_ready_after_pause or (
            conversation.settings.auto
            and should_compact(
                usage.used,
                conversation.limits,
                conversation.breaker,
                conversation.left_by_compaction,
            )
        )

    @property
    def _is_ready_after_pause(self) -> bool:
        is_wanted = self._conversation.settings.idle_compaction > 0
        return is_wanted and self._background.is_made and self._is_recent and self._is_cold

    @property
    def _is_recent(self) -> bool:
        """Whether so little was said since the background request that all of it would stay."""
        conversation = self._conversation
        grown = conversation.usage.used - self._background.begun_at_tokens
        return grown <= int(conversation.limits.target * _SINCE_SHARE)

    def _ahead(self, focus: str) -> Ahead | None:
        """The choice made in advance; None if it is outdated or made without `focus`."""
        return self._background.ahead if self._is_recent and not focus else None

    @property
    def _is_cold(self) -> bool:
        state = cache_state(self._conversation)
        return state is not None and state.warmth == "cold"

    def cold_price(self) -> ColdPrice | None:
        """What the next message costs with a cold cache; None unless it is worth a notice."""
        conversation = self._conversation
        if not self._is_cold:
            return None
        return cold_price(
            conversation,
            self._planner.reader(conversation.settings, conversation.model),
            is_ready=self._background.is_made,
        )

    def seconds_to_ask_in_pause(self) -> float | None:
        """Seconds to wait before `ask_in_pause`; None if asking in this pause is not worth it."""
        conversation = self._conversation
        lifetime, state = cache_lifetime(conversation.model), cache_state(conversation)
        price, bound = idle_price_usd(conversation), conversation.settings.idle_compaction
        if (
            not bound
            or price is None
            or price > bound
            or lifetime is None
            or lifetime.most_s > _LONGEST_LIFE_S
            or state is None
            or state.warmth != "warm"
            or conversation.settings.strategy != "tiered"
            or whole_price_usd(conversation) < LEAST_USD
            or (self._background.is_there and self._is_recent)
        ):
            return None
        return max(state.left_s - _BEFORE_DEATH_S, 0.0)

    async def ask_in_pause(self) -> None:
        """If the cache is still warm, ask the model what to keep and store the answer for later."""
        if self.seconds_to_ask_in_pause() is not None:
            request = await self._request("")
            self._background.begin(request, self._count_background)

    @contextmanager
    def _running(self) -> Generator[None]:
        """Mark the conversation while it is compacted."""
        self._conversation.is_compacting = True
        try:
            yield
        finally:
            self._conversation.is_compacting = False

    async def make_room(
        self,
        reason: CompactionReason,
        emit: Emit,
        focus: str = "",
        strategy: str | None = None,
        *,
        is_after_wait: bool = False,
    ) -> Outcome | None:
        """Compact in place in the middle of a turn; None if that was not possible.

        Uses `strategy`, or the one in the settings (see `decide`). Reports failures through `emit`.
        After a wait for a limit, nothing is written if the model does not answer.
        """
        with self._running():
            conversation = self._conversation
            started = StartTeller(reason, focus, conversation.usage.used, emit)
            await self._count_again(emit)
            asked = await self._ask_parts(reason, focus, emit)
            if asked.refusal:
                conversation.left_by_compaction = conversation.usage.used
                emit(CompactionFailed(_REFUSED.format(by=asked.by, why=asked.refusal)))
                return None
            full = conversation.context()
            is_after_pause = reason == "threshold" and self._is_ready_after_pause
            chosen = strategy or conversation.settings.strategy
            request = await self._request(
                focus,
                occasion=_occasion_of(reason, is_asked=is_after_wait),
                least_gain=self._least_gain(reason),
                ahead=self._ahead(focus),
            )
            try:
                outcome = await self._planner.outcome(
                    request, chosen, started.progress, self._conversation.counting(emit)
                )
            except asyncio.CancelledError:
                emit(CompactionFailed("Compaction cancelled; nothing was changed."))
                raise
            except CompactionError as error:
                self._not_done(error, reason, emit, is_told=started.is_told)
                return None
            if is_after_wait and outcome.summary is not None and outcome.summary.is_fallback:
                emit(CompactionFailed(_NO_ANSWER))
                return None
            used = conversation.usage.used
            why_now = _WAIT_NOTE if is_after_wait else _PAUSE_NOTE if is_after_pause else ""
            outcome = replace(outcome, note=f"{why_now} {outcome.note}".strip())
            entries = outcome.entries(reason, used)
            placed = conversation.log.append_many((*entries, *asked.added))
            event = outcome_event(placed[len(entries) - 1].id, reason, outcome, used)
            self._finish(event, emit)
            if reason == "threshold" and not why_now:
                self._say_why_early(emit)
            if reason == "threshold" and conversation.refill.is_in_vain:
                filling = await self.largest_sources(full)
                emit(
                    Notice(
                        "warning", self._services.ways.fill(conversation.refill.message(filling))
                    )
                )
            for part in self._parts:
                await part.after_compaction(event, emit)
            return outcome

    async def largest_sources(self, context: Context) -> str:
        """The largest sources of `context` with their shares, counted off the event loop."""
        return await asyncio.to_thread(largest_sources, context, self._services.counter)

    async def _ask_parts(self, reason: CompactionReason, focus: str, emit: Emit) -> Answer:
        """What features say about a compaction."""
        return await ask_before(
            self._parts, lambda part: part.before_compaction(reason, focus, emit)
        )

    async def make_room_after_wait(self, emit: Emit) -> Outcome | None:
        """Compact in place if that is cheaper than to read the context with a cold cache."""
        price = self.cold_price()
        is_cheaper = price is not None and price.small_usd is not None
        if not (is_cheaper and self._conversation.settings.auto):
            return None
        return await self.make_room("threshold", emit, is_after_wait=True)

    def _say_why_early(self, emit: Emit) -> None:
        """Explain once why compaction starts long before a large window is full."""
        window, trigger = self._conversation.model_info.window, self._conversation.limits.trigger
        is_early = window > _LARGE_WINDOW and trigger < window * _EARLY_SHARE
        if is_early and self._services.is_first_time("told-of-trigger-tokens"):
            why = _WHY_EARLY.format(trigger=trigger, window=window)
            way = self._services.ways.fill("{setting_changes:compaction.trigger_tokens}")
            emit(Notice("info", f"{why} {way}".rstrip()))

    async def compact_here(self, strategy: str, focus: str, emit: Emit) -> None:
        """Compact in place with `strategy` because the user asked for it."""
        await self.make_room("manual", emit, focus, strategy)

    def _not_done(
        self, error: CompactionError, reason: CompactionReason, emit: Emit, *, is_told: bool
    ) -> None:
        """Report why nothing was written, if someone waits for it or something failed."""
        conversation = self._conversation
        conversation.left_by_compaction = conversation.usage.used
        if isinstance(error, NothingToCompactError):
            if is_told or reason == "manual":
                emit(CompactionFailed("Nothing to compact: it would free too little."))
            return
        emit(CompactionFailed(str(error)))
        self._count_failure(emit)

    async def answer_call(self, focus: str, emit: Emit) -> ToolOutput:
        """Compact because the model asked for it, and return the result as the tool's output."""
        conversation = self._conversation
        await self._count_again(emit)
        used, window = conversation.usage.used, conversation.model_info.window
        if used < _LEAST_USED_TOKENS or used <= conversation.limits.target:
            return ToolOutput(
                f"No compaction needed: {used:,} of {window:,} tokens are in use. Continue."
            )
        outcome = await self.make_room("tool", emit, focus)
        if outcome is None:
            return ToolOutput(
                "Not compacted: it would free too little, or a hook refused. Continue.",
                is_error=True,
            )
        left = conversation.usage.used
        summary = f"{used:,} -> {left:,} tokens"
        return ToolOutput(
            f"Compacted from {used:,} to about {left:,} tokens. {describe_kept(outcome)}\n"
            "Nothing is lost: recall brings any of it back. Continue with the task.",
            ToolDetails(summary=summary),
        )

    async def compact_to_child(
        self,
        focus: str,
        emit: Emit,
        decided: Decision | None = None,
        confirm: Confirm | None = None,
    ) -> tuple[SessionLog, CompactionFinished] | None:
        """Write the compacted conversation as a new session; None when it failed.

        Args:
            focus: What the user asked to pay attention to.
            emit: Takes the events.
            decided: The proposal with the user's decisions; None without one.
            confirm: Says why not to do it, given what it would do; None to do it.
        """
        with self._running():
            conversation = self._conversation
            emit(CompactionStarted("manual", focus, conversation.usage.used))
            try:
                await self._count_again(emit)
                used = conversation.usage.used
                if confirm is not None and (why_not := await confirm(await self.preview())):
                    emit(CompactionFailed(why_not))
                    return None
                asked = await self._ask_parts("manual", focus, emit)
                if asked.refusal:
                    emit(CompactionFailed(_REFUSED.format(by=asked.by, why=asked.refusal)))
                    return None
                ahead = self._ahead(focus) if decided is None else None
                request = await self._request(focus, occasion="new session", ahead=ahead)
                request = request if decided is None else decided.apply_to(request)
                outcome = await self._planner.outcome(
                    request, "tiered", progress_to(emit), self._conversation.counting(emit)
                )
                summary = outcome.summary
                carryover = summary.carryover if summary else request.previous
                carried = carried_entries(self._parts, request.path)
                log = self._services.store.create_child(
                    conversation.log,
                    (*outcome.child_entries(request.path, "manual", used, carried), *asked.added),
                    with_spending(carryover, conversation.log, summary),
                    cwd=conversation.cwd,
                )
            except (CompactionError, SessionError) as error:
                emit(CompactionFailed(str(error)))
                return None
            except asyncio.CancelledError:
                emit(CompactionFailed("Compaction cancelled; nothing was changed."))
                raise
            conversation.breaker = conversation.breaker.after_success()
            return log, outcome_event(log.entries[0].id, "manual", outcome, used)

    async def propose(self, on_progress: OnProgress, *, asks_model: bool) -> Proposal:
        """Propose what ``/compact`` would keep, for the user to decide; writes nothing.

        Raises:
            CompactionError: There is nothing to compact.
        """
        request = await self._request("", occasion="new session")
        return await self._planner.propose(
            request, on_progress, self._count_background, asks_model=asks_model
        )

    async def preview(self) -> CompactionPreview:
        """What an automatic compaction would do now; writes nothing and asks no model."""
        conversation = self._conversation
        found = await self._planner.preview(
            await self._request("", least_gain=self._least_gain("threshold")),
            conversation.settings.strategy,
        )
        window = conversation.model_info.window
        return replace(found, window=window, target_tokens=conversation.limits.target)

    async def write_ahead(self) -> None:
        """Begin the next summary in the background if one will be needed soon.

        Not if the model runs on the user's own server: that would slow the turn down.
        """
        conversation, background = self._conversation, self._background
        settings, usage, limits = conversation.settings, conversation.usage, conversation.limits
        grown = usage.used - background.begun_at_tokens
        if (
            settings.background
            and settings.strategy == "tiered"
            and settings.auto
            and conversation.level != "normal"
            and not conversation.breaker.is_open
            and not (background.is_there and self._is_recent)
            and grown >= usage.window // _LOOK_AGAIN_PARTS
            and limits.trigger - usage.used <= int(limits.target * _AHEAD_SHARE)
            and conversation.model_info.source != "server"
        ):
            background.begin(await self._request(""), self._count_background)

    async def _count_again(self, emit: Emit) -> None:
        """Count what came since the last count, so that the plan starts from the present size."""
        for event in await self._conversation.refresh_usage():
            emit(event)

    def _least_gain(self, reason: CompactionReason) -> int:
        """Tokens that shortening must free; 1 if the window overflows or the model asks."""
        if reason != "threshold" or self._conversation.is_overfull:
            return 1
        return max(self._to_estimate(self._conversation.limits.least_gain), 1)

    def _to_estimate(self, tokens: int) -> int:
        """Convert `tokens` as the model counts them to our own estimate."""
        conversation = self._conversation
        return round(tokens / conversation.services.ratios.ratio(conversation.model.name))

    async def _request(
        self,
        focus: str,
        *,
        occasion: Occasion = "due",
        least_gain: int = 1,
        ahead: Ahead | None = None,
    ) -> CompactionRequest:
        conversation = self._conversation
        # With a cold cache, a cheaper model reads everything for less than the conversation's own.
        asks_another = bool(conversation.settings.model) or (
            occasion in ("asked", "new session") and self._is_cold
        )
        return CompactionRequest(
            path=conversation.log.path_entries(),
            previous=conversation.log.header.compaction,
            model=conversation.model,
            cwd=conversation.cwd,
            settings=conversation.settings,
            on_disk=partial(read_working_file, conversation.cwd),
            repositories=await self._repositories.read(conversation.log, conversation.cwd),
            sizes=ContextSizes(
                window=self._to_estimate(conversation.model_info.window),
                used=conversation.usage.used,
                overhead=await asyncio.to_thread(conversation.overhead_tokens),
                target=self._to_estimate(conversation.limits.target),
                least_gain=least_gain,
                ratio=conversation.services.ratios.ratio(conversation.model.name),
            ),
            asking=Asking(
                focus=focus, ahead=ahead, live=None if asks_another else conversation.request()
            ),
            occasion=occasion,
        )

    def _finish(self, event: CompactionFinished, emit: Emit) -> None:
        """Update the conversation's state after a compaction, and report it."""
        conversation = self._conversation
        conversation.breaker = conversation.breaker.after_success()
        is_asked = event.reason == "manual"
        conversation.refill = RefillWatch() if is_asked else conversation.refill.after_compaction()
        conversation.left_by_compaction = event.tokens_after
        self._background.drop()
        emit(event)
        emit(conversation.use_window(event.tokens_after))

    def _count_background(self, usage: Usage) -> None:
        """Count a background request, which for the provider also used the cached prefix."""
        self._conversation.count(usage)
        if not self._conversation.settings.model:
            self._conversation.prefix_read_s = self._services.wall_clock()

    def _count_failure(self, emit: Emit) -> None:
        conversation = self._conversation
        was_open = conversation.breaker.is_open
        conversation.breaker = conversation.breaker.after_failure()
        if conversation.breaker.is_open and not was_open:
            emit(Notice("warning", self._services.ways.fill(conversation.breaker.message)))


def _occasion_of(reason: CompactionReason, *, is_asked: bool) -> Occasion:
    if reason == "overflow":
        return "overflow"
    return "asked" if is_asked or reason == "manual" else "due"


def read_working_file(cwd: Path, path: str) -> str | None:
    """The text of a file in the workspace; None if it must not be shown without asking."""
    try:
        folder, file = real_path(cwd), resolve_path(path, cwd)
        guard = ProtectedPaths(workspace=folder)
        if not guard.is_inside(file) or guard.why_reading_asks(file):
            return None
        with open_judged_file(file) as opened:
            content = opened.read(_LARGEST_FILE + 1)
        return None if len(content) > _LARGEST_FILE else content.decode().replace("\r\n", "\n")
    except (OSError, ValueError):
        return None
