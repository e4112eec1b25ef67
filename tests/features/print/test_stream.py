"""``--input-format stream-json``: each line is a turn, in one conversation."""

import asyncio
import base64
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from agent_tui.cli.arguments import parse_arguments
from agent_tui.commands.core.front import CommandServices
from agent_tui.commands.core.known_models import KnownModels
from agent_tui.errors import UsageError
from agent_tui.features.print.printer import ExitCode
from agent_tui.features.print.stream import MessageStream, UserLine, input_schema, read_input_line
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import JsonObject, UserMessage
from agent_tui.providers.base import ModelRequest
from tests.features.plain.talking import Models
from tests.support.images import png
from tests.support.processes import alive, nap
from tests.support.runtime import Stage

LINE = jsonschema.Draft202012Validator(input_schema())


def said(content: object) -> bytes:
    line = {"type": "user", "message": {"role": "user", "content": content}}
    LINE.validate(line)
    return json.dumps(line).encode() + b"\n"


def image(data: str) -> JsonObject:
    source: JsonObject = {"type": "base64", "media_type": "image/png", "data": data}
    return {"type": "image", "source": source}


class Talking:
    """A stream over a script, and what it prints."""

    def __init__(self, stage: Stage, *replies: Reply) -> None:
        self.stage = stage
        self.out, self.err = io.StringIO(), io.StringIO()
        self.runtime = stage.runtime(list(replies), is_interactive=False)
        services = CommandServices(Models(), KnownModels())
        self.stream = MessageStream(self.runtime, services, out=self.out, err=self.err)

    async def run(self, *lines: bytes) -> ExitCode:
        for line in lines:
            self.stream.feed(line)
        self.stream.close()
        return await self.stream.run()

    async def in_the_first_of_two(self) -> "asyncio.Task[ExitCode]":
        """The stream, running, with words of the first reply printed and a message waiting."""
        self.stream.feed(said("first"))
        self.stream.feed(said("second"))
        running = asyncio.create_task(self.stream.run())
        while not self.of_type("TextDelta"):
            await asyncio.sleep(0)
        return running

    @property
    def printed(self) -> list[JsonObject]:
        return [json.loads(line) for line in self.out.getvalue().splitlines()]

    def of_type(self, kind: str) -> list[JsonObject]:
        return [line for line in self.printed if line["type"] == kind]

    @property
    def results(self) -> list[tuple[object, object]]:
        return [(line["outcome"], line["result"]) for line in self.of_type("result")]


async def test_each_line_is_a_turn_with_a_result_in_one_conversation(stage: Stage):
    talking = Talking(stage, Reply("One."), Reply("Two."))
    assert await talking.run(said("first"), b"\n", said("second")) == ExitCode.DONE
    assert talking.results == [("done", "One."), ("done", "Two.")]
    assert len({str(line["session_id"]) for line in talking.of_type("result")}) == 1
    last = stage.model.requests[-1].messages
    assert [message.text for message in last] == ["first", "One.", "second"]


async def test_parts_and_images_of_a_message_go_along(stage: Stage):
    talking = Talking(stage, Reply("A picture."))
    encoded = base64.b64encode(png()).decode()
    parts = [{"type": "text", "text": "What"}, image(encoded), {"type": "text", "text": "is it?"}]
    assert await talking.run(said(parts)) == ExitCode.DONE
    (sent,) = stage.model.requests[-1].messages
    assert isinstance(sent, UserMessage)
    assert sent.text == "What\nis it?"
    assert [(each.mime_type, each.data) for each in sent.images] == [("image/png", encoded)]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"hello\n", "Invalid JSON"),
        (b"[]\n", "should be an object"),
        (b'{"type": "system"}\n', "system"),
        (b'{"type": "user", "message": {"content": 7}}\n', "message.content"),
        (b'{"type": "user", "message": {"role": "assistant", "content": "x"}}\n', "role"),
        (b"\xff\xfe\n", "Invalid JSON"),
        (said([image("!")]), "not Base64"),
        (said([image(base64.b64encode(b"text").decode())]), "not a PNG"),
    ],
)
async def test_a_line_that_cannot_be_read_is_told_and_the_rest_goes_on(
    stage: Stage, line: bytes, why: str
):
    talking = Talking(stage, Reply("Fine."))
    assert await talking.run(line, said("hi")) == ExitCode.USAGE
    (notice,) = talking.of_type("Notice")
    assert notice["level"] == "error"
    assert why in str(notice["text"])
    assert talking.results == [("done", "Fine.")]


