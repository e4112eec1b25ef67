"""The provider's key is in no file after a whole run in which everything repeats it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.providers.kept_keys import KeptKeys
from tests.support.openai_server import Call, Failure, OpenAiServer, Reply
from tests.support.patience import PATIENCE_S

KEY = "canary-0123456789-key"


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with OpenAiServer() as running:
        yield running


class Run:
    """Starts the program in folders of its own, with the key in its environment."""

    def __init__(self, folder: Path, base_url: str) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        own = {f"AGENT_TUI_{n}_DIR": str(folder / n.lower()) for n in ("CONFIG", "DATA", "CACHE")}
        debug = {"LITELLM_LOG": "DEBUG", "PYTHONASYNCIODEBUG": "1", "OPENAI_LOG": "debug"}
        self.environ = {**os.environ, **own, **debug, "OPENAI_API_KEY": KEY}
        self.model = ("-m", "test-model", "--base-url", base_url)
        self.model += ("--api-key-env", "OPENAI_API_KEY")

    def __call__(self, *argv: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "agent_tui", *argv],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=self.environ,
            cwd=self.workspace,
            timeout=PATIENCE_S,
            check=False,
        )

    def written(self) -> list[Path]:
        """Every file and folder of the program's own."""
        own = (self.folder / name for name in ("config", "data", "cache"))
        return [path for folder in own if folder.exists() for path in (folder, *folder.rglob("*"))]


@pytest.mark.thorough
@pytest.mark.parametrize("is_kept", [False, True])
def test_a_key_that_everyone_repeats_is_in_no_file_and_files_are_private(
    tmp_path: Path, server: OpenAiServer, *, is_kept: bool
):
    run = Run(tmp_path, server.base_url)
    own_file = tmp_path / "data" / "keys" / "openai.json"
    if is_kept:
        del run.environ["OPENAI_API_KEY"]
        KeptKeys(own_file.parent).keep("openai", KEY, in_keyring=False)
    (run.workspace / "notes").write_text(f"{KEY}\n" * 9_000)
    server.play(
        Reply(
            text=f"Your key is {KEY}.",
            tool_calls=(Call("read", {"path": "notes"}), Call("bash", {"command": "cat notes"})),
        ),
        Reply(text=f"Again: {KEY}", tool_calls=(Call("bash", {"command": f"echo {KEY}; env"}),)),
        Failure(401, f'{{"error": {{"message": "Incorrect API key provided: {KEY}."}}}}'),
    )
    asked = run(*run.model, "--permission-mode", "full", "-p", "look at @notes")
    assert asked.returncode == 1
    assert KEY.encode() not in asked.stderr + asked.stdout
    assert b"Incorrect API key provided: [key removed]" in asked.stderr
    assert len(server.chats) == 3
    assert all(KEY not in str(chat.body) for chat in server.chats)

    (session,) = (tmp_path / "data" / "sessions").rglob("*.jsonl")
    for kind in ("md", "html", "jsonl"):
        exported = run("sessions", "export", "--format", kind, str(session))
        assert exported.returncode == 0, exported.stderr
        assert KEY.encode() not in exported.stdout

    assert all(chat.headers["authorization"] == f"Bearer {KEY}" for chat in server.chats)
    files = [path for path in run.written() if path.is_file() and path != own_file]
    assert any(path.name == "agent-tui.log" or "outputs" in path.parts for path in files)
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    for path in run.written():
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


def test_a_crash_of_the_program_tells_no_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from agent_tui.cli import main

    def break_down(_argv: object) -> int:
        raise RuntimeError(f"illegal header value b'Bearer {KEY}' \x1b[2J")

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(main, "_run_agent", break_down)
    assert main.run(["-p", "x"]) == 1
    told = capsys.readouterr().err
    assert "RuntimeError: illegal header value b'Bearer [key removed]'" in told
    assert KEY not in told
    assert "\x1b" not in told


@pytest.mark.parametrize("argv", [["--model", "\x1b[2J\x9b"], ["sessions", "show", "\x1b]0;x\x07"]])
def test_an_error_steers_no_terminal(
    argv: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    from agent_tui.cli import main

    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"AGENT_TUI_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.chdir(tmp_path)
    assert main.run([*argv, *(["-p", "x"] if "--model" in argv else [])]) in (1, 2)
    told = "".join(capsys.readouterr())
    assert told
    assert not {"\x1b", "\x9b", "\x07"} & set(told)
