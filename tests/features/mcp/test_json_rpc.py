import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.errors import ToolError
from agent_tui.features.mcp.json_rpc import (
    Notification,
    Request,
    Response,
    message_line,
    parse_line,
    reply_line,
)
from agent_tui.features.mcp.remote_tools import read_tools
from agent_tui.features.mcp.sources import expand_variables
from tests.support.rows import each_row

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def line(**message: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def test_each_kind_of_message_is_told_apart():
    assert parse_line(line(id=1, result={"a": 1})) == (Response(1, {"a": 1}),)
    assert parse_line(line(id=1, error={"code": -1, "message": "no"})) == (
        Response(1, {}, "no", -1),
    )
    assert parse_line(line(id=1, error={})) == (Response(1, {}, "it failed without saying why"),)
    assert parse_line(line(id=1, result=[])) == (Response(1, {}, "its answer has no result"),)
    assert parse_line(line(id="x", method="ping")) == (Request("x", "ping", {}),)
    assert parse_line(line(method="m", params=7)) == (Notification("m", {}),)
    batch = b"[" + line(method="a") + b"," + line(method="b") + b"]"
    assert parse_line(batch) == (Notification("a", {}), Notification("b", {}))


@each_row(
    "text",
    [
        b"hello",
        b"[]",
        b"7",
        b"{}",
        b"\xff\xfe{",
        b"[" * 100_000,
        line(id=1, result={"a": json.loads("[" * 900 + "]" * 900)}),
        b'{"jsonrpc": "2.0", "id": 1' + b"0" * 6_000 + b"}",
    ],
    ids=lambda text: repr(text[:12]),
)
def test_what_is_no_message_is_a_value_error(text: bytes):
    with pytest.raises(ValueError):  # noqa: PT011 - whatever json makes of it
        parse_line(text)


@settings(max_examples=25)
@given(st.binary(max_size=200) | st.builds(lambda v: json.dumps(v).encode(), _json))
def test_nothing_else_comes_of_any_line(text: bytes):
    with contextlib.suppress(ValueError):
        parse_line(text)


def test_a_server_may_look_whether_we_are_there_and_ask_nothing_else():
    assert json.loads(reply_line(Request(7, "ping", {})))["result"] == {}
    refused = json.loads(reply_line(Request("a", "roots/list", {})))
    assert (refused["id"], refused["error"]["code"]) == ("a", -32601)
    assert refused["jsonrpc"] == "2.0"
    assert refused["error"]["message"]


def test_a_line_has_no_newline_in_it_and_no_lone_surrogates():
    sent = message_line("m", {"text": "a\nb\ud800"}, 1)
    assert sent.count(b"\n") == 1
    assert json.loads(sent)["params"] == {"text": "a\nb\ufffd"}


@settings(max_examples=25)
@given(st.lists(_json, max_size=5))
def test_whatever_a_server_lists_becomes_tools_that_fit_or_words(listed: list):
    tools, problems = read_tools("srv", [{"name": "t", "inputSchema": one} for one in listed])
    assert len(tools) + len(problems) == len(listed)
    for tool in tools:
        assert tool.spec.parameters["type"] == "object"


def test_a_tool_that_lists_no_arguments_takes_none():
    (tool,), _ = read_tools("srv", [{"name": "t"}])
    assert tool.spec.parameters == {"type": "object", "properties": {}}


def test_a_tool_that_is_left_out_is_called_by_its_name_or_its_number():
    listed = [{"name": "texts", "inputSchema": {"type": "string"}}, {"inputSchema": {}}]
    _, (named, numbered) = read_tools("srv", listed)
    assert named == "tool 'texts' left out: its arguments are not a JSON schema of an object"
    assert numbered == "tool 2 left out: it has no name"


def test_variables_are_filled_in_and_the_models_keys_are_not():
    environ = {"A": "1", "KEY": "secret"}
    assert expand_variables("x${A}y${B:-z}$A", environ, {"KEY"}) == "x1yz$A"
    for text in ("${KEY}", "${KEY:-else}", "${B}"):
        with pytest.raises(ToolError):
            expand_variables(text, environ, {"KEY"})
