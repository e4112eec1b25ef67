"""Judging and running the tool calls of one reply, one result for each, whatever happens."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.turn.pending_approvals import ApprovalAnswer, PendingApprovals
from agent_tui.agent.turn.repetition import Repetition
from agent_tui.errors import ConfigError, ToolError
from agent_tui.events import (
    ApprovalRequest,
    ApprovalRequested,
    ApprovalResolved,
    Notice,
    TodosChanged,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
)
from agent_tui.messages import CallEnding, TextContent, ToolCall, ToolDetails, ToolResultMessage
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.permissions.rules import Decision
from agent_tui.tools.base import (
    History,
    Intent,
    PreparedCall,
    ScopeAction,
    Toolbox,
    ToolContext,
    ToolOutput,
)
from agent_tui.tools.limits import OutputLimits
from agent_tui.tools.shorten import keep_head

_INTERRUPTED = "Interrupted by the user before it finished. It may have taken partial effect."
_NOT_RUN = "Not run: the user interrupted before this call."
_UNANSWERED = "Not run: the user interrupted before it was begun."
_DECLINED = "The user declined this call."
_SKIPPED = "Not run: the user declined an earlier call of this reply."
_CHANGED = (
    "Not run: what this call would do changed between the user's approval and the run. "
    "Look again and repeat the call."
)


class _Declined(Exception):
    """The person said no without words: the turn stops so that they can speak."""


class _NotBegun(asyncio.CancelledError):
    """The turn was cancelled while a call was looked at or waited for its answer."""


@dataclass(frozen=True, slots=True)
class ToolServices:
    """What running a call needs beside the conversation.

    `environ` is for commands of the model, `person_environ` for those the person types.
    `compact` makes room for the `compact` tool, `scope` enters and leaves scopes for the `scope`
    tool, `history` gives what `recall` looks in.
    """

    toolbox: Toolbox
    permissions: PermissionEngine
    pending: PendingApprovals
    output_dir: Path
    environ: dict[str, str]
    person_environ: dict[str, str]
    bash_timeout_s: float
    compact: Callable[[str, Emit], Awaitable[ToolOutput]]
    scope: Callable[[ScopeAction, str, str, Emit], Awaitable[ToolOutput]]
    history: Callable[[], History]


class ToolRunner:
    """Runs the calls of one reply in order and records a result for every one of them.

    Attributes:
        repetition: What was called before, and whether that goes on in vain.
    """

    def __init__(self, conversation: Conversation, services: ToolServices, emit: Emit) -> None:
        self._conversation = conversation
        self._services = services
        self._emit = emit
        self.repetition = Repetition()

    def _broken(self, calls: Sequence[ToolCall], known: Mapping[str, str]) -> dict[str, str]:
        """What is wrong with each call, by id: no such tool, `known` faults, wrong arguments."""
        names = {tool.name for tool in self._services.toolbox.specs}
        broken: dict[str, str] = {}
        for call in calls:
            if call.name in names and call.id in known:
                broken[call.id] = known[call.id]
                continue
            try:
                self._services.toolbox.check(call.name, call.arguments)
            except ToolError as error:
                broken[call.id] = str(error)
        return broken

    def abandon(self, calls: Sequence[ToolCall]) -> None:
        """Answer calls that were never begun with an error."""
        self._skip(calls, _NOT_RUN)

    async def run_all(
        self, calls: Sequence[ToolCall], faults: Mapping[str, str] = MappingProxyType({})
    ) -> bool:
        """Run `calls`; false when the person declined one without a word and the turn ends.

        Cancelling leaves an error result for the running call and each one not begun.

        Args:
            calls: Those of one reply, as the model made them.
            faults: Call id -> what is wrong with the arguments of those that cannot be read.
        """
        understood = [self._understood(call) for call in calls]
        calls = [call for call, _ in understood]
        broken = self._broken(calls, faults)
        self.repetition.count_reply(is_refused=len(broken) == len(calls))
        for position, (call, remark) in enumerate(understood):
            try:
                output = _remarked(await self._run(call, len(calls), broken), remark)
            except asyncio.CancelledError as error:
                why = _UNANSWERED if isinstance(error, _NotBegun) else _INTERRUPTED
                self._record(call, _ended(why, "cancelled"))
                self._skip(calls[position + 1 :], _NOT_RUN)
                raise
            except _Declined:
                self._record(call, _ended(_DECLINED, "declined"))
                self._skip(calls[position + 1 :], _SKIPPED)
                return False
            self._record(call, output)
        return True

    def _skip(self, calls: Sequence[ToolCall], why: str) -> None:
        for call in calls:
            self._announce(call)
            self._record(call, _ended(why, "cancelled"))

    def _understood(self, call: ToolCall) -> tuple[ToolCall, str]:
        """`call` in the terms of our tools, and what the model is told of that."""
        toolbox, cwd = self._services.toolbox, self._conversation.cwd
        own = toolbox.understood(call.name, call.arguments, cwd)
        return ToolCall(id=call.id, name=own.name, arguments=own.arguments), own.remark

    async def _run(
        self, call: ToolCall, calls_in_reply: int, broken: Mapping[str, str]
    ) -> ToolOutput:
        context = self._context(call, calls_in_reply)
        if why := broken.get(call.id):
            self._announce(call)
            return _failure(f"This call was not run: {why.removesuffix('.')}.", context.limits)
        try:
            prepared = await self._prepare(call, context)
        except ToolError as error:
            self._announce(call)
            return _failure(str(error), context.limits)
        except asyncio.CancelledError as error:
            self._announce(call)
            raise _NotBegun from error
        self._announce(call, prepared.intent.title)
        try:
            refusal = await self._permit(call, prepared.intent, context)
        except ToolError as error:
            return _failure(str(error), context.limits)
        except asyncio.CancelledError as error:
            raise _NotBegun from error
        try:
            return refusal or await prepared.run()
        except ToolError as error:
            return _failure(str(error), context.limits)

    def _announce(self, call: ToolCall, title: str = "") -> None:
        self._emit(ToolStarted(call.id, call.name, call.arguments, title or call.name))

    async def _prepare(self, call: ToolCall, context: ToolContext) -> PreparedCall:
        toolbox = self._services.toolbox
        return await asyncio.to_thread(toolbox.prepare, call.name, call.arguments, context)

    async def _permit(
        self, call: ToolCall, intent: Intent, context: ToolContext
    ) -> ToolOutput | None:
        """None when the call may run, else what the model is told."""
        permissions = self._services.permissions
        verdict = permissions.judge(call.name, intent)
        if verdict.decision != "ask":
            permissions.record(call.name, intent, verdict)
        if verdict.decision == "allow":
            return None
        if verdict.decision == "deny":
            return ToolOutput(f"Not permitted: {verdict.why}", is_error=True)
        answer = await self._ask(call, intent, verdict.why, verdict.session_rule)
        allowed: Decision = "deny" if answer.choice == "no" else "allow"
        permissions.record(call.name, intent, replace(verdict, decision=allowed, by="person"))
        if answer.choice == "no":
            if not answer.words:
                raise _Declined
            return _ended(f"{_DECLINED} They say: {answer.words}", "declined")
        self._remember(answer, verdict.session_rule)
        again = await self._prepare(call, context)
        touched = permissions.judge(call.name, again.intent).touched
        if (again.intent.fingerprint, touched) != (intent.fingerprint, verdict.touched):
            return ToolOutput(_CHANGED, is_error=True)
        return None

    def _remember(self, answer: ApprovalAnswer, rule: str) -> None:
        try:
            if answer.choice == "session":
                self._services.permissions.add_session_rule(rule)
            elif answer.choice == "project":
                self._services.permissions.add_project_rule(rule)
        except ConfigError as error:
            self._emit(Notice("warning", str(error)))

    async def _ask(
        self, call: ToolCall, intent: Intent, reason: str, session_rule: str
    ) -> ApprovalAnswer:
        request = ApprovalRequest(
            id=uuid.uuid4().hex,
            call_id=call.id,
            tool_name=call.name,
            title=intent.title,
            body=intent.body,
            body_kind=intent.body_kind,
            reason="; ".join(filter(None, (reason, intent.note))),
            session_rule=session_rule,
        )
        self._emit(ApprovalRequested(request))
        allowed = False
        try:
            answer = await self._services.pending.wait(request.id)
            allowed = answer.choice != "no"
            return answer
        finally:
            self._emit(ApprovalResolved(request.id, allowed))

    def _context(self, call: ToolCall, calls_in_reply: int) -> ToolContext:
        conversation = self._conversation
        return ToolContext(
            cwd=conversation.cwd,
            emit=lambda text: self._emit(ToolOutputDelta(call.id, text)),
            files=conversation.files,
            output_dir=self._services.output_dir,
            environ=self._services.environ,
            todos=conversation.todos,
            default_timeout_s=self._services.bash_timeout_s,
            limits=conversation.output_limits(calls_in_reply),
            history=self._services.history(),
            compact=self._compact,
            scope=self._scope,
            secrets=conversation.services.secrets,
        )

    async def _compact(self, focus: str) -> ToolOutput:
        output = await self._services.compact(focus, self._emit)
        self.repetition.forget_single_calls()
        return output

    async def _scope(self, action: ScopeAction, label: str, focus: str) -> ToolOutput:
        output = await self._services.scope(action, label, focus, self._emit)
        self.repetition.forget_single_calls()
        return output

    def _record(self, call: ToolCall, output: ToolOutput) -> None:
        output = self.repetition.noticed(call, output)
        details = output.for_person.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        message = ToolResultMessage(
            tool_call_id=call.id,
            tool_name=call.name,
            content=(TextContent(text=output.for_model), *output.images),
            is_error=output.is_error,
            details=details or None,
        )
        entry = self._conversation.append(message)
        stored = entry.message
        assert isinstance(stored, ToolResultMessage)
        self._emit(ToolFinished(entry.id, call.id, stored))
        if output.for_person.todos is not None:
            self._emit(TodosChanged(output.for_person.todos))


def _remarked(output: ToolOutput, remark: str) -> ToolOutput:
    return replace(output, for_model=f"{output.for_model}\n{remark}") if remark else output


def _ended(why: str, ending: CallEnding) -> ToolOutput:
    return ToolOutput(why, ToolDetails(ending=ending), is_error=True)


def _failure(text: str, limits: OutputLimits) -> ToolOutput:
    """An error for the model; some repeat what they were given, which can be long."""
    kept = keep_head(text, max_lines=limits.max_lines, max_bytes=limits.max_bytes)
    return ToolOutput(f"{kept.text} [...]" if kept.is_cut else text, is_error=True)
