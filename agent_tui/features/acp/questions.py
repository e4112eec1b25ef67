"""The user's decisions in an editor: permission requests and forms."""

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from acp import RequestError
from acp.helpers import text_block, tool_content
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ContentToolCallContent,
    ElicitationFormSessionMode,
    ElicitationSchema,
    PermissionOption,
    TextContentBlock,
    ToolCallUpdate,
)
from pydantic import JsonValue

from agent_tui.agent.turn.command_network import NETWORK
from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.commands.core.front import Listing, Question, TextQuestion
from agent_tui.events import ApprovalRequest
from agent_tui.features.acp.contents import CallContent, fence, question_contents, title_of
from agent_tui.features.acp.editor import EditorTraits, Outbox
from agent_tui.features.acp.updates import (
    chat_message,
    places_of,
    question_end,
    question_start,
    to_be_decided,
)
from agent_tui.messages import JsonObject
from agent_tui.permissions.rules import describe_grants
from agent_tui.safe_text import printable_line, safe_text
from agent_tui.tools.form import CANCELLED, DECLINED, Elicitation, FieldKind, FormField, accept_form

_NO = PermissionOption(option_id="", name="No", kind="reject_once")

_AnswerT = TypeVar("_AnswerT")


class QuestionCancelled(Exception):
    """The prompt was cancelled while a question was open."""


class EditorQuestions:
    """Asks the user of one session. An editor that disconnects, or closes a question, means no.

    Args:
        outbox: The session in the editor; its updates are sent before a question.
        editor: How the editor shows questions.
    """

    def __init__(self, outbox: Outbox, editor: EditorTraits) -> None:
        self._outbox = outbox
        self._shows_title_only = editor.shows_title_only

    async def approval(self, request: ApprovalRequest, cwd: Path) -> ApprovalAnswer:
        """Whether a call in `cwd` may run."""
        options = _options(request, tells_apart=not self._shows_title_only)
        shown = await asyncio.to_thread(question_contents, request, cwd)
        title = title_of(request)
        is_of_call = request.tool_name != NETWORK
        if not is_of_call:
            self._outbox.put(question_start(request.call_id, title))
        self._tell(shown[1:] if title == request.body else shown)
        try:
            match await self._request(request.call_id, title, shown, options):
                case "once":
                    return ApprovalAnswer("once")
                case "session":
                    return ApprovalAnswer("edits" if request.is_edit else "session")
                case "rules":
                    return ApprovalAnswer("session", rules=request.part_rules)
                case _:
                    return ApprovalAnswer("no")
        except QuestionCancelled:
            return ApprovalAnswer("no")
        finally:
            if not is_of_call:
                self._outbox.put(question_end(request.call_id))

    async def choice(self, question: Question[_AnswerT]) -> _AnswerT | None:
        """The answer to a command's question; None if it is left unanswered.

        Raises:
            QuestionCancelled: The question was cancelled together with the prompt.
        """
        question_id = f"question-{uuid.uuid4().hex}"
        shown = [tool_content(text_block(fence("\n".join(question.facts))))]
        self._outbox.put(question_start(question_id, question.title))
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
                chosen = await self._request(question_id, question.title, shown, options)
        finally:
            self._outbox.put(question_end(question_id))
        return question.choices[int(chosen)].value if chosen else None

    async def _one_by_one(
        self, question_id: str, title: str, options: Sequence[PermissionOption]
    ) -> str:
        """The id of the first of `options` that is not refused; empty if all are."""
        accepted = [each for each in options if each.kind == "allow_once"]
        if len(accepted) < 2:
            return await self._request(question_id, title, [], options)
        for each in accepted:
            if await self._request(question_id, f"{title} {each.name}", [], [each, _NO]):
                return each.option_id
        return ""

    def _tell(self, shown: Sequence[CallContent]) -> None:
        """Send to the chat what the editor would not show of a question; changes have a view."""
        for part in shown if self._shows_title_only else ():
            if isinstance(part, ContentToolCallContent) and isinstance(
                part.content, TextContentBlock
            ):
                self._outbox.put(chat_message(part.content.text))

    async def _request(
        self,
        call_id: str,
        title: str,
        shown: Sequence[CallContent],
        options: Sequence[PermissionOption],
    ) -> str:
        """The id of the chosen option, asked after all updates are sent; empty for none."""
        if shown:  # some editors show the contents of a call, but not of a question
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
            answer = await self._outbox.client.request_permission(
                session_id=self._outbox.session_id, tool_call=call, options=list(options)
            )
        except (RequestError, ConnectionError):
            return ""
        if not isinstance(answer.outcome, AllowedOutcome):
            raise QuestionCancelled
        chosen = answer.outcome.option_id
        return chosen if any(each.option_id == chosen for each in options) else ""


