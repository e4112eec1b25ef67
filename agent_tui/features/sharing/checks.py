"""What ``agent-tui doctor`` checks for shared sessions."""

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from agent_tui.commands.core.checks import Check, CheckContext
from agent_tui.installation import install_command


def check_encryption(_context: CheckContext) -> Iterator[Check]:
    """Report the package that encrypts what is pushed."""
    try:
        yield Check("encryption", "ok", f"pyrage {version('pyrage')}")
    except PackageNotFoundError:
        advice = f"To encrypt shared sessions: {install_command('encryption')}"
        yield Check("encryption", "info", "not installed (optional)", advice)
