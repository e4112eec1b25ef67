"""What a command may use of the front the person is at: the screen, lines, ``-p``, an editor.

A command says what it wants to tell, to ask and to do; how that looks is the front's. Nothing
here assumes a terminal.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar

from agent_tui.commands.core.plugins import Plugins
from agent_tui.errors import UsageError

Row: TypeAlias = tuple[str, str]
"""A name and what is said of it; either may be empty."""


@dataclass(frozen=True, slots=True)
class PageSection:
    """Rows of two columns under a heading, which may be empty."""

    heading: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A titled list of sections; `is_searched`: so long that one looks for a row by its words."""

    title: str
    sections: tuple[PageSection, ...]
    is_searched: bool = False

    async def page(self) -> "Page":
        """Itself: a `Showable` that needs nothing more."""
        return self


class Showable(Protocol):
    """Something to show that a front may draw better than as rows."""

    async def page(self) -> Page:
        """The same as rows.

        Raises:
            AgentTuiError: It could not be worked out.
        """
        ...


def page_lines(page: Page) -> list[str]:
    """A page as lines of text: its title, then each section's rows under its heading."""
    lines = [page.title]
    for section in page.sections:
        lines += ["", section.heading] if section.heading else [""]
        lines += [": ".join(filter(None, row)) for row in section.rows]
    return lines