def _options(request: ApprovalRequest, *, tells_apart: bool) -> Sequence[PermissionOption]:
    """The answers to a question about a call; the name of "in this session" says what it grants.

    Args:
        request: The question.
        tells_apart: Whether the editor distinguishes two answers of one kind.
    """
    no = PermissionOption(option_id="no", name="No", kind="reject_once")
    if request.body_kind == "plan":
        accept = f"Approve and accept {request.accepted}"
        step_by_step = "Approve and ask before each change"
        return (
            PermissionOption(option_id="session", name=accept, kind="allow_always"),
            PermissionOption(option_id="once", name=step_by_step, kind="allow_once"),
            no,
        )
    once = PermissionOption(option_id="once", name="Allow once", kind="allow_once")
    by_parts = request.part_rules if tells_apart else ()
    offers = (("session", (request.session_rule,)), ("rules", by_parts))
    kept = [
        PermissionOption(
            option_id=option_id,
            name=f"Allow in this session: {_granted(request, rules)}",
            kind="allow_always",
        )
        for option_id, rules in offers
        if any(rules) or (option_id == "session" and request.is_edit)
    ]
    return (once, *kept, no)


def _granted(request: ApprovalRequest, rules: Sequence[str]) -> str:
    if request.is_edit:
        return f"all {request.accepted}"
    return safe_text(describe_grants(rules), keep_newlines=False)


MOST_CHOICES = 200
"""Most items of a list; others can be named after the command."""

_CHOSEN, _TYPED, _WRITTEN = "chosen", "typed", "-written"

_KINDS: Mapping[FieldKind, tuple[str, str, str]] = {
    "text": ("string", "minLength", "maxLength"),
    "number": ("number", "minimum", "maximum"),
    "integer": ("integer", "minimum", "maximum"),
    "yes or no": ("boolean", "", ""),
    "one of": ("string", "", ""),
    "some of": ("array", "minItems", "maxItems"),
}
"""The schema type of each kind of a server's field, and the names of its limits."""


