"""A demo: a conversation in a scratch folder whose replies are prepared. A feature brings it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from agent_tui.events import AgentEvent
from agent_tui.feature import demo_option, load_object
from agent_tui.key_actions import KEY_ACTIONS, keys_in_force
from agent_tui.providers.base import ModelRef


@dataclass(frozen=True, slots=True)
class DemoStep:
    """One step.

    Attributes:
        title: The step in a few words.
        text: How to do it, and what to look at; key actions are in braces, such as ``{submit}``.
        draft: The text that the prompt suggests; may be empty.
    """

    title: str
    text: str
    draft: str = ""

    @property
    def shown(self) -> str:
        """The text with the present keys filled in."""
        keys = keys_in_force()
        return self.text.format_map({name: keys.first_key(name) for name in KEY_ACTIONS})


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo and its steps.

    Attributes:
        name: What it is called, such as ``Tour``.
        command: The slash command that starts it, and shows and hides its steps.
        about: What it offers, in a few words.
        choice: What a user chooses to start it, such as ``Take the tour``.
        needs: What it needs, in a few words.
        notice: The first thing that the user reads in it.
        model: Gives the prepared replies; a provider that the feature brings has it.
        prepare: Writes the files of the scratch folder, which is there. Raises `OSError`.
        steps: What the user does, in order.
        step_after: Returns the number of the step after an event, given that of the present one;
            the number of `steps` is the end.
    """

    name: str
    command: str
    about: str
    choice: str
    needs: str
    notice: str
    model: ModelRef
    prepare: Callable[[Path], None]
    steps: tuple[DemoStep, ...]
    step_after: Callable[[int, AgentEvent], int]


def own_demo() -> Demo | None:
    """The demo that a feature of the program brings; None if there is none."""
    option = demo_option()
    return cast(Demo, load_object(option.demo)) if option is not None else None
