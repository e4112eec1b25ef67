"""Runs an approved file and collects what it defines; a mistake in it ends nothing else."""

import re
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

from agent_tui.agent.hook import Hook
from agent_tui.api.tools import FunctionTool
from agent_tui.cli.plugins import importing_from_outside
from agent_tui.commands.core.command import Command
from agent_tui.config import PLUGIN_NAME
from agent_tui.features.tool_files.folder import FileText
from agent_tui.safe_text import printable_line
from agent_tui.tool_names import is_remote

if TYPE_CHECKING:
    from typing import Any

_PACKAGE = "agent_tui_tools"
_MOST_S = 10.0
"""Seconds that the statements of a file may take."""

_HOOK = "@hook works in plugins only"
_NOTHING = "has no function with @tool or @command"


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a file brings, and why something in it is left out; each follows the file's path."""

    tools: tuple["FunctionTool[..., Any]", ...] = ()
    commands: tuple[Command, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def parts(self) -> str:
        """What it brings, as text; empty if nothing."""
        tools = [f"tool {tool.name}" for tool in self.tools]
        return ", ".join([*tools, *(f"/{command.name}" for command in self.commands)])


@dataclass(frozen=True, slots=True)
class Taken:
    """Names that no file can use, in lower case."""

    tools: Collection[str] = ()
    commands: Collection[str] = ()


def load_file(
    file: FileText, taken: Taken, writable: Collection[Path], most_s: float = _MOST_S
) -> Loaded:
    """Run `file` and return what it defines. Blocking.

    Args:
        file: Its text is run as it was approved; the file is not read again.
        taken: Names that others have.
        writable: Folders from which it can import nothing.
        most_s: Seconds after which it is left alone.
    """
    module = ModuleType(f"{_PACKAGE}.{file.path.stem}")
    module.__file__ = str(file.path)
    sys.modules[module.__name__] = module  # dataclasses and pydantic look their module up
    problems: list[str] = []

    def run() -> None:
        try:
            with importing_from_outside(writable):
                code = compile(file.text, str(file.path), "exec", dont_inherit=True)
                exec(code, module.__dict__)
        except BaseException as error:  # noqa: BLE001 - whatever the file does, it is only left out
            problems.append(describe_error(error, file.path))

    thread = threading.Thread(target=run, name=module.__name__, daemon=True)
    thread.start()
    thread.join(most_s)
    if thread.is_alive():
        problems.append(f"did not finish within {most_s:g} seconds")
    if problems:
        return Loaded(problems=tuple(problems))
    return _collect(vars(module), module.__name__, taken)


def describe_error(error: BaseException, path: Path) -> str:
    """What is wrong with the file at `path`, and on which line; follows its path."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    if line is None:
        frames = traceback.extract_tb(error.__traceback__)
        line = next((one.lineno for one in reversed(frames) if one.filename == str(path)), None)
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    what = printable_line(f"{type(error).__name__}: {said}".rstrip(": ."), 300)
    return f"line {line}: {what}" if line is not None else what


def _collect(names: Mapping[str, object], module: str, taken: Taken) -> Loaded:
    values = list({id(value): value for value in names.values()}.values())
    functions = cast(
        "list[FunctionTool[..., Any]]", [one for one in values if isinstance(one, FunctionTool)]
    )
    tools = [one for one in functions if one.__module__ == module]
    commands = [one for one in values if isinstance(one, Command) and _is_of(one, module)]
    problems = [_HOOK] * any(isinstance(one, Hook) for one in values)
    if not (tools or commands or problems):
        problems.append(_NOTHING)
    tools = [one for one in tools if not _schema_problems(one, problems)]
    used_tools = tuple(_usable(tools, lambda tool: (tool.name,), taken.tools, problems))
    used = _usable(commands, lambda one: (one.name, *one.aliases), taken.commands, problems)
    return Loaded(used_tools, tuple(replace(one, source="user") for one in used), tuple(problems))


def _schema_problems(tool: "FunctionTool[..., Any]", problems: list[str]) -> bool:
    """Whether the model cannot be told about `tool`; reports why."""
    try:
        tool.offer("outside").describe()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - of types that others wrote
        problems.append(printable_line(f"{tool.name}: {type(error).__name__}: {error}", 300))
        return True
    return False


def _is_of(command: Command, module: str) -> bool:
    return command.run.__module__ == module


def _usable(
    values: "Sequence[Any]",
    names_of: "Callable[[Any], tuple[str, ...]]",
    taken: Collection[str],
    problems: list[str],
) -> "Iterator[Any]":
    """Yield the values with names that can be used; reports the others."""
    for value in values:
        names = names_of(value)
        if bad := [name for name in names if not re.fullmatch(PLUGIN_NAME, name)]:
            problems.append(f"{bad[0]} is not a word of letters, digits, - and _")
        elif clash := [name for name in names if name.lower() in taken or is_remote(name)]:
            problems.append(f"the name {clash[0]} is taken")
        else:
            yield value
