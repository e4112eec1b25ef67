"""The files of a folder, without those that git ignores, and what globs mean."""

import os
from pathlib import Path

import pytest

from agent_tui.features.file_search.globs import glob_spec
from agent_tui.tools.files.walk import relative_files
from tests.support.rows import each_row


def test_project_files_are_relative_sorted_and_pruned(project: Path):
    assert list(relative_files(project, 100)) == [
        ".env",
        ".github/ci.yml",
        ".gitignore",
        "data.bin",
        "docs/guide.md",
        "keep.log",
        "src/.gitignore",
        "src/app.py",
        "src/app_test.py",
    ]
    assert list(relative_files(project, 2)) == [".env", ".github/ci.yml"]


@pytest.mark.parametrize("broken", ["[z-a]", "\\"])
def test_a_broken_line_of_an_ignore_file_leaves_the_others(tmp_path: Path, broken: str):
    (tmp_path / ".gitignore").write_text(f"*.log\n{broken}\n*.tmp\n")
    for name in ("a.py", "b.log", "c.tmp"):
        (tmp_path / name).touch()
    assert list(relative_files(tmp_path, 10)) == [".gitignore", "a.py"]


def test_an_ignore_file_that_is_a_pipe_does_not_hang_the_walk(tmp_path: Path):
    os.mkfifo(tmp_path / ".gitignore")
    (tmp_path / "a").touch()
    assert "a" in relative_files(tmp_path, 10)


def test_a_link_to_a_folder_above_is_not_followed(tmp_path: Path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "up").symlink_to(tmp_path)
    assert list(relative_files(tmp_path, 10)) == ["sub/up"]


@each_row(
    ("glob", "name", "matches"),
    [
        ("*.py", "a/b.py", True),
        ("a/*.py", "a/b.py", True),
        ("a/*.py", "c/a/b.py", False),
        ("{a,b}/*.{py,md}", "b/x.md", True),
        ("!important", "!important", True),
        ("#x", "#x", True),
    ],
)
def test_globs_mean_what_they_mean_in_a_gitignore(glob: str, name: str, matches: bool):
    assert glob_spec(glob).match_file(name) is matches
