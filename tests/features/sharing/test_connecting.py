"""git connects as the user's git does, and nothing asks for a password."""

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agent_tui.errors import SessionError
from agent_tui.features.sharing.git_project import read_git_project
from agent_tui.features.sharing.relay import Relay
from agent_tui.tools.processes.environment import remote_git_environ
from agent_tui.tools.processes.keeper import ProcessKeeper
from tests.support.shared_clones import make_clones


def test_what_could_open_a_dialog_is_left_out() -> None:
    asking = ("GIT_ASKPASS", "SSH_ASKPASS", "DISPLAY", "WAYLAND_DISPLAY")
    given = {**dict.fromkeys(asking, "x"), "SSH_AUTH_SOCK": "/run/agent", "PATH": "/usr/bin"}
    environ = remote_git_environ(given, Path("/relay"), (("core.sshcommand", "ssh -i key"),))
    assert not environ.keys() & set(asking)
    assert environ["SSH_AUTH_SOCK"] == "/run/agent"
    assert environ["SSH_ASKPASS_REQUIRE"] == "never"
    assert environ["GIT_TERMINAL_PROMPT"] == "0"
    named = {environ[f"GIT_CONFIG_KEY_{number}"] for number in range(2)}
    assert named == {"core.sshcommand", "credential.interactive"}


class NeedsLogin(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    http = ThreadingHTTPServer(("127.0.0.1", 0), NeedsLogin)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}/x.git"
    http.shutdown()
    http.server_close()


def test_a_remote_that_wants_a_password_is_an_error_with_what_to_do(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, ada, _ = make_clones(tmp_path)
    ada.git("remote", "set-url", "origin", server)
    asked, program = tmp_path / "asked", tmp_path / "ask"
    program.write_text(f"#!/bin/sh\ntouch {asked}\necho secret\n")
    program.chmod(0o755)
    ada.git("config", "core.askPass", str(program))
    environ = {**ada.environ, "GIT_ASKPASS": str(program), "SSH_ASKPASS": str(program)}

    async def fetch() -> None:
        keeper = ProcessKeeper()
        try:
            project = await read_git_project(keeper, ada.root, environ, None)
            relay = Relay(keeper, tmp_path / "relay.git", project, project.fetch_address, environ)
            await relay.prepare()
            await relay.fetch(None)
        finally:
            keeper.close()

    with pytest.raises(SessionError, match="could not read Username") as refused:
        asyncio.run(fetch())
    assert "git fetch origin" in refused.value.hint
    assert not asked.exists()
