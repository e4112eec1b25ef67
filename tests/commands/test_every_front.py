"""Every command in every front, over the real conversation with a scripted model."""

import asyncio
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import agent_tui.commands
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.commands.core.front import CommandServices
from agent_tui.commands.core.known_models import KnownModels
from agent_tui.commands.core.registry import load_commands
from agent_tui.features.print.printer import ExitCode, print_command
from agent_tui.features.tour.scripted import Reply
from agent_tui.messages import BashExecutionMessage, UserMessage
from agent_tui.providers.base import ModelRequest
from tests.features.plain.talking import Models, talk
from tests.support.leaping_clock import leaping_time
from tests.support.runtime import GOOD_SUMMARY, Stage
from tests.ui.app_support import Ui, answer, running_app, said

COMMANDS = load_commands().commands
ARGUMENTS = {
    "btw": "what was that?",
    "loop": "2 again",
    "model": "scripted/other",
    "name": "Greeting",
    "queue": "hello",
    "thinking": "high",
}
"""What is written behind the commands that say nothing without."""
ASKS_THE_MODEL = {"btw", "compact", "init", "loop", "queue", "retry"}
NEEDS_A_PERSON = {"resume", "tree", "trust"}


@pytest.fixture(autouse=True)
def time_leaps() -> Iterator[None]:
    with leaping_time():
        yield


class Conversation:
    """A conversation in which something was said, and what the model is asked from then on."""

    def __init__(self, folder: Path) -> None:
        self.stage = Stage(folder)
        self.requests: list[ModelRequest] = []
        own = BashExecutionMessage(command="seq 2", output="1\n2", exit_code=0)
        self.runtime = said(
            self.stage.runtime(self._reply), UserMessage(content="hi"), answer("Hello."), own
        )

    def _reply(self, request: ModelRequest) -> Reply:
        self.requests.append(request)
        return Reply(GOOD_SUMMARY if request.purpose == "summary" else "Fine.")

    async def printed(self, line: str) -> tuple[ExitCode, str, str]:
        """The exit code of ``-p``, and what it wrote on both streams."""
        out, err = io.StringIO(), io.StringIO()
        services = CommandServices(Models(), KnownModels())
        code = await print_command(self.runtime, services, line, "text", out=out, err=err)
        return code, out.getvalue(), err.getvalue()


@pytest.fixture
def conversation(tmp_path: Path) -> Conversation:
    return Conversation(tmp_path)


def call(name: str) -> str:
    return f"/{name} {ARGUMENTS.get(name, '')}".rstrip()


def expect_no_other_requests(name: str, conversation: Conversation) -> None:
    """Nothing is said to the model unless that is what the command is for; never its name."""
    assert bool(conversation.requests) <= (name in ASKS_THE_MODEL)
    sent = [message.text for asked in conversation.requests for message in asked.messages]
    assert not [text for text in sent if text.startswith("/")]


def state_of(ui: Ui, runtime: AgentRuntime) -> tuple[object, ...]:
    return (
        ui.chat.to_text(),
        ui.app.screen,
        ui.app.return_value,
        ui.app.focused,
        runtime.conversation.log.header.id,
    )


@pytest.mark.parametrize("name", [entry.name for entry in COMMANDS])
async def test_the_screen_shows_what_a_command_says_or_does(name: str, conversation: Conversation):
    runtime = conversation.runtime
    async with running_app(
        conversation.stage.folder, stage=conversation.stage, runtime=runtime
    ) as ui:
        before = state_of(ui, runtime)
        await ui.submit(call(name))
        await ui.until(lambda: state_of(ui, runtime) != before)
        await ui.settle()
    expect_no_other_requests(name, conversation)


@pytest.mark.parametrize("name", [entry.name for entry in COMMANDS])
def test_plain_tells_what_a_command_says_or_does(name: str, conversation: Conversation):
    text = talk(conversation.stage, conversation.runtime, call(name))
    (_, told) = text.split(f"> {call(name)}\n")
    told = told.partition("\nSession ")[0].partition("[ctx: ")[0]
    assert told or name == "exit"
    needs = {entry.name for entry in COMMANDS if entry.needs == "screen"}
    assert (f"/{name} needs the screen: start agent-tui without --plain." in told) == (
        name in needs
    )
    expect_no_other_requests(name, conversation)


