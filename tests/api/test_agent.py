"""`agent_tui.Agent` over a real server on loopback."""

import asyncio
import re
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field

import agent_tui
from agent_tui import Agent, tool
from agent_tui.api.tools import FunctionTool
from agent_tui.errors import IN_PROGRAM, AgentTuiError, CompactionError, ToolError, UsageError
from agent_tui.events import ApprovalRequest, TextDelta, ToolFinished, ToolStarted, TurnFinished
from agent_tui.providers.base import ModelRef
from agent_tui.providers.faults.classify import Fault, provider_error
from agent_tui.tools.registry import ToolRegistry
from tests.support.openai_server import Call, OpenAiServer, Reply, bad_key
from tests.support.patience import PATIENCE_S
from tests.support.rows import each_row


@tool
def tickets(
    status: Literal["open", "closed"], limit: Annotated[int, Field(description="At most.")] = 10
) -> list[str]:
    """List the tickets of this project.

    Newest first.
    """
    if limit > 100:
        raise LookupError("too many")
    return [f"{status} {number}" for number in range(limit)]


@tool
async def weather(place: str) -> str:
    """Say what the weather is."""
    await asyncio.sleep(0)
    return f"rain in {place}"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def agent(server: OpenAiServer, folder: Path, **options: object) -> Agent:
    return Agent("some-model", base_url=server.base_url, cwd=folder, **options)  # type: ignore[arg-type]


async def test_a_model_answers_and_uses_tools_of_ones_own(tmp_path: Path):
    calls = (Call("tickets", {"status": "open", "limit": 2}), Call("weather", {"place": "Oslo"}))
    with OpenAiServer() as server:
        server.play(Reply(text="Let me look.", tool_calls=calls), Reply(text="Two are open."))
        async with agent(server, tmp_path, tools=[tickets, weather]) as one:
            events = [event async for event in one.run("What is open?")]
            assert one.result == "Two are open."
        asked, again = (request.body for request in server.chats)
    offered = {spec["function"]["name"]: spec["function"] for spec in asked["tools"]}
    assert offered["tickets"]["description"].endswith("Newest first.")
    properties = offered["tickets"]["parameters"]["properties"]
    assert properties["status"]["enum"] == ["open", "closed"]
    assert properties["limit"]["description"] == "At most."
    results = [m["content"] for m in again["messages"] if m["role"] == "tool"]
    assert results[0].startswith('["open 0", "open 1"]')
    assert results[1].startswith("rain in Oslo")
    kinds = [type(event) for event in events]
    assert kinds[-1] is TurnFinished
    assert {TextDelta, ToolStarted, ToolFinished} <= {*kinds}


async def test_the_conversation_goes_on(tmp_path: Path):
    (tmp_path / "a.py").write_text("x = 1\n" * 4_000)
    with OpenAiServer() as server:
        server.play(
            Reply(tool_calls=(Call("read", {"path": "a.py"}),)),
            Reply(text="Read."),
            Reply(text="Yes."),
        )
        async with agent(server, tmp_path) as one:
            assert await one.ask("Read a.py. Never touch b.py.") == "Read."
            assert await one.ask("Still there?") == "Yes."
            before = server.chats[-1].body["messages"]
            assert any("x = 1" in str(m["content"]) for m in before)
    assert "Never touch b.py." in str(before)


async def test_without_permissions_it_only_reads(tmp_path: Path):
    calls = (Call("write", {"path": "a.txt", "content": "x"}), Call("ls", {"path": "."}))
    with OpenAiServer() as server:
        server.play(Reply(tool_calls=calls), Reply(text="It was refused."))
        async with agent(server, tmp_path) as one:
            assert await one.ask("Write a.txt") == "It was refused."
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.parametrize("may", [True, False])
async def test_permissions_decide(tmp_path: Path, may: bool):
    asked: list[ApprovalRequest] = []

    async def permissions(request: ApprovalRequest) -> bool:
        asked.append(request)
        return may

    with OpenAiServer() as server:
        server.play(
            Reply(tool_calls=(Call("write", {"path": "a.txt", "content": "x"}),)),
            Reply(text="Done."),
        )
        async with agent(server, tmp_path, permissions=permissions) as one:
            await one.ask("Write a.txt")
    assert [request.tool_name for request in asked] == ["write"]
    assert (tmp_path / "a.txt").exists() is may


