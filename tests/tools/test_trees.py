"""States of work trees that are recorded while the user's repository stays as it is."""

import os
from pathlib import Path

import pytest

from agent_tui.tools.git import trees
from agent_tui.tools.git.status import read_work_tree
from agent_tui.tools.git.trees import WorkTrees
from tests.support.git_repository import age_files, git, state_of_files
from tests.support.tool_calls import KEEPER


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with a commit in a pack and one beside it."""
    folder = tmp_path.resolve() / "top"
    (folder / "sub").mkdir(parents=True)
    git(folder, "init", "-q", "--template=")
    for name in ("a", "sub/b", "sub/c"):
        (folder / name).write_text(f"{name}\n")
        git(folder, "add", name)
        git(folder, "commit", "-qm", name)
        if name == "sub/b":
            git(folder, "gc", "-q")
    age_files(folder / ".git")
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize("few", [0, 500])
async def test_looks_leave_the_repository_as_it_is(
    root: Path, monkeypatch: pytest.MonkeyPatch, few: int
):
    monkeypatch.setattr(trees, "MOST_CHANGES", few)
    monkeypatch.setattr(trees, "_SAME_MOMENT_NS", 0)
    before, looks = state_of_files(root / ".git"), WorkTrees(KEEPER)
    environ = dict(os.environ)
    first = await looks.look(root, environ)
    assert first is not None
    committed = git(root, "ls-tree", "-r", "--format=%(objectname) %(path)", "HEAD").splitlines()
    assert [
        f"{id} {os.fsdecode(name)}" for name, (_, id) in sorted(first.files.items())
    ] == committed
    (root / "a").unlink()
    (root / "a").mkdir()
    (root / "a/in").write_bytes(b"new\r\n")
    (root / "sub/b").unlink()
    (root / "sub/b").symlink_to("c")
    (root / "sub/c").chmod(0o755)
    closed = root / "closed"
    closed.symlink_to(closed)
    second = await looks.look(root, environ)
    assert second is not None
    monkeypatch.setattr(trees, "MOST_CHANGES", 500)
    changes = {one.name: one for one in looks.changes(first, second)}
    modes = {name: (one.before_mode, one.after_mode) for name, one in changes.items()}
    assert modes == {
        "a": (trees.FILE, 0),
        "a/in": (0, trees.FILE),
        "closed": (0, trees.LINK),
        "sub/b": (trees.FILE, trees.LINK),
        "sub/c": (trees.FILE, trees.PROGRAM),
    }
    ids = [one.before_id or one.after_id for one in changes.values()]
    contents = await looks.contents(root, ids)
    assert {contents[id] for id in ids} == {
        *(b"a\n", b"sub/b\n", b"sub/c\n", b"new\r\n"),
        os.fsencode(closed),
    }
    await read_work_tree(KEEPER, root, environ)
    assert state_of_files(root / ".git") == before


def test_a_folder_that_became_a_link_is_not_followed(tmp_path: Path):
    """Git lists what the index has; the folder leads elsewhere by now."""
    root = tmp_path.resolve()
    for folder in ("sub", "else"):
        (root / folder).mkdir()
        (root / folder / "b").write_text("secret\n")
    (root / "a").touch()
    assert trees._read_files(root, [b"a", b"sub/b"], "0" * 40).keys() == {b"a", b"sub/b"}
    (root / "sub").rename(root / "was")
    (root / "sub").symlink_to("else")
    assert trees._read_files(root, [b"a", b"sub/b"], "0" * 40).keys() == {b"a"}
