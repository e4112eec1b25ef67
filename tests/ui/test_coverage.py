"""`COVERAGE.md` names all there is, and names only what there is."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from textual.binding import BindingType
from textual.screen import Screen

import agent_tui.features
import agent_tui.ui.screens
from agent_tui.commands.core.registry import load_commands
from agent_tui.key_actions import KEY_ACTIONS
from agent_tui.ui.approval_panel import ApprovalPanel
from agent_tui.ui.keys import APP_BINDINGS
from agent_tui.ui.prompt import prompt
from agent_tui.ui.prompt.area import PromptArea
from tests.support.rows import each_row
from tests.ui.scenes import SCENES

TESTS = Path(__file__).parents[1]
OF_A_KIND = {"Modal", "QuestionScreen", "PickerScreen", "ReadingScreen", "LeadingScreen"}
"""Screens that are only there to be made more of."""


@dataclass(frozen=True)
class Row:
    """One row: its section, its first cell, all cells, and what shows it."""

    section: str
    first: str
    whole: str
    shown_by: tuple[str, ...]


def rows() -> Iterator[Row]:
    section = ""
    for line in (TESTS / "ui" / "COVERAGE.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif line.startswith("| ") and not line.endswith("| shown by |"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            yield Row(section, cells[0], line, tuple(quoted(cells[-1])))


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


ROWS = tuple(rows())


def keys_of(bindings: Iterable[BindingType]) -> set[str]:
    keys = (binding[0] if isinstance(binding, tuple) else binding.key for binding in bindings)
    return {key.strip() for several in keys for key in several.split(",")}


def keys_of_the_prompt() -> set[str]:
    """What the prompt's own code asks for: each text that a key is matched with."""
    tree = ast.parse(Path(prompt.__file__).read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Match) and ast.unparse(node.subject) == "key":
            found |= {
                value.value
                for case in node.cases
                for value in ast.walk(case.pattern)
                if isinstance(value, ast.Constant) and isinstance(value.value, str)
            }
    assert found
    return found


def names_below(package: ModuleType) -> list[str]:
    found = pkgutil.iter_modules(package.__path__) if hasattr(package, "__path__") else ()
    return [f"{package.__name__}.{each.name}" for each in found]


def screens() -> dict[str, type[Screen[object]]]:
    rooms = (
        agent_tui.ui.screens,
        *(importlib.import_module(name) for name in names_below(agent_tui.features)),
    )
    names = [name for room in rooms for name in names_below(room)]
    modules = [importlib.import_module(name) for name in names if "screen" in name]
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Screen)
        if value.__module__ == module.__name__ and name not in OF_A_KIND
    }


@cache
def names_in(file: str) -> frozenset[str]:
    path = TESTS / file
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, kinds))


def exists(shown_by: str) -> bool:
    kind, _, scene = shown_by.partition(":")
    if kind == "scene":
        return scene in SCENES
    file, _, name = shown_by.partition("::")
    return name.startswith("test_") and name in names_in(file)


@each_row("row", ROWS, ids=[f"{row.section}: {row.first}" for row in ROWS])
def test_each_row_names_tests_and_pictures_that_are_there(row: Row):
    assert row.shown_by
    assert [name for name in row.shown_by if not exists(name)] == []


def test_every_command_has_its_row_and_no_other_is_named():
    named = {
        word.partition(" ")[0].removeprefix("/")
        for row in ROWS
        if row.section == "Commands" and row.first.startswith("`/")
        for word in quoted(row.first)
    }
    commands = load_commands().commands
    assert named == {name for entry in commands for name in (entry.name, *entry.aliases)}


def test_every_key_of_the_app_the_prompt_and_the_approval_has_its_row():
    named = {key for row in ROWS if row.section == "Keys" for key in quoted(row.first)}
    keys = keys_of(APP_BINDINGS) | keys_of(PromptArea.BINDINGS) | keys_of(ApprovalPanel.BINDINGS)
    of_actions = {key for action in KEY_ACTIONS.values() for key in action.keys}
    assert keys | keys_of_the_prompt() | of_actions <= named


def test_every_screen_has_its_row_with_its_own_keys():
    named = {row.first.strip("`"): row for row in ROWS if row.section == "Screens"}
    assert set(named) == set(screens())
    missing = {
        name: keys
        for name, screen in screens().items()
        if (keys := keys_of(vars(screen).get("BINDINGS", ())) - set(quoted(named[name].whole)))
    }
    assert missing == {}


def test_every_scene_is_named():
    named = {name.removeprefix("scene:") for row in ROWS for name in row.shown_by}
    assert set(SCENES) - named == set()