async def test_permissions_may_be_a_plain_function_and_a_run_can_be_left(tmp_path: Path):
    call = Call("bash", {"command": "touch made.txt; echo made"})
    with OpenAiServer() as server:
        server.play(Reply(tool_calls=(call,)), Reply(text="Made."), Reply(text="Again."))
        async with agent(
            server, tmp_path, permissions=lambda request: "touch" in request.body
        ) as one:
            events = one.run("Make it")
            async for event in events:
                if isinstance(event, ToolFinished):
                    break
            await events.aclose()
            assert (tmp_path / "made.txt").exists()
            with pytest.raises(AgentTuiError, match="left before its end"):
                _ = one.result
            assert await one.ask("And now?") in ("Made.", "Again.")


async def test_two_tools_of_one_name_are_refused(tmp_path: Path):
    @tool
    def read(path: str) -> str:
        """Read otherwise."""
        return path

    with pytest.raises(ValueError, match=r"Two tools are called weather\. Rename one"):
        Agent("openai/gpt-4o", tools=[weather, weather], cwd=tmp_path)
    with (
        OpenAiServer() as server,
        pytest.raises(ValueError, match="read is the name of a built-in"),
    ):
        agent(server, tmp_path, tools=[read])


async def test_compacting_what_is_short_says_so(tmp_path: Path):
    with OpenAiServer() as server:
        server.play(Reply(text="Hello."))
        async with agent(server, tmp_path) as one:
            await one.ask("hi")
            with pytest.raises(CompactionError, match="Nothing to compact"):
                await one.compact()


async def test_a_failure_is_raised_with_its_reason(tmp_path: Path):
    with OpenAiServer() as server:
        server.play(bad_key())
        async with agent(server, tmp_path) as one:
            with pytest.raises(AgentTuiError, match="Nothing was asked yet"):
                _ = one.result
            with pytest.raises(AgentTuiError) as caught:
                await one.ask("hi")
    assert "key" in str(caught.value).lower()


async def test_the_key_is_that_of_the_named_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MINE", "sk-mine")
    with OpenAiServer() as server:
        server.play(Reply(text="Hello."))
        async with agent(server, tmp_path, api_key_env="MINE") as one:
            await one.ask("hi")
        assert server.chats[0].headers["authorization"] == "Bearer sk-mine"


COMMANDS = re.compile(r"(?<!\S)/(?!v1)\w|--\w|agent-tui|in the settings|[{}]")


async def test_a_failure_advises_what_a_program_can_do(tmp_path: Path):
    with OpenAiServer() as server:
        server.play(bad_key())
        async with agent(server, tmp_path) as one:
            with pytest.raises(AgentTuiError, match="the argument api_key_env") as caught:
                await one.ask("hi")
    assert not COMMANDS.search(str(caught.value))


FAULTS = {
    "auth": Fault("Error", "no", 401),
    "not_found": Fault("Error", "the model does not exist", 404),
    "rate_limit": Fault("Error", "no", 429),
    "quota": Fault("Error", "no", 402),
    "overloaded": Fault("Error", "model is loading", 503),
    "server": Fault("Error", "no", 502),
    "network": Fault("Error", "no", causes=["ConnectionRefusedError"]),
    "address": Fault("PageError", "<html>"),
    "timeout": Fault("IdleTimeout", "no"),
    "context_overflow": Fault("Error", "maximum context length is 10 tokens", 400),
    "content_filter": Fault("Error", "content_filter", 400),
    "bad_request": Fault("Error", "no", 400),
    "endless": Fault("EndlessReplyError", "no"),
}


@each_row("kind", FAULTS)
@each_row("base_url", ["", "http://127.0.0.1:1/v1"])
@each_row("model", ["anthropic/a", "mistral/a"])
def test_every_failure_of_a_request_does(kind: str, base_url: str, model: str):
    error = provider_error(FAULTS[kind], ModelRef(model, base_url))
    error.ways = IN_PROGRAM
    assert error.kind == kind
    assert error.hint
    assert not COMMANDS.search(error.hint)


async def test_a_message_that_is_too_long_advises_what_a_program_can_do(tmp_path: Path):
    with OpenAiServer() as server:
        async with agent(server, tmp_path, window=3_000) as one:
            with pytest.raises(AgentTuiError, match="window with the argument model") as caught:
                await one.ask("word " * 20_000)
    assert not COMMANDS.search(str(caught.value))


