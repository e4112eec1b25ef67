"""The model's questions line by line, in editors, and in other programs."""

from pathlib import Path
from typing import Any, cast

import pytest

from agent_tui import Agent
from agent_tui.api.agent import Questions
from agent_tui.commands.core.forms import question_filler
from agent_tui.commands.core.front import Choice, Listing, Question
from agent_tui.features.acp.editor import Outbox
from agent_tui.features.acp.questions import EditorForms
from agent_tui.features.ask_user.tool import AskUserArguments, make_form
from agent_tui.features.tour.scripted import Reply
from agent_tui.messages import JsonObject
from agent_tui.tools.form import CANCELLED, Elicitation, FormField, accept_form
from tests.features.acp.test_forms import Client
from tests.features.ask_user.test_tool import ask
from tests.features.plain.talking import Typed, asker, talk
from tests.support.openai_server import Call, OpenAiServer
from tests.support.openai_server import Reply as ServerReply
from tests.support.runtime import Stage

DATABASE: JsonObject = {
    "question": "Which database?",
    "answers": ["SQLite", "Postgres", "Redis"],
    "recommended": "Postgres",
}
TESTS: JsonObject = {"question": "Which tests?", "answers": ["unit", "end to end"], "several": True}


def form_of(*questions: JsonObject) -> Elicitation:
    return make_form(AskUserArguments.model_validate({"questions": list(questions)}))


class Lines:
    """A front of lines, with what is typed."""

    can_pick = True

    def __init__(self, *typed: Typed, pending: str = "") -> None:
        self.asker, self.out = asker(*typed, pending=pending)

    async def pick(self, wanted: Listing[str]) -> str | None:
        return self.asker.pick(wanted)

    async def ask(self, question: Question[Any]) -> Any:
        return self.asker.question(question)

    def say(self, text: str, level: str = "info") -> None:
        self.out.write(f"{text}\n")


class Buttons:
    """A front that can only show buttons; `chosen` are the labels pressed."""

    can_pick = False

    def __init__(self, *chosen: str | None) -> None:
        self.chosen = list(chosen)
        self.asked: list[Question[Any]] = []

    async def ask(self, question: Question[Any]) -> Any:
        self.asked.append(question)
        label = self.chosen.pop(0)
        found: list[Choice[Any]] = [each for each in question.choices if each.label == label]
        return found[0].value if found else None


@pytest.mark.parametrize(
    ("typed", "answers"),
    [
        (["1"], ["SQLite"]),
        (["my own"], ["my own"]),
        (["7", "3"], ["Redis"]),
        (["x" * 4_001, "short"], ["short"]),
    ],
)
async def test_a_number_or_words_answer_line_by_line(typed: list[str], answers: list[str]):
    front = Lines(*typed)
    answer = await question_filler(cast(Any, front))(form_of(DATABASE))
    assert answer == accept_form({"1": [*answers]})
    assert (
        "Which database?\n1. SQLite\n2. Postgres, recommended\n3. Redis\n" in front.out.getvalue()
    )


@pytest.mark.parametrize(
    ("typed", "answers"),
    [
        ("1,2", ["unit", "end to end"]),
        ("2 1 2", ["end to end", "unit"]),
        ("1", ["unit"]),
        ("1,9", ["1,9"]),
        ("1, and more", ["1, and more"]),
    ],
)
async def test_several_numbers_choose_several(typed: str, answers: list[str]):
    answer = await question_filler(cast(Any, Lines(typed)))(form_of(TESTS))
    assert answer == accept_form({"1": [*answers]})


@pytest.mark.parametrize("typed", ["", KeyboardInterrupt, EOFError])
async def test_a_question_that_is_left_ends_all(typed: Typed):
    front = Lines("1", typed)
    answer = await question_filler(cast(Any, front))(
        form_of(DATABASE, TESTS, DATABASE | {"question": "?"})
    )
    assert answer == CANCELLED
    assert "Question 3" not in front.out.getvalue()


async def test_all_answers_are_shown_and_may_be_given_again():
    front = Lines("1", "2", "a", "3", "mine", "s")
    answer = await question_filler(cast(Any, front))(form_of(DATABASE, TESTS))
    assert answer == accept_form({"1": ["Redis"], "2": ["mine"]})
    assert "    Which database? -> SQLite\n" in front.out.getvalue()
    assert (
        await question_filler(cast(Any, Lines("1", "2", "")))(form_of(DATABASE, TESTS)) == CANCELLED
    )


