"""Whether what is at a path is still what the wall covers."""

import gc
import resource
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from agent_tui.features.sandbox.change_authors import ChangeAuthors


def _is_open(file: Path) -> bool:
    gc.collect()
    with suppress(FileNotFoundError):  # the list itself is closed by then
        return any(each.readlink() == file for each in Path("/proc/self/fd").iterdir())
    return False


def test_only_the_user_changes_what_is_covered(tmp_path: Path):
    file, authors = tmp_path / "mise.toml", ChangeAuthors()
    file.write_text("1")
    authors.note([file])
    file.write_text("2")
    assert authors.author_of(file, "commands") == "user"
    assert authors.author_of(tmp_path / "other", "commands") == "commands"


def test_a_file_that_gets_the_inode_of_a_covered_one_is_not_covered(tmp_path: Path):
    file, new, authors = tmp_path / "mise.toml", tmp_path / "new", ChangeAuthors()
    for _ in range(20):
        file.write_text("1")
        authors.note([file])
        for content in "23":  # the second new file often has the first one's inode
            new.write_text(content)
            new.rename(file)
        assert authors.author_of(file, "commands") == "either"
        file.unlink()


def test_a_folder_that_gets_the_inode_of_a_covered_one_is_not_covered(tmp_path: Path):
    folder, authors = tmp_path / ".vscode", ChangeAuthors()
    for _ in range(20):
        folder.mkdir()
        authors.note([folder])
        folder.rmdir()
        folder.mkdir()
        assert authors.author_of(folder / "tasks.json", "commands") == "either"
        shutil.rmtree(folder)


def test_more_files_than_may_be_open_can_be_by_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file, authors = tmp_path / "mise.toml", ChangeAuthors()
    file.write_text("1")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2, 2))
    authors.note([file])
    assert not _is_open(file)
    assert authors.author_of(file, "commands") == "either"


@pytest.mark.parametrize("is_released", [True, False])
def test_nothing_stays_open(tmp_path: Path, is_released: bool):
    file, authors = tmp_path / "mise.toml", ChangeAuthors()
    file.write_text("1")
    authors.note([file])
    authors.note([file])
    assert _is_open(file)
    if is_released:
        authors.release()
    else:
        del authors
    assert not _is_open(file)
