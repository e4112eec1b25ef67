"""The messages of a conversation, as stored and as the model sees them.

Field names on disk are camelCase (the pi session format); in Python they are snake_case.
Unknown fields are kept, so that files of other programs lose nothing.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, PlainSerializer
from pydantic.alias_generators import to_camel

from agent_tui.text import decode_path, encode_path

JsonObject: TypeAlias = dict[str, JsonValue]

StopReason: TypeAlias = Literal["stop", "length", "toolUse", "error", "aborted"]
ThinkingLevel: TypeAlias = Literal["auto", "off", "low", "medium", "high", "xhigh", "max"]
"""How much a model thinks; ``auto`` uses what suits the model."""


def _now_ms() -> int:
    """The present time in milliseconds since 1970, as stored in messages."""
    return time.time_ns() // 1_000_000


def texts_in(value: JsonValue) -> Iterator[str]:
    """All texts in `value` at any depth, in order, without keys."""
    waiting: list[JsonValue] = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case list(items):
                waiting.extend(reversed(items))
            case dict(fields):
                waiting.extend(reversed(fields.values()))
            case _:
                pass


def with_texts(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    """`value` with `change` applied to all texts in it, keys included."""
    match value:
        case str():
            return change(value)
        case list():
            return [with_texts(item, change) for item in value]
        case dict():
            return {change(key): with_texts(item, change) for key, item in value.items()}
        case _:
            return value


class Stored(BaseModel):
    """Base of everything that is written to a session file."""

    model_config = ConfigDict(
        frozen=True,
        extra="allow",
        populate_by_name=True,
        alias_generator=to_camel,
        defer_build=True,  # keeps start-up quick: built when first used
    )


class TextContent(Stored):
    """A piece of plain text; ``signature`` is sent back with it to the model that wrote it."""

    type: Literal["text"] = "text"
    text: str
    signature: str | None = Field(
        default=None, validation_alias="textSignature", serialization_alias="textSignature"
    )


class ThinkingContent(Stored):
    """The model's reasoning; the provider wants ``signature`` back with it, unchanged."""

    type: Literal["thinking"] = "thinking"
    thinking: str
    signature: str | None = Field(
        default=None,
        validation_alias="thinkingSignature",
        serialization_alias="thinkingSignature",
    )
    redacted: bool = False


class ImageContent(Stored):
    """An image, base64 in ``data``."""

    type: Literal["image"] = "image"
    data: str
    mime_type: str


class ToolCall(Stored):
    """A call that the model requests; ``arguments`` is always an object, never null.

    ``signature`` is sent back with it to the model that wrote it.
    """

    type: Literal["toolCall"] = "toolCall"
    id: str
    name: str
    arguments: JsonObject = Field(default_factory=dict)
    signature: str | None = Field(
        default=None, validation_alias="thoughtSignature", serialization_alias="thoughtSignature"
    )

    @property
    def subject(self) -> str:
        """The first text in its arguments, usually a path or a command; empty if there is none."""
        return _first_text(self.arguments, 1) or _first_text(self.arguments, _MOST_LEVELS)


_MOST_LEVELS = 4
"""Arguments that are nested deeper hold no subject."""


def _first_text(value: JsonValue, most_levels: int) -> str:
    """The first text in `value`, at most `most_levels` deep; empty if there is none."""
    match value:
        case str():
            return value
        case dict() if most_levels > 0:
            texts = (_first_text(each, most_levels - 1) for each in value.values())
        case list() if most_levels > 0:
            texts = (_first_text(each, most_levels - 1) for each in value)
        case _:
            return ""
    return next(filter(None, texts), "")


UserContent: TypeAlias = Annotated[TextContent | ImageContent, Field(discriminator="type")]
AssistantContent: TypeAlias = Annotated[
    TextContent | ThinkingContent | ToolCall, Field(discriminator="type")
]


class Cost(Stored):
    """US dollars by the provider's price list; 0 if the price is unknown."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    total: float = 0.0


class Usage(Stored):
    """Tokens of one request as the provider counted them.

    ``input`` excludes tokens read from or written to the prompt cache; the size of the
    context after the reply is the sum of all four. ``is_estimate``: the provider sent no usage.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total_tokens: int = 0
    cost: Cost = Field(default_factory=Cost)
    is_estimate: bool = False

    @property
    def context_tokens(self) -> int:
        """Tokens the conversation fills once this reply is part of it."""
        return self.total_tokens or self.input + self.output + self.cache_read + self.cache_write


