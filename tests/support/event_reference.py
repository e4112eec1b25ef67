"""`docs/pages/events.md`: the events of ``--output-format stream-json``, as their classes are.

It is one of the pages that `python -m tests.support.reference_pages` writes.
"""

import dataclasses
import re
from typing import get_args, get_type_hints

from agent_tui import events

_HEAD = """\
# Events of `--output-format stream-json`

    agent-tui -p "fix the failing test" --output-format stream-json

prints one JSON object a line as things happen, and as the last line what `--output-format json`
prints alone: the `result`, with the text, the outcome, tokens and `cost_usd` (null where no price
is known). `type` is the name of the event; fields that are null are left out. Messages are as in
the [session file](https://github.com/agent-tui/agent-tui/tree/main/sessions.example).

These are stable: later versions may add types and fields, and neither take any away nor change what
one means, so skip what you do not know. `agent-tui events schema` prints the JSON Schema of a line.

## A conversation over a pipe

    agent-tui -p --input-format stream-json --output-format stream-json

reads messages from standard input, a JSON object a line:

    {"type": "user", "message": {"content": "fix the failing test"}}
    {"type": "user", "message": {"content": [{"type": "text", "text": "/context"}]}}
    {"type": "interrupt"}

Each message is a turn of its own in one conversation, begun when those before it are done, and ends
with a `result`. Text that begins with `/` calls a command (`/compact focus on the tests`); images
are parts, too: `{"type": "image", "source": {"type": "base64", "data": "..."}}`. An interrupt stops
the running turn at once. A line that cannot be read is told as a `Notice` and left out; the exit
code is then 2, else that of the last message. Commands in the background run on between messages.
The program ends with its input, or by a signal. `agent-tui events schema --input` prints the JSON
Schema of a line.

## Order

"""
_MODULE = re.compile(r"\b(?:[a-z_]+\.)+(?=[A-Z])")


def event_reference() -> str:
    """The whole page."""
    rules = (events.__doc__ or "").partition("Ordering rules: ")[2].partition("No event")[0]
    parts = [_HEAD, f"{_one_line(rules[:1].upper() + rules[1:])}\n"]
    for event in get_args(events.AgentEvent):
        parts.append(f"\n## {event.__name__}\n\n{_one_line(event.__doc__ or '')}\n")
        hints = get_type_hints(event)
        fields = [f"- `{field.name}`: `{_type(hints[field.name])}`" for field in _fields(event)]
        if fields:
            parts.append("\n" + "\n".join(fields) + "\n")
    return "".join(parts)


def _fields(event: type) -> tuple[dataclasses.Field[object], ...]:
    return dataclasses.fields(event)


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("``", "`")


def _type(hint: object) -> str:
    if isinstance(hint, type) and hint.__module__ == "builtins" and not get_args(hint):
        return hint.__name__
    name = hint.__qualname__ if isinstance(hint, type) and not get_args(hint) else str(hint)
    return _MODULE.sub("", name).replace("NoneType", "null").replace("None", "null")
