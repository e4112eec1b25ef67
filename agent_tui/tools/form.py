"""Questions to the user during a call: a form with a few flat fields."""

import math
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias

from pydantic import JsonValue

from agent_tui.messages import JsonObject
from agent_tui.tools.base import Ability

FieldKind: TypeAlias = Literal["text", "number", "integer", "yes or no", "one of", "some of"]

DECLINED: Final[JsonObject] = {"action": "decline"}
CANCELLED: Final[JsonObject] = {"action": "cancel"}

_YES: Final = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of the form.

    Args:
        name: The name of its value in the answer.
        title: Its label for the user.
        kind: What it accepts.
        about: A description; may be empty.
        choices: For ``one of`` and ``some of``: values, with a label for each.
        present: The value that is suggested; empty for none.
        is_required: Whether it must be filled.
        least: The least number or length; None for any.
        most: The greatest number or length; None for any.
        takes_text: Whether the user may write an answer instead of choosing one, or beside those
            chosen; `most` is then its length.
    """

    name: str
    title: str
    kind: FieldKind
    about: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    present: str = ""
    is_required: bool = False
    least: float | None = None
    most: float | None = None
    takes_text: bool = False

    def value(self, typed: str) -> JsonValue:
        """The text the user typed, converted to the value in the answer.

        Raises:
            ValueError: It is not valid; says what is accepted.
        """
        match self.kind:
            case "text":
                self._check(len(typed), "characters")
                return typed
            case "number" | "integer":
                return self._number(typed)
            case "yes or no":
                if typed.casefold() not in _YES:
                    raise ValueError("yes or no")
                return _YES[typed.casefold()]
            case "one of":
                return self._choose(typed)
            case "some of":
                words = [word.strip() for word in typed.split(",") if word.strip()]
                self._check(len(words), "of them")
                return [self._choose(word) for word in words]

    def _number(self, typed: str) -> float | int:
        try:
            number = int(typed) if self.kind == "integer" else float(typed)
        except ValueError as error:
            whole = "a whole number" if self.kind == "integer" else "a number"
            raise ValueError(whole) from error
        if not math.isfinite(number):
            raise ValueError("a number")
        self._check(number, "")
        return number

    def _choose(self, typed: str) -> str:
        for value, label in self.choices:
            if typed.casefold() in (value.casefold(), label.casefold()):
                return value
        raise ValueError(f"one of {', '.join(label for _, label in self.choices)}")

    def _check(self, size: float, unit: str) -> None:
        is_less = self.least is not None and size < self.least
        if is_less or (self.most is not None and size > self.most):
            low = f"at least {self.least:g}" if self.least is not None else ""
            high = f"at most {self.most:g}" if self.most is not None else ""
            raise ValueError(f"{' and '.join(filter(None, (low, high)))} {unit}".rstrip())


@dataclass(frozen=True, slots=True)
class Elicitation:
    """A form that `server` wants filled; if it wants a page opened, only `url` is set.

    Without a server, all fields are choices, and an answer is a list: what was chosen, then what
    was written. `heading` says who asks: the model, or the program.
    """

    server: str
    message: str
    fields: tuple[FormField, ...] = ()
    url: str = ""
    heading: str = "The model asks"

    @property
    def title(self) -> str:
        """What it asks first."""
        return self.message or next((field.title for field in self.fields), "")


FormFiller: TypeAlias = Callable[[Elicitation], Awaitable[JsonObject]]
"""Has the user fill a form; returns the complete answer, as MCP defines it."""


class UserForms(Ability):
    """Forms that the user fills while a tool waits."""

    unavailable: ClassVar[str] = (
        "Nobody can answer questions here. Decide yourself, or end your turn with what you need "
        "to know."
    )

    @abstractmethod
    async def fill(self, form: Elicitation) -> JsonObject:
        """Have the user fill `form`, after other questions; returns the answer as MCP defines it.

        The time that it takes is not counted as the call's.
        """


def accept_form(values: JsonObject) -> JsonObject:
    """The answer to a form filled with `values`."""
    return {"action": "accept", "content": values}


def show_value(value: JsonValue) -> str:
    """A value of a field as the user reads and types it."""
    match value:
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(show_value, value))
        case _:
            return str(value)
