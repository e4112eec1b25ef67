"""The prompts a server offers: which there are, what they take, and the text one becomes."""

import re
import shlex
from collections.abc import AsyncIterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from agent_tui.errors import ToolError
from agent_tui.messages import JsonObject
from agent_tui.safe_text import strip_control_characters
from agent_tui.tools.mcp.results import content_texts

MAX_PROMPTS: Final = 100
_MAX_DESCRIPTION_CHARS = 200
_MAX_ARGUMENTS = 20
_NOT_IN_NAMES = re.compile(r"[^\w-]+")


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """One argument of a prompt."""

    name: str
    is_required: bool


@dataclass(frozen=True, slots=True)
class RemotePrompt:
    """A prompt; `own_name` is what its server calls it."""

    server: str
    own_name: str
    description: str
    arguments: tuple[PromptArgument, ...] = ()

    @property
    def name(self) -> str:
        """What the person types after the slash: ``server:prompt``."""
        return f"{self.server}:{_NOT_IN_NAMES.sub('-', self.own_name)}".lower()

    @property
    def hint(self) -> str:
        """Its arguments, as commands show theirs."""
        return " ".join(f"<{a.name}>" if a.is_required else f"[{a.name}]" for a in self.arguments)

    def filled(self, text: str) -> dict[str, str]:
        """The arguments that the person's `text` gives: in order, or as ``name=value``.

        Words in quotes are one; the last argument takes all that is left.

        Raises:
            ToolError: One that is needed is missing.
        """
        given: dict[str, str] = {}
        names = {argument.name for argument in self.arguments}
        loose: list[str] = []
        for word in _split(text):
            name, is_named, value = word.partition("=")
            if is_named and name in names:
                given[name] = value
            else:
                loose.append(word)
        open_names = [a.name for a in self.arguments if a.name not in given]
        for name in open_names[: len(loose)]:
            is_last = name == open_names[-1]
            given[name] = " ".join(loose) if is_last else loose.pop(0)
        if missing := [a.name for a in self.arguments if a.is_required and not given.get(a.name)]:
            raise ToolError(
                f"/{self.name} needs {', '.join(missing)}. Usage: /{self.name} {self.hint}"
            )
        return given


async def listed_prompts(
    server: str, pages: AsyncIterable[Sequence[JsonValue]]
) -> tuple[RemotePrompt, ...]:
    """The first prompts of what `server` answers to ``prompts/list``, each name once."""
    prompts: dict[str, RemotePrompt] = {}
    async for page in pages:
        for prompt in _prompts_in(server, page[:MAX_PROMPTS]):
            prompts.setdefault(prompt.name, prompt)
        if len(prompts) >= MAX_PROMPTS:
            break
    return tuple(prompts.values())


def _prompts_in(server: str, items: Sequence[JsonValue]) -> Iterator[RemotePrompt]:
    """The prompts of a page; what is none is passed over."""
    for item in items:
        match item:
            case {"name": str(own_name)} if _NOT_IN_NAMES.sub("", own_name):
                described = item.get("description") or item.get("title")
                words = _line(described) if isinstance(described, str) else ""
                yield RemotePrompt(server, own_name, words, tuple(_arguments(item)))
            case _:
                pass


def prompt_text(result: JsonObject) -> str:
    """The text of an answer to ``prompts/get``; what the model is to have said is marked.

    Raises:
        ToolError: It holds none.
    """
    messages = result.get("messages")
    said: list[str] = []
    for message in messages if isinstance(messages, list) else ():
        if not isinstance(message, dict):
            continue
        text = strip_control_characters("\n".join(content_texts([message.get("content")]))).strip()
        if text:
            said.append(f"Assistant: {text}" if message.get("role") == "assistant" else text)
    if not said:
        raise ToolError("this prompt has no text")
    return "\n\n".join(said)


def _arguments(item: JsonObject) -> Iterator[PromptArgument]:
    given = item.get("arguments")
    for argument in given[:_MAX_ARGUMENTS] if isinstance(given, list) else ():
        match argument:
            case {"name": str(name)} if name.strip():
                yield PromptArgument(_line(name), argument.get("required") is True)
            case _:
                pass


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an open quote is meant as one
        return text.split()


def _line(text: str) -> str:
    return " ".join(strip_control_characters(text).split())[:_MAX_DESCRIPTION_CHARS]
