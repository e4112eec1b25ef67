"""Compaction alone: a list of messages in, a shorter one out. No session, screen or settings."""

import asyncio
import hashlib
import json
import os
import re
import warnings
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from pydantic import JsonValue

from agent_tui.api.session import library_settings, named_model
from agent_tui.compaction.planner import CompactionPlanner
from agent_tui.compaction.request import Asking, CompactionRequest, ContextSizes
from agent_tui.config import Settings
from agent_tui.errors import (
    IN_PROGRAM,
    CompactionWarning,
    NothingToCompactError,
    TargetTooSmallError,
    UsageError,
)
from agent_tui.messages import (
    AssistantContent,
    AssistantMessage,
    ImageContent,
    JsonObject,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
    images_in,
)
from agent_tui.omissions import IMAGE_MARK
from agent_tui.providers.access import NO_MODEL, open_models
from agent_tui.providers.base import FaultKind, ModelInfo, ModelRef, ModelRequest, ProviderError
from agent_tui.providers.catalog import ModelCatalog
from agent_tui.providers.client import ModelClient, ModelReply, RequestTracker, unseen
from agent_tui.providers.wires.anthropic import anthropic_payload
from agent_tui.providers.wires.chat import openai_messages
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import (
    Carryover,
    CompactionDetails,
    CompactionEntry,
    Entry,
    MessageEntry,
)
from agent_tui.sessions.replay.normalise import NO_RESULT_TEXT
from agent_tui.tokens import ExactCounter, TokenCounter

Shape: TypeAlias = Literal["openai", "anthropic"]
ChatMessage: TypeAlias = Mapping[str, Any]
"""One message: ``{"role": "user", "content": "..."}`` and so on."""

_INSTRUCTIONS = ("system", "developer")
_CONVERTERS = {
    "langchain_core": "langchain_core.messages.convert_to_openai_messages",
    "openai": "the model_dump() of each message",
    "anthropic": "the model_dump() of each message",
}
"""What makes chat messages of other packages' objects, by the name of the package."""

_ANTHROPIC_BLOCKS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"}
)


@dataclass(frozen=True, slots=True)
class ReadMessage:
    """The contents of one dict: several messages if Anthropic's form combines results.

    `digest` is the same for the same dict.
    """

    given: ChatMessage
    messages: tuple[Message, ...]
    digest: str


def shape_of(messages: Sequence[ChatMessage]) -> Shape:
    """The form of `messages`; OpenAI's if both forms are the same."""
    kinds: set[object] = set()
    for message in messages:
        if isinstance(content := message.get("content"), list):
            parts = cast("list[object]", content)
            dicts = (cast("ChatMessage", part) for part in parts if isinstance(part, dict))
            kinds |= {kind for part in dicts if isinstance(kind := part.get("type"), str)}
    return "anthropic" if kinds & _ANTHROPIC_BLOCKS else "openai"


def leading_instructions(messages: Sequence[ChatMessage]) -> int:
    """The number of instruction messages at the beginning."""
    count = 0
    while count < len(messages) and messages[count].get("role") in _INSTRUCTIONS:
        count += 1
    return count


def read_messages(messages: Sequence[ChatMessage]) -> list[ReadMessage]:
    """Parse `messages` in either form.

    Raises:
        ValueError: One is not a chat message; the text says which and why.
    """
    names: dict[str, str] = {}
    found: list[ReadMessage] = []
    for number, given in enumerate(messages):
        try:
            digest = hashlib.sha256(repr(given).encode()).hexdigest()[:12]
            found.append(ReadMessage(given, tuple(_read(given, names)), digest))
        except RecursionError as error:
            raise ValueError(
                f"messages[{number}] cannot be read: it is nested too deeply"
            ) from error
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            why = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"messages[{number}] cannot be read: {why}") from error
    return found


