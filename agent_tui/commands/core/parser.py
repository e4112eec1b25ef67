"""What a text typed by the person calls: the one rule, for every front."""

import re
from dataclasses import dataclass

_CALL = re.compile(r"/(\w[\w:-]*)(?:\s+|$)")


@dataclass(frozen=True, slots=True)
class CommandCall:
    """The name of a command in lower case, and all that followed it."""

    name: str
    argument: str


def parse_command(text: str) -> CommandCall | None:
    """``/name argument`` as a call; None for what is a message.

    The name ends at the first blank or newline, and everything behind that is the argument, so
    ``/compact`` with words on its next lines is a command with these words. A path such as
    ``/usr/bin/x`` calls nothing, nor does a name with any other sign in it (``/*``, ``/etc.``).
    """
    stripped = text.strip()
    match = _CALL.match(stripped)
    return CommandCall(match[1].lower(), stripped[match.end() :]) if match is not None else None
