"""Opening and closing the search of the chat."""

from typing import TYPE_CHECKING

from textual.css.query import NoMatches

from agent_tui.ui.find_bar import FindBar

if TYPE_CHECKING:
    from agent_tui.ui.chat_app import ChatApp


async def open_find(app: "ChatApp", text: str = "") -> None:
    """Show the search line below the chat, or go back to it; look for `text` if given."""
    parts = app.ready
    try:
        bar = app.query_one(FindBar)
    except NoMatches:
        bar = FindBar(parts.chat, parts.approval.postpone, app.prompt.focus)
        await app.query_one("#upper").mount(bar)
    bar.open(text)


def close_find(app: "ChatApp") -> bool:
    """End the search of the chat, wherever the keys go; false if there is none."""
    bars = app.query(FindBar)
    for bar in bars:
        bar.action_close()
    return bool(bars)
