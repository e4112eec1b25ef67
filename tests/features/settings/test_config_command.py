import json
import stat
import tomllib
from pathlib import Path

import pytest

from agent_tui.cli.command_parser import subcommand_parser
from agent_tui.cli.folders import load_trust
from agent_tui.cli.main import run
from agent_tui.config import Settings
from agent_tui.config.loading import load_settings


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's file, which is not there yet; the present folder is a project."""
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"AGENT_TUI_{name}_DIR", str(tmp_path / name.lower()))
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    project = tmp_path / "project"
    (project / ".agent-tui").mkdir(parents=True)
    monkeypatch.chdir(project)
    return tmp_path / "config" / "config.toml"


def given(own: Path, text: str) -> Path:
    own.parent.mkdir(exist_ok=True)
    own.write_text(text)
    return own


def project_file(text: str, *, trusted: bool) -> Path:
    file = Path.cwd() / ".agent-tui" / "config.toml"
    file.write_text(text)
    if trusted:
        load_trust().decide(Path.cwd(), "trusted")
    return file


def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """An editor that does what the shell command `line` does to its file, ``$1``."""
    script = tmp_path / "editor"
    script.write_text(f"#!/bin/sh\n{line}\n")
    script.chmod(0o755)
    monkeypatch.setenv("EDITOR", f"{script} --wait")
    script.write_text(f"#!/bin/sh\nshift\n{line}\n")


def test_the_path_is_alone_on_standard_output(own, capsys):
    project_file('theme = "nord"\n', trusted=False)
    assert run(["config", "path"]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"{own}\n"
    assert "does not exist yet" in shown.err
    assert f"{Path.cwd()}/.agent-tui/config.toml" in shown.err
    assert "not trusted, not read" in shown.err


def test_show_says_of_each_value_who_set_it_and_problems_last(own, monkeypatch, capsys):
    given(own, 'theme = "nord"\nmodle = "x"\n[compaction]\nauto = false\n')
    project_file('theme = "gruvbox"\n[permissions]\ndeny = ["read(x)"]\n', trusted=True)
    monkeypatch.setenv("AGENT_TUI_COMPACTION__AUTO", "true")
    assert run(["config", "show"]) == 1
    out = capsys.readouterr().out
    settings, _, problems = out.partition("Ignored:")
    told = {line.split(" = ")[0]: line for line in settings.splitlines() if " = " in line}
    assert told["theme"].endswith(f"# .agent-tui/config.toml:1, overrides {own}:1")
    assert told["auto"].split() == (
        f"auto = true # AGENT_TUI_COMPACTION__AUTO, overrides {own}:4".split()
    )
    assert told["mouse"].endswith("# default")
    assert told["deny"].split("#")[0].strip() == 'deny = ["read(x)"]'
    assert problems.strip() == f"{own}:2: modle: no such setting; did you mean model?"
    assert tomllib.loads(settings)["theme"] == "gruvbox"


def test_one_setting_is_told_with_all_there_is_to_know(own, monkeypatch, capsys):
    monkeypatch.setenv("AGENT_TUI_THINKING", "low")
    assert run(["config", "show", "thinking"]) == 0
    out = capsys.readouterr().out
    for said in ("How much the model thinks", '"low"', "AGENT_TUI_THINKING", "off, low, medium"):
        assert said in out
    assert run(["config", "show", "local"]) == 0
    assert capsys.readouterr().out.startswith("[local]\nmodel = ")


def test_json_has_every_setting_and_every_problem(own, capsys):
    given(own, "mouse = 7\n")
    assert run(["config", "show", "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    rows = {row["key"]: row for row in shown["settings"]}
    assert rows["compaction.warn_at"]["value"] == 0.7
    assert rows["mouse"]["layer"] == "default"
    named = {"models", "hooks", "plugin"}
    assert {*Settings.model_fields} - named <= {key.partition(".")[0] for key in rows}
    assert [(one["line"], one["key"]) for one in shown["problems"]] == [(1, "mouse")]


def test_secrets_are_masked(own, monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", "canary-4711-canary")
    given(
        own,
        'base_url = "http://me:hunter2@host/v1"\nsession_dir = "/x/canary-4711-canary"\n'
        '[mcp.servers.x]\ncommand = "x"\nenv = { GITHUB_TOKEN = "canary-0815" }\n',
    )
    for form in ([], ["--json"], ["base_url"]):
        assert run(["config", "show", *form]) == 0
        shown = capsys.readouterr().out
        assert "hunter2" not in shown
        assert "canary" not in shown


def test_set_writes_and_says_what_is_stronger(own, monkeypatch, capsys):
    monkeypatch.setenv("AGENT_TUI_THEME", "nord")
    assert run(["config", "set", "theme", "agent-light"]) == 0
    shown = capsys.readouterr().err
    assert f'{own}: theme = "agent-light"' in shown
    assert "the environment variable AGENT_TUI_THEME sets it" in shown
    assert own.read_text() == 'theme = "agent-light"\n'
    assert run(["config", "set", "permissions.allow", "bash(pytest *)", "read"]) == 0
    assert load_settings(own, {}).settings.permissions.allow == ("bash(pytest *)", "read")
    assert run(["config", "unset", "theme"]) == 0
    assert "theme" not in own.read_text()


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["set", "thinking", "deep"], 1, "off, low, medium, high"),
        (["set", "theme", "no-such-theme"], 1, "agent-dark"),
        (["set", "permissions.deny", "bash(rm"], 1, "Write it like bash(git status)"),
        (["set", "model", "nosuchmodel-xyzzy-000"], 1, "No model named"),
        (["set", "modle", "x"], 2, "did you mean model"),
        (["unset", "no such"], 2, "is not the name of a setting"),
        (["show", "nothing.there"], 2, "no such setting"),
    ],
)
def test_what_would_be_refused_is_not_written(own, capsys, argv, code, said):
    given(own, "mouse = true # mine\n")
    assert run(["config", *argv]) == code
    assert said in capsys.readouterr().err
    assert own.read_text() == "mouse = true # mine\n"


def test_edit_begins_with_a_file_that_explains_itself(own, tmp_path, monkeypatch, capsys):
    editor(tmp_path, monkeypatch, "sed -i 's/^#mouse = true/mouse = false/' \"$1\"")
    assert run(["config", "edit"]) == 0
    assert "No problems found" in capsys.readouterr().err
    assert "# How much the model thinks" in own.read_text()
    assert load_settings(own, {}).settings == Settings(mouse=False)
    assert stat.S_IMODE(own.stat().st_mode) == 0o600


def test_edit_names_what_is_wrong_afterwards(own, tmp_path, monkeypatch, capsys):
    editor(tmp_path, monkeypatch, 'echo \'thinking = "deep"\' > "$1"')
    assert run(["config", "edit"]) == 1
    assert f"{own}:1: thinking: " in capsys.readouterr().err


def test_an_editor_that_is_not_there_is_said(own, monkeypatch, capsys):
    monkeypatch.setenv("VISUAL", "no-such-editor-here")
    assert run(["config", "edit"]) == 1
    assert "no-such-editor-here cannot be started" in capsys.readouterr().err


def test_a_missing_command_is_answered_with_those_there_are(capsys: pytest.CaptureFixture[str]):
    parser = subcommand_parser("config", "Settings.")
    add = parser.verb_adder()
    add("set", "set one")
    add("show", "show all")
    with pytest.raises(SystemExit):
        parser.parse_args([])
    told = "agent-tui config: add a command: set, show. See agent-tui config --help.\n"
    assert capsys.readouterr().err == told
