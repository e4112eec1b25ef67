"""The wires, the most specific first: a new one is a line here."""

from typing import Final

from agent_tui.providers.base import ModelRef
from agent_tui.providers.wires.anthropic import ANTHROPIC
from agent_tui.providers.wires.base import Wire
from agent_tui.providers.wires.bedrock import BEDROCK
from agent_tui.providers.wires.chat import messages_to_send
from agent_tui.providers.wires.completions import COMPLETIONS
from agent_tui.providers.wires.gemini import GEMINI
from agent_tui.providers.wires.responses import RESPONSES
from agent_tui.providers.wires.vertex import VERTEX_CLAUDE, VERTEX_GEMINI

CHAT: Final = Wire("chat", lambda _model: "yes", messages_to_send, None)
"""Through litellm, for every model without another wire."""

WIRES: Final = (
    ANTHROPIC,
    RESPONSES,
    GEMINI,
    BEDROCK,
    VERTEX_GEMINI,
    VERTEX_CLAUDE,
    COMPLETIONS,
    CHAT,
)


def wires_to(model: ModelRef) -> tuple[Wire, ...]:
    """The wires for calling `model`, the one to try first at the front."""
    found: list[Wire] = []
    for wire in WIRES:
        fit = wire.fit(model)
        if fit != "no":
            found.append(wire)
        if fit == "yes":
            break
    return tuple(found)
