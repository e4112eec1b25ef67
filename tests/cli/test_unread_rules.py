"""No front starts without deny rules that cannot be read, unless the user says so."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.cli.arguments import parse_arguments
from agent_tui.cli.compose import Program, compose
from agent_tui.cli.folders import project_store
from agent_tui.errors import UsageError
from agent_tui.events import Notice
from agent_tui.messages import UserMessage
from agent_tui.sessions.entries import Header, MessageEntry
from agent_tui.tools.base import Intent
from tests.support.openai_server import Call, OpenAiServer, Reply
from tests.support.patience import PATIENCE_S
from tests.support.pty_program import PtyProgram

_GOOD = '[permissions]\ndeny = ["bash(touch *)"]\n'
_BROKEN = '[permissions\ndeny = ["bash(touch *)"]\n'
_MISTAKE = 'theme = "x"\n\n[permissions]\ndeny = ["bash(ls)", "touch *"]\n'


class Place:
    """A project, our folders, and a model that wants to run ``touch marker``."""

    def __init__(self, root: Path, server: OpenAiServer) -> None:
        self.project = root / "project"
        self.config = root / "home" / "config" / "config.toml"
        self.server = server
        self.project.mkdir()
        self.config.parent.mkdir(parents=True)
        (root / "bin").mkdir()
        self.editor = root / "bin" / "correct"
        self.editor.write_text(
            f"#!/bin/sh\nprintf '{_GOOD.replace(chr(10), chr(92) + 'n')}' > $1\n"
        )
        self.editor.chmod(0o755)
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(root / "home"),
            "AGENT_TUI_CONFIG_DIR": str(self.config.parent),
            "AGENT_TUI_DATA_DIR": str(root / "home" / "data"),
            "AGENT_TUI_CACHE_DIR": str(root / "home" / "cache"),
            "AGENT_TUI_SANDBOX": "off",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "EDITOR": str(self.editor),
            "TEST_KEY": "sk-canary-0123456789",
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }

    @property
    def argv(self) -> tuple[str, ...]:
        own = ("-m", "test-model", "--base-url", self.server.base_url, "--api-key-env", "TEST_KEY")
        return (sys.executable, "-m", "agent_tui", *own)

    def wants_to_run(self) -> None:
        call = Call("bash", {"command": "touch marker"})
        self.server.play(Reply(text="", tool_calls=(call,)), Reply(text="Done."))

    def run(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.argv, "--permission-mode", "full", *words],
            cwd=cwd or self.project,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def stored_rules(self) -> Path:
        """The file with the rules that always apply in the project; its folder exists."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.environ.items():
                patch.setenv(name, value)
            file = project_store(self.project) / "permissions.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        return file

    def nothing_ran(self) -> bool:
        return not (self.server.requests or (self.project / "marker").exists())


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with OpenAiServer() as server:
        yield Place(tmp_path.resolve(), server)


def test_a_deny_rule_that_is_read_holds_in_a_script(place: Place):
    place.config.write_text(_GOOD)
    place.wants_to_run()
    done = place.run("-p", "x")
    assert done.returncode == 0
    assert len(place.server.chats) == 2
    assert not (place.project / "marker").exists()


@pytest.mark.parametrize(
    ("break_file", "named"),
    [
        (lambda file: file.write_text(_BROKEN), ":1: not valid TOML"),
        (lambda file: file.write_text(_MISTAKE), ":4: permissions.deny: 'touch *' is not a rule"),
        (lambda file: file.write_bytes(b"x = '\xff'"), ": not valid TOML: 'utf-8' codec"),
        (lambda file: file.mkdir(), ": cannot be read: Is a directory"),
        (lambda file: file.symlink_to("none"), ": the link leads to no file"),
    ],
    ids=["broken", "mistake", "bytes", "folder", "link"],
)
def test_a_script_ends_with_2_and_says_what_to_fix(place: Place, break_file, named: str):
    break_file(place.config)
    place.wants_to_run()
    for more in ((), ("--output-format", "stream-json"), ("--permission-mode", "plan")):
        done = place.run("-p", "x", *more)
        assert (done.returncode, done.stdout) == (2, ""), more
        assert f"{place.config}{named}" in done.stderr
        assert "Fix the file: agent-tui config edit." in done.stderr
    assert place.nothing_ran()