class UserMessage(Stored):
    """A message of the user's.

    ``typed`` are the parts of its text that the user typed around pastes, in order; None if
    nothing is known to be pasted. `attachments.split_pastes` finds them. ``is_steering``: true if
    it reached a turn that ran already, else None.
    """

    role: Literal["user"] = "user"
    content: str | tuple[UserContent, ...]
    typed: tuple[str, ...] | None = None
    is_steering: Literal[True] | None = None
    timestamp: int = Field(default_factory=_now_ms)

    @property
    def text(self) -> str:
        """All text of the message, images left out."""
        return text_in(self.content)

    @property
    def images(self) -> tuple[ImageContent, ...]:
        """The attached images."""
        return images_in(self.content)


def text_in(content: "str | Sequence[UserContent | AssistantContent]") -> str:
    """All text of `content`, a line for each part."""
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in content if isinstance(part, TextContent))


def images_in(content: str | Sequence[UserContent]) -> tuple[ImageContent, ...]:
    """The images among the parts of `content`."""
    if isinstance(content, str):
        return ()
    return tuple([part for part in content if isinstance(part, ImageContent)])


class AssistantMessage(Stored):
    """One reply of the model."""

    role: Literal["assistant"] = "assistant"
    content: tuple[AssistantContent, ...] = ()
    provider: str = ""
    model: str = ""
    usage: Usage = Field(default_factory=Usage)
    stop_reason: StopReason = "stop"
    error_message: str | None = None
    timestamp: int = Field(default_factory=_now_ms)

    @property
    def text(self) -> str:
        """The visible text, thinking left out."""
        return "".join(part.text for part in self.content if isinstance(part, TextContent))

    @property
    def thinking(self) -> str:
        """The model's reasoning text."""
        return "".join(p.thinking for p in self.content if isinstance(p, ThinkingContent))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The requested calls, in order."""
        return tuple([part for part in self.content if isinstance(part, ToolCall)])


StoredPath: TypeAlias = Annotated[
    str, AfterValidator(decode_path), PlainSerializer(encode_path, when_used="json")
]
"""A path of the file system, which JSON can store whatever its bytes are (`encode_path`)."""


class FileTouches(Stored):
    """Absolute, resolved paths a tool call read, wrote whole or made, and edited or deleted."""

    read: tuple[StoredPath, ...] = ()
    written: tuple[StoredPath, ...] = ()
    edited: tuple[StoredPath, ...] = ()


class Todo(Stored):
    """One line of the model's plan."""

    text: str
    status: Literal["pending", "in_progress", "completed"] = "pending"


_SHOWN_CHARS = 200


PinKind: TypeAlias = Literal["skill", "instructions", "goal"]


class Pin(Stored):
    """A text that no compaction removes.

    Args:
        kind: Whether it is a skill, a folder's instructions, or the goal of the work.
        name: The skill's name, or the folder of the instructions.
        path: The absolute path of the file; any other text for a pin without one: ``goal``.
        digest: SHA-256 of the file when it was read, as hex digits.
        is_cut: Whether only its beginning fits.
    """

    kind: PinKind
    name: str
    path: StoredPath
    digest: str = ""
    is_cut: bool = False

    @property
    def has_file(self) -> bool:
        """Whether the text is that of a file, which may change."""
        return Path(self.path).is_absolute()


class Job(Stored):
    """A command that runs in the background; ``ending`` is empty while it runs.

    ``since`` is in milliseconds since 1970.
    """

    id: str
    command: str
    since: int = 0
    ending: str = ""

    @property
    def shown(self) -> str:
        """The command on one line; a long one is cut."""
        line = " ".join(self.command.split())
        return line if len(line) <= _SHOWN_CHARS else f"{line[: _SHOWN_CHARS - 1]}…"


class TurnFacts(Stored):
    """The duration and the changes of a turn.

    ``elapsed_ms`` excludes the wait for the user's answers. ``changed`` are files, relative to the
    workspace if inside; ``more`` counts those not named.
    """

    elapsed_ms: int = 0
    changed: tuple[str, ...] = ()
    more: int = 0


CallEnding: TypeAlias = Literal["", "declined", "cancelled"]

_THEY_SAY = " They say: "
"""Between what the program says of a refusal and the user's reason."""


def with_words(text: str, words: str) -> str:
    """`text`, about a refusal, with the user's `words`; `words_in` finds them again."""
    return f"{text}{_THEY_SAY}{words}" if words else text


def words_in(text: str) -> str:
    """The user's words at the end of `text`; empty if there are none."""
    return text.partition(_THEY_SAY)[2].strip()


