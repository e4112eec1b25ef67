"""What follows the conversation around the chat: status bar, title, welcome, hint, a call."""

import os
from typing import TYPE_CHECKING

from agent_tui.ui.hints import Doing, Situation, hint_text

if TYPE_CHECKING:
    from agent_tui.events import AgentEvent
    from agent_tui.ui.chat_app import ChatApp
    from agent_tui.ui.status_bar import StatusFields


class Surroundings:
    """Keeps everything around the chat true.

    Args:
        app: Its parts are there before anything is called here.
    """

    def __init__(self, app: "ChatApp") -> None:
        self._app = app
        self._told: Doing = "idle"

    def refresh(self) -> None:
        """Bring all of it up to date, the prompt's frame included."""
        fields = self._app.ready.status.fields()
        self._app.status.show(fields)
        self._app.prompt.set_class(fields.mode == "plan", "-plan")
        self._refresh_title(fields)
        self._refresh_welcome()
        self.refresh_hint()

    def refresh_hint(self) -> None:
        """Tell a new user what is useful now."""
        parts = self._app.ready
        if not parts.newcomer.is_new:
            parts.activity.show_hint("")
            return
        request = parts.approval.request
        situation = Situation(
            doing=self._doing,
            mode=self._app.runtime.conversation.approvals.mode,
            text=self._app.prompt.area.text,
            is_menu_open=self._app.prompt.menu.is_open,
            can_make_rule=request is not None and bool(request.session_rule),
        )
        parts.activity.show_hint(hint_text(situation))

    def notice(self, event: "AgentEvent") -> None:
        """Something happened: the title and the hint follow, and who is away is called."""
        if self._doing != self._told:
            self._refresh_title(self._app.ready.status.fields())
            self.refresh_hint()
        if text := self._app.ready.attention.reason_to_call(event):
            self._app.run_worker(self._call_person(text), group="call")

    @property
    def _doing(self) -> Doing:
        if self._app.ready.approval.request is not None:
            return "asks"
        return "working" if self._app.ready.turns.is_running else "idle"

    def _refresh_title(self, fields: "StatusFields") -> None:
        self._told = self._doing
        title = " · ".join(filter(None, (fields.folder, fields.name, self._told)))
        self._app.guest.show_title(title)

    def _refresh_welcome(self) -> None:
        from agent_tui.ui.welcome import renewed_welcome

        chat = self._app.ready.chat
        blocks = chat.blocks
        if (welcome := renewed_welcome(self._app.ready.options, blocks)) is not None:
            chat.load((welcome, *blocks[1:]))

    async def _call_person(self, text: str) -> None:
        from agent_tui.ui.notifying import notification_sequence

        way = await self._app.ready.attention.way(os.environ)
        if way.protocol is None:
            self._app.bell()
        else:
            title = f"agent-tui · {self._app.ready.status.fields().folder}"
            self._app.write_to_terminal(notification_sequence(way, title, text))
