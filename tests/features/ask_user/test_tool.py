"""The model's questions: what it may ask, and what becomes of the answers."""

from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.errors import ToolError
from agent_tui.events import AgentEvent, FormClosed, FormOpened, ToolFinished, TurnFinished
from agent_tui.features.ask_user.tool import AskUserArguments, make_form, tell_answers
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import JsonObject, ToolResultMessage
from agent_tui.safe_text import safe_text
from agent_tui.sessions.entries import MessageEntry
from agent_tui.tokens import ExactCounter
from agent_tui.tools.form import CANCELLED, DECLINED, Elicitation, FormFiller, accept_form
from agent_tui.tools.registry import default_toolbox
from tests.support.runtime import Stage, collect, of_kind, only

DATABASE: JsonObject = {
    "question": "Which database?",
    "answers": ["SQLite", "Postgres"],
    "recommended": "SQLite",
}
TESTS: JsonObject = {"question": "Which tests?", "answers": ["unit", "end to end"], "several": True}


def ask(*questions: JsonObject, id: str = "c1") -> Any:
    return call(id, "ask_user", questions=list(questions))


def form_of(*questions: JsonObject) -> Elicitation:
    return make_form(AskUserArguments.model_validate({"questions": list(questions)}))


class Answers:
    """A user who gives `answers` to one form after the other; None leaves it."""

    def __init__(self, *answers: JsonObject | None) -> None:
        self._answers = list(answers)
        self.forms: list[Elicitation] = []

    async def fill(self, form: Elicitation) -> JsonObject:
        self.forms.append(form)
        answer = self._answers.pop(0)
        return CANCELLED if answer is None else accept_form(answer)


def asking(stage: Stage, fill: FormFiller | None, *replies: Reply, **more: Any) -> AgentRuntime:
    runtime = stage.runtime([*replies, Reply("Done.")], **more)
    if fill is not None:
        runtime.let_answer(fill)
    return runtime


def results(runtime: AgentRuntime) -> list[ToolResultMessage]:
    entries = runtime.conversation.log.path_entries()
    messages = [entry.message for entry in entries if isinstance(entry, MessageEntry)]
    return [message for message in messages if isinstance(message, ToolResultMessage)]


def offered_names(stage: Stage) -> set[str]:
    return {spec.name for spec in stage.model.requests[-1].tools}


async def test_the_answers_are_the_result_and_the_words_of_the_user(stage: Stage):
    user = Answers({"1": ["SQLite"], "2": ["unit", "end to end", "and one for\nthe parser"]})
    runtime = asking(stage, user.fill, Reply(tool_calls=(ask(DATABASE, TESTS),)))
    events = await collect(runtime.submit("Build it."))
    (result,) = results(runtime)
    said = 'Which database? -> SQLite\nWhich tests? -> unit, end to end, "and one for\nthe parser"'
    assert result.text == f"The user answered:\n{said}"
    assert result.tool_details.user_words == said
    assert result.tool_details.summary == "SQLite; unit, end to end, and one for th…"
    assert only(events, TurnFinished).outcome == "done"
    assert only(events, FormOpened) == FormOpened("c1", "Which database?")
    assert of_kind(events, FormClosed) == [FormClosed("c1")]


async def test_the_form_has_the_answers_one_of_them_recommended_and_takes_a_text(stage: Stage):
    first, second = form_of(DATABASE, TESTS).fields
    assert (first.title, first.kind, first.present) == ("Which database?", "one of", "SQLite")
    assert first.choices == (("SQLite", "SQLite"), ("Postgres", "Postgres"))
    assert (second.kind, second.present) == ("some of", "")
    assert first.takes_text
    assert second.takes_text


