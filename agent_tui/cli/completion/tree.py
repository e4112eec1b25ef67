"""What can be typed after ``agent-tui``, read from the parsers: the input of all three shells."""

import argparse
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast

Kind: TypeAlias = Literal[
    "none", "choice", "file", "folder", "model", "local-model", "session", "setting", "value"
]

_BY_NAME: dict[str, Kind] = {
    "cwd": "folder",
    "session_dir": "folder",
    "folder": "folder",
    "session": "session",
    "resume": "session",
    "model": "model",
    "key": "setting",
    "value": "value",
}
_LOCAL_MODELS = frozenset({"agent-tui models remove", "agent-tui models path"})


@dataclass(frozen=True, slots=True)
class Operand:
    """A value that is typed: an option's, or one that stands alone.

    Attributes:
        kind: What it names.
        choices: All it may be, of a choice.
        metavar: Its name in the help.
        repeats: Whether more of it may follow.
        is_optional: Whether it may be left out.
    """

    kind: Kind
    choices: tuple[str, ...]
    metavar: str
    repeats: bool
    is_optional: bool


@dataclass(frozen=True, slots=True)
class Option:
    """An option with all its names; `value` is None for a switch."""

    names: tuple[str, ...]
    about: str
    value: Operand | None


@dataclass(frozen=True, slots=True)
class Command:
    """A parser: the words that lead to it, and what can follow them."""

    words: tuple[str, ...]
    about: str
    options: tuple[Option, ...]
    operands: tuple[Operand, ...]
    subcommands: tuple["Command", ...]

    def walk(self) -> Iterator["Command"]:
        """This command and all below it."""
        yield self
        for command in self.subcommands:
            yield from command.walk()


def command_tree(
    program: argparse.ArgumentParser, subcommands: Iterable[tuple[str, argparse.ArgumentParser]]
) -> Command:
    """The command line of the program with its subcommands.

    Args:
        program: What is understood without a subcommand.
        subcommands: Those, by name.
    """
    root = _command(program, (), "")
    below = [_command(parser, (name,), parser.description or "") for name, parser in subcommands]
    return Command((), root.about, root.options, root.operands, tuple(below))


def _command(parser: argparse.ArgumentParser, words: tuple[str, ...], about: str) -> Command:
    options: list[Option] = []
    operands: list[Operand] = []
    subcommands: list[Command] = []
    for action in _actions(parser):
        if action.nargs == argparse.PARSER:
            for name, inner, summary in _below(action):
                subcommands.append(_command(inner, (*words, name), summary))
        elif action.help == argparse.SUPPRESS:
            continue
        elif action.option_strings:
            value = None if action.nargs == 0 else _operand(action, parser.prog)
            options.append(Option(tuple(action.option_strings), _line(action.help), value))
        else:
            operands.append(_operand(action, parser.prog))
    return Command(words, _line(about), tuple(options), tuple(operands), tuple(subcommands))


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """What the parser understands; argparse itself has no public way to ask."""
    return cast("list[argparse.Action]", vars(parser)["_actions"])


def _below(action: argparse.Action) -> Iterator[tuple[str, argparse.ArgumentParser, str]]:
    """The subcommands of an action that has some: name, parser and help."""
    named = cast("list[argparse.Action]", vars(action)["_choices_actions"])
    helps = {one.dest: one.help or "" for one in named}
    for name, parser in cast("dict[str, argparse.ArgumentParser]", action.choices).items():
        yield name, parser, helps.get(name, "")


def _operand(action: argparse.Action, prog: str) -> Operand:
    choices = tuple(str(choice) for choice in action.choices or ())
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return Operand(
        kind="choice" if choices else _kind(action, prog),
        choices=choices,
        metavar=metavar,
        repeats=action.nargs in ("*", "+", argparse.REMAINDER),
        is_optional=action.nargs in ("?", "*", argparse.REMAINDER),
    )


def _kind(action: argparse.Action, prog: str) -> Kind:
    if prog in _LOCAL_MODELS and action.dest == "name":
        return "local-model"
    if named := _BY_NAME.get(action.dest):
        return named
    return "file" if action.type is Path else "none"


def _line(text: str | None) -> str:
    """The first sentence of a help text, on one line."""
    line = " ".join((text or "").replace("%%", "%").split())
    return re.split(r"(?<=[.;])\s", line, maxsplit=1)[0].rstrip(".;")
