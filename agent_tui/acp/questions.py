"""What the person decides in an editor: each question is a permission request."""

import asyncio
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from acp import Client, RequestError
from acp.helpers import text_block, tool_content
from acp.schema import (
    AllowedOutcome,
    ContentToolCallContent,
    PermissionOption,
    TextContentBlock,
    ToolCallUpdate,
)

from agent_tui.acp.contents import Content, asked_about, fenced, title_of
from agent_tui.acp.editor_traits import EditorTraits
from agent_tui.acp.outbox import Outbox
from agent_tui.acp.updates import answered, asked, places_of, said, to_be_decided
from agent_tui.agent.turn.network_questions import NETWORK
from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.commands.core.questions import Question
from agent_tui.events import ApprovalRequest
from agent_tui.permissions.rules import granted
from agent_tui.safe_text import safe_text

_PLAN_OPTIONS = (
    PermissionOption(option_id="session", name="Approve and accept edits", kind="allow_always"),
    PermissionOption(
        option_id="once", name="Approve and ask before each change", kind="allow_once"
    ),
    PermissionOption(option_id="no", name="No", kind="reject_once"),
)

_NO = PermissionOption(option_id="", name="No", kind="reject_once")

_AnswerT = TypeVar("_AnswerT")


class QuestionCancelled(Exception):
    """The prompt was cancelled while the question stood."""


class EditorQuestions:
    """Asks the person of one session. An editor that is gone, or closes a question, says no.

    Args:
        client: The editor.
        session_id: What it calls the session.
        outbox: What is told before a question is put.
        editor: How it shows questions.
    """

    def __init__(
        self, client: Client, session_id: str, outbox: Outbox, editor: EditorTraits
    ) -> None:
        self._client = client
        self._session_id = session_id
        self._outbox = outbox
        self._shows_title_only = editor.shows_title_only

    async def approval(self, request: ApprovalRequest, cwd: Path) -> ApprovalAnswer:
        """Whether a call in `cwd` may run."""
        options = _PLAN_OPTIONS
        if request.body_kind != "plan":
            options = _options(request, tells_apart=not self._shows_title_only)
        shown = await asyncio.to_thread(asked_about, request, cwd)
        title = title_of(request)
        is_of_call = request.tool_name != NETWORK
        if not is_of_call:
            self._outbox.put(asked(request.call_id, title))
        self._tell(shown[1:] if title == request.body else shown)
        try:
            match await self._chosen(request.call_id, title, shown, options):
                case "once":
                    return ApprovalAnswer("once")
                case "session":
                    return ApprovalAnswer("session")
                case "rules":
                    return ApprovalAnswer("session", rules=request.part_rules)
                case _:
                    return ApprovalAnswer("no")
        except QuestionCancelled:
            return ApprovalAnswer("no")
        finally:
            if not is_of_call:
                self._outbox.put(answered(request.call_id))

    async def choice(self, question: Question[_AnswerT]) -> _AnswerT | None:
        """The answer to a command's question; None where it is left without one.

        Raises:
            QuestionCancelled: It was taken back, and the prompt with it.
        """
        question_id = f"question-{uuid.uuid4().hex}"
        shown = [tool_content(text_block(fenced("\n".join(question.facts))))]
        self._outbox.put(asked(question_id, question.title))
        self._tell(shown if question.facts else [])
        options = [
            PermissionOption(
                option_id=str(number),
                name=safe_text(each.label, keep_newlines=False),
                kind="reject_once" if each.value in (False, None) else "allow_once",
            )
            for number, each in enumerate(question.choices)
        ]
        if all(each.value is not None for each in question.choices):
            name = question.unanswered
            options.append(PermissionOption(option_id="", name=name, kind="reject_once"))
        try:
            if self._shows_title_only:
                chosen = await self._one_by_one(question_id, question.title, options)
            else:
                chosen = await self._chosen(question_id, question.title, shown, options)
        finally:
            self._outbox.put(answered(question_id))
        return question.choices[int(chosen)].value if chosen else None

    async def _one_by_one(
        self, question_id: str, title: str, options: Sequence[PermissionOption]
    ) -> str:
        """The id of the first answer of `options` that is not refused; empty for none."""
        accepted = [each for each in options if each.kind == "allow_once"]
        if len(accepted) < 2:
            return await self._chosen(question_id, title, [], options)
        for each in accepted:
            if await self._chosen(question_id, f"{title} {each.name}", [], [each, _NO]):
                return each.option_id
        return ""

    def _tell(self, shown: Sequence[Content]) -> None:
        """Say in the chat what of a question would not be seen; changes have their own view."""
        for part in shown if self._shows_title_only else ():
            if isinstance(part, ContentToolCallContent) and isinstance(
                part.content, TextContentBlock
            ):
                self._outbox.put(said(part.content.text))

    async def _chosen(
        self,
        call_id: str,
        title: str,
        shown: Sequence[Content],
        options: Sequence[PermissionOption],
    ) -> str:
        """The id of the option that was chosen, behind all that was told; empty for none."""
        if shown:  # some editors show what a call holds, and not what a question does
            self._outbox.put(to_be_decided(call_id, shown))
        await self._outbox.flush()
        call = ToolCallUpdate(
            tool_call_id=call_id,
            title=safe_text(title, keep_newlines=False),
            status="pending",
            content=list(shown),
            locations=places_of(shown) or None,
        )
        try:
            answer = await self._client.request_permission(
                session_id=self._session_id, tool_call=call, options=list(options)
            )
        except (RequestError, ConnectionError):
            return ""
        if not isinstance(answer.outcome, AllowedOutcome):
            raise QuestionCancelled
        chosen = answer.outcome.option_id
        return chosen if any(each.option_id == chosen for each in options) else ""


def _options(request: ApprovalRequest, *, tells_apart: bool) -> Sequence[PermissionOption]:
    """The answers to a call; what "in this session" grants is in its name.

    Args:
        request: What is asked.
        tells_apart: Whether the editor shows two answers of one kind as two.
    """
    once = PermissionOption(option_id="once", name="Allow once", kind="allow_once")
    no = PermissionOption(option_id="no", name="No", kind="reject_once")
    by_parts = request.part_rules if tells_apart else ()
    offers = (("session", (request.session_rule,)), ("rules", by_parts))
    kept = [
        PermissionOption(
            option_id=option_id,
            name=f"Allow in this session: {safe_text(granted(rules), keep_newlines=False)}",
            kind="allow_always",
        )
        for option_id, rules in offers
        if any(rules)
    ]
    return (once, *kept, no)
