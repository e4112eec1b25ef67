"""What can be completed at the cursor, and with what: at once if it is known, else later."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias, assert_never

from agent_tui.agent.prompt.prompt_files import Skill
from agent_tui.commands.core.command import Command, Completion, Completions
from agent_tui.commands.core.registry import CommandRegistry
from agent_tui.drafts.history import PromptHistory
from agent_tui.errors import AgentTuiError
from agent_tui.ui.prompt.file_index import FileIndex
from agent_tui.ui.prompt.ranking import FuzzyMatch, fuzzy_match, is_writable

MAX_ITEMS = 50


@dataclass(frozen=True, slots=True)
class NameQuery:
    """The name of a slash command is being written."""

    typed: str
    start: int = 0
    kind: Literal["name"] = "name"


@dataclass(frozen=True, slots=True)
class ArgumentQuery:
    """The argument of a slash command is being written; `typed` is all of it so far."""

    name: str
    typed: str
    start: int
    kind: Literal["argument"] = "argument"


@dataclass(frozen=True, slots=True)
class MentionQuery:
    """The path after an ``@`` is being written; `start` is the column of the ``@``."""

    typed: str
    start: int
    kind: Literal["mention"] = "mention"


@dataclass(frozen=True, slots=True)
class SkillQuery:
    """The name of a skill is being written in a message; `start` is the column of `mark`."""

    typed: str
    start: int
    mark: Literal["/", "$"]
    kind: Literal["skill"] = "skill"


Query: TypeAlias = NameQuery | ArgumentQuery | MentionQuery | SkillQuery


@dataclass(frozen=True, slots=True)
class MenuItem:
    """One line of the menu.

    Attributes:
        label: What it is, first column.
        insert: The text that replaces what was typed from the query's start to the cursor.
        hint: Argument hint, beside the label.
        description: Second column.
        matched: Offsets in `label` that match what was typed.
        runs: Whether Enter sends the prompt once this was inserted.
        stands_for: Whether `insert` is an id that nobody types: what was typed is not it yet.
    """

    label: str
    insert: str
    hint: str = ""
    description: str = ""
    matched: tuple[int, ...] = ()
    runs: bool = False
    stands_for: bool = False


_MENTION = re.compile(r"(?:^|(?<=[\s(\[{\"'`,;]))@(?:\"([^\"]*)|([^\s\"]*))$")
_NAME = re.compile(r"^/([\w:-]*)$")
_ARGUMENT = re.compile(r"^/([\w:-]+)\s+(.*)$")


_SKILL = re.compile(r"(?:^|(?<=[\s(]))(?:/([\w-]*)|\$([\w-]*))$")


def query_at(
    line_before_cursor: str, *, is_first_line: bool, is_shell: bool = False
) -> Query | None:
    """The text being completed at the cursor; None if it has no menu.

    In a shell command (`is_shell`), ``/`` and ``$`` begin paths and variables.
    """
    if mention := _MENTION.search(line_before_cursor):
        return MentionQuery(mention[1] or mention[2] or "", mention.start())
    skill = None if is_shell else _SKILL.search(line_before_cursor)
    if skill and skill[2] is not None:
        return SkillQuery(skill[2], skill.start(), "$")
    if is_first_line:
        if name := _NAME.match(line_before_cursor):
            return NameQuery(name[1])
        if argument := _ARGUMENT.match(line_before_cursor):
            return ArgumentQuery(argument[1], argument[2], argument.start(2))
    return SkillQuery(skill[1].lower(), skill.start(), "/") if skill else None


def command_items(commands: Sequence[Command], typed: str) -> tuple[MenuItem, ...]:
    """The commands that match, best first; names that begin with `typed` before all others."""
    ranked: list[tuple[float, int, MenuItem]] = []
    for order, entry in enumerate(commands):
        name, match = _best_name(entry, typed)
        if match is None:
            continue
        item = MenuItem(
            label="/" + name,
            insert=f"/{name} " if entry.argument_hint else f"/{name}",
            hint=entry.argument_hint,
            description=entry.description,
            matched=tuple(offset + 1 for offset in match.offsets),
            runs=not entry.needs_argument,
        )
        ranked.append((-match.score, order, item))
    return _in_order(ranked)


def skill_items(skills: Sequence[Skill], query: SkillQuery) -> tuple[MenuItem, ...]:
    """The skills whose names begin with what was typed."""
    return tuple(
        MenuItem(
            f"{query.mark}{skill.name}",
            f"{query.mark}{skill.name} ",
            description=skill.description,
            matched=tuple(range(1, len(query.typed) + 1)),
        )
        for skill in skills
        if skill.name.startswith(query.typed)
    )[:MAX_ITEMS]


def _best_name(entry: Command, typed: str) -> tuple[str, FuzzyMatch | None]:
    """The best matching name or alias, and its match."""
    best_name, best = entry.name, fuzzy_match(typed, entry.name)
    for name in entry.aliases:
        match = fuzzy_match(typed, name)
        if match is not None and (best is None or match.score > best.score):
            best_name, best = name, match
    return best_name, best


def argument_items(offer: Completions, typed: str) -> tuple[MenuItem, ...]:
    """The completions of the argument, best first.

    If nothing matches the whole text, an option may still follow free words.
    """
    choices = [Completion(entry) if isinstance(entry, str) else entry for entry in offer]
    whole = _rank(choices, typed)
    words, dash, begun = typed.rpartition(" -")
    if whole or not dash:
        return whole
    return tuple(
        MenuItem(choice.text, f"{words} {choice.text}", description=choice.description, runs=True)
        for choice in choices
        if choice.text.startswith(f"-{begun}")
    )


def _rank(choices: Sequence[Completion], typed: str) -> tuple[MenuItem, ...]:
    ranked: list[tuple[float, int, MenuItem]] = []
    for order, choice in enumerate(choices):
        match = _match(choice, typed)
        if match is None:
            continue
        item = MenuItem(
            label=choice.label or choice.text,
            insert=choice.text,
            description=choice.description,
            matched=match.offsets,
            runs=not choice.text.endswith(" "),
            stands_for=bool(choice.label),
        )
        ranked.append((-match.score, order, item))
    return _in_order(ranked)[:MAX_ITEMS]


def _match(choice: Completion, typed: str) -> FuzzyMatch | None:
    """How `choice` fits.

    An option is found by its dashes: a free text that happens to have letters of it is none.
    Of a choice with several words those before the last must be written out.
    """
    if choice.label:
        is_id = bool(typed) and choice.text.startswith(typed)
        return FuzzyMatch(0.0, ()) if is_id else fuzzy_match(typed, choice.label)
    if choice.text.startswith("-") and not choice.text.startswith(typed):
        return None
    head, last = split_last_word(typed)
    if not choice.text.lower().startswith(head.lower()):
        return None
    match = fuzzy_match(last, choice.text[len(head) :])
    if match is None:
        return None
    return FuzzyMatch(match.score, tuple(offset + len(head) for offset in match.offsets))


def path_items(paths: Sequence[str], typed: str) -> tuple[MenuItem, ...]:
    """Paths for the last word of an argument; they are written as they are, without quotes."""
    head, last = split_last_word(typed)
    return tuple(MenuItem(path, head + path, matched=_letters(path, last)) for path in paths)


def split_last_word(typed: str) -> tuple[str, str]:
    """Everything up to the last blank, with it, and what comes after."""
    head, blank, last = typed.rpartition(" ")
    return head + blank, last


def resource_items(choices: Mapping[str, str], typed: str) -> tuple[MenuItem, ...]:
    """The menu lines for servers and resources that match the `typed` text after the ``@``."""
    offered = [Completion(text, about) for text, about in choices.items()]
    return tuple(
        replace(item, insert=f"@{item.insert}" + " " * (not item.insert.endswith(":")), runs=False)
        for item in _rank(offered, typed)
    )


def mention_item(path: str, typed: str = "") -> MenuItem:
    """The menu line for a path; one with blanks is quoted. A folder ends with a slash."""
    before, after = ('@"', '"') if re.search(r"\s", path) else ("@", "")
    insert = before + path + ("" if path.endswith("/") else after + " ")
    return MenuItem(path, insert, matched=_letters(path, typed))


def _letters(path: str, typed: str) -> tuple[int, ...]:
    match = fuzzy_match(typed, path)
    return match.offsets if match is not None else ()


def _in_order(ranked: list[tuple[float, int, MenuItem]]) -> tuple[MenuItem, ...]:
    return tuple(item for _, _, item in sorted(ranked, key=lambda entry: entry[:2]))


Items: TypeAlias = tuple[MenuItem, ...]
Answer: TypeAlias = Items | Callable[[], AsyncGenerator[Items, None]]
"""The items, or what yields them repeatedly as more become known."""
_MOST_ENTRIES = 20_000


def _always_sees() -> str:
    return ""


async def _no_news() -> bool:
    return False


def _no_skills() -> Sequence[Skill]:
    return ()


async def no_resources(_typed: str) -> Mapping[str, str]:
    """The resources if there are no MCP servers."""
    return {}


@dataclass(frozen=True, slots=True)
class PromptSources:
    """The sources of completions and the history, attached to the prompt once they exist.

    Attributes:
        completions: The arguments of a command by name; slow ones are awaited.
        resources: What of MCP servers a mention may be, with what it is.
        look_for_commands: Updates the registry; true if that changed it.
        find_skills: The skills that a message can name. Blocking.
        image_refusal: Why the present model accepts no images; empty if it does.
    """

    registry: CommandRegistry
    completions: Callable[[str], Completions | Awaitable[Completions]]
    files: FileIndex
    history: PromptHistory
    image_refusal: Callable[[], str] = _always_sees
    resources: Callable[[str], Awaitable[Mapping[str, str]]] = no_resources
    look_for_commands: Callable[[], Awaitable[bool]] = _no_news
    find_skills: Callable[[], Sequence[Skill]] = _no_skills


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
    """Asks the sources; arguments and skills are requested once for each word."""

    def __init__(self, sources: PromptSources) -> None:
        self._sources = sources
        self._name = ""
        self._offer: Completions | None = None
        self._asking: asyncio.Future[Completions] | None = None
        self._skills: asyncio.Future[Sequence[Skill]] | None = None

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
            case SkillQuery():
                return partial(self._named_skills, query)
            case _:
                assert_never(query)

    def names(self, query: NameQuery) -> Items:
        """The commands that match now."""
        return command_items(self._sources.registry.commands, query.typed)

    def forget(self) -> None:
        """Forget the possible arguments, so that the next argument asks again."""
        self._name, self._offer, self._skills = "", None, None
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

    async def _named_skills(self, query: SkillQuery) -> AsyncGenerator[Items, None]:
        if self._skills is None:
            self._skills = asyncio.ensure_future(asyncio.to_thread(self._sources.find_skills))
        taken = self._sources.registry.own_names if query.mark == "/" else frozenset[str]()
        skills = await asyncio.shield(self._skills)
        yield skill_items([one for one in skills if one.name not in taken], query)

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
