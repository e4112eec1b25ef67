"""The event of rules."""

from dataclasses import dataclass

from agent_tui.commands.core.short_words import count_text
from agent_tui.events import FeatureEvent, Standing
from agent_tui.safe_text import printable_line


@dataclass(frozen=True, slots=True)
class RuleOffered(FeatureEvent):
    """Your repeated corrections suggest rules for AGENTS.md; sent again when that changes.

    `text` is the newest of them, in your words; empty if none is offered any more. `count` is how
    many are offered.
    """

    text: str
    count: int

    def line(self) -> str:
        """The newest rule, how many more, and how to answer."""
        if not self.text:
            return ""
        said = printable_line(self.text).removesuffix(".")
        more = f" and {count_text(self.count - 1, 'more rule')}" if self.count > 1 else ""
        return f"You said it more than once: “{said}”{more}. /rules adds it to AGENTS.md."

    def standing(self) -> Standing:
        """The same, between turns."""
        return Standing(about=self.line(), is_for_pauses=True)
