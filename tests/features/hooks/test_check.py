import json

from agent_tui.cli.folders import load_trust
from agent_tui.features.hooks.check import check_hooks
from tests.features.doctor.conftest import config, environment, find, home, programs
from tests.support.packages import documented_plugin, make_package

__all__ = ["config", "environment", "find", "home", "programs"]


def test_each_hook_is_looked_for_and_none_is_run(environment, find, config, programs, tmp_path):
    programs("here", f"touch {tmp_path}/started")
    config.write_text(
        '[[hooks.Stop]]\ncommand = "here --quickly"\n'
        '[[hooks.PreToolUse]]\ncommand = "nowhere --at-all"\n'
        '[[hooks.PostToolUse]]\ncommand = "./gone.sh"\n'
        '[[hooks.PreCompact]]\ncommand = "cd docs && cat TICKETS.md"\n'
    )
    checks = find(check_hooks(environment()))
    states = {name: check.state for name, check in checks.items()}
    assert states == {
        "Stop": "ok",
        "PreToolUse": "warning",
        "PostToolUse": "warning",
        "PreCompact": "ok",
    }
    assert checks["PreToolUse"].found == "nowhere not found: nowhere --at-all"
    assert not (tmp_path / "started").exists()


def test_what_cannot_be_used_is_named(environment, find, config):
    config.write_text('[[hooks.Stop]]\ncommand = "true"\nmatcher = "("\n')
    check = find(check_hooks(environment()))["ignored"]
    assert check.state == "warning"
    assert "not a valid regular expression" in check.found


def test_a_projects_hook_is_named_once_it_is_trusted(environment, find, home):
    load_trust().decide(home / "work", "trusted")
    hooks = {"Stop": [{"hooks": [{"command": "nowhere"}]}]}
    (home / "work" / ".codex").mkdir()
    (home / "work" / ".codex" / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    check = find(check_hooks(environment()))["Stop"]
    assert (check.state, check.found) == ("info", "not approved yet, not run: nowhere")


def test_functions_of_plugins_are_listed(environment, find, config, tmp_path, monkeypatch):
    code = documented_plugin("@hook(")
    entries = {"agent_tui.hooks": {"no_pushes": "no_pushes"}}
    module = make_package(tmp_path / "site", "push-plugin", code, entries)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    config.write_text('plugins = ["push-plugin"]\n')
    check = find(check_hooks(environment()))["PreToolUse"]
    assert (check.state, check.found) == ("ok", f"function {module}.no_pushes")


def test_without_hooks_there_is_nothing_to_say(environment):
    assert list(check_hooks(environment())) == []
