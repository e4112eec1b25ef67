"""A conversation as messages, replies and actions, whatever program wrote it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from agent_tui.attachments import (
    AttachedFile,
    find_attached_files,
    split_pastes,
    without_attachments,
)
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Message,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.omissions import IMAGE_MARK, SENTENCE_END, one_line, shorten_middle
from agent_tui.sessions.actions import Action, Output
from agent_tui.sessions.entries import Entry, MessageEntry
from agent_tui.sessions.outputs import read_outputs
from agent_tui.sessions.replay.stopped import STOPPED_MARK, find_stopped


@dataclass(frozen=True, slots=True)
class Said:
    """What the user wrote; each of its images is a line.

    Words about a call have the call before them: ``refused edit of a.py: never touch a.py``.
    `question` is what a short message answers: the numbered proposals that it names, or else the
    question at the end of the reply before it; empty if it answers none.
    `typed` are the typed parts of a message with pastes; empty without pastes.
    `is_stopped`: the user stopped the turn and did not continue it.
    """

    entry_id: str
    text: str
    question: str = ""
    typed: tuple[str, ...] = ()
    is_stopped: bool = False

    @property
    def told(self) -> str:
        """The text with the question it answers, and a mark if its turn was stopped."""
        return with_question(self.text, self.question) + self.mark

    @property
    def mark(self) -> str:
        """What follows the text if its turn was stopped; else empty."""
        return f" {STOPPED_MARK}" if self.is_stopped else ""

    @property
    def recorded(self) -> str:
        """The same as a ledger keeps it, at most `MAX_RECORDED_CHARS` long."""
        return as_recorded(self.told, self.typed)

    @property
    def forms(self) -> tuple[str, ...]:
        """How a ledger may have it, also one that was written before its turn was stopped."""
        before = as_recorded(with_question(self.text, self.question), self.typed)
        return (self.text, before, self.recorded)

    @property
    def about(self) -> str:
        """The file of the call that it is about; empty if it is about none."""
        label = _ABOUT_FILE.match(self.text)
        return self.text[label.end() :].partition(": ")[0] if label else ""

    @property
    def own_words(self) -> str:
        """The text without pastes."""
        return "\n\n".join(self.typed) or self.text


@dataclass(frozen=True, slots=True)
class Replied:
    """The text of one reply, which may be empty."""

    entry_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Done:
    """An action and its output. `entry_id` is that of the output.

    `changed` are the files seen to change meanwhile.
    """

    entry_id: str
    output: Output
    changed: tuple[str, ...] = ()


HistoryEvent: TypeAlias = Said | Replied | Done
EntryT = TypeVar("EntryT", bound=Entry)

MAX_RECORDED_CHARS = 40_000

_FILLERS: Final = frozenset(
    {
        *("ok", "okay", "k", "yes", "y", "yep", "yeah", "sure", "right", "thanks", "thank you"),
        *("thx", "please", "great", "good", "nice", "perfect", "cool", "go on", "go ahead", "go"),
        *("continue", "proceed", "next", "keep going", "carry on", "ja", "gut", "danke"),
        *("weiter", "mach weiter", "bitte"),
    }
)
"""Messages that say nothing unless they answer a question: "ok, go on" has two of them."""

_ABOUT_FILE = re.compile(r"(?:refused|said about) \S+ of ")
_FILLER_CHARS, _ANNOUNCEMENT_CHARS = 60, 200
_BETWEEN_FILLERS = re.compile(r"[\s,.!;:)]*[,.!;:)]+[\s,.!;:)]*")
_FENCED = re.compile(r"^[ \t]*```[^\n`]*\n.*?^[ \t]*```[^\n`]*$", re.MULTILINE | re.DOTALL)
_BLANKS = re.compile(r"\n[ \t]*\n\s*\n")
_QUESTION_CHARS = 200
_BEFORE_QUESTION = re.compile(r"[\s\S]*?(?:\n\s*|[.!?:;](?<!\d\.)[\"')\]*`]*\s+)")
"""A cut sentence and its end."""

_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,2}[.)])\s")
_ANSWER_WORDS = 8
_CHOICE_WORDS, _PROPOSAL_CHARS = 40, 200
_NUMBERED = re.compile(
    r"^[ \t#*>-]*(\d{1,2})[.)][ \t]+(.+?)(?=^[ \t#*>-]*\d{1,2}[.)][ \t]|^\s*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
"""An item of a numbered list or a numbered heading, up to the next one or an empty line."""

_NUMBER = re.compile(r"(?<![\w.,:/#-])\d{1,2}(?![\w%/]|[.,:]\d)")


def is_filler(text: str) -> bool:
    """Whether `text` is made of fillers alone, in any case and with any punctuation."""
    if len(text) > _FILLER_CHARS:
        return False
    parts = _BETWEEN_FILLERS.split(" ".join(text.casefold().split()))
    return all(part in _FILLERS for part in parts if part)


def announces_only(text: str) -> bool:
    """Whether a reply's `text` only says what comes next: ``Now the tests:``."""
    plain = text.strip()
    return plain.endswith(":") and "\n" not in plain and len(plain) <= _ANNOUNCEMENT_CHARS


