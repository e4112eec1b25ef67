"""Messages typed while a turn runs, shown above the prompt until they are delivered."""

from textual.content import Content
from textual.widgets import Static

from agent_tui.key_actions import keys_in_force
from agent_tui.safe_text import safe_text

MAX_SHOWN = 4


class QueueView(Static):
    """One line a message; hidden while there is none."""

    def __init__(self) -> None:
        super().__init__(id="queue", markup=False)
        self.display = False

    def show(self, texts: tuple[str, ...]) -> None:
        """Show the waiting messages, oldest first."""
        self.display = bool(texts)
        self.update(queue_lines(texts))


def queue_lines(texts: tuple[str, ...]) -> Content:
    """The waiting messages as lines, and how to take them back."""
    lines = [
        Content.assemble(
            ("↳ ", "$text-warning"), (safe_text(text, keep_newlines=False), "$foreground-muted")
        )
        for text in texts[:MAX_SHOWN]
    ]
    more = len(texts) - MAX_SHOWN
    count = f"and {more} more" if more > 0 else ""
    hint = " · ".join(
        filter(None, (count, keys_in_force().hint("take_back_queue", "takes them back")))
    )
    lines.append(Content.assemble((f"  {hint}", "$foreground-disabled")))
    return Content("\n").join(lines)
