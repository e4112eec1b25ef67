"""The step of the tour that is due, above the prompt."""

from textual.content import Content
from textual.widgets import Static

from agent_tui.commands.tour import TOUR, step_after
from agent_tui.events import AgentEvent
from agent_tui.ui.prompt.prompt import Prompt


class TourView(Static):
    """Says what to do next, and has the prompt suggest it.

    Args:
        prompt: Suggests what a step sends.
        is_tour: Whether there is a tour; it is hidden else.
    """

    def __init__(self, prompt: Prompt, *, is_tour: bool) -> None:
        super().__init__(id="tour", markup=False)
        self._prompt = prompt
        self._is_tour = is_tour
        self._step = 0
        self.display = False

    def on_mount(self) -> None:
        """Show the first step, if this is a tour."""
        self.turn(self._is_tour)

    def turn(self, is_shown: bool | None = None) -> bool:
        """Show it or hide it (None: turn it over); false where there is no tour."""
        if self._is_tour:
            self.display = not self.display if is_shown is None else is_shown
            self.show_step()
        return self._is_tour

    def follow(self, event: AgentEvent) -> None:
        """Go on to the next step once what the present one asks for has happened."""
        step = step_after(self._step, event)
        if step != self._step:
            self._step = step
            self.show_step()

    def show_step(self) -> None:
        """Show the step that is due, with the keys that are in force; nothing once it is over."""
        if self._step >= len(TOUR):
            self.display = False
        if not self.display:
            self._prompt.suggest("")
            return
        step = TOUR[self._step]
        self._prompt.suggest(step.draft)
        self.update(
            Content.assemble(
                (f"Tour {self._step + 1}/{len(TOUR)}", "$text-accent"),
                (f"  {step.title}", "bold"),
                ("  /tour hides this", "$foreground-muted"),
                "\n",
                (step.shown, "$foreground"),
            )
        )
