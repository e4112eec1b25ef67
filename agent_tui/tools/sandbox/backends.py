"""Which wall stands on a machine."""

from collections.abc import Callable

from agent_tui.tools.sandbox.plan import Backend
from agent_tui.tools.sandbox.seccomp import MACHINES


def backend_here(
    system: str,
    machine: str,
    bubblewrap_problem: Callable[[], str],
    landlock_problem: Callable[[], str],
) -> tuple[Backend, str]:
    """The best wall that works, and why there is none where there is none.

    Args:
        system: As `sys.platform` names it.
        machine: As `platform.machine` names it.
        bubblewrap_problem: Tries bubblewrap; what is wrong with it, or nothing.
        landlock_problem: The same for Landlock; asked only if bubblewrap does not work.
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
