"""The whole program over the real provider process, against an HTTP server on loopback."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.messages import AssistantMessage
from agent_tui.sessions.entries import MessageEntry
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.file_changes import file_changes_in
from tests.support.openai_server import Call, NoHeaders, OpenAiServer, Reply, rate_limited
from tests.support.patience import PATIENCE_S
from tests.support.processes import alive
from tests.support.wire_rules import openai_problems


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with OpenAiServer() as running:
        yield running


class Program:
    """Starts ``agent-tui -p`` in a folder of its own."""

    def __init__(self, folder: Path, base_url: str) -> None:
        self.folder = folder
        self.base_url = base_url
        own = {f"AGENT_TUI_{n}_DIR": str(folder / n.lower()) for n in ("CONFIG", "DATA", "CACHE")}
        self.environ = {**os.environ, **own, "TEST_KEY": "sk-canary-0123456789"}
        self.workspace = folder / "workspace"
        self.workspace.mkdir()

    def start(self, *argv: str) -> subprocess.Popen[str]:
        line = [sys.executable, "-m", "agent_tui", "-m", "test-model", "--base-url", self.base_url]
        line += ["--api-key-env", "TEST_KEY", *argv]
        return subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environ,
            cwd=self.workspace,
        )

    def run(self, *argv: str) -> tuple[int, dict, str]:
        process = self.start(*argv, "--output-format", "json")
        out, err = process.communicate(timeout=PATIENCE_S)
        return process.returncode, json.loads(out) if out else {}, err

    def session(self) -> SessionLog:
        (path,) = (self.folder / "data" / "sessions").rglob("*.jsonl")
        return SessionLog.open(path)


@pytest.fixture
def program(tmp_path: Path, server: OpenAiServer) -> Iterator[Program]:
    """The program; at the end its key may be in no file."""
    running = Program(tmp_path, server.base_url)
    yield running
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"canary" in path.read_bytes()]


def last_reply(log: SessionLog) -> AssistantMessage:
    messages = [e.message for e in log.entries if isinstance(e, MessageEntry)]
    return [m for m in messages if isinstance(m, AssistantMessage)][-1]


def test_hooks_are_run_and_see_no_key(program, server):
    config = program.folder / "config" / "config.toml"
    config.parent.mkdir()
    config.write_text(
        '[[hooks.PostToolUse]]\nmatcher = "Write"\n'
        'command = "env > ../environ; echo line 1 is bad >&2; exit 2"\n'
        '[[hooks.SessionEnd]]\ncommand = "cat > ../ended.json"\n'
    )
    write = Call("write", {"path": "a.py", "content": "import os\n"})
    server.play(Reply(tool_calls=(write,)), Reply(text="Done."))
    code, _, _ = program.run("-p", "go", "--permission-mode", "full")
    assert code == 0
    (told,) = [one for one in server.chats[1].body["messages"] if one["role"] == "tool"]
    assert told["content"].endswith("[PostToolUse hook]\nline 1 is bad")
    assert "PATH=" in (program.folder / "environ").read_text()
    ended = json.loads((program.folder / "ended.json").read_text())
    assert ended["session_id"] == program.session().header.id


@pytest.mark.thorough
@pytest.mark.parametrize("output_format", ["json", "stream-json", "text"])
def test_names_that_are_not_utf8_end_no_run(program, server, output_format):
    subprocess.run(["git", "init", "-q"], cwd=program.workspace, check=True)
    (program.workspace / os.fsdecode(b"own\377.txt")).write_text("mine\n")
    (program.workspace / "change.sh").write_text(
        r"""echo changed > "$(printf 'own\377.txt')"; echo x > "$(printf 'own\376.txt')"; ls"""
    )
    shown = r"own\xff.txt"
    edit = {"path": shown, "edits": [{"old": "changed", "new": "again"}]}
    server.play(
        Reply(tool_calls=(Call("bash", {"command": "sh change.sh"}),)),
        Reply(
            tool_calls=(
                Call("ls", {"path": "."}),
                Call("grep", {"pattern": "changed"}),
                Call("find", {"pattern": "*.txt"}),
                Call("read", {"path": shown}),
                Call("edit", edit),
            )
        ),
        Reply(text="Done."),
    )
    process = program.start(
        "--permission-mode", "full", "--output-format", output_format, "-p", "go"
    )
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, "Internal error" in err) == (0, False), err
    assert "Done." in out
    recorded = [found for entry in program.session().entries if (found := file_changes_in(entry))]
    names = {os.fsencode(Path(c.path).name) for found in recorded for c in found.changes}
    assert names == {b"own\377.txt", b"own\376.txt"}
    assert (program.workspace / os.fsdecode(b"own\377.txt")).read_text() == "again\n"


def test_two_rounds_of_tools_change_files_and_a_rate_limit_is_waited_out(program, server):
    server.play(
        Reply(
            text="I will write it.",
            tool_calls=(Call("write", {"path": "greet.py", "content": "print('hi')\n"}),),
        ),
        rate_limited(retry_after="0"),
        Reply(
            tool_calls=(
                Call("edit", {"path": "greet.py", "edits": [{"old": "hi", "new": "hello"}]}),
                Call("bash", {"command": f"{sys.executable} greet.py"}),
            ),
        ),
        Reply(text="It prints hello."),
    )
    code, result, err = program.run("--permission-mode", "full", "-p", "write greet.py")
    assert (code, result["result"]) == (0, "It prints hello."), err
    assert (program.workspace / "greet.py").read_text() == "print('hello')\n"
    assert len(server.chats) == 4
    for chat in server.chats:
        assert openai_problems(chat.body["messages"]) == []
    output = server.chats[-1].body["messages"][-1]
    assert output["role"] == "tool"
    assert "hello" in output["content"]
    assert {tool["function"]["name"] for tool in server.chats[0].body["tools"]} >= {"read", "bash"}
    assert server.chats[0].headers["authorization"] == "Bearer sk-canary-0123456789"
    assert result["tokens"] == {"input": 33, "output": 21}
    assert result["context"]["is_estimate"] is False


def test_a_server_started_in_one_call_answers_the_next_and_ends_with_the_run(program, server):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    (program.workspace / "index.html").write_text("hello from the job")
    begin = f"exec {sys.executable} -m http.server {port} --bind 127.0.0.1"
    ask = (
        "import urllib.request as r; "
        f"print(r.urlopen('http://127.0.0.1:{port}/', timeout=5).read().decode())"
    )
    look = f'until {sys.executable} -c "{ask}" 2>/dev/null; do sleep 0.05; done'
    server.play(
        Reply(tool_calls=(Call("bash", {"command": begin, "background": True}),)),
        Reply(tool_calls=(Call("bash", {"command": look}),)),
        Reply(text="It answers."),
    )
    code, result, err = program.run("--permission-mode", "full", "-p", "serve")
    assert (code, result["result"]) == (0, "It answers."), err
    assert "hello from the job" in server.chats[-1].body["messages"][-1]["content"]
    assert result["stopped_jobs"] == [begin]
    assert alive(f"http.server {port}") == []


@pytest.mark.thorough
def test_a_run_ends_with_its_time_and_keeps_what_came(program, server):
    server.play(Reply(text="So far", ending="hang"))
    process = program.start("-p", "go", "--max-time", "15s", "--output-format", "json")
    assert server.wait_for_requests(1)
    out, err = process.communicate(timeout=PATIENCE_S)
    result = json.loads(out)
    assert (process.returncode, result["exit_code"], result["outcome"]) == (124, 124, "timeout")
    assert "--max-time" in result["error"], err
    assert server.wait_for_disconnects()
    assert last_reply(program.session()).stop_reason == "aborted"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("options", "number", "code", "last"),
    [
        (("--max-time", "1s"), None, 124, "agent-tui: Stopped: --max-time 1s reached."),
        ((), signal.SIGINT, 130, "agent-tui: Stopped before this was answered: why?"),
        ((), signal.SIGTERM, 130, "agent-tui: Stopped before this was answered: why?"),
    ],
)
def test_a_stopped_command_that_is_no_turn_says_why(tmp_path, server, options, number, code, last):
    server.play(NoHeaders())
    process = Program(tmp_path, server.base_url).start("-p", "/btw why?", *options)
    if number is not None:
        assert server.wait_for_chats()
        process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err.splitlines()[-1:]) == (code, [last]), err


@pytest.mark.thorough
def test_the_settings_say_how_long_a_silent_server_is_waited_for(program, server):
    program.environ["AGENT_TUI_LOOPBACK_IDLE_TIMEOUT_S"] = "1"
    server.play(NoHeaders(), Reply(text="The second time."))
    code, result, err = program.run("-p", "go")
    assert (code, result["result"]) == (0, "The second time."), err
    assert len(server.chats) == 2


@pytest.mark.thorough
def test_a_cut_stream_keeps_what_came_and_is_gone_on_from(program, server):
    server.play(Reply(text="this much came", ending="close"), Reply(text=(", and the rest.",)))
    code, result, err = program.run("-p", "hi")
    assert (code, result["result"]) == (0, "this much came, and the rest."), err
    assert "this much came" in json.dumps(server.chats[1].body["messages"])
    assert last_reply(program.session()).text == ", and the rest."


@pytest.mark.thorough
@pytest.mark.parametrize(
    "ending",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_an_interrupt_closes_the_request_and_keeps_the_partial_reply(program, server, ending):
    server.play(Reply(text="this much came", ending="hang"))
    process = program.start("-p", "hi", "--output-format", "stream-json")
    assert process.stdout is not None
    for line in process.stdout:
        if "came" in line:
            process.send_signal(ending)
            break
    rest, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert json.loads(rest.splitlines()[-1])["outcome"] == "aborted"
    assert server.wait_for_disconnects(1)
    kept = last_reply(program.session())
    assert (kept.text, kept.stop_reason) == ("this much came", "aborted")


@pytest.mark.thorough
def test_an_interrupt_keeps_what_a_command_printed_for_the_next_request(program, server):
    command = "echo first; echo last; sleep 100"
    server.play(
        Reply(tool_calls=(Call("bash", {"command": command}),)), Reply(text="It printed two lines.")
    )
    options = ("--permission-mode", "full")
    process = program.start("-p", "hi", *options, "--output-format", "stream-json")
    assert process.stdout is not None
    for line in process.stdout:
        if "ToolOutputDelta" in line and "last" in line:
            process.send_signal(signal.SIGINT)
            break
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert program.run("-c", "-p", "what did it print?")[0] == 0
    assert "first\\nlast\\n[interrupted after" in json.dumps(server.chats[1].body["messages"])


def test_a_run_that_is_killed_as_it_waits_for_a_limit_is_continued_by_a_scheduler(program, server):
    server.play(rate_limited(retry_after="3600"), Reply(text="Done."))
    process = program.start("-p", "hi", "--output-format", "stream-json")
    assert process.stdout is not None
    for line in process.stdout:
        if "LimitWaitStarted" in line:
            process.kill()
            break
    process.communicate(timeout=PATIENCE_S)
    (file,) = (program.folder / "data" / "sessions").rglob("*.jsonl")
    passed, count = re.subn(r'"untilS":[\d.]+', f'"untilS":{time.time()}', file.read_text())
    assert count == 1
    file.write_text(passed)
    code, result, err = program.run("-p", "-c")
    assert (code, result["result"]) == (0, "Done."), err
    assert [chat.body["messages"][-1]["content"] for chat in server.chats] == ["hi", "hi"]
    code, _, err = program.run("-p", "-c")
    assert code == 0
    assert "Nothing to continue" in err
    assert len(server.chats) == 2


@pytest.mark.thorough
def test_continue_sends_the_whole_conversation_again(program, server):
    server.play(Reply(text="Blue."), Reply(text="You asked about the sky."))
    assert program.run("-p", "what colour is the sky?")[0] == 0
    code, result, _ = program.run("-c", "-p", "what did I ask?")
    assert (code, result["result"]) == (0, "You asked about the sky.")
    texts = [message["content"] for message in server.chats[1].body["messages"][1:]]
    assert texts == ["what colour is the sky?", "Blue.", "what did I ask?"]
