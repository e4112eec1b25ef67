import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent_tui.cli.arguments import build_parser
from agent_tui.cli.completion.scripts import bash_script, fish_script, zsh_script
from agent_tui.cli.completion.tree import Command, command_tree
from agent_tui.cli.main import run
from agent_tui.cli.subcommands import SUBCOMMANDS
from tests.support.pty_program import PtyProgram

ASKED = """
compopt() { :; }
while IFS= read -r line; do
    read -ra COMP_WORDS <<< "$line"
    [[ $line == *' ' ]] && COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    _agent_tui
    echo "${COMPREPLY[*]}"
done
"""


@pytest.fixture(scope="module")
def tree() -> Command:
    return command_tree(
        build_parser(),
        [(name, subcommand.load().build_parser()) for name, subcommand in SUBCOMMANDS.items()],
    )


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


def answers_of_bash(tree: Command, environ: dict[str, str], *lines: str) -> list[str]:
    here = Path(environ["HOME"]) / "here"
    done = subprocess.run(
        ["bash", "-c", bash_script(tree) + ASKED],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=True,
        env=environ,
        cwd=here,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


STATIC = {
    "agent-tui se": "sessions",
    "agent-tui sessions ": "list show export import rename delete",
    "agent-tui sessions list --a": "--all",
    "agent-tui sessions list --from ": "pi claude codex",
    "agent-tui sessions --help exp": "export",
    "agent-tui --permission-mode ": "ask accept-edits plan full",
    "agent-tui --permission-mode = pl": "plan",
    "agent-tui --output-format=s": "stream-json",
    "agent-tui -p hello --trus": "--trust",
    "agent-tui -r --mod": "--model",
    "agent-tui hello se": "",
    "agent-tui -- --mod": "",
    "agent-tui completion ": "bash zsh fish",
    "agent-tui config se": "set",
    "agent-tui trust add fo": "folder",
    "agent-tui sessions import fi": "file.jsonl",
    "agent-tui --cwd f": "folder",
}


def test_bash_completes_subcommands_options_choices_and_files(tree, environ, tmp_path):
    (tmp_path / "here" / "file.jsonl").touch()
    (tmp_path / "here" / "folder").mkdir()
    found = answers_of_bash(tree, environ, *STATIC)
    assert dict(zip(STATIC, found, strict=True)) == STATIC


def test_bash_asks_the_program_for_what_only_it_knows_and_runs_no_names(tree, environ, tmp_path):
    asked = ("agent-tui -m own/", "agent-tui -m own/model : 7", "agent-tui config set notify ")
    models, after_colon, values = answers_of_bash(tree, environ, *asked)
    assert models == r"own/model:7b own/\$\(touch\ caught\)"
    assert after_colon == "7b"
    assert values.split()[0] == "auto"
    assert not list(tmp_path.rglob("caught"))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_the_same(tree, environ, tmp_path):
    script = tmp_path / "script.fish"
    script.write_text(fish_script(tree))
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


def test_every_option_of_every_parser_is_in_every_script(tree):
    scripts = [bash_script(tree), zsh_script(tree), fish_script(tree)]
    commands = list(tree.walk())
    assert {command.words for command in commands} >= {("sessions", "list"), ("config", "set")}
    for command in commands:
        assert command.about or not command.words, command.words
        for option in command.options:
            name = max(option.names, key=len)
            for script in scripts:
                assert name in script or f"-l {name[2:]} " in script
    for script in scripts:
        assert "--list" in script
        assert "\x1b" not in script


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
    assert run(["completion", shell]) == 0
    assert b"completion for agent-tui; load it" in capfdbinary.readouterr().out


def test_a_shell_that_is_not_known_is_a_wrong_use(capsys):
    with pytest.raises(SystemExit) as left:
        run(["completion", "tcsh"])
    assert left.value.code == 2
    assert "bash" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes_the_same(tree, environ, tmp_path):
    script = tmp_path / "script.zsh"
    script.write_text(zsh_script(tree))
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
