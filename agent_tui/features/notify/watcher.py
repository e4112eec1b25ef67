"""Notifies the user of a screen."""

import os

from agent_tui.events import AgentEvent
from agent_tui.features.notify.notifier import Notifier, notification_sequence
from agent_tui.features.notify.settings import NotifySettings
from agent_tui.ui.watchers import ScreenWatcher, WatchedScreen


class NotifyWatcher(ScreenWatcher):
    """Notifies a user who is away of questions and of the ends of long turns."""

    def __init__(self, screen: WatchedScreen) -> None:
        super().__init__(screen)
        self._notifier = Notifier(screen.settings.of(NotifySettings).notify, screen.clock)

    def see(self, event: AgentEvent) -> None:
        """Notify of `event` if the user is away."""
        if text := self._notifier.text_for(event):
            self.screen.start_work(self._notify(text))

    def note_key(self) -> None:
        """Note that the user is present."""
        self._notifier.person_acted()

    def note_focus(self, has_focus: bool) -> None:
        """Note whether the user looks at the terminal."""
        self._notifier.focus_changed(has_focus)

    async def _notify(self, text: str) -> None:
        method = await self._notifier.method(os.environ)
        if method.protocol is None:
            self.screen.ring()
        else:
            title = f"agent-tui · {self.screen.title()}"
            self.screen.write(notification_sequence(method, title, text))
