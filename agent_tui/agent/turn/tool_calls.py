"""Judge and run the tool calls of one reply; every call gets exactly one result."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.part import CallAnswer, Part
from agent_tui.agent.turn.command_network import NO_HOSTS, CommandNetwork, NamedHosts
from agent_tui.agent.turn.file_keeper import FileKeeper
from agent_tui.agent.turn.pending_approvals import (
    ApprovalAnswer,
    HeldDecision,
    PendingApprovals,
    PlanDecision,
    UseMode,
)
from agent_tui.agent.turn.pins import PinKeeper
from agent_tui.agent.turn.repetition import Repetition
from agent_tui.agent.turn.so_far import OutputSoFar
from agent_tui.errors import AgentTuiError, ConfigError, SessionError, ToolError
from agent_tui.events import (
    ApprovalRequest,
    ApprovalRequested,
    ApprovalResolved,
    FormClosed,
    FormOpened,
    Notice,
    TodosChanged,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
)
from agent_tui.messages import (
    CallEnding,
    FileTouches,
    JsonObject,
    TextContent,
    ToolCall,
    ToolDetails,
    ToolResultMessage,
    with_words,
)
from agent_tui.permissions.rules import Decision
from agent_tui.permissions.verdict import Verdict
from agent_tui.providers.base import ProviderError
from agent_tui.safe_text import printable_line
from agent_tui.sessions.replay.file_changes import changes_entry
from agent_tui.tools.base import (
    Ability,
    CallInterrupted,
    History,
    Intent,
    PreparedCall,
    ToolContext,
    ToolOutput,
    TurnEnding,
)
from agent_tui.tools.form import Elicitation, FormFiller, UserForms
from agent_tui.tools.shorten import OutputLimits, keep_head, size_bytes

_NOT_RUN = "Not run: the user interrupted before this call."
_PLAN_VERDICT = Verdict("ask", "")
"""A plan is always shown to the user, whatever the rules say."""
_DECLINED = "The user declined this call."
_ASKED = " Approval was needed because: {why}."
_REST = "\nNo part of the command ran. You can run its other parts without the ones named here."
_WITHOUT = "[Ran without what was declined before it in this reply: {calls}]"
_SKIPPED = "Not run: the user declined an earlier call in this reply."
_STOPPED = "Not run: an earlier call in this reply ended the turn."
_CHANGED = (
    "Not run: what this call would do changed after the user approved it. "
    "Look again and repeat the call."
)

_TITLE_CHARS = 100
_TOLD_S = 1.0
"""The time of a call is shown from this duration on."""


class _Declined(Exception):
    """The user said no without words: the turn stops so that they can write.

    Its argument is the result that the model gets for the call.
    """


@dataclass(frozen=True, slots=True)
class _Ready:
    """A call that may run, or its result if it may not."""

    work: Callable[[], Awaitable[ToolOutput]] | ToolOutput
    limits: OutputLimits
    tool_name: str = ""
    only_reads: bool = True


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """A running call, and what it has put out."""

    call: ToolCall
    running: asyncio.Task[ToolOutput]
    so_far: OutputSoFar
    only_reads: bool


@dataclass(slots=True)
class _Answered:
    """Progress on the `calls` of one reply; the usage does not yet include `uncounted`.

    `declined` are the titles of those that the user declined, with words.
    """

    calls: int = 1
    last_id: str = ""
    done: int = 0
    given_bytes: int = 0
    uncounted: list[ToolResultMessage] = field(default_factory=list[ToolResultMessage])
    declined: list[str] = field(default_factory=list[str])

    def add(self, result: ToolResultMessage) -> None:
        self.done += 1
        self.given_bytes += size_bytes(result.text)
        self.uncounted.append(result)


@dataclass(frozen=True, slots=True)
class ToolServices:
    """The services for running a call, beside the conversation.

    `pending` takes answers to approvals; `history` returns what `recall` searches; `compact`
    carries out the tool of that name; `abilities` are what other tools ask for. `network` decides
    on connections that commands want. `use_mode` changes the permission mode. `fill_form` has the
    user fill a form; None if nobody can.
    """

    pending: PendingApprovals
    history: Callable[[], History]
    compact: Callable[[str, Emit], Awaitable[ToolOutput]]
    abilities: Sequence[Ability] = ()
    network: CommandNetwork = field(default_factory=CommandNetwork)
    use_mode: UseMode = str
    fill_form: FormFiller | None = None


@dataclass(frozen=True)
class _CallForms(UserForms):
    """The forms of one call."""

    fill_for_call: FormFiller

    async def fill(self, form: Elicitation) -> JsonObject:
        return await self.fill_for_call(form)


class ToolRunner:
    """Runs the calls of one reply in order and records a result for each.

    Attributes:
        pins: Pins skills and instructions; None to pin nothing.
        repetition: Tracks repeated calls.
    """

    def __init__(
        self,
        conversation: Conversation,
        services: ToolServices,
        emit: Emit,
        pins: PinKeeper | None = None,
        parts: Sequence[Part] = (),
    ) -> None:
        self._conversation = conversation
        self.pins = pins
        self._services = services
        self._emit = emit
        self._parts = parts
        self.repetition = Repetition()
        self._waited_s = -services.network.waited_s
        self._finding: asyncio.Task[None] | None = None
        self._files = FileKeeper(conversation, conversation.services.environ)
        self._plans = PlanDecision(
            conversation, conversation.permissions, services.use_mode, self._ask, emit
        )
        self._held = HeldDecision(conversation.permissions, self._ask, self._remember, emit)
        self._asking = asyncio.Lock()
        self._ending: TurnEnding = ""
        self._touched: list[Path] = []
        self._answered = _Answered()

    @property
    def waited_s(self) -> float:
        """Seconds spent waiting for the user."""
        return self._waited_s + self._services.network.waited_s

    def _find_faults(self, calls: Sequence[ToolCall], known: Mapping[str, str]) -> dict[str, str]:
        """What is wrong with each call, by id: no such tool, `known` faults, wrong arguments."""
        names = {tool.name for tool in self._conversation.services.toolbox.specs}
        broken: dict[str, str] = {}
        for call in calls:
            if call.name in names and call.id in known:
                broken[call.id] = f"This call was not run: {known[call.id].removesuffix('.')}."
                continue
            try:
                with self._report_faults(call.name):
                    self._conversation.services.toolbox.check(call.name, call.arguments)
            except ToolError as error:
                broken[call.id] = str(error)
        return broken

    def abandon(self, calls: Sequence[ToolCall]) -> None:
        """Record an error as the result of calls that never started."""
        self._skip(calls, _NOT_RUN)

    async def run_all(
        self, calls: Sequence[ToolCall], faults: Mapping[str, str] = MappingProxyType({})
    ) -> TurnEnding:
        """Run `calls`; returns how they end the turn, as after a "no" without words.

        Calls that only read run at the same time, any other alone after all before it; the user is
        asked about one at a time. Results are recorded in the order of the calls. Calls after one
        that stopped the turn do not run.
        Cancelling stops all, and records an error for each unfinished call.

        Args:
            calls: The calls of one reply, as the model wrote them.
            faults: Call id -> what is wrong with arguments that cannot be parsed.
        """
        understood = [self._translate(call) for call in calls]
        calls = [call for call, _ in understood]
        broken = self._find_faults(calls, faults)
        self.repetition.count_reply(is_refused=len(broken) == len(calls))
        under_way: list[_UnderWay] = []
        begun = 0
        self._ending = ""
        self._answered = _Answered(len(calls), calls[-1].id)
        try:
            for call, remark in understood:
                so_far = self._so_far(call)
                ready = await self._ready(call, broken, so_far, under_way)
                if not ready.only_reads:
                    await self._finish(under_way)
                    await self.settle()
                running = asyncio.create_task(self._output(ready, remark, so_far))
                under_way.append(_UnderWay(call, running, so_far, ready.only_reads))
                begun += 1
                if not ready.only_reads:
                    await self._finish(under_way)
            await self._finish(under_way)
        except asyncio.CancelledError:
            await self._end(under_way)
            for call in calls[begun : begun + 1]:
                self._record(call, self._so_far(call).interrupted(self._clock_s()))
            self._skip(calls[begun + 1 :], _NOT_RUN)
            raise
        except _Declined as declined:
            await self._finish(under_way)
            self._record(calls[begun], _error_output(str(declined), "declined"))
            self._skip(calls[begun + 1 :], _SKIPPED)
            self._ending = "aborted"
        finally:
            for left in under_way:
                left.running.cancel()
            self._plans.say_approved()
        return self._ending

    async def pin_instructions(self) -> None:
        """Pin the instructions of the folders that calls have touched."""
        touched, self._touched = self._touched, []
        if self.pins is not None and touched:
            await self.pins.pin_instructions_of(touched)

    async def _finish(self, under_way: list[_UnderWay]) -> None:
        """Wait for all running calls and record their results in order."""
        while under_way:
            await asyncio.wait((under_way[0].running,))
            first = under_way.pop(0)
            self._record(first.call, first.running.result(), only_reads=first.only_reads)

    async def _end(self, under_way: list[_UnderWay]) -> None:
        """Cancel running calls: they keep their output, and if they have finished, their result."""
        for each in under_way:
            each.running.cancel()
        try:
            if under_way:
                await asyncio.wait([each.running for each in under_way])
        finally:
            for each in under_way:
                is_done = each.running.done() and not each.running.cancelled()
                if is_done:
                    self._record(each.call, each.running.result(), only_reads=each.only_reads)
                else:
                    self._record(each.call, each.so_far.interrupted(self._clock_s()))
            under_way.clear()

    def _skip(self, calls: Sequence[ToolCall], why: str) -> None:
        for call in calls:
            self._announce(call)
            self._record(call, _error_output(why, "cancelled"))

    def _translate(self, call: ToolCall) -> tuple[ToolCall, str]:
        """`call` with our own names of tools and arguments, and a note to the model about it."""
        toolbox, cwd = self._conversation.services.toolbox, self._conversation.cwd
        try:
            with self._report_faults(call.name):
                own = toolbox.translate_call(call.name, call.arguments, cwd)
        except ToolError:
            return call, ""
        return ToolCall(id=call.id, name=own.name, arguments=own.arguments), own.remark

    def _so_far(self, call: ToolCall) -> OutputSoFar:
        """Takes the output of `call`, within what is left for it in this reply."""
        answered = self._answered
        limits = self._conversation.output_limits(
            answered.calls, given_bytes=answered.given_bytes, done=answered.done
        )
        return OutputSoFar(
            lambda text, skipped=0: self._emit(ToolOutputDelta(call.id, text, skipped)), limits
        )

    async def _ready(
        self,
        call: ToolCall,
        broken: Mapping[str, str],
        so_far: OutputSoFar,
        under_way: list[_UnderWay],
    ) -> _Ready:
        """Announce `call` and have it permitted.

        Raises:
            _Declined: The user said no without words.
        """
        context = self._context(call, so_far)
        if self._ending == "aborted":
            self._announce(call)
            return _Ready(_error_output(_STOPPED, "cancelled"), context.limits)
        if why := broken.get(call.id):
            self._announce(call)
            return _Ready(_failure(why, context.limits), context.limits)
        try:
            call, prepared, asked = await self._ask_in_order(call, context, under_way)
        except ToolError as error:
            self._announce(call)
            return _Ready(_failure(str(error), context.limits), context.limits)
        except asyncio.CancelledError:
            self._announce(call)
            raise
        self._announce(call, prepared.intent.title)
        if asked.refusal:
            text = f"Not run: {asked.by} refused this call: {asked.refusal}"
            ending: TurnEnding = "aborted" if asked.stops else ""
            details = ToolDetails(refusal=f"{asked.by}: {asked.refusal}")
            failure = _failure(text, context.limits)
            refused = replace(failure, for_person=details, ends_turn=ending)
            return _Ready(refused, context.limits)
        try:
            permit = await self._permit(call, prepared.intent, context, asked.doubt)
        except ToolError as error:
            return _Ready(_failure(str(error), context.limits), context.limits)
        if isinstance(permit, ToolOutput):
            return _Ready(permit, context.limits)
        self._touched += permit.touched
        context.only_reads = permit.only_reads
        context.may_write = not permit.runs_read_only
        was_asked = permit.decision == "ask"
        hosts = self._services.network.hosts_to_ask(prepared.intent) if was_asked else NO_HOSTS
        remark = asked.remark
        if self._answered.declined and prepared.intent.access == "execute":
            without = _WITHOUT.format(calls=", ".join(self._answered.declined))
            remark = "\n".join(filter(None, (remark, without)))
        work = partial(self._run, call, prepared, remark, hosts, only_reads=permit.only_reads)
        return _Ready(work, context.limits, call.name, permit.only_reads)

    async def _ask_in_order(
        self, call: ToolCall, context: ToolContext, under_way: list[_UnderWay]
    ) -> tuple[ToolCall, PreparedCall, CallAnswer]:
        """As `_ask_parts`; a call that fails is tried again after those `under_way`.

        It may need what they find, as an edit needs the read before it.

        Raises:
            ToolError: The call cannot be prepared.
        """
        try:
            return await self._ask_parts(call, context)
        except ToolError:
            if not under_way:
                raise
        await self._finish(under_way)
        return await self._ask_parts(call, context)

    async def _ask_parts(
        self, call: ToolCall, context: ToolContext
    ) -> tuple[ToolCall, PreparedCall, CallAnswer]:
        """The call as features changed it, what it would do, and what they say about it.

        The first refusal counts; doubts and remarks are put together in order.

        Raises:
            ToolError: The call cannot be prepared.
        """
        prepared = await self._prepare(call, context)
        doubts: list[str] = []
        remarks: list[str] = []
        for part in self._parts:
            answer = await part.before_call(call, prepared.intent.paths, self._emit)
            if answer.refusal:
                return call, prepared, answer
            doubts.append(answer.doubt)
            remarks.append(answer.remark)
            if answer.arguments is not None:
                call = self._with_arguments(call, answer.arguments, answer.by)
                prepared = await self._prepare(call, context)
                given = printable_line(json.dumps(call.arguments), 400)
                remarks.append(f"[{answer.by} changed the arguments to {given}]")
        doubt, remark = "; ".join(filter(None, doubts)), "\n".join(filter(None, remarks))
        return call, prepared, CallAnswer(doubt=doubt, remark=remark)

    def _with_arguments(self, call: ToolCall, given: JsonObject, by: str) -> ToolCall:
        """`call` with the arguments that `by` gave, which are judged like any others.

        Raises:
            ToolError: They do not fit the tool.
        """
        toolbox = self._conversation.services.toolbox
        try:
            with self._report_faults(call.name):
                own = toolbox.translate_call(call.name, given, self._conversation.cwd)
                toolbox.check(own.name, own.arguments)
        except ToolError as error:
            raise ToolError(f"This call was not run: {by} changed it, and {error}") from error
        return ToolCall(id=call.id, name=own.name, arguments=own.arguments)

    async def _run(
        self,
        call: ToolCall,
        prepared: PreparedCall,
        remark: str,
        hosts: NamedHosts,
        *,
        only_reads: bool,
    ) -> ToolOutput:
        """Run `call`; returns its output with `remark` and what features say about the result.

        File changes by the call and by features are recorded. `hosts` are allowed with a command.
        """
        async with self._keep_files(prepared.intent, only_reads=only_reads):
            cwd, intent = self._conversation.cwd, prepared.intent
            output = await self._run_itself(call, prepared, hosts)
            output = await self._held.decide(call, output, cwd)
            if written := self._conversation.files.take_written():
                await self._conversation.services.sandbox.accept(cwd, written)
            output = _with_remark(output, remark)
            for part in self._parts:
                output = await part.after_call(call, intent.paths, output, self._emit)
            return output

    async def _run_itself(
        self, call: ToolCall, prepared: PreparedCall, hosts: NamedHosts
    ) -> ToolOutput:
        """Run `call`; a command's output includes connections that the network refused."""
        network = self._services.network
        if call.name == "job":
            return await network.look_at_job(str(call.arguments.get("id")), prepared.run)
        if prepared.intent.access == "execute":
            return await network.run_command(prepared.run, hosts)
        return await prepared.run()

    def _keep_files(self, intent: Intent, *, only_reads: bool) -> AbstractAsyncContextManager[None]:
        return nullcontext() if only_reads else self._files.watch(intent)

    def _clock_s(self) -> float:
        """The time in seconds, without what the user took to answer."""
        return self._conversation.services.clock() - self.waited_s

    async def _output(self, ready: _Ready, remark: str, so_far: OutputSoFar) -> ToolOutput:
        if isinstance(ready.work, ToolOutput):
            return _with_remark(ready.work, remark)
        so_far.began_s = began_s = self._clock_s()
        try:
            with self._report_faults(ready.tool_name):
                output = await ready.work()
        except ToolError as error:
            output = _failure(str(error), ready.limits)
        except CallInterrupted as interrupted:
            so_far.result = interrupted.output
            raise
        if output.fault is not None:
            self._conversation.services.report_fault(output.fault)
        return _with_remark(_with_time(output, self._clock_s() - began_s), remark)

    def _announce(self, call: ToolCall, title: str = "") -> None:
        self._emit(ToolStarted(call.id, call.name, call.arguments, title or call.name))

    async def _prepare(self, call: ToolCall, context: ToolContext) -> PreparedCall:
        toolbox = self._conversation.services.toolbox
        with self._report_faults(call.name):
            return await asyncio.to_thread(toolbox.prepare, call.name, call.arguments, context)

    @contextmanager
    def _report_faults(self, tool_name: str) -> Generator[None]:
        """Turn whatever a tool raises into an error for the model, so that no input ends the turn.

        Raises:
            ToolError: In place of what was raised; a fault of the program is logged.
            SessionError, ProviderError: The turn cannot continue.
        """
        try:
            yield
        except (ToolError, SessionError, ProviderError):
            raise
        except AgentTuiError as error:
            raise ToolError(str(error)) from error
        except Exception as fault:
            self._conversation.services.report_fault(fault)
            raise ToolError(
                f"{tool_name} failed with an internal error ({type(fault).__name__}), which is "
                "not your fault. Try other arguments or another tool."
            ) from fault

    async def _permit(
        self, call: ToolCall, intent: Intent, context: ToolContext, doubt: str
    ) -> Verdict | ToolOutput:
        """The verdict that lets the call run, or the result for the model if it may not.

        `doubt` is why a feature wants the user to be asked; empty if none does.
        """
        permissions = self._conversation.permissions
        if permissions.mode != "full":
            doubt = "; ".join(filter(None, (doubt, intent.doubt)))
        verdict = await self._judge(call, intent)
        is_protected = verdict.by == "protection" or intent.place == "outside"
        hosts = self._services.network.hosts_to_ask(intent)
        if doubt:
            verdict = permissions.ask_for_hook(verdict, doubt)
        if verdict.decision != "ask":
            permissions.record(call.name, intent, verdict)
        if verdict.decision == "allow":
            return verdict
        if verdict.decision == "deny":
            refusal = f"needs approval: {verdict.unapproved}" if verdict.unapproved else verdict.why
            details = ToolDetails(refusal=refusal)
            rest = _REST if verdict.is_compound else ""
            return ToolOutput(f"Not permitted: {verdict.why}{rest}", details, is_error=True)
        is_loss = is_protected or not hosts.is_usual
        answer = await self._ask(call, intent, verdict, hosts, is_loss=is_loss)
        allowed: Decision = "deny" if answer.choice == "no" else "allow"
        permissions.record(call.name, intent, replace(verdict, decision=allowed, by="person"))
        if answer.choice == "no":
            asked = _ASKED.format(why=verdict.why) if verdict.is_compound else ""
            if not answer.words:
                raise _Declined(f"{_DECLINED}{asked}")
            self._answered.declined.append(printable_line(intent.title, _TITLE_CHARS))
            text = with_words(f"{_DECLINED}{asked}", answer.words)
            details = ToolDetails(ending="declined", user_words=answer.words)
            return ToolOutput(text, details, is_error=True)
        self._remember(answer, verdict.session_rule)
        again = await self._prepare(call, context)
        touched = (await asyncio.to_thread(permissions.judge, call.name, again.intent)).touched
        if (again.intent.fingerprint, touched) != (intent.fingerprint, verdict.touched):
            return ToolOutput(_CHANGED, is_error=True)
        return verdict

    async def _judge(self, call: ToolCall, intent: Intent) -> Verdict:
        """The verdict on a call, which knows what undo and git could not restore of what it loses.

        The user is told of work that it loses and undo restores.
        """
        permissions = self._conversation.permissions
        verdict = await asyncio.to_thread(permissions.judge, call.name, intent)
        if verdict.at_risk:
            unkept = await self._files.find_unkept(intent, verdict.at_risk)
            if unkept is not None:
                judge = partial(permissions.judge, unkept=unkept)
                verdict = await asyncio.to_thread(judge, call.name, intent)
        if verdict.fault is not None:
            self._conversation.services.report_fault(verdict.fault)
        if verdict.told:
            self._emit(Notice("info", verdict.told))
        return verdict

    def _remember(self, answer: ApprovalAnswer, rule: str) -> None:
        permissions = self._conversation.permissions
        if answer.choice == "edits":
            self._services.use_mode("accept-edits")
            self._emit(Notice("info", f"Permission mode: {permissions.mode}", "plan"))
        try:
            for kept in answer.rules or (rule,):
                if answer.choice == "session":
                    permissions.book.add_session_rule(kept)
                elif answer.choice == "project":
                    permissions.book.add_project_rule(kept)
        except ConfigError as error:
            self._emit(Notice("warning", str(error)))

    async def _ask(
        self,
        call: ToolCall,
        intent: Intent,
        verdict: Verdict = _PLAN_VERDICT,
        hosts: NamedHosts = NO_HOSTS,
        *,
        is_loss: bool = False,
    ) -> ApprovalAnswer:
        connects = f"connects to {hosts.shown}" if hosts.shown else ""
        request = ApprovalRequest(
            id=uuid.uuid4().hex,
            call_id=call.id,
            tool_name=call.name,
            title=intent.title,
            body=intent.body,
            body_kind=intent.body_kind,
            reason="; ".join(filter(None, (connects, verdict.why, intent.note))),
            session_rule=verdict.session_rule,
            part_rules=verdict.part_rules,
            is_loss=is_loss,
            is_edit=verdict.by == "mode"
            and intent.access == "write"
            and self._conversation.permissions.allows_in("accept-edits", call.name, intent),
        )
        async with self._asking:  # a running call asks about files it holds back
            self._emit(ApprovalRequested(request))
            allowed = False
            try:
                with self._count_wait():
                    answer = await self._services.pending.wait(request.id)
                allowed = answer.choice != "no"
                return answer
            finally:
                self._emit(ApprovalResolved(request.id, allowed))

    async def _fill_form(self, call: ToolCall, fill: FormFiller, form: Elicitation) -> JsonObject:
        """Have the user fill a form of `call`."""
        async with self._asking:
            self._emit(FormOpened(call.id, form.title))
            try:
                with self._count_wait(), self._services.pending.note_form():
                    return await fill(form)
            finally:
                self._emit(FormClosed(call.id))

    @contextmanager
    def _count_wait(self) -> Generator[None]:
        """Count the time inside a ``with`` block as waiting for the user."""
        asked_at_s = self._conversation.services.clock()
        try:
            yield
        finally:
            self._waited_s += self._conversation.services.clock() - asked_at_s

    def _context(self, call: ToolCall, so_far: OutputSoFar) -> ToolContext:
        conversation = self._conversation
        shared = conversation.services
        fill = self._services.fill_form
        forms = () if fill is None else (_CallForms(partial(self._fill_form, call, fill)),)
        context = ToolContext(
            cwd=conversation.cwd,
            emit=so_far,
            files=conversation.files,
            output_dir=shared.output_dir,
            environ=shared.environ,
            todos=conversation.todos,
            default_timeout_s=shared.settings.bash_timeout_s,
            waited_s=lambda: self.waited_s,
            limits=so_far.limits,
            history=self._services.history(),
            compact=lambda focus: self._change_context(
                partial(self._services.compact, focus, self._emit)
            ),
            secrets=shared.secrets,
            jobs=conversation.jobs,
            open_texts=shared.open_texts,
            held_in=conversation.permissions.search_filter,
            may_show=conversation.permissions.may_show,
            abilities=(*self._services.abilities, *forms),
            change_context=self._change_context,
        )
        context.plan = partial(self._plans.decide, call)
        if self.pins is not None:
            context.use_skill = self.pins.use_skill
        return context

    async def _change_context(self, change: Callable[[], Awaitable[ToolOutput]]) -> ToolOutput:
        """Run a tool that changes the context, after all file changes are recorded."""
        await self.settle()
        output = await change()
        self._answered.uncounted.clear()
        return output

    def _record(self, call: ToolCall, output: ToolOutput, *, only_reads: bool = True) -> None:
        output = self.repetition.with_remark(call, output, only_reads=only_reads)
        if self.repetition.has_progressed:
            self._note_progress()
        self._ending = self._ending or output.ends_turn
        message = _result_message(call, output)
        self._answered.add(message)
        if call.id == self._answered.last_id:
            note = self._conversation.note_on_context(self._answered.uncounted)
            details = output.for_person.model_copy(update={"context_note": note})
            message = _result_message(call, replace(output, for_person=details))
        entry = self._conversation.append(message)
        stored = entry.message
        assert isinstance(stored, ToolResultMessage)
        self._emit(ToolFinished(entry.id, call.id, stored))
        if output.for_person.todos is not None:
            self._emit(TodosChanged(output.for_person.todos))
        state = self._files.take_newest()
        if output.find_changes is not None:
            finding = self._find_changes(entry.id, output.find_changes, state)
            self._finding = asyncio.create_task(finding)

    async def settle(self) -> None:
        """Wait until the file changes of the newest command are recorded.

        Await this before anything else changes files or reads the session's facts, and at the end
        of the turn.

        Raises:
            SessionError: They could not be recorded.
        """
        if (finding := self._finding) is not None:
            await asyncio.wait((finding,))
            self._finding = None
            finding.result()

    async def _find_changes(
        self, result_id: str, find: Callable[[], Awaitable[FileTouches]], state: str
    ) -> None:
        files = await find()
        if files != FileTouches():
            self._conversation.log.append(changes_entry(result_id, files))
            self.repetition.note_changes(state)
            if self.repetition.has_progressed:
                self._note_progress()

    def _note_progress(self) -> None:
        """Note that compactions are not all that happens."""
        conversation = self._conversation
        conversation.refill = conversation.refill.after_progress()


def _with_time(output: ToolOutput, ran_s: float) -> ToolOutput:
    if ran_s < _TOLD_S:
        return output
    details = output.for_person.model_copy(update={"elapsed_ms": round(ran_s * 1_000)})
    return replace(output, for_person=details)


def _result_message(call: ToolCall, output: ToolOutput) -> ToolResultMessage:
    details = output.for_person.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return ToolResultMessage(
        tool_call_id=call.id,
        tool_name=call.name,
        content=(TextContent(text=output.for_model), *output.images),
        is_error=output.is_error,
        details=details or None,
    )


def _with_remark(output: ToolOutput, remark: str) -> ToolOutput:
    return replace(output, for_model=f"{output.for_model}\n{remark}") if remark else output


def _error_output(why: str, ending: CallEnding) -> ToolOutput:
    return ToolOutput(why, ToolDetails(ending=ending), is_error=True)


def _failure(text: str, limits: OutputLimits) -> ToolOutput:
    """An error for the model, cut to `limits`: some errors repeat long input."""
    kept = keep_head(text, max_lines=limits.max_lines, max_bytes=limits.max_bytes)
    return ToolOutput(f"{kept.text} [...]" if kept.is_cut else text, is_error=True)