@pytest.mark.parametrize(
    ("model", "base_url"), [("", None), ("", "http://127.0.0.1:1/v1"), ("qwen3", None)]
)
def test_a_model_that_is_not_known_is_an_error_for_programs(
    tmp_path: Path, model: str, base_url: str | None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GROQ_API_KEY", "key")
    with pytest.raises(UsageError, match=f"exactly '{model}'.*base_url"):
        Agent(model, base_url=base_url, window=32_000, cwd=tmp_path)


async def test_a_tool_that_would_end_the_program_does_not(tmp_path: Path):
    @tool
    def leave() -> str:
        """Leave."""
        raise SystemExit(3)

    with OpenAiServer() as server:
        server.play(Reply(tool_calls=(Call("leave", {}),)), Reply(text="Still here."))
        async with agent(server, tmp_path, tools=[leave]) as one:
            assert await one.ask("go") == "Still here."


async def test_a_tool_that_finds_nothing_to_iterate_over_fails_as_others_do(tmp_path: Path):
    @tool
    def first(names: list[str]) -> str:
        """Find the first name."""
        return next(iter(names))

    with OpenAiServer() as server:
        server.play(Reply(tool_calls=(Call("first", {"names": []}),)), Reply(text="There is none."))
        async with agent(server, tmp_path, tools=[first]) as one:
            assert await asyncio.wait_for(one.ask("go"), PATIENCE_S) == "There is none."
        (result,) = [m["content"] for m in server.chats[1].body["messages"] if m["role"] == "tool"]
    assert "first failed: StopIteration" in result


async def test_of_a_very_long_result_the_model_gets_both_ends(tmp_path: Path):
    @tool
    def lines(count: int) -> str:
        """Count."""
        return "\n".join(map(str, range(count)))

    with OpenAiServer() as server:
        server.play(Reply(tool_calls=(Call("lines", {"count": 1_000_000}),)), Reply(text="Much."))
        async with agent(server, tmp_path, tools=[lines]) as one:
            await one.ask("go")
        (result,) = [m["content"] for m in server.chats[1].body["messages"] if m["role"] == "tool"]
    assert result.startswith("0\n1\n")
    assert "\n999999" in result
    assert len(result) < 100_000


async def test_a_tool_that_fails_says_so_to_the_model(tmp_path: Path):
    calls = (Call("tickets", {"status": "open", "limit": 101}), Call("tickets", {"status": "odd"}))
    with OpenAiServer() as server:
        server.play(Reply(tool_calls=calls), Reply(text="It failed."))
        async with agent(server, tmp_path, tools=[tickets]) as one:
            await one.ask("go")
        results = [m["content"] for m in server.chats[1].body["messages"] if m["role"] == "tool"]
    assert "tickets failed: LookupError: too many" in results[0]
    assert "tickets was not run" in results[1]


def test_nothing_of_the_person_is_read_or_written(tmp_path: Path):
    (tmp_path / "AGENTS.md").write_text("Always say ahoy.")
    with OpenAiServer() as server:
        server.play(Reply(text="Hello."))

        async def go() -> None:
            async with agent(server, tmp_path) as one:
                await one.ask("hi")

        asyncio.run(go())
        assert "ahoy" not in str(server.chats[0].body)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["AGENTS.md"]


def test_a_tool_can_still_be_called():
    assert tickets("open", 1) == ["open 0"]
    assert isinstance(tickets, FunctionTool)
    assert tickets.__doc__ is not None


def test_what_cannot_be_a_tool_is_refused():
    def silent(x: int) -> int:
        return x

    def untyped(x) -> str:  # type: ignore[no-untyped-def]
        """Something."""
        return str(x)

    def many(*x: int) -> str:
        """Something."""
        return str(x)

    class Odd:
        pass

    def takes_a_class(path: Odd) -> str:
        """Something."""
        return str(path)

    takes_a_class.__annotations__["path"] = Odd
    with pytest.raises(TypeError, match="docstring"):
        tool(silent)
    with pytest.raises(TypeError, match="needs a type"):
        tool(untyped)
    with pytest.raises(TypeError, match="by name"):
        tool(many)
    with pytest.raises(TypeError, match=r"takes_a_class\(path\) has the type Odd"):
        tool(takes_a_class)


def test_the_decorator_may_have_empty_parentheses():
    @tool()
    def double(number: int) -> int:
        """Double it."""
        return 2 * number

    assert (double(2), double.name) == (4, "double")


def test_wrong_arguments_are_explained_once_with_the_values():
    offered = ToolRegistry(tickets.offer())
    with pytest.raises(ToolError) as caught:
        offered.check("tickets", {"status": "lost", "limit": 1})
    assert str(caught.value) == (
        "tickets was not run. status is not one of its values\n"
        'Expected: status: "open" | "closed", limit?: integer'
    )


async def test_instructions_reach_the_model_and_turns_are_limited(tmp_path: Path):
    calls = (Call("ls", {"path": "."}),)
    with OpenAiServer() as server:
        server.play(Reply(tool_calls=calls), Reply(tool_calls=calls))
        options = {"instructions": "You are a release bot.", "max_turns": 2}
        async with agent(server, tmp_path, **options) as one:
            with pytest.raises(AgentTuiError, match="2"):
                await one.ask("Look.")
    assert "You are a release bot." in str(server.chats[0].body["messages"])
    assert len(server.chats) == 2


@pytest.mark.parametrize("answer", [None, "yes", 1])
async def test_permissions_say_true_or_false(tmp_path: Path, answer: object):
    with OpenAiServer() as server:
        server.play(Reply(tool_calls=(Call("write", {"path": "a.txt", "content": "x"}),)))
        async with agent(server, tmp_path, permissions=lambda _: answer) as one:
            with pytest.raises(TypeError, match=f"permissions returned {answer!r}; return True or"):
                await one.ask("Write a.txt")
    assert not (tmp_path / "a.txt").exists()


async def test_a_refusal_names_nothing_of_the_terminal(tmp_path: Path):
    calls = (Call("write", {"path": "a.txt", "content": "x"}),)
    with OpenAiServer() as server:
        server.play(Reply(tool_calls=calls), Reply(text="No."))
        async with agent(server, tmp_path) as one:
            await one.ask("Write a.txt")
    refusal = server.chats[-1].body["messages"][-1]["content"]
    assert "what the argument permissions would have to allow" in refusal
    assert "rule" not in refusal


async def test_a_second_run_at_once_says_how_to_end_the_first(tmp_path: Path):
    with OpenAiServer() as server:
        server.play(Reply(text="Hello " * 50), Reply(text="Again."))
        async with agent(server, tmp_path) as one:
            events = one.run("hi")
            async for _ in events:
                break
            with pytest.raises(AgentTuiError, match=r"already running.*contextlib\.aclosing"):
                await one.ask("And now?")
            with pytest.raises(AgentTuiError, match=r"not ended.*contextlib\.aclosing"):
                _ = one.result
            await events.aclose()
            assert await one.ask("And now?") == "Again."


def test_what_is_given_wrongly_is_named(tmp_path: Path):
    def plain(text: str) -> str:
        """Nobody made it a tool."""
        return text

    with pytest.raises(TypeError, match=r"plain.* is no tool: put @agent_tui.tool above it"):
        Agent(model="openai/gpt-4o", tools=[plain], cwd=tmp_path)  # type: ignore[list-item]
    with pytest.raises(TypeError, match="tools is a list of functions"):
        Agent(model="openai/gpt-4o", tools=weather, cwd=tmp_path)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_turns must be a whole number"):
        Agent(model="openai/gpt-4o", max_turns=0, cwd=tmp_path)
    with pytest.raises(UsageError, match="variable NOPE_KEY, which api_key_env names, is not set"):
        Agent(model="openai/gpt-4o", api_key_env="NOPE_KEY", cwd=tmp_path)
    with pytest.raises(TypeError, match="permissions is a function"):
        Agent(model="openai/gpt-4o", permissions=True, cwd=tmp_path)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="base_url"):
        Agent(model="some-model", base_url="foo", cwd=tmp_path)
    with pytest.raises(UsageError, match="window"):
        Agent(model="some-model", window=-1, cwd=tmp_path)


def test_a_folder_or_model_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(UsageError, match="nowhere"):
        Agent("some-model", base_url="http://127.0.0.1:1/v1", cwd=tmp_path / "nowhere")
    assert agent_tui.Agent is Agent


async def test_a_result_that_is_no_json_is_told_as_python_writes_it(tmp_path: Path):
    @tool
    def places() -> dict[tuple[int, int], int]:
        """Say where what is."""
        return {(1, 2): 3}

    with OpenAiServer() as server:
        server.play(Reply(tool_calls=(Call("places", {}),)), Reply(text="There."))
        async with agent(server, tmp_path, tools=[places]) as one:
            assert await one.ask("Where?") == "There."
        (result,) = [m for m in server.chats[-1].body["messages"] if m["role"] == "tool"]
    assert result["content"].startswith("{(1, 2): 3}")
