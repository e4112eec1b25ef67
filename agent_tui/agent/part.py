"""What a feature does in a conversation: a part, whose methods the core calls at their moments."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, cast

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.services import RuntimeServices
from agent_tui.agent.turn.command_network import CommandNetwork
from agent_tui.agent.turn.user_message import NewMessage
from agent_tui.events import AgentEvent, CompactionFinished, CompactionReason, Notice
from agent_tui.feature import Feature, load_object
from agent_tui.messages import JsonObject, ToolCall, ToolSpec
from agent_tui.providers.base import ModelRef, ProviderError
from agent_tui.sessions.entries import Entry
from agent_tui.sessions.lineage.chain import SessionChain
from agent_tui.tools.base import Ability, Toolbox, ToolOutput
from agent_tui.tools.form import Elicitation
from agent_tui.tools.other_tools import gather_seldom_tools


class RunsTurn(Protocol):
    """A turn that has not begun."""

    async def run(self, message: NewMessage | None) -> None:
        """Run the turn to its end. `message` is the user's; None continues the last turn."""
        ...


class Host(Protocol):
    """What a part is given to work with."""

    @property
    def services(self) -> RuntimeServices:
        """What conversations share."""
        ...

    @property
    def conversation(self) -> Conversation:
        """The present conversation; not there yet when a part is made."""
        ...

    @property
    def network(self) -> CommandNetwork:
        """Decides on connections that commands want."""
        ...

    @property
    def can_fill_forms(self) -> bool:
        """Whether somebody can fill a form."""
        ...

    async def fill_form(self, form: Elicitation) -> JsonObject:
        """Have the user fill `form`, once what happened before is shown; the answer as MCP has it.

        A form that is cancelled disappears.
        """
        ...

    @property
    def can_wake(self) -> bool:
        """Whether a turn can begin without a message of the user's; see `Part.wake`."""
        ...

    def make_turn(self, emit: Emit) -> RunsTurn:
        """Make a turn of the conversation, whose events go to `emit`."""
        ...

    async def run_helper(
        self, helper: Conversation, task: str, most_replies: int, emit: Emit
    ) -> None:
        """Have a helper do `task` in one turn, which asks nobody; its jobs end with it.

        Args:
            helper: Its conversation. It can recall what the present one can.
            task: The only message it gets.
            most_replies: The turn ends after so many.
            emit: Takes the events of the turn.
        """
        ...

    def drop_planned_compaction(self) -> None:
        """Drop what was planned for the next compaction: messages in the context were replaced."""
        ...

    def history(self) -> SessionChain:
        """Return the entries of the conversation and of the sessions that it continues."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What a part says before a message is added or the context is compacted.

    Attributes:
        refusal: Why it must not be; empty if it may.
        by: Who refuses, in a word or two, such as ``a hook``.
        added: Entries that follow the message or the compaction.
        notices: What the user reads after the message.
    """

    refusal: str = ""
    by: str = "a feature"
    added: Sequence[Entry] = ()
    notices: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """What a part says about a tool call before it is judged; it allows nothing.

    Attributes:
        refusal: Why it must not run; empty if nothing is against it.
        by: Who refuses or changes it, in a word or two, such as ``a hook``.
        stops: Whether a refusal ends the turn.
        doubt: Why the user should be asked; empty if that is not needed.
        arguments: Other arguments, which are judged like any others; None to keep them.
        remark: What the model reads with the result.
    """

    refusal: str = ""
    by: str = "a feature"
    stops: bool = False
    doubt: str = ""
    arguments: JsonObject | None = None
    remark: str = ""


class ProgramQuestion(NamedTuple):
    """The question whether a program that a file names may run.

    Attributes:
        title: The question.
        facts: What would run and where it is defined, all of it.
        answer: Takes the user's decision as ``is_allowed``.
        until: What ends a yes, as in "yes, until its command changes".
        at_terminal: Whether only a user at a terminal is asked, not through an editor.
    """

    title: str
    facts: Sequence[str]
    answer: Callable[..., Awaitable[None]]
    until: str = "its command changes"
    at_terminal: bool = False


