"""The folders that are worked in besides the one begun in."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_tui.cli.arguments import Arguments, parse_arguments
from agent_tui.cli.folders import folder_trust, folders_to_add, instructions_not_obeyed
from agent_tui.errors import UsageError
from agent_tui.permissions.trust import FolderTrust, TrustFile
from tests.support.openai_script import Call, Reply
from tests.support.openai_server import OpenAiServer


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder begun in, beside others."""
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home/state"))
    for name in ("project/inner", "library", "home/state", "home/.ssh"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def trust(home: Path) -> FolderTrust:
    return FolderTrust(TrustFile(home / "trust.json"), home=home)


def with_added(*folders: Path | str) -> Arguments:
    return parse_arguments([word for folder in folders for word in ("--add-dir", str(folder))])


def added(project: Path, *folders: Path | str) -> tuple[Path, ...]:
    home = project.parent / "home"
    return folders_to_add(with_added(*folders), trust(home), (home / "state",))


def test_folders_are_taken_once_resolved_and_not_where_the_first_one_holds_them(project: Path):
    library = project.parent / "library"
    assert added(project, "../library", library, "inner", ".") == (library,)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("..", "is too broad to work in"),
        ("/", "is too broad to work in"),
        ("../home", "is too broad to work in"),
        ("../home/.ssh", "is where keys are kept"),
        ("../home/state", "belongs to agent-tui"),
        ("../nowhere", "No such file"),
    ],
)
def test_a_folder_that_holds_too_much_or_nothing_is_refused(project: Path, name: str, why: str):
    with pytest.raises(UsageError, match=why):
        added(project, name)


def test_it_is_told_that_instructions_of_an_added_folder_are_not_obeyed(project: Path):
    library = project.parent / "library"
    (library / "AGENTS.md").write_text("No prints.")
    kept = trust(project.parent / "home")
    (line,) = instructions_not_obeyed((library,), kept)
    assert f"Not read: {library}/AGENTS.md" in line
    assert f"agent-tui trust add {library}" in line
    kept.trust_for_this_run(library)
    assert not list(instructions_not_obeyed((library,), kept))


def test_trust_for_one_run_covers_what_is_added(project: Path):
    library = project.parent / "library"
    arguments = parse_arguments(["--trust", "--add-dir", str(library)])
    assert folder_trust(arguments).state_of(library) == "trusted"


@pytest.mark.thorough
@pytest.mark.parametrize("is_added", [True, False])
def test_a_run_knows_what_is_added_and_asks_there_as_in_its_own_folder(
    project: Path, is_added: bool
):
    file = project.parent / "library/.unknown/a"  # elsewhere the folder of scratch files covers it
    call = Call("write", {"path": str(file), "content": "x = 1\n"})
    with OpenAiServer() as server:
        server.play(Reply(tool_calls=(call,)), Reply(text="Done."))
        done = subprocess.run(
            [
                *(sys.executable, "-m", "agent_tui", "-p", "Write it."),
                *("-m", "tiny", "--base-url", server.base_url, "--api-key-env", "TEST_KEY"),
                *("--permission-mode", "accept-edits"),
                *(["--add-dir", str(project.parent / "library")] if is_added else []),
            ],
            env={**os.environ, "TEST_KEY": "sk-0"},
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    assert file.exists() != is_added
    told = f"Also worked in: {project.parent}/library" in json.dumps(server.chats[0].body)
    assert told == is_added
