"""The core can be read without the features, and the program runs without each of them.

The limits are `[tool.house]` in pyproject.toml. A limit rises only in a commit of its own, whose
message says why.
"""

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from argparse import ArgumentParser
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from pydantic import BaseModel

from agent_tui.agent.part import Part, part_types
from agent_tui.feature import Feature, OptionsModule, load_object, own_features
from tests.benchmarks.house import PACKAGE, House, Module, read_house
from tests.support.openai_server import OpenAiServer, Reply
from tests.support.rows import each_row

ROOT = Path(__file__).parents[2]
LIMITS: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"][
    "house"
]
ALONE = [feature.name for feature in own_features()]
PRINT_THE_ANSWER = f"""
from {PACKAGE}.__main__ import main

assert main() == 0
"""
ASK_FOR_THE_ANSWER = f"""
import asyncio, sys
from {PACKAGE} import Agent

_, _, model, _, address, _, prompt = sys.argv
print(asyncio.run(Agent(model, base_url=address).ask(prompt)))
"""
"""Does as a program what the command line asks for, where nothing prints."""
OFFERED = f"""
from {PACKAGE} import *
import {PACKAGE}.ui.assembly
from {PACKAGE}.cli.arguments import build_parser
from {PACKAGE}.cli.subcommands import SUBCOMMANDS
from {PACKAGE}.commands.core.registry import load_commands
from {PACKAGE}.config import Settings
from {PACKAGE}.tools.registry import default_toolbox

assert load_commands().commands and default_toolbox().specs
for name, row in SUBCOMMANDS.items():
    assert row.load().build_parser().format_help()
    print(f"subcommand:{{name}}")
print(*(f"setting:{{name}}" for name in Settings.model_fields))
print(*(name for one in build_parser()._actions for name in one.option_strings))
"""
"""Uses what the program offers; prints the names of subcommands, settings and options."""


class Arrow(NamedTuple):
    """An import of one module by another, by their names below the package."""

    source: str
    target: str


@cache
def house() -> House:
    return read_house(ROOT)


