"""What commands of a killed program left is judged in each folder of the repository."""

import os
import subprocess
from pathlib import Path

import pytest

from agent_tui import paths
from agent_tui.config import Settings
from tests.support.sandbox import needs_bwrap, needs_landlock, program_sandbox


def _git(cwd: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a")
    subprocess.run(["git", *who, *words], cwd=cwd, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a folder in it and two linked work trees beside it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "own"))
    folder = tmp_path.resolve() / "shop"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub/a").touch()
    _git(folder, "init", "-q", "-b", "main", "--template=")
    _git(folder, "add", ".")
    _git(folder, "commit", "-qm", "one")
    for name in ("one", "two"):
        _git(folder, "worktree", "add", "-q", f"../{name}")
    return folder


@pytest.mark.parametrize(
    "backend",
    [
        pytest.param("bubblewrap", marks=needs_bwrap),
        pytest.param("landlock", marks=needs_landlock),
    ],
)
@pytest.mark.parametrize(
    ("began", "next_one"), [(".", "sub"), (".", "../one"), ("../one", "."), ("../one", "../two")]
)
async def test_the_next_session_in_the_repository_judges_it(
    repository: Path, tmp_path: Path, backend: str, began: str, next_one: str
):
    environ = {"PATH": os.defpath if backend == "bubblewrap" else "/none", "HOME": str(tmp_path)}
    cwd, other = ((repository / name).resolve() for name in (began, next_one))
    killed = program_sandbox(Settings(), environ)
    watch = killed.watch(cwd)
    assert watch is not None
    await watch.note()
    hook = repository / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("evil\n")
    for state in paths.user_data_dir().rglob("*.state"):
        state.rename(state.with_name("killed.state"))  # nobody holds the lock of this name
    following = program_sandbox(Settings(), environ)
    await following.recover(other)
    assert not hook.exists()
    here = following.watch(other)
    assert here is not None
    await here.note()
    settled = await here.hold()
    assert "pre-commit was held back" in settled.notice
    await following.close_walls()
    await killed.close_walls()


@needs_bwrap
async def test_a_session_in_another_repository_judges_nothing(repository: Path, tmp_path: Path):
    environ = {"PATH": os.defpath, "HOME": str(tmp_path)}
    killed = program_sandbox(Settings(), environ)
    watch = killed.watch(repository)
    assert watch is not None
    await watch.note()
    (repository / "AGENTS.md").write_text("evil\n")
    for state in paths.user_data_dir().rglob("*.state"):
        state.rename(state.with_name("killed.state"))
    other = tmp_path.resolve() / "other"
    other.mkdir()
    following = program_sandbox(Settings(), environ)
    await following.recover(other)
    assert (repository / "AGENTS.md").exists()
    await following.recover(repository)
    assert not (repository / "AGENTS.md").exists()
    await following.close_walls()
    await killed.close_walls()
