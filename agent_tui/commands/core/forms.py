"""Ask the user to fill in a form, with the questions that every front can ask."""

from typing import TYPE_CHECKING, Final

from agent_tui.commands.core.front import (
    Choice,
    Front,
    HeldAnswers,
    Listing,
    Question,
    TextQuestion,
)
from agent_tui.tools.form import (
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
    """Returns a filler for forms of MCP servers, which sends nothing before the user saw it all.

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


_WORDS: Final = "your own words"
_NUMBERS: Final = "several numbers, such as 1,2, or your own words"
_WRITES: Final = "stop, and write in the chat"
_NO_MORE: Final = "that is all"
_SEND_TITLE: Final = "Send these answers?"
_SEND_ALL: Final = (Choice(True, "send them", "s"), Choice(False, "answer again", "a"))


def question_filler(front: Front) -> FormFiller:
    """Returns a filler for questions to choose from, which asks in `front` one after the other.

    An answer is a list: what was chosen, then what was written. A question that is left ends all.
    """

    async def fill(form: Elicitation) -> "JsonObject":
        while True:
            values: dict[str, JsonValue] = {}
            for number, field in enumerate(form.fields, start=1):
                place = f"Question {number} of {len(form.fields)}: " * (len(form.fields) > 1)
                answers = await _ask_choices(front, field, place)
                if not answers:
                    return CANCELLED
                values[field.name] = [*answers]
            if len(form.fields) == 1:
                return accept_form(values)
            facts = (f"{each.title} -> {show_value(values[each.name])}" for each in form.fields)
            review = Question(
                "Send these answers?", tuple(facts), _SEND_ALL, unanswered="send none"
            )
            is_sent = await front.ask(review)
            if is_sent is not False:
                return accept_form(values) if is_sent else CANCELLED

    return fill


async def _ask_choices(front: Front, field: FormField, place: str) -> list[str]:
    """Ask for the answers to one question; empty if it is left."""
    if not front.can_pick:
        return await _ask_one_by_one(front, field, place)
    takes_several = field.kind == "some of"
    listing = Listing(
        f"{place}{field.title}",
        tuple(
            Choice(value, label, details="recommended" if value == field.present else "")
            for value, label in field.choices
        ),
        "",
        _NUMBERS if takes_several else _WORDS * field.takes_text,
        is_grave=True,
    )
    while typed := await front.pick(listing):
        if takes_several and (chosen := _read_numbers(typed, field)):
            return chosen
        if field.most is None or len(typed) <= field.most:
            return [typed]
        front.say(f"At most {field.most:,.0f} characters.")
    return []


def _read_numbers(typed: str, field: FormField) -> list[str]:
    """The answers whose numbers were typed; empty if that is something else."""
    numbers = typed.replace(",", " ").split()
    places = [int(number) for number in numbers if number.isdecimal() and len(number) < 3]
    if len(places) < len(numbers) or not all(1 <= place <= len(field.choices) for place in places):
        return []
    return [field.choices[place - 1][0] for place in dict.fromkeys(places)]


async def _ask_one_by_one(front: Front, field: FormField, place: str) -> list[str]:
    """Ask where nothing can be written; further answers are offered until the user has all."""
    chosen: list[str] = []
    while True:
        choices = [
            Choice(value, f"{label} (recommended)" if value == field.present else label)
            for value, label in field.choices
            if value not in chosen
        ]
        choices += [Choice("", _NO_MORE)] if chosen else []
        title = f"{place}{field.title}" if not chosen else f"{place}{field.title} And?"
        answer = await front.ask(Question(title, (), tuple(choices), unanswered=_WRITES))
        if answer is None:
            return []
        chosen += [answer] if answer else []
        if not answer or field.kind != "some of" or len(chosen) == len(field.choices):
            return chosen