@pytest.mark.parametrize("name", [entry.name for entry in COMMANDS])
async def test_print_writes_what_a_command_says_or_fails(name: str, conversation: Conversation):
    code, out, err = await conversation.printed(call(name))
    needs = {entry.name for entry in COMMANDS if entry.needs}
    assert (code == ExitCode.USAGE) == (name in needs | NEEDS_A_PERSON)
    assert (err != "" and "-p" in err) == (code == ExitCode.USAGE)
    assert out or err or name in {"exit", "new", "clear", "fork"}
    expect_no_other_requests(name, conversation)


async def test_the_output_of_the_last_tool_is_shown_whole(conversation: Conversation):
    assert await conversation.printed("/output") == (0, "Output of ! seq 2\n\n1\n2\n", "")


async def test_cost_is_told_alike_everywhere(tmp_path: Path):
    conversation = Conversation(tmp_path)
    _, printed, _ = await conversation.printed("/cost")
    stage = conversation.stage
    async with running_app(stage.folder, stage=stage, runtime=conversation.runtime) as ui:
        await ui.send("/cost")
        assert ui.notices[-1] == printed.rstrip("\n")


async def test_an_unknown_command_is_refused_with_the_nearest_and_sent_nowhere(
    conversation: Conversation,
):
    code, out, err = await conversation.printed("/modal x")
    assert (code, out) == (ExitCode.USAGE, "")
    assert err == "agent-tui: Unknown command /modal. Did you mean /model?\n"
    assert conversation.requests == []


async def test_a_path_is_a_message(conversation: Conversation):
    assert (await conversation.printed("/usr/bin/x is broken"))[1] == "Fine.\n"
    assert conversation.requests[0].messages[-1].text == "/usr/bin/x is broken"


@pytest.fixture
def more_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A module that somebody put beside the others."""
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "greeting.py").write_text('''
from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Front
from agent_tui.commands.core.front import Choice, Listing


@command("[name]", aliases=("hi",))
async def hello(front: Front, argument: str) -> None:
    """Greet somebody."""
    people = (Choice("Ada", "Ada Lovelace"), Choice("Bob", "Bob"))
    name = argument or await front.pick(Listing("Greet whom?", people, "Nobody is there."))
    front.say(f"Hello {name}.")
''')
    monkeypatch.setattr(agent_tui.commands, "__path__", [*agent_tui.commands.__path__, str(folder)])
    yield
    sys.modules.pop("agent_tui.commands.greeting", None)


@pytest.mark.usefixtures("more_commands")
async def test_a_module_in_the_room_is_a_command_of_every_front(conversation: Conversation):
    stage = conversation.stage
    assert await conversation.printed("/hello Eve") == (ExitCode.DONE, "Hello Eve.\n", "")
    assert "/hello [name]: Greet somebody (also /hi)" in (await conversation.printed("/help"))[1]
    async with running_app(stage.folder, stage=stage, runtime=conversation.runtime) as ui:
        await ui.write("/gre")
        await ui.pilot.press("escape")
        await ui.send("/hi Eve")
        assert ui.notices[-1] == "Hello Eve."
        await ui.send("/hello")
        await ui.pilot.press("down", "enter")
        await ui.until(lambda: ui.notices[-1] == "Hello Bob.")


@pytest.mark.usefixtures("more_commands")
def test_such_a_command_is_typed_by_lines_too(conversation: Conversation):
    text = talk(conversation.stage, conversation.runtime, "/hello", "1", "/hi Eve", "/hey")
    assert "Greet whom?\n1. Ada Lovelace\n2. Bob\n" in text
    assert "Hello Ada.\n" in text
    assert "Hello Eve.\n" in text
    assert "Unknown command /hey." in text


@pytest.mark.parametrize("front", ["screen", "plain", "print"])
def test_a_focus_on_the_next_line_is_no_message_in_any_front(
    front: str, conversation: Conversation
):
    stage, runtime = conversation.stage, conversation.runtime
    line = "/thinking\nhigh"

    async def on_the_screen() -> None:
        async with running_app(stage.folder, stage=stage, runtime=runtime) as ui:
            await ui.send(line)

    match front:
        case "screen":
            asyncio.run(on_the_screen())
        case "plain":
            talk(stage, runtime, "/thinking\\", "high")
        case _:
            asyncio.run(conversation.printed(line))
    assert runtime.conversation.thinking == "high"
    assert conversation.requests == []
