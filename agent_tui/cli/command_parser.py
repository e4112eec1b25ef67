"""The parser of every command line: what is wrong is told in a line, not below the whole usage."""

import argparse
import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import NoReturn

_UNKNOWN = re.compile(r"unrecognized arguments: (--[^\s=]+)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")


class CommandParser(argparse.ArgumentParser):
    """An `ArgumentParser` that ends with one line and exit code 2 where it cannot read a line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, what may have been meant, and where all options are shown."""
        self.exit(2, f"{self.prog}: {message}. {self._nearest(message)}See {self.prog} --help.\n")

    def verb_adder(self) -> "Callable[..., argparse.ArgumentParser]":
        """What adds a verb: its name, what it does in a line, and text below its options."""
        verbs = self.add_subparsers(metavar="COMMAND", required=True, dest="verb")

        def add(name: str, summary: str, more: str = "") -> argparse.ArgumentParser:
            return verbs.add_parser(
                name,
                help=summary,
                description=f"{summary[0].upper()}{summary[1:]}.",
                epilog=more,
                formatter_class=argparse.RawDescriptionHelpFormatter,
                allow_abbrev=False,
            )

        return add

    def _nearest(self, message: str) -> str:
        unknown = _UNKNOWN.search(message)
        options = dict.fromkeys(_OPTION.findall(self.format_help()))
        near = get_close_matches(unknown[1], options, n=1) if unknown else []
        return f"Did you mean {near[0]}? " if near else ""
