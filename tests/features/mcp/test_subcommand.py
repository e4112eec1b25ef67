import io
import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from agent_tui.cli.folders import load_trust
from agent_tui.cli.main import run
from agent_tui.config.loading import load_settings
from agent_tui.features.mcp import subcommand
from agent_tui.features.mcp.oauth import Registration
from agent_tui.features.mcp.settings import McpSection, McpSettings
from agent_tui.tools.server_spec import ServerSpec
from tests.features.mcp.test_login import PAGE, Browser
from tests.support.mcp_http_server import McpHttpServer


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
        (["--client-id", "1.2", "x", "--", "y"], "only with a url: client_id"),
        (["--client-secret", "SECRET", "x", "https://y.invalid"], "only with a client_id"),
        (["--client-id", "1\n2", "x", "https://y.invalid"], "client_id: only printable ASCII"),
        (["--client-id", "1\u00e9", "x", "https://y.invalid"], "client_id: only printable ASCII"),
        (["--callback-port", "70000", "x", "https://y.invalid"], "callback_port: Input should"),
    ],
)
def test_what_cannot_be_a_server_is_refused_and_nothing_written(folders, capsys, argv, said):
    assert run(["mcp", "add", *argv]) == 2
    assert said in capsys.readouterr().err
    assert not (folders / "config" / "config.toml").exists()


@pytest.mark.parametrize("option", ["--client-id", "--client-secret", "--url"])
@pytest.mark.parametrize("value", ["", " "])
def test_an_option_without_a_value_is_not_left_out(folders, capsys, option, value):
    with pytest.raises(SystemExit, match="2"):
        run(["mcp", "add", option, value, "x", "https://y.invalid"])
    assert f"{option}: it is empty" in capsys.readouterr().err
    assert not (folders / "config" / "config.toml").exists()


@pytest.mark.parametrize("secret", ["aB3-of-mine", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4"])
def test_a_secret_in_place_of_its_variable_is_refused_and_not_repeated(folders, capsys, secret):
    argv = ["--client-id", "1.2", "--client-secret", secret, "x", "https://y.invalid"]
    assert run(["mcp", "add", *argv]) == 2
    said = capsys.readouterr().err
    assert "give the name of a variable in capitals" in said
    assert secret not in said
    assert not (folders / "config" / "config.toml").exists()
    (folders / "config").mkdir()
    table = f'[mcp.servers.x]\nurl = "https://y.invalid"\nclient_secret_env = "{secret}"\n'
    (folders / "config" / "config.toml").write_text(table)
    (problem,) = load_settings(folders / "config" / "config.toml", {}).problems
    assert "give the name of a variable in capitals" in str(problem)
    assert secret not in str(problem)


@pytest.mark.parametrize(
    "url", ["http://x.invalid/me.json", "https://x.invalid", "https://x.invalid/", "me.json"]
)
def test_a_page_that_cannot_be_an_id_is_refused(url):
    with pytest.raises(ValidationError, match=r"https address with a path|URL"):
        McpSettings(client_metadata_url=url)


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


@pytest.mark.skipif(find_spec("mcp") is None, reason="needs the extra mcp")
@pytest.mark.parametrize("is_typed", [False, True])
def test_one_logs_in_with_an_id_and_a_secret_that_no_file_of_settings_holds(
    folders, capsys, monkeypatch, is_typed
):
    browser = Browser()
    monkeypatch.setattr(subcommand, "show_page", browser.show)
    with McpHttpServer() as far:
        far.wants_login, far.registers = True, False
        own = ["--client-id", "1.2", "--client-secret", "CHAT_SECRET", "--callback-port", "0"]
        assert run(["mcp", "add", *own, "chat", far.url]) == 0
        if is_typed:
            monkeypatch.setattr("sys.stdin", io.StringIO("s3cret-of-mine\n"))
        else:
            monkeypatch.setenv("CHAT_SECRET", "s3cret-of-mine")
        assert run(["mcp", "login", "chat"]) == 0
    assert far.sent_secrets == ["Basic MS4yOnMzY3JldC1vZi1taW5l"]
    assert browser.asked[0]["client_id"] == "1.2"
    assert "s3cret-of-mine" not in "".join(capsys.readouterr())
    assert "s3cret-of-mine" not in (folders / "config" / "config.toml").read_text()


def test_a_secret_that_is_missing_is_named_by_its_variable(folders, capsys, monkeypatch):
    own = ["--client-id", "1.2", "--client-secret", "CHAT_SECRET"]
    assert run(["mcp", "add", *own, "chat", "https://x.invalid"]) == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run(["mcp", "login", "chat"]) == 2
    assert "CHAT_SECRET" in capsys.readouterr().err


def test_a_projects_server_gets_the_page_alone(folders, monkeypatch):
    monkeypatch.setenv("CHAT_SECRET", "s3cret-of-mine")
    own = ["--client-id", "1.2", "--client-secret", "CHAT_SECRET"]
    assert run(["mcp", "add", *own, "chat", "https://x.invalid"]) == 0
    file = folders / "config" / "config.toml"
    file.write_text(f'[mcp]\nclient_metadata_url = "{PAGE}"\n{file.read_text()}')
    mine = ServerSpec("chat", "config.toml", url="https://x.invalid")
    assert subcommand.registration_of(mine) == Registration("1.2", "s3cret-of-mine", PAGE)
    theirs = replace(mine, origin="project")
    assert subcommand.registration_of(theirs) == Registration(metadata_url=PAGE)


def test_the_key_of_a_model_is_given_to_no_login(folders, capsys, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    own = ["--client-id", "1.2", "--client-secret", "OPENAI_API_KEY"]
    assert run(["mcp", "add", *own, "chat", "https://x.invalid"]) == 0
    assert run(["mcp", "login", "chat"]) != 0
    assert "contains a model's key" in capsys.readouterr().err
