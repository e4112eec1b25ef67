"""What the commit of a line says about the change that made it."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from agent_tui.features.why.line_history.file_sessions import FileSessions
from agent_tui.features.why.line_history.project import read_file_history
from agent_tui.features.why.line_history.why import LinePlace, explain_lines
from agent_tui.tools.git.blame import Blame
from agent_tui.tools.processes.keeper import ProcessKeeper
from tests.support.edited_file import EARLIER, EditedFile, Line


@pytest.mark.parametrize(
    ("committed", "status"), [("2020-01-01", "earlier"), ("2026-06-01", "ambiguous")]
)
def test_a_change_after_the_commit_of_a_line_did_not_make_it(
    tmp_path: Path, committed: str, status: str
):
    """Even if no session has what the file was before a call wrote all of it."""
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    who = {
        f"GIT_{role}_{fact}": "a" for role in ("AUTHOR", "COMMITTER") for fact in ("NAME", "EMAIL")
    }
    environ = {
        "PATH": os.defpath,
        "HOME": str(tmp_path),
        "GIT_COMMITTER_DATE": f"{committed}T00:00Z",
    }
    for words in ("init -q", "add .", "commit -qm Begin"):
        argv = ["git", *words.split()]
        subprocess.run(argv, cwd=tmp_path, env=environ | who, check=True)
    file = EditedFile([Line("one", EARLIER), Line("two", EARLIER)], str(path), "words")
    file.writes_whole = True
    file.replace(1, 2, ["three"])
    path.write_text(file.text)
    history = read_file_history(FileSessions(None, file.known), path)
    blame = Blame(ProcessKeeper(), path, environ)
    (answer,) = asyncio.run(explain_lines(history, LinePlace(path, 1, 1), file.text, blame))
    assert answer.status == status