def to_dicts(messages: Sequence[Message], shape: Shape) -> list[JsonObject]:
    """`messages` as dicts of `shape`."""
    first = messages[0] if messages else None
    if shape == "openai":
        written = openai_messages("", messages, keeps_ids=True)
        has_opening = not isinstance(first, UserMessage)
    else:
        payload = anthropic_payload("", messages)["messages"]
        assert isinstance(payload, list)
        written = [one for one in payload if isinstance(one, dict)]
        has_opening = isinstance(first, AssistantMessage)
    # Requests begin with the user's role, which the wires ensure; this is part of one.
    return written[1:] if has_opening else written


def _read(given: object, names: dict[str, str]) -> Iterator[Message]:
    if not isinstance(given, Mapping):
        kind = type(given)
        how = _CONVERTERS.get(kind.__module__.partition(".")[0], "its framework's converter")
        raise TypeError(f"it is a {kind.__name__}, not a dict; convert the list first, with {how}")
    yield from _read_dict(cast("ChatMessage", given), names)


def _read_dict(given: ChatMessage, names: dict[str, str]) -> Iterator[Message]:
    if "role" not in given and isinstance(kind := given.get("type"), str):
        raise ValueError(
            f"no 'role', and the type {kind!r}; convert the list to chat messages first"
        )
    role, content = given["role"], given.get("content")
    parts = _parts(content)
    match role:
        case "assistant":
            reply = AssistantMessage(content=(*_reply_parts(parts), *_calls(given)))
            names.update({call.id: call.name for call in reply.tool_calls})
            yield reply
        case "tool":
            is_error = bool(given.get("is_error"))
            yield _result(str(given["tool_call_id"]), parts, names, is_error=is_error)
        case "user" | "system" | "developer":
            said: list[Any] = []
            for part in parts:
                if part.get("type") == "tool_result":
                    answer = _parts(part.get("content"))
                    is_error = bool(part.get("is_error"))
                    yield _result(str(part["tool_use_id"]), answer, names, is_error=is_error)
                else:
                    said.append(part)
            if said:
                yield UserMessage(content=tuple(map(_user_part, said)))
        case _:
            raise ValueError(
                f"the role {role!r} is none of user, assistant, tool, system and developer"
            )


def _parts(content: object) -> list[Mapping[str, Any]]:
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise TypeError("its content is neither a text nor a list of parts")
    given = cast("list[str | Mapping[str, Any]]", content)
    return [{"type": "text", "text": one} if isinstance(one, str) else one for one in given]


def _reply_parts(parts: Sequence[Mapping[str, Any]]) -> Iterator[AssistantContent]:
    for part in parts:
        match part.get("type"):
            case "tool_use":
                yield ToolCall(id=part["id"], name=part["name"], arguments=dict(part["input"]))
            case "thinking":
                yield ThinkingContent(thinking=part["thinking"], signature=part.get("signature"))
            case "redacted_thinking":
                yield ThinkingContent(thinking="", signature=part.get("data"), redacted=True)
            case _:
                yield TextContent(text=_text(part))


def _calls(given: ChatMessage) -> Iterator[ToolCall]:
    for call in given.get("tool_calls") or ():
        function = call["function"]
        yield ToolCall(
            id=call["id"], name=function["name"], arguments=_arguments(function["arguments"])
        )


def _arguments(given: str | JsonObject) -> JsonObject:
    """The arguments of a call; anything but an object is kept as it is."""
    try:
        value: JsonValue = json.loads(given or "{}") if isinstance(given, str) else given
    except (ValueError, RecursionError):
        value = given
    return value if isinstance(value, dict) else {"arguments": value}


def _result(
    call_id: str,
    parts: Sequence[Mapping[str, Any]],
    names: Mapping[str, str],
    *,
    is_error: bool = False,
) -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=call_id,
        tool_name=names.get(call_id, ""),
        content=tuple(map(_user_part, parts)),
        is_error=is_error,
    )


