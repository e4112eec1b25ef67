"""A slash command as a value, for dispatch, completion and help."""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from agent_tui.commands.core.front import Front
from agent_tui.commands.core.plugins import Plugins

CommandFunction: TypeAlias = Callable[[Front, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Completion:
    """A possible argument.

    Attributes:
        text: The text to insert; if it ends with a blank, more must follow.
        description: Second column of the menu.
        label: Shown and searched instead of `text` if that is only an id.
    """

    text: str
    description: str = ""
    label: str = ""


Completions: TypeAlias = Iterable[str | Completion]
CompletionSource: TypeAlias = Callable[[Front], Completions | Awaitable[Completions]]
"""Slow sources are awaited, in a separate task."""
HintSource: TypeAlias = Callable[[Plugins], str]
RefusalSource: TypeAlias = Callable[[Front], str]
CommandSource: TypeAlias = Literal["program", "user", "project", "server"]
Need: TypeAlias = Literal["", "person", "list", "screen"]
"""What a command requires: somebody who answers, lists to choose from, or a screen."""


@dataclass(frozen=True, slots=True)
class Command:
    """One slash command.

    Attributes:
        name: What is typed after the slash.
        description: One line for the menu and ``/help``.
        argument_hint: ``[focus]``, ``<name>``, or empty if it takes none.
        run: The command itself.
        aliases: Other names it answers to.
        refusal: Why it cannot run while something else does, in these words or from a function;
            empty if it can.
        completions: Possible arguments.
        harmless: Words in the argument with which it can still run during a turn.
        takes_path: Whether paths complete the last word of the argument, after `completions`.
        needs: What the front must have.
        source: Where it comes from: the program, a prompt file of person or project, an MCP server.
        hint_with: The hint for the argument if it depends on the plugins.
        gives_way: Whether a prompt file may have its name, and takes its place.
    """

    name: str
    description: str
    argument_hint: str
    run: CommandFunction
    aliases: tuple[str, ...] = ()
    refusal: str | RefusalSource = ""
    completions: CompletionSource | None = None
    harmless: tuple[str, ...] = ()
    takes_path: bool = False
    needs: Need = ""
    source: CommandSource = "program"
    hint_with: HintSource | None = None
    gives_way: bool = False

    @property
    def needs_argument(self) -> bool:
        """Whether it does nothing without an argument."""
        return self.argument_hint.startswith("<")

    @property
    def room(self) -> str:
        """The module that it is defined in, or the feature."""
        return self.run.__module__.removesuffix(".command").rpartition(".")[2]

    @property
    def is_plugins(self) -> bool:
        """Whether the code of another package runs."""
        return self.run.__module__.partition(".")[0] != "agent_tui"

    @property
    def usage(self) -> str:
        """``/name [argument]``."""
        return f"/{self.name} {self.argument_hint}".rstrip()

    def among(self, plugins: Plugins) -> "Command":
        """The command with the argument hint for what `plugins` bring."""
        if self.hint_with is None:
            return self
        return replace(self, argument_hint=self.hint_with(plugins))

    def missing_in(self, front: Front) -> str:
        """Why it cannot work in `front`; empty if it can."""
        match self.needs:
            case "screen" if front.screen is None:
                return f"/{self.name} needs the screen: start agent-tui without {front.name}."
            case "person" if not front.can_ask:
                return f"/{self.name} asks a question, which nobody can answer with {front.name}."
            case "list" if not front.can_pick:
                return f"/{self.name} needs a list to pick from, which {front.name} cannot show."
            case _:
                return ""

    def refusal_of(self, argument: str, front: Front) -> str:
        """Why it cannot run with `argument` while `front` works; empty if it can."""
        if any(word in self.harmless for word in argument.split()):
            return ""
        return self.refusal if isinstance(self.refusal, str) else self.refusal(front)


def command(
    argument: str | HintSource = "",
    *,
    aliases: tuple[str, ...] = (),
    refusal: str | RefusalSource = "",
    completions: CompletionSource | None = None,
    harmless: tuple[str, ...] = (),
    takes_path: bool = False,
    needs: Need = "",
    gives_way: bool = False,
) -> Callable[[CommandFunction], Command]:
    """Make a function a slash command: its name and its docstring's first line describe it.

    Args:
        argument: Hint for the argument, in ``[]`` if it is optional; a function if it depends on
            the plugins.
        aliases: Other names.
        refusal: If given, the command is refused while a turn runs, with these words, in which
            ``{stop}`` says how to stop it (see `Ways`), or with those of the function.
        completions: Possible arguments.
        harmless: Words in the argument with which it is not refused.
        takes_path: Whether paths complete the last word of the argument.
        needs: What the front must have; if it is missing, the command says so.
        gives_way: Whether a prompt file of the user or the project may have its name.
    """

    def make(function: CommandFunction) -> Command:
        return Command(
            name=getattr(function, "__name__", "").rstrip("_"),
            description=(inspect.getdoc(function) or "").partition("\n")[0].removesuffix("."),
            argument_hint=argument if isinstance(argument, str) else argument(Plugins()),
            run=function,
            aliases=aliases,
            refusal=refusal,
            completions=completions,
            harmless=harmless,
            takes_path=takes_path,
            needs=needs,
            hint_with=None if isinstance(argument, str) else argument,
            gives_way=gives_way,
        )

    return make
