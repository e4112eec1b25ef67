"""What an editor writes that is no message, how it leaves, and what stands for it."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from agent_tui.features.acp import wire as wire_module
from agent_tui.features.acp.wire import StdioWire
from agent_tui.sessions.log import SessionLog
from tests.support.editor import Place
from tests.support.openai_script import Call, Reply
from tests.support.patience import PATIENCE_S

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}


class Pipes:
    """A wire over two pipes, and the editor's ends of them."""

    def __init__(self) -> None:
        incoming, self.to_agent = os.pipe()
        self.from_agent, outgoing = os.pipe()
        self.wire = StdioWire(incoming, outgoing)

    def write(self, data: bytes) -> None:
        os.write(self.to_agent, data)

    def leave(self) -> None:
        os.close(self.to_agent)

    async def answers(self, count: int) -> list[dict[str, Any]]:
        def read() -> list[dict[str, Any]]:
            with open(self.from_agent, "rb", closefd=False, buffering=0) as file:
                return [json.loads(file.readline()) for _ in range(count)]

        return await asyncio.to_thread(read)


@pytest.fixture
async def pipes() -> AsyncIterator[Pipes]:
    pipes = Pipes()
    yield pipes
    await pipes.wire.close()
    for descriptor in (pipes.to_agent, pipes.from_agent):
        with suppress(OSError):
            os.close(descriptor)


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"5", -32600, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"initialize"}]', -32600, None),
        (b"null", -32600, None),
        (b'"text"', -32600, None),
        (b"{}", -32600, None),
        (b'{"id":7,"params":{}}', -32600, 7),
        (b'{"id":"a","method":5}', -32600, "a"),
        (b'{"id":{},"method":"initialize"}', -32600, None),
        (b'{"id":[1],"result":null}', -32600, None),
        (b"{", -32700, None),
        (b"\xff\xfe", -32700, None),
        (b"[" * 100_000, -32700, None),
        (b"9" * 10_000, -32700, None),
    ],
)
async def test_what_is_no_message_is_answered_and_reading_goes_on(
    pipes: Pipes, line: bytes, code: int, request_id: object
) -> None:
    message = json.dumps(INITIALIZE).encode()
    writing = asyncio.to_thread(pipes.write, line + b"\n\n" + message + b"\n")
    _, received = await asyncio.gather(writing, pipes.wire.receive())
    assert received == INITIALIZE
    (answer,) = await pipes.answers(1)
    assert (answer["error"]["code"], answer["id"]) == (code, request_id)
    assert answer["error"]["message"].endswith(".")


@pytest.mark.thorough
async def test_a_line_that_is_too_long_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_tui.sessions.file.chunks.MAX_LINE_BYTES", 1_000)
    monkeypatch.setattr(wire_module, "MAX_LINE_BYTES", 1_000)
    pipes = Pipes()
    pipes.write(b'{"method":"' + b"x" * 5_000 + b'"}\n' + json.dumps(INITIALIZE).encode() + b"\n")
    assert await pipes.wire.receive() == INITIALIZE
    (answer,) = await pipes.answers(1)
    assert answer["error"]["code"] == -32600
    assert answer["error"]["message"] == "The line has 5,014 bytes; the limit is 1,000."
    pipes.leave()
    assert await pipes.wire.receive() is None
    os.close(pipes.from_agent)


async def test_an_answer_without_result_and_an_error_that_is_a_text_are_taken(pipes: Pipes) -> None:
    await pipes.wire.send({"jsonrpc": "2.0", "id": 0, "method": "ask", "params": {}})
    pipes.write(b'{"jsonrpc":"2.0","id":0}\n{"jsonrpc":"2.0","id":1,"error":"no"}\n')
    assert await pipes.wire.receive() == {"jsonrpc": "2.0", "id": 0}
    answered = await pipes.wire.receive()
    assert answered is not None
    assert answered["error"] == {"code": -32603, "message": "no"}


async def test_what_was_asked_before_the_input_ended_is_answered(pipes: Pipes) -> None:
    pipes.write(json.dumps(INITIALIZE).encode() + b"\n")
    pipes.leave()
    assert await pipes.wire.receive() == INITIALIZE
    ending = asyncio.create_task(pipes.wire.receive())
    await asyncio.sleep(0)
    await pipes.wire.send({"jsonrpc": "2.0", "id": 1, "result": {}})
    assert await ending is None
    assert (await pipes.answers(1))[0]["id"] == 1


async def test_an_editor_that_does_not_read_is_not_waited_for(
    pipes: Pipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire_module, "_GRACE_S", 0.05)
    sending = asyncio.create_task(pipes.wire.send({"method": "x", "params": "y" * 500_000}))
    await asyncio.sleep(0)
    pipes.leave()
    assert await pipes.wire.receive() is None
    await pipes.wire.close()
    with pytest.raises(ConnectionError):
        await sending
    with pytest.raises(ConnectionError):
        await pipes.wire.send({"method": "x"})


