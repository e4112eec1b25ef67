"""How the screen was left."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class UiOutcome:
    """How the screen was left.

    Args:
        exit_code: For the shell.
        wants: ``demo`` if the user chose the scripted tour.
        error: Why the program could not start; for whoever ran it.
    """

    exit_code: int = 0
    wants: Literal["", "demo"] = ""
    error: Exception | None = None
