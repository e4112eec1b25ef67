"""What ``agent-tui doctor`` checks of the search in files."""

from collections.abc import Iterator

from agent_tui.commands.core.checks import Check, CheckContext, check_version
from agent_tui.features.file_search.ripgrep import ripgrep_program
from agent_tui.installation import install_command


def check_ripgrep(context: CheckContext) -> Iterator[Check]:
    """The version of ripgrep, the user's or the wheel's."""
    program = ripgrep_program(context.environ)
    advice = f"Reinstall: {install_command(again=True)}"
    missing = Check("rg", "bad", "not found; files cannot be searched", advice)
    yield check_version(context, "rg", program) or missing
