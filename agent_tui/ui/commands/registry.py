"""Slash commands as values: what the menu, ``/help`` and dispatch are fed from."""

import difflib
import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from agent_tui.ui.commands.host import CommandHost

CommandFunction: TypeAlias = "Callable[[CommandHost, str], Awaitable[None]]"


@dataclass(frozen=True, slots=True)
class Choice:
    """Something an argument may be.

    Attributes:
        text: What is written; one that ends with a blank wants more behind it.
        description: Second column of the menu.
        label: What is shown and searched instead of `text`, where that is only an id.
    """

    text: str
    description: str = ""
    label: str = ""


Offer: TypeAlias = Iterable[str | Choice]
Choices: TypeAlias = "Callable[[CommandHost], Offer | Awaitable[Offer]]"
"""What takes time to find out is awaited, in a task of its own."""
CommandSource: TypeAlias = Literal["program", "user", "project"]


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
        takes_path: Whether paths complete the last word of the argument, after `choices`.
        run: The command itself.
        source: Where it comes from: the program, or a prompt file of the person or project.
    """

    name: str
    description: str
    argument_hint: str
    aliases: tuple[str, ...]
    refusal: str
    choices: "Choices | None"
    harmless: tuple[str, ...]
    takes_path: bool
    run: CommandFunction
    source: CommandSource = "program"

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
    takes_path: bool = False,
) -> Callable[[CommandFunction], Command]:
    """Make a slash command of a function: its name and its docstring's first line.

    Args:
        argument: Hint for the argument, in ``[]`` if it can be left out.
        aliases: Other names.
        refusal: If given, the command waits for the end of a running turn with these words.
        choices: Completions for the argument.
        harmless: Words in the argument with which it need not wait.
        takes_path: Whether paths complete the last word of the argument.
    """

    def make(function: CommandFunction) -> Command:
        description = (inspect.getdoc(function) or "").partition("\n")[0].removesuffix(".")
        name = getattr(function, "__name__", "").rstrip("_")
        return Command(
            name, description, argument, aliases, refusal, choices, harmless, takes_path, function
        )

    return make


class CommandRegistry:
    """All commands by name and alias, in the order they are shown: the program's, then others."""

    def __init__(self, commands: Iterable[Command]) -> None:
        self._own = tuple(commands)
        self._commands = self._own
        self._by_name = _names(self._own)
        self.left_out: tuple[tuple[str, str], ...] = ()
        """Prompt files that are no commands, and why."""

    @property
    def commands(self) -> tuple[Command, ...]:
        """Every command once."""
        return self._commands

    @property
    def own_names(self) -> frozenset[str]:
        """Names and aliases of the program's own commands, which no other takes the place of."""
        return frozenset(_names(self._own))

    def take_up(self, others: Iterable[Command], left_out: Iterable[tuple[str, str]] = ()) -> None:
        """Have `others` besides the program's own, in place of those from before."""
        self.left_out = tuple(left_out)
        self._commands = (*self._own, *others)
        self._by_name = {**_names(self._commands), **_names(self._own)}

    def find(self, name: str) -> Command | None:
        """The command called `name` or with that alias."""
        return self._by_name.get(name.lower())

    def nearest(self, name: str) -> str:
        """The name most like `name`, empty if none is close."""
        close = difflib.get_close_matches(name.lower(), self._by_name, n=1, cutoff=0.6)
        return close[0] if close else ""

    def refusal(self, text: str) -> str:
        """Why `text` cannot be dispatched; empty if it is a known command or no command."""
        name, _ = split_command(text)
        if not name or self.find(name) is not None:
            return ""
        near = self.nearest(name)
        ask = f"Did you mean /{near}?" if near else "Type / to see all commands."
        return f"Unknown command /{name}. {ask}"


def _names(commands: Iterable[Command]) -> dict[str, Command]:
    return {name: entry for entry in commands for name in (entry.name, *entry.aliases)}


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
