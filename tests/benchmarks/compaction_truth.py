"""What an agent had, and what it needed next: told from the log without the code under test."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from posixpath import normpath

from pydantic import JsonValue

from agent_tui.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)

PATH = re.compile(
    r"(?<![\w/.~@:-])(?:~|\.{1,2}|@?[\w.+@-]+)?(?:/[\w.+@-]+)+"
    r"|(?<![\w/.~@-])[\w-]+(?:\.[\w-]+)*\.(?:py|pyi|js|jsx|ts|tsx|mjs|json|jsonl|md|rst|txt|toml"
    r"|ya?ml|cfg|ini|sh|html|css|scss|go|rs|c|h|cc|cpp|hpp|java|kt|rb|php|sql|lock|csv|xml)\b"
)
_NUMBERED = re.compile(r"^\s*\d+(?:→|\t|\||:(?=\s))")
_OLD_TEXTS = frozenset({"old_string", "oldText", "old_str", "old"})
_NEW_TEXTS = frozenset(
    {"new_string", "newText", "new_str", "new", "content", "file_text", "description", "prompt"}
)
IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{3,}")

_STOP_WORDS = """
about above after again against also always because been before being below between both cannot
could does doing done down during each either else ever every false first from have having here
into itself just last less like make made many more most much must need never next none null
only onto other over please return same self should since some such than that their them then
there therefore these they this those through true under unless until upon used uses using very
want were what when where which while will with within without would your import class const
export async await function default print echo static public private void
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English words without content and keywords: no identifiers, though they look like some."""

_RULE = re.compile(
    r"\b(?:never|always|must|mustn't|don't|do not|only|prefer|avoid|make sure|ensure)\b", re.I
)
_NO_SENTENCE = re.compile(r"^\s*(?:[>$|{}<@#+]|```)|[{;|]\s*$|=>|^\s*\S+\s*$")
_QUESTION = re.compile(r"\?\s*$")
_TYPED_CHARS = 1_500
"""Longer messages are pasted texts, instructions of a harness or logs."""

_READ_TOOLS = frozenset({"read", "read_file", "view", "open", "cat"})
_CHANGE_TOOLS = frozenset(
    {"write", "write_file", "create", "create_file", "edit", "edit_file", "multiedit"}
    | {"notebookedit", "str_replace", "insert"}
)
_PATH_KEYS = ("path", "file_path", "filename", "notebook_path")
_REDIRECTED = re.compile(r"^\s*cat\s+(?:<<\s*-?\s*['\"]?\w+['\"]?\s*>|>)\s*([\w./-]+)", re.M)
_SED_IN_PLACE = re.compile(r"^\s*sed\s+-i\S*\s+(?:'[^'\n]*'|\"[^\"\n]*\")\s+([\w./-]+)\s*$", re.M)
_CAT = re.compile(r"^\s*(?:cat|nl -ba|sed -n '[^']*')\s+([\w./-]+)\s*(?:$|\|)", re.M)
_FAILED = re.compile(r"\s*(?:<tool_use_error>|error\b|your proposed edit has|invalid `)", re.I)


@dataclass(frozen=True)
class FileTruth:
    """Files that successful calls read and changed, as paths relative to the working folder."""

    read: frozenset[str]
    modified: frozenset[str]


@dataclass(frozen=True)
class Known:
    """What a text gives to whoever writes the next call from it: lines, neighbouring words, paths.

    Words alone never count, so that a list of names earns nothing.
    """

    lines: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    text: str

    def share_of(self, needs: "Needs") -> float:
        """The part of `needs` that it gives."""
        found = sum(line in self.lines for line in needs.lines)
        found += sum(pair in self.pairs for pair in needs.pairs)
        return (found + sum(path in self.text for path in needs.paths)) / needs.count

    def of(self, needs: "Needs") -> "Needs":
        """What of `needs` it gives."""
        return Needs(
            frozenset(line for line in needs.lines if line in self.lines),
            frozenset(pair for pair in needs.pairs if pair in self.pairs),
            frozenset(path for path in needs.paths if path in self.text),
        )


@dataclass(frozen=True)
class Needs:
    """What one call repeats: lines of the text it replaces, words of its command, paths."""

    lines: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    paths: frozenset[str]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.lines) + len(self.pairs) + len(self.paths)


def known_in(text: str) -> Known:
    """What `text` gives."""
    lines = text.split("\n")
    return Known(frozenset(_bare(line) for line in lines), frozenset(_pairs(text)), text)


def needs_of(call: ToolCall) -> Needs:
    """What `call` repeats of what may have been known before it."""
    lines: set[str] = set()
    pairs: set[tuple[str, str]] = set()
    paths: set[str] = set()
    for key, value in _fields(call.arguments):
        if key in _OLD_TEXTS:
            lines.update(bare for line in value.split("\n") if _is_telling(bare := _bare(line)))
        elif key not in _NEW_TEXTS:
            first = value.partition("<<")[0][:1_500]
            found = {path.strip("./") for path in PATH.findall(first)}
            paths.update("/".join(path.split("/")[-3:]) for path in found if len(path) > 5)
            pairs.update(_pairs(PATH.sub(" ", first)))
    return Needs(frozenset(lines), frozenset(pairs), frozenset(paths))


def next_calls(messages: Sequence[Message], cut: int, calls: int) -> tuple[ToolCall, ...] | None:
    """The next `calls` calls after the cut; None where fewer follow."""
    made = [c for m in messages[cut:] if isinstance(m, AssistantMessage) for c in m.tool_calls]
    return tuple(made[:calls]) if len(made) >= calls else None


def _fields(value: JsonValue, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _fields(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from _fields(item, key)


def _bare(line: str) -> str:
    """A line without its number and indentation."""
    return squeezed(_NUMBERED.sub("", line, count=1))


def _is_telling(line: str) -> bool:
    return sum(char.isalnum() for char in line) >= 4


@lru_cache(maxsize=20_000)
def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for line in text.split("\n"):
        words = [word.lower() for word in IDENTIFIER.findall(line[:2_000])]
        found += [(a, b) for a, b in pairwise(words) if a != b and not {a, b} & STOP_WORDS]
    return tuple(found)


def said(message: Message) -> str:
    """Everything a model reads of a message: its text, and the arguments of its calls."""
    if not isinstance(message, AssistantMessage):
        return message.text
    arguments = [text for call in message.tool_calls for text in strings(call.arguments)]
    return "\n".join((message.text, *arguments))


def file_truth(messages: Iterable[Message], cwd: str) -> FileTruth:
    """Files by the plainest reading of calls that did not fail."""
    calls: dict[str, ToolCall] = {}
    read: set[str] = set()
    modified: set[str] = set()
    for message in messages:
        if isinstance(message, AssistantMessage):
            calls.update((call.id, call) for call in message.tool_calls)
        elif isinstance(message, ToolResultMessage) and not message.is_error:
            call = calls.get(message.tool_call_id)
            if call is not None and not _FAILED.match(message.text):
                was_read, was_changed = _files(call)
                read.update(relative(path, cwd) for path in was_read)
                modified.update(relative(path, cwd) for path in was_changed)
    return FileTruth(frozenset(read - modified), frozenset(modified))


def _files(call: ToolCall) -> tuple[list[str], list[str]]:
    name = call.name.lower()
    command = call.arguments.get("command")
    if name in ("str_replace_editor", "str_replace_based_edit_tool"):
        name = str(command)
    path = next((str(p) for key in _PATH_KEYS if (p := call.arguments.get(key))), "")
    if name in _READ_TOOLS:
        return ([path] if path else []), []
    if name in _CHANGE_TOOLS:
        return [], ([path] if path else [])
    if name in ("bash", "execute_bash", "run") and isinstance(command, str):
        if re.match(r"\s*cd\s", command):
            return [], []  # what the paths are relative to is not plain
        return _CAT.findall(command), [
            *_REDIRECTED.findall(command),
            *_SED_IN_PLACE.findall(command),
        ]
    return [], []


def relative(path: str, cwd: str) -> str:
    """`path` in one form: relative to `cwd` where inside it."""
    clean = normpath(path.removeprefix("@"))
    return clean.removeprefix(normpath(cwd) + "/") if cwd else clean


def stated_rules(messages: Iterable[Message]) -> tuple[str, ...]:
    """Sentences with never, always, must ... in messages short enough to have been typed."""
    found: dict[str, None] = {}
    for message in messages:
        if not isinstance(message, UserMessage) or len(message.text) > _TYPED_CHARS:
            continue
        if "```" in message.text or re.search(r"<[a-z][\w-]*>", message.text):
            continue
        for line in message.text.split("\n"):
            for sentence in re.split(r"(?<=[.!?])\s+", line.strip().lstrip("-*0123456789. ")):
                if not _RULE.search(sentence) or _NO_SENTENCE.search(sentence):
                    continue
                if not _QUESTION.search(sentence) and 10 <= len(sentence) <= 400:
                    found[sentence] = None
    return tuple(found)


def user_lines(messages: Iterable[Message]) -> tuple[str, ...]:
    """Lines of a few words that the person wrote."""
    texts = (message.text for message in messages if isinstance(message, UserMessage))
    lines = (squeezed(line) for text in texts for line in text.split("\n"))
    return tuple(dict.fromkeys(line for line in lines if len(line) >= 12))


def open_errors(messages: Sequence[Message], newest: int = 5) -> tuple[str, ...]:
    """The telling line of each of the newest failed calls whose like has not succeeded since."""
    calls: dict[str, ToolCall] = {}
    failures: dict[str, str] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            calls.update((call.id, call) for call in message.tool_calls)
        elif isinstance(message, ToolResultMessage) and message.tool_call_id in calls:
            call = calls[message.tool_call_id]
            tried = f"{call.name} {next(strings(call.arguments), '')[:200]}"
            failures.pop(tried, None)
            lines = [line.strip() for line in message.text.split("\n")]
            telling = [
                line
                for line in lines
                if re.search(r"\w*(?:Error|Exception)\b: ?\S|^error\b|not found|No such", line)
                and len(line) < 300
            ]
            if message.is_error and telling:
                failures[tried] = squeezed(telling[-1])[:80]
    return tuple(failures.values())[-newest:]


def squeezed(text: str) -> str:
    """`text` with runs of white space as one space."""
    return " ".join(text.split())


def strings(value: JsonValue | JsonObject) -> Iterator[str]:
    """All texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