def _user_part(part: Mapping[str, Any]) -> UserContent:
    match part:
        case {"type": "image", "source": {"type": "base64", "data": data, "media_type": kind}}:
            return ImageContent(data=data, mime_type=kind)
        case {"type": "image_url", "image_url": {"url": str(url)}} if url.startswith("data:"):
            kind, _, data = url.removeprefix("data:").partition(";base64,")
            return ImageContent(data=data, mime_type=kind)
        case _:
            return TextContent(text=_text(part))


def _text(part: Mapping[str, Any]) -> str:
    """The text of a part; for other kinds, the part as JSON."""
    text = part.get("text", part.get("refusal"))
    return text if isinstance(text, str) else json.dumps(part, ensure_ascii=False)


_MORE_IMAGES = re.compile(r"\[(\d+) more images? left out\]")

_IMAGES_LINE_TOKENS = 15
"""For the line that counts images: newline, brackets, number and words."""

_ID = "[0-9a-f]{13,}x[0-9a-f]+"
_MARKS = re.compile(
    rf" ?\[(?:recall )?{_ID}\]|; recall finds them(?: by their words|: {_ID}(?: {_ID})*)?"
)

_MOST_SUMMARIES = 64
_SUMMARIES: OrderedDict[str, Carryover] = OrderedDict()
"""State beside the text of the newest summaries, so that the next one continues them."""


def compact(messages: Iterable[ChatMessage], target_tokens: int) -> list[dict[str, object]]:
    """`messages` in at most `target_tokens`, made by code: no model is asked, nothing is written.

    System messages at the beginning and messages that stay are returned as they were given. The
    others are replaced by one message of the user's role: what the user said, the task, files as
    they are now, open errors, decisions, and the steps so far. Calls and results stay together; a
    call at the end still waits for its result.

    Args:
        messages: Dicts as for OpenAI's chat completions or Anthropic's messages.
        target_tokens: Limit of the result, in tokens as the o200k vocabulary counts them, without
            the system messages.

    Returns:
        A new list; the same messages if they are small enough.

    Raises:
        ValueError: A message cannot be read, or `target_tokens` is no whole number from 1 on.
        TargetTooSmallError: The target is less than what always stays; `least_tokens` works.
    """
    work = acompact(messages, target_tokens)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:  # a loop runs here, whose caller waits
        return thread.submit(asyncio.run, work).result()


async def acompact(
    messages: Iterable[ChatMessage],
    target_tokens: int,
    *,
    model: str = "",
    base_url: str | None = None,
    api_key_env: str | None = None,
    window: int | None = None,
    focus: str = "",
) -> list[dict[str, object]]:
    """As `compact`, while `model` says what it needs and writes notes.

    Args:
        messages: As in `compact`.
        target_tokens: As in `compact`.
        model: Its name with the provider's, ``anthropic/claude-sonnet-5-5``; empty asks none. Its
            key is taken from the provider's environment variable.
        base_url: Address of a server of your own.
        api_key_env: Environment variable with its key; by default the provider's.
        window: Context window of the model in tokens, where its server does not say. The messages
            and the question must fit in it; otherwise the model is not asked.
        focus: What the summary should pay attention to.

    Returns:
        As `compact`. If the model's answer fails, code alone makes it, and a `CompactionWarning`
        says why.

    Raises:
        ValueError: As in `compact`.
        TargetTooSmallError: As in `compact`.
        UsageError: There is no model of that name, or its server refuses the key.
    """
    if type(cast("object", target_tokens)) is not int or target_tokens < 1:
        raise ValueError(
            f"target_tokens must be a whole number of at least 1, not {target_tokens!r}"
        )
    messages = list(messages)
    read = read_messages(messages)
    first, shape = leading_instructions(messages), shape_of(messages)
    given = _to_given(read[first:])
    counter = ExactCounter()
    said = [entry.message for one in given for entry in one.entries]
    used = counter.count_messages(said)
    if used <= target_tokens:
        return [dict(message) for message in messages]
    spare = _IMAGES_LINE_TOKENS if _images_and_marks(said) else 0
    path, previous = _path_of(given)
    settings = library_settings(model, base_url, window, api_key_env)
    async with _planner(settings, counter) as (planner, ref, known_window):
        request = CompactionRequest(
            path=path,
            previous=previous,
            model=ref,
            cwd=Path.cwd(),
            settings=settings.compaction,
            sizes=ContextSizes(
                window=known_window or used, used=used, target=max(target_tokens - spare, 1)
            ),
            asking=Asking(focus=focus),
            occasion="limit",
        )
        try:
            outcome = await planner.outcome(request, "tiered", unseen)
        except TargetTooSmallError as error:
            least = min(error.least_tokens + spare, used)
            raise TargetTooSmallError(target_tokens, least) from error
        except NothingToCompactError as error:
            raise TargetTooSmallError(target_tokens, used) from error
    entries = [
        entry.model_copy(update={"id": f"made{number}"})
        for number, entry in enumerate(outcome.entries("library", used))
    ]
    if isinstance(last := entries[-1], CompactionEntry) and not last.first_kept_entry_id:
        entries[-1] = last.model_copy(update={"first_kept_entry_id": last.id})
    made = _to_dicts_again((*path, *entries), given, shape)
    if (result := outcome.summary) is not None:
        _count_images(made, given)
        _remember(made[0], result.carryover)
        if result.problem:
            warnings.warn(result.problem, CompactionWarning, stacklevel=2)
    return [*map(dict, messages[:first]), *made]