def test_a_mistake_in_a_variable_and_in_the_rules_of_the_project_ends_a_script(place: Place):
    place.environ["AGENT_TUI_PERMISSIONS__DENY"] = "touch *"
    done = place.run("-p", "x")
    assert done.returncode == 2
    assert "AGENT_TUI_PERMISSIONS__DENY: 'touch *' is not a rule" in done.stderr
    assert "unset the variable" in done.stderr
    del place.environ["AGENT_TUI_PERMISSIONS__DENY"]
    place.wants_to_run()
    assert place.run("-p", "x", "--permission-mode", "plan").returncode == 0
    stored = place.stored_rules()
    stored.write_text("deny = ['touch *']\n")
    place.server.requests.clear()
    done = place.run("-p", "x")
    assert done.returncode == 2
    assert f"{stored}: deny: 'touch *' is not a rule" in done.stderr
    assert place.nothing_ran()


def test_a_trusted_projects_deny_rules_count_and_no_others(place: Place):
    settings = place.project / ".agent-tui" / "config.toml"
    settings.parent.mkdir()
    settings.write_text(_MISTAKE)
    place.wants_to_run()
    assert place.run("-p", "x", "--permission-mode", "plan").returncode == 0
    place.server.requests.clear()
    for text, named in ((_MISTAKE, ":4: permissions.deny"), (_BROKEN, ":1: not valid TOML")):
        settings.write_text(text)
        done = place.run("-p", "x", "--trust")
        assert done.returncode == 2
        assert f"{settings}{named}" in done.stderr
        assert "Fix the file." in done.stderr
    assert place.nothing_ran()


def test_a_session_of_a_folder_whose_rules_cannot_be_read_is_not_continued(place: Place):
    place.server.play(Reply(text="Hello."))
    answered = place.run("-p", "x", "--output-format", "json")
    session = json.loads(answered.stdout)["session_id"]
    stored = place.stored_rules()
    stored.write_text("deny = 3\n")
    place.server.requests.clear()
    other = place.project.parent / "other"
    other.mkdir()
    place.wants_to_run()
    done = place.run("-p", "go on", "-r", session, cwd=other)
    assert done.returncode == 2
    assert f"{stored}: deny" in done.stderr
    assert place.nothing_ran()


def test_other_mistakes_stay_notices(place: Place):
    place.config.write_text(f"colour = 1\ntheme = 3\n{_GOOD}allow = ['rm *']\n")
    place.wants_to_run()
    done = place.run("-p", "x")
    assert done.returncode == 0
    assert "Setting ignored" in done.stderr
    assert "Permission rule ignored: settings: allow: 'rm *'" in done.stderr
    assert not (place.project / "marker").exists()


@pytest.mark.parametrize("front", [("--plain",), ()], ids=["plain", "screen"])
def test_the_user_may_leave(place: Place, front: tuple[str, ...]):
    place.config.write_text(_MISTAKE)
    argv = (*place.argv, *front, "--permission-mode", "full")
    with PtyProgram(argv, environ=place.environ, cwd=place.project) as program:
        program.wait_for("Some of your deny rules cannot be read")
        program.wait_for("leave")
        program.send("\r" if front else "\x1b")
        assert program.process.wait(timeout=PATIENCE_S) == 2
    assert place.nothing_ran()


def test_line_by_line_the_user_may_correct_the_file_or_continue_in_mode_ask(place: Place):
    place.config.write_text(_MISTAKE)
    argv = (*place.argv, "--plain", "--permission-mode", "full")
    with PtyProgram(argv, environ=place.environ, cwd=place.project) as program:
        program.wait_for("Enter alone: leave: ")
        program.send("c\r")
        program.wait_for("Mode ask for this session")
        place.wants_to_run()
        program.wait_for("] >")
        program.send("x\r")
        program.wait_for("touch marker")
        program.wait_for("?")
    assert not (place.project / "marker").exists()
    with PtyProgram(argv, environ=place.environ, cwd=place.project) as program:
        program.wait_for("Enter alone: leave: ")
        program.send("1\r")
        program.wait_for("] >")
        assert "Mode ask for this session" not in program.text
    assert place.config.read_text() == _GOOD


