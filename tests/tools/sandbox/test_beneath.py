import errno
import os
from pathlib import Path

import pytest

from agent_tui.tools.sandbox.beneath import folder_of, move_in


@pytest.mark.parametrize("is_other_disk", [False, True])
def test_a_folder_moves_in_with_its_modes_and_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_other_disk: bool
):
    (tmp_path / "copy/trees/w").mkdir(parents=True)
    (tmp_path / "copy/trees/w/run").write_text("x")
    (tmp_path / "copy/trees/w/run").chmod(0o755)
    (tmp_path / "copy/trees/link").symlink_to("/etc")
    (tmp_path / "proj/.claude").mkdir(parents=True)
    if is_other_disk:

        def refuse(*_words: object, **_folders: object) -> None:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

        monkeypatch.setattr(os, "rename", refuse)
    place = tmp_path / "proj/.claude/trees"
    with folder_of(tmp_path / "copy/trees", [tmp_path / "copy"]) as folder:
        move_in(folder, "trees", place, [tmp_path / "proj"])
    assert (place / "w/run").stat().st_mode & 0o777 == 0o755
    assert (place / "link").readlink() == Path("/etc")
    assert not (tmp_path / "copy/trees").exists()


def test_nothing_moves_in_through_a_link(tmp_path: Path):
    (tmp_path / "copy/trees").mkdir(parents=True)
    (tmp_path / "proj").mkdir()
    (tmp_path / "proj/.claude").symlink_to(tmp_path)
    refused = pytest.raises(OSError, match="directory")
    with folder_of(tmp_path / "copy/trees", [tmp_path / "copy"]) as folder, refused:
        move_in(folder, "trees", tmp_path / "proj/.claude/trees", [tmp_path / "proj"])
    assert (tmp_path / "copy/trees").exists()
    assert not (tmp_path / "trees").exists()