@asynccontextmanager
async def _planner(
    settings: Settings, counter: TokenCounter
) -> AsyncGenerator[tuple[CompactionPlanner, ModelRef, int]]:
    """The planner, the model it asks, and that model's window; 0 if none is asked."""
    if not settings.model:
        catalog = ModelCatalog(settings, os.environ)
        yield CompactionPlanner(None, counter, catalog), NO_MODEL, 0
        return
    models = open_models(settings, os.environ, ways=IN_PROGRAM)
    try:
        ref = named_model(models.catalog, settings.model)
        info = await models.catalog.learn(ref)
        lookup = _OneModel(models.catalog)
        planner = CompactionPlanner(_StrictClient(models.provider), counter, lookup)
        yield planner, ref, info.window
    finally:
        await models.provider.aclose()


_WRONG_MODEL: frozenset[FaultKind] = frozenset({"auth", "not_found", "address"})


class _StrictClient(ModelClient):
    """A client for which a model that can never answer is an error, not a reason to do without."""

    async def ask(self, request: ModelRequest, phase: str, tracker: RequestTracker) -> ModelReply:
        try:
            return await super().ask(request, phase, tracker)
        except ProviderError as error:
            if error.kind in _WRONG_MODEL:
                raise UsageError(error.message, error.hint) from error
            raise


@dataclass(frozen=True, slots=True)
class _OneModel:
    """Looks up the model that was named, and no other of its provider."""

    catalog: ModelCatalog

    def info(self, ref: ModelRef) -> ModelInfo:
        return self.catalog.info(ref)

    def resolve(self, name: str) -> ModelRef:
        return self.catalog.resolve_exact(name)

    def cheap_model(self, ref: ModelRef) -> ModelRef | None:
        return None


@dataclass(frozen=True, slots=True)
class _Given:
    """A given dict, and the equivalent entries of a session."""

    message: ChatMessage
    entries: tuple[MessageEntry, ...]


def _to_given(read: Sequence[ReadMessage]) -> tuple[_Given, ...]:
    """The messages as entries with ids that are the same in every list that contains them."""
    seen: Counter[str] = Counter()
    found: list[_Given] = []
    for one in read:
        seen[one.digest] += 1
        ids = (f"{one.digest}{seen[one.digest]:x}x{at:x}" for at in range(len(one.messages)))
        entries = [MessageEntry(id=i, message=m) for i, m in zip(ids, one.messages, strict=True)]
        found.append(_Given(one.given, tuple(entries)))
    return tuple(found)


