import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agent_tui
from agent_tui.safe_paths import (
    distrust_programs_around,
    follow_links,
    follow_shown,
    is_file,
    is_folder,
    is_link,
    is_trusted,
    path_exists,
    path_from,
    real_path,
    resolve_path,
    show_name,
    trace_links,
)
from tests.support.odd_texts import ODD_TEXTS
from tests.support.rows import each_row

_ANY_TEXT = st.text(st.characters(codec=None), max_size=300)


def _outcome(resolve: Callable[[], Path | str]) -> str:
    """The absolute path, or what the system says of the name."""
    try:
        path = resolve()
    except OSError as error:
        return error.strerror or ""
    return str(path) if Path(path).is_absolute() else ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "file").write_text("x")
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("sub")
    return tmp_path


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS)
def test_no_name_breaks_a_look_at_it(folder: Path, text: str):
    path = folder / text
    assert not is_file(path)
    assert is_link(path) == (text == "circle")
    assert path_exists(path) == is_folder(path) == (text == "")


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS)
def test_a_name_that_no_file_can_have_is_an_error_of_the_system(folder: Path, text: str):
    for resolve in (lambda: resolve_path(text, folder), lambda: follow_links(f"{folder}/{text}")):
        assert _outcome(resolve)


@given(_ANY_TEXT)
def test_any_text_is_a_path_or_an_error_of_the_system(text: str):
    folder = Path("/nowhere")
    assert not is_file(folder / text)
    assert _outcome(lambda: resolve_path(text, folder))
    assert _outcome(lambda: follow_links(f"/nowhere/{text}"))


def test_what_is_there_is_found_through_links(folder: Path):
    assert is_file(folder / "file")
    assert path_exists(folder / "file")
    assert is_folder(folder / "link")
    assert is_link(folder / "link")
    assert resolve_path("link/../file", folder) == folder / "file"
    assert follow_links(f"{folder}/link/x") == f"{folder}/sub/x"


def test_a_link_that_leads_to_itself_stays(folder: Path):
    assert real_path(folder / "link/../circle/x") == folder / "circle/x"


@pytest.mark.parametrize("resolve", [real_path, lambda path: Path(follow_links(str(path)))])
def test_a_folder_that_replaces_a_link_meanwhile_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resolve: Callable[[Path], Path]
):
    link, read = real_path(tmp_path) / "sub", os.readlink
    link.symlink_to("elsewhere")

    def read_late(path: str) -> str:
        if link.is_symlink():
            link.unlink()
            link.mkdir()
        return read(path)

    monkeypatch.setattr(os, "readlink", read_late)
    assert resolve(link / "file") == link / "file"


def test_no_path_is_resolved_by_what_raises_for_such_a_link():
    for path in Path(agent_tui.__file__).parent.rglob("*.py"):
        assert ".resolve()" not in path.read_text("utf-8"), path


def test_the_home_folder_is_put_in_place_of_a_tilde(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(folder))
    assert resolve_path("~/link/a", Path("/elsewhere")) == folder / "sub" / "a"


def test_a_path_that_is_too_long_for_links_still_loses_its_way_up(folder: Path):
    assert follow_links(f"{folder}/{'a/../' * 5_000}link/x") == f"{folder}/sub/x"
    assert follow_links("/" + "a/" * 10_000) == "/" + "a/" * 9_999 + "a"


def test_programs_of_the_repository_around_a_folder_are_not_trusted(tmp_path: Path):
    home = tmp_path / "home"
    project = home / "src" / "project"
    (project / "sub").mkdir(parents=True)
    (project / ".git").mkdir()
    distrust_programs_around(project / "sub", home)
    assert not is_trusted(str(project / ".venv" / "bin"))
    assert is_trusted(str(home / ".local" / "bin"))
    (home / ".git").mkdir()
    (home / "notes").mkdir()
    distrust_programs_around(home / "notes", home)
    assert not is_trusted(str(home / "notes" / "bin"))
    assert is_trusted(str(home / ".local" / "bin"))


def test_a_way_has_each_link_and_ends_in_what_differs_from_process_to_process(tmp_path: Path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/own").symlink_to("/proc/self/cwd/file")
    (tmp_path / "way").symlink_to("folder")
    (tmp_path / "first").symlink_to("./way/../way/own")
    place, links = trace_links(tmp_path.resolve() / "first")
    assert place == Path("/proc/self/cwd/file")
    assert [path.name for path in links] == ["first", "way", "own"]
    (tmp_path / "loop").symlink_to("loop")
    assert [path.name for path in trace_links(tmp_path.resolve() / "loop")[1]] == ["loop"]


@given(st.binary(min_size=1, max_size=20))
def test_a_shown_name_can_be_stored(name: bytes):
    shown = show_name(os.fsdecode(name))
    assert shown.encode("utf-8")
    assert len(shown.splitlines()) == 1
    assert "\x1b" not in shown
    if b"\\" not in name and os.fsdecode(name).isprintable():
        assert shown == name.decode("utf-8", "backslashreplace")


@each_row(
    ("name", "shown"),
    [
        ("a b", "a b"),
        ("q\nagent-tui: ok", r"q\x0aagent-tui: ok"),
        ("\x1b[31mX\t", r"\x1b[31mX\x09"),
        ("\u202ex\x85\u2028", r"\u202ex\u0085\u2028"),
        ("\udcff é", r"\xff é"),
    ],
)
def test_a_name_is_shown_on_one_line(name: str, shown: str):
    assert show_name(name) == shown


def test_a_shown_name_leads_back_to_its_file(tmp_path: Path):
    odd = tmp_path / os.fsdecode(b"own\377") / os.fsdecode("é".encode() + b"\351\\xe9.txt")
    odd.parent.mkdir()
    odd.touch()
    shown = tmp_path / path_from(odd, tmp_path)
    assert shown == tmp_path / r"own\xff/é\xe9\xe9.txt"
    assert follow_shown(shown) == odd
    new = tmp_path / r"own\xff/new\xff.txt"
    assert follow_shown(new) == odd.parent / r"new\xff.txt"
    (odd.parent / os.fsdecode("é".encode() + b"\\xe9\351.txt")).touch()
    assert follow_shown(shown) == odd.parent / shown.name  # either could be meant
    shown.parent.mkdir()
    assert follow_shown(shown) == shown
