"""Grammars from the schemas of tools."""

import json
import os
import re
import threading
import urllib.request
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from agent_tui.features.weak_models.adapter import call_grammar
from agent_tui.features.weak_models.provenance import SentTexts
from agent_tui.features.weak_models.reader import read_calls
from agent_tui.messages import JsonObject, ToolSpec
from agent_tui.providers.base import TriggeredGrammar
from agent_tui.tools.registry import default_toolbox
from tests.features.weak_models.gbnf import pattern_of
from tests.support.rows import each_row

TOOLS = default_toolbox().specs
STRANGE = ToolSpec(
    name="strange",
    description="",
    parameters={
        "type": "object",
        "properties": {
            "no type": {},
            "free": {"type": "object"},
            "list": {"type": "array"},
            "mode": {"enum": ['a"b', 1, None]},
            "nested": {
                "type": "object",
                "properties": {"x": {"type": "boolean"}, "mode": {"type": "number"}},
            },
        },
        "required": ["mode"],
    },
)


LEFT_OUT = object()


@cache
def pattern() -> re.Pattern[str]:
    """What the grammar of all tools matches."""
    return pattern_of(call_grammar(TOOLS).text)


def values(schema: Any) -> SearchStrategy[Any]:
    """Values that fit `schema`, their properties in its order."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "string":
            return st.text(st.characters(exclude_categories=["Cs"]))
        case "integer":
            return st.integers(-(10**15), 10**15)
        case "number":
            return st.integers(0, 10**6) | st.floats(0.001, 1e6)
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(values(schema.get("items", {})), max_size=3)
        case "object" if "properties" in schema:
            needed = schema.get("required", ())
            members = {
                name: values(inner)
                if name in needed
                else st.just(LEFT_OUT) | st.builds(Some, values(inner))
                for name, inner in schema["properties"].items()
            }
            return st.fixed_dictionaries(members).map(lambda drawn: _present(drawn, list(members)))
        case "object":
            return st.sampled_from([{}, {"k": [{}]}])
        case _:
            return st.sampled_from([None, True, 1.5, "x", [], [1, {"a": []}], {}, {"k": [{}]}])


class Some:
    """A value that was not left out."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _present(drawn: dict[str, Any], order: list[str]) -> dict[str, Any]:
    present = {name: drawn[name] for name in order if drawn[name] is not LEFT_OUT}
    return {name: v.value if isinstance(v, Some) else v for name, v in present.items()}


def written(name: str, arguments: JsonObject, **style: Any) -> str:
    value = json.dumps({"name": name, "arguments": arguments}, **style)
    return f"<tool_call>\n{value}\n</tool_call>"


@each_row("tool", TOOLS, ids=lambda tool: tool.name)
def test_whatever_fits_the_schema_fits_the_grammar(tool: ToolSpec) -> None:
    @settings(max_examples=60, deadline=None)
    @given(values(tool.parameters), st.booleans())
    def check(arguments: JsonObject, is_compact: bool) -> None:
        separators = (",", ":") if is_compact else None
        text = written(tool.name, arguments, separators=separators, ensure_ascii=is_compact)
        assert pattern().fullmatch(text), text

    check()


@pytest.mark.thorough
def test_schemas_of_other_kinds_take_any_json() -> None:
    pattern = pattern_of(call_grammar([STRANGE]).text)

    @settings(max_examples=60, deadline=None)
    @given(values(STRANGE.parameters))
    def check(arguments: JsonObject) -> None:
        assert pattern.fullmatch(written("strange", arguments, indent=1))

    check()


@each_row(
    "arguments",
    ["{}", '{"limit": 1}', '{"path": 1}', '{"path": "a", "x": 1}', '{"limit": 1, "path": "a"}',
     '{"path": "a", "limit": "1"}', '{"path": "a",}', '{"path": "a" "limit": 1}'],
)  # fmt: skip
def test_what_does_not_fit_the_schema_does_not_fit_the_grammar(arguments: str) -> None:
    text = f'<tool_call>{{"name": "read", "arguments": {arguments}}}</tool_call>'
    assert pattern().fullmatch(text) is None


def test_a_tool_that_is_not_offered_does_not_fit() -> None:
    assert pattern().fullmatch(written("web", {})) is None
    assert pattern().fullmatch(written("ls", {}))


def test_the_grammar_begins_with_its_trigger() -> None:
    grammar = call_grammar(TOOLS)
    assert grammar.text.startswith(f'root ::= "{grammar.trigger}"')


def test_every_rule_is_defined_once() -> None:
    lines = call_grammar([*TOOLS, STRANGE]).text.splitlines()
    names = [line.split(" ")[0] for line in lines]
    assert len(names) == len(set(names))
    used = re.findall(r"\bt-[\w-]+", " ".join(re.sub(r'"(?:[^"\\]|\\.)*"', "", li) for li in lines))
    assert set(used) <= set(names)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A llama.cpp server in a process of its own, for it holds the interpreter while it loads."""
    model = os.environ.get("AGENT_TUI_TEST_MODEL", "")
    if not Path(model).is_file():
        pytest.skip("AGENT_TUI_TEST_MODEL names no model file")
    xllamacpp = pytest.importorskip("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx, params.n_parallel, params.port, params.verbosity = 4096, 1, 0, 0
    params.hostnames = ["127.0.0.1"]
    server = xllamacpp.Server(params)
    yield server.listening_address
    stopping = threading.Thread(target=server.stop) if hasattr(server, "stop") else None
    if stopping is not None:
        stopping.start()
        stopping.join()


def answer(address: str, prompt: str, grammar: TriggeredGrammar, *, is_lazy: bool) -> str:
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": 120,
        "temperature": 0,
        "grammar": grammar.text,
    }
    if is_lazy:
        body["grammar_lazy"] = True
        body["grammar_triggers"] = [{"type": 1, "value": grammar.trigger}]
    request = urllib.request.Request(
        f"{address}/v1/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)["choices"][0]["message"]["content"]


@pytest.mark.real_model
@pytest.mark.parametrize("tool", [*TOOLS, STRANGE], ids=lambda tool: tool.name)
def test_a_real_server_holds_a_weak_model_to_each_tool(address: str, tool: ToolSpec) -> None:
    reply = answer(address, f"Use {tool.name}.", call_grammar([tool]), is_lazy=False)
    assert reply.startswith("<tool_call>")
    if reply.endswith("</tool_call>"):
        (call,) = read_calls(reply, [tool], SentTexts(())).calls
        assert call.name == tool.name


@pytest.mark.real_model
def test_a_real_server_takes_the_grammar_of_all_tools_at_the_trigger(address: str) -> None:
    shown = 'To list a folder write\n<tool_call>{"name": "ls", "arguments": {}}</tool_call>'
    reply = answer(
        address,
        f"{shown}\nRepeat exactly: <tool_call>hello",
        call_grammar(TOOLS),
        is_lazy=True,
    )
    before, trigger, after = reply.partition("<tool_call>")
    assert trigger, before
    (call,) = read_calls(trigger + after, TOOLS, SentTexts(())).calls
    assert call.name in {tool.name for tool in TOOLS}
