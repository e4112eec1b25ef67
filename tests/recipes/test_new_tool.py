"""New tool: its module and one line in ``tools/registry.py``."""

from collections.abc import Iterator

import pytest

from tests.recipes.program_copy import ProgramCopy
from tests.support.openai_server import Call, OpenAiServer, Reply

MODULE = '''\
"""The `stamp` tool: a mark at the end of a file."""

import asyncio
from dataclasses import dataclass

from agent_tui.tools.base import Intent, ToolArguments, ToolContext, ToolOutput


class StampArguments(ToolArguments):
    """Arguments of `stamp`."""

    path: str
    only_look: bool = False


@dataclass(frozen=True, slots=True)
class StampTool:
    """Puts a mark at the end of a file, or looks whether one is there."""

    name: str = "stamp"
    description: str = (
        "Put a mark at the end of a file.\\nWith only_look the file stays as it is."
    )
    arguments_type: type[StampArguments] = StampArguments

    def intent(self, arguments: StampArguments, context: ToolContext) -> Intent:
        """Changes one file, unless it only looks."""
        path = context.resolve(arguments.path)
        access = "read" if arguments.only_look else "write"
        return Intent(title=f"stamp {context.display_name(path)}", access=access, paths=(path,))

    async def run(self, arguments: StampArguments, context: ToolContext) -> ToolOutput:
        """Do what the intent says."""
        return await asyncio.to_thread(_stamp, arguments, context)


def _stamp(arguments: StampArguments, context: ToolContext) -> ToolOutput:
    path = context.resolve(arguments.path)
    if arguments.only_look:
        return ToolOutput("It is stamped." if "[seen]" in path.read_text() else "No stamp.")
    path.write_text(path.read_text() + "[seen]\\n")
    return ToolOutput("Stamped.")
'''
TEXT = "Put a mark at the end of a file.\nWith only_look the file stays as it is."
REGISTRY = "agent_tui/tools/registry.py"
IMPORT = "from agent_tui.tools.stamp import StampTool\n"
LINE = "        offer_tool(StampTool()),\n"
LOOK = Call("stamp", {"path": "letter.txt", "only_look": True})
STAMP = Call("stamp", {"path": "letter.txt"})


@pytest.fixture
def copy(tmp_path) -> ProgramCopy:
    made = ProgramCopy(tmp_path, "New tool")
    made.add_file("agent_tui/tools/stamp.py", MODULE)
    made.insert_before(REGISTRY, "from agent_tui.tools.todo import", IMPORT)
    made.insert_before(REGISTRY, "        offer_tool(TodoTool())", LINE)
    (made.work / "letter.txt").write_text("Dear Ada\n", encoding="utf-8")
    return made


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with OpenAiServer() as running:
        yield running


def model(server: OpenAiServer) -> tuple[str, ...]:
    return ("-m", "test-model", "--base-url", server.base_url)


def letter(copy: ProgramCopy) -> str:
    return (copy.work / "letter.txt").read_text("utf-8")


def results(server: OpenAiServer) -> list[str]:
    """What the model was told of its calls."""
    messages = server.chats[-1].body["messages"]
    return [message["content"] for message in messages if message["role"] == "tool"]


@pytest.mark.thorough
def test_a_script_runs_it_and_what_it_may_not_do_is_refused(copy, server):
    server.play(Reply(tool_calls=(LOOK, STAMP)), Reply(text="Over."))
    done = copy.run(*model(server), "-p", "stamp the letter")
    assert "Over." in done.stdout, done.stderr
    looked, stamped = results(server)
    assert looked == "No stamp."
    assert stamped != "Stamped."
    assert letter(copy) == "Dear Ada\n"
    offered = {tool["function"]["name"]: tool["function"] for tool in server.chats[0].body["tools"]}
    assert offered["stamp"]["description"] == TEXT
    assert set(offered["stamp"]["parameters"]["properties"]) == {"path", "only_look"}


@pytest.mark.thorough
def test_a_script_that_may_do_everything_runs_all_of_it(copy, server):
    server.play(Reply(tool_calls=(STAMP, LOOK)), Reply(text="Over."))
    done = copy.run(*model(server), "--permission-mode", "full", "-p", "stamp the letter")
    assert done.returncode == 0, done.stderr
    assert results(server) == ["Stamped.", "It is stamped."]
    assert letter(copy) == "Dear Ada\n[seen]\n"


@pytest.mark.thorough
def test_the_screen_asks_about_a_change_and_lists_it_under_tools(copy, server):
    server.play(Reply(tool_calls=(LOOK,)), Reply(tool_calls=(STAMP,)), Reply(text="Over."))
    with copy.typing(*model(server)) as screen:
        screen.wait_for("test-model")
        screen.send("stamp the letter\r")
        screen.wait_for("stamp letter.txt")
        screen.wait_for("j/k scroll")  # from then on the question takes keys
        assert letter(copy) == "Dear Ada\n"
        screen.send("y")
        screen.wait_for("Over.")
        screen.send("/tools\r")
        screen.wait_for("Put a mark at the end of a file.")
    assert results(server) == ["No stamp.", "Stamped."]


@pytest.mark.thorough
def test_plain_asks_about_a_change(copy, server):
    server.play(Reply(tool_calls=(LOOK,)), Reply(tool_calls=(STAMP,)), Reply(text="Over."))
    with copy.typing(*model(server), "--plain") as person:
        person.wait_for("] > ")
        person.send("/tools\r")
        person.wait_for("Put a mark at the end of a file.")
        person.send("stamp the letter\r")
        person.wait_for("e: no, with a comment: ")
        assert letter(copy) == "Dear Ada\n"
        person.send("y\r")
        person.wait_for("Over.")
    assert results(server) == ["No stamp.", "Stamped."]
