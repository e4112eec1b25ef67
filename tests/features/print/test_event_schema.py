"""What ``--output-format stream-json`` prints is what its schema says."""

import io
import json
import re
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_tui.events import ToolStarted
from agent_tui.features.print.printer import event_json, print_turn
from agent_tui.features.print.result import event_schema, event_types
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Job,
    Pin,
    Todo,
    ToolResultMessage,
    TurnFacts,
)
from tests.support.runtime import Stage
from tests.support.session_values import reply, result

EVENTS = event_types()

st.register_type_strategy(
    AssistantMessage,
    st.sampled_from([reply("Hi."), reply("", ("c1", "ls"), stop_reason="toolUse")]),
)
st.register_type_strategy(ToolResultMessage, st.just(result("c1")))
st.register_type_strategy(
    BashExecutionMessage,
    st.just(BashExecutionMessage(command="ls", output="a\n", exit_code=0)),
)
st.register_type_strategy(Todo, st.just(Todo(text="a", status="pending")))
st.register_type_strategy(Pin, st.just(Pin(kind="skill", name="s", path="/s", digest="0")))
st.register_type_strategy(Path, st.just(Path("/s/a.jsonl")))
st.register_type_strategy(Job, st.just(Job(id="j", command="x")))
st.register_type_strategy(TurnFacts, st.just(TurnFacts(elapsed_ms=2_000, changed=("a.py",))))


@cache
def line_schema() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(event_schema())


def test_the_schema_is_a_schema_and_has_every_event():
    jsonschema.Draft202012Validator.check_schema(event_schema())
    named = set(re.findall(r'\{"\$ref": "#/\$defs/(\w+)"\}', json.dumps(event_schema()["oneOf"])))
    assert named == {event.__name__ for event in EVENTS} | {"result"}


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_any_event_is_as_its_schema_says(kind: type, data: st.DataObject):
    fields = {"arguments": st.just({"path": "a", "n": [1, None]})} if kind is ToolStarted else {}
    event = data.draw(st.builds(kind, **fields))
    line_schema().validate(json.loads(json.dumps(event_json(event))))


def test_another_kind_of_line_is_refused():
    assert not line_schema().is_valid({"type": "TextDelta"})
    assert not line_schema().is_valid({"type": "Nonsense", "text": "x"})


async def test_every_line_of_a_run_is_as_the_schema_says(stage: Stage):
    out = io.StringIO()
    script = [Reply("Look.", tool_calls=(call("c1", "bash", command="echo a"),)), Reply("Done.")]
    runtime = stage.runtime(script, is_interactive=False)
    await print_turn(runtime, "go", "stream-json", out=out, err=io.StringIO())
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert lines[-1]["type"] == "result"
    for line in lines:
        line_schema().validate(line)
