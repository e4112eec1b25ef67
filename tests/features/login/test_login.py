"""``agent-tui login`` and ``logout`` as the person sees them."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backends import fail

from agent_tui.cli.main import run
from agent_tui.providers.keys import KEY_VARIABLES
from tests.support.account_server import AccountServer
from tests.support.patience import PATIENCE_S
from tests.support.pty_program import PtyProgram
from tests.support.rows import each_row

KEY = "sk-0123456789abcdef"


@pytest.fixture
def github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AccountServer]:
    """A server in place of GitHub, which says that nobody has entered the code yet."""
    with AccountServer() as server:
        monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("GITHUB_COPILOT_TOKEN_DIR", str(tmp_path / "copilot"))
        monkeypatch.setenv("CHATGPT_TOKEN_DIR", str(tmp_path / "chatgpt"))
        for name in ("DEVICE_CODE", "ACCESS_TOKEN", "API_KEY"):
            monkeypatch.setenv(f"GITHUB_COPILOT_{name}_URL", f"{server.url}/{name}")
        server.answers = {
            "/DEVICE_CODE": [
                {
                    "device_code": "device-1",
                    "user_code": "ABCD-1234",
                    "verification_uri": "https://github.com/login/device\x1b[2J",
                    "expires_in": 900,
                    "interval": 0,
                }
            ],
            "/ACCESS_TOKEN": [{"error": "authorization_pending"}],
            "/API_KEY": [{"token": "short-1"}],
        }
        yield server


def test_signing_in_and_out(github: AccountServer, capsys: pytest.CaptureFixture[str]):
    github.answers["/ACCESS_TOKEN"].append({"access_token": "gho_0123456789"})
    assert run(["login"]) == 0
    assert "copilot  signed in" not in capsys.readouterr().out
    assert run(["login", "copilot"]) == 0
    said = capsys.readouterr().out
    assert "https://github.com/login/device" in said
    assert "ABCD-1234" in said
    assert "valid for 15 min." in said
    assert said.endswith("Signed in to GitHub Copilot. Its models are named github_copilot/...\n")
    assert "\x1b" not in said
    assert "gho_" not in said
    assert run(["login"]) == 0
    said = capsys.readouterr().out
    assert "copilot  signed in; models are named github_copilot/...\n" in said
    assert run(["logout", "copilot"]) == 0
    assert run(["logout", "copilot"]) == 0
    assert capsys.readouterr().out == (
        "Signed out of GitHub Copilot.\nNot signed in to GitHub Copilot.\n"
    )


def test_what_went_wrong_is_one_line(github: AccountServer, capsys: pytest.CaptureFixture[str]):
    github.answers["/ACCESS_TOKEN"] = [{"error": "expired_token"}]
    assert run(["login", "copilot"]) == 1
    told = capsys.readouterr().err
    assert told == "agent-tui: The code expired before it was entered. Try again.\n"


@pytest.mark.thorough
def test_ctrl_c_ends_the_wait_and_keeps_nothing(github: AccountServer, tmp_path: Path):
    asked = threading.Event()
    github.on_request = lambda path: asked.set() if path == "/ACCESS_TOKEN" else None
    with PtyProgram([sys.executable, "-m", "agent_tui", "login", "copilot"]) as program:
        assert asked.wait(timeout=PATIENCE_S)
        program.wait_for("ABCD-1234")
        os.killpg(program.process.pid, signal.SIGINT)
        assert program.process.wait(timeout=PATIENCE_S) == 130
        program.wait_for("Cancelled. Nothing was stored.")
        assert "Traceback" not in program.text
    assert not (tmp_path / "copilot" / "access-token").exists()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the program's without any key around."""
    for variables in KEY_VARIABLES.values():
        for name in variables:
            monkeypatch.delenv(name, raising=False)
    for name in ("AGENT_TUI_HOME", "CHATGPT_TOKEN_DIR", "GITHUB_COPILOT_TOKEN_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return tmp_path / "AGENT_TUI_HOME"


def test_a_key_is_kept_shown_as_kept_and_forgotten(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    assert run(["login"]) == 0
    assert "No keys, and not signed in to any account.\n\nYou can use:" in (capsys.readouterr().out)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f" {KEY} \nmore\n"))
    assert run(["login", "openai"]) == 0
    file = home / "data" / "keys" / "openai.json"
    assert capsys.readouterr().out == f"Stored the openai key in {file}.\n"
    assert json.loads(file.read_text()) == {"key": KEY}
    assert run(["login"]) == 0
    assert capsys.readouterr().out.startswith(f"openai  a key in {file}\n\n")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    assert run(["login"]) == 0
    said = capsys.readouterr().out
    told = f"openai  a key in the variable OPENAI_API_KEY; the one in {file} is not used\n"
    assert said.startswith(told)
    assert run(["logout", "openai"]) == 0
    assert run(["logout", "openai"]) == 0
    assert capsys.readouterr().out == "Deleted the openai key.\nNo openai key is stored.\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [("", "No key given."), ("$OPENAI_API_KEY", "a placeholder"), ("two words", "white space")],
)
def test_what_is_no_key_is_not_kept(
    home: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    said: str,
):
    monkeypatch.setattr(sys, "stdin", io.StringIO(line))
    assert run(["login", "openai"]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert not line or line not in told
    assert not home.exists()


def test_without_a_keyring_nobody_is_asked_for_a_key(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    before = keyring.get_keyring()
    keyring.set_keyring(fail.Keyring())
    stdin = io.StringIO(KEY)
    monkeypatch.setattr(sys, "stdin", stdin)
    try:
        assert run(["login", "openai", "--keyring"]) == 1
    finally:
        keyring.set_keyring(before)
    assert "no usable keyring" in capsys.readouterr().err
    assert stdin.tell() == 0
    assert run(["login", "copilot", "--keyring"]) == 2


@pytest.mark.thorough
def test_a_key_is_typed_unseen_and_used(home: Path, tmp_path: Path):
    with PtyProgram([sys.executable, "-m", "agent_tui", "login", "groq"]) as program:
        program.wait_for("Key (as in GROQ_API_KEY, not shown):")
        program.send(f"{KEY}\r")
        program.wait_for("Stored the groq key in")
        assert program.wait_until_end() == 0
    listed = subprocess.run(
        [sys.executable, "-m", "agent_tui", "models", "list"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert "groq/" in listed.stdout
    checked = subprocess.run(
        [sys.executable, "-m", "agent_tui", "doctor"], capture_output=True, text=True, cwd=tmp_path
    )
    assert f"is stored in {home}" in " ".join(checked.stdout.split())
    assert KEY not in listed.stdout + checked.stdout


def test_signing_in_with_a_name_leaves_the_usual_sign_in(
    github: AccountServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    github.answers["/ACCESS_TOKEN"] = [{"access_token": "gho_default"}]
    assert run(["login", "copilot"]) == 0
    github.answers["/ACCESS_TOKEN"] = [{"access_token": "gho_work"}]
    assert run(["login", "copilot", "--as", "work"]) == 0
    assert "Signed in to GitHub Copilot as work." in capsys.readouterr().out
    assert (tmp_path / "copilot" / "access-token").read_text() == "gho_default"
    file = tmp_path / "home/data/accounts/copilot/work/access-token"
    assert file.read_text() == "gho_work"
    assert file.stat().st_mode & 0o777 == 0o600
    assert run(["login"]) == 0
    said = capsys.readouterr().out
    assert "copilot            signed in; models are named github_copilot/..." in said
    assert "copilot --as work  signed in\n" in said
    assert run(["logout", "copilot", "--as", "work"]) == 0
    assert run(["logout", "copilot", "--as", "work"]) == 0
    assert capsys.readouterr().out == (
        "Signed out of GitHub Copilot as work.\nNot signed in to GitHub Copilot as work.\n"
    )
    assert not file.exists()
    assert (tmp_path / "copilot" / "access-token").exists()


def test_a_key_with_a_name_is_kept_beside_the_usual_one(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    for name, key in ((), KEY), (("--as", "work"), "sk-work-0123456789"):
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{key}\n"))
        assert run(["login", "openai", *name]) == 0
    file = home / "data" / "keys" / "openai@work.json"
    assert capsys.readouterr().out.endswith(
        f"Stored the openai key of the account work in {file}.\n"
    )
    assert json.loads((home / "data" / "keys" / "openai.json").read_text()) == {"key": KEY}
    assert run(["login"]) == 0
    assert "openai --as work  a stored key\n" in capsys.readouterr().out
    assert run(["logout", "openai", "--as", "work"]) == 0
    assert capsys.readouterr().out == "Deleted the openai key as work.\n"
    assert not file.exists()


@each_row("name", ["", "Work", "../x", "a b", "-"])
def test_a_name_that_no_account_can_have_is_refused(name: str):
    assert run(["login", "openai", f"--as={name}"]) == 2
    assert run(["logout", "openai", f"--as={name}"]) == 2


@pytest.mark.thorough
def test_a_run_with_an_account_that_does_not_exist_sends_nothing(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert run(["-p", "hi", "-m", "openai/gpt-5", "--account", "wrok"]) == 1
    said = capsys.readouterr().err
    assert "No account is called 'wrok'. agent-tui login lists your accounts." in said
