"""The model's plan, shown above the prompt while it is being worked off."""

from typing import Literal, TypeAlias

from textual.content import Content
from textual.widget import Widget

from agent_tui.messages import Todo
from agent_tui.safe_text import safe_text

MAX_SHOWN = 5

_SIGNS = {
    "completed": ("✓", "$text-success", "$foreground-muted"),
    "in_progress": ("▸", "$text-primary", "bold"),
    "pending": ("·", "$foreground-disabled", "$foreground-muted"),
}


PlanRoom: TypeAlias = Literal["none", "line", "steps"]
"""How much of the plan is shown: nothing, the present step, or the steps around it."""


class PlanView(Widget):
    """One line a step, or the present step alone where there is little room.

    Hidden without a plan and when all of it is done.
    """

    def __init__(self) -> None:
        super().__init__(id="plan")
        self._todos: tuple[Todo, ...] = ()
        self._room: PlanRoom = "none"
        self.display = False

    def show(self, todos: tuple[Todo, ...]) -> None:
        """Show the plan as it stands."""
        self._todos = todos
        self._changed()

    def make_room(self, room: PlanRoom) -> None:
        """Say how much room there is: none while nothing runs, a line beside a question."""
        self._room = room
        self._changed()

    def render(self) -> Content:
        """The plan; a screen of few rows has room for a line."""
        if not self.display:
            return Content()
        is_line = self._room == "line" or self.screen.has_class("-short")
        return plan_line(self._todos) if is_line else plan_lines(self._todos)

    def _changed(self) -> None:
        is_open = any(todo.status != "completed" for todo in self._todos)
        self.display = is_open and self._room != "none"
        self.refresh(layout=True)


def plan_line(todos: tuple[Todo, ...]) -> Content:
    """How far the plan is, and its present step."""
    present = todos[_present(todos)]
    done = sum(todo.status == "completed" for todo in todos)
    text = safe_text(present.text, keep_newlines=False)
    return Content.assemble(
        (f"Plan {done}/{len(todos)} ", "$foreground-muted"), _step(present.status, text)
    )


def _present(todos: tuple[Todo, ...]) -> int:
    """Where the plan stands: at what is being done, else at the first open step."""
    doing = (i for i, todo in enumerate(todos) if todo.status == "in_progress")
    still_open = (i for i, todo in enumerate(todos) if todo.status != "completed")
    return next(doing, next(still_open, 0))


def plan_lines(todos: tuple[Todo, ...]) -> Content:
    """The steps around the present one, and how many there are beside them."""
    first = max(min(_present(todos) - 1, len(todos) - MAX_SHOWN), 0)
    shown = todos[first : first + MAX_SHOWN]
    done = sum(todo.status == "completed" for todo in todos)
    lines = [Content.assemble((f"Plan {done}/{len(todos)}", "$foreground-muted"))]
    lines += [_step(todo.status, safe_text(todo.text, keep_newlines=False)) for todo in shown]
    return Content("\n").join(lines)


def _step(status: str, text: str) -> Content:
    sign, sign_style, text_style = _SIGNS[status]
    return Content.assemble((f"{sign} ", sign_style), (text, text_style))
