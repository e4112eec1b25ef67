"""What real runs store in an empty home is all on the list."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.gguf_files import gguf_bytes
from tests.support.openai_server import Call, OpenAiServer, Reply
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.thorough


class Machine:
    """Starts the program with an empty home folder."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.work = folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("AGENT_TUI_", "XDG_"))}
        self.environ = {**kept, "HOME": str(self.home), "TEST_KEY": "sk-0123456789"}

    def run(self, *argv: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "agent_tui", *argv],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=self.environ,
            cwd=self.work,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def files(self) -> list[Path]:
        """The files in the home folder."""
        return [path for path in self.home.rglob("*") if path.is_symlink() or path.is_file()]


def test_all_that_runs_store_is_on_the_list_and_explained(tmp_path: Path):
    machine = Machine(tmp_path)
    model = tmp_path / "tiny.gguf"
    model.write_bytes(gguf_bytes())
    with OpenAiServer() as server:
        asked = ("-m", "test", "--base-url", server.base_url, "--api-key-env", "TEST_KEY")
        command = Call("bash", {"command": "seq 20000; echo made > made.txt"})
        server.play(Reply(tool_calls=(command,)), Reply(text="Done."))
        machine.run(*asked, "--permission-mode", "full", "-p", "count")
        machine.run("-c", "-m", "scripted/tour", "-p", "/compact")
    machine.run("--demo", "--permission-mode", "full", "-p", "hello")
    machine.run("trust", "add")
    machine.run("models", "add", str(model))
    machine.run("config", "set", "compaction.strategy", "abridge")
    items = json.loads(machine.run("clean", "--json"))
    places = [Path(item["path"]) for item in items]
    files = machine.files()
    assert len(files) > 10
    assert [f for f in files if not any(f.is_relative_to(place) for place in places)] == []
    kinds = {item["kind"] for item in items}
    assert {"sessions", "settings", "trust", "models", "projects", "caches/outputs"} <= kinds
    assert [item["place"] for item in items if item["loss"].startswith("unknown")] == []
    chosen = sorted({item["kind"] for item in items if not item["removal"]})
    machine.run("clean", *chosen, "--yes")
    left = [item["kind"] for item in json.loads(machine.run("clean", "--json"))]
    assert left == ["sessions", "settings"]
    assert (machine.work / "made.txt").exists()
    assert model.exists()
