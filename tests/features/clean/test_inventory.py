import os
import re
from pathlib import Path
from typing import get_args

import pytest

import agent_tui
from agent_tui import paths
from agent_tui.cli.folders import worktree_records
from agent_tui.cli.stored import CACHES, STORES
from agent_tui.feature import own_features
from agent_tui.features.clean.inventory import StoredItem, list_stored, measure
from agent_tui.features.sharing.choice import Choice, ChoiceFile, PushedState
from agent_tui.tools.git.worktree import Worktree

_NAMED_BY_A_RUN = re.compile(r'(?:user_data_dir\(\) / |is_first_time\()"([^"]+)"')


def write(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def listed() -> dict[str, StoredItem]:
    return {item.kind: item for item in list_stored(paths.default_session_dir())}


def test_whoever_stores_something_in_the_data_folder_says_what_its_loss_means():
    sources = Path(agent_tui.__file__).parent.rglob("*.py")
    named = {name for file in sources for name in _NAMED_BY_A_RUN.findall(file.read_text("utf-8"))}
    explained = {*STORES, *(name for one in own_features() for name in one.stores)}
    assert len(named) > 10
    assert named - {"sessions"} <= explained


def test_each_cache_says_what_its_loss_means():
    assert set(CACHES) == {*get_args(paths.CacheName), "demo"}


def test_nothing_is_listed_and_nothing_made_in_an_empty_home(home: Path):
    assert list_stored(paths.default_session_dir()) == []
    assert not home.exists()


def test_files_are_listed_by_kind_with_their_files_and_size(home: Path):
    write(home / "data/trust.json", "{}")
    write(home / "data/models/a.json", "x" * 10_000)
    write(home / "cache/packages/pip/b", "y")
    write(home / "data/sessions/p/s.jsonl")
    write(home / "data/sessions/trash/p/t.jsonl")
    found = listed()
    assert set(found) == {"sessions", "trash", "models", "trust", "caches/packages"}
    assert found["sessions"].usage.files == found["trash"].usage.files == 1
    assert found["models"].usage.size_bytes >= 10_000
    assert "asked again" in found["trust"].loss
    assert "cannot be made again" in found["sessions"].loss
    assert [kind for kind, item in found.items() if item.removal] == ["sessions"]


def test_what_nobody_of_the_program_stores_is_listed_and_left_to_the_user(home: Path):
    write(home / "data/letters/mine.txt")
    write(home / "cache/thesis.pdf")
    found = listed()
    assert set(found) == {"data", "caches/thesis.pdf"}
    assert all("unknown" in item.loss and item.removal for item in found.values())


def test_a_folder_around_the_sessions_is_left_to_the_user(home: Path):
    write(home / "data/models/sessions/p/s.jsonl")
    found = {item.place: item for item in list_stored(home / "data/models/sessions")}
    around = found[str(home / "data/models")]
    assert (around.loss, around.removal) == (
        "contains a folder that has its own line here",
        "Do not delete it as a whole.",
    )


@pytest.mark.parametrize("variable", ["AGENT_TUI_SESSION_DIR", ""])
def test_sessions_are_never_advised_to_be_deleted(
    home: Path, tmp_path: Path, monkeypatch, variable
):
    write(home / "data/sessions/p/s.jsonl")
    write(tmp_path / "usual/p/s.jsonl")
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "usual"))
    found = list_stored(tmp_path / "given")
    places = {str(home / "data/sessions"), *([str(tmp_path / "usual")] if variable else [])}
    assert {item.place for item in found} == places
    for item in found:
        assert item.kind == "sessions"
        assert item.removal == (
            f"agent-tui clean --session-dir {item.place} sessions --older-than 90d"
        )


_SETTINGS = ("config.toml", "AGENTS.md", "age-key.txt")


@pytest.mark.parametrize("folder", ["data", "cache", "."])
def test_settings_beside_what_is_stored_are_listed_one_by_one(home: Path, monkeypatch, folder: str):
    monkeypatch.setenv("AGENT_TUI_CONFIG_DIR", str(home / folder))
    stored = ("data/sessions/p/s.jsonl", "data/keys/a", "data/trust.json", "cache/outputs/a")
    for place in (*map(home.joinpath, stored), *map((home / folder).joinpath, _SETTINGS)):
        write(place)
    found = list_stored(paths.default_session_dir())
    settings = {item.place: item for item in found if item.kind == "settings"}
    assert set(settings) == {str(home / folder / name) for name in _SETTINGS}
    assert all("your settings" in item.loss for item in settings.values())
    assert all(item.removal.startswith("You wrote them") for item in settings.values())
    kinds = {item.kind for item in found}
    assert kinds == {"settings", "sessions", "keys", "trust", "caches/outputs"}
    assert sum(item.usage.files for item in found) == len(stored) + len(_SETTINGS)


def test_a_config_folder_in_the_data_folder_is_listed_once(home: Path, monkeypatch):
    monkeypatch.setenv("AGENT_TUI_CONFIG_DIR", str(home / "data/config"))
    write(home / "data/config/config.toml")
    (item,) = list_stored(paths.default_session_dir())
    assert (item.kind, item.place) == ("settings", str(home / "data/config"))


def test_links_are_counted_and_not_followed(home: Path, tmp_path: Path):
    big = write(tmp_path / "elsewhere/big", "z" * 1_000_000)
    (home / "cache/outputs").mkdir(parents=True)
    (home / "cache/outputs/file").symlink_to(big)
    (home / "cache/outputs/folder").symlink_to(big.parent)
    (home / "cache/outputs/itself").symlink_to(home / "cache/outputs")
    usage = listed()["caches/outputs"].usage
    assert usage.files == 3
    assert usage.size_bytes < 100_000


def test_a_file_with_two_names_and_a_file_with_holes_take_what_they_take(tmp_path: Path):
    first = write(tmp_path / "f/one", "z" * 100_000)
    os.link(first, tmp_path / "f/two")
    with (tmp_path / "f/sparse").open("wb") as file:
        file.truncate(10**12)
    usage = measure(tmp_path / "f")
    assert usage.files == 3
    assert 100_000 <= usage.size_bytes < 200_000


def test_worktrees_and_shared_sessions_are_named_and_left_alone(tmp_path: Path):
    tree = tmp_path / "w"
    tree.mkdir()
    made = Worktree("w", tree, tmp_path / "r", "agent-tui/w", "main", "", owns_branch=True)
    worktree_records().store(made, "kept")
    pushed = {"0f3a": PushedState(size_bytes=1, mtime_ns=1, tip="t", key="k")}
    ChoiceFile(tmp_path).change("https://sam@host/x.git", lambda _: Choice(pushed=pushed))
    found = listed()
    assert found["git/worktrees"].path == tree
    assert "agent-tui worktrees remove w" in found["git/worktrees"].removal
    assert found["git/refs"].removal == (
        "git push https://host/x.git :refs/agent-tui/sessions/0f3a"
    )
