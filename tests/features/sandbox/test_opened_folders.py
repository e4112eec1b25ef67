"""Folders that are opened for a moment have the modes of their owner back."""

from pathlib import Path

from agent_tui.features.sandbox.opened_folders import OpenedFolders


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_mode_that_was_set_meanwhile_stays(tmp_path: Path):
    folders = OpenedFolders([tmp_path])
    a, b, moved, kept = (tmp_path / name for name in ("a", "b", "moved", "kept"))
    for folder in (a, b, moved, kept):
        folder.mkdir(mode=0o311)
        folders.open(folder, for_good=folder == kept)
    assert {_mode(folder) for folder in (a, b, moved, kept)} == {0o711}
    b.chmod(0o755)
    moved.rename(tmp_path / "elsewhere")
    moved.mkdir(mode=0o711)
    folders.close()
    assert [_mode(folder) for folder in (a, b, moved, kept)] == [0o311, 0o755, 0o711, 0o711]
    a.chmod(0o700)


def test_a_link_in_the_place_of_a_folder_opens_nothing(tmp_path: Path):
    target = tmp_path / "elsewhere"
    target.mkdir(mode=0o311)
    (tmp_path / "proj").mkdir()
    (tmp_path / "proj/link").symlink_to(target)
    folders = OpenedFolders([tmp_path / "proj"])
    for path in (tmp_path / "proj/link", tmp_path / "proj/link/x"):
        folders.open(path, for_good=True)
    assert _mode(target) == 0o311
    target.chmod(0o700)
