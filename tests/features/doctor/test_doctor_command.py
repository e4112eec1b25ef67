import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_tui.cli import main
from agent_tui.features.doctor.check import run_probes
from agent_tui.features.doctor.command import all_probes, run_command
from tests.features.doctor.conftest import CANARY
from tests.support.patience import PATIENCE_S
from tests.support.pty_program import PtyProgram

PROGRAM = [sys.executable, "-m", "agent_tui", "doctor"]
SECTIONS = [
    "versions",
    "settings",
    "keys",
    "model",
    "servers",
    "tools",
    "folders",
    "working folder",
    "network",
]


@pytest.fixture
def broken(home: Path, config: Path, programs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly all that can be wrong at once, with keys in places they do not belong."""
    config.write_text(
        f'modell = "x"\nmodel = "nothing like it"\nsession_dir = "~nobody-of-this-name"\n'
        f'base_url = "http://me:{CANARY}@127.0.0.1:1/v1"\napi_key_env = "{CANARY}"\n'
        f'[permissions]\ndeny = ["bash({CANARY}"]\n[compaction]\nmodel = "{CANARY}"\n'
        f'[local]\nmodel = "{CANARY}"\n'
    )
    (home / "data").write_text("in the way")
    (home / "cache").mkdir()
    (home / "cache").chmod(0o777)
    for name, value in {
        "OPENAI_API_KEY": f"'{CANARY}'",
        "ANTHROPIC_API_KEY": CANARY,
        "TERM": "dumb",
        "LC_ALL": "C",
        "SSL_CERT_FILE": f"/nowhere/{CANARY}",
        "HTTPS_PROXY": f"http://me:{CANARY}@proxy",
        "AGENT_TUI_NONSENSE": CANARY,
    }.items():
        monkeypatch.setenv(name, value)
    (home / "work").rmdir()


@pytest.fixture
def ill(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thing that is bad, whatever servers run on the machine of the test."""
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/at/all.pem")


def test_every_section_is_there_once_and_in_order(ill, capsys):
    assert run_command([]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line in SECTIONS] == SECTIONS


def test_with_a_key_there_is_nothing_bad(capsys, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)
    assert run_command(["--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is True
    assert not [check for check in report["checks"] if check["state"] == "bad"]


def test_no_check_raises_on_a_machine_where_all_is_well(environment):
    assert not [
        c for c in run_probes(all_probes(environment()), PATIENCE_S) if "check failed" in c.found
    ]


def test_whatever_is_wrong_no_check_raises_and_each_says_what_to_do(broken, environment):
    checks = run_probes(all_probes(environment()), PATIENCE_S)
    assert not [check for check in checks if "check failed" in check.found]
    wrong = [check for check in checks if check.state in ("warning", "bad")]
    assert len(wrong) > 15
    assert all(len(check.advice) > 10 for check in wrong)


@pytest.mark.parametrize("argv", [[], ["--json"]])
def test_no_key_is_shown_wherever_it_was_put(broken, capsys, argv):
    assert run_command(argv) == 1
    shown = capsys.readouterr()
    assert "canary" not in shown.out + shown.err
    assert "0123456789abcdef" not in shown.out + shown.err


def test_nothing_is_made_by_looking(home, capsys):
    run_command([])
    assert [path.name for path in home.iterdir()] == ["work"]


@pytest.mark.thorough
@pytest.mark.parametrize("script", ['rmdir "$PWD"; exec "$@"', 'unset HOME; exec "$@"'])
def test_a_missing_folder_or_home_is_no_traceback(ill, home, script):
    gone = home / "gone"
    gone.mkdir()
    done = subprocess.run(["sh", "-c", script, "sh", *PROGRAM], capture_output=True, cwd=gone)
    assert done.stderr == b""
    assert done.returncode == 1


def test_a_home_that_does_not_exist_is_no_traceback(ill, home):
    kept = {n: v for n, v in os.environ.items() if not n.startswith("AGENT_TUI")}
    environ = {**kept, "HOME": str(home / "nowhere")}
    done = subprocess.run(PROGRAM, capture_output=True, env=environ)
    assert (done.returncode, done.stderr) == (1, b"")
    assert "~/.config/agent-tui, created when needed" in done.stdout.decode()


@pytest.mark.thorough
@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_closed_streams_do_no_harm(ill, closed):
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", *PROGRAM]
    done = subprocess.run(command, capture_output=True)
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_wrong_argument_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as left:
        main.run(["doctor", "--jason"])
    assert left.value.code == 2
    assert "--jason" in capsys.readouterr().err


@pytest.mark.thorough
@pytest.mark.parametrize(("columns", "width"), [(0, 80), (80, 80), (60, 60), (300, 100)])
def test_in_a_terminal_it_is_coloured_and_fits(ill, columns, width):
    with PtyProgram(PROGRAM, columns=columns, rows=24) as program:
        assert program.wait_until_end() == 1
        assert "\x1b[32m✓\x1b[0m" in program.output
        # A word stays whole, so that a path can be copied: only that makes a line longer.
        long = [line for line in program.text.splitlines() if len(line) > width]
        assert not [line for line in long if len(line.split()) > 1]


def test_no_color_is_obeyed_in_a_terminal(monkeypatch):
    with PtyProgram(PROGRAM, environ={**os.environ, "NO_COLOR": "1"}) as program:
        program.wait_until_end()
        assert "\x1b" not in program.output


def test_neither_textual_nor_litellm_is_loaded_for_it():
    code = (
        "import sys; from agent_tui.features.doctor.command import run_command; run_command([]);"
        "print('LOADED', *{'textual', 'rich', 'litellm', 'xllamacpp'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "LOADED"
