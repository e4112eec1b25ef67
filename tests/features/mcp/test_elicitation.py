"""Forms that servers want filled."""

import json

import pytest
from pydantic import JsonValue

from agent_tui.features.mcp.elicitation import elicitation
from agent_tui.features.mcp.toolbox import CombinedToolbox
from agent_tui.messages import JsonObject
from agent_tui.tools.form import DECLINED, Elicitation, FormField, accept_form
from agent_tui.tools.registry import default_toolbox
from tests.support.mcp_server import FORM
from tests.support.rows import each_row


def form(properties: JsonValue) -> JsonObject:
    return {"message": "x", "requestedSchema": {"type": "object", "properties": properties}}


def fields() -> dict[str, FormField]:
    return {field.name: field for field in elicitation("srv", form(FORM)).fields}  # pyright: ignore[reportArgumentType]


@each_row(
    ("name", "typed", "value"),
    [
        ("who", "Ada", "Ada"),
        ("age", "7", 7),
        ("size", "Large", "l"),
        ("size", "s", "s"),
        ("sure", "No", False),
        ("likes", "cake, tea", ["cake", "tea"]),
    ],
)
def test_what_is_typed_becomes_what_the_server_takes(name, typed, value):
    assert fields()[name].value(typed) == value


@each_row(
    ("name", "typed", "takes"),
    [
        ("who", "A", "at least 2 characters"),
        ("age", "100", "at least 1 and at most 99"),
        ("age", "old", "a whole number"),
        ("size", "m", "one of small, large"),
        ("sure", "perhaps", "yes or no"),
        ("likes", "tea, rain", "one of tea, cake"),
    ],
)
def test_what_it_cannot_be_is_said(name, typed, takes):
    with pytest.raises(ValueError, match=takes):
        fields()[name].value(typed)


@pytest.mark.parametrize("typed", ["nan", "inf"])
def test_a_number_is_one(typed):
    with pytest.raises(ValueError, match="a number"):
        FormField("n", "n", "number").value(typed)


@each_row(
    "params",
    [
        {},
        form(7),
        form({"a": 7}),
        form({"a": {"type": "object"}}),
        form({"a": {"type": "array", "items": {"type": "string"}}}),
        form({str(number): {"type": "string"} for number in range(99)}),
    ],
)
def test_what_is_no_form_is_refused(params):
    with pytest.raises(ValueError, match="its f"):
        elicitation("srv", params)


async def call(stage, tool: str) -> JsonValue:
    box = CombinedToolbox(default_toolbox(), stage.hub)
    said = await box.prepare(f"mcp__srv__{tool}", {}, stage.context()).run()
    stage.user_words = said.for_person.user_words
    return json.loads(said.for_model.partition("\n[the user answered")[0])


async def test_a_server_asks_in_the_middle_of_a_call_and_is_answered(stage):
    asked: list[Elicitation] = []

    async def fill(one: Elicitation) -> JsonObject:
        asked.append(one)
        return accept_form({"who": "Ada"})

    stage.hub.let_answer(fill)
    await stage.ready("form")
    assert await call(stage, "form") == {"action": "accept", "content": {"who": "Ada"}}
    assert stage.user_words == "Who are you? -> Your name: Ada"
    assert (asked[0].server, asked[0].message) == ("srv", "Who are you?")
    assert [field.title for field in asked[0].fields][:2] == ["Your name", "age"]
    assert (await call(stage, "page"), asked[1].url)[1] == "https://pay.invalid/"
    assert 'capabilities {"elicitation": {}}' in stage.notes()


async def test_the_time_a_person_takes_is_not_the_calls(stage):
    seen: list[float | None] = []

    async def fill(one: Elicitation) -> JsonObject:
        server = stage.hub._servers["srv"]
        seen.extend(waiting.clock.when() for waiting in server._connection._waiting.values())
        return DECLINED

    stage.hub.let_answer(fill)
    await stage.ready("form")
    assert await call(stage, "form") == {"action": "decline"}
    assert stage.user_words == ""
    assert seen == [None]


async def test_where_nobody_answers_none_may_ask(stage):
    await stage.ready("form")
    assert "capabilities {}" in stage.notes()
