"""Modes of the prompt's text field: features bring them, and the settings choose one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, cast

from textual.events import Key
from textual.widgets import TextArea

from agent_tui.commands.core.front import PageSection
from agent_tui.config import Settings
from agent_tui.feature import load_object, own_features

Walk: TypeAlias = Literal["", "older", "newer"]
"""The draft of the history that is wanted instead; empty for none."""


class KeyModes(Protocol):
    """Takes the keys of a text field."""

    @property
    def is_writing(self) -> bool:
        """Whether keys write text."""
        ...

    @property
    def title(self) -> str:
        """The name of the present mode."""
        ...

    def begin(self, *, is_writing: bool = False) -> None:
        """Switch to another text, which the field has already."""
        ...

    def take(self, event: Key) -> bool:
        """Handle a key; false leaves it to the text field."""
        ...


@dataclass(frozen=True, slots=True)
class PromptModes:
    """What the ``prompt_modes`` of a `Feature` name.

    Attributes:
        guide: Their section of ``/keys``. Names of keys in braces become the keys.
        are_wanted: Whether the settings turn them on.
        make: The modes for a text field. The function is called after each key that was used.
    """

    guide: PageSection
    are_wanted: Callable[[Settings], bool]
    make: Callable[[TextArea, Callable[[Walk], None]], KeyModes]


def brought_modes() -> tuple[PromptModes, ...]:
    """The modes that features bring."""
    names = (name for feature in own_features() for name in feature.prompt_modes)
    return tuple(cast(PromptModes, load_object(name)) for name in names)
