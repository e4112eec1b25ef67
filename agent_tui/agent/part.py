"""What a feature does in a conversation: a part, whose methods the core calls at their moments."""

from collections.abc import Iterable, Sequence
from typing import Protocol, cast

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.turn.user_command import CommandNetwork
from agent_tui.agent.turn.user_message import NewMessage
from agent_tui.events import AgentEvent
from agent_tui.feature import Feature, load_object
from agent_tui.sessions.entries import Entry
from agent_tui.sessions.lineage.chain import SessionChain


class RunsTurn(Protocol):
    """A turn that has not begun."""

    async def run(self, message: NewMessage | None) -> None:
        """Run the turn to its end. `message` is the user's; None continues the last turn."""
        ...


class Host(Protocol):
    """What a part is given to work with."""

    @property
    def conversation(self) -> Conversation:
        """The present conversation; not there yet when a part is made."""
        ...

    @property
    def network(self) -> CommandNetwork:
        """Decides on connections that commands want."""
        ...

    def make_turn(self, emit: Emit) -> RunsTurn:
        """Make a turn of the conversation, whose events go to `emit`."""
        ...

    def history(self) -> SessionChain:
        """Return the entries of the conversation and of the sessions that it continues."""
        ...


class Part:
    """One feature in one conversation. A feature overrides what it takes part in.

    A part is made with its conversation and goes along when ``/compact`` begins a new session.

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


def part_types(features: Iterable[Feature]) -> tuple[type[Part], ...]:
    """Import the parts of `features`."""
    named = (feature.part for feature in features if feature.part)
    return tuple(cast(type[Part], load_object(name)) for name in named)


def carried_entries(parts: Iterable[Part | type[Part]], path: Sequence[Entry]) -> tuple[Entry, ...]:
    """What `parts` carry to the session that a compaction of `path` begins, in their order."""
    return tuple(entry for part in parts for entry in part.carried(path))