class ContextNote(Stored):
    """How full the context is, in tokens, as the model reads it below a tool result.

    The context is compacted at ``limit``, without a request where ``is_automatic``.
    """

    used: int
    window: int
    limit: int
    is_automatic: bool = True

    @property
    def tenth(self) -> int:
        """The number of tenths of the limit in use, rounded down."""
        return self.used * 10 // self.limit if self.limit > 0 else 0

    @property
    def text(self) -> str:
        """The line that the model reads."""
        filled = f"{_thousands(self.used)} of {_thousands(self.window)} tokens used"
        limit = _thousands(self.limit)
        then = f"compaction at {limit}" if self.is_automatic else f"no room beyond {limit}"
        return f"[context: {filled}; {then}]"


def _thousands(tokens: int) -> str:
    return f"{tokens / 1000:.1f}k" if tokens < 10_000 else f"{tokens / 1000:.0f}k"


class ToolDetails(Stored):
    """Parts of a tool result for the user and for later processing; not for the model.

    ``summary`` is one short line ("42 lines", "exit 1"). ``diff`` is a unified diff.
    ``full_output_path`` has the whole output if the model got a shortened one. ``printed_lines``
    counts all lines that a command printed; None if the call ran no command. ``elapsed_ms`` is the
    duration of a call of a second or more, without the wait for an answer. ``ending`` says why a
    call did not run to its end: the user said no, or interrupted. ``user_words`` is what the user
    said about the call: why they refused it, or what they answered to its questions. ``refusal`` is
    why a call was not allowed: a rule, a mode, a hook, or nobody to approve it. ``refused_hosts``
    are hosts that commands could not reach, each with the reason. ``jobs`` are the background
    commands that the result reports. ``digest_before`` is the SHA-256 of the one changed file as it
    was before, if an imported session says that; the content is kept beside the session.
    """

    summary: str = ""
    ending: CallEnding = ""
    user_words: str = ""
    refusal: str = ""
    refused_hosts: dict[str, str] = Field(default_factory=dict)
    diff: str | None = None
    digest_before: str = ""
    exit_code: int | None = None
    truncated: bool = False
    full_output_path: StoredPath | None = None
    printed_lines: int | None = None
    elapsed_ms: int = 0
    files: FileTouches = Field(default_factory=FileTouches)
    todos: tuple[Todo, ...] | None = None
    jobs: tuple[Job, ...] = ()
    context_note: ContextNote | None = None


class ToolResultMessage(Stored):
    """The answer to one tool call. ``details`` is free-form on disk; see `tool_details`."""

    role: Literal["toolResult"] = "toolResult"
    tool_call_id: str
    tool_name: str
    content: tuple[UserContent, ...] = ()
    is_error: bool = False
    details: JsonValue = None
    timestamp: int = Field(default_factory=_now_ms)

    @property
    def text(self) -> str:
        """All text of the result."""
        return text_in(self.content)

    @property
    def tool_details(self) -> ToolDetails:
        """`details` in our form; those of other programs are read as far as possible."""
        if not isinstance(self.details, dict):
            return ToolDetails()
        try:
            return ToolDetails.model_validate(self.details)
        except ValueError:
            diff = self.details.get("diff")
            return ToolDetails(diff=diff if isinstance(diff, str) else None)

    @property
    def context_note(self) -> ContextNote | None:
        """The note on the context's fill below this result, if it has one."""
        is_noted = isinstance(self.details, dict) and "contextNote" in self.details
        return self.tool_details.context_note if is_noted else None


class BashExecutionMessage(Stored):
    """A command that the user ran with ``!`` (``!!`` sets ``exclude_from_context``).

    ``files`` are its observed changes; None: none. ``printed_lines`` counts all lines it printed;
    None: not counted. ``jobs`` is the background command that it became.
    """

    role: Literal["bashExecution"] = "bashExecution"
    command: str
    output: str
    exit_code: int | None = None
    cancelled: bool = False
    truncated: bool = False
    full_output_path: StoredPath | None = None
    printed_lines: int | None = None
    exclude_from_context: bool = False
    files: FileTouches | None = None
    jobs: tuple[Job, ...] | None = None
    timestamp: int = Field(default_factory=_now_ms)

    @property
    def text(self) -> str:
        """The command and its output."""
        return f"$ {self.command}\n{self.output}"


Message: TypeAlias = Annotated[
    UserMessage | AssistantMessage | ToolResultMessage | BashExecutionMessage,
    Field(discriminator="role"),
]


class ToolSpec(Stored):
    """A tool as described to the model; ``parameters`` is a JSON schema.

    ``is_seldom``, which is not sent: the model reads one line about it, and the rest when it asks.
    """

    name: str
    description: str
    parameters: JsonObject
    is_seldom: bool = Field(default=False, exclude=True)