def _path_of(given: Sequence[_Given]) -> tuple[tuple[Entry, ...], Carryover | None]:
    """The entries as one path, and the state beside a summary that it begins with."""
    entries: list[Entry] = [entry for one in given for entry in one.entries]
    previous = _SUMMARIES.get(_key(given[0].entries)) if given else None
    if previous is not None:
        entries[0] = CompactionEntry(
            id=entries[0].id,
            summary=previous.summary,
            first_kept_entry_id=entries[0].id,
            details=CompactionDetails(
                read_files=previous.read_files,
                modified_files=previous.modified_files,
                ledger=previous.ledger,
            ),
        )
    for at, entry in enumerate(entries[1:], start=1):
        entries[at] = entry.model_copy(update={"parent_id": entries[at - 1].id})
    return tuple(entries), previous


def _to_dicts_again(
    path: Sequence[Entry], given: Sequence[_Given], shape: Shape
) -> list[dict[str, object]]:
    """The context of `path`; unchanged messages are the dicts that were given."""
    by_first = {one.entries[0].id: one for one in given if one.entries}
    context = [(item.entry_id, item.message) for item in build_context(path).messages]
    end = len(context)
    while end and isinstance(context[end - 1][1], ToolResultMessage):
        end -= 1
    context[end:] = [one for one in context[end:] if one[1].text != NO_RESULT_TEXT]
    made: list[dict[str, object]] = []
    changed: list[Message] = []

    def write_changed() -> None:
        if changed:
            made.extend(_clean(one) for one in to_dicts(changed, shape))
            changed.clear()

    at = 0
    while at < len(context):
        one = by_first.get(context[at][0])
        whole = [(entry.id, entry.message) for entry in one.entries] if one is not None else []
        if one is not None and context[at : at + len(whole)] == whole:
            write_changed()
            made.append(dict(one.message))
            at += len(whole)
        else:
            changed.append(context[at][1])
            at += 1
    write_changed()
    return made


def _count_images(made: Sequence[dict[str, object]], given: Sequence[_Given]) -> None:
    """Add a line to the summary, the first of `made`, if images of `given` left no mark."""
    before = [entry.message for one in given for entry in one.entries]
    after = [message for one in read_messages(made) for message in one.messages]
    missing = _images_and_marks(before) - _images_and_marks(after)
    if missing > 0:
        line = f"\n[{missing} more image{'s' if missing > 1 else ''} left out]"
        made[0]["content"] = _with_line(made[0]["content"], line)


def _images_and_marks(messages: Sequence[Message]) -> int:
    count = 0
    for message in messages:
        count += message.text.count(IMAGE_MARK) + sum(map(int, _MORE_IMAGES.findall(message.text)))
        if isinstance(message, UserMessage | ToolResultMessage):
            count += len(images_in(message.content))
    return count


def _with_line(content: object, line: str) -> object:
    """`content` of a message, a text or parts, with `line` at its end."""
    if isinstance(content, str):
        return content + line
    return [*cast("list[object]", content), {"type": "text", "text": line.strip()}]


def _clean(message: JsonObject) -> dict[str, object]:
    return {key: _without_marks(value) for key, value in message.items()}


def _without_marks(value: JsonValue) -> JsonValue:
    """`value` without marks for a tool that only the program has."""
    match value:
        case str():
            return _MARKS.sub("", value)
        case list():
            return [_without_marks(one) for one in value]
        case dict():
            return {key: _without_marks(one) for key, one in value.items()}
        case _:
            return value


def _key(entries: Sequence[MessageEntry]) -> str:
    """A key that identifies a summary; empty if it cannot be one."""
    if len(entries) != 1 or not isinstance(message := entries[0].message, UserMessage):
        return ""
    return hashlib.sha256(message.text.encode("utf-8", "surrogatepass")).hexdigest()


def _remember(summary: dict[str, object], carryover: Carryover) -> None:
    _SUMMARIES[_key(_to_given(read_messages([summary]))[0].entries)] = carryover
    while len(_SUMMARIES) > _MOST_SUMMARIES:
        _SUMMARIES.popitem(last=False)
