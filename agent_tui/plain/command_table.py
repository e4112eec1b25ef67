"""The commands of this front end as values: what ``/help`` and dispatch are fed from."""

import difflib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agent_tui.plain.host import PlainHost

CommandFunction: TypeAlias = Callable[[PlainHost, str], None]


@dataclass(frozen=True, slots=True)
class PlainCommand:
    """One command; `argument` hints at what it takes, in ``[]`` where that can be left out."""

    name: str
    argument: str
    aliases: tuple[str, ...]
    run: CommandFunction

    @property
    def description(self) -> str:
        """The first line of its docstring."""
        return (inspect.getdoc(self.run) or "").partition("\n")[0]


def command(
    argument: str = "", *, aliases: tuple[str, ...] = ()
) -> Callable[[CommandFunction], PlainCommand]:
    """Make a command of a function: its name and its docstring's first line."""

    def make(function: CommandFunction) -> PlainCommand:
        name = getattr(function, "__name__", "").rstrip("_")
        return PlainCommand(name, argument, aliases, function)

    return make


def split_command(text: str) -> tuple[str, str]:
    """``/name argument`` as name and argument; an empty name for a message or a path."""
    head, _, argument = text.strip().partition(" ")
    name = head.removeprefix("/")
    is_command = head.startswith("/") and name and "/" not in name and "\n" not in head
    return (name.lower(), argument.strip()) if is_command else ("", "")


def find_command(name: str, commands: Sequence[PlainCommand]) -> PlainCommand | None:
    """The command called `name`, or with that alias."""
    return next((each for each in commands if name in (each.name, *each.aliases)), None)


def unknown_command(name: str, commands: Sequence[PlainCommand]) -> str:
    """What to say of a `name` that no command has."""
    names = [known for each in commands for known in (each.name, *each.aliases)]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    ask = f"Did you mean /{near[0]}?" if near else "/help lists the commands."
    return f"There is no command /{name} here. {ask}"
