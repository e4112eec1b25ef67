import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from agent_tui.commands.core.checks import Check
from agent_tui.features.doctor.check import Environment, Probe, read_environment, run_probes

CANARY = "canary0123456789abcdef"
"""A key without the shape of one, so that only its being a variable's value gives it away."""


def skip_if_rights_do_not_bind(folder: Path) -> None:
    """Skip the test where `folder` can be written whatever its mode says, as root can."""
    if os.access(folder, os.W_OK):
        pytest.skip("root may write everywhere")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment with a home of its own and hardly anything else; the folder is ``work``."""
    path = os.environ["PATH"]
    for name in list(os.environ):
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    for name, value in {
        "PATH": path,
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        **{f"AGENT_TUI_{n}_DIR": str(home / n.lower()) for n in ("CONFIG", "DATA", "CACHE")},
    }.items():
        monkeypatch.setenv(name, value)
    (home / "work").mkdir()
    monkeypatch.chdir(home / "work")
    return home


@pytest.fixture
def config(home: Path) -> Path:
    """Where the settings go; there are none yet."""
    (home / "config").mkdir()
    return home / "config" / "config.toml"


@pytest.fixture
def environment() -> Callable[[], Environment]:
    """Look around now, with no server in sight."""
    return lambda: read_environment(server_ports={})


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """A ``PATH`` with nothing on it but what is put there as a shell script."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def put(name: str, script: str) -> None:
        file = folder / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    return put


@pytest.fixture
def probed(environment) -> Callable[..., Check]:
    """The line of a check that is called `name`, however the check ends."""

    def probed(check: Callable[[Environment], Iterable[Check]], name: str) -> Check:
        env = environment()
        checks = run_probes([Probe("section", name, lambda: check(env))], 60)
        return next(check for check in checks if check.name == name)

    return probed


@pytest.fixture
def find() -> Callable[..., dict[str, Check]]:
    """The checks that a look finds, by name."""
    return lambda checks: {check.name: check for check in checks}
