"""What fronts share in which commands have nobody to ask: ``-p``, an editor."""

from abc import ABC, abstractmethod
from typing import ClassVar, TypeVar

from agent_tui.commands.core.front import Level
from agent_tui.commands.core.pages import Showable, page_lines
from agent_tui.commands.core.questions import Pickable, Question, TextQuestion
from agent_tui.errors import UsageError

AnswerT = TypeVar("AnswerT")


class UnansweredFront(ABC):
    """Tells pages as lines, and refuses questions with what there is to name."""

    nobody_answers: ClassVar[str]
    """Why, behind what was asked."""

    instead: ClassVar[str] = "Give the command its argument."
    """What to do."""

    @abstractmethod
    def say(self, text: str, level: Level = "info") -> None:
        """Tell one thing."""

    async def show(self, shown: Showable) -> None:
        """A page, as lines."""
        self.say("\n".join(page_lines(await shown.page())))

    async def ask(self, question: Question[AnswerT]) -> AnswerT | None:
        """Refuse."""
        raise self._refused(question.title)

    async def ask_text(self, question: TextQuestion) -> str | None:
        """Refuse."""
        raise self._refused(question.title)

    async def pick(self, wanted: Pickable[AnswerT]) -> AnswerT | str | None:
        """Refuse, and tell what there is to name."""
        listing = await wanted.listing()
        rows = (": ".join(filter(None, (each.label, each.details))) for each in listing.choices)
        self.say("\n".join((listing.title, *rows)) if listing.choices else listing.empty)
        raise self._refused(listing.title)

    async def set_up_model(self) -> bool:
        """There is only ``/model`` with a name, or ``-m``."""
        return False

    def _refused(self, title: str) -> UsageError:
        return UsageError(f"{title.rstrip('?.:')}: {self.nobody_answers}", self.instead)
