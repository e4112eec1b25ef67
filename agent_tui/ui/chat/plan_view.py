"""The model's plan, shown above the prompt while it is being worked off."""

from textual.content import Content
from textual.widgets import Static

from agent_tui.messages import Todo
from agent_tui.safe_text import safe_text

MAX_SHOWN = 5

_SIGNS = {
    "completed": ("✓", "$text-success", "$foreground-muted"),
    "in_progress": ("▸", "$text-primary", "bold"),
    "pending": ("·", "$foreground-disabled", "$foreground-muted"),
}


class PlanView(Static):
    """One line a step; hidden without a plan and when all of it is done."""

    def __init__(self) -> None:
        super().__init__(id="plan", markup=False)
        self._is_open = False
        self._has_room = False
        self.display = False

    def show(self, todos: tuple[Todo, ...]) -> None:
        """Show the plan as it stands."""
        self._is_open = any(todo.status != "completed" for todo in todos)
        self.display = self._is_open and self._has_room
        self.update(plan_lines(todos))

    def make_room(self, has_room: bool) -> None:
        """Whether there is room for it: not while nothing runs, nor beside a question."""
        self._has_room = has_room
        self.display = self._is_open and has_room


def plan_lines(todos: tuple[Todo, ...]) -> Content:
    """The steps around the present one, and how many there are beside them."""
    present = next((i for i, todo in enumerate(todos) if todo.status != "completed"), 0)
    first = max(min(present - 1, len(todos) - MAX_SHOWN), 0)
    shown = todos[first : first + MAX_SHOWN]
    done = sum(todo.status == "completed" for todo in todos)
    lines = [Content.assemble((f"Plan {done}/{len(todos)}", "$foreground-muted"))]
    for todo in shown:
        sign, sign_style, text_style = _SIGNS[todo.status]
        text = safe_text(todo.text, keep_newlines=False)
        lines.append(Content.assemble((f"{sign} ", sign_style), (text, text_style)))
    return Content("\n").join(lines)