def as_recorded(told: str, typed: Sequence[str] = ()) -> str:
    """What the user said as a ledger keeps it; around its `typed` parts, pastes are cut first."""
    if len(told) > MAX_RECORDED_CHARS and typed:
        parts = tuple(split_pastes(told, typed))
        sizes = [len(part) for part, is_pasted in parts if is_pasted]
        room = max(MAX_RECORDED_CHARS - len(told) + sum(sizes), 0)
        told = "".join(
            shorten_middle(part, room // len(sizes)) if is_pasted else part
            for part, is_pasted in parts
        )
    return shorten_middle(told, MAX_RECORDED_CHARS)


def without_code(text: str) -> str:
    """`text` without its fenced code blocks and the gaps that they leave."""
    return _BLANKS.sub("\n\n", _FENCED.sub("", text))


def with_question(text: str, question: str) -> str:
    """`text` with the `question` that it answers, which may be empty."""
    return f"{text} [in answer to: {question}]" if question else text


def with_short_paths(said: str, folders: Sequence[str]) -> str:
    """`said`, about a call on a file, with the path relative to the working folder."""
    if label := _ABOUT_FILE.match(said):
        for folder in folders:
            if said.startswith(f"{folder}/", label.end()):
                return f"{label[0]}{said[label.end() + len(folder) + 1 :]}"
    return said


def read_history(path: Sequence[Entry]) -> tuple[HistoryEvent, ...]:
    """The events of `path` in order, without those hidden from the model."""
    messages = (entry for entry in path if isinstance(entry, MessageEntry))
    entries = _results_after_their_calls(e for e in messages if not _is_hidden(e.message))
    stopped = find_stopped(path)
    outputs = read_outputs([entry.message for entry in entries])
    events: list[HistoryEvent] = []
    for entry, output in zip(entries, outputs, strict=True):
        if output is not None:
            events.append(Done(entry.id, output, _files_of_changes(entry.message)))
            events += [Said(entry.id, text) for text in output.said]
        elif isinstance(entry.message, UserMessage):
            written = without_attachments(entry.message.text).strip()
            if text := "\n".join((written, *(IMAGE_MARK for _ in entry.message.images))).strip():
                named = " ".join(_proposals_named(text, _proposals_before(events)))
                question = named or ("" if _asks(text) else _question_before(text, events))
                typed, is_stopped = entry.message.typed or (), entry.id in stopped
                events.append(Said(entry.id, text, question, typed, is_stopped))
            events += [
                Done(entry.id, _read(file)) for file in find_attached_files(entry.message.text)
            ]
        elif isinstance(entry.message, AssistantMessage):
            events.append(Replied(entry.id, entry.message.text.strip()))
    return tuple(events)


def steps_in(path: Sequence[Entry]) -> list[Done]:
    """The actions on `path`."""
    return [event for event in read_history(path) if isinstance(event, Done)]


def split_after(path: Sequence[EntryT], id: str) -> tuple[Sequence[EntryT], Sequence[EntryT]]:
    """`path` up to the entry with that `id`, and the rest; all of it and nothing without one."""
    at = next((at for at, entry in enumerate(path, 1) if entry.id == id), len(path))
    return path[:at], path[at:]


def _asks(text: str) -> bool:
    """Whether `text` begins with a question, so that it answers none."""
    return SENTENCE_END.split(text, maxsplit=1)[0].rstrip().endswith("?")


def _question_before(answer: str, events: Sequence[HistoryEvent]) -> str:
    """The question at the end of the reply before a short `answer`, on one line; may be empty.

    A list before it is not part of it: an answer that names items of a list gets those.
    """
    before = events[-1] if events else None
    if not isinstance(before, Replied) or len(answer.split()) > _ANSWER_WORDS:
        return ""
    text = without_code(before.text).strip()
    if "?" not in text[-_QUESTION_CHARS:]:
        return ""
    asked = "\n".join(_last_question(text.split("\n")))
    end = asked[-_QUESTION_CHARS:]
    if len(end) < len(asked) and (cut := _BEFORE_QUESTION.match(end)):
        end = end[cut.end() :] or f"…{end}"
    return " ".join(end.split())


def _last_question(lines: Sequence[str]) -> Sequence[str]:
    """The `lines` from the paragraph of the last question on, without a list that asks nothing."""
    first = max(at for at, line in enumerate(lines) if "?" in line)
    while first and lines[first - 1].strip() and not _is_plain_item(lines[first - 1]):
        first -= 1
    return lines[first:]


def _is_plain_item(line: str) -> bool:
    return _ITEM.match(line) is not None and "?" not in line


def _proposals_before(events: Sequence[HistoryEvent]) -> dict[str, str]:
    """The numbered items of the reply that a message answers, by number; none unless several.

    Of several lists, it is the one that its last question is about.
    """
    before = events[-1] if events else None
    text = before.text if isinstance(before, Replied) else ""
    lists: list[list[re.Match[str]]] = []
    for item in _NUMBERED.finditer(text):
        if not lists or int(item[1]) <= int(lists[-1][-1][1]):
            lists.append([])
        lists[-1].append(item)
    several = [items for items in lists if len(items) > 1]
    nearest = _list_asked_about(text, several) if several else []
    return {item[1]: item[2] for item in nearest}


def _list_asked_about(text: str, lists: Sequence[list[re.Match[str]]]) -> list[re.Match[str]]:
    """The list right behind the last question in `text`, else the last one before it."""
    asked = text.rfind("?") + 1 or len(text)
    before = [items for items in lists if items[0].start() < asked]
    behind = [items for items in lists if items[0].start() >= asked]
    if behind and (not before or not text[asked : behind[0][0].start()].strip(" \n*:")):
        return behind[0]
    return before[-1]


def _proposals_named(answer: str, offered: Mapping[str, str]) -> Iterator[str]:
    """The `offered` items whose numbers a short `answer` has, each cut to one line."""
    if len(answer.split()) <= _CHOICE_WORDS:
        for number in dict.fromkeys(_NUMBER.findall(answer)):
            if number in offered:
                yield f"{number}. {one_line(offered[number], _PROPOSAL_CHARS)}"


def _read(file: AttachedFile) -> Output:
    """An attached file as the output of a read at that time."""
    part = {} if file.is_whole else {"offset": file.first}
    action = Action("read", "read", file.path, arguments={"path": file.path, **part})
    return Output(action, file.text, has_failed=False)


def _results_after_their_calls(entries: Iterable[MessageEntry]) -> list[MessageEntry]:
    """`entries` with each result after the reply that made its call, as the model sees them."""
    groups: list[list[MessageEntry]] = []
    by_call: dict[str, list[MessageEntry]] = {}
    for entry in entries:
        message = entry.message
        if isinstance(message, ToolResultMessage) and message.tool_call_id in by_call:
            by_call[message.tool_call_id].append(entry)
            continue
        group = [entry]
        groups.append(group)
        if isinstance(message, AssistantMessage):
            by_call.update((call.id, group) for call in message.tool_calls)
    return [entry for group in groups for entry in group]


def _files_of_changes(message: Message) -> tuple[str, ...]:
    match message:
        case ToolResultMessage():
            files = message.tool_details.files
        case BashExecutionMessage():
            files = message.files
        case _:
            files = None
    return (*files.written, *files.edited) if files is not None else ()


def _is_hidden(message: Message) -> bool:
    return isinstance(message, BashExecutionMessage) and message.exclude_from_context
