"""A field of one line, wherever something is asked for or searched."""

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input, Static


class FieldRow(Horizontal):
    """A field of one line behind the sign that the prompt has."""

    def __init__(self, field: Input) -> None:
        super().__init__()
        self._field = field

    def compose(self) -> ComposeResult:
        """The sign and the field."""
        yield Static("›", markup=False)
        yield self._field
