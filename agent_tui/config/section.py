"""What a table of settings is, for the core's and for those of features."""

from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict


class SettingsSection(BaseModel):
    """A table of settings; a name it does not know is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class _Mark:
    """The type of the marks in the types of settings."""


AT_ONCE: Final = _Mark()
"""In the type of a setting of a feature: its change needs no new start."""

NO_DEFAULT: Final = _Mark()
"""In the type of a limit: a wrong value ends the start, as the default would allow more."""


class OnlyStricter(NamedTuple):
    """In the type of a setting: a trusted project may set it, but not more loosely than the user.

    Attributes:
        order: Its values, the strictest first.
    """

    order: tuple[str, ...]
