from pathlib import Path

import pytest

from agent_tui.tools.sandbox.obeyed import is_only_read, who_obeys, who_obeys_entry


@pytest.mark.parametrize(
    ("path", "who"),
    [
        (".vscode", "an editor"),
        ("proj.code-workspace", "an editor"),
        (".devcontainer.json", "a development container"),
        ("AGENTS.md", "an agent"),
        ("claude.MD", "an agent"),
        (".github/copilot-instructions.md", "an agent"),
        (".agent-tui", "agent-tui"),
        (".envrc", "the shell"),
        (".direnv/flake-profile-x.rc", "the shell"),
        (".config/mise.toml", "mise"),
        (".husky", "git hooks"),
        ("lefthook-local.yml", "git hooks"),
        (".hg/hgrc", "version control"),
    ],
)
def test_what_somebody_outside_obeys_unasked(path: str, who: str):
    place = Path(path)
    assert who_obeys_entry(place.parent.name, place.name) == who


@pytest.mark.parametrize(
    "path",
    [
        # CI obeys these after a push, builds write those, and nobody knows of the others.
        *(".github/workflows", ".gitlab-ci.yml", ".circleci"),
        *("venv/bin", "lib/site-packages", "node_modules/.bin", "x.pth", ".direnv/python-3.12"),
        *(".unknown", ".env", ".gitignore", ".gitattributes", "package.json", "Makefile"),
    ],
)
def test_what_commands_in_the_wall_may_write(path: str):
    place = Path(path)
    assert who_obeys_entry(place.parent.name, place.name) == ""


@pytest.mark.parametrize(
    ("path", "who"),
    [
        (".github/workflows/ci.yml", "CI"),
        ("venv/bin/python", "any program that calls these commands"),
        ("a/site-packages/x.py", "any program that uses these packages"),
        ("x.pth", "Python"),
        (".gitattributes", "git"),
        (".unknown", "the program that reads .unknown"),
        (".agent-tui/config.toml", "agent-tui"),
        (".vscode/tasks.json", "an editor"),
    ],
)
def test_an_edit_of_more_than_that_is_asked_about(path: str, who: str):
    assert who_obeys(Path(path)) == who


def test_texts_run_nothing_by_themselves():
    assert all(
        map(is_only_read, ("AGENTS.md", ".envrc", "lefthook.yml", ".pre-commit-config.yaml"))
    )
    assert not any(map(is_only_read, (".mcp.json", "mise.toml", ".nvim.lua", "x.code-workspace")))
