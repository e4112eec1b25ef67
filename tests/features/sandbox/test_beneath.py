"""Files and folders that commands left in any state, moved and removed."""

import errno
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.features.sandbox import beneath
from agent_tui.features.sandbox.beneath import (
    folder_of,
    move_in,
    move_out,
    remove_files,
    remove_folder,
    replace_at,
    separate,
)

_DEPTH = 1_200
"""Folders in each other: more than Python calls functions in functions."""


@pytest.fixture(params=[False, True], ids=["same-disk", "another-disk"])
def is_elsewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether what is moved goes to another disk."""
    if request.param:
        for name in ("rename", "link"):
            monkeypatch.setattr(beneath.os, name, _on_one_disk(getattr(os, name)))
    return request.param


def _on_one_disk(call: Callable[..., None]) -> Callable[..., None]:
    """`call`, which fails for a path outside of an opened folder."""

    def refuse(source: str, target: str | Path, **more: object) -> None:
        if isinstance(target, Path):
            raise OSError(errno.EXDEV, "another disk")
        call(source, target, **more)

    return refuse


def _nest(folder: Path) -> None:
    for _ in range(_DEPTH):
        folder /= "d"
        folder.mkdir(parents=True)
    (folder / "file").touch()


def test_a_folder_is_removed_however_deep_or_closed(tmp_path: Path):
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o500)
    _nest(tmp_path / "top")
    (tmp_path / "top/a/b").mkdir(parents=True)
    (tmp_path / "top/a/b/link").symlink_to(kept)
    for closed in ("a/b", "a", "."):
        (tmp_path / "top" / closed).chmod(0)
    remove_folder(tmp_path / "top")
    assert list(tmp_path.iterdir()) == [kept]
    assert kept.stat().st_mode & 0o777 == 0o500


@pytest.mark.usefixtures("is_elsewhere")
def test_what_commands_closed_is_moved_out(tmp_path: Path):
    (tmp_path / "top/a/b").mkdir(parents=True)
    for name in ("a/b/file", "settings"):
        (tmp_path / "top" / name).write_text("x")
        (tmp_path / "top" / name).chmod(0)
    for closed in ("a/b", "a"):
        (tmp_path / "top" / closed).chmod(0)
    with folder_of(tmp_path / "top", (tmp_path,)) as folder:
        move_out(folder, "top", tmp_path / "aside")
    assert not (tmp_path / "top").exists()
    assert (tmp_path / "aside/settings").exists()


@pytest.mark.usefixtures("is_elsewhere")
def test_a_folder_of_any_depth_is_moved_out(tmp_path: Path):
    _nest(tmp_path / "top")
    (tmp_path / "top/tasks.json").write_text("x")
    with folder_of(tmp_path / "top", (tmp_path,)) as folder:
        move_out(folder, "top", tmp_path / "aside")
    assert (tmp_path / "aside/tasks.json").read_text() == "x"
    assert not (tmp_path / "top").exists()
    remove_folder(tmp_path / "aside")  # deeper than pytest can remove


@pytest.mark.usefixtures("is_elsewhere")
@pytest.mark.parametrize("is_link", [False, True])
def test_a_file_is_replaced_without_a_moment_in_which_there_is_none(
    tmp_path: Path, is_link: bool, monkeypatch: pytest.MonkeyPatch
):
    place, aside = tmp_path / "AGENTS.md", tmp_path / "aside"
    if is_link:
        place.symlink_to("/etc/hostname")
    else:
        place.write_text("evil")
    write, seen = beneath.write_at, list[bool]()

    def watch(*words: object) -> None:
        seen.append(os.path.lexists(place) and os.path.lexists(aside))
        write(*words)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(beneath, "write_at", watch)
    with folder_of(place, (tmp_path,)) as folder:
        replace_at(folder, place.name, b"mine", 0o640, aside)
    assert seen == [True]
    assert place.read_text() == "mine"
    assert place.stat().st_mode & 0o777 == 0o640
    assert aside.is_symlink() if is_link else aside.read_text() == "evil"


_ACCESS_LIST = struct.pack(
    "<I" + "HHI" * 5,
    *(2, 0x1, 6, 2**32 - 1),
    *(0x2, 4, 12_345),
    *(0x4, 0, 2**32 - 1),
    *(0x10, 4, 2**32 - 1),
    *(0x20, 0, 2**32 - 1),
)
"""As ``linux/posix_acl_xattr.h`` has it: user 12345 may read, the group and others may not."""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux has these attributes")
@pytest.mark.parametrize("way", ["replaced", "separated"])
def test_a_file_keeps_its_mode_attributes_and_access_list(
    is_elsewhere: bool, way: str, tmp_path: Path
):
    path = tmp_path / "notes"
    path.write_text("old")
    path.chmod(0o640)
    try:
        os.setxattr(path, "user.origin", b"mine")
        os.setxattr(path, "system.posix_acl_access", _ACCESS_LIST)
    except OSError as error:
        pytest.skip(f"this file system has no such attributes: {error}")
    os.utime(path, (1, 2))
    if way == "separated":
        os.link(str(path), str(tmp_path / "other"))
        assert separate(path, (tmp_path,))
        assert path.stat().st_mtime == 2
    else:
        with folder_of(path, (tmp_path,)) as folder:
            replace_at(folder, "notes", b"restored", 0o640, tmp_path / "aside")
        assert path.read_text() == "restored"
    assert path.stat().st_nlink == 1
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.getxattr(path, "user.origin") == b"mine"
    assert os.getxattr(path, "system.posix_acl_access") == _ACCESS_LIST


def test_a_folder_in_the_place_of_a_file_is_replaced(tmp_path: Path):
    (tmp_path / "AGENTS.md/x").mkdir(parents=True)
    with folder_of(tmp_path / "AGENTS.md", (tmp_path,)) as folder:
        replace_at(folder, "AGENTS.md", b"mine", 0o644, tmp_path / "aside")
    assert (tmp_path / "AGENTS.md").read_text() == "mine"
    assert (tmp_path / "aside/x").is_dir()


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


def test_files_go_and_links_stay_however_deep_and_closed(tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    top = tmp_path / "top"
    (top / "a/b").mkdir(parents=True)
    (top / "a/b/x").touch()
    (top / "a/b").chmod(0)
    (top / "c").mkdir()
    (top / "c/link").symlink_to(outside)
    (top / "c/file").touch()
    folder = os.open(top, os.O_RDONLY)
    for _ in range(_DEPTH):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    remove_files(top)
    assert [path.name for path in top.iterdir()] == ["c"]
    assert [path.name for path in (top / "c").iterdir()] == ["link"]
    assert (outside / "kept").exists()