class EditorForms:
    """Asks with the editor's forms; a closed form or a lost editor means no answer.

    Args:
        outbox: The session in the editor, which offers forms; its updates are sent before a form.
    """

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    async def text(self, question: TextQuestion) -> str | None:
        """A line of text; empty if nothing was typed, None if the form was closed."""
        about = ". ".join(filter(None, (question.about, f"If empty: {question.empty_means}")))
        field = _line(question.title, about, question.present)
        answer = await self._request(question.title, {_TYPED: field})
        return None if answer is None else _text(answer, _TYPED)

    async def pick(self, listing: Listing[_AnswerT]) -> _AnswerT | str | None:
        """One of `listing`, or text typed instead; None for neither."""
        offered = {str(number): each for number, each in enumerate(listing.choices[:MOST_CHOICES])}
        names: list[JsonValue] = [
            {
                "const": number,
                "title": printable_line(": ".join(filter(None, (each.label, each.details)))),
            }
            for number, each in offered.items()
        ]
        fields: dict[str, JsonObject] = {}
        if names:
            fields[_CHOSEN] = _drop_none(type="string", title=listing.title, oneOf=names)
        if listing.typed:
            fields[_TYPED] = _line(f"or {listing.typed}" if names else listing.typed)
        required = () if listing.typed else (_CHOSEN,)
        left = len(listing.choices) - len(offered)
        more = f"{listing.title} ({left} more: name one after the command)"
        answer = await self._request(more if left else listing.title, fields, required)
        if answer is None:
            return None
        if typed := _text(answer, _TYPED):
            return typed
        chosen = offered.get(_text(answer, _CHOSEN))
        return chosen.value if chosen is not None else None

    async def fill(self, asked: Elicitation) -> JsonObject:
        """Show a whole form; sending it means agreement to its contents.

        Beside the choices of the model's questions, there is a field for an answer in words.
        """
        if not asked.server:
            return await self._answer_model(asked)
        message = f"The MCP server {asked.server} asks: {asked.message}"
        fields = {field.name: _property(field) for field in asked.fields}
        required = [field.name for field in asked.fields if field.is_required]
        answer = await self._request(message, fields, required)
        if answer is None:
            return DECLINED
        try:
            return accept_form(
                {
                    field.name: field.value(_as_typed(answer[field.name]))
                    for field in asked.fields
                    if field.is_required or answer.get(field.name) not in (None, "", [])
                }
            )
        except (KeyError, ValueError):  # the editor accepted something else than was requested
            self._outbox.put(chat_message(f"Could not send the form to {asked.server}."))
            return DECLINED

    async def _answer_model(self, asked: Elicitation) -> JsonObject:
        """The answers to the model's questions: what was chosen, then what was written."""
        fields: dict[str, JsonObject] = {}
        for field in asked.fields:
            fields[field.name] = _property(field)
            if field.takes_text:
                fields[f"{field.name}{_WRITTEN}"] = _line("or your own answer")
        answer = await self._request(asked.heading, fields)
        if answer is None:
            return CANCELLED
        values: JsonObject = {}
        for field in asked.fields:
            chosen, offered = answer.get(field.name), [value for value, _ in field.choices]
            listed = chosen if isinstance(chosen, list) else [chosen]
            written = _text(answer, f"{field.name}{_WRITTEN}")[: int(field.most or 0) or None]
            given: list[JsonValue] = [each for each in offered if each in listed]
            values[field.name] = [*given, written] if written else given
        return accept_form(values)

    async def _request(
        self, message: str, fields: Mapping[str, JsonObject], required: Sequence[str] = ()
    ) -> JsonObject | None:
        await self._outbox.flush()
        schema = ElicitationSchema.model_validate(
            {"type": "object", "properties": fields, "required": list(required)}
        )
        mode = ElicitationFormSessionMode(
            session_id=self._outbox.session_id, requested_schema=schema
        )
        try:
            answer = await self._outbox.client.create_elicitation(message=message, mode=mode)
        except (RequestError, ConnectionError):
            return None
        if not isinstance(answer, AcceptElicitationResponse):
            return None
        return answer.content or {}


def _line(title: str, about: str = "", present: str = "") -> JsonObject:
    return _drop_none(
        type="string", title=title, description=about or None, default=present or None
    )


def _property(field: FormField) -> JsonObject:
    """A field of a form as a field of the editor's form."""
    kind, least, most = _KINDS[field.kind]
    options: list[JsonValue] = [{"const": value, "title": label} for value, label in field.choices]
    return _drop_none(
        type=kind,
        title=field.title,
        description=field.about or None,
        default=_present(field),
        oneOf=options if field.kind == "one of" else None,
        items={"anyOf": options} if field.kind == "some of" else None,
        **{least: field.least, most: field.most} if least and not field.takes_text else {},
    )


def _present(field: FormField) -> JsonValue:
    try:
        return field.value(field.present) if field.present else None
    except ValueError:  # a server's suggestion need not be valid
        return None


def _drop_none(**values: JsonValue) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}


def _as_typed(value: JsonValue) -> str:
    """A value from an editor, as text that a user would type."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _text(answer: JsonObject, name: str) -> str:
    value = answer.get(name)
    return value.strip() if isinstance(value, str) else ""
