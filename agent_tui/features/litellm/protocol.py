"""The messages between the program and litellm's process: one JSON object per line.

Lines are pure ASCII (JSON escapes the rest), so no text can break the framing.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar, cast

from pydantic import TypeAdapter

from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    NoticeChunk,
    RestartChunk,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from agent_tui.providers.faults.fault import Fault
from agent_tui.providers.rate_limits import LimitsStated
from agent_tui.providers.silence import SilenceLimits, Wait
from agent_tui.providers.wires.base import WireRequest

_T = TypeVar("_T")

MAX_LINE_BYTES = 4 * 1024 * 1024
"""The longest line the program reads from the process; see `coalesce.MAX_PIECE_CHARS`."""


@dataclass(frozen=True, slots=True)
class Warm:
    """Import and set up everything the first request would wait for."""


@dataclass(frozen=True, slots=True)
class Start:
    """Begin a request. `silence` is how long its server may be silent."""

    id: int
    request: WireRequest
    silence: SilenceLimits


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop a request and close its connection."""

    id: int


WorkerCommand: TypeAlias = Warm | Start | Cancel


@dataclass(frozen=True, slots=True)
class Ended:
    """No more events come for this request."""


@dataclass(frozen=True, slots=True)
class Warmed:
    """The process is ready, or never will be (`problem`)."""

    problem: str = ""


WorkerEvent: TypeAlias = Chunk | Fault | Wait | LimitsStated | Ended | Warmed
"""A `Wait` comes every two seconds: the process is alive and a request is in progress."""

_COMMANDS: Final[Mapping[str, type[WorkerCommand]]] = MappingProxyType(
    {"warm": Warm, "start": Start, "cancel": Cancel}
)
_EVENTS: Final[Mapping[str, type[WorkerEvent]]] = MappingProxyType(
    {
        "text": TextChunk,
        "thinking": ThinkingChunk,
        "call": ToolCallChunk,
        "usage": UsageChunk,
        "finish": FinishChunk,
        "restart": RestartChunk,
        "notice": NoticeChunk,
        "fault": Fault,
        "ended": Ended,
        "warmed": Warmed,
        "wait": Wait,
        "limits": LimitsStated,
    }
)
_KINDS: Final = {type_: kind for kind, type_ in (*_COMMANDS.items(), *_EVENTS.items())}


def command_line(command: WorkerCommand) -> bytes:
    """`command` as a line with its line end.

    Messages are encoded one by one: encoding a long conversation at once would block the
    interpreter for 80 ms, in any thread.
    """
    kind = _KINDS[type(command)]
    if not isinstance(command, Start):
        return _line({"kind": kind, "value": asdict(command)})
    request = command.request
    rest = asdict(replace(request, messages=[]))
    del rest["messages"]
    value = {"id": command.id, "silence": asdict(command.silence), "request": rest}
    head = _json({"kind": kind, "value": value}).removesuffix(b"}}}")
    return b"".join((head, b',"messages":[', b",".join(map(_json, request.messages)), b"]}}}\n"))


def parse_command(line: bytes) -> WorkerCommand:
    """The command in a line.

    Raises:
        ValueError: The line is not a command.
    """
    value = _object_in(line)
    return _reader(_COMMANDS[str(value["kind"])]).validate_python(value["value"])


def event_line(request_id: int, event: WorkerEvent) -> bytes:
    """`event` of a request as a line with its line end."""
    if isinstance(event, UsageChunk):
        value: Mapping[str, object] = {"usage": event.usage.model_dump(by_alias=True)}
    else:
        value = asdict(event)
    return _line({"id": request_id, "kind": _KINDS[type(event)], "value": value})


def parse_event(line: bytes) -> tuple[int, WorkerEvent]:
    """The request id and the event in a line.

    Raises:
        ValueError: The line is not an event.
    """
    value = _object_in(line)
    request_id, kind = value.get("id"), str(value.get("kind"))
    if not isinstance(request_id, int) or kind not in _EVENTS:
        raise ValueError(f"not an event: {kind}")
    return request_id, _reader(_EVENTS[kind]).validate_python(value.get("value"))


def _object_in(line: bytes) -> dict[str, object]:
    value: object = json.loads(line)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return cast(dict[str, object], value)


@cache
def _reader(type_: type[_T]) -> TypeAdapter[_T]:
    """A parser from JSON to `type_`; created on first use, as that takes milliseconds."""
    return TypeAdapter(type_)


def _line(value: Mapping[str, object]) -> bytes:
    return _json(value) + b"\n"


def _json(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")
