"""The parser for every command line: an error is one line, without the whole usage."""

import argparse
import re
from collections.abc import Callable, Collection
from difflib import get_close_matches
from typing import NoReturn

_VERB = "COMMAND"
_UNKNOWN = r"unrecognized arguments: (--[^\s=]+)"
_OPTION = r"(?<![\w-])--[a-z][\w-]*"


class CommandParser(argparse.ArgumentParser):
    """An `ArgumentParser` that ends with one line and exit code 2 on a usage error."""

    verbs: Collection[str] = ()
    """Its subcommands by name."""

    def error(self, message: str) -> NoReturn:
        """Report the error, the nearest valid word, and where all options are shown."""
        if message.endswith(f": {_VERB}"):
            message = f"add a command: {', '.join(self.verbs)}"
        self.exit(2, f"{self.prog}: {message}. {self._nearest(message)}See {self.prog} --help.\n")

    def verb_adder(self) -> "Callable[..., CommandParser]":
        """A function that adds a subcommand from its name, a summary and text below its options."""
        verbs = self.add_subparsers(metavar=_VERB, required=True, dest="verb")
        self.verbs = verbs.choices

        def add(name: str, summary: str, more: str = "") -> CommandParser:
            return verbs.add_parser(
                name,
                help=summary,
                description=f"{summary[0].upper()}{summary[1:]}.",
                epilog=more,
                formatter_class=argparse.RawDescriptionHelpFormatter,
                allow_abbrev=False,
            )

        return add

    def add_json(self) -> None:
        """Add ``--json``, stored as `is_json`."""
        self.add_argument("--json", action="store_true", dest="is_json", help="print JSON")

    def _nearest(self, message: str) -> str:
        unknown = re.search(_UNKNOWN, message)
        options = dict.fromkeys(re.findall(_OPTION, self.format_help()))
        near = get_close_matches(unknown[1], options, n=1) if unknown else []
        return f"Did you mean {near[0]}? " if near else ""


def subcommand_parser(name: str, description: str, epilog: str = "") -> CommandParser:
    """The parser of ``agent-tui NAME``; both texts keep their line breaks."""
    return CommandParser(
        prog=f"agent-tui {name}",
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def whole_number(what: str) -> Callable[[str], int]:
    """An argument type for whole numbers above 0; `what` names the number in errors."""

    def read(text: str) -> int:
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 13 else 0
        if number < 1:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of {what}, 1 or more")
        return number

    return read
