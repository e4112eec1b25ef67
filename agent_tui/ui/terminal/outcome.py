"""How the screen was left."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UiOutcome:
    """How the screen was left.

    Args:
        exit_code: For the shell.
        wants_demo: Whether the user chose the demo.
        error: Why the program could not start; for whoever ran it.
    """

    exit_code: int = 0
    wants_demo: bool = False
    error: Exception | None = None