ValueT = TypeVar("ValueT")
ValueT_co = TypeVar("ValueT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Choice(Generic[ValueT_co]):
    """One thing that can be chosen.

    Attributes:
        value: What the command gets.
        label: What the person reads.
        key: The letter that chooses it, in a `Question`.
        details: More about it, in a `Listing`.
    """

    value: ValueT_co
    label: str
    key: str = ""
    details: str = ""


@dataclass(frozen=True, slots=True)
class Question(Generic[ValueT]):
    """One question with a few answers, each with a letter of its own.

    Attributes:
        title: What is asked.
        facts: What there is to know before answering, a line each.
        choices: The answers.
        is_grave: A letter that was meant for something else must not answer it.
        unanswered: What leaving it without an answer does.
        marked: The answer that Enter gives at first. It is a no if a yes allows more than one
            call or cannot be undone.
    """

    title: str
    facts: tuple[str, ...]
    choices: tuple[Choice[ValueT], ...]
    is_grave: bool = False
    unanswered: str = "cancel"
    marked: int = 0


def loss_question(title: str, consequence: str) -> Question[bool]:
    """Whether to do what no undo brings back."""
    answers = (Choice(True, "yes", "y"), Choice(False, "no", "n"))
    return Question(title, (consequence,), answers, marked=1)


@dataclass(frozen=True, slots=True)
class TextQuestion:
    """Something that is answered with a line of text.

    Attributes:
        title: What is asked for.
        about: More about it, one line.
        present: What stands there at first; empty for nothing.
        empty_means: What an empty answer does.
    """

    title: str
    about: str
    present: str
    empty_means: str


@dataclass(frozen=True, slots=True)
class Listing(Generic[ValueT_co]):
    """Things to pick one from.

    Attributes:
        title: What is picked.
        choices: What there is.
        empty: What is said where that is nothing.
        typed: What may be typed instead, such as ``a model's name``; empty for nothing.
    """

    title: str
    choices: tuple[Choice[ValueT_co], ...]
    empty: str
    typed: str = ""

    async def listing(self) -> "Listing[ValueT_co]":
        """Itself: a `Pickable` that needs nothing more."""
        return self


class Pickable(Protocol[ValueT_co]):
    """Something to pick from that a front may show better than as a list."""

    async def listing(self) -> Listing[ValueT_co]:
        """The same as a plain list."""
        ...


if TYPE_CHECKING:  # pydantic and the conversation come after the first paint
    from agent_tui.agent.runtime import AgentRuntime
    from agent_tui.commands.core.known_models import KnownModels
    from agent_tui.config.editor import SettingsEditor
    from agent_tui.events import AgentEvent
    from agent_tui.providers.base import FoundModel, ModelInfo, ModelRef
    from agent_tui.tools.mcp.hub import McpHub

Level: TypeAlias = Literal["info", "warning", "error"]
AnswerT = TypeVar("AnswerT")


class ModelSource(Protocol):
    """What is asked about models (`ModelCatalog` does it)."""

    def resolve(self, name: str) -> "ModelRef":
        """The model called `name`; raises an `AgentTuiError` that names near matches."""
        ...

    def info(self, ref: "ModelRef") -> "ModelInfo":
        """What is known of a model."""
        ...

    async def found(self) -> "tuple[FoundModel, ...]":
        """Models that can be used now: keys that are set, servers that answer."""
        ...


@dataclass(frozen=True, slots=True)
class CommandServices:
    """What of the program commands work on besides the conversation.

    Attributes:
        models: Answers questions about models.
        known_models: Which models were chosen before, and which the person marked.
        servers: The MCP servers; None where there can be none.
        settings: Where settings are read and changed; None where there are none.
        plugins: What other packages bring.
    """

    models: ModelSource
    known_models: "KnownModels"
    servers: "McpHub | None" = None
    settings: "SettingsEditor | None" = None
    plugins: Plugins = field(default_factory=Plugins)


@dataclass(frozen=True, slots=True)
class FrontHelp:
    """What a front tells of itself in ``/help`` and ``/keys``.

    Attributes:
        keys: All keys; empty where there are none.
        commands: The commands that do something in this front, by subject.
    """

    keys: tuple[PageSection, ...]
    commands: tuple[PageSection, ...]


class ScreenControls(Protocol):
    """What only a front that draws on a screen has."""

    @property
    def theme_names(self) -> tuple[str, ...]:
        """Themes that can be chosen."""
        ...

    @property
    def theme_in_use(self) -> str:
        """The theme that is shown."""
        ...

    def set_theme(self, name: str) -> None:
        """Use another theme."""
        ...

    async def pick_theme(self) -> str | None:
        """Let the person try the themes on; the one that was in use is back after a no."""
        ...

    def show_tour(self, is_shown: bool | None) -> bool:
        """Show or hide the steps of the tour (None: turn it over); false where there is none."""
        ...

    def start_tour(self) -> None:
        """Leave this conversation for the tour."""
        ...

    @property
    def is_mouse_on(self) -> bool:
        """Whether clicks and drags come to the program."""
        ...

    def set_mouse(self, on: bool) -> None:
        """Take the mouse, or leave it to the terminal."""
        ...

    async def find(self, text: str) -> None:
        """Search the chat for `text`, or ask for it."""
        ...

    def show_scrollback(self) -> None:
        """Write the whole conversation into the terminal's scrollback, and wait there."""
        ...

    @property
    def last_reply(self) -> str:
        """The text of the model's last reply, empty if there is none."""
        ...

    def copy(self, text: str) -> str:
        """Copy to the clipboard; returns the way it was done, for the person."""
        ...


class Front(Protocol):
    """Where the person is, as commands see it."""

    @property
    def name(self) -> str:
        """What one calls it by: ``--plain``."""
        ...

    @property
    def runtime(self) -> "AgentRuntime":
        """The conversation."""
        ...

    @property
    def services(self) -> CommandServices:
        """What else commands work on."""
        ...

    @property
    def screen(self) -> ScreenControls | None:
        """What only a screen has; None where nothing is drawn."""
        ...

    @property
    def can_ask(self) -> bool:
        """Whether somebody is there who answers `ask`."""
        ...

    @property
    def can_pick(self) -> bool:
        """Whether they can `pick` from lists and be asked for texts, too."""
        ...

    @property
    def is_working(self) -> bool:
        """Whether an activity runs, beside which a command was called."""
        ...

    def help(self) -> FrontHelp:
        """What can be done here."""
        ...

    def say(self, text: str, level: Level = "info") -> None:
        """Tell one thing, in a line or a few."""
        ...

    def show_events(self, events: "Iterable[AgentEvent]") -> None:
        """Show what a quick change of the runtime returned."""
        ...

    def show_thinking(self, is_shown: bool) -> None:
        """Show or hide what the model thinks, from now on."""
        ...

    async def show(self, shown: Showable) -> None:
        """Show a page, until the person has read it where it covers others."""
        ...

    async def ask(self, question: Question[AnswerT]) -> AnswerT | None:
        """Ask something with a few answers; None if it was left without one."""
        ...

    async def ask_text(self, question: TextQuestion) -> str | None:
        """Ask for a line of text; None if it was left without one."""
        ...

    async def pick(self, wanted: Pickable[AnswerT]) -> AnswerT | str | None:
        """Have one thing picked; a text was typed instead, None: nothing was picked."""
        ...

    async def edit_file(self, path: Path) -> bool:
        """Let the person's editor change a file; false, with the reason said, if it did not."""
        ...

    async def set_up_model(self) -> bool:
        """Offer the ways to a first model; false where there is none but ``/model``."""
        ...

    def warm_up(self) -> None:
        """Get the model in use ready in the background."""
        ...

    async def run(self, events: "AsyncGenerator[AgentEvent, None]") -> None:
        """Run an activity of the runtime and show its events.

        Returns at once where the person can go on meanwhile, else at its end.
        """
        ...

    async def send(self, text: str) -> None:
        """Deliver `text` to the running turn, or send it if none runs; returns as `run`."""
        ...

    def interrupt(self) -> bool:
        """Stop the running activity; false if none runs."""
        ...

    def leave(self) -> None:
        """End the program."""
        ...


async def has_model(front: Front) -> bool:
    """Whether a model is chosen; where none is, the person is offered the ways to one."""
    if not front.runtime.conversation.model.name and not await front.set_up_model():
        front.say("No model chosen. Use /model.", "warning")
    return bool(front.runtime.conversation.model.name)


class UnansweredFront(ABC):
    """Tells pages as lines, and refuses questions with what there is to name."""

    nobody_answers: ClassVar[str]
    """Why, behind what was asked."""

    instead: ClassVar[str] = "Give the command its argument."
    """What to do."""

    @abstractmethod
    def say(self, text: str, level: Level = "info") -> None:
        """Tell one thing."""

    async def show(self, shown: Showable) -> None:
        """A page, as lines."""
        self.say("\n".join(page_lines(await shown.page())))

    async def ask(self, question: Question[AnswerT]) -> AnswerT | None:
        """Refuse."""
        raise self._refused(question.title)

    async def ask_text(self, question: TextQuestion) -> str | None:
        """Refuse."""
        raise self._refused(question.title)

    async def pick(self, wanted: Pickable[AnswerT]) -> AnswerT | str | None:
        """Refuse, and tell what there is to name."""
        listing = await wanted.listing()
        rows = (": ".join(filter(None, (each.label, each.details))) for each in listing.choices)
        self.say("\n".join((listing.title, *rows)) if listing.choices else listing.empty)
        raise self._refused(listing.title)

    async def set_up_model(self) -> bool:
        """There is only ``/model`` with a name, or ``-m``."""
        return False

    def _refused(self, title: str) -> UsageError:
        return UsageError(f"{title.rstrip('?.:')}: {self.nobody_answers}", self.instead)
