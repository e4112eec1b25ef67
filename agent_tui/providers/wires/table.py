"""The wires, the most specific first; most are of features."""

from functools import cache
from typing import Final, cast

from agent_tui.feature import load_object, own_features
from agent_tui.providers.base import ModelRef
from agent_tui.providers.wires.anthropic import ANTHROPIC
from agent_tui.providers.wires.base import Wire
from agent_tui.providers.wires.chat import messages_to_send
from agent_tui.providers.wires.completions import COMPLETIONS

CHAT: Final = Wire("chat", lambda _model: "yes", messages_to_send, None)
"""Through litellm, for every model without another wire."""


@cache
def all_wires() -> tuple[Wire, ...]:
    """Every wire, in the order in which they are asked whether they fit."""
    names = (name for feature in own_features() for name in feature.wires)
    return (ANTHROPIC, *(cast(Wire, load_object(name)) for name in names), COMPLETIONS, CHAT)


def wires_to(model: ModelRef) -> tuple[Wire, ...]:
    """The wires for calling `model`, the one to try first at the front."""
    found: list[Wire] = []
    for wire in all_wires():
        fit = wire.fit(model)
        if fit != "no":
            found.append(wire)
        if fit == "yes":
            break
    return tuple(found)
