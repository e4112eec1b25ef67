"""Which files a word of a command may mean."""

from pathlib import Path

import pytest

from agent_tui.permissions.named_paths import (
    PathResolver,
    secret_a_pattern_takes_in,
    secret_below,
)
from agent_tui.permissions.protected_paths import ProtectedPaths
from agent_tui.permissions.shell.parts import split_command
from agent_tui.permissions.shell.words import Word
from tests.support.rows import each_row


def _word(text: str) -> Word:
    return split_command(f"x {text}").commands[0].words[1]


def _paths(workspace: Path) -> ProtectedPaths:
    return ProtectedPaths(workspace=workspace, git_risk=lambda _folder: "")


def _named(base: Path, text: str) -> list[str]:
    return [
        str(path).removeprefix(f"{base}/") for path in PathResolver().resolve(base, _word(text))
    ]


@pytest.mark.parametrize(
    ("word", "named"),
    [
        ("a", ["a"]),
        ("./a/../b", ["b", "a/../b"]),
        ("of=a", ["of=a", "a"]),
        ("-oa", ["-oa", "a"]),
        ("-o", ["-o"]),
        ("HEAD:a", ["HEAD:a", "a", "HEAD"]),
        ("a:b:c", ["a:b:c", "c", "a"]),
        ("/etc/x", ["/etc/x"]),
        ("/dev/stdin", ["/dev/stdin"]),
        ("/dev/fd/3", ["/dev/fd/3"]),
        ("$x", []),
        ("'*.py'", ["*.py"]),
    ],
)
def test_a_word_names_the_file_it_is_or_holds(tmp_path: Path, word: str, named: list[str]):
    assert _named(tmp_path, word) == named


def test_a_link_is_named_with_what_it_leads_to(tmp_path: Path):
    (tmp_path / "a").touch()
    (tmp_path / "link").symlink_to("a")
    assert _named(tmp_path, "link") == ["a", "link"]


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert [str(path) for path in PathResolver().resolve(Path("/ws"), _word("~/a"))] == [
        f"{tmp_path}/a"
    ]


def test_a_pattern_names_the_files_a_shell_would_put_there(tmp_path: Path):
    for name in ("a.py", "b.py", ".c.py", "d.txt", "sub/e.py", "sub/f/g.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert sorted(_named(tmp_path, "*.py")[1:]) == ["a.py", "b.py"]
    assert sorted(_named(tmp_path, "[ab].py")[1:]) == ["a.py", "b.py"]
    assert _named(tmp_path, "[!a].py")[1:] == ["b.py"]
    assert _named(tmp_path, "[^a].py")[1:] == ["b.py"]
    assert _named(tmp_path, ".?.py")[1:] == [".c.py"]
    assert sorted(_named(tmp_path, "*/*.py")[1:]) == ["sub/e.py"]
    assert _named(tmp_path, "**/g.py")[1:] == []
    assert _named(tmp_path, "*/f/g.py")[1:] == ["sub/f/g.py"]
    assert _named(tmp_path, "*/none")[1:] == []
    assert sorted(_named(tmp_path, "[[:alpha:]].py")[1:]) == ["a.py", "b.py"]
    assert _named(tmp_path, f"{tmp_path}/d.*")[1:] == ["d.txt"]


def test_more_patterns_than_a_bound_are_said_to_be_too_many(tmp_path: Path):
    resolver = PathResolver()
    for number in range(300):
        resolver.resolve(tmp_path, _word(f"a{number}*"))
    assert not resolver.is_exhausted
    for _ in range(5):
        resolver.resolve(tmp_path, _word("a0*"))  # known already
    assert not resolver.is_exhausted
    resolver.resolve(tmp_path, _word("b*"))
    assert resolver.is_exhausted


@each_row(
    ("word", "takes_in_one"),
    [
        (".e*", True),
        ("*.pem", True),
        ("sub/.e??", True),
        ("id_*", True),
        (".s*/x", True),
        ("*", False),
        ("*.py", False),
        ("*.json", False),
        (".env", False),
        ("$x", False),
    ],
)
def test_a_pattern_that_would_take_in_a_secret_is_told(word: str, takes_in_one: bool):
    found = secret_a_pattern_takes_in(_word(word), _paths(Path("/ws")))
    assert bool(found) is takes_in_one


def test_a_secret_below_a_folder_is_found_where_a_search_would_go(tmp_path: Path):
    paths = _paths(tmp_path)
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "x.pem").touch()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "x.pem").touch()
    assert secret_below(tmp_path, paths, hidden=False) is None
    assert secret_below(tmp_path, paths, hidden=True) == tmp_path / ".hidden" / "x.pem"
    (tmp_path / "a" / "b" / "x.pem").touch()
    assert secret_below(tmp_path, paths, hidden=False) == tmp_path / "a" / "b" / "x.pem"
    assert secret_below(tmp_path / "missing", paths, hidden=True) is None