async def test_an_output_that_nobody_reads_any_more_ends_the_conversation(pipes: Pipes) -> None:
    os.close(pipes.from_agent)
    with pytest.raises(ConnectionError):
        await pipes.wire.send({"method": "x"})
    assert await pipes.wire.receive() is None
    assert pipes.wire.fault == ""


# The whole program


@contextmanager
def program(place: Place, **streams: Any) -> Iterator[subprocess.Popen[bytes]]:
    environ = {
        **os.environ,
        "AGENT_TUI_HOME": str(place.root / "home"),
        "OPENAI_API_KEY": "sk-test",
    }
    arguments = ("-m", "openai/gpt-4o", "--base-url", place.server.base_url, "--trust")
    argv = [sys.executable, "-m", "agent_tui", "acp", *arguments, "--permission-mode", "full"]
    given: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, **streams}
    with subprocess.Popen[bytes](argv, env=environ, **given) as started:
        try:
            yield started
        finally:
            started.kill()


class Talk:
    """An editor by hand: it reads only when it is told to."""

    def __init__(self, started: subprocess.Popen[bytes]) -> None:
        assert started.stdin is not None
        assert started.stdout is not None
        self.stdin, self.stdout = started.stdin, started.stdout

    def ask(self, number: int, method: str, params: object) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.stdin.write(json.dumps(message).encode() + b"\n")
        self.stdin.flush()

    def answer(self, number: int) -> dict[str, Any]:
        while True:
            message = json.loads(self.stdout.readline())
            if message.get("id") == number and "method" not in message:
                return message

    def begin(self, cwd: Path) -> str:
        self.ask(1, "initialize", INITIALIZE["params"])
        self.answer(1)
        self.ask(2, "session/new", {"cwd": str(cwd), "mcpServers": []})
        return self.answer(2)["result"]["sessionId"]


@pytest.mark.thorough
@pytest.mark.parametrize("left", ["all", "stdin", "stdout"])
async def test_an_editor_that_stops_reading_and_leaves_ends_the_program(
    place: Place, left: str
) -> None:
    def leave_in_the_middle() -> int:
        with program(place) as started:
            talk = Talk(started)
            session = talk.begin(place.work)
            prompt = [{"type": "text", "text": "Go."}]
            talk.ask(3, "session/prompt", {"sessionId": session, "prompt": prompt})
            while not (place.work / "pid").exists():
                assert started.poll() is None
                time.sleep(0.05)
            if left != "stdout":
                talk.stdin.close()
            if left != "stdin":
                talk.stdout.close()
            code = started.wait(timeout=PATIENCE_S)
            if not talk.stdin.closed:
                talk.stdin.close()
            return code

    command = "echo $$ > pid.new && mv pid.new pid; seq 100000; sleep 600"
    place.server.play(
        Reply(
            text=tuple(f"{n} " * 250 for n in range(300)),
            tool_calls=(Call("bash", {"command": command}),),
        ),
        Reply(text="Done."),
    )
    assert await asyncio.to_thread(leave_in_the_middle) == 0
    (path,) = (place.root / "home").rglob("*.jsonl")
    with SessionLog.open(path) as log:
        assert "299 299" in str(log.entries)
    assert not psutil.pid_exists(int((place.work / "pid").read_text()))


@pytest.mark.thorough
async def test_requests_in_a_file_are_answered_in_a_file(place: Place) -> None:
    requests, answers = place.root / "requests", place.root / "answers"
    requests.write_text(f"5\n{json.dumps(INITIALIZE)}\n")

    def run() -> int:
        with (
            requests.open("rb") as given,
            answers.open("wb") as taken,
            program(place, stdin=given, stdout=taken) as started,
        ):
            return started.wait(timeout=PATIENCE_S)

    assert await asyncio.to_thread(run) == 0
    refused, initialized = map(json.loads, answers.read_text().splitlines())
    assert refused["error"]["code"] == -32600
    assert initialized["result"]["agentInfo"]["name"] == "agent-tui"


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
async def test_an_output_that_cannot_be_written_is_one_sentence(place: Place) -> None:
    def run() -> tuple[int, bytes]:
        with (
            Path("/dev/full").open("wb") as full,
            program(place, stdout=full, stderr=subprocess.PIPE) as started,
        ):
            assert started.stdin is not None
            assert started.stderr is not None
            started.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
            started.stdin.flush()
            said = started.stderr.read()
            return started.wait(timeout=PATIENCE_S), said

    said = b"agent-tui: Cannot write to standard output: No space left on device.\n"
    assert await asyncio.to_thread(run) == (1, said)
