import gc
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_tui import __version__
from agent_tui.cli import main
from agent_tui.cli.arguments import Arguments, parse_arguments
from agent_tui.cli.compose import session_to_open
from agent_tui.cli.main import run
from agent_tui.sessions.store import SessionStore

PROBE = """
import json, sys
from agent_tui.cli import main
from agent_tui.cli.main import run
try:
    run({argv!r})
except SystemExit:
    pass
print("MODULES " + json.dumps(sorted(sys.modules)))
"""


def modules_after(*argv: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(argv=list(argv))],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout.rpartition("MODULES ")[2]))


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_version_and_help_need_neither_textual_nor_litellm(argument):
    loaded = modules_after(argument)
    assert "agent_tui.cli.main" in loaded
    assert not {"textual", "rich", "litellm", "pydantic", "tiktoken"} & loaded


def test_no_core_room_loads_textual_or_litellm():
    rooms = (
        "agent.runtime",
        "compaction.planner",
        "tools.registry",
        "sessions.store",
        "providers.host",
        "features.print.printer",
        "cli.compose",
    )
    imports = ", ".join(f"agent_tui.{room}" for room in rooms)
    code = f"import sys, {imports}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"textual", "rich", "litellm", "tiktoken"} & set(done.stdout.split())


def test_the_screen_is_loaded_without_the_collector_which_is_there_otherwise(monkeypatch):
    at_work: list[bool] = []

    def front(_arguments: Arguments) -> int:
        at_work.append(gc.isenabled())
        return 0

    monkeypatch.setattr("agent_tui.cli.screen_command.run_screen", front)
    monkeypatch.setattr("agent_tui.features.print.command.run_print", front)
    monkeypatch.setattr("agent_tui.features.plain.command.run_front", front)
    for argv in ([], ["-p", "hello"], ["--plain"]):
        assert run(argv) == 0
        assert gc.isenabled()
    assert at_work == [False, True, True]


def run_program(*argv, cwd, environ, text=""):
    return subprocess.run(
        [sys.executable, "-m", "agent_tui", *argv],
        capture_output=True,
        text=True,
        input=text,
        cwd=cwd,
        env=environ,
    )


@pytest.fixture
def environ(tmp_path, monkeypatch):
    """The variables of a program without keys, whose folders are below `tmp_path`; also ours."""
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"AGENT_TUI_{name}_DIR", str(tmp_path / name.lower()))
    return dict(os.environ)


@pytest.fixture
def refusal_of(tmp_path, environ, monkeypatch, capsys):
    """What is printed when a command line is refused as wrongly used."""
    monkeypatch.chdir(tmp_path)

    def run_it(*argv):
        assert run(argv) == 2
        printed = capsys.readouterr()
        assert not printed.out
        return printed.err

    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        yield run_it


def test_version_is_printed(tmp_path, environ):
    done = run_program("--version", cwd=tmp_path, environ=environ)
    assert done.stdout.strip() == f"agent-tui {__version__}"


def test_a_program_that_is_refused_ends_with_a_code_and_one_line(tmp_path, environ):
    done = run_program("-p", cwd=tmp_path, environ=environ)
    assert (done.returncode, done.stdout) == (2, "")
    assert "prompt" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["-p"], "prompt"),
        (["-p", "hello"], "ANTHROPIC_API_KEY"),
        (["--cwd", "nowhere", "-p", "x"], "nowhere"),
        (["-c", "-p", "x"], "No session to continue"),
        (["--allow", "bahs(ls)", "-p", "x"], "'bahs(ls)' never applies: there is no tool bahs."),
        (["--deny", "bash(", "-p", "x"], "is not a rule"),
        (
            ["-m", "openai/nobody-knows", "--max-cost", "1", "-p", "x"],
            "price of openai/nobody-knows is unknown",
        ),
    ],
)
def test_what_cannot_be_run_is_refused_with_the_reason(refusal_of, argv, told):
    assert told in refusal_of(*argv)


@pytest.mark.thorough
def test_wrong_settings_are_named_and_the_program_goes_on(tmp_path, environ):
    config = tmp_path / "config"
    config.mkdir()
    (config / "config.toml").write_text('modell = "x"\n[compaction]\ntrigger_at = 7\n')
    done = run_program("--demo", "-p", "hello", cwd=tmp_path, environ=environ)
    assert done.returncode == 0
    assert "config.toml:1: modell" in done.stderr
    assert "did you mean model?" in done.stderr
    assert "config.toml:3: compaction.trigger_at" in done.stderr


def test_the_tour_prints_json_and_continues(tmp_path, environ):
    argv = ["--demo", "--permission-mode", "full", "-p", "hello", "--output-format", "json"]
    first = run_program(*argv, cwd=tmp_path, environ=environ)
    result = json.loads(first.stdout)
    assert (first.returncode, result["outcome"]) == (0, "done")
    assert "/compact" in result["result"]
    assert result["context"]["used"] > 0
    second = run_program(
        "-c", "-p", "more", "--output-format", "json", cwd=tmp_path, environ=environ
    )
    assert json.loads(second.stdout)["session_id"] == result["session_id"]
    listed = run_program("sessions", "list", "--json", cwd=tmp_path, environ=environ)
    assert result["session_id"] in listed.stdout


@pytest.mark.thorough
def test_a_person_without_own_sessions_is_offered_those_of_scripts_and_the_tour(tmp_path, environ):
    run_program("--demo", "-p", "hello", cwd=tmp_path, environ=environ)
    store = SessionStore(tmp_path / "data" / "sessions")
    (made,) = store.list(tmp_path)
    assert made.origin == "tour"
    assert session_to_open(parse_arguments(["-c"]), store, tmp_path) == ""
    assert session_to_open(parse_arguments(["-c", "-p", "x"]), store, tmp_path) == str(made.path)


@pytest.mark.parametrize(
    ("argv", "origin"), [([], ""), (["--plain"], ""), (["-p", "x"], "print"), (["--demo"], "tour")]
)
def test_the_command_line_says_what_makes_the_sessions(argv, origin):
    assert parse_arguments(argv).origin == origin


@pytest.mark.thorough
def test_stream_json_tells_every_event_and_the_result_last(tmp_path, environ):
    done = run_program(
        "--demo",
        "-p",
        "--output-format",
        "stream-json",
        cwd=tmp_path,
        environ=environ,
        text="hello from a pipe",
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [event["type"] for event in events]
    assert kinds[0] == "UserMessageAdded"
    assert events[0]["text"] == "hello from a pipe"
    assert kinds[-2:] == ["TurnFinished", "result"]


@pytest.mark.parametrize(("answer", "is_meant"), [("\n", True), ("n\n", False), ("", False)])
def test_a_mistyped_subcommand_is_asked_about(monkeypatch, capsys, answer, is_meant):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(answer))
    meant = main._meant_subcommand(["doctr"])
    assert (meant is not None and meant.name == "doctor") is is_meant
    assert "Did you mean agent-tui doctor? If not, doctr is sent to the model." in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("argv", [["explain"], ["doctr", "now"], ["do it"], []])
def test_other_words_are_sent_unasked(monkeypatch, capsys, argv):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert main._meant_subcommand(argv) is None
    assert capsys.readouterr().err == ""
