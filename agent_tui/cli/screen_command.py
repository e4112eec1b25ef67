"""``agent-tui``: shows the screen before the program behind it is loaded."""

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.cli.arguments import Arguments
from agent_tui.cli.early_settings import first_paint
from agent_tui.cli.fronts import switches_to_fronts
from agent_tui.errors import UsageError
from agent_tui.feature import demo_option, local_option
from agent_tui.ui.terminal.heap import use_one_heap
from agent_tui.ui.terminal.outcome import UiOutcome
from agent_tui.ui.terminal.run import run_ui

if TYPE_CHECKING:
    from agent_tui.permissions.trust import FolderTrust
    from agent_tui.ui.options import UiOptions
    from agent_tui.ui.window import Window


def run_screen(arguments: Arguments) -> int:
    """Open the screen; returns the exit code.

    Raises:
        UsageError: There is no terminal, or it cannot show a screen.
        AgentTuiError: The program could not be built; the terminal is restored first.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "The screen needs a terminal.", "Use -p to run one prompt without a screen."
        )
    if os.environ.get("TERM") == "dumb":
        raise UsageError(
            "The screen cannot run in this terminal: TERM=dumb.",
            f"Use {', or '.join(('-p to run one prompt', *switches_to_fronts()))}.",
        )
    use_one_heap()
    outcome = _show(arguments)
    if outcome.wants_demo:
        outcome = _show(_for_demo(arguments))
    if outcome.error is not None:
        raise outcome.error
    return outcome.exit_code


def _for_demo(arguments: Arguments) -> Arguments:
    """`arguments` for the demo, without the options about the conversation that was left."""
    demo, local = demo_option(), local_option()
    switches = tuple(name for name in arguments.switches if local is None or name != local.name)
    switches += (demo.name,) if demo is not None else ()
    return arguments._replace(switches=switches, prompt="", continues=False, resume=None)


def _show(arguments: Arguments) -> UiOutcome:
    paint = first_paint()
    folder = None if arguments.is_demo else (arguments.cwd or Path()).absolute()
    start = ScreenStart(arguments)
    return run_ui(
        start.load,
        theme=paint.theme,
        mouse=paint.mouse,
        folder=folder,
        before_loading=start.ask_first,
    )


class ScreenStart:
    """What happens between the first paint and the conversation.

    Args:
        arguments: The command line.
    """

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments
        self._trust: FolderTrust | None = None
        self._may_lack_rules = False

    async def ask_first(self, window: "Window") -> None:
        """Ask about the folder if it needs a decision, then about rules that cannot be read.

        Raises:
            UsageError: There is no such folder, or the user leaves because of the rules.
        """
        from agent_tui.cli.folders import folder_trust, launch_folder
        from agent_tui.cli.unread_rules import find_unread
        from agent_tui.ui.front import ask_about_unread, ask_at_start

        self._trust = trust = await asyncio.to_thread(folder_trust, self._arguments)
        if not self._arguments.is_demo:
            await ask_at_start(window, trust, launch_folder(self._arguments))
        answer = await ask_about_unread(window, lambda: find_unread(self._arguments, trust))
        self._may_lack_rules = answer == "ask"

    def load(self) -> "UiOptions":
        """Build the program and what its screen works on. Blocking.

        Raises:
            AgentTuiError: The folder, the model or the session asked for does not exist, or deny
                rules cannot be read and the user did not choose to continue.
        """
        from agent_tui.cli.screen_options import load_options

        return load_options(self._arguments, self._trust, may_lack_rules=self._may_lack_rules)
