"""``agent-tui compact`` asks git about the session's folder, unless another agent's log is read."""

import os
from pathlib import Path

import pytest

from agent_tui.sessions.entries import CompactionEntry, Header
from agent_tui.sessions.importers.import_session import import_session
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from agent_tui.tools.git import repositories
from tests.features.compact_file.scene import as_json
from tests.sessions.importers import claude_lines
from tests.support.talk import Talk
from tests.tools.test_repository import sh

pytestmark = pytest.mark.skipif(os.name != "posix", reason="uses a POSIX shell and git")

WORDS = "x y z " * 400
AS_LOGGED = "- [x] commit 1234567, as of the log: Old"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(repositories, "PATIENCE_S", 100)
    folder = tmp_path / "project"
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_TEMPLATE_DIR": ""}
    identity = "git config user.name A; git config user.email a@b;"
    sh(f"git init -q -b main; {identity} git commit -qm before --allow-empty", folder, environ)
    return folder


def own_session(folder: Path, cwd: Path) -> Path:
    talk = Talk(cwd=str(cwd))
    for number in range(8):
        talk.user(f"{number}: {WORDS}")
        talk.bash("git commit -qm Old", "[main 1234567] Old")
        talk.reply(WORDS)
    with SessionStore(folder, "none").create(
        Header(cwd=str(cwd), provider="p", model_id="m")
    ) as log:
        log.append_many(talk.path)
        assert log.path is not None
        return log.path


def compacted(capsys: pytest.CaptureFixture[str], file: Path) -> tuple[str, CompactionEntry]:
    made = as_json(capsys, str(file), "--model", "none", "--window", "16000")
    with SessionLog.open(Path(made["path"]), read_only=True) as child:
        entry = child.path_entries()[0]
    assert isinstance(entry, CompactionEntry)
    return made["summary"], entry


def test_a_session_of_ours_is_told_what_git_says_now(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, repository: Path
) -> None:
    summary, entry = compacted(capsys, own_session(tmp_path / "sessions", repository))
    (state,) = entry.details.repositories
    assert f"- git: branch main, HEAD {state.head}\n- uncommitted: nothing" in summary
    assert "1234567" not in summary.partition("<work-state>")[2].partition("</work-state>")[0]


def test_a_session_whose_folder_is_gone_is_told_what_the_log_says(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    summary, entry = compacted(capsys, own_session(tmp_path / "sessions", tmp_path / "gone"))
    assert entry.details.repositories == ()
    assert AS_LOGGED in summary


@pytest.mark.parametrize("is_imported", [False, True])
def test_git_says_nothing_about_a_session_of_another_agent(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, repository: Path, is_imported: bool
) -> None:
    talk = [claude_lines.said("u0", None, WORDS, cwd=str(repository))]
    for number in range(8):
        parent, text = str(talk[-1]["uuid"]), claude_lines.text(WORDS)
        talk.append(claude_lines.replied(f"a{number}", parent, text))
        talk.append(claude_lines.said(f"u{number + 1}", f"a{number}", WORDS))
    file = claude_lines.write(tmp_path / "run", *talk)
    if is_imported:
        file = import_session(SessionStore(tmp_path / "own", "none"), file, cwd=repository).path
    _, entry = compacted(capsys, file)
    assert entry.details.repositories == ()
