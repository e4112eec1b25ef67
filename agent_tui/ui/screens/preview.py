"""Shows what a compaction would do: the sizes, what goes and what stays."""

import time
from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.types import CSSPathType
from textual.widgets import Static

from agent_tui.commands.compaction import PREVIEW_TITLE, preview_sections
from agent_tui.compaction.outcome import CompactionPreview
from agent_tui.errors import AgentTuiError
from agent_tui.safe_text import safe_text
from agent_tui.ui.chat.activity_line import ActivityLine, ActivityState
from agent_tui.ui.parts import KeysLine
from agent_tui.ui.screens.modal import LeadingScreen
from agent_tui.ui.screens.page import section_widgets


class PreviewScreen(LeadingScreen):
    """Counts while it is open already, then shows the outcome. Writes nothing.

    Args:
        load: Works the preview out.
        present_label: The context as the status bar shows it; asked when `load` is done.
        clock: Monotonic seconds, to say for how long it counts.
        can_choose: Whether the person can go on to decide what is kept.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = ["modal.tcss", "page.tcss", "preview.tcss"]

    def __init__(
        self,
        load: Callable[[], Awaitable[CompactionPreview]],
        present_label: Callable[[], str],
        clock: Callable[[], float] = time.monotonic,
        *,
        can_choose: bool = False,
    ) -> None:
        super().__init__(can_choose=can_choose)
        self._load = load
        self._present_label = present_label
        self._clock = clock

    def compose(self) -> ComposeResult:
        """The frame, with a line that tells of the counting."""
        with VerticalScroll(id="page", classes="frame", can_focus=False):
            yield Static(PREVIEW_TITLE, id="page-title", markup=False)
            yield ActivityLine(self._clock)
            keys = f"↑↓ scroll · {self.choose_hint}/compact summarises · esc close"
            yield KeysLine(keys, id="page-keys")

    def on_mount(self) -> None:
        """Begin to count."""
        line = self.query_one(ActivityLine)
        line.show(ActivityState("Counting", self._clock(), can_stop=False))
        self.run_worker(self._count())

    async def _count(self) -> None:
        try:
            preview = await self._load()
        except AgentTuiError as error:
            found = [Static(safe_text(str(error)), classes="preview-note", markup=False)]
        else:
            found = list(section_widgets(preview_sections(preview, self._present_label())))
        line = self.query_one(ActivityLine)
        await self.query_one("#page").mount_all(found, before=line)
        await line.remove()
