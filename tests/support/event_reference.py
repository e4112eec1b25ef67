"""`docs/pages/events.md`: the events of ``--output-format stream-json``, as their classes are.

It is one of the pages that `python -m tests.support.reference_pages` writes.
"""

import dataclasses
import re
from typing import get_args, get_type_hints

from agent_tui import events

_HEAD = """\
# Events of `--output-format stream-json`

With `stream-json`, agent-tui prints one JSON object per line as things happen.

    agent-tui -p "fix the failing test" --output-format stream-json

The last line is the `result`, which `--output-format json` prints alone. It has the text, the
outcome, tokens and `cost_usd` (null if the price is unknown). `type` is the name of the event.
Fields that are null are left out. Messages are as in the [session file](../../sessions.example/).

The lines are stable. Later versions may add types and fields, but they never remove one or change
its meaning, so ignore any that you don't know. `agent-tui events schema` prints the JSON Schema
of a line.

## A conversation over a pipe

    agent-tui -p --input-format stream-json --output-format stream-json

With `--input-format stream-json`, agent-tui reads one message per line from standard input:

    {"type": "user", "message": {"content": "fix the failing test"}}
    {"type": "user", "message": {"content": [{"type": "text", "text": "/context"}]}}
    {"type": "interrupt"}

Each message is a separate turn of one conversation. It starts when the messages before it are done,
and ends with a `result`. Text that starts with `/` runs a command (`/compact focus on the tests`).
An image is a part: `{"type": "image", "source": {"type": "base64", "data": "..."}}`. An interrupt
stops the running turn at once. A line that can't be read is skipped with a `Notice`, and the exit
code is then 2; otherwise it is that of the last message. Background jobs continue between messages.
agent-tui ends when its input ends, or on a signal. `agent-tui events schema --input` prints the
JSON Schema of a line.

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