async def test_what_was_typed_before_a_question_does_not_answer_it():
    front = Lines("3", pending="1\n")
    assert await question_filler(cast(Any, front))(form_of(DATABASE)) == accept_form(
        {"1": ["Redis"]}
    )
    assert "Ignored because it was typed before the question" in front.out.getvalue()


@pytest.mark.thorough
def test_a_conversation_line_by_line(stage: Stage):
    replies = [Reply("I must know.", tool_calls=(ask(DATABASE),)), Reply("Thanks.")]
    written = talk(stage, stage.runtime(replies), "Build it.", "2", EOFError)
    told = written[written.index("I must know.") :]
    assert told.index("Which database?") < told.index("none: 2") < told.index("Thanks.")
    assert "Tool ask_user: Which database?: Postgres.\n" in told


async def test_an_editor_without_forms_shows_buttons_one_question_after_the_other():
    front = Buttons("Postgres (recommended)", "unit", "that is all", "send them")
    answer = await question_filler(cast(Any, front))(form_of(DATABASE, TESTS))
    assert answer == accept_form({"1": ["Postgres"], "2": ["unit"]})
    assert [each.label for each in front.asked[2].choices] == ["end to end", "that is all"]
    assert front.asked[0].unanswered == "stop, and write in the chat"


@pytest.mark.parametrize("pressed", [(None,), ("unit", None)])
async def test_a_button_that_is_left_ends_all(pressed: tuple[str | None, ...]):
    front = Buttons(*pressed)
    assert await question_filler(cast(Any, front))(form_of(TESTS)) == CANCELLED


async def test_an_editor_with_forms_shows_choices_and_fields_for_texts():
    client = Client({"1": "Redis", "1-written": " but small ", "2": ["end to end", "x", "unit"]})
    form = EditorForms(Outbox(cast(Any, client), "s"))
    answer = await form.fill(form_of(DATABASE, TESTS))
    assert answer == accept_form({"1": ["Redis", "but small"], "2": ["unit", "end to end"]})
    assert client.required == []
    assert client.properties["1"].default == "Postgres"
    assert [each.title for each in client.properties["1"].one_of] == ["SQLite", "Postgres", "Redis"]
    closed = EditorForms(Outbox(cast(Any, Client(None)), "s"))
    assert await closed.fill(form_of(DATABASE)) == CANCELLED


async def run_agent(folder: Path, questions: Questions | None) -> tuple[str, list[str]]:
    """What the model is told about its question, and the tools it was offered first."""
    call = Call("ask_user", {"questions": [DATABASE, TESTS]})
    with OpenAiServer() as server:
        server.play(ServerReply(tool_calls=(call,)), ServerReply(text="Thanks."))
        agent = Agent("m", base_url=server.base_url, cwd=folder, questions=questions)
        async with agent:
            async for _ in agent.run("Build it."):
                pass
        first, last = server.chats[0].body, server.chats[-1].body
    names = [spec["function"]["name"] for spec in first["tools"]]
    results = [m["content"] for m in last["messages"] if m["role"] == "tool"]
    return "".join(results), names


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


@pytest.mark.thorough
@pytest.mark.usefixtures("key")
async def test_another_program_answers_with_a_function(tmp_path: Path):
    def answer(questions: Any) -> list[str | list[str]]:
        assert [type(each) for each in questions] == [FormField, FormField]
        return [questions[0].present, ["unit", "more"]]

    async def answer_later(questions: Any) -> list[str | list[str]]:
        return answer(questions)

    for questions in (answer, answer_later):
        told, names = await run_agent(tmp_path, questions)
        assert 'Which database? -> Postgres\nWhich tests? -> unit, "more"' in told
        assert "ask_user" in names


@pytest.mark.thorough
@pytest.mark.usefixtures("key")
async def test_a_program_without_such_a_function_is_not_asked(tmp_path: Path):
    told, names = await run_agent(tmp_path, None)
    assert told.startswith("Nobody can answer questions here.")
    assert "ask_user" not in names


@pytest.mark.thorough
@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("wrong", ["SQLite", ["SQLite"], [1, 2], 7])
async def test_a_wrong_answer_of_a_program_is_its_fault(tmp_path: Path, wrong: Any):
    with pytest.raises(TypeError, match="questions returned"):
        await run_agent(tmp_path, lambda _questions: wrong)


@pytest.mark.thorough
@pytest.mark.usefixtures("key")
async def test_a_program_may_leave_a_question(tmp_path: Path):
    told, _ = await run_agent(tmp_path, lambda _questions: None)
    assert told == ""  # the turn stopped: there was no further request


def test_questions_must_be_a_function():
    with pytest.raises(TypeError, match="questions is a function"):
        Agent("m", questions=cast(Any, "yes"))
