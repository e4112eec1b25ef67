import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent_tui.cli.main import run
from agent_tui.features.sandbox.sandbox import Sandbox


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"AGENT_TUI_{name}_DIR", str(tmp_path / name.lower()))
    workspace = tmp_path / "ws"
    workspace.mkdir()
    monkeypatch.setenv("AGENT_TUI_SANDBOX", "off")
    monkeypatch.chdir(workspace)
    return workspace


def printed(capfdbinary: pytest.CaptureFixture[bytes]) -> str:
    return capfdbinary.readouterr().out.decode()


def asked(capfdbinary: pytest.CaptureFixture[bytes], *argv: str) -> dict[str, object]:
    assert run(["permissions", "check", "--json", *argv]) == 0
    return json.loads(printed(capfdbinary))


def piped(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], text: str
) -> list[dict[str, object]]:
    stdin = SimpleNamespace(buffer=io.BytesIO(text.encode("utf-8", "surrogatepass")))
    monkeypatch.setattr("sys.stdin", stdin)
    assert run(["permissions", "check", "--stdin"]) == 0
    return json.loads(printed(capfdbinary))


def test_a_command_is_decided_with_a_reason_and_its_parts(capfdbinary):
    assert asked(capfdbinary, "git status; rm x") == {
        "decision": "ask",
        "why": "not known to be read-only: rm x",
        "parts": ["git status", "rm x"],
        "where": "outside",
        "meets": [],
    }


def test_where_a_sandbox_stands_a_command_runs_inside_or_asks_at_the_gate(
    capfdbinary, monkeypatch: pytest.MonkeyPatch
):
    state = SimpleNamespace(is_on=True, problem="", backend="bubblewrap")
    monkeypatch.setenv("AGENT_TUI_SANDBOX", "auto")
    monkeypatch.setattr(Sandbox, "state", lambda *_: state)
    push = ("--mode", "accept-edits", "--cwd", ".")
    inside = asked(capfdbinary, *push, "git push origin main")
    assert (inside["decision"], inside["where"], inside["meets"]) == (
        "allow",
        "inside",
        ["network"],
    )
    at_gate = asked(capfdbinary, *push, "--outside", "git push origin main")
    assert (at_gate["decision"], at_gate["where"]) == ("ask", "outside")
    unwalled = asked(capfdbinary, *push, "--no-wall", "git push origin main")
    assert (unwalled["decision"], unwalled["where"]) == ("ask", "outside")
    assert run(["permissions", "check", "--mode", "full", "make all"]) == 0
    assert printed(capfdbinary) == "allow (inside the sandbox)\n"


def test_mode_and_rules_of_the_command_line_hold(capfdbinary):
    assert asked(capfdbinary, "--mode", "plan", "rm x")["decision"] == "deny"
    assert asked(capfdbinary, "--mode", "full", "rm x")["decision"] == "allow"
    assert asked(capfdbinary, "--allow", "bash(make *)", "make all")["decision"] == "allow"
    deny = ("--mode", "full", "--deny", "bash(rm *)")
    assert asked(capfdbinary, *deny, "ls; /bin/rm x")["decision"] == "deny"


@pytest.mark.parametrize(
    "argv", [["ls", "--mode", "full"], ["--", "ls", "--json"], ["--", "--stdin"], ["git", "log"]]
)
def test_what_follows_the_command_belongs_to_it(capfdbinary, argv: list[str]):
    words = argv[1:] if argv[0] == "--" else argv
    assert asked(capfdbinary, *argv)["parts"] == [" ".join(words)]


def test_for_a_person_the_decision_is_one_line(capfdbinary):
    assert run(["permissions", "check", "ls"]) == 0
    assert printed(capfdbinary) == "allow\n"
    assert run(["permissions", "check", "rm\u202e x"]) == 0
    text = printed(capfdbinary)
    assert text.startswith("ask: the command cannot be checked")
    assert "\u202e" not in text


def test_many_calls_of_any_tool_come_from_standard_input(monkeypatch, capfdbinary):
    calls = [
        {"tool": "bash", "arguments": {"command": "ls"}},
        {"tool": "write", "arguments": {"path": ".git/config", "content": "x"}},
        {"tool": "nothing", "arguments": {}},
        {"tool": "bash", "arguments": {"command": 1}},
        {"tool": "bash"},
        "bash",
        {"tool": "read", "arguments": {"path": "missing\0"}},
        {"tool": "bash", "arguments": {"command": "ls \ud800"}},
    ]
    decided = piped(monkeypatch, capfdbinary, json.dumps(calls))
    kinds = [each["decision"] for each in decided]
    assert kinds == ["allow", "ask", "deny", "deny", "deny", "deny", "deny", "deny"]
    assert all(each["why"] for each in decided[1:])


@pytest.mark.parametrize("text", ["", "{", '{"tool": "bash"}', "3", "[" * 100_000])
def test_what_is_no_list_of_calls_is_a_usage_error(monkeypatch, capfdbinary, text: str):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    assert run(["permissions", "check", "--stdin"]) == 2
    err = capfdbinary.readouterr().err.decode()
    assert "Standard input is not" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "argv", [[], ["--stdin", "ls"], ["--allow", "x(", "ls"], ["--cwd", "nowhere", "ls"]]
)
def test_wrong_use_is_said_on_one_line(capfdbinary, argv: list[str]):
    assert run(["permissions", "check", *argv]) == 2
    assert capfdbinary.readouterr().err.count(b"\n") == 1


def test_rules_are_listed_with_their_source_and_can_be_removed(tmp_path: Path, capfdbinary):
    config = tmp_path / "config"
    config.mkdir()
    (config / "config.toml").write_text('[permissions]\ndeny = ["bash(rm *)"]\n')
    assert run(["permissions", "list", "--json"]) == 0
    listed = json.loads(printed(capfdbinary))
    assert listed["rules"] == [
        {"decision": "deny", "rule": "bash(rm *)", "source": "settings"},
    ]
    assert run(["permissions", "remove", "bash(rm *)"]) == 1
    assert asked(capfdbinary, "rm x")["decision"] == "deny"


@pytest.mark.parametrize("text", ["[permissions\n", '[permissions]\ndeny = ["rm *"]\n'])
def test_without_deny_rules_that_cannot_be_read_nothing_is_decided(
    text: str, own_folders: Path, capfdbinary: pytest.CaptureFixture[bytes]
):
    config = own_folders.parent / "config" / "config.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text(text)
    assert run(["permissions", "check", "ls"]) == 2
    caught = capfdbinary.readouterr()
    assert caught.out == b""
    assert f"Deny rules cannot be read, so nothing runs: {config}:" in caught.err.decode()
    assert run(["permissions", "list"]) == 0
    assert f"cannot be read: {config}:" in printed(capfdbinary)
    assert run(["permissions", "list", "--json"]) == 0
    assert str(config) in str(json.loads(printed(capfdbinary))["problems"])
