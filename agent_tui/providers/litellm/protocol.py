"""What the program and its provider process say to each other: one JSON object a line.

Lines are pure ASCII (JSON escapes the rest), so that no text can break the framing.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import Final, TypeAlias

from pydantic import TypeAdapter

from agent_tui.messages import JsonObject
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    NoticeChunk,
    RestartChunk,
    TextChunk,
    ThinkingChunk,
    ThinkingEffort,
    ToolCallChunk,
    TriggeredGrammar,
    UsageChunk,
)
from agent_tui.providers.silence import SilenceLimits

MAX_LINE_BYTES = 4 * 1024 * 1024
"""Longest line the program reads from the process; see `coalesce.MAX_PIECE_CHARS`."""


@dataclass(frozen=True, slots=True)
class Warm:
    """Import and set up everything the first request by `wire` would wait for."""

    wire: str


@dataclass(frozen=True, slots=True)
class Start:
    """Begin a request. The key is not here: the process reads `api_key_env` itself.

    `messages` are in the form of the `wire`; `tools` have name, description and parameters.
    `model_id` is what the server calls the model; `without` are fields that it refused.
    """

    id: int
    wire: str
    model: str
    messages: list[JsonObject]
    model_id: str = ""
    without: list[str] = field(default_factory=list[str])
    tools: list[JsonObject] = field(default_factory=list[JsonObject])
    base_url: str = ""
    api_key_env: str = ""
    max_output_tokens: int | None = None
    thinking: ThinkingEffort = "off"
    silence: SilenceLimits = field(default_factory=SilenceLimits.without_bytes)
    reply_schema: JsonObject | None = None
    grammar: TriggeredGrammar | None = None
    cache_key: str = ""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop a request and close its connection."""

    id: int


Command: TypeAlias = Warm | Start | Cancel


@dataclass(frozen=True, slots=True)
class Fault:
    """A failed request, as data; `faults.provider_error` says what it means.

    `status` as litellm has it (it invents 500 where there was no answer at all); `codes` and
    `causes` are the codes in the answer's body and the classes of the exceptions behind it.
    """

    name: str
    text: str
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    codes: list[str] = field(default_factory=list[str])
    causes: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class Ended:
    """Nothing more comes for this request."""


@dataclass(frozen=True, slots=True)
class Warmed:
    """The process is ready, or will never be (`problem`)."""

    problem: str = ""


@dataclass(frozen=True, slots=True)
class Alive:
    """The process lives, and a request of it is under way; see `silence.Wait` for the seconds."""

    word_s: float
    byte_s: float


Event: TypeAlias = Chunk | Fault | Ended | Warmed | Alive

_COMMANDS: Final[Mapping[str, TypeAdapter[Command]]] = MappingProxyType(
    {"warm": TypeAdapter(Warm), "start": TypeAdapter(Start), "cancel": TypeAdapter(Cancel)}
)
_EVENTS: Final[Mapping[str, TypeAdapter[Event]]] = MappingProxyType(
    {
        "text": TypeAdapter(TextChunk),
        "thinking": TypeAdapter(ThinkingChunk),
        "call": TypeAdapter(ToolCallChunk),
        "usage": TypeAdapter(UsageChunk),
        "finish": TypeAdapter(FinishChunk),
        "restart": TypeAdapter(RestartChunk),
        "notice": TypeAdapter(NoticeChunk),
        "fault": TypeAdapter(Fault),
        "ended": TypeAdapter(Ended),
        "warmed": TypeAdapter(Warmed),
        "alive": TypeAdapter(Alive),
    }
)
_KINDS: Final[Mapping[type[Command] | type[Event], str]] = MappingProxyType(
    {
        Warm: "warm",
        Start: "start",
        Cancel: "cancel",
        TextChunk: "text",
        ThinkingChunk: "thinking",
        ToolCallChunk: "call",
        UsageChunk: "usage",
        FinishChunk: "finish",
        RestartChunk: "restart",
        NoticeChunk: "notice",
        Fault: "fault",
        Ended: "ended",
        Warmed: "warmed",
        Alive: "alive",
    }
)
_LINE: Final = TypeAdapter(JsonObject)


def command_line(command: Command) -> bytes:
    """`command` as a line with its end.

    Messages are encoded one by one: encoding a long conversation in one piece would hold the
    interpreter for 80 ms, in whatever thread it is done.
    """
    kind = _KINDS[type(command)]
    if not isinstance(command, Start):
        return _line({"kind": kind, "value": asdict(command)})
    value = {f.name: getattr(command, f.name) for f in fields(command) if f.name != "messages"}
    value["grammar"] = None if command.grammar is None else asdict(command.grammar)
    value["silence"] = asdict(command.silence)
    head = _json({"kind": kind, "value": value}).removesuffix(b"}}")
    return b"".join((head, b',"messages":[', b",".join(map(_json, command.messages)), b"]}}\n"))


def parse_command(line: bytes) -> Command:
    """The command of a line.

    Raises:
        ValueError: the line is not one.
    """
    value = _LINE.validate_json(line)
    return _COMMANDS[str(value["kind"])].validate_python(value["value"])


def event_line(request_id: int, event: Event) -> bytes:
    """`event` of a request as a line with its end."""
    if isinstance(event, UsageChunk):
        value: Mapping[str, object] = {"usage": event.usage.model_dump(by_alias=True)}
    else:
        value = asdict(event)
    return _line({"id": request_id, "kind": _KINDS[type(event)], "value": value})


def parse_event(line: bytes) -> tuple[int, Event]:
    """The request's number and the event of a line.

    Raises:
        ValueError: the line is not an event.
    """
    value = _LINE.validate_json(line)
    request_id, kind = value.get("id"), str(value.get("kind"))
    if not isinstance(request_id, int) or kind not in _EVENTS:
        raise ValueError(f"not an event: {kind}")
    return request_id, _EVENTS[kind].validate_python(value.get("value"))


def _line(value: Mapping[str, object]) -> bytes:
    return _json(value) + b"\n"


def _json(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")