class Part:
    """One feature in one conversation. A feature overrides what it takes part in.

    A part is made with its conversation and goes along when ``/compact`` begins a new session.
    Methods are called in the order of the features, and do nothing here.

    Args:
        host: What it works with.
    """

    def __init__(self, host: Host) -> None:
        self.host = host

    @property
    def is_open(self) -> bool:
        """Whether it has unfinished work, which the next message continues; see `drive`."""
        return False

    async def drive(self, message: NewMessage | None, emit: Emit) -> None:
        """Continue the unfinished work, with one `TurnFinished` at its end.

        Args:
            message: The user's message; None to continue without one.
            emit: Takes the events.
        """

    @property
    def must_finish(self) -> bool:
        """Whether something that ended waits for its last step, before other work continues."""
        return False

    async def finish(self, emit: Emit) -> bool:
        """Take the last step of what waits; the user continues.

        Returns:
            Whether the turn or other unfinished work follows. If not, a `TurnFinished` was emitted.
        """
        return True

    def wake(self) -> bool:
        """Return whether a turn begins now, without a message: the model is to learn something.

        Called while nothing runs. The turn calls `before_continuing` first.
        """
        return False

    def before_work(self, emit: Emit) -> None:
        """New work begins: drop what waits to be finished, and what no longer runs."""

    async def before_continuing(self, emit: Emit) -> None:
        """The last turn is about to be continued without a message."""

    async def before_message(self, text: str, emit: Emit) -> Answer:
        """A message of the user's is about to be added. The first refusal counts."""
        return Answer()

    async def before_call(self, call: ToolCall, paths: Sequence[Path], emit: Emit) -> CallAnswer:
        """A call is about to be judged.

        The first refusal counts; later parts see the arguments of those before them.

        Args:
            call: The call, with our own names of tools and arguments.
            paths: The files it concerns, absolute.
            emit: Takes events.
        """
        return CallAnswer()

    async def after_call(
        self, call: ToolCall, paths: Sequence[Path], output: ToolOutput, emit: Emit
    ) -> ToolOutput:
        """Return the output of a call that ran, changed or not. On cancellation it is kept."""
        return output

    async def continues(
        self, last_reply: str, times_before: int, most_times: int, emit: Emit
    ) -> bool:
        """Return whether a finished turn goes on; if so, append what the model is told first.

        Args:
            last_reply: The text of its last reply.
            times_before: How often parts continued this turn already.
            most_times: How often they may.
            emit: Takes events.
        """
        return False

    async def at_limit(self, error: ProviderError, model: ModelRef, emit: Emit) -> str | None:
        """A request failed for good, and the turn is about to wait for a reset or to end.

        The first answer counts.

        Args:
            error: Why it failed, such as a limit that is reached.
            model: The model that was asked.
            emit: Takes events.

        Returns:
            How the user can continue, so that the turn ends without a wait; empty if the request
            can be sent again now; None to leave it to the turn.
        """
        return None

    async def before_compaction(self, reason: CompactionReason, focus: str, emit: Emit) -> Answer:
        """The context is about to be compacted. The first refusal counts.

        Args:
            reason: Why.
            focus: What the user asked to pay attention to.
            emit: Takes events.
        """
        return Answer()

    async def after_compaction(self, made: CompactionFinished, emit: Emit) -> None:
        """The context was compacted."""

    def abilities(self, emit: Emit) -> Sequence[Ability]:
        """What the feature's tools ask for in a turn, whose events `emit` takes."""
        return ()

    def offered(
        self, specs: Sequence[ToolSpec], window: int, *, is_planning: bool
    ) -> Sequence[ToolSpec]:
        """Return which of `specs` the model is offered, with the texts that suit the conversation.

        Called whenever the prompt is made, in any thread; it may block.

        Args:
            specs: Tools that suit the model, in order of use.
            window: The model's context window in tokens; 0 if unknown.
            is_planning: Whether the model only plans.
        """
        return specs

    def toolbox(self) -> Toolbox | None:
        """The tools that it brings while the program runs, after all others; None without any.

        Called in any thread, often; it may block the first time. Where the tools changed, the part
        sets ``fitted`` of the conversation to None.
        """
        return None

    async def questions(self) -> Sequence[ProgramQuestion]:
        """Programs that wait to be started and that the user has not decided on."""
        return ()

    def for_helper(self, helper: Conversation) -> "Part | None":
        """The part that the conversation of a helper has; None if it has none."""
        return None

    def follow(self, earlier: "Part") -> None:
        """Take over from the feature's part in the session that the program was in before."""

    def opening_notices(self) -> Sequence[Notice]:
        """What the user who opens the session is told about unfinished work."""
        return ()

    async def way_back(self, folder: Path, session: str) -> str:
        """Return how to continue a session where it worked; empty if the feature does not know.

        Args:
            folder: Where it worked; the folder may be gone.
            session: Its id.
        """
        return ""

    def standing(self) -> AgentEvent | None:
        """The event that shows how far its work is; None if there is nothing to show."""
        return None

    @staticmethod
    def carried(path: Sequence[Entry]) -> Sequence[Entry]:
        """The entries for the session that a compaction of `path` begins, after its summary."""
        return ()

    @staticmethod
    def shown(entry: Entry) -> str:
        """The line in the chat for a stored entry of the feature; empty for any other."""
        return ""

    async def close(self) -> None:
        """End what it has running; the conversation ends with the program."""


async def ask_before(parts: Iterable[Part], ask: Callable[[Part], Awaitable[Answer]]) -> Answer:
    """Ask each of `parts`: the first refusal, or else all that they add, in their order."""
    added: list[Entry] = []
    notices: list[str] = []
    for part in parts:
        answer = await ask(part)
        if answer.refusal:
            return answer
        added += answer.added
        notices += answer.notices
    return Answer(added=added, notices=notices)


def part_types(features: Iterable[Feature]) -> tuple[type[Part], ...]:
    """Import the parts of `features`."""
    return tuple(cast(type[Part], load_object(each.part)) for each in features if each.part)


def abilities_of(parts: Iterable[Part], emit: Emit) -> tuple[Ability, ...]:
    """What tools of features ask for in a turn."""
    return tuple(ability for part in parts for ability in part.abilities(emit))


def offered_tools(
    parts: Iterable[Part], specs: Sequence[ToolSpec], window: int, *, is_planning: bool
) -> Sequence[ToolSpec]:
    """What the model is offered of `specs`: what `parts` let it be, seldom used tools in one.

    Each part sees what those before it left.
    """
    for part in parts:
        specs = part.offered(specs, window, is_planning=is_planning)
    return gather_seldom_tools(specs)


def carried_entries(parts: Iterable[Part], path: Sequence[Entry]) -> tuple[Entry, ...]:
    """What `parts` carry to the session that a compaction of `path` begins, in their order."""
    return tuple(entry for part in parts for entry in part.carried(path))
