"""What a server offers besides tools: its introduction, prompts and resources."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from agent_tui.errors import ToolError
from agent_tui.features.mcp.json_rpc import display_text, items_in
from agent_tui.features.mcp.remote_tools import RemoteTool
from agent_tui.features.mcp.results import content_texts
from agent_tui.messages import JsonObject, ToolSpec
from agent_tui.safe_text import strip_control_characters
from agent_tui.tool_names import REMOTE_PREFIX

_MAX_WORDS: Final = 200
_MAX_INSTRUCTIONS: Final = 2_000
_MAX_PROMPTS: Final = 100
_MAX_ARGUMENTS: Final = 20
_MAX_LISTED: Final = 200
_READ_RESOURCE: Final = "read_resource"
_IN_NAMES = re.compile(r"[\w-]")
_NOT_IN_NAMES = re.compile(r"[^\w-]+")


@dataclass(frozen=True, slots=True)
class Introduction:
    """How a server introduces itself.

    Args:
        words: What it is, on one line; may be empty.
        instructions: How to use its tools, in its own words; may be empty.
        capabilities: Such as ``prompts`` and ``resources``.
    """

    words: str = ""
    instructions: str = ""
    capabilities: frozenset[str] = frozenset()


def introduction(result: JsonObject) -> Introduction:
    """The introduction in the answer to ``initialize`` or ``server/discover``."""
    info, capabilities = result.get("serverInfo"), result.get("capabilities")
    given = info if isinstance(info, dict) else {}
    instructions = display_text(result.get("instructions"), _MAX_INSTRUCTIONS, keep_lines=True)
    first_line = instructions.partition("\n")[0].lstrip("# ")
    candidates = (given.get("description"), first_line, given.get("title"))
    words = (display_text(words, _MAX_WORDS) for words in candidates)
    return Introduction(
        next(filter(None, words), ""),
        instructions,
        frozenset(capabilities) if isinstance(capabilities, dict) else frozenset(),
    )


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """One argument of a prompt."""

    name: str
    is_required: bool


@dataclass(frozen=True, slots=True)
class ServerPrompt:
    """A prompt; `own_name` is the server's name for it."""

    server: str
    own_name: str
    description: str
    arguments: tuple[PromptArgument, ...] = ()

    @property
    def name(self) -> str:
        """What the user types after the slash: ``server:prompt``."""
        return f"{self.server}:{_NOT_IN_NAMES.sub('-', self.own_name)}".lower()

    @property
    def hint(self) -> str:
        """Its arguments, shown as for commands."""
        return " ".join(f"<{a.name}>" if a.is_required else f"[{a.name}]" for a in self.arguments)


def prompt_arguments(prompt: ServerPrompt, text: str) -> Mapping[str, str]:
    """The arguments in the user's `text`: in order, or as ``name=value``.

    Quoted words count as one; the last argument takes all remaining text.

    Raises:
        ToolError: A required one is missing.
    """
    given: dict[str, str] = {}
    names = {argument.name for argument in prompt.arguments}
    loose: list[str] = []
    for word in _split(text):
        name, is_named, value = word.partition("=")
        if is_named and name in names:
            given[name] = value
        else:
            loose.append(word)
    open_names = [a.name for a in prompt.arguments if a.name not in given]
    for name in open_names[: len(loose)]:
        is_last = name == open_names[-1]
        given[name] = " ".join(loose) if is_last else loose.pop(0)
    if missing := [a.name for a in prompt.arguments if a.is_required and not given.get(a.name)]:
        raise ToolError(
            f"/{prompt.name} needs {', '.join(missing)}. Usage: /{prompt.name} {prompt.hint}"
        )
    return given


def parse_prompts(server: str, listed: Sequence[JsonValue]) -> tuple[ServerPrompt, ...]:
    """The first prompts that `server` lists, each name once."""
    prompts: dict[str, ServerPrompt] = {}
    for item in listed:
        match item:
            case {"name": str(own_name)} if _IN_NAMES.search(own_name):
                words = display_text(item.get("description") or item.get("title"), _MAX_WORDS)
                prompt = ServerPrompt(server, own_name, words, tuple(_arguments(item)))
                prompts.setdefault(prompt.name, prompt)
            case _:
                pass
    return tuple(prompts.values())[:_MAX_PROMPTS]


def _arguments(item: JsonObject) -> Iterator[PromptArgument]:
    for argument in items_in(item.get("arguments"))[:_MAX_ARGUMENTS]:
        match argument:
            case {"name": str(name)} if name.strip():
                yield PromptArgument(
                    display_text(name, _MAX_WORDS), argument.get("required") is True
                )
            case _:
                pass


def prompt_text(result: JsonObject) -> str:
    """The text in an answer to ``prompts/get``; messages in the model's role are marked.

    Raises:
        ToolError: It has no text.
    """
    said: list[str] = []
    for message in items_in(result.get("messages")):
        if not isinstance(message, dict):
            continue
        text = strip_control_characters("\n".join(content_texts([message.get("content")]))).strip()
        if text:
            said.append(f"Assistant: {text}" if message.get("role") == "assistant" else text)
    if not said:
        raise ToolError("this prompt has no text")
    return "\n\n".join(said)


@dataclass(frozen=True, slots=True)
class RemoteResource:
    """A resource, or a template for many; `about` is the server's description, on one line."""

    uri: str
    about: str = ""


def parse_resources(listed: Sequence[JsonValue], uri_key: str) -> tuple[RemoteResource, ...]:
    """The resources that a server lists, with their URIs under `uri_key`."""
    return tuple(
        RemoteResource(
            " ".join(uri.split()),
            display_text(
                item.get("description") or item.get("title") or item.get("name"), _MAX_WORDS
            ),
        )
        for item in listed
        if isinstance(item, dict) and isinstance(uri := item.get(uri_key), str)
    )


def resource_tool(server: str) -> RemoteTool:
    """The tool that reads resources of `server`; no tool of the server can have its own name."""
    uri: JsonObject = {"type": "string", "description": "Omit to list all"}
    spec = ToolSpec(
        name=f"{REMOTE_PREFIX}{server}__{_READ_RESOURCE}",
        description=f"Read a resource of the server {server} by its URI, such as one from a link.",
        parameters={"type": "object", "properties": {"uri": uri}, "required": []},
    )
    return RemoteTool(server, _READ_RESOURCE, spec, reads_resources=True)


def resource_result(answer: JsonObject) -> JsonObject:
    """Convert an answer to ``resources/read`` to one to ``tools/call``; keeps pictures."""
    return {"content": [_as_content(item) for item in items_in(answer.get("contents"))]}


def listing_result(listed: Sequence[RemoteResource]) -> JsonObject:
    """The readable resources, as an answer to ``tools/call``."""
    lines = [f"{resource.uri}  {resource.about}".rstrip() for resource in listed]
    more = [f"and {len(lines) - _MAX_LISTED:,} more"] if len(lines) > _MAX_LISTED else []
    text = "\n".join([*lines[:_MAX_LISTED], *more]) or "It lists no resources."
    return {"content": [{"type": "text", "text": text}]}


def _as_content(item: JsonValue) -> JsonValue:
    match item:
        case {"blob": str(blob), "mimeType": str(kind)} if kind.startswith("image/"):
            return {"type": "image", "data": blob, "mimeType": kind}
        case {"text": str(text)}:
            return {"type": "text", "text": text}
        case _:
            return {"type": "resource", "resource": item}


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an open quote is taken literally
        return text.split()
