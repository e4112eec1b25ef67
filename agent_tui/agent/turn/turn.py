"""One turn: reply, tools, reply, until the model has nothing more to do."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import count, takewhile
from typing import NoReturn, Protocol

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.part import Answer, Part, ask_before
from agent_tui.agent.prompt.mentions import find_mentions, read_mentioned
from agent_tui.agent.session.opening import choose_model
from agent_tui.agent.turn.limit_wait import (
    LimitWaits,
    is_limited,
    long_wait_s,
    note_limit,
    open_wait,
    stand_in,
)
from agent_tui.agent.turn.repetition import LoopWatch, goes_round
from agent_tui.agent.turn.reply import CompleteReply, CutReply, ReplyBuilder
from agent_tui.agent.turn.reply_keeper import ReplyKeeper
from agent_tui.agent.turn.tool_calls import ToolRunner
from agent_tui.agent.turn.user_message import NewMessage, user_message
from agent_tui.attachments import find_attached_files
from agent_tui.errors import SessionError
from agent_tui.events import (
    CompactionReason,
    CutReplyDropped,
    ModelChanged,
    Notice,
    ReplyAwaited,
    ReplyDiscarded,
    ReplyFinished,
    ReplyStarted,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    TurnFinished,
    TurnRecorded,
    TurnStarted,
    UserMessageAdded,
)
from agent_tui.messages import AssistantMessage, StopReason, UserMessage
from agent_tui.providers.base import (
    Chunk,
    ModelRef,
    ModelRequest,
    NoticeChunk,
    Provider,
    ProviderError,
    RestartChunk,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
)
from agent_tui.providers.limits import (
    FALLBACK_RETRIES,
    MAX_RETRIES,
    BudgetSpent,
    most_retries,
    retry_delay_s,
)
from agent_tui.providers.prompt_cache import cache_lifetime
from agent_tui.providers.silence import WaitTeller
from agent_tui.safe_paths import real_path
from agent_tui.sessions.context import Context
from agent_tui.sessions.entries import Entry
from agent_tui.sessions.replay.notes import (
    continue_entry,
    stop_entry,
    turn_facts,
    turn_facts_entry,
)
from agent_tui.tokens import ContextUsage

_SHORT_PARTS = 4
"""A short reply may have this fraction of the usual limit: enough for a call or an answer."""

_EMPTY = "The model sent an empty reply twice."
_MOST_CUTS = 3
"""Most replies in a row, cut by their length, that are continued automatically."""

_MOST_SENT_ON = 3
"""How often in one turn features may continue a turn that the model was about to end."""

_KEPT = "The partial reply is kept; the model is asked to continue it."
_STUCK = (
    "Stopped: the model keeps repeating tool calls without making progress; {why}. "
    "Tell it what to do instead, or choose another model with {{model}}."
)
_BROKE_AGAIN = "This happened twice in a row. Try again later, or switch models with {model}."
_BABBLES = "Stopped: the model keeps repeating the same text."
_NOT_TO_BE_HAD = ("address", "quota", "not_found")
"""Errors that waiting does not fix, but another model may."""

_MAX_CALLS = 256
"""Most calls in one reply; OpenAI's services allow 128."""
_FLOODS = f"Stopped: the reply has more than {_MAX_CALLS} tool calls; none were run."
_FILTERED = "The provider's content filter stopped this reply."


class Compactor(Protocol):
    """Compacts in the middle of a turn."""

    async def make_room(self, reason: CompactionReason, emit: Emit) -> object | None:
        """Compact in place; None if that was not possible, which `emit` reports."""
        ...

    async def make_room_after_wait(self, emit: Emit) -> object | None:
        """Compact in place if that is cheaper than to read the context with a cold cache."""
        ...

    def is_due(self, usage: ContextUsage) -> bool:
        """Whether an automatic compaction should run before the next request."""
        ...

    async def largest_sources(self, context: Context) -> str:
        """The largest sources of `context` with their shares: ``read src/a.py 41 %, ...``."""
        ...

    async def write_ahead(self) -> None:
        """Begin the next summary in the background if one will be needed soon."""
        ...


class _TurnEnded(Exception):
    """The turn is over; `event` says how."""

    def __init__(self, event: TurnFinished) -> None:
        super().__init__(event.error)
        self.event = event


async def _nothing() -> None:
    pass