@pytest.fixture
def composed(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The place, for programs that run in this process."""
    for name, value in place.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(place.project)
    return place


def _compose(*argv: str, may_lack_rules: bool = False) -> Program:
    arguments = parse_arguments(("-m", "scripted/tour", "--permission-mode", "full", *argv))
    return compose(arguments, is_interactive=True, may_lack_rules=may_lack_rules)


def _decision(runtime: AgentRuntime, command: str) -> str:
    intent = Intent(title=command, access="execute", command=command)
    return runtime.conversation.permissions.judge("bash", intent).decision


async def _end(program: Program) -> None:
    await program.runtime.aclose()
    await program.aclose()


async def test_a_program_that_may_lack_rules_runs_in_mode_ask_and_says_so(composed: Place):
    composed.config.write_text(_MISTAKE)
    with pytest.raises(UsageError, match="Deny rules cannot be read, so nothing runs"):
        _compose()
    program = _compose(may_lack_rules=True)
    assert program.runtime.conversation.permissions.mode == "ask"
    assert _decision(program.runtime, "ls") == "deny"
    assert _decision(program.runtime, "touch marker") == "ask"
    assert any(notice.startswith("Mode ask for this session") for notice in program.start_notices)
    await _end(program)


async def test_rules_that_break_in_a_session_stay_in_force_with_a_notice(composed: Place):
    composed.config.write_text(_GOOD)
    program = _compose()
    runtime = program.runtime
    assert _decision(runtime, "touch marker") == "deny"
    composed.config.write_text(_BROKEN)
    events = await runtime.sessions.apply_trust()
    (notice,) = (event for event in events if isinstance(event, Notice))
    assert notice.text.startswith(f"{composed.config}:1: not valid TOML")
    assert notice.text.endswith("The rules that were read before stay in force.")
    assert _decision(runtime, "touch marker") == "deny"
    assert runtime.conversation.permissions.mode == "full"
    composed.config.write_text(_GOOD)
    assert not any(isinstance(event, Notice) for event in await runtime.sessions.apply_trust())
    await _end(program)


async def test_a_project_that_is_trusted_later_and_has_a_broken_rule_means_mode_ask(
    composed: Place,
):
    settings = composed.project / ".agent-tui" / "config.toml"
    settings.parent.mkdir()
    settings.write_text(_MISTAKE)
    program = _compose()
    runtime = program.runtime
    assert runtime.conversation.permissions.mode == "full"
    runtime.services.trust.trust_for_this_run(composed.project)
    events = await runtime.sessions.apply_trust()
    (notice,) = (event for event in events if isinstance(event, Notice))
    assert notice.text.startswith("Deny rules cannot be read, so the mode is ask.")
    assert str(settings) in notice.text
    assert runtime.conversation.permissions.mode == "ask"
    await _end(program)


async def test_a_session_of_a_folder_whose_rules_cannot_be_read_opens_in_mode_ask(composed: Place):
    other = composed.project.parent / "other"
    other.mkdir()
    stored = project_store(other) / "permissions.toml"
    stored.parent.mkdir(parents=True)
    stored.write_text("deny = 3\n")
    program = _compose()
    runtime = program.runtime
    log = runtime.services.store.create(Header(id="00000001-0000", cwd=str(other)))
    log.append(MessageEntry(message=UserMessage(content="x")))
    log.close()
    events = await runtime.sessions.open(str(log.path))
    assert runtime.conversation.cwd == other
    texts = [event.text for event in events if isinstance(event, Notice)]
    assert any(text.startswith("Deny rules cannot be read") for text in texts), texts
    assert runtime.conversation.permissions.mode == "ask"
    await _end(program)
