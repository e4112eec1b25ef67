"""The question whether an MCP server that a project names may be started."""

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.types import CSSPathType
from textual.widgets import Static

from agent_tui.tools.mcp.spec import ServerSpec
from agent_tui.ui.sanitise import safe_text
from agent_tui.ui.screens.choice import Choice
from agent_tui.ui.screens.quiet_choice import QuietChoiceScreen

_CHOICES = (
    Choice("y", "yes, from now on, until its command changes", True),
    Choice("n", "no, never", False),
)


class McpServerScreen(QuietChoiceScreen[bool]):
    """Returns whether it may be started, None after Esc. What would be started is shown whole.

    Args:
        spec: The server.
        take_stray: Gets the letters that were meant for the prompt.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = ["page.tcss", "confirm.tcss", "mcp_server.tcss"]
    KEYS_HINT: ClassVar[str] = "↑↓ scroll · esc not now; it is asked again"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll(-1)", "Up", show=False),
        Binding("down", "scroll(1)", "Down", show=False),
        Binding("pageup", "scroll(-8)", "Page up", show=False),
        Binding("pagedown", "scroll(8)", "Page down", show=False),
    ]

    def __init__(self, spec: ServerSpec, take_stray: Callable[[str], object]) -> None:
        verb = "Speak with" if spec.url else "Start"
        question = f"{verb} this project's MCP server {spec.name}?"
        super().__init__(question, server_facts(spec), _CHOICES, take_stray)

    def compose(self) -> ComposeResult:
        """The facts scroll, so that the answers stay in sight however long a command is."""
        lines = [
            Content.assemble((f" {choice.key} ", "bold $primary"), f" {choice.label}")
            for choice in self._choices
        ]
        with Vertical(id="confirm"):
            yield Static(safe_text(self._question), id="page-title", markup=False)
            with VerticalScroll(id="confirm-scroll", can_focus=False):
                yield Static(self._facts, id="confirm-text", markup=False)
            yield Static(Content("\n").join(lines), id="confirm-choices", markup=False)
            yield Static(self.KEYS_HINT, id="page-keys", markup=False)

    def action_scroll(self, step: int) -> None:
        """Scroll the facts."""
        self.query_one("#confirm-scroll").scroll_relative(y=step, animate=False)


def server_facts(spec: ServerSpec) -> str:
    """What there is to know before answering, each thing on a line of its own and safe to show."""
    does = "It is sent what the model calls it with." if spec.url else "It runs as you, unwatched."
    lines = [spec.command_line, *(f"with {extra}" for extra in spec.extras)]
    lines += [f"named in {spec.source}", does]
    return "\n".join(safe_text(line, keep_newlines=False) for line in lines)
