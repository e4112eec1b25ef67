"""Judge the calls of a turn, and ask the user about them."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.turn.command_network import NO_HOSTS, NamedHosts
from agent_tui.agent.turn.file_keeper import FileKeeper
from agent_tui.agent.turn.pending_approvals import (
    ApprovalAnswer,
    keep_rules,
)
from agent_tui.agent.turn.tool_services import ToolServices
from agent_tui.events import (
    ApprovalRequest,
    ApprovalRequested,
    ApprovalResolved,
    FormClosed,
    FormOpened,
    Notice,
)
from agent_tui.messages import (
    JsonObject,
    ToolCall,
    ToolDetails,
    with_words,
)
from agent_tui.permissions.rules import Decision
from agent_tui.permissions.verdict import Verdict
from agent_tui.safe_text import printable_line
from agent_tui.tools.base import (
    Intent,
    PreparedCall,
    ToolContext,
    ToolOutput,
)
from agent_tui.tools.form import Elicitation, FormFiller

_PLAN_VERDICT = Verdict("ask", "")
"""A plan is always shown to the user, whatever the rules say."""
_DECLINED = "The user declined this call."
_ASKED = " Approval was needed because: {why}."
_REST = "\nNo part of the command ran. You can run its other parts without the ones named here."
_CHANGED = (
    "Not run: what this call would do changed after the user approved it. "
    "Look again and repeat the call."
)
_TITLE_CHARS = 100

Prepare: TypeAlias = Callable[[ToolCall, ToolContext], Awaitable[PreparedCall]]
"""Determines what a call would do. It raises a `ToolError` if that cannot be done."""


class Declined(Exception):
    """The user said no without words: the turn stops so that they can write.

    Its argument is the result that the model gets for the call.
    """


class CallJudge:
    """Decides whether the calls of a turn may run. It asks the user about one at a time.

    Args:
        conversation: The one that the calls are for.
        services: Takes the answers.
        files: Knows whether changes can be undone.
        prepare: Looks again at a call that was approved.
        emit: Takes events.

    Attributes:
        declined: The titles of the calls of this reply that the user declined, with words.
    """

    def __init__(
        self,
        conversation: Conversation,
        services: ToolServices,
        files: FileKeeper,
        prepare: Prepare,
        emit: Emit,
    ) -> None:
        self._conversation = conversation
        self._services = services
        self._files = files
        self._prepare = prepare
        self._emit = emit
        self._waited_s = -services.network.waited_s
        self._asking = asyncio.Lock()
        self.declined: list[str] = []

    @property
    def waited_s(self) -> float:
        """Seconds spent waiting for the user."""
        return self._waited_s + self._services.network.waited_s

    async def permit(
        self, call: ToolCall, intent: Intent, context: ToolContext, doubt: str
    ) -> Verdict | ToolOutput:
        """The verdict that lets the call run, or the result for the model if it may not.

        Args:
            call: The call.
            intent: What it would do.
            context: What it is prepared with.
            doubt: Why a feature wants the user to be asked; empty if none does.

        Raises:
            Declined: The user said no without words.
            ToolError: It can no longer be prepared.
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
        answer = await self.ask(call, intent, verdict, hosts, is_loss=is_loss)
        allowed: Decision = "deny" if answer.choice == "no" else "allow"
        permissions.record(call.name, intent, replace(verdict, decision=allowed, by="person"))
        if answer.choice == "no":
            asked = _ASKED.format(why=verdict.why) if verdict.is_compound else ""
            if not answer.words:
                raise Declined(f"{_DECLINED}{asked}")
            self.declined.append(printable_line(intent.title, _TITLE_CHARS))
            text = with_words(f"{_DECLINED}{asked}", answer.words)
            details = ToolDetails(ending="declined", user_words=answer.words)
            return ToolOutput(text, details, is_error=True)
        self.remember(answer, verdict.session_rule)
        again = await self._prepare(call, context)
        touched = (await asyncio.to_thread(permissions.judge, call.name, again.intent)).touched
        if (again.intent.fingerprint, touched) != (intent.fingerprint, verdict.touched):
            return ToolOutput(_CHANGED, is_error=True)
        return verdict

    async def _judge(self, call: ToolCall, intent: Intent) -> Verdict:
        """The verdict on a call, which knows what undo and git could not restore of what it loses.

        Tells the user if the call loses work that undo can restore.
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

    def remember(self, answer: ApprovalAnswer, rule: str) -> None:
        """Follow an answer that holds for later calls, too; `rule` allows what was asked."""
        permissions = self._conversation.permissions
        if answer.choice == "edits":
            self._services.use_mode("accept-edits")
            self._emit(Notice("info", f"Permission mode: {permissions.mode}", "plan"))
        if problem := keep_rules(answer, rule, permissions.book):
            self._emit(Notice("warning", problem))

    async def ask(
        self,
        call: ToolCall,
        intent: Intent,
        verdict: Verdict = _PLAN_VERDICT,
        hosts: NamedHosts = NO_HOSTS,
        *,
        is_loss: bool = False,
    ) -> ApprovalAnswer:
        """Ask the user about a call.

        Args:
            call: The call.
            intent: What it would do.
            verdict: Why the user is asked.
            hosts: What it connects to.
            is_loss: Whether something could be lost.
        """
        connects = f"connects to {hosts.shown}" if hosts.shown else ""
        permissions, cwd = self._conversation.permissions, self._conversation.cwd
        is_edit = (
            verdict.by == "mode"
            and intent.access == "write"
            and permissions.allows_in("accept-edits", call.name, intent)
        )
        may_accept_edits = is_edit or intent.body_kind == "plan"
        sandbox = self._conversation.services.sandbox
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
            is_edit=is_edit,
            frees_commands=may_accept_edits and await asyncio.to_thread(sandbox.is_on, cwd),
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

    async def fill_form(self, call: ToolCall, fill: FormFiller, form: Elicitation) -> JsonObject:
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
