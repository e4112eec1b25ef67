"""What running a call needs besides the conversation."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from agent_tui.agent.activity import Emit
from agent_tui.agent.turn.command_network import CommandNetwork
from agent_tui.agent.turn.pending_approvals import (
    PendingApprovals,
    UseMode,
)
from agent_tui.tools.base import (
    Ability,
    History,
    ToolOutput,
)
from agent_tui.tools.form import FormFiller


@dataclass(frozen=True, slots=True)
class ToolServices:
    """The services for running a call, beside the conversation.

    `pending` takes answers to approvals; `history` returns what `recall` searches; `compact`
    carries out the tool of that name; `abilities` are what other tools ask for. `network` decides
    on connections that commands want. `use_mode` changes the permission mode. `fill_form` has the
    user fill a form; None if nobody can.
    """

    pending: PendingApprovals
    history: Callable[[], History]
    compact: Callable[[str, Emit], Awaitable[ToolOutput]]
    abilities: Sequence[Ability] = ()
    network: CommandNetwork = field(default_factory=CommandNetwork)
    use_mode: UseMode = str
    fill_form: FormFiller | None = None
