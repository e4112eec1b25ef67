"""Ask the user to fill in an MCP server's form, with the questions that every front can ask."""

from typing import TYPE_CHECKING, Final

from agent_tui.commands.core.front import Choice, Front, HeldAnswers, Question, TextQuestion
from agent_tui.tools.server_form import (
    CANCELLED,
    DECLINED,
    Elicitation,
    FormField,
    FormFiller,
    accept_form,
    show_value,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

    from agent_tui.messages import JsonObject

_ANSWERS: Final = (Choice(True, "answer it", "a"), Choice(False, "decline", "d"))
_READ: Final = "The model reads it, too."
_SEND: Final = (Choice(True, "send this", "s"), Choice(False, "decline", "d"))


def form_filler(front: Front, fill_whole: FormFiller | None = None) -> FormFiller:
    """Returns a filler that asks in `front` and sends nothing before the user has seen it all.

    Args:
        front: The front to ask in.
        fill_whole: Shows a whole form; without it, fields are asked one by one.
    """

    async def fill(asked: Elicitation) -> "JsonObject":
        if asked.url:
            front.say(
                f"Declined: MCP server {asked.server} wants you to open a page. "
                f"{asked.message} {asked.url}",
                "warning",
            )
            return DECLINED
        if fill_whole is not None:
            return await fill_whole(asked)
        facts = (f"It says: {asked.message}", *(f"- {each.title}" for each in asked.fields))
        title = f"MCP server {asked.server} has a question. Answer it?"
        if not await front.ask(Question(title, facts, _ANSWERS, is_grave=True, unanswered="no")):
            return DECLINED
        with front.hold_answers() as held:
            return await _fill_fields(front, asked, held)

    return fill


async def _fill_fields(front: Front, asked: Elicitation, held: HeldAnswers) -> "JsonObject":
    """Ask for the fields one by one, show all answers, and send them on a yes."""
    values: dict[str, JsonValue] = {}
    shown: list[str] = []
    for field in asked.fields:
        typed = await _ask_field(front, asked.server, field)
        if typed is None:
            return CANCELLED
        if typed:
            values[field.name] = value = field.value(typed)
            shown.append(f"{field.name}: {show_value(value)}")
            held.add(f"{field.title}: {typed}")
    title = f"Send this to MCP server {asked.server}?"
    question = Question(title, (*shown, _READ), _SEND, is_grave=True, unanswered="no")
    if not await front.ask(question):
        return DECLINED
    held.mark_sent()
    return accept_form(values)


async def _ask_field(front: Front, server: str, field: FormField) -> str | None:
    """Ask for `field` until the text is valid; empty to leave it out."""
    takes = ", ".join(label for _, label in field.choices) or field.kind
    wrong = ""
    while True:
        about = ". ".join(filter(None, (wrong, field.about, f"Takes: {takes}")))
        empty = "asks again" if field.is_required else "leaves it out"
        question = TextQuestion(f"{server}: {field.title}", about, field.present, empty)
        typed = await front.ask_text(question)
        if typed is None or (not typed and not field.is_required):
            return typed
        try:
            if not typed:
                raise ValueError("a value")
            field.value(typed)
        except ValueError as error:
            wrong = f"It must be {error}"
            continue
        return typed
