import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agent_tui.features.sandbox.git_index import GitIndexes, names_are_safe
from agent_tui.features.sandbox.git_places import id_bytes_of
from tests.support.forged_index import entry, extension, index
from tests.support.rows import each_row

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="uses git")

_ID = bytes.fromhex("78981922613b2afb6025042ff6bd878ac1994e85")

_NAMES = [
    *("a", "a/b", ".gitignore", ".github/x", "a/.gitmodules", "git", "...", "a/..b", ".x", "git~2"),
    *("a ", "ü/é", "a\\b", "a\\..\\b", "x.git/y", ".git2", "b/.gitattributes", "a\\", ".gi/t"),
    *("../x", "/x", "a//b", "a/", "./x", "a/./b", "a/../b", "..", ".", ".git", ".git/hooks/x"),
    *("sub/.git/x", ".GIT/x", "a/.Git", "git~1", "GIT~1/x", ".git /x", ".git./x", ".git:x"),
    *("a\\.git\\x", "a\\git~1", ".git\\x", "b/.git. . /x", "a/..", "x/."),
]


@each_row("name", _NAMES)
def test_the_names_that_git_adds_to_an_index_are_safe(
    tmp_path_factory: pytest.TempPathFactory, name: str
):
    folder = tmp_path_factory.mktemp("names")
    _git(folder, "init", "-q")
    line = f"100644 {_ID.hex()}\t{name}\n".encode()
    _git(folder, "update-index", "--index-info", given=line)
    listed = _git(folder, "ls-files", "-z")
    assert (listed == os.fsencode(name) + b"\0") == names_are_safe([os.fsencode(name)])


@pytest.mark.parametrize("split", ["false", "true"])
@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("ids", ["sha1", "sha256"])
def test_every_index_that_git_writes_is_read(tmp_path: Path, version: str, split: str, ids: str):
    _git(tmp_path, "init", "-q", f"--object-format={ids}")
    for key, value in (("index.threads", "4"), ("index.version", version)):
        _git(tmp_path, "config", key, value)
    _git(tmp_path, "config", "core.splitIndex", split)
    names = [*(f"d{i % 7}/e/f{i}" for i in range(40)), "long" * 1_100]
    id = (_ID + bytes(12))[: 32 if ids == "sha256" else 20].hex()
    lines = "".join(f"100644 {id}\t{name}\n" for name in names) + f"160000 {id}\td1/sub\n"
    _git(tmp_path, "update-index", "--index-info", given=lines.encode())
    _git(tmp_path, "update-index", "--skip-worktree", "d3/e/f3")
    _git(tmp_path, "update-index", "--add", "--cacheinfo", f"160000,{id},new")
    git, indexes = tmp_path / ".git", GitIndexes()
    found = set(indexes.gitlinks_of(git / "index", id_bytes_of(git)))
    assert found == {b"d1/sub", b"new"}
    written = [git / "index", *git.glob("sharedindex.*")]
    assert all(indexes.read(file, id_bytes_of(git)).is_safe for file in written)


def test_a_file_that_becomes_a_repository_in_a_split_index_is_found(tmp_path: Path):
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "update-index", "--add", "--cacheinfo", f"100644,{_ID.hex()},sub")
    _git(tmp_path, "update-index", "--split-index")
    _git(tmp_path, "update-index", "--add", "--cacheinfo", f"160000,{_ID.hex()},sub")
    file = tmp_path / ".git/index"
    content = file.read_bytes()
    assert b"sub" not in content
    assert list(GitIndexes().gitlinks_of(file, 20)) == [b"sub"]


def test_the_names_of_folders_in_a_sparse_index_are_safe(tmp_path: Path):
    folder = entry(b"a/b/", _ID, mode=0o40000)
    assert _is_safe(tmp_path, index([folder], extension(b"sdir", b"")))
    assert not _is_safe(tmp_path, index([entry(b"a/b/", _ID)]))
    assert not _is_safe(tmp_path, index([entry(b"a/b//", _ID, mode=0o40000)]))


_A, _B = entry(b"a", _ID), entry(b"../x", _ID)
_HIDDEN = extension(b"XXXX", _B)
_AT_A = 12
_AT_END = _AT_A + len(_A)


def _table(*blocks: int) -> bytes:
    return extension(b"IEOT", b"".join(n.to_bytes(4, "big") for n in (1, *blocks)))


@each_row(
    "forged",
    [
        index([_B]),
        index([_A, _B]),
        index([_A], _HIDDEN + _table(_AT_END + 8, 1)),
        index([_A], _table(_AT_A, 2)),
        index([_A], extension(b"EOIE", (_AT_END + 8).to_bytes(4, "big") + bytes(20))),
        index([_A], extension(b"link", bytes(19))),
        index([_A], extension(b"link", b"a" * 20) + extension(b"link", bytes(20))),
        index([entry(b"", _ID)]),
        index([_A], extension(b"what", b"")),
        index([_A], b"XXXX"),
        index([entry(b"a/../../x", _ID, length=1)]),
        index([entry(b"a\0/../../x", _ID)]),
        index([_A], count=2),
        index([_A], version=5),
        index([_A], version=1),
        b"",
        b"DIRC",
    ],
)
def test_an_index_that_could_be_read_in_two_ways_is_not_safe(
    tmp_path_factory: pytest.TempPathFactory, forged: bytes
):
    assert not _is_safe(tmp_path_factory.mktemp("forged"), forged)


def test_a_name_that_is_put_together_from_two_is_not_safe(tmp_path: Path):
    def packed(cut: int, rest: bytes, length: int) -> bytes:
        return _A[:60] + length.to_bytes(2, "big") + bytes([cut]) + rest + b"\0"

    safe = [packed(0, b"..a", 3), packed(1, b"b", 3)]
    assert _is_safe(tmp_path, index(safe, version=4))
    assert not _is_safe(tmp_path, index([safe[0], packed(1, b"/x", 4)], version=4))
    assert not _is_safe(tmp_path, index([safe[0], packed(4, b"x", 1)], version=4))
    second = _AT_A + len(safe[0])  # a block of entries begins without the name before
    assert not _is_safe(tmp_path, index(safe, _table(_AT_A, 1, second, 1), version=4))
    whole = [safe[0], packed(3, b"b", 1)]
    assert _is_safe(tmp_path, index(whole, _table(_AT_A, 1, second, 1), version=4))


def test_the_length_of_ids_is_known_only_from_settings_as_git_writes_them(tmp_path: Path):
    git = tmp_path / ".git"
    _git(tmp_path, "init", "-q", "--object-format=sha256")
    assert id_bytes_of(git) == 32
    written = (git / "config").read_text()
    for added in ("\tobjectformat = sha1\n", '[extensions "x"]\n\tobjectFormat = sha1\n'):
        (git / "config").write_text(written + added)
        assert id_bytes_of(git) == 0
    (git / "config").write_text('[extensions "x"]\n\tobjectformat = sha256\n')
    assert id_bytes_of(git) == 0
    (git / "config").write_text("[core]\n")
    assert id_bytes_of(git) == 20


def _is_safe(folder: Path, content: bytes) -> bool:
    file = folder / "index"
    file.write_bytes(content)
    return GitIndexes().read(file, 20).is_safe


def _git(folder: Path, *words: str, given: bytes = b"") -> bytes:
    done = subprocess.run(["git", *words], cwd=folder, input=given, capture_output=True)
    return done.stdout