async def test_a_question_that_is_left_stops_the_turn_and_is_not_answered(stage: Stage):
    user = Answers(None)
    second = call("c2", "bash", command="touch made")
    runtime = asking(stage, user.fill, Reply(tool_calls=(ask(DATABASE), second)))
    events = await collect(runtime.submit("Build it."))
    asked, skipped = results(runtime)
    assert asked.text.startswith("The user did not answer")
    assert asked.tool_details.summary == "not answered"
    assert skipped.text == "Not run: an earlier call in this reply ended the turn."
    assert not (stage.workspace / "made").exists()
    assert only(events, TurnFinished).outcome == "aborted"
    assert len(stage.model.requests) == 1


async def test_two_calls_in_one_reply_ask_one_after_the_other(stage: Stage):
    user = Answers({"1": ["SQLite"]}, {"1": ["unit"]})
    calls = (ask(DATABASE), call("r", "ls"), ask(TESTS, id="c2"))
    runtime = asking(stage, user.fill, Reply(tool_calls=calls))
    events = await collect(runtime.submit("Build it."))
    order = [type(event) for event in of_kind(events, FormOpened | FormClosed)]  # pyright: ignore[reportArgumentType]
    assert order == [FormOpened, FormClosed, FormOpened, FormClosed]
    assert [message.tool_call_id for message in results(runtime)] == ["c1", "r", "c2"]


async def test_after_a_question_that_is_left_another_one_is_not_asked(stage: Stage):
    user = Answers(None)
    runtime = asking(stage, user.fill, Reply(tool_calls=(ask(DATABASE), ask(TESTS, id="c2"))))
    await collect(runtime.submit("Build it."))
    assert len(user.forms) == 1


async def test_the_user_is_asked_in_plan_mode_too(stage: Stage):
    user = Answers({"1": ["SQLite"]})
    runtime = asking(stage, user.fill, Reply(tool_calls=(ask(DATABASE),)), mode="plan")
    await collect(runtime.submit("Plan it."))
    assert "ask_user" in offered_names(stage)
    assert results(runtime)[0].text.endswith("-> SQLite")


async def test_where_nobody_answers_the_tool_is_not_offered_and_says_so(stage: Stage):
    runtime = asking(stage, None, Reply(tool_calls=(ask(DATABASE),)))
    await collect(runtime.submit("Build it."))
    assert "ask_user" not in offered_names(stage)
    (result,) = results(runtime)
    assert result.is_error
    assert result.text.startswith("Nobody can answer questions here.")


async def test_waiting_for_the_answer_is_not_counted_as_the_time_of_the_call(stage: Stage):
    now = [0.0]

    async def fill(_form: Elicitation) -> JsonObject:
        assert runtime.pending_approvals.is_any  # other programs read that the session waits
        now[0] += 3_600
        return accept_form({"1": ["SQLite"]})

    reply = Reply(tool_calls=(ask(DATABASE),))
    runtime = asking(stage, fill, reply, clock=lambda: now[0])
    await collect(runtime.submit("Build it."))
    assert results(runtime)[0].tool_details.elapsed_ms == 0
    assert not runtime.pending_approvals.is_any


async def test_the_front_has_seen_what_came_before_when_it_asks(stage: Stage):
    seen: list[AgentEvent] = []

    async def fill(_form: Elicitation) -> JsonObject:
        assert isinstance(seen[-1], FormOpened)
        return CANCELLED

    runtime = asking(stage, fill, Reply("Let me ask.", tool_calls=(ask(DATABASE),)))
    async with aclosing(runtime.submit("Build it.")) as events:
        async for event in events:
            seen.append(event)
    assert of_kind(seen, ToolFinished)


async def test_a_stopped_turn_closes_the_form(stage: Stage):
    closed: list[str] = []

    async def fill(_form: Elicitation) -> JsonObject:
        try:
            runtime.abort()
            await forever()
        finally:
            closed.append("closed")
        return CANCELLED

    runtime = asking(stage, fill, Reply(tool_calls=(ask(DATABASE),)))
    events = await collect(runtime.submit("Build it."))
    assert closed == ["closed"]
    assert of_kind(events, FormClosed)
    assert only(events, TurnFinished).outcome == "aborted"
    assert results(runtime)[0].is_error


