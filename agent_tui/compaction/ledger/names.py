"""Paths and identifiers a conversation dealt with, weighed by use and age: its index."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from pydantic import JsonValue

from agent_tui.compaction.ledger.files import told_files
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Message,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.entries import NamedIn

MAX_NAMES = 3_000
"""About what a session of 300,000 tokens names; 60 KB in a session file."""

HALF_LIFE_MESSAGES = 400
"""After so many messages an occurrence weighs half. Anything from 200 to 1,000 does as well."""

_IN_ARGUMENTS = 2.0
"""What the agent itself wrote into a call says more of what it will write next."""

_ELSEWHERE = 1.0

_COST_EXPONENT = 0.7
"""Between taking names by weight alone (0) and by weight for each character (1)."""

_MAX_TEXT_CHARS = 200_000
_MAX_NAME_CHARS = 160
_MAX_IDENTIFIER_CHARS = 60

_PATH = re.compile(
    r"(?<![\w/.~@:+-])(?:~|\.{1,2}|@?[\w.+@-]+)?(?:/[\w.+@-]+)+"
    r"|(?<![\w/.~@-])[\w-]+(?:\.[\w-]+)*\.(?:[cm]?[jt]sx?|pyi?|rs|go|rb|java|kt|cs?|cc|cpp|hh?|hpp"
    r"|php|swift|scala|sh|sql|html?|s?css|less|vue|svelte|jsonl?|ya?ml|toml|ini|cfg|lock|md|rst"
    r"|txt|csv|xml|svg|png|ipynb|proto|env)(?![\w(])"
)
_IDENTIFIER = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z_][A-Za-z0-9_]{3,}")
_GENERATED = re.compile(r"[0-9a-f]{7,}|(?=(?:.*?\d[A-Za-z]){4}).{17,}")
"""Hashes, ids and keys rather than names."""

_DEFINES = re.compile(
    r"\b(?:def|class|function|fn|func|interface|type|enum|struct|trait|const|let|var|module)"
    r"\s+([A-Za-z_]\w{3,})"
)

_WORDS = """
able about above after again against ahead also although always among another anything around
away based because been before being below best better between both came cannot case could
does doesn doing done down during each either else ever every everything exactly first found
from fully further gave given gives goes going gone good have haven having here however
instead into isn itself just know known last later least less like likely look looking looks
made make makes making many maybe more most much must need needed needs never next nothing
now only onto other otherwise ours over perhaps please possible probably quite rather really
right same seem seems shall should shouldn since some something still such sure take taken
takes than that their them then there therefore these they thing things this those though
through thus together under unless until upon used uses using very want wants wasn well went
were what when where whether which while whole whose will with within without would wouldn
years your yours
async await break class const continue default elif else enum except export extends false
finally function global implements import interface lambda none null pass private protected
public raise readonly return self static struct super switch throw true typeof undefined void
yield
"""
_STOP_WORDS = frozenset(_WORDS.split())
"""Words that are no names: common English, and the vocabulary of programming languages."""


def names_in(text: str) -> set[str]:
    """Paths, and identifiers of at least four characters, in `text`; of a huge text its ends.

    Common English words and words of programming languages are no names, nor are hashes.
    """
    if len(text) > _MAX_TEXT_CHARS:
        half = _MAX_TEXT_CHARS // 2
        text = f"{text[:half]}\n{text[-half:]}"
    found = {path.rstrip(".") for path in _PATH.findall(text) if len(path) <= _MAX_NAME_CHARS}
    found.update(_identifiers(text))
    return {name for name in found if len(name) > 3}


def _identifiers(text: str) -> Iterator[str]:
    for word in set(_IDENTIFIER.findall(text)):
        if len(word) > _MAX_IDENTIFIER_CHARS or word.lower() in _STOP_WORDS:
            continue
        if not _GENERATED.fullmatch(word) and word.strip("_"):
            yield word


def names_of(messages: Iterable[Message]) -> set[str]:
    """Names in what `messages` say, arguments of calls included."""
    found: set[str] = set()
    for message in messages:
        found |= names_in(message.text)
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls:
                found |= names_in(_argument_text(call))
    return found


class NameTracker:
    """Weighs names as a conversation goes on; newer occurrences weigh more.

    Args:
        previous: What earlier compactions handed on. It ages with every message added; what
            is seen again counts anew, not twice.
    """

    def __init__(self, previous: Sequence[NamedIn] = ()) -> None:
        self._growth = 2 ** (1 / HALF_LIFE_MESSAGES)
        self._now = 1.0
        self._weights: defaultdict[str, float] = defaultdict(float)
        self._carried: dict[str, float] = {}
        self._mentioned_in: dict[str, str] = {}
        self._defined_in: dict[str, str] = {}
        for group in previous:
            self._carried.update(group.names)
            if group.path:
                self._defined_in.update(dict.fromkeys(group.names, group.path))

    def add(self, message: Message, call: ToolCall | None = None) -> None:
        """Take in the next message; `call` is the one that a tool result answers."""
        self._now *= self._growth
        match message:
            case AssistantMessage():
                self._weigh(message.text, _ELSEWHERE)
                for made in message.tool_calls:
                    self._weigh(_argument_text(made), _IN_ARGUMENTS, _file_of(made))
            case ToolResultMessage():
                self._weigh(message.text, _ELSEWHERE, _file_of(call))
            case UserMessage() | BashExecutionMessage():
                self._weigh(message.text, _ELSEWHERE)

    @property
    def names(self) -> tuple[NamedIn, ...]:
        """The names that weigh most, by the file they belong to; files sorted."""
        weights = {
            name: max(self._weights.get(name, 0.0), self._carried.get(name, 0.0)) / self._now
            for name in (*self._carried, *self._weights)
        }
        groups: defaultdict[str, dict[str, float]] = defaultdict(dict)
        for name in sorted(weights, key=lambda name: _rank(name, weights[name]))[:MAX_NAMES]:
            home = self._defined_in.get(name) or self._mentioned_in.get(name, "")
            groups[home][name] = float(f"{weights[name]:.3g}")
        return tuple(NamedIn(path=path, names=groups[path]) for path in sorted(groups))

    def _weigh(self, text: str, each: float, home: str = "") -> None:
        for name in names_in(text):
            self._weights[name] += each * self._now
            if home and name != home:
                self._mentioned_in.setdefault(name, home)
        if home:
            for name in _DEFINES.findall(text[:_MAX_TEXT_CHARS]):
                self._defined_in[name] = home


def index_lines(groups: Sequence[NamedIn], *, max_chars: int, known: Set[str]) -> list[str]:
    """An index for the model: a line ``path: name name ...`` for each file, then the rest.

    Args:
        groups: Names with their weights, as `NameTracker.names` gives them.
        max_chars: Bound of all lines together; names that weigh little for their length go first.
        known: Identifiers that are in the context anyway.
    """
    homes = {name: group.path for group in groups for name in group.names}
    weights = {name: weight for group in groups for name, weight in group.names.items()}
    taken: dict[str, None] = {}
    said = set(known)
    room = max_chars - len(_REST)
    for name in sorted(weights, key=lambda name: _rank(name, weights[name])):
        if name not in said and len(name) + 2 <= room:
            taken[name] = None
            room -= len(name) + 2
            if not name.isidentifier():
                said.update(_IDENTIFIER.findall(name))
    left = [name for name in taken if not (name.isidentifier() and name in said)]
    return _grouped(left, homes)


_REST = "elsewhere: "


def _grouped(names: Sequence[str], homes: Mapping[str, str]) -> list[str]:
    taken = set(names)
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        home = homes[name]
        lines[home if home in taken else ""].append(name)
    heads = sorted(path for path in lines if path)
    rest = [name for name in lines[""] if name not in lines]
    grouped = [f"{path}: {' '.join(n for n in lines[path] if n not in lines)}" for path in heads]
    return [*(line.rstrip(": ") for line in grouped), *([_REST + " ".join(rest)] if rest else [])]


def _rank(name: str, weight: float) -> tuple[float, str]:
    return -weight / (len(name) + 1) ** _COST_EXPONENT, name


def _file_of(call: ToolCall | None) -> str:
    """The one file a call is about, as the model wrote it; or nothing."""
    told = told_files(call)
    files = dict.fromkeys((*told.written, *told.edited, *told.read))
    return next(iter(files)) if len(files) == 1 else ""


def _argument_text(call: ToolCall) -> str:
    return "\n".join(_strings(call.arguments))


def _strings(value: JsonValue) -> Iterator[str]:
    items: Iterable[JsonValue] = ()
    match value:
        case str():
            yield value
        case dict():
            items = value.values()
        case list():
            items = value
        case _:
            return
    for item in items:
        yield from _strings(item)