async def test_a_slash_calls_a_command_and_an_unknown_one_is_an_error(stage: Stage):
    talking = Talking(stage, Reply("Fine."))
    code = await talking.run(said("/name the task"), said("/nonsense"), said("hi"))
    assert code == ExitCode.DONE
    assert [outcome for outcome, _ in talking.results] == ["done", "error", "done"]
    assert [line["exit_code"] for line in talking.of_type("result")] == [0, ExitCode.USAGE, 0]
    assert talking.runtime.conversation.log.name == "the task"


async def test_an_interrupt_stops_the_turn_and_what_waits_is_sent(stage: Stage):
    talking = Talking(stage, Reply("never at its end", gate=asyncio.Event()), Reply("Two."))
    running = await talking.in_the_first_of_two()
    talking.stream.feed(b'{"type": "interrupt"}\n')
    talking.stream.close()
    assert await running == ExitCode.DONE
    assert [outcome for outcome, _ in talking.results] == ["aborted", "done"]


async def test_a_stop_sends_nothing_of_what_waits(stage: Stage):
    talking = Talking(stage, Reply("never at its end", gate=asyncio.Event()), Reply("never"))
    running = await talking.in_the_first_of_two()
    talking.stream.stop()
    assert await running == ExitCode.INTERRUPTED
    assert [outcome for outcome, _ in talking.results] == ["aborted"]


async def test_commands_in_the_background_run_on_over_turns_and_end_with_the_input(stage: Stage):
    started = Reply(tool_calls=(call("c1", "bash", command=nap(76811), background=True),))
    running: list[bool] = []

    def look(_request: ModelRequest) -> Reply:
        running.append(bool(alive(nap(76811))))
        return Reply("It runs.")

    script = [started, Reply("Begun.")]
    talking = Talking(stage)
    talking.runtime = stage.runtime(
        lambda request: script.pop(0) if script else look(request), is_interactive=False
    )
    services = CommandServices(Models(), KnownModels())
    talking.stream = MessageStream(talking.runtime, services, out=talking.out, err=talking.err)
    await talking.run(said("begin"), said("look"))
    assert running == [True]
    assert alive(nap(76811)) == []
    assert f"Stopped when the run ended: {nap(76811)}" in talking.err.getvalue()


def test_a_message_may_leave_its_role_out_and_further_fields_are_passed_over():
    line = b'{"type": "user", "session_id": "x", "message": {"content": "hi"}}'
    read = read_input_line(line)
    assert isinstance(read, UserLine)
    assert (read.text, read.images()) == ("hi", ())
    with pytest.raises(UsageError, match="events schema --input"):
        read_input_line(b"{")


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_a_program_is_talked_with_over_a_pipe_and_ends_by_a_signal(
    tmp_path: Path, number: signal.Signals
):
    options = ("--input-format", "stream-json", "--output-format", "stream-json")
    environ = {**os.environ, "AGENT_TUI_HOME": str(tmp_path / "home")}
    with subprocess.Popen(
        [sys.executable, "-m", "agent_tui", "--demo", "-p", *options],
        env=environ,
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        for text in ("hello", "and again"):
            program.stdin.write(said(text))
            program.stdin.flush()
            kinds = iter(str(json.loads(line)["type"]) for line in program.stdout)
            assert "result" in kinds  # reads on until it comes
        program.send_signal(number)
        assert program.wait() == ExitCode.INTERRUPTED


def test_it_is_refused_without_the_matching_output():
    with pytest.raises(SystemExit):
        parse_arguments(["-p", "--input-format", "stream-json"])
    with pytest.raises(SystemExit):
        parse_arguments(["--input-format", "stream-json", "--output-format", "stream-json"])
