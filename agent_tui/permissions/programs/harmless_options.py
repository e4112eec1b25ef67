"""What may follow a command's name, where it is known which of its options do no harm."""

from collections.abc import Sequence
from dataclasses import dataclass

_MANY = 10_000


@dataclass(frozen=True, slots=True)
class HarmlessOptions:
    """The harmless options of one command. Options not listed make it one that asks.

    Args:
        letters: Options without a value; may be joined (``-la``).
        values: Options that take the rest of their word, or else the next word.
        longs: Long options without dashes; each may have ``=value``. ``*``: any option will do.
        most: How many words may be no options (some commands write to the second one).
    """

    letters: str = ""
    values: str = ""
    longs: str = ""
    most: int = _MANY

    def admits(self, arguments: Sequence[str]) -> bool:
        """Whether `arguments` stay within this form.

        What comes after ``--``, or as the value of an option, must not look like an option that
        is not listed: not every version of a program agrees where its options end.
        """
        if self.longs == "*":
            return True
        others = 0
        options_end = takes_next = False
        for argument in arguments:
            if argument == "--":
                options_end, takes_next = True, False
            elif argument == "-" or not argument.startswith("-"):
                others += not takes_next
                takes_next = False
            elif not self._admits_option(argument):
                return False
            else:
                others += options_end
                takes_next = not options_end and not takes_next and self._takes_next(argument)
        return others <= self.most

    def _admits_option(self, argument: str) -> bool:
        if argument.startswith("--"):
            return argument[2:].partition("=")[0] in self.longs.split()
        for letter in argument[1:]:
            if letter in self.values:
                return True
            if letter not in self.letters:
                return False
        return True

    def _takes_next(self, argument: str) -> bool:
        if argument.startswith("--"):
            return False
        first = next((i for i, c in enumerate(argument[1:], 1) if c in self.values), 0)
        return first > 0 and first == len(argument) - 1


ANYTHING = HarmlessOptions(longs="*")
"""Of a command that can neither write, run nor fetch anything, whatever it is given."""
