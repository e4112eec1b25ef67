"""What a table of settings is, for the core's and for those of features."""

from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict


class SettingsSection(BaseModel):
    """A table of settings; a name it does not know is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class _AtOnce:
    """The type of `AT_ONCE`."""


AT_ONCE: Final = _AtOnce()
"""In the type of a setting of a feature: its change needs no new start."""


class _NoDefault:
    """The type of `NO_DEFAULT`."""


NO_DEFAULT: Final = _NoDefault()
"""In the type of a setting of a feature: a limit. A wrong value ends the start, as the default
would allow more than the user does."""


class OnlyStricter(NamedTuple):
    """In the type of a setting: a trusted project may set it, but not more loosely than the user.

    Attributes:
        order: Its values, the strictest first.
    """

    order: tuple[str, ...]
