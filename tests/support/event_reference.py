"""`docs/pages/events.md`: the events of ``--output-format stream-json``, as their classes are.

It is one of the pages that `python -m tests.support.reference_pages` writes.
"""

import dataclasses
import re
from typing import TypeGuard, get_args, get_type_hints

from pydantic import BaseModel

from agent_tui import events
from agent_tui.features.print.result import event_types
from agent_tui.messages import AssistantMessage, ToolResultMessage

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
_VALUES = """
## Values of fields

In JSON, the fields of messages are in camel case, such as `toolCallId`. In Python, a message
also has the properties listed last.
"""
_MODULE = re.compile(r"\b(?:[a-z_]+\.)+(?=[A-Z])")


def event_reference() -> str:
    """The whole page."""
    rules = (events.__doc__ or "").partition("Ordering rules: ")[2].partition("No event")[0]
    parts = [_HEAD, f"{_one_line(rules[:1].upper() + rules[1:])}\n"]
    parts += [_describe(event, "##") for event in event_types()]
    parts.append(_VALUES)
    parts.append(_describe(events.ApprovalRequest, "###"))
    parts += [_describe(message, "###") for message in (AssistantMessage, ToolResultMessage)]
    return "".join(parts)


def _describe(kind: type, heading: str) -> str:
    """The heading, the text and the fields of a class, and the properties of a message."""
    hints = get_type_hints(kind)
    names = [*kind.model_fields] if issubclass(kind, BaseModel) else _fields(kind)
    if issubclass(kind, BaseModel):
        own = ((name, value.fget) for name, value in vars(kind).items() if _is_property(value))
        hints |= {name: get_type_hints(getter)["return"] for name, getter in own}
        names += [name for name, value in vars(kind).items() if _is_property(value)]
    fields = "".join(f"\n- `{name}`: `{_type(hints[name])}`" for name in names)
    listed = f"{fields}\n" if fields else ""
    return f"\n{heading} {kind.__name__}\n\n{_one_line(kind.__doc__ or '')}\n{listed}"


def _is_property(value: object) -> TypeGuard[property]:
    return isinstance(value, property)


def _fields(event: type) -> list[str]:
    return [field.name for field in dataclasses.fields(event)]


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("``", "`")


def _type(hint: object) -> str:
    if isinstance(hint, type) and hint.__module__ == "builtins" and not get_args(hint):
        return hint.__name__
    name = hint.__qualname__ if isinstance(hint, type) and not get_args(hint) else str(hint)
    return _MODULE.sub("", name).replace("NoneType", "null").replace("None", "null")
