import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent_tui.cli.folders import load_trust
from agent_tui.cli.main import run
from agent_tui.config.loading import load_settings
from agent_tui.features.mcp.settings import McpSection


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"AGENT_TUI_{name}_DIR", str(tmp_path / name.lower()))
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    named = {"mcpServers": {"theirs": {"command": "run", "args": ["a b"]}}}
    (project / ".mcp.json").write_text(json.dumps(named))
    monkeypatch.chdir(project)
    return tmp_path


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    capsys.readouterr()
    assert run(["mcp", "list", "--json"]) == 0
    return {one["name"]: one["state"] for one in json.loads(capsys.readouterr().out)}


def test_a_server_is_named_listed_and_taken_out(folders, capsys):
    file = folders / "config" / "config.toml"
    file.parent.mkdir()
    file.write_text('# mine\nmodel = "x/y"\n')
    assert run(["mcp", "add", "--env", "A=${B}", "files", "--", "npx", "-y", "server"]) == 0
    assert run(["mcp", "add", "--url", "https://x.invalid", "--header", "X=VAR", "far"]) == 0
    loaded = load_settings(file, {})
    assert loaded.problems == ()
    servers = loaded.settings.of(McpSection).mcp.servers
    files, far = servers["files"], servers["far"]
    assert (files.command, files.args, files.env) == ("npx", ("-y", "server"), {"A": "${B}"})
    assert (far.url, far.headers_env) == ("https://x.invalid", {"X": "VAR"})
    assert listed(capsys) == {"files": "on", "far": "on"}
    assert run(["mcp", "add", "bare", "https://x.invalid"]) == 0
    bare = load_settings(file, {}).settings.of(McpSection).mcp.servers["bare"]
    assert bare.url == "https://x.invalid"
    assert run(["mcp", "list"]) == 0
    assert "npx -y server" in capsys.readouterr().out
    for name in ("files", "far", "bare"):
        assert run(["mcp", "remove", name]) == 0
    assert listed(capsys) == {}
    assert file.read_text().startswith('# mine\nmodel = "x/y"\n')
    assert run(["mcp", "remove", "files"]) == 1


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["a b", "--", "x"], "cannot be the name"),
        (["x"], "either a command"),
        (["--url", "u", "x", "--", "y"], "either a command"),
        (["--env", "A", "x", "--", "y"], "NAME=VALUE"),
        (["--env", "A=sk-0123456789abcdefghij", "x", "--", "y"], "looks like a key"),
    ],
)
def test_what_cannot_be_a_server_is_refused_and_nothing_written(folders, capsys, argv, said):
    assert run(["mcp", "add", *argv]) == 2
    assert said in capsys.readouterr().err
    assert not (folders / "config" / "config.toml").exists()


def test_a_projects_server_is_allowed_and_refused_without_a_screen(folders, capsys):
    assert listed(capsys) == {}
    assert run(["mcp", "allow", "theirs"]) == 1
    load_trust().decide(Path.cwd(), "trusted")
    assert listed(capsys) == {"theirs": "not asked"}
    assert run(["mcp", "allow", "theirs"]) == 0
    assert "run 'a b'" in capsys.readouterr().out
    assert listed(capsys) == {"theirs": "on"}
    assert run(["mcp", "refuse", "theirs"]) == 0
    assert listed(capsys) == {"theirs": "refused"}


def test_the_permission_engine_can_be_asked_about_a_tool_of_a_server(folders, capsys, monkeypatch):
    calls = json.dumps([{"tool": "mcp__srv__echo"}]).encode()
    for mode, allow, decision in (
        ("full", [], "ask"),
        ("ask", ["--allow", "mcp__srv__*"], "allow"),
        ("plan", ["--allow", "mcp__srv"], "deny"),
    ):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(calls)))
        assert run(["permissions", "check", "--stdin", "--mode", mode, *allow]) == 0
        (decided,) = json.loads(capsys.readouterr().out)
        assert decided["decision"] == decision


def test_only_a_server_at_an_address_is_logged_in_to(folders, capsys):
    assert run(["mcp", "add", "srv", "--", "program"]) == 0
    for verb in ("login", "logout"):
        assert run(["mcp", verb, "srv"]) != 0
        assert "has a URL" in capsys.readouterr().err
