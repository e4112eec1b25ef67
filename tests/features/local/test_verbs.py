import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent_tui.errors import ModelFileError
from agent_tui.features.local.fetch import ProgressLine
from agent_tui.features.local.model import PullProgress
from agent_tui.features.models.command import run_command
from agent_tui.installation import install_command
from tests.support.file_server import FileServer
from tests.support.gguf_files import CHAT_FIELDS, gguf_bytes
from tests.support.pty_program import PtyProgram


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the models, empty; pip as it comes."""
    monkeypatch.setenv("AGENT_TUI_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("AGENT_TUI_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return tmp_path / "data" / "models"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "Tiny.gguf"
    path.write_bytes(gguf_bytes({**CHAT_FIELDS, "general.name": "Tiny \x1b[31m Test\x07"}))
    return path


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert run_command(argv) == 0
    return capsys.readouterr().out


def test_an_added_model_is_listed_and_its_path_told(
    capsys: pytest.CaptureFixture[str], file: Path, models: Path
) -> None:
    added = printed(capsys, "add", str(file))
    assert "Added tiny" in added
    assert "agent-tui -m local/tiny" in added
    listed = printed(capsys, "tiny")
    assert "local/tiny" in listed
    assert "2,048 tokens" in listed
    assert "Tiny Test" in listed
    assert "\x1b" not in listed
    assert "To download" not in listed
    assert printed(capsys, "path", "local/tiny") == f"{file}\n"
    assert printed(capsys, "path") == f"{models}\n"


def test_what_can_be_fetched_is_listed_with_size_licence_and_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    listed = printed(capsys, "list", "smol")
    assert "agent-tui models pull smollm2  92.9 MB  8,192 tokens  Apache-2.0" in listed


def test_the_list_as_json_has_four_parts(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    added = json.loads(printed(capsys, "add", str(file), "--name", "one", "--json"))
    assert added["name"] == "one"
    assert added["model"] == "local/one"
    listed = json.loads(printed(capsys, "list", "--json"))
    assert list(listed) == ["local", "offers", "served", "with_key"]
    assert listed["local"] == [added]
    assert listed["offers"][0]["name"] == "smollm2"
    assert listed["offers"][0]["is_here"] is False


def test_a_filter_that_nothing_fits_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed(capsys, "list", "no-such-thing")
    assert shown == (
        "No models with 'no-such-thing'. To download one: agent-tui models pull NAME\n"
    )


def test_a_model_whose_file_is_gone_is_marked(
    capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    run_command(["add", str(file)])
    file.unlink()
    assert f"file is missing: {file}" in printed(capsys, "list", "tiny")
    with pytest.raises(ModelFileError, match="is missing"):
        run_command(["path", "tiny"])


def test_damaged_descriptions_are_warned_of(
    capsys: pytest.CaptureFixture[str], file: Path, models: Path
) -> None:
    run_command(["add", str(file)])
    (models / "bad.json").write_text("{")
    capsys.readouterr()
    assert run_command(["list", "tiny"]) == 0
    shown = capsys.readouterr()
    assert "local/tiny" in shown.out
    assert "warning" in shown.err
    assert "bad.json" in shown.err


def test_a_removed_model_keeps_a_persons_file(
    capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    run_command(["add", str(file)])
    assert "Its file is kept" in printed(capsys, "remove", "tiny")
    assert file.is_file()
    with pytest.raises(ModelFileError, match="No local model"):
        run_command(["remove", "tiny"])


def test_a_model_without_template_is_added_with_a_word_of_warning(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fields = {k: v for k, v in CHAT_FIELDS.items() if k != "tokenizer.chat_template"}
    (tmp_path / "base.gguf").write_bytes(gguf_bytes(fields))
    assert "no chat template" in printed(capsys, "add", str(tmp_path / "base.gguf"))


def test_a_model_is_pulled_from_an_address_and_deleted_when_removed(
    capsys: pytest.CaptureFixture[str], models: Path
) -> None:
    with FileServer() as server:
        server.offer("/m.gguf?token=t0ken", gguf_bytes())
        assert run_command(["pull", f"{server.url}/m.gguf?token=t0ken", "--name", "mine"]) == 0
    shown = capsys.readouterr()
    assert "Downloaded mine" in shown.out
    assert "downloading" in shown.err
    assert "t0ken" not in shown.out + shown.err
    assert (models / "files" / "mine.gguf").is_file()
    run_command(["remove", "mine"])
    assert not (models / "files" / "mine.gguf").exists()


@pytest.mark.thorough
def test_ctrl_c_stops_a_pull_and_says_that_it_can_go_on(models: Path) -> None:
    content = gguf_bytes(data_bytes=400_000)
    with FileServer() as server:
        served = server.offer("/m.gguf", content, etag='"one"', stops_at=200_000)
        argv = [sys.executable, "-m", "agent_tui", "models", "pull", f"{server.url}/m.gguf"]
        program = subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        served.reached_stop.wait()
        program.send_signal(signal.SIGINT)
        out, told = program.communicate()
        assert program.returncode == 130
        assert out == b""
        assert b"The next pull continues from here" in told
        assert b"Traceback" not in told
        served.go_on.set()
        assert run_command(["pull", f"{server.url}/m.gguf"]) == 0
    assert (models / "files" / "m.gguf").read_bytes() == content


def test_on_a_terminal_an_offer_is_described_and_asked_about(models: Path) -> None:
    with PtyProgram([sys.executable, "-m", "agent_tui", "models", "pull", "smollm2"]) as program:
        program.wait_for("Download? [Y/n]")
        assert "92.9 MB" in program.text
        assert "98.4 MB" in program.text
        assert "Apache-2.0" in program.text
        program.send("n\r")
        assert program.process.wait() == 130
    assert not models.exists()


class Clock:
    """Moves on when told."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("is_terminal", [True, False])
def test_progress_tells_bytes_rate_and_time_left(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, clock = io.StringIO(), Clock()
    monkeypatch.setenv("COLUMNS", "80")
    line = ProgressLine(stream, is_terminal=is_terminal, now=clock)
    line.show(PullProgress("looking"))
    for second in range(10):
        clock.now = second
        line.show(PullProgress("downloading", 2_000_000 * second, 100_000_000))
    line.close()
    text = stream.getvalue()
    assert "looking ..." in text
    assert "18.0 MB of 100 MB" in text or not is_terminal
    assert "10 %  10.0 MB of 100 MB  2.0 MB/s  45s left" in text
    assert text.count("\n") == (0 if is_terminal else 3)
    assert text.endswith("\x1b[K") is is_terminal
    if is_terminal:
        assert max(map(len, text.split("\r\x1b[K"))) == 79


def test_a_long_pull_is_told_in_hours_and_an_unknown_size_in_bytes() -> None:
    stream, clock = io.StringIO(), Clock()
    line = ProgressLine(stream, is_terminal=True, now=clock)
    line.show(PullProgress("downloading", 0, 40_000_000_000))
    clock.now = 1.0
    line.show(PullProgress("downloading", 4_000_000, 40_000_000_000))
    line.show(PullProgress("checking", 5_000_000, None))
    assert "2h 46m left" in stream.getvalue()
    assert "checking  5.0 MB" in stream.getvalue()


def test_without_the_extra_the_command_for_it_is_told(
    capsys: pytest.CaptureFixture[str], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    assert install_command("local") in printed(capsys, "add", str(file))
    assert install_command("local") in printed(capsys, "list")
    assert "install" not in printed(capsys, "list", "--json")
    monkeypatch.setitem(sys.modules, "xllamacpp", sys)
    assert "install" not in printed(capsys, "list")
