"""All commands by name, found in this package, and the command that a text calls."""

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from agent_tui.commands.core.command import Command
from agent_tui.commands.core.front import Front
from agent_tui.commands.core.own_commands import own_commands
from agent_tui.commands.core.plugin_kinds import COMMANDS
from agent_tui.commands.core.plugins import Plugins, package_with
from agent_tui.errors import AgentTuiError
from agent_tui.outside_code import is_fault


@dataclass(frozen=True, slots=True)
class CalledCommand:
    """A command and the argument of the call."""

    command: Command
    argument: str

    def refusal(self, front: Front) -> str:
        """Why `front` cannot run it now; empty if it can."""
        if (missing := self.command.missing_in(front)) or not front.is_working:
            return missing
        return front.runtime.services.ways.fill(self.command.refusal_of(self.argument, front))

    async def run(self, front: Front) -> None:
        """Run the command, or say why it cannot run.

        Raises:
            AgentTuiError: It failed; the text says why.
        """
        if why := self.refusal(front):
            front.say(why, "warning")
            return
        try:
            await self.command.run(front, self.argument)
        except AgentTuiError:
            raise
        except BaseException as error:
            if not (self.command.is_plugins and is_fault(error)):
                raise
            why = f"{type(error).__name__}: {error}".rstrip(": .")
            raise AgentTuiError(
                f"/{self.command.name} failed: {why}.",
                "The command comes from a plugin; tell its author.",
            ) from error


@dataclass(frozen=True, slots=True)
class UnknownCommand:
    """A call of an unknown command; `why` is for the user, who gets the text back."""

    why: str


@dataclass(frozen=True, slots=True)
class UnusableFile:
    """A prompt file that is no command. `shown` is its path for the user.

    `why` continues from there; `name` is the command it would have been, or empty.
    """

    shown: str
    why: str
    name: str = ""


FindWithheld: TypeAlias = Callable[[str], UnusableFile | None]
"""Returns the file that would be the command of that name if its folder was trusted."""


class CommandRegistry:
    """All commands by name and alias, in the order shown: the program's own, then others."""

    def __init__(self, commands: Iterable[Command]) -> None:
        self._own = tuple(commands)
        self._commands = self._own
        self._by_name = _names(self._own)
        self.unusable: tuple[UnusableFile, ...] = ()
        self._find_withheld: tuple[FindWithheld, ...] = ()

    @property
    def commands(self) -> tuple[Command, ...]:
        """Every command, once."""
        return self._commands

    @property
    def own_names(self) -> frozenset[str]:
        """Names and aliases of the commands that no prompt file replaces."""
        return frozenset(_names(one for one in self._own if not one.gives_way))

    def use_found(
        self,
        commands: Iterable[Command],
        unusable: Iterable[UnusableFile] = (),
        find_withheld: Iterable[FindWithheld] = (),
    ) -> None:
        """Set the `commands` that finders of features found, replacing earlier ones."""
        self.unusable = tuple(unusable)
        self._find_withheld = tuple(find_withheld)
        added = tuple(commands)
        names = {entry.name for entry in added} | {file.name for file in self.unusable}
        kept = [one for one in self._own if not (one.gives_way and one.name in names)]
        self._commands = (*kept, *added)
        self._by_name = {**_names(self._commands), **_names(kept)}

    def find(self, name: str) -> Command | None:
        """The command with the name or alias `name`."""
        return self._by_name.get(name.lower())

    def read(self, text: str) -> CalledCommand | UnknownCommand | None:
        """The call in `text`; None for a message, which calls nothing."""
        call = parse_command(text)
        if call is None:
            return None
        found = self.find(call.name)
        if found is None:
            return UnknownCommand(self._why_unknown(call.name))
        return CalledCommand(found, call.argument)

    def refusal(self, text: str) -> str:
        """Why the command in `text` is unknown; empty if it is known or `text` is a message."""
        read = self.read(text)
        return read.why if isinstance(read, UnknownCommand) else ""

    def _why_unknown(self, name: str) -> str:
        files = (*self.unusable, *filter(None, (find(name) for find in self._find_withheld)))
        for file in files:
            if file.name == name:
                return f"{file.shown} {file.why}."
        begun = sorted((known for known in self._by_name if known.startswith(name)), key=len)
        close = begun or difflib.get_close_matches(name, self._by_name, n=1, cutoff=0.6)
        if package := package_with(COMMANDS, name):
            ask = f"The package {package} has it; `agent-tui doctor` says why it is not loaded."
            return f"Unknown command /{name}. {ask}"
        ask = f"Did you mean /{close[0]}?" if close else "/help lists all commands."
        return f"Unknown command /{name}. {ask}"


def _names(commands: Iterable[Command]) -> dict[str, Command]:
    return {name: entry for entry in commands for name in (entry.name, *entry.aliases)}


_CALL = re.compile(r"/(\w[\w:-]*)(?:\s+|$)")


@dataclass(frozen=True, slots=True)
class CommandCall:
    """The name of a command in lower case, and all that followed it."""

    name: str
    argument: str


def parse_command(text: str) -> CommandCall | None:
    """``/name argument`` as a call; None for a message.

    The name ends at the first blank or newline, and everything after that is the argument, so
    ``/compact`` with words on its next lines is a command with these words. A path such as
    ``/usr/bin/x`` is no call, nor is a name with any other sign in it (``/*``, ``/etc.``).
    """
    stripped = text.strip()
    match = _CALL.match(stripped)
    return CommandCall(match[1].lower(), stripped[match.end() :]) if match is not None else None


def load_commands(plugins: Plugins | None = None) -> CommandRegistry:
    """Every command of the program, and those of `plugins`.

    This imports most of the program, so do not call it before the first paint.
    """
    plugins = plugins or Plugins()
    return CommandRegistry(
        entry.among(plugins) for entry in (*own_commands(), *plugins.of(COMMANDS))
    )
