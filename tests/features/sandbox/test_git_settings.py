import shutil
import subprocess
from pathlib import Path

import pytest

from agent_tui.features.sandbox.git_repository import GitRepository
from agent_tui.tools.git.named_files import is_followed
from agent_tui.tools.git.settings import find_named_paths
from agent_tui.tools.git.user_settings import read_user_settings, user_files
from tests.support.rows import each_row


@pytest.mark.skipif(shutil.which("git") is None, reason="uses git")
@each_row(
    "content",
    [
        b"[include]\n\tpath = a/b\n",
        b"\xef\xbb\xbf[include]\n\tpath = a/b\n",
        b"[include]\n\tpath = a/\\\nb\n",
        b'[include]\n\tpath = "a#/\\\nb"\\\nc ; d\n',
        b"[include]\r\n\tpath = a/\\\r\nb\r\n",
        b"[include]\n\t# one \\\n\tpath = a ; two \\\n\tpath = b\n",
        b'[include]\n\tpath = "a\\\\"\n\tpath = b\n',
        b"[include]path=a/b\n",
    ],
)
def test_paths_in_settings_are_read_as_git_reads_them(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
):
    file = tmp_path_factory.mktemp("settings") / "config"
    file.write_bytes(content)
    words = ("git", "config", "--no-includes", "-z", "-f", file, "--get-all", "include.path")
    said = subprocess.run(words, check=True, capture_output=True).stdout.decode()
    expected = said.split("\0")[:-1]
    assert expected
    assert [value for value, _ in find_named_paths(file)] == expected


@each_row("value", ["", '""', "\\\n", "# none"])
def test_an_empty_path_names_no_template_and_no_hooks(
    tmp_path_factory: pytest.TempPathFactory, value: str
):
    home = tmp_path_factory.mktemp("home")
    settings = f"[init]\n\ttemplateDir = {value}\n[core]\n\thooksPath = {value}\n"
    (home / ".gitconfig").write_text(settings)
    users = read_user_settings(user_files(home), home)
    assert (users.templates, users.hooks) == (frozenset(), ())
    git = home / "work" / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text(settings)
    (git.parent / "pre-commit").touch()
    assert not is_followed(git.parent / "pre-commit", home)
    assert set(GitRepository(git).covers) <= {git / "config"}


def test_a_path_in_settings_is_followed_wherever_a_line_ends(tmp_path: Path):
    named = tmp_path / "dotfiles" / "local"
    (tmp_path / ".gitconfig").write_text("\ufeff[include]\n\tpath = ~/dot\\\nfiles/local\n")
    assert is_followed(named, tmp_path)


@each_row(
    "command",
    ["a\0b tools/x", "'" * 99_999, "\\" * 9_999, "a " * 50_000, "x -m " + "a." * 5_000],
)
def test_a_command_that_nobody_writes_names_few_files_and_breaks_nothing(
    tmp_path_factory: pytest.TempPathFactory, command: str
):
    top = tmp_path_factory.mktemp("top")
    (top / ".git").mkdir()
    (top / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (top / ".git/config").write_text(f"[core]\n\tpager = {command}\n")
    assert is_followed(top / "tools/x", top) == ("tools/x" in command)
    assert len(set(GitRepository(top / ".git").covers)) < 1_000
