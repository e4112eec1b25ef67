from pathlib import Path

from agent_tui.features.sandbox.change_finder import find_changes
from agent_tui.features.sandbox.file_contents import EMPTY, OTHER
from agent_tui.features.sandbox.folder_copies import FolderCopy
from agent_tui.features.sandbox.obeyed_state import Look, Node
from agent_tui.features.sandbox.project_walk import WalkFindings
from agent_tui.tools.git.settings import ControlKind

_ROOT = Path("/work")
_GIT = _ROOT / ".git"


def _look(
    nodes: dict[str, dict[str, str]], controls: dict[str, tuple[ControlKind, str]] | None = None
) -> Look:
    look = Look(WalkFindings(), gits=frozenset((_GIT,)))
    for name, files in nodes.items():
        node = Node("an editor", "compared", {_ROOT / file: files[file] for file in files})
        look.nodes[_ROOT / name] = node
        look.files |= node.files
    for name, (kind, digest) in (controls or {}).items():
        look.controls[_ROOT / name], look.files[_ROOT / name] = kind, digest
    return look


def _found(before: dict[str, str], look: Look, *copies: FolderCopy) -> dict[str, tuple[str, ...]]:
    approved = {_ROOT / name: digest for name, digest in before.items()}
    return {
        str(change.path.relative_to(_ROOT)): (change.before, *(each for _, each in change.files))
        for change in find_changes(approved, look, copies)
    }


def test_a_new_folder_is_one_change_and_a_known_one_has_one_for_each_file():
    look = _look({".vscode": {".vscode/a": "1", ".vscode/b": "2"}, ".exrc": {".exrc": "3"}})
    assert _found({}, look) == {".vscode": ("", "1", "2"), ".exrc": ("", "3")}
    assert _found({".vscode/a": "0"}, look) == {
        **{".vscode/a": ("0", "1"), ".vscode/b": ("", "2")},
        ".exrc": ("", "3"),
    }
    assert _found({".vscode/gone": "0", ".exrc": "3"}, look) == {
        ".vscode/a": ("", "1"),
        ".vscode/b": ("", "2"),
    }


def test_nobody_follows_what_is_gone_or_empty():
    assert _found({".exrc": "1"}, _look({})) == {}
    assert _found({}, _look({".vscode": {".vscode": EMPTY}})) == {}
    assert _found({".vscode/a": "1"}, _look({".vscode": {".vscode": EMPTY}})) == {}
    look = _look({".vscode": {".vscode/a": "1"}})
    assert _found({".vscode": EMPTY}, look) == {".vscode/a": ("", "1")}


def test_a_folder_that_became_too_large_is_one_change():
    look = _look({".vscode": {".vscode": OTHER}})
    assert _found({".vscode/a": "1"}, look) == {".vscode": ("", OTHER)}
    assert _found({".vscode": OTHER}, look) == {}


def test_a_hook_a_head_and_settings_that_are_gone_are_changes_and_other_files_of_git_are_not():
    before = {f".git/{name}": "1" for name in ("HEAD", "config", "hooks/x", "info/attributes")}
    look = _look({}, {".git/config": ("config", "2")})
    assert _found(before, look) == {
        ".git/config": ("1", "2"),
        ".git/HEAD": ("1", ""),
        ".git/hooks/x": ("1", ""),
    }


def test_what_is_gone_from_a_copy_comes_before_what_is_new_there():
    copy = FolderCopy(
        _ROOT / ".vscode", Path("/copy"), {"a": "1", "z/b": "1"}, {"a": "2", "z": "3"}
    )
    look = _look({".vscode": {".vscode/a": "1", ".vscode/z/b": "1"}})
    before = {".vscode/a": "1", ".vscode/z/b": "1"}
    assert list(_found(before, look, copy).items()) == [
        (".vscode/z/b", ("1", "")),
        (".vscode/a", ("1", "2")),
        (".vscode/z", ("", "3")),
    ]
    full = FolderCopy(_ROOT / ".vscode", Path("/copy"), {"a": "1"}, None)
    assert _found(before, look, full) == {".vscode": ("", OTHER)}


def test_links_are_decided_on_after_what_leads_to_them_and_an_index_last():
    look = _look({".exrc": {".exrc": "1"}}, {".git/index": ("irregular", "1")})
    look.nodes[_ROOT / "target"] = Node("git", "compared", {_ROOT / "target": "1"})
    look.ways[_ROOT / "target"] = [(_ROOT / "x",)]
    assert list(_found({}, look)) == [".exrc", "target", ".git/index"]