def imported(module: Module) -> Iterator[str]:
    """The names of the package that the module imports, anywhere in it."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            source = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            names = (f"{source}{alias.name}" for alias in node.names)
            yield from (name for name in names if name.partition(".")[0] == PACKAGE)


@cache
def arrows() -> frozenset[Arrow]:
    known = house().modules
    found: set[Arrow] = set()
    for name, module in known.items():
        for dotted in imported(module):
            target = next(filter(known.get, (dotted, dotted.rpartition(".")[0])), name)
            if target != name:
                found.add(Arrow(short(name), short(target)))
    return frozenset(found)


def short(dotted: str) -> str:
    return dotted.removeprefix(f"{PACKAGE}.")


def reach(start: str) -> int:
    """The code lines of `start` and of all that it imports, however far on."""
    seen: set[str] = set()
    new = {start}
    while new:
        seen |= new
        new = {arrow.target for arrow in arrows() if arrow.source in new} - seen
    lines = {short(name): len(module.code_lines) for name, module in house().modules.items()}
    return sum(lines[name] for name in seen)


def owner(name: str) -> str:
    """The feature of a module; empty for the core."""
    if name.startswith("features."):
        return name.split(".")[1]
    rows: dict[str, list[str]] = LIMITS["features"]
    return next((key for key, row in rows.items() if any(is_below(name, one) for one in row)), "")


def is_below(name: str, pattern: str) -> bool:
    return fnmatchcase(f"{name}.", f"{pattern}.*")


@each_row("door", LIMITS["reach"])
def test_no_more_must_be_read_from_a_module(door: str):
    assert reach(door) <= LIMITS["reach"][door]


@each_row("record", LIMITS["fields"])
def test_no_record_gets_more_fields(record: str):
    classes = (node for one in house().modules.values() for node in one.tree.body)
    found = next(one for one in classes if isinstance(one, ast.ClassDef) and one.name == record)
    fields = [node for node in found.body if isinstance(node, ast.AnnAssign)]
    assert len(fields) <= LIMITS["fields"][record]


def test_no_modules_import_each_other():
    assert house().rings == []


def test_the_core_imports_no_more_of_the_features_without_a_folder():
    found = [one for one in arrows() if owner(one.target) and not owner(one.source)]
    assert len(found) <= LIMITS["arrows"]


def test_every_row_names_modules_that_are_there():
    names = [short(name) for name in house().modules]
    rows = [pattern for row in LIMITS["features"].values() for pattern in row]
    assert [row for row in rows if not any(is_below(name, row) for name in names)] == []


@each_row("name", ALONE)
def test_a_feature_says_what_it_brings_and_imports_nothing(name: str):
    module = house().modules[f"{PACKAGE}.features.{name}.feature"]
    feature = next(one for one in own_features() if one.name == name)
    assert {one.rpartition(".")[0] for one in imported(module)} == {f"{PACKAGE}.feature"}
    objects = [
        *feature.tools,
        *feature.between_turns,
        *feature.listed_models,
        *feature.prompt_modes,
        *feature.command_finders,
        *feature.events,
        *feature.wires,
        *feature.adapters,
        *feature.server_kinds,
        *feature.accounts,
        *feature.key_pages,
        *feature.completions.values(),
        *feature.pickers,
        *feature.pickers.values(),
    ]
    switches = [(option.demo, option.offer, option.ask) for option in feature.options]
    objects += [one for names in switches for one in names if one]
    objects += [check.function for check in feature.checks]
    features = (
        feature.settings,
        feature.caller,
        feature.local_models,
        feature.around,
        feature.headless,
        feature.shell_answer,
        feature.tool_servers,
        feature.sandbox,
        feature.curator,
        feature.screen_watcher,
        *feature.stores_elsewhere.values(),
    )
    objects += filter(None, features)
    objects += [one for row in (*feature.verbs.values(), *feature.brings.values()) for one in row]
    assert all(load_object(one) is not None for one in objects)
    assert all(issubclass(part, Part) for part in part_types([feature]))
    assert all(row.load().build_parser() for row in feature.subcommands)
    assert not feature.front or import_module(feature.front).run_front
    assert not feature.options_module or import_module(feature.options_module).take_options


def test_help_loads_of_the_features_only_what_they_bring():
    code = "import sys, agent_tui.cli.arguments; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if name.startswith(f"{PACKAGE}.features.")}
    expected = {f"{PACKAGE}.features.{name}{end}" for name in ALONE for end in ("", ".feature")}
    assert loaded == expected


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*ALONE, *LIMITS["features"]])
def test_without_a_feature_everything_else_works(name: str, tmp_path: Path):
    copy = tmp_path / PACKAGE
    shutil.copytree(ROOT / PACKAGE, copy)  # with the bytecode, which is half of every start
    shutil.rmtree(copy / "features" / name if name in ALONE else copy / name)
    with OpenAiServer() as server:
        server.play(Reply(text="Here I am."))
        asked = ("-m", "openai/mock", "--base-url", server.base_url, "-p", "hi")
        answering = ASK_FOR_THE_ANSWER if name == "print" else PRINT_THE_ANSWER
        answer, _, offered = run(tmp_path, "-c", answering + OFFERED, *asked).partition("\n")
    assert answer == "Here I am."
    assert {"--model", "setting:model"} <= {*offered.split()}
    feature = next((one for one in own_features() if one.name == name), Feature(name))
    gone = {f"subcommand:{row.name}" for row in feature.subcommands}
    gone |= {f"--{option.name}" for option in feature.options}
    if feature.options_module:
        parser = ArgumentParser(add_help=False)
        cast(OptionsModule, import_module(feature.options_module)).add_options(parser)
        gone |= {*parser._option_string_actions}
    if feature.settings:
        section = cast("type[BaseModel]", load_object(feature.settings))
        gone |= {f"setting:{name}" for name in section.model_fields}
    assert not gone & {*offered.split()}


def run(folder: Path, *arguments: str) -> str:
    """What Python prints with the package in `folder`, in an empty home."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "AGENT_TUI_HOME": str(home)}
    environ |= {"AGENT_TUI_SANDBOX": "off", "OPENAI_API_KEY": "none", "PYTHONPATH": str(folder)}
    argv = [sys.executable, *arguments]
    done = subprocess.run(argv, cwd=home, env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout
