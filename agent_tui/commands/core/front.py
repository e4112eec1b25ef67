"""What commands may use of a front: the screen, lines, ``-p`` or an editor.

A command says what to tell, ask and do; the front decides how that looks. Nothing
here assumes a terminal.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar

from agent_tui.errors import UsageError

Row: TypeAlias = tuple[str, str]
"""A name and a text about it; either may be empty."""


@dataclass(frozen=True, slots=True)
class PageSection:
    """Rows of two columns under a heading, which may be empty."""

    heading: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A titled list of sections.

    Attributes:
        title: Its title.
        sections: What it shows.
        is_searched: Whether it is so long that users search its rows.
        opens_at_end: Whether a screen shows its end first, as of an output.
    """

    title: str
    sections: tuple[PageSection, ...]
    is_searched: bool = False
    opens_at_end: bool = False

    async def page(self) -> "Page":
        """Returns itself: a `Showable` that needs nothing more."""
        return self


class Showable(Protocol):
    """Something that a front may show in a better form than rows."""

    async def page(self) -> Page:
        """The contents as rows.

        Raises:
            AgentTuiError: It could not be computed.
        """
        ...


def page_lines(page: Page) -> list[str]:
    """A page as lines of text: its title, then each heading with its rows."""
    lines = [page.title]
    for section in page.sections:
        lines += ["", section.heading] if section.heading else [""]
        lines += [": ".join(filter(None, row)) for row in section.rows]
    return lines