class Turn:
    """Runs one turn. Everything is in the session file before it is emitted.

    Args:
        conversation: What the turn adds to.
        provider: Where replies come from.
        compactor: Called when the window fills, also between tool rounds.
        emit: Takes the events.
        get_ready: Awaited before the first request.
        most_replies: Most replies of the turn; 0 for any number.
        parts: What features do in the conversation.
    """

    def __init__(
        self,
        conversation: Conversation,
        provider: Provider,
        tools: ToolRunner,
        compactor: Compactor,
        emit: Emit,
        get_ready: Callable[[], Awaitable[None]] = _nothing,
        most_replies: int = 0,
        parts: Sequence[Part] = (),
    ) -> None:
        self._conversation = conversation
        self._provider = provider
        self._tools = tools
        self._compactor = compactor
        self._emit = emit
        self._sleep = conversation.services.sleep
        self._get_ready = get_ready
        self._most_replies = most_replies
        self._parts = parts
        self._waits = LimitWaits(conversation, emit, self._sleep)
        self._times_sent_on = 0
        self._cut = CutReply()
        self._began_s = conversation.services.clock()
        self._before = conversation.log.leaf_id

    async def run(self, message: NewMessage | None) -> None:
        """Run the turn to its end. `message` is the user's; None continues the last turn.

        Cancelling records the partial reply, or an error result for each open call, and emits
        the `TurnFinished` before the cancellation is passed on.
        """
        try:
            ending = await self._run(message)
        except asyncio.CancelledError:
            self._emit(self._sync(TurnFinished("aborted", can_continue=True)))
            raise
        self._emit(self._sync(ending))

    def _sync(self, ending: TurnFinished) -> TurnFinished:
        """`ending` once the turn is on disk, or the error that kept it from being written."""
        try:
            log = self._conversation.log
            is_waiting = open_wait(log.path_entries()) is not None
            if ending.outcome == "aborted" and not is_waiting and log.leaf_id != self._before:
                log.append(stop_entry())
            self._deliver_notes()
            self._record_facts()
            self._conversation.log.sync()
        except SessionError as error:
            return TurnFinished("error", str(error))
        self._say_mends()
        return ending

    def _record_facts(self) -> None:
        """Record and emit how long the turn took and what it changed, if that is worth a line.

        Raises:
            SessionError: The facts could not be recorded.
        """
        conversation = self._conversation
        waited_s = self._tools.waited_s + self._waits.slept_s
        took_s = max(conversation.services.clock() - self._began_s - waited_s, 0.0)
        path = conversation.log.path_entries()
        added = takewhile(lambda entry: entry.id != self._before, reversed(path))
        facts = turn_facts(tuple(added)[::-1], round(took_s * 1_000), real_path(conversation.cwd))
        if facts is not None:
            entry = conversation.log.append(turn_facts_entry(facts))
            self._emit(TurnRecorded(entry.id, facts))

    def _say_mends(self) -> None:
        """Tell the user about a session file that somebody deleted or replaced."""
        for mend in self._conversation.log.take_mends():
            self._emit(Notice("warning", mend))

    async def _run(self, message: NewMessage | None) -> TurnFinished:
        try:
            if message is not None:
                await self._say(message)
            else:
                if (told := continue_entry(self._conversation.log.path_entries())) is not None:
                    self._conversation.log.append(told)
                for part in self._parts:
                    await part.before_continuing(self._emit)
            self._emit(TurnStarted())
            await self._get_ready()
            if message is None and await self._waits.finish():
                await self._compactor.make_room_after_wait(self._emit)
            await self._rounds_settled()
        except SessionError as error:
            return TurnFinished("error", str(error))
        except _TurnEnded as end:
            await self._say_usage()
            if end.event.outcome != "limit":
                await self._compactor.write_ahead()
            return end.event

    async def _rounds_settled(self) -> NoReturn:
        try:
            await self._rounds()
        finally:
            await self._tools.settle()

    async def _rounds(self) -> NoReturn:
        cuts = 0
        for number in count(1):
            await self._deliver_inbox()
            self._conversation.tell_ended_jobs()
            self._return_to_first_model()
            await self._make_room_if_due()
            await self._compactor.write_ahead()
            reply = await self._reply_once_more_if_empty()
            is_cut = reply.message.stop_reason == "length"
            cuts = cuts + 1 if is_cut else 0
            if reply.message.tool_calls:
                await self._answer_calls(reply)
            elif not is_cut and not await self._goes_on(reply):
                raise _TurnEnded(TurnFinished("done"))
            if is_cut:
                self._go_on_after_cut(reply, cuts)
            if number == self._most_replies:
                raise _TurnEnded(TurnFinished("limit", _took(number), can_continue=True))
        raise AssertionError

    async def _goes_on(self, reply: CompleteReply) -> bool:
        """Whether the turn continues when the model is done: for a queued message or a feature."""
        queue = self._conversation.queue
        if queue.first is not None:
            return True
        text, times = reply.message.text, self._times_sent_on
        for part in self._parts:
            if await part.continues(text, times, _MOST_SENT_ON, self._emit):
                self._times_sent_on += 1
                return True
        return queue.first is not None

    def _go_on_after_cut(self, reply: CompleteReply, cuts: int) -> None:
        """Announce that the cut reply is continued, or end the turn if that would be endless.

        The next request ends in that reply, and the wire adds the request to continue.
        """
        is_weak = self._conversation.model_info.writes_calls
        leads_nowhere = is_weak and goes_round(reply.message.text)
        if cuts > _MOST_CUTS or not reply.message.content or leads_nowhere:
            raise _TurnEnded(TurnFinished("length", can_continue=True))
        said = f"The output limit cut off the reply; continuing ({cuts}/{_MOST_CUTS})."
        self._emit(Notice("info", said))

    async def _answer_calls(self, reply: CompleteReply) -> None:
        """Record one result for every call, even on cancellation."""
        calls = reply.message.tool_calls
        try:
            await self._say_usage()
        except asyncio.CancelledError:
            self._tools.abandon(calls)
            raise
        if ending := await self._tools.run_all(calls, reply.broken_calls):
            raise _TurnEnded(TurnFinished(ending, can_continue=ending == "aborted"))
        await self._tools.pin_instructions()
        if why := self._tools.stuck:
            stuck = self._conversation.services.ways.fill(_STUCK.format(why=why))
            raise _TurnEnded(TurnFinished("limit", stuck, can_continue=True))

    async def _say(self, new: NewMessage) -> None:
        message, notices = await self._message(new)
        await self._refuse_too_large(message)
        asked = await self._before_message(new.text)
        if asked.refusal:
            raise _TurnEnded(TurnFinished("error", _refused(asked, "the message")))
        await self._pin_along(new)
        self._add_user_message(message, (*notices, *asked.notices), asked.added)

    async def _before_message(self, text: str) -> Answer:
        """What features say about a message."""
        return await ask_before(self._parts, lambda part: part.before_message(text, self._emit))

    async def _pin_along(self, new: NewMessage) -> None:
        if (pins := self._tools.pins) is not None:
            cwd = self._conversation.cwd
            files = await asyncio.to_thread(find_mentions, new.text, cwd)
            await pins.follow(new.typed_text, [mention.path for mention in files])

    async def _message(self, new: NewMessage) -> tuple[UserMessage, tuple[str, ...]]:
        conversation, text = self._conversation, new.text
        info, remote = conversation.model_info, conversation.services.remote_tools
        resources = await read_mentioned(text, info.window, remote.read_resource)
        given = [item.message for item in conversation.context().messages] if "@" in text else []
        said = (message.text for message in given if isinstance(message, UserMessage))
        attached = [file for one in said for file in find_attached_files(one)]

        def read() -> tuple[UserMessage, tuple[str, ...]]:
            why_held = conversation.permissions.why_attaching_asks
            return user_message(
                text,
                new.images,
                conversation.cwd,
                info,
                why_held,
                resources=resources,
                in_context=attached,
                ways=conversation.services.ways,
            )

        message, notices = await asyncio.to_thread(read)
        return message.model_copy(update={"typed": new.typed}), notices

    async def _refuse_too_large(self, message: UserMessage) -> None:
        """End the turn before `message` is recorded if the window cannot hold it."""
        if self._conversation.surely_holds(message):
            return
        problem = await asyncio.to_thread(self._conversation.too_large, message)
        if problem:
            raise _TurnEnded(TurnFinished("error", problem))

    def _add_user_message(
        self, message: UserMessage, notices: tuple[str, ...], added: Sequence[Entry]
    ) -> None:
        """Record `message` and the entries that features add to it."""
        entry = self._conversation.append(message)
        self._conversation.log.append_many(added)
        self._emit(UserMessageAdded(entry.id, message.text, len(message.images)))
        for notice in notices:
            self._emit(Notice("info", notice))

    async def _deliver_inbox(self) -> None:
        """Deliver queued messages in order; one withdrawn or cancelled meanwhile stays queued."""
        queue = self._conversation.queue
        self._deliver_notes()
        while (waiting := queue.first) is not None:
            message, notices = await self._message(waiting)
            asked = await self._before_message(waiting.text)
            if queue.first is waiting and not asked.refusal:
                await self._pin_along(waiting)
            if queue.first is waiting:
                queue.take_first()
                if asked.refusal:
                    refused = _refused(asked, f"the message {waiting.text!r}")
                    self._emit(Notice("warning", refused))
                else:
                    message = message.model_copy(update={"is_steering": True})
                    self._add_user_message(message, (*notices, *asked.notices), asked.added)
                self._emit(queue.change)

    def _deliver_notes(self) -> None:
        """Record what the model is to be told."""
        queue = self._conversation.queue
        if queue.notes:
            self._conversation.deliver_notes()
            self._emit(queue.change)

    async def _make_room_if_due(self) -> None:
        """Compact if that is due, or if it is switched off but the context no longer fits.

        A request that is known not to fit is never sent: some servers would cut it silently.
        """
        await self._say_usage()
        conversation = self._conversation
        is_due = self._compactor.is_due(conversation.usage)
        if not is_due and not conversation.is_overfull:
            return
        await self._make_room("threshold" if is_due else "overflow")
        if conversation.is_overfull:
            too_large = conversation.services.ways.fill(_too_large(conversation.usage))
            raise _TurnEnded(TurnFinished("error", too_large))

    async def _say_usage(self) -> None:
        self._say_mends()
        for event in await self._conversation.refresh_usage():
            self._emit(event)

    async def _reply_once_more_if_empty(self) -> CompleteReply:
        """Returns a reply that is not empty; asks again once.

        Some servers silently cut a request that is too large and then have no space for an answer,
        so an empty reply that ends by its length counts as an overflow.
        """
        for last_try in (False, True):
            reply = await self._reply_with_retries()
            if reply.was_filtered:
                raise _TurnEnded(TurnFinished("error", _FILTERED))
            message = reply.message
            if message.tool_calls or message.text.strip():
                return reply
            if message.stop_reason == "length":
                if last_try or message.content or not await self._make_room("overflow"):
                    return reply
                continue
            if last_try:
                raise _TurnEnded(TurnFinished("error", _EMPTY, can_continue=True))
            self._emit(Notice("info", "The model sent an empty reply; asking again."))
        raise AssertionError

    async def _make_room(self, reason: CompactionReason) -> bool:
        await self._tools.settle()
        full = self._conversation.context()
        has_room = await self._compactor.make_room(reason, self._emit) is not None
        if has_room:
            await self._say_usage()
            await self._stop_if_in_vain(full)
        return has_room

    async def _stop_if_in_vain(self, full: Context) -> None:
        """End the turn if only compactions happen; `full` is the context before the newest one."""
        conversation = self._conversation
        if not conversation.refill.is_loop:
            return
        filling = await self._compactor.largest_sources(full)
        why = conversation.services.ways.fill(conversation.refill.loop_message(filling))
        raise _TurnEnded(TurnFinished("limit", why, can_continue=True))

    async def _reply_with_retries(self) -> CompleteReply:
        """Returns the reply, retrying the request if that may help.

        A request refused as too large is sent once more: after a compaction or, if there is nothing
        to compact, with a smaller reply limit, as some servers count the two together.
        """
        attempt = 1
        self._cut = CutReply()
        was_overflow = is_mended = is_short = False
        before: ProviderError | None = None
        while True:
            try:
                reply = await self._reply(is_short=is_short)
                self._waits.note_reply()
                return reply
            except ProviderError as error:
                if error.kind == "context_overflow" and not was_overflow:
                    was_overflow = True
                    has_learned = self._learns_window(error)
                    is_mended = await self._make_room("overflow")
                    is_short = not is_mended and bool(
                        self._conversation.request().max_output_tokens
                    )
                    if is_mended or is_short or has_learned:
                        continue
                most = most_retries(error, self._most_retries)
                delay_s = retry_delay_s(error, attempt, random.random(), most, before)
                if delay_s is None:
                    if await self._falls_back(error) or await self._is_limit_over(error):
                        attempt, before = 1, None
                    elif not error.repeats(before) and await self._waits.wait_out(
                        error, self._conversation.model
                    ):
                        await self._get_ready_after_wait(error)
                    else:
                        await self._advise(error, before, has_compacted=is_mended)
                        raise _failure(error, self._waits.beyond(error)) from error
                    continue
                self._emit(RetryScheduled(attempt, most, delay_s, self._reason(error)))
                await self._sleep(delay_s)
                attempt += 1
                before = error

    async def _advise(
        self, error: ProviderError, before: ProviderError | None, *, has_compacted: bool
    ) -> None:
        """Let `error` say what helps, if the turn knows that better than the provider."""
        if error.repeats(before):
            error.advice = _BROKE_AGAIN
        elif error.kind == "context_overflow" and not has_compacted:
            error.advice = await asyncio.to_thread(self._conversation.advice_if_refused)

    def _reason(self, error: ProviderError) -> str:
        """Why a request is retried, with what the user can do meanwhile if that may be needed."""
        if self._cut.last_id:
            return f"{error.message} {_KEPT}"
        return str(error) if error.is_unproven and not error.has_answered else error.message

    async def _get_ready_after_wait(self, error: ProviderError) -> None:
        """Choose the model for the next request, and make it cheap if the server is back."""
        self._return_to_first_model()
        if long_wait_s(error) is not None:
            await self._compactor.make_room_after_wait(self._emit)
        await self._make_room_if_due()

    def _return_to_first_model(self) -> None:
        """Switch back from the fallback model once the limit of the first model has reset."""
        conversation = self._conversation
        first = conversation.stands_in_for
        if first is None or is_limited(conversation, first):
            return
        conversation.stands_in_for = None
        self._emit(Notice("info", f"The limit of {first.name} has reset. Switching back to it."))
        for event in choose_model(conversation, first, conversation.services):
            self._emit(event)

    @property
    def _fallback(self) -> ModelRef | None:
        """The model to use if the present one does not answer; None if it is limited or missing."""
        conversation = self._conversation
        fallback = conversation.services.fallback_model
        if fallback is None or fallback == conversation.model or is_limited(conversation, fallback):
            return None
        return fallback

    @property
    def _most_retries(self) -> int:
        """Fewer retries if another model can take over: no more than a user would wait for."""
        return FALLBACK_RETRIES if self._fallback else MAX_RETRIES

    async def _falls_back(self, error: ProviderError) -> bool:
        """Whether to continue with another model because the present one is unavailable."""
        conversation, fallback = self._conversation, self._fallback
        before = conversation.model
        is_limit = note_limit(conversation, error, before)
        if fallback is None or not (error.is_retryable or error.kind in _NOT_TO_BE_HAD):
            return False
        if isinstance(error, BudgetSpent):
            return False
        said = f"{error.message} Switching to {fallback.name}."
        self._emit(Notice("warning", said))
        for event in choose_model(conversation, fallback, conversation.services):
            self._emit(event)
        conversation.stands_in_for = None
        if is_limit:
            stand_in(conversation, before)
        await self._make_room_if_due()
        return True

    async def _is_limit_over(self, error: ProviderError) -> bool:
        """Whether a feature lets the request be sent again although a limit is reached.

        Ends the turn if it says how else the user can continue.
        """
        for part in self._parts:
            advice = await part.at_limit(error, self._conversation.model, self._emit)
            if advice:
                error.advice = advice
                raise _failure(error, self._waits.beyond(error)) from error
            if advice is not None:
                return True
        return False

    def _learns_window(self, error: ProviderError) -> bool:
        """Whether the server named a smaller window than was known; if so, use it from now on."""
        conversation = self._conversation
        window, known = error.stated_window, conversation.model_info
        if not 0 < window < (known.window or window + 1):
            return False
        conversation.model_info = replace(known, window=window, source="server")
        self._emit(ModelChanged(conversation.model.name, window))
        return True

    async def _reply(self, *, is_short: bool) -> CompleteReply:
        """Make one request. What arrived before an error is kept for the user."""
        conversation = self._conversation
        model = conversation.model
        builder = ReplyBuilder(model.provider, model.model_id, conversation.tool_call_ids)
        request = replace(conversation.request(), on_wait=WaitTeller(self._tell_wait).hear)
        if is_short and request.max_output_tokens:
            cap = max(request.max_output_tokens // _SHORT_PARTS, 1)
            request = replace(request, max_output_tokens=cap)
        compaction, sent_s = conversation.context().compaction, conversation.services.wall_clock()
        self._cut.begin_try()
        self._emit(ReplyStarted(model.name))
        with ReplyKeeper(conversation, lambda: self._build_partial(builder, "aborted")):
            await self._receive(request, builder)
            reply = builder.build()
            conversation.requests.record(
                request,
                compaction.id if compaction is not None else "",
                sent_s,
                reply.message.usage,
                cache_lifetime(model),
            )
            entry = conversation.append(reply.message)
        self._emit(ReplyFinished(entry.id, reply.message))
        self._emit(conversation.totals)
        return reply

    async def _receive(self, request: ModelRequest, builder: ReplyBuilder) -> None:
        """Stream the reply to `request` into `builder`. What arrived before an error is stored."""
        is_weak, watch = self._conversation.model_info.writes_calls, LoopWatch()
        try:
            async with aclosing(self._provider.stream(request)) as chunks:
                async for chunk in chunks:
                    self._take(chunk, builder)
                    why = _FLOODS if builder.call_count > _MAX_CALLS else ""
                    if is_weak and isinstance(chunk, TextChunk) and watch.is_looping(chunk.text):
                        why = _BABBLES
                    if why:
                        self._keep_partial(builder, "error", why)
                        raise _TurnEnded(TurnFinished("error", why, can_continue=True))
            if not builder.is_finished:
                raise ProviderError("interrupted", "Connection lost mid-reply.")
        except asyncio.CancelledError:
            self._keep_partial(builder, "aborted")
            raise
        except ProviderError as error:
            self._keep_partial(builder, "error", str(error))
            raise

    def _tell_wait(self, waited_s: float, is_alive: bool) -> None:
        self._emit(ReplyAwaited(waited_s, is_alive))

    def _take(self, chunk: Chunk, builder: ReplyBuilder) -> None:
        """Add `chunk` to the reply and emit what it changes."""
        if isinstance(chunk, RestartChunk):
            self._emit(ReplyDiscarded(was_shown=builder.has_prose))
            self._emit(ReplyStarted(self._conversation.model.name))
            self._cut.begin_try()
        builder.add(chunk)
        self._drop_what_comes_again(builder)
        self._emit_delta(chunk, builder)

    def _drop_what_comes_again(self, builder: ReplyBuilder) -> None:
        """Leave out the parts of a cut reply that the present one repeats.

        They stay in the session, on a separate branch.
        """
        log = self._conversation.log
        if log.leaf_id != self._cut.last_id or not builder.has_prose:
            return
        if dropped := self._cut.take_given_anew(builder.text):
            log.branch_to(dropped[0].parent_id)
            self._emit(CutReplyDropped(tuple(part.id for part in dropped)))

    def _keep_partial(
        self, builder: ReplyBuilder, stop_reason: StopReason, error: str | None = None
    ) -> None:
        """Record what arrived before an interruption, unless it is empty or already recorded."""
        message = self._build_partial(builder, stop_reason, error)
        if message is None:
            self._emit(ReplyDiscarded(was_shown=builder.has_prose))
            return
        entry = self._conversation.append(message)
        self._cut.add(entry)
        self._emit(ReplyFinished(entry.id, message))

    def _build_partial(
        self, builder: ReplyBuilder, stop_reason: StopReason, error: str | None = None
    ) -> AssistantMessage | None:
        """The reply so far; None if it is empty or already recorded."""
        if not builder.has_prose or self._cut.holds(builder.text):
            return None
        return builder.build_interrupted(stop_reason, error)

    def _emit_delta(self, chunk: Chunk, builder: ReplyBuilder) -> None:
        match chunk:
            case TextChunk(text):
                self._emit(TextDelta(text))
            case ThinkingChunk(text) if text:
                self._emit(ThinkingDelta(text))
            case ToolCallChunk(index):
                name, size = builder.call_name(index), builder.argument_chars(index)
                self._emit(ToolCallDelta(name, size))
            case NoticeChunk(text):
                self._emit(Notice("info", text))
            case _:
                pass


def _too_large(usage: ContextUsage) -> str:
    return (
        f"The conversation has about {usage.used:,} tokens and cannot be compacted to fit this "
        f"model's context window ({usage.window:,}). Start a new session with {{new}}, or choose "
        "a model with a larger window with {model}."
    )


def _refused(answer: Answer, what: str) -> str:
    return f"{answer.by[:1].upper()}{answer.by[1:]} refused {what}: {answer.refusal}"


def _took(number: int) -> str:
    return f"Stopped: --max-turns {number} reached."


def _failure(error: ProviderError, until: str) -> _TurnEnded:
    if isinstance(error, BudgetSpent):
        return _TurnEnded(TurnFinished("limit", str(error)))
    said = f"{error.message}{until} {error.hint}".strip() if until else str(error)
    return _TurnEnded(TurnFinished("error", said, can_continue=True))
