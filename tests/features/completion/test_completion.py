import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent_tui.cli.main import run
from agent_tui.cli.subcommands import SUBCOMMANDS
from tests.support.pty_program import PtyProgram

ASKED = """
import os, sys
from agent_tui.features.completion.subcommand import answer_shell
from agent_tui.cli.subcommands import SUBCOMMANDS

for subcommand in SUBCOMMANDS.values():
    subcommand.load()
for line in sys.stdin.read().splitlines():
    if not os.fork():
        os.dup2(1, 8)
        os.environ.update(_ARGCOMPLETE="1", COMP_LINE=line, COMP_POINT=str(len(line)))
        answer_shell()
    os.wait()
    print(flush=True)
"""
"""Answers each line in a process of its own, as at a Tab, with what is imported once."""

ASKED_IN_BASH = """
compopt() { :; }
while IFS= read -r COMP_LINE; do
    COMP_POINT=${#COMP_LINE} COMPREPLY=()
    _python_argcomplete agent-tui
    echo "${COMPREPLY[*]}"
done
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Of a shell that finds the program, whose folders are empty but for a settings file."""
    program = tmp_path / "bin" / "agent-tui"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agent_tui "$@"\n')
    program.chmod(0o755)
    folders = {f"AGENT_TUI_{n}_DIR": str(tmp_path / n) for n in ("CONFIG", "DATA", "CACHE")}
    (tmp_path / "CONFIG").mkdir()
    (tmp_path / "CONFIG" / "config.toml").write_text(
        '[models."own/model:7b"]\nwindow = 9\n[models."own/$(touch caught)"]\nwindow = 9\n'
    )
    (tmp_path / "here").mkdir()
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, **folders, "PATH": path, "HOME": str(tmp_path)}


def script_of(shell: str, capfdbinary: pytest.CaptureFixture[bytes]) -> str:
    assert run(["completion", shell]) == 0
    return capfdbinary.readouterr().out.decode()


def answers_of(program: list[str], environ: dict[str, str], *lines: str) -> list[str]:
    done = subprocess.run(
        program,
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=True,
        env=environ,
        cwd=Path(environ["HOME"]) / "here",
    )
    assert done.stderr == ""
    return done.stdout.replace("\v", " ").splitlines()


STATIC = {
    "agent-tui se": "sessions",
    "agent-tui sessions ": "list show export import rename delete share push pull",
    "agent-tui sessions list --a": "--all",
    "agent-tui sessions list --from ": "pi claude codex gemini opencode kimi",
    "agent-tui sessions --help exp": "export",
    "agent-tui --permission-mode ": "ask accept-edits plan full",
    "agent-tui --output-format=s": "--output-format=stream-json",
    "agent-tui -p hello --trus": "--trust",
    "agent-tui -r --mod": "--model",
    "agent-tui hello se": "",
    "agent-tui --plain se": "",
    "agent-tui completion ": "bash zsh fish",
    "agent-tui config se": "set",
    "agent-tui config set noti": "notify",
    "agent-tui config set notify ": "auto bell off",
    "agent-tui trust add fo": "folder/",
    "agent-tui sessions import fi": "file.jsonl",
    "agent-tui sessions show fi": "file.jsonl",
    "agent-tui --cwd f": "folder/",
    "git diff | agent-tui sessions ex": "export",
    "agent-tui trust add agent-tui": "",
}


def test_subcommands_options_choices_settings_and_files_are_completed(environ, tmp_path):
    (tmp_path / "here" / "file.jsonl").touch()
    (tmp_path / "here" / "folder").mkdir()
    found = answers_of([sys.executable, "-c", ASKED], environ, *STATIC)
    assert dict(zip(STATIC, map(str.rstrip, found), strict=True)) == STATIC


def test_bash_asks_the_program_and_runs_no_names(environ, tmp_path, capfdbinary):
    script = script_of("bash", capfdbinary) + ASKED_IN_BASH
    asked = ("agent-tui -m own/", "agent-tui -m own/model:7", "agent-tui config set notify a")
    models, after_colon, value = answers_of(["bash", "-c", script], environ, *asked)
    assert models == r"own/model:7b own/\$\(touch\ caught\)"
    assert after_colon == "7b"  # bash itself takes what follows the colon for the word
    assert value == "auto"
    assert not list(tmp_path.rglob("caught"))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_the_same(environ, tmp_path, capfdbinary):
    script = tmp_path / "script.fish"
    script.write_text(script_of("fish", capfdbinary))
    asked = {
        "agent-tui se": ["sessions"],
        "agent-tui sessions ex": ["export"],
        "agent-tui sessions export --format h": ["html"],
        "agent-tui --permission-mode pl": ["plan"],
        "agent-tui config set notify a": ["auto"],
        "agent-tui -m own/m": ["own/model:7b"],
        "agent-tui hello se": [],
    }
    lines = "; ".join(f"echo '== {line}'; complete -C '{line}'" for line in asked)
    done = subprocess.run(
        ["fish", "-c", f"source {script}; {lines}"],
        capture_output=True,
        text=True,
        env=environ,
        cwd=tmp_path / "here",
        check=True,
    )
    assert done.stderr == ""
    answers = [block.splitlines() for block in done.stdout.split("== ")[1:]]
    found = {line: [one.partition("\t")[0] for one in words] for line, *words in answers}
    assert found == asked


def test_the_help_names_every_subcommand(capsys):
    with pytest.raises(SystemExit):
        run(["--help"])
    told = capsys.readouterr().out.partition("\ncommands:")[2]
    named = {
        line.split()[0] for line in told.partition("Run agent-tui")[0].splitlines() if line.split()
    }
    assert named == set(SUBCOMMANDS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_command_prints_the_script_of_a_shell(shell, capfdbinary):
    assert "agent-tui" in script_of(shell, capfdbinary)


def test_a_shell_that_is_not_known_is_a_wrong_use(capsys):
    with pytest.raises(SystemExit) as left:
        run(["completion", "tcsh"])
    assert left.value.code == 2
    assert "bash" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes_the_same(environ, tmp_path, capfdbinary):
    script = tmp_path / "script.zsh"
    script.write_text(script_of("zsh", capfdbinary))
    setup = f"autoload -U compinit; compinit -u -D; source {script}; PS1='ready> '\n"
    asked = {
        "agent-tui sess\t": "sessions ",
        "agent-tui sessions export --form\th\t": "html ",
        "agent-tui --permission-mode pl\t": "plan ",
        "agent-tui config set notify au\t": "auto ",
        "agent-tui -m own/m\t": "own/model:7b ",
    }
    with PtyProgram(
        ["zsh", "-f", "-i"], environ={**environ, "TERM": "dumb"}, cwd=tmp_path / "here"
    ) as shell:
        shell.send(setup)
        shell.wait_for("ready> ")
        for typed, whole in asked.items():
            so_far = len(shell.text)  # from here on only what is new counts
            shell.send(typed)
            shell.wait_for(whole, since=so_far)
            shell.send("\x15")