ValueT = TypeVar("ValueT")
ValueT_co = TypeVar("ValueT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Choice(Generic[ValueT_co]):
    """One option.

    Attributes:
        value: The value that the command gets.
        label: The text that the user reads.
        key: The letter that chooses it, in a `Question`.
        details: More about it, in a `Listing`.
    """

    value: ValueT_co
    label: str
    key: str = ""
    details: str = ""


@dataclass(frozen=True, slots=True)
class Question(Generic[ValueT]):
    """One question with a few answers, each with its own letter.

    Attributes:
        title: The question.
        facts: Facts to know before answering, one line each.
        choices: The answers.
        is_grave: Whether letters typed earlier must not answer it.
        unanswered: What happens without an answer.
        marked: The answer that Enter gives at first. It is "no" if "yes" allows more than one call
            or cannot be undone.
    """

    title: str
    facts: tuple[str, ...]
    choices: tuple[Choice[ValueT], ...]
    is_grave: bool = False
    unanswered: str = "cancel"
    marked: int = 0


def loss_question(title: str, consequence: str) -> Question[bool]:
    """The question whether to do something that cannot be undone."""
    answers = (Choice(True, "yes", "y"), Choice(False, "no", "n"))
    return Question(title, (consequence,), answers, marked=1)


@dataclass(frozen=True, slots=True)
class TextQuestion:
    """A question that is answered with a line of text.

    Attributes:
        title: The question.
        about: More about it, one line.
        present: The initial text; may be empty.
        empty_means: What an empty answer does.
        is_edited: Whether the user changes the initial text rather than replaces it.
        keep_unsent: Given what is written, within a second of a change and when the user leaves
            without an answer. None: it is kept with the draft of the prompt, and returns there.
    """

    title: str
    about: str
    present: str
    empty_means: str
    is_edited: bool = False
    keep_unsent: Callable[[str], object] | None = None


class HeldAnswers:
    """Answers that the user gave to several questions, and that are sent together.

    Args:
        keep: Called with all of them after each change.
    """

    def __init__(self, keep: Callable[[Sequence[str]], object] = len) -> None:
        self._keep = keep
        self._texts: list[str] = []

    def add(self, text: str) -> None:
        """Hold another answer."""
        self._texts.append(text)
        self._keep(self._texts)

    def mark_sent(self) -> None:
        """Hold none: they were sent."""
        self._texts.clear()
        self._keep(self._texts)


@dataclass(frozen=True, slots=True)
class Listing(Generic[ValueT_co]):
    """A list to pick one item from.

    Attributes:
        title: The heading.
        choices: The items.
        empty: The text to show if there are no items.
        typed: What may be typed instead, such as ``a model's name``; empty for nothing.
        is_grave: Whether what was typed earlier must not answer it.
    """

    title: str
    choices: tuple[Choice[ValueT_co], ...]
    empty: str
    typed: str = ""
    is_grave: bool = False

    async def listing(self) -> "Listing[ValueT_co]":
        """Returns itself: a `Pickable` that needs nothing more."""
        return self


class Pickable(Protocol[ValueT_co]):
    """Something to pick from that a front may show in a better form than a list."""

    async def listing(self) -> Listing[ValueT_co]:
        """The items as a plain list."""
        ...


if TYPE_CHECKING:  # pydantic and the conversation load after the first paint
    from agent_tui.agent.runtime import AgentRuntime
    from agent_tui.commands.core.known_models import KnownModels
    from agent_tui.commands.core.plugins import Plugins
    from agent_tui.config.user_file import SettingsEditor
    from agent_tui.events import AgentEvent
    from agent_tui.providers.base import FoundModel, ModelInfo, ModelRef
    from agent_tui.tools.tool_servers import ToolServers

Level: TypeAlias = Literal["info", "warning", "error"]
AnswerT = TypeVar("AnswerT")


class ModelSource(Protocol):
    """Looks up models; `ModelCatalog` implements it."""

    def resolve(self, name: str) -> "ModelRef":
        """The model called `name`; raises an `AgentTuiError` that names near matches."""
        ...

    def info(self, ref: "ModelRef") -> "ModelInfo":
        """The facts about a model."""
        ...

    async def list_models(self) -> "tuple[FoundModel, ...]":
        """Models that can be used now: keys that are set, servers that answer."""
        ...


def _no_servers() -> "ToolServers":
    from agent_tui.tools.tool_servers import ToolServers

    return ToolServers()


def _no_plugins() -> "Plugins":
    from agent_tui.commands.core.plugins import Plugins

    return Plugins()


@dataclass(frozen=True, slots=True)
class CommandServices:
    """The parts of the program, besides the conversation, that commands work on.

    Attributes:
        models: Looks up models.
        known_models: Models chosen before, and the user's favourites.
        servers: The servers whose tools the model may call.
        settings: Reads and changes settings; None if there are none.
        plugins: What other packages bring.
    """

    models: ModelSource
    known_models: "KnownModels"
    servers: "ToolServers" = field(default_factory=_no_servers)
    settings: "SettingsEditor | None" = None
    plugins: "Plugins" = field(default_factory=_no_plugins)


@dataclass(frozen=True, slots=True)
class FrontHelp:
    """A front's part of ``/help`` and ``/keys``.

    Attributes:
        keys: All keys; empty if there are none.
        commands: The commands that work in this front, by subject.
    """

    keys: tuple[PageSection, ...]
    commands: tuple[PageSection, ...]


class ScreenControls(Protocol):
    """The controls that only a front with a screen has."""

    def after_turn(self, says: str) -> AbstractAsyncContextManager[None]:
        """Wait for the end of what runs, and say that it `says`; what follows waits for the block.

        Without anything that runs, the block begins at once, and nothing is said.
        """
        ...

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
        """Let the user try themes; None, with the old theme restored, if they cancel."""
        ...

    def show_steps(self, is_shown: bool | None) -> bool:
        """Show or hide the steps of the demo (None: toggle); false if this is no demo."""
        ...

    def start_demo(self) -> None:
        """Leave this conversation for the demo."""
        ...

    @property
    def is_mouse_on(self) -> bool:
        """Whether the program receives clicks and drags."""
        ...

    def set_mouse(self, on: bool) -> None:
        """Capture the mouse, or leave it to the terminal."""
        ...

    async def show_bar(self, kind: type, text: str) -> None:
        """Show a bar above the prompt: a `ChatBar` of a feature (``ui/chat/bar.py``).

        Args:
            kind: Its class; a bar of it that is there already is used.
            text: What it begins with; may be empty.
        """
        ...

    def show_scrollback(self) -> None:
        """Write the whole conversation into the terminal's scrollback, and wait there."""
        ...

    @property
    def last_reply(self) -> str:
        """The text of the model's last reply; empty if there is none."""
        ...

    def copy(self, text: str) -> str:
        """Copy to the clipboard; returns how it was done, for the user."""
        ...


class Front(Protocol):
    """The front end that the user works in, as commands see it."""

    @property
    def name(self) -> str:
        """The name of the front for users: ``--plain``."""
        ...

    @property
    def runtime(self) -> "AgentRuntime":
        """The conversation."""
        ...

    @property
    def services(self) -> CommandServices:
        """The other services that commands use."""
        ...

    @property
    def screen(self) -> ScreenControls | None:
        """The screen's controls; None if nothing is drawn."""
        ...

    @property
    def can_ask(self) -> bool:
        """Whether somebody can answer `ask`."""
        ...

    @property
    def can_pick(self) -> bool:
        """Whether they can also answer `pick` and `ask_text`."""
        ...

    @property
    def is_working(self) -> bool:
        """Whether an activity was running when the command was called."""
        ...

    def help(self) -> FrontHelp:
        """The help for this front."""
        ...

    def say(self, text: str, level: Level = "info") -> None:
        """Show a text of one or a few lines."""
        ...

    def show_events(self, events: "Iterable[AgentEvent]") -> None:
        """Show the events that a quick change of the runtime returned."""
        ...

    def show_thinking(self, is_shown: bool) -> None:
        """Show or hide the model's thinking from now on."""
        ...

    async def show(self, shown: Showable) -> None:
        """Show a page; if it covers others, returns when the user has read it."""
        ...

    async def ask(self, question: Question[AnswerT]) -> AnswerT | None:
        """Ask a question with a few answers; None if it is left unanswered."""
        ...

    async def ask_text(self, question: TextQuestion) -> str | None:
        """Ask for a line of text; None if it is left unanswered."""
        ...

    def hold_answers(self) -> AbstractContextManager[HeldAnswers]:
        """Keep answers in a ``with`` block until they are sent; others return to the user."""
        ...

    async def pick(self, wanted: Pickable[AnswerT]) -> AnswerT | str | None:
        """Let the user pick an item; returns typed text instead, or None for nothing."""
        ...

    async def edit_file(self, path: Path) -> bool:
        """Open a file in the user's editor; if that fails, says why and returns false."""
        ...

    async def set_up_model(self) -> bool:
        """Offer ways to get a first model; false if there is one, or no way but ``/model``."""
        ...

    def warm_up(self) -> None:
        """Prepare the model in use in the background."""
        ...

    async def run(self, events: "AsyncGenerator[AgentEvent, None]") -> None:
        """Run an activity of the runtime and show its events.

        Returns at once if the user can continue meanwhile, else at its end.
        """
        ...

    async def send(self, text: str) -> None:
        """Deliver `text` to the running turn, or send it if none runs; returns like `run`."""
        ...

    def interrupt(self) -> bool:
        """Stop the running activity; false if none runs."""
        ...

    def leave(self) -> None:
        """End the program."""
        ...


async def has_model(front: Front) -> bool:
    """Whether a model is chosen; if not, first offers the user ways to get one."""
    if not front.runtime.conversation.model.name and not await front.set_up_model():
        front.say("No model chosen. Use /model.", "warning")
    return bool(front.runtime.conversation.model.name)


class UnansweredFront(ABC):
    """Shows pages as lines, and refuses questions, listing the possible answers."""

    nobody_answers: ClassVar[str]
    """Why nobody answers; follows the question."""

    instead: ClassVar[str] = "Give the command its argument."
    """What the user can do instead."""

    @abstractmethod
    def say(self, text: str, level: Level = "info") -> None:
        """Show a text."""

    async def show(self, shown: Showable) -> None:
        """Show a page as lines."""
        self.say("\n".join(page_lines(await shown.page())))

    async def ask(self, question: Question[AnswerT]) -> AnswerT | None:
        """Refuse the question."""
        raise self._refusal(question.title)

    async def ask_text(self, question: TextQuestion) -> str | None:
        """Refuse the question."""
        raise self._refusal(question.title)

    def hold_answers(self) -> AbstractContextManager[HeldAnswers]:
        """Nobody gives answers here."""
        return nullcontext(HeldAnswers())

    async def pick(self, wanted: Pickable[AnswerT]) -> AnswerT | str | None:
        """List the items, then refuse."""
        listing = await wanted.listing()
        rows = (": ".join(filter(None, (each.label, each.details))) for each in listing.choices)
        self.say("\n".join((listing.title, *rows)) if listing.choices else listing.empty)
        raise self._refusal(listing.title)

    async def set_up_model(self) -> bool:
        """There is none: only ``/model`` with a name, or ``-m``."""
        return False

    def _refusal(self, title: str) -> UsageError:
        return UsageError(f"{title.rstrip('?.:')}: {self.nobody_answers}", self.instead)


def is_at_terminal(front: Front) -> bool:
    """Whether a user at a terminal answers questions, and not an editor for them, or nobody."""
    return front.can_ask and not isinstance(front, UnansweredFront)


def after_turn(front: Front, says: str) -> AbstractAsyncContextManager[None]:
    """Wait for the end of what runs, as `ScreenControls.after_turn` does.

    Without a screen, commands that change what a turn uses run only between turns.
    """
    return nullcontext() if front.screen is None else front.screen.after_turn(says)


def refuse_without_screen(why: str) -> Callable[[Front], str]:
    """The refusal of a command that waits `after_turn`: `why` where it cannot."""
    return lambda front: why if front.screen is None else ""
