"""Finds what the menu offers for the typed text: at once if it is known, else later."""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeAlias, assert_never

from agent_tui.commands.core.command import Completions
from agent_tui.commands.core.registry import CommandRegistry
from agent_tui.drafts.history import PromptHistory
from agent_tui.errors import AgentTuiError
from agent_tui.ui.prompt.completion import (
    MAX_ITEMS,
    ArgumentQuery,
    MentionQuery,
    MenuItem,
    NameQuery,
    Query,
    argument_items,
    command_items,
    mention_item,
    path_items,
    query_at,
    resource_items,
    split_last_word,
)
from agent_tui.ui.prompt.file_index import FileIndex
from agent_tui.ui.prompt.ranking import fuzzy_match, is_writable

Items: TypeAlias = tuple[MenuItem, ...]
Answer: TypeAlias = Items | Callable[[], AsyncGenerator[Items, None]]
"""The items, or what yields them repeatedly as more become known."""
_MOST_ENTRIES = 20_000


def _always_sees() -> str:
    return ""


async def _no_news() -> bool:
    return False


async def no_resources(_typed: str) -> Mapping[str, str]:
    """The resources if there are no MCP servers."""
    return {}


@dataclass(frozen=True, slots=True)
class PromptSources:
    """Given to the prompt once they exist.

    Attributes:
        completions: The arguments of a command by name; slow ones are awaited.
        resources: What of MCP servers a mention may be, with what it is.
        look_for_commands: Updates the registry; true if that changed it.
        image_refusal: Why the present model accepts no images; empty if it does.
    """

    registry: CommandRegistry
    completions: Callable[[str], Completions | Awaitable[Completions]]
    files: FileIndex
    history: PromptHistory
    image_refusal: Callable[[], str] = _always_sees
    resources: Callable[[str], Awaitable[Mapping[str, str]]] = no_resources
    look_for_commands: Callable[[], Awaitable[bool]] = _no_news


def leads_outside(typed: str) -> bool:
    """Whether `typed` begins a path that no list of the project's files has."""
    return typed.startswith(("/", "~/", "../")) or typed in ("~", "..")


def entries_outside(typed: str, cwd: Path, limit: int) -> tuple[str, ...]:
    """Entries of the folder in `typed` that match its last part; folders end with a slash.

    Blocking. Empty if the folder cannot be read. Names that begin with a dot are included only if
    the last part does.
    """
    if typed in ("~", ".."):
        return (typed + "/",)
    folder, _, last = typed.rpartition("/")
    try:
        with os.scandir(cwd / Path(f"{folder}/").expanduser()) as entries:
            names = [
                entry.name + ("/" if entry.is_dir() else "")
                for entry in islice(entries, _MOST_ENTRIES)
                if is_writable(entry.name) and entry.name.startswith(".") <= last.startswith(".")
            ]
    except (OSError, RuntimeError, ValueError):  # not there, ~ of nobody known, NUL
        return ()
    matches = [(match, name) for name in names if (match := fuzzy_match(last, name)) is not None]
    matches.sort(key=lambda found: (-found[0].score, found[1]))
    return tuple(f"{folder}/{name}" for _, name in matches[:limit])


class Completer:
    """Asks the sources; possible arguments are requested once per argument."""

    def __init__(self, sources: PromptSources) -> None:
        self._sources = sources
        self._name = ""
        self._offer: Completions | None = None
        self._asking: asyncio.Future[Completions] | None = None

    def query_at(self, text_before_cursor: str, *, is_first_line: bool) -> Query | None:
        """The text being completed at the cursor; None if it has no menu."""
        return query_at(text_before_cursor, is_first_line=is_first_line)

    def answer(self, query: Query) -> Answer:
        """The offer for `query`, or what finds it in a separate task."""
        match query:
            case NameQuery():
                self.forget()
                return self.names(query)
            case ArgumentQuery():
                self._ask(query.name)
                if self._asking is not None or self._takes_path(query):
                    return partial(self._arguments, query)
                return argument_items(self._offer or (), query.typed)
            case MentionQuery():
                return partial(self._mentions, query)
            case _:
                assert_never(query)

    def names(self, query: NameQuery) -> Items:
        """The present commands."""
        return command_items(self._sources.registry.commands, query.typed)

    def forget(self) -> None:
        """Forget the possible arguments, so that the next argument asks again."""
        self._name, self._offer = "", None
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    def _ask(self, name: str) -> None:
        if name == self._name:
            return
        self.forget()
        self._name = name
        offer = self._sources.completions(name)
        if isinstance(offer, Iterable):
            self._offer = tuple(offer)
        else:
            self._asking = asyncio.ensure_future(offer)

    async def _arguments(self, query: ArgumentQuery) -> AsyncGenerator[Items, None]:
        if (asking := self._asking) is not None:
            offer = await self._outcome(asking)
            if asking is self._asking:
                self._offer, self._asking = tuple(offer), None
        found = argument_items(self._offer or (), query.typed)
        if not self._takes_path(query):
            yield found
            return
        _, last = split_last_word(query.typed)
        async with aclosing(self._paths(last)) as answers:
            async for paths in answers:
                yield (*found, *path_items(paths, query.typed))[:MAX_ITEMS]

    async def _outcome(self, asking: "asyncio.Future[Completions]") -> Completions:
        """The result of `asking`; a key typed meanwhile stops the waiting only."""
        try:
            return await asyncio.shield(asking)
        except AgentTuiError:
            return ()  # the command itself will say it

    def _takes_path(self, query: ArgumentQuery) -> bool:
        command = self._sources.registry.find(query.name)
        return command is not None and command.takes_path

    async def _mentions(self, query: MentionQuery) -> AsyncGenerator[Items, None]:
        asking = asyncio.ensure_future(self._sources.resources(query.typed))
        files: Items = ()
        try:
            async with aclosing(self._paths(query.typed)) as answers:
                async for paths in answers:
                    files = tuple(mention_item(path, query.typed) for path in paths)
                    yield files
            # A server may take its time: files do not wait for it.
            if found := resource_items(await asking, query.typed):
                yield (*files[: MAX_ITEMS - len(found)], *found)
        finally:
            asking.cancel()

    async def _paths(self, typed: str) -> AsyncGenerator[tuple[str, ...], None]:
        files = self._sources.files
        if leads_outside(typed):
            yield await asyncio.to_thread(entries_outside, typed, files.root, MAX_ITEMS)
            return
        async with aclosing(files.answers(typed.removeprefix("./"), MAX_ITEMS)) as answers:
            async for paths in answers:
                yield paths
