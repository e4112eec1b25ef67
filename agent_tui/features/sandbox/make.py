"""Makes the sandbox of a program; with ``sandbox = "off"`` nothing else of it is imported."""

from agent_tui.cli.command_sandbox import ProgramSandbox, SandboxHost
from agent_tui.features.sandbox.settings import SandboxSettings


def make_sandbox(host: SandboxHost) -> ProgramSandbox:
    """The sandbox that the settings want; it has tried nothing yet.

    Raises:
        UsageError: The folder of sessions is not possible.
    """
    if host.settings.of(SandboxSettings).sandbox == "off":
        return ProgramSandbox()
    from agent_tui.features.sandbox.services import build_sandbox

    return build_sandbox(host)