async def forever() -> None:
    import asyncio

    await asyncio.Event().wait()


@pytest.mark.parametrize(
    "answer", [CANCELLED, DECLINED, accept_form({}), accept_form({"1": [" "]})]
)
def test_an_empty_answer_is_none(answer: JsonObject):
    output = tell_answers(form_of(DATABASE), answer, ())
    assert (output.ends_turn, output.for_person.user_words) == ("aborted", "")


def test_a_question_that_is_skipped_is_told():
    output = tell_answers(form_of(DATABASE, TESTS), accept_form({"2": ["unit"]}), ())
    assert "Which database? -> not answered\nWhich tests? -> unit" in output.for_model


def test_a_key_in_an_answer_is_masked():
    output = tell_answers(form_of(DATABASE), accept_form({"1": ["sk-secret"]}), ("sk-secret",))
    texts = (output.for_model, output.for_person.user_words, output.for_person.summary)
    assert not any("sk-secret" in text for text in texts)


@pytest.mark.parametrize(
    ("questions", "told"),
    [
        ([], "Ask 1 to 4 questions, not 0."),
        ([DATABASE] * 5, "Ask 1 to 4 questions, not 5."),
        ([DATABASE, DATABASE], "Two questions are the same."),
        ([{**DATABASE, "answers": ["yes"]}], "Question 1: give 2 to 5 answers, not 1"),
        (
            [TESTS, {**DATABASE, "answers": list("abcdef")}],
            "Question 2: give 2 to 5 answers, not 6",
        ),
        ([{**TESTS, "answers": ["a", " A"]}], "Question 1: two of its answers are the same."),
        ([{**TESTS, "question": " "}], "Question 1: question is empty."),
        ([{**TESTS, "question": "x" * 10_000}], "question has 10,000 characters; at most 500 fit."),
        ([{**TESTS, "answers": ["a", "b" * 201]}], "answer 2 has 201 characters; at most 200 fit."),
        ([{**TESTS, "question": "a\x1b[31mb"}], "question has control characters."),
        ([{**DATABASE, "recommended": "Redis"}], "recommended must repeat one of its answers."),
    ],
)
async def test_what_cannot_be_asked_is_told_to_the_model(
    stage: Stage, questions: list[JsonObject], told: str
):
    user = Answers()
    runtime = asking(stage, user.fill, Reply(tool_calls=(ask(*questions),)))
    await collect(runtime.submit("Build it."))
    (result,) = results(runtime)
    assert result.is_error
    assert told in result.text
    assert user.forms == []


_TEXTS = st.one_of(st.text(max_size=20), st.text(min_size=480, max_size=600))
_JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
_QUESTIONS = st.fixed_dictionaries(
    {"question": _TEXTS | _JSON, "answers": st.lists(_TEXTS, max_size=7) | _JSON},
    optional={"recommended": _TEXTS, "several": st.booleans(), "more": _JSON},
)


@given(st.fixed_dictionaries({"questions": st.lists(_QUESTIONS, max_size=6) | _JSON}))
def test_whatever_the_model_asks_is_shown_safely_or_refused_in_words(arguments: JsonObject):
    toolbox = default_toolbox()
    refusal, form = "", Elicitation("", "")
    try:
        toolbox.check("ask_user", arguments)
        form = make_form(AskUserArguments.model_validate(arguments))
    except ToolError as error:
        refusal = str(error)
    if refusal:
        assert refusal.startswith(("ask_user was not run", "The user was not asked"))
        return
    assert 1 <= len(form.fields) <= 4
    for field in form.fields:
        assert 2 <= len(field.choices) <= 5
        for text in (field.title, *(label for _, label in field.choices)):
            assert 0 < len(text) <= 500
            assert safe_text(text) == text
            assert "\n" not in text


def test_the_description_stays_small():
    spec = next(spec for spec in default_toolbox().specs if spec.name == "ask_user")
    assert ExactCounter().count_tools([spec]) <= 130
