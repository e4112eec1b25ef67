"""What commands and MCP servers ask beside plain questions: a line of text, one of a list."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from acp import Client, RequestError
from acp.schema import (
    AcceptElicitationResponse,
    ElicitationFormSessionMode,
    ElicitationSchema,
)
from pydantic import JsonValue

from agent_tui.acp.outbox import Outbox
from agent_tui.acp.updates import said
from agent_tui.commands.core.questions import Listing, TextQuestion
from agent_tui.messages import JsonObject
from agent_tui.safe_text import printable_line
from agent_tui.tools.mcp.elicitation import DECLINED, Elicitation, FieldKind, FormField, accepted

MOST_CHOICES = 200
"""So many of a list are offered; who wants another one names it behind the command."""

_CHOSEN, _TYPED = "chosen", "typed"

_KINDS: Mapping[FieldKind, tuple[str, str, str]] = {
    "text": ("string", "minLength", "maxLength"),
    "number": ("number", "minimum", "maximum"),
    "integer": ("integer", "minimum", "maximum"),
    "yes or no": ("boolean", "", ""),
    "one of": ("string", "", ""),
    "some of": ("array", "minItems", "maxItems"),
}
"""What a field of a server is in the schema of a form, and how its sizes are called there."""

_AnswerT = TypeVar("_AnswerT")


class EditorForms:
    """Asks in forms of the editor; one that is gone, or closes a form, leaves it without answer.

    Args:
        client: The editor; it offers forms.
        session_id: What it calls the session.
        outbox: What is told before a form is shown.
    """

    def __init__(self, client: Client, session_id: str, outbox: Outbox) -> None:
        self._client = client
        self._session_id = session_id
        self._outbox = outbox

    async def text(self, question: TextQuestion) -> str | None:
        """A line of text; empty where nothing was typed, None where it was left."""
        about = ". ".join(filter(None, (question.about, f"If empty: {question.empty_means}")))
        field = _line(question.title, about, question.present)
        answer = await self._filled(question.title, {_TYPED: field})
        return None if answer is None else _text(answer, _TYPED)

    async def pick(self, listing: Listing[_AnswerT]) -> _AnswerT | str | None:
        """One of `listing`, or what was typed instead; None where neither was."""
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
            fields[_CHOSEN] = _given(type="string", title=listing.title, oneOf=names)
        if listing.typed:
            fields[_TYPED] = _line(f"or {listing.typed}" if names else listing.typed)
        required = () if listing.typed else (_CHOSEN,)
        left = len(listing.choices) - len(offered)
        more = f"{listing.title} ({left} more: name one after the command)"
        answer = await self._filled(more if left else listing.title, fields, required)
        if answer is None:
            return None
        if typed := _text(answer, _TYPED):
            return typed
        chosen = offered.get(_text(answer, _CHOSEN))
        return chosen.value if chosen is not None else None

    async def fill(self, asked: Elicitation) -> JsonObject:
        """A form of an MCP server, whole: to send it is to agree to what stands in it."""
        message = f"The MCP server {asked.server} asks: {asked.message}"
        fields = {field.name: _property(field) for field in asked.fields}
        required = [field.name for field in asked.fields if field.is_required]
        answer = await self._filled(message, fields, required)
        if answer is None:
            return DECLINED
        try:
            return accepted(
                {
                    field.name: field.value(_typed(answer[field.name]))
                    for field in asked.fields
                    if field.is_required or answer.get(field.name) not in (None, "", [])
                }
            )
        except (KeyError, ValueError):  # the editor let something else through than was asked for
            self._outbox.put(said(f"Could not send the form to {asked.server}."))
            return DECLINED

    async def _filled(
        self, message: str, fields: Mapping[str, JsonObject], required: Sequence[str] = ()
    ) -> JsonObject | None:
        await self._outbox.flush()
        schema = ElicitationSchema.model_validate(
            {"type": "object", "properties": fields, "required": list(required)}
        )
        mode = ElicitationFormSessionMode(session_id=self._session_id, requested_schema=schema)
        try:
            answer = await self._client.create_elicitation(message=message, mode=mode)
        except (RequestError, ConnectionError):
            return None
        if not isinstance(answer, AcceptElicitationResponse):
            return None
        return answer.content or {}


def _line(title: str, about: str = "", present: str = "") -> JsonObject:
    return _given(type="string", title=title, description=about or None, default=present or None)


def _property(field: FormField) -> JsonObject:
    """A field of an MCP server's form as one of the editor's."""
    kind, least, most = _KINDS[field.kind]
    options: list[JsonValue] = [{"const": value, "title": label} for value, label in field.choices]
    return _given(
        type=kind,
        title=field.title,
        description=field.about or None,
        default=_present(field),
        oneOf=options if field.kind == "one of" else None,
        items={"anyOf": options} if field.kind == "some of" else None,
        **{least: field.least, most: field.most} if least else {},
    )


def _present(field: FormField) -> JsonValue:
    try:
        return field.value(field.present) if field.present else None
    except ValueError:  # what a server suggests need not be what it takes
        return None


def _given(**values: JsonValue) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}


def _typed(value: JsonValue) -> str:
    """What an editor filled in, as one would have typed it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _text(answer: JsonObject, name: str) -> str:
    value = answer.get(name)
    return value.strip() if isinstance(value, str) else ""
