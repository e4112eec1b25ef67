"""What must hold of a folder of sessions after a program that worked in it was killed."""

from pathlib import Path
from typing import cast

from agent_tui.atomic_files import remove_leftovers
from agent_tui.sessions.entries import CustomEntry, MessageEntry, SessionInfoEntry
from agent_tui.sessions.importers.import_session import IMPORTED
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from tests.support.killed_program import FOREIGN, OLD_FILES, fingerprints
from tests.support.session_values import entry, user


def check(folder: Path, facts: list[dict[str, object]]) -> None:
    """Every session is whole, goes on, and holds what was said to be written."""
    files = {path.name: path for path in sorted(folder.rglob("*.jsonl"))}
    moved = [Path(str(fact["moved"])) for fact in facts if "moved" in fact]
    assert all(path.is_file() for path in moved)
    told: dict[str, list[list[object]]] = {}
    names: dict[str, str] = {}
    for fact in facts:
        if "entries" in fact:
            told.setdefault(str(fact["file"]), []).extend(
                cast("list[list[object]]", fact["entries"])
            )
        if "name" in fact:
            names[str(fact["file"])] = str(fact["name"])
    assert set(told) <= set(files)
    for name, path in files.items():
        with SessionLog.open(path, "none") as log:  # raises if the lock is not free
            before = log.entries
            marks = [item for item in before if isinstance(item, CustomEntry)]
            is_import = FOREIGN in path.read_text()
            assert is_import == any(mark.custom_type == IMPORTED for mark in marks), "half of one"
            kept = fingerprints(before)
            assert all(item in kept for item in told.get(name, [])), name
            if name in names:
                given = [item.name for item in before if isinstance(item, SessionInfoEntry)]
                assert names[name] in given
            added = log.append(entry(user("after the kill")))
        again = SessionLog.open(path, read_only=True)
        assert again.entries == (*before, added)
        assert again.path_entries()[-2:] == (*log.path_entries()[-2:-1], added)
        if path.parent.name == OLD_FILES:
            (original,) = path.parent.glob(f"{name}.v*.bak")
            assert len(SessionLog.open(original, read_only=True).entries) <= len(before)


def check_nothing_is_left(folder: Path) -> None:
    """Neither pieces of files nor a list or search that no longer works."""
    remove_leftovers()
    assert list(folder.rglob("*.tmp")) == []
    store = SessionStore(folder, "none")
    assert store.update_search() == 0
    listed = {found.path for found in store.list()}
    there = {path for path in listed if "needle" in said_in(path)}
    assert {hit.path for hit in store.search("needle")} >= there


def said_in(path: Path) -> str:
    entries = SessionLog.open(path, read_only=True).entries
    return " ".join(item.message.text for item in entries if isinstance(item, MessageEntry))
