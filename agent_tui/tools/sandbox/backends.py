"""Which kind of wall a machine supports."""

from collections.abc import Callable

from agent_tui.tools.sandbox.plan import Backend
from agent_tui.tools.sandbox.seccomp import MACHINES


def backend_here(
    system: str,
    machine: str,
    bubblewrap_problem: Callable[[], str],
    landlock_problem: Callable[[], str],
) -> tuple[Backend, str]:
    """The best wall that works here, and why there is none if none works.

    Args:
        system: As in `sys.platform`.
        machine: As `platform.machine` returns it.
        bubblewrap_problem: Tries bubblewrap; says what is wrong, or nothing.
        landlock_problem: The same for Landlock; called only if bubblewrap does not work.
    """
    if system != "linux":
        return "none", "there is a sandbox only on Linux"
    if machine not in MACHINES:
        return "none", f"there is a sandbox only for {' and '.join(MACHINES)}"
    if not (no_bubblewrap := bubblewrap_problem()):
        return "bubblewrap", ""
    if not (no_landlock := landlock_problem()):
        return "landlock", ""
    return "none", f"{no_bubblewrap}; {no_landlock}"
