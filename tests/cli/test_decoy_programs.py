"""Programs that a command may have put into the working folder are not run by agent-tui itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S

_NAMES = """
    git rg bash sh env bwrap uv pip node npm npx python python3 cc gcc ld ldconfig uname file
    locale which tput stty infocmp tmux dbus-launch systemctl id true vi nano
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a virtual environment whose programs write the file ``marker`` beside it."""
    project = tmp_path / "project"
    programs = project / ".venv" / "bin"
    programs.mkdir(parents=True)
    (project / ".git").mkdir()
    (project / "sub").mkdir()
    for name in _NAMES.split():
        decoy = programs / name
        decoy.write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/marker\necho {name} 1.0\n')
        decoy.chmod(0o755)
    return project


def _run(project: Path, folder: Path, *words: str, **more: str) -> str:
    """Run agent-tui in `folder`, with the decoys first on ``PATH``; returns what it prints."""
    home = project.parent / "home"
    home.mkdir(exist_ok=True)
    venv = project / ".venv"
    environ = {
        "HOME": str(home),
        "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "VIRTUAL_ENV": str(venv),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        **more,
    }
    done = subprocess.run(
        [sys.executable, "-m", "agent_tui", *words],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("sandbox", ["auto", "on", "off"])
@pytest.mark.parametrize("place", ["", "sub"])
def test_doctor_runs_no_program_of_the_working_folder(project: Path, place: str, sandbox: str):
    said = _run(project, project / place, "doctor", AGENT_TUI_SANDBOX=sandbox)
    assert "sandbox" in said
    assert not (marker := project.parent / "marker").exists(), marker.read_text()


def test_doctor_reports_the_program_outside_the_working_folder(project: Path):
    real = project.parent / "bin"
    real.mkdir()
    (real / "git").write_text("#!/usr/bin/env sh\necho git version 9.8.7\n")
    (real / "git").chmod(0o755)
    path = os.pathsep.join((str(project / ".venv/bin"), str(real), os.environ["PATH"]))
    assert "git version 9.8.7" in _run(project, project, "doctor", PATH=path)
    assert not (marker := project.parent / "marker").exists(), marker.read_text()


def test_the_editor_is_not_one_of_the_working_folder(project: Path):
    real = project.parent / "bin"
    real.mkdir()
    (real / "vi").write_text('#!/bin/sh\necho edited "$1"\n')
    (real / "vi").chmod(0o755)
    path = os.pathsep.join((str(project / ".venv/bin"), str(real), os.environ["PATH"]))
    assert "edited " in _run(project, project, "config", "edit", PATH=path, EDITOR="vi")
    only = f"{project / '.venv/bin'}{os.pathsep}/nowhere"
    said = _run(project, project, "config", "edit", PATH=only, EDITOR="nano -w")
    assert "nano cannot be started" in said
    assert not (marker := project.parent / "marker").exists(), marker.read_text()
