import os

import pytest

from agent_tui.cli.folders import worktree_records
from agent_tui.events import Notice
from agent_tui.features.helpers.worktrees import Worktrees
from tests.features.helpers.test_worktrees import git
from tests.features.tree.test_branches import moved, speaking, spoken
from tests.support.runtime import Stage, of_kind
from tests.support.tool_calls import KEEPER


@pytest.mark.parametrize(
    ("is_deleted", "said"),
    [
        (False, "was removed; its branch stays. To continue in that branch: "),
        (True, "was removed with its branch. To continue in a new one: "),
    ],
)
async def test_the_way_back_to_a_removed_worktree_is_said(
    stage: Stage, is_deleted: bool, said: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGENT_TUI_HOME", str(stage.folder / "home"))
    top = stage.workspace.resolve()
    for words in (
        ("init", "-q", "-b", "main", "--template="),
        ("commit", "-q", "--allow-empty", "-m", "one"),
    ):
        git(top, *words)
    trees = Worktrees(KEEPER, {"PATH": os.environ["PATH"]}, worktree_records())
    worktree, lock = await trees.create(top, "fix")
    lock.release()
    ref = moved(stage, await spoken(stage, "one"), worktree.path / "sub")
    git(top, "worktree", "remove", str(worktree.path))
    if is_deleted:
        git(top, "branch", "-d", "fix")
    other = stage.runtime(speaking)
    look = await other.sessions.status(ref)
    assert look.cwd is not None
    told_before = await other.sessions.how_to_return(look.cwd, look.id)
    gone, way = (one.text for one in of_kind(list(await other.sessions.open(ref)), Notice))
    assert f"is gone; working in {stage.workspace}" in gone
    session = other.conversation.log.header.id[:8]
    assert said in way
    assert way == told_before
    assert way.endswith(f"cd {top} && agent-tui --worktree fix -r {session}")
