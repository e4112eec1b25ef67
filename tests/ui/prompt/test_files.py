import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from agent_tui.tools.files.walk import relative_files
from agent_tui.ui.prompt.completion import entries_outside, leads_outside
from agent_tui.ui.prompt.file_index import FileIndex
from agent_tui.ui.prompt.ranking import PathCatalog, rank_paths
from tests.support.rows import each_row

FILES = (
    "README.md",
    "src/app.py",
    "src/application/main.py",
    "tests/test_app.py",
    "docs/app.md",
    ".env",
    ".github/workflows/ci.yml",
)
CATALOG = PathCatalog.of(FILES)


async def answers(index: FileIndex, typed: str) -> list[tuple[str, ...]]:
    return [found async for found in index.answers(typed, 5)]


@each_row(
    ("typed", "best"),
    [
        ("app", ("src/app.py", "docs/app.md", "src/application/")),
        ("src/ap", ("src/app.py", "src/application/")),
        ("test_a", ("tests/test_app.py",)),
        ("pplic", ("src/application/",)),
        ("smain", ("src/application/main.py",)),
        ("redame", ("README.md",)),
        ("", ("docs/", "README.md", "src/")),
        (".e", (".env",)),
        (".github/c", (".github/workflows/ci.yml",)),
    ],
)
def test_what_is_meant_comes_first(typed: str, best: tuple[str, ...]):
    assert rank_paths(CATALOG, typed, 3)[: len(best)] == best


def test_hidden_files_are_there_only_when_asked_for():
    assert not [path for path in rank_paths(CATALOG, "", 50) if path.startswith(".")]
    assert rank_paths(CATALOG, "ci.yml", 50) == ()
    assert ".github/" in rank_paths(CATALOG, ".", 50)


def test_what_builds_fill_comes_last():
    catalog = PathCatalog.of(["__pycache__/main.pyc", "node_modules/a/main.js", "src/a/b/main.py"])
    assert rank_paths(catalog, "main", 3)[0] == "src/a/b/main.py"
    assert rank_paths(catalog, "", 9)[-1] == "node_modules/a/main.js"
    assert rank_paths(catalog, "pycache", 1) == ("__pycache__/",)


def test_names_nobody_can_write_are_left_out():
    catalog = PathCatalog.of(["a\udcff.py", "new\nline.py", 'quo"te.py', "größe 日本.py"])
    assert rank_paths(catalog, "", 9) == ("größe 日本.py",)


def test_a_name_in_two_unicode_forms_is_one():
    assert rank_paths(PathCatalog.of(["cafe\u0301.md"]), "café", 3) == ("cafe\u0301.md",)


def test_a_search_nobody_waits_for_any_more_ends():
    assert rank_paths(CATALOG, "smain", 3, lambda: False) == ()


async def test_an_old_list_is_shown_at_once_and_the_new_one_behind_it(tmp_path: Path):
    now, listings = [0.0], [["a.py"], ["a.py", "b.py"]]
    index = FileIndex(lambda: tmp_path, lambda _root, _limit: listings.pop(0), lambda: now[0])
    assert await answers(index, "") == [("a.py",)]
    assert await answers(index, "") == [("a.py",)]
    now[0] = 60.0
    assert await answers(index, "") == [("a.py",), ("a.py", "b.py")]
    assert listings == []


async def test_a_name_that_is_in_no_path_is_looked_for_anew(tmp_path: Path):
    now, listings = [0.0], [["a.py"], ["a.py", "fresh.py"], ["a.py", "fresh.py"]]
    index = FileIndex(lambda: tmp_path, lambda _root, _limit: listings.pop(0), lambda: now[0])
    assert await answers(index, "a") == [("a.py",)]
    assert await answers(index, "fresh") == [()]
    now[0] = 1.5
    assert await answers(index, "fresh") == [(), ("fresh.py",)]
    assert await answers(index, "gone") == [()]


async def test_another_folder_has_other_files(tmp_path: Path):
    roots = [Path("one")]
    index = FileIndex(lambda: roots[0], lambda root, _limit: [f"{root}.py"], lambda: 0.0)
    assert await answers(index, "") == [("one.py",)]
    roots[0] = Path("two")
    assert await answers(index, "") == [("two.py",)]


async def test_a_folder_that_cannot_be_read_offers_nothing(tmp_path: Path):
    def refuse(_root: object, _limit: int) -> Iterable[str]:
        raise PermissionError(13, "Permission denied")

    assert await answers(FileIndex(lambda: tmp_path, refuse, lambda: 0.0), "a") == [()]


async def test_ignored_files_and_loops_of_links_are_not_offered(tmp_path: Path):
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "src").mkdir()
    for name in ("node_modules/m.js", "src/m.py", "src/m.log", "src/keep.log"):
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text("node_modules/\n*.log\n")
    (tmp_path / "src/.gitignore").write_text("!keep.log\n")
    (tmp_path / "src/up").symlink_to("..")
    index = FileIndex(lambda: tmp_path, relative_files, lambda: 0.0)
    assert await answers(index, "") == [("src/", "src/keep.log", "src/m.py", "src/up")]


def test_paths_from_the_root_from_home_and_from_above_are_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "notes").mkdir()
    (tmp_path / ".profile").touch()
    os.mkfifo(tmp_path / "notes" / "pipe")
    assert entries_outside("~/no", tmp_path, 5) == ("~/notes/",)
    assert entries_outside("~/", tmp_path, 5) == ("~/notes/",)
    assert entries_outside("~/.", tmp_path, 5) == ("~/.profile",)
    assert entries_outside(f"{tmp_path}/not", tmp_path, 5) == (f"{tmp_path}/notes/",)
    assert entries_outside("../no", tmp_path / "notes", 5) == ("../notes/",)
    assert entries_outside("~nobody-known/", tmp_path, 5) == ()
    assert [leads_outside(typed) for typed in ("/", "~", "../a", "a/b", "")] == [True] * 3 + [
        False,
        False,
    ]
