"""``agent-tui login`` and ``logout`` as the person sees them."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.cli.main import run
from tests.support.account_server import AccountServer
from tests.support.pty_program import PtyProgram


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
    assert "copilot  not signed in" in capsys.readouterr().out
    assert run(["login", "copilot"]) == 0
    said = capsys.readouterr().out
    assert "https://github.com/login/device" in said
    assert "ABCD-1234" in said
    assert "good for 15 minutes" in said
    assert said.endswith("Signed in to GitHub Copilot. Its models are called github_copilot/...\n")
    assert "\x1b" not in said
    assert "gho_" not in said
    assert run(["login"]) == 0
    assert "copilot  signed in" in capsys.readouterr().out
    assert run(["logout", "copilot"]) == 0
    assert run(["logout", "copilot"]) == 0
    assert capsys.readouterr().out == (
        "Signed out of GitHub Copilot.\nNobody was signed in to GitHub Copilot.\n"
    )


def test_what_went_wrong_is_one_line(github: AccountServer, capsys: pytest.CaptureFixture[str]):
    github.answers["/ACCESS_TOKEN"] = [{"error": "expired_token"}]
    assert run(["login", "copilot"]) == 1
    told = capsys.readouterr().err
    assert told == "agent-tui: The code ran out before it was entered. Try again.\n"


@pytest.mark.thorough
def test_ctrl_c_ends_the_wait_and_keeps_nothing(github: AccountServer, tmp_path: Path):
    asked = threading.Event()
    github.on_request = lambda path: asked.set() if path == "/ACCESS_TOKEN" else None
    with PtyProgram([sys.executable, "-m", "agent_tui", "login", "copilot"]) as program:
        assert asked.wait(30)
        assert "ABCD-1234" in program.text
        os.killpg(program.process.pid, signal.SIGINT)
        assert program.process.wait(30) == 130
        program.wait_for("Ended: nobody was signed in.")
        assert "Traceback" not in program.text
    assert not (tmp_path / "copilot" / "access-token").exists()
