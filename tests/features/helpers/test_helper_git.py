from pathlib import Path

import pytest

from agent_tui.features.helpers import helper_git


def test_a_link_that_replaces_a_folder_meanwhile_brings_a_helper_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    outside, top, worktree = (tmp_path / name for name in ("outside", "top", "worktree"))
    for folder in (outside, top / "sub", worktree):
        folder.mkdir(parents=True)
        (folder / "file").write_text(f"{folder.name}\n")
    is_reached = helper_git._is_reached  # pyright: ignore[reportPrivateUsage]

    def swap(file: Path, folder: Path) -> bool:
        if file.name == "file" and not (top / "sub").is_symlink():
            (top / "sub").rename(top / "was")
            (top / "sub").symlink_to(outside)
        return is_reached(file, folder)

    monkeypatch.setattr(helper_git, "_is_reached", swap)
    with pytest.raises(OSError, match="sub"):
        helper_git._copy(top, worktree, ["sub/file"])  # pyright: ignore[reportPrivateUsage]
    assert not (worktree / "sub/file").exists()


def test_a_copy_for_a_helper_keeps_mode_and_time(tmp_path: Path):
    top, worktree = tmp_path / "top", tmp_path / "worktree"
    for folder in (top, worktree):
        folder.mkdir()
    (top / "tool").write_text("x")
    (top / "tool").chmod(0o750)
    (top / "link").symlink_to("tool")
    helper_git._copy(top, worktree, ["tool", "link"])  # pyright: ignore[reportPrivateUsage]
    before, after = (top / "tool").stat(), (worktree / "tool").stat()
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    assert (worktree / "link").readlink() == Path("tool")
