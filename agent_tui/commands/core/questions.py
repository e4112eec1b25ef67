"""What a command asks the person: plain values, which each front shows in its own way."""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

ValueT = TypeVar("ValueT")
ValueT_co = TypeVar("ValueT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Choice(Generic[ValueT_co]):
    """One thing that can be chosen.

    Attributes:
        value: What the command gets.
        label: What the person reads.
        key: The letter that chooses it, in a `Question`.
        details: More about it, in a `Listing`.
    """

    value: ValueT_co
    label: str
    key: str = ""
    details: str = ""


@dataclass(frozen=True, slots=True)
class Question(Generic[ValueT]):
    """One question with a few answers, each with a letter of its own.

    Attributes:
        title: What is asked.
        facts: What there is to know before answering, a line each.
        choices: The answers.
        is_grave: A letter that was meant for something else must not answer it.
        unanswered: What leaving it without an answer does.
        marked: The answer that Enter gives at first. It is a no if a yes allows more than one
            call or cannot be undone.
    """

    title: str
    facts: tuple[str, ...]
    choices: tuple[Choice[ValueT], ...]
    is_grave: bool = False
    unanswered: str = "cancel"
    marked: int = 0


def loss_question(title: str, consequence: str) -> Question[bool]:
    """Whether to do what no undo brings back."""
    answers = (Choice(True, "yes", "y"), Choice(False, "no", "n"))
    return Question(title, (consequence,), answers, marked=1)


@dataclass(frozen=True, slots=True)
class TextQuestion:
    """Something that is answered with a line of text.

    Attributes:
        title: What is asked for.
        about: More about it, one line.
        present: What stands there at first; empty for nothing.
        empty_means: What an empty answer does.
    """

    title: str
    about: str
    present: str
    empty_means: str


@dataclass(frozen=True, slots=True)
class Listing(Generic[ValueT_co]):
    """Things to pick one from.

    Attributes:
        title: What is picked.
        choices: What there is.
        empty: What is said where that is nothing.
        typed: What may be typed instead, such as ``a model's name``; empty for nothing.
    """

    title: str
    choices: tuple[Choice[ValueT_co], ...]
    empty: str
    typed: str = ""

    async def listing(self) -> "Listing[ValueT_co]":
        """Itself: a `Pickable` that needs nothing more."""
        return self


class Pickable(Protocol[ValueT_co]):
    """Something to pick from that a front may show better than as a list."""

    async def listing(self) -> Listing[ValueT_co]:
        """The same as a plain list."""
        ...
