"""The `ask_user` tool: a few questions to the user, each with answers to choose from."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from agent_tui.errors import ToolError
from agent_tui.messages import JsonObject, ToolDetails
from agent_tui.safe_text import safe_text
from agent_tui.secret_text import mask_values
from agent_tui.tools.base import Intent, ToolArguments, ToolContext, ToolOutput
from agent_tui.tools.form import Elicitation, FormField, UserForms
from agent_tui.tools.registry import OfferedTool, ToolHost, offer_tool

ASK_USER: Final = "ask_user"

_MOST_QUESTIONS: Final = 4
_FEWEST_ANSWERS, _MOST_ANSWERS = 2, 5
_QUESTION_CHARS: Final = 500
_ANSWER_CHARS: Final = 200
_WRITTEN_CHARS: Final = 4_000
"""Of the user's text: about a page. The model reads all of it."""

_SUMMARY_CHARS: Final = 40
_NOT_ANSWERED = "not answered"
_LEFT = (
    "The user did not answer and stopped the turn. Do not ask the same again: wait for their next "
    "message."
)


class AskedQuestion(ToolArguments):
    """One question."""

    question: str
    answers: list[str]
    recommended: str = ""
    several: bool = False


class AskUserArguments(ToolArguments):
    """Arguments of `ask_user`."""

    questions: list[AskedQuestion]


@dataclass(frozen=True, slots=True)
class AskUserTool:
    """Has the user answer in a form; the answers are kept as the user's words."""

    name: str = ASK_USER
    description: str = (
        "Let the user choose: 1-4 questions, each with 2-5 answers; they can also write one.\n"
        "For decisions that only they can make."
    )
    arguments_type: type[AskUserArguments] = AskUserArguments

    def intent(self, arguments: AskUserArguments, context: ToolContext) -> Intent:
        """No access outside the program.

        Raises:
            ToolError: The questions cannot be shown; the text says how to change them.
        """
        form = make_form(arguments)
        more = len(form.fields) - 1
        return Intent(title=form.title + (f" (+{more} more)" if more else ""), access="none")

    async def run(self, arguments: AskUserArguments, context: ToolContext) -> ToolOutput:
        """Ask, and report the answers; without any, the turn ends.

        Raises:
            ToolError: Nobody can answer here.
        """
        form = make_form(arguments)
        answer = await context.use(UserForms).fill(form)
        return tell_answers(form, answer, context.secrets)


def make_tool(_host: ToolHost) -> OfferedTool:
    """The tool, before the helpers in the order of use."""
    return offer_tool(AskUserTool(), before="explore")


def make_form(arguments: AskUserArguments) -> Elicitation:
    """The form with the model's questions.

    Raises:
        ToolError: They cannot be shown; the text names all that is wrong.
    """
    asked = arguments.questions
    problems = list(_problems_of(asked))
    if problems:
        raise ToolError(f"The user was not asked. {' '.join(problems)}")
    fields = (_field(str(number), question) for number, question in enumerate(asked, start=1))
    return Elicitation("", "", tuple(fields))


def _field(name: str, question: AskedQuestion) -> FormField:
    answers = [_one_line(answer) for answer in question.answers]
    recommended = _one_line(question.recommended).casefold()
    return FormField(
        name,
        _one_line(question.question),
        "some of" if question.several else "one of",
        choices=tuple((answer, answer) for answer in answers),
        present=next((each for each in answers if each.casefold() == recommended), ""),
        most=_WRITTEN_CHARS,
        takes_text=True,
    )


def _problems_of(questions: Sequence[AskedQuestion]) -> Iterator[str]:
    """What is wrong with `questions`, a sentence each."""
    if not 1 <= len(questions) <= _MOST_QUESTIONS:
        yield f"Ask 1 to {_MOST_QUESTIONS} questions, not {len(questions)}."
    titles = Counter(_one_line(each.question).casefold() for each in questions)
    if any(count > 1 for count in titles.values()):
        yield "Two questions are the same."
    for number, question in enumerate(questions[:_MOST_QUESTIONS], start=1):
        for problem in _problems_of_one(question):
            yield f"Question {number}: {problem}"


def _problems_of_one(question: AskedQuestion) -> Iterator[str]:
    answers = [_one_line(answer) for answer in question.answers]
    count = len(answers)
    if not _FEWEST_ANSWERS <= count <= _MOST_ANSWERS:
        yield (
            f"give {_FEWEST_ANSWERS} to {_MOST_ANSWERS} answers, not {count}; the user can always "
            "write another one."
        )
    yield from _problems_of_text("question", question.question, _QUESTION_CHARS)
    for place, answer in enumerate(question.answers[:_MOST_ANSWERS], start=1):
        yield from _problems_of_text(f"answer {place}", answer, _ANSWER_CHARS)
    folded = [answer.casefold() for answer in answers]
    if len(set(folded)) < count:
        yield "two of its answers are the same."
    recommended = _one_line(question.recommended).casefold()
    if recommended and recommended not in folded:
        yield "recommended must repeat one of its answers."


def _problems_of_text(what: str, text: str, most: int) -> Iterator[str]:
    line = _one_line(text)
    if not line:
        yield f"{what} is empty."
    if len(line) > most:
        yield f"{what} has {len(line):,} characters; at most {most} fit."
    if safe_text(line) != line:
        yield f"{what} has control characters."


def tell_answers(form: Elicitation, answer: JsonObject, secrets: Sequence[str]) -> ToolOutput:
    """The result of a form: each question with its answer, which are kept as the user's words.

    Args:
        form: What was asked.
        answer: The answer as MCP defines it.
        secrets: Values that no stored text may contain.
    """
    content = answer.get("content")
    given = content if answer.get("action") == "accept" and isinstance(content, dict) else {}
    answered = {field.name: _answers_in(given.get(field.name)) for field in form.fields}
    if not any(answered.values()):
        return ToolOutput(_LEFT, ToolDetails(summary=_NOT_ANSWERED), ends_turn="aborted")
    told = [f"{field.title} -> {_shown(field, answered[field.name])}" for field in form.fields]
    said = mask_values("\n".join(told), tuple(secrets))
    chosen = "; ".join(_one_line(", ".join(each) or _NOT_ANSWERED) for each in answered.values())
    summary = mask_values(chosen, tuple(secrets))
    if len(summary) > _SUMMARY_CHARS:
        summary = f"{summary[:_SUMMARY_CHARS].rstrip()}…"
    return ToolOutput(f"The user answered:\n{said}", ToolDetails(summary=summary, user_words=said))


def _answers_in(value: JsonValue) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [each.strip() for each in values if isinstance(each, str) and each.strip()]


def _shown(field: FormField, answers: Sequence[str]) -> str:
    """The answers to one question; what the user wrote comes last, in quotation marks."""
    offered = {value for value, _ in field.choices}
    shown = [answer if answer in offered else f'"{answer}"' for answer in answers]
    return ", ".join(shown) or _NOT_ANSWERED


def _one_line(text: str) -> str:
    return " ".join(text.split())
