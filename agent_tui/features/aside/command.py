"""``/btw``: ask a side question."""

from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import (
    Front,
    has_model,
)
from agent_tui.events import Notice, NoticeSubject
from agent_tui.features.aside.question import ask_aside
from agent_tui.safe_text import strip_control_characters


@command("<question>")
async def btw(front: Front, argument: str) -> None:
    """Ask a side question, even during a turn; it stays out of the context."""
    if not argument:
        front.say("Add a question: /btw what does this flag do?", "warning")
        return
    if not await has_model(front):
        return
    if front.can_ask:  # the answer can take a while, and others may come first
        _tell(front, f"/btw {argument}", "question")
    answer = await ask_aside(front.runtime, argument)
    _tell(front, strip_control_characters(answer), "answer")
    front.show_events((front.runtime.conversation.totals,))


def _tell(front: Front, text: str, about: NoticeSubject) -> None:
    """Say `text`; a screen shows it by its subject."""
    if front.screen is None:
        front.say(text)
    else:
        front.show_events((Notice("info", text, about),))
