import json
import sys
from pathlib import Path

import pytest
from acp.schema import (
    AcpMcpServer,
    EnvVariable,
    HttpHeader,
    HttpMcpServer,
    McpServerStdio,
    SseMcpServer,
)

from agent_tui.features.acp.agent import servers_of_editor
from tests.support.editor import Place, say
from tests.support.openai_server import Call, Reply

_SERVER = Path(__file__).parents[2] / "support/mcp_server.py"


def stdio(name: str = "My Tools", *args: str) -> McpServerStdio:
    arguments = ["-I", "-S", str(_SERVER), *args]
    env = [EnvVariable(name="DEPTH", value="3")]
    return McpServerStdio(name=name, command=sys.executable, args=arguments, env=env)


def test_what_an_editor_names_is_asked_about_and_the_rest_is_told():
    headers = [HttpHeader(name="Authorization", value="Bearer x")]
    given = [
        stdio(),
        HttpMcpServer(type="http", name="web", url="https://mcp.test/", headers=headers),
        SseMcpServer(type="sse", name="old", url="https://mcp.test/", headers=[]),
        AcpMcpServer(type="acp", name="inner", server_id="1"),
        stdio("???"),
        stdio("long", "x" * 5_000),
    ]
    (tools, web), problems = servers_of_editor(given)
    assert (tools.name, tools.argv[0], tools.env) == ("My-Tools", sys.executable, {"DEPTH": "3"})
    assert (web.url, web.headers) == ("https://mcp.test/", {"Authorization": "Bearer x"})
    assert tools.is_asked_about
    assert web.is_asked_about
    assert [each.split("'")[2] for each in map(str, problems)] == ["old", "inner", "???", "long"]
    assert "type is sse" in problems[0]


@pytest.mark.thorough
async def test_a_server_is_started_after_a_yes_to_its_command_which_is_kept(place: Place):
    call = Call("mcp__My-Tools__echo", {"text": "deep"})
    place.server.play(Reply(tool_calls=(call,)), Reply(text="Done."), Reply(text="Again."))
    async with place.editor("0", "once") as (editor, connection, _):
        begun = await connection.new_session(cwd=str(place.work), mcp_servers=[stdio()])
        assert editor.asked == []
        assert await say(connection, begun.session_id, "Go.") == "end_turn"
        (question, options), _call = editor.asked
        assert question.title == "Start this editor's MCP server My-Tools?"
        shown = question.content[0].content.text
        assert str(_SERVER) in shown
        assert "DEPTH=3" in shown
        assert options == ["0", "1", "2"]
        (done,) = [u for u in editor.calls()[question.title] if u.status == "completed"]
        assert done.tool_call_id == question.tool_call_id
    assert "deep" in str(place.server.chats[1])
    async with place.editor() as (editor, connection, _):
        begun = await connection.new_session(cwd=str(place.work), mcp_servers=[stdio()])
        assert await say(connection, begun.session_id, "Go on.") == "end_turn"
        assert editor.asked == []


@pytest.mark.thorough
@pytest.mark.parametrize("answer", ["1", "", "gone"])
async def test_without_a_yes_a_server_is_not_started(place: Place, answer: str):
    place.server.play(Reply(text="One."), Reply(text="Two."))
    notes = place.root / "notes"
    async with place.editor(answer) as (editor, connection, _):
        server = stdio("t", "", str(notes))
        begun = await connection.new_session(cwd=str(place.work), mcp_servers=[server])
        await say(connection, begun.session_id, "Go.")
        await say(connection, begun.session_id, "Go on.")
        assert len(editor.asked) == 1
    assert "mcp__t" not in str(place.server.chats)
    assert not notes.exists()


@pytest.mark.thorough
async def test_a_cancel_while_it_is_asked_ends_the_prompt(place: Place):
    async with place.editor("closed") as (editor, connection, _):
        begun = await connection.new_session(cwd=str(place.work), mcp_servers=[stdio()])
        assert await say(connection, begun.session_id, "Go.") == "cancelled"
        assert len(editor.asked) == 1
    assert place.server.chats == []


@pytest.mark.thorough
async def test_what_commands_ask_is_a_request_too(place: Place):
    (place.work / "AGENTS.md").write_text("Be brief.")
    async with place.editor("0") as (editor, connection, _):
        begun = await connection.new_session(cwd=str(place.work), mcp_servers=[])
        await say(connection, begun.session_id, "/trust")
        ((question, _options),) = editor.asked
        assert "AGENTS.md" in question.content[0].content.text
        await say(connection, begun.session_id, "/tree")
        assert "needs a list to pick from" in editor.text()


@pytest.mark.thorough
async def test_a_servers_form_is_shown_whole_and_what_is_filled_in_is_sent(place: Place):
    call = Call("mcp__My-Tools__form", {})
    place.server.play(Reply(tool_calls=(call,)), Reply(text="Done."))
    filled = {"who": "Ada", "age": 36, "sure": False, "likes": ["tea", "cake"], "size": None}
    async with place.editor("0", "once", forms=[filled]) as (editor, connection, _):
        server = stdio("My Tools", "form")
        begun = await connection.new_session(cwd=str(place.work), mcp_servers=[server])
        assert await say(connection, begun.session_id, "Go.") == "end_turn"
        ((message, schema),) = editor.filled
    assert message == "The MCP server My-Tools asks: Who are you?"
    assert schema.required == ["who"]
    assert schema.properties["who"].min_length == 2
    assert [option.title for option in schema.properties["size"].one_of] == ["small", "large"]
    (answer,) = [m for m in place.server.chats[1].body["messages"] if m["role"] == "tool"]
    kept = {name: value for name, value in filled.items() if value is not None}
    (sent,) = answer["content"].splitlines()[:1]
    assert json.loads(sent) == {"action": "accept", "content": kept}
