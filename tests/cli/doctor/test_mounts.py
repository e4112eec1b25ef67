from pathlib import Path

import pytest

from agent_tui.cli.doctor.folders import FileSystem, file_system

MOUNTS = """\
22 27 0:21 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /home rw,relatime - nfs4 server:/home rw
31 22 0:41 / /home/me rw,relatime - ext4 /dev/vdb rw
32 22 0:42 / /a\\040b rw,relatime master:1 propagate_from:2 - tmpfs tmpfs rw
33 22 0:43 / /home/me rw,relatime - tmpfs tmpfs rw
garbage
"""


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("/etc", FileSystem(Path("/"), "ext4")),
        ("/home/you", FileSystem(Path("/home"), "nfs4")),
        ("/homely", FileSystem(Path("/"), "ext4")),
        ("/home/me/x", FileSystem(Path("/home/me"), "tmpfs")),
        ("/a b/c", FileSystem(Path("/a b"), "tmpfs")),
    ],
)
def test_the_nearest_mount_counts_and_of_two_in_one_place_the_later(tmp_path, folder, expected):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert file_system(Path(folder), mounts) == expected


def test_without_that_file_nothing_is_known(tmp_path):
    assert file_system(Path("/home"), tmp_path / "none") == FileSystem(Path("/"), "")
