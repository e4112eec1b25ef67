"""What the status bar shows, read from the conversation."""

from pathlib import Path

from agent_tui.commands.core.short_words import short_path
from agent_tui.compaction.policy import context_level
from agent_tui.ui.guest import TerminalGuest
from agent_tui.ui.options import UiOptions
from agent_tui.ui.status_bar import StatusFields, git_branch


class StatusSource:
    """Reads the runtime; the branch is read by `look_at_branch`, as that touches the disk."""

    def __init__(self, options: UiOptions, guest: TerminalGuest) -> None:
        self._options = options
        self._guest = guest
        self._branch = ""
        self._sandbox = ""

    def look_at_branch(self) -> None:
        """Read which branch is checked out and whether commands are sandboxed. Blocking."""
        cwd = self._options.runtime.cwd
        self._branch = git_branch(cwd)
        self._sandbox = self._options.sandbox_word(cwd)

    def fields(self) -> StatusFields:
        """The fields as they are now."""
        runtime = self._options.runtime
        usage, totals = runtime.usage, runtime.totals
        reserve = runtime.conversation.output_reserve
        return StatusFields(
            folder=short_path(runtime.cwd, Path.home()),
            branch=self._branch,
            model=runtime.model.name or "no model",
            mode=runtime.permission_mode,
            input_tokens=totals.input_tokens,
            output_tokens=totals.output_tokens,
            cost_usd=totals.cost_usd,
            name=runtime.log.name,
            usage=usage,
            level=context_level(usage, runtime.settings.compaction, reserve),
            badge=self._badge(),
            sandbox=self._sandbox,
            is_mouse_off=not self._guest.is_mouse_on,
        )

    def _badge(self) -> str:
        if self._options.runtime.log.is_read_only:
            return "read-only"
        return "demo" if self._options.is_demo else ""
