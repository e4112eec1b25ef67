"""Slash commands as values: what the menu, ``/help`` and dispatch are fed from."""

import difflib
import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from agent_tui.ui.commands.host import CommandHost

CommandFunction: TypeAlias = "Callable[[CommandHost, str], Awaitable[None]]"
Choices: TypeAlias = "Callable[[CommandHost], Iterable[str]]"


@dataclass(frozen=True, slots=True)
class Command:
    """One slash command.

    Attributes:
        name: What is typed after the slash.
        description: One line for the menu and ``/help``.
        argument_hint: ``[focus]``, ``<name>``, or empty if it takes none.
        aliases: Other names it answers to.
        refusal: Why it cannot run while a turn runs; empty if it can.
        choices: What the argument may be, for completion.
        harmless: Words in the argument with which it can run beside a turn all the same.
        run: The command itself.
    """

    name: str
    description: str
    argument_hint: str
    aliases: tuple[str, ...]
    refusal: str
    choices: "Choices | None"
    harmless: tuple[str, ...]
    run: CommandFunction

    @property
    def needs_argument(self) -> bool:
        """Whether it says nothing without an argument."""
        return self.argument_hint.startswith("<")

    def refusal_of(self, argument: str) -> str:
        """Why it cannot run with `argument` while a turn runs; empty if it can."""
        return "" if any(word in self.harmless for word in argument.split()) else self.refusal


def command(
    argument: str = "",
    *,
    aliases: tuple[str, ...] = (),
    refusal: str = "",
    choices: "Choices | None" = None,
    harmless: tuple[str, ...] = (),
) -> Callable[[CommandFunction], Command]:
    """Make a slash command of a function: its name and its docstring's first line.

    Args:
        argument: Hint for the argument, in ``[]`` if it can be left out.
        aliases: Other names.
        refusal: If given, the command waits for the end of a running turn with these words.
        choices: Completions for the argument.
        harmless: Words in the argument with which it need not wait.
    """

    def make(function: CommandFunction) -> Command:
        description = (inspect.getdoc(function) or "").partition("\n")[0].removesuffix(".")
        name = getattr(function, "__name__", "").rstrip("_")
        return Command(name, description, argument, aliases, refusal, choices, harmless, function)

    return make


class CommandRegistry:
    """All commands by name and alias, in the order they are shown."""

    def __init__(self, commands: Iterable[Command]) -> None:
        self._commands = tuple(commands)
        self._by_name = {
            name: entry for entry in self._commands for name in (entry.name, *entry.aliases)
        }

    @property
    def commands(self) -> tuple[Command, ...]:
        """Every command once."""
        return self._commands

    def find(self, name: str) -> Command | None:
        """The command called `name` or with that alias."""
        return self._by_name.get(name.lower())

    def nearest(self, name: str) -> str:
        """The name most like `name`, empty if none is close."""
        close = difflib.get_close_matches(name.lower(), self._by_name, n=1, cutoff=0.5)
        return close[0] if close else ""

    def refusal(self, text: str) -> str:
        """Why `text` cannot be dispatched; empty if it is a known command or no command."""
        name, _ = split_command(text)
        if not name or self.find(name) is not None:
            return ""
        near = self.nearest(name)
        ask = f"Did you mean /{near}?" if near else "Type / to see all commands."
        return f"Unknown command /{name}. {ask}"


def split_command(text: str) -> tuple[str, str]:
    """``/name argument`` as name and argument; an empty name if `text` is no command.

    A path such as ``/usr/bin`` is no command.
    """
    head, _, argument = text.strip().partition(" ")
    if "\n" in head:
        head, _, rest = text.strip().partition("\n")
        argument = rest
    name = head[1:]
    if not head.startswith("/") or not name or "/" in name:
        return "", ""
    return name, argument.strip()
