"""The lines of a Claude Code session that make up its conversation, branch by branch."""

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from agent_tui.messages import JsonObject
from agent_tui.sessions.importers.builder import Warnings
from agent_tui.sessions.importers.claude_results import noted_facts
from agent_tui.sessions.importers.claude_words import claude_words
from agent_tui.sessions.importers.fields import as_list, as_object, joined_text, text_at

_SPOKEN = frozenset({"user", "assistant"})
_SILENT = frozenset(
    {
        "agent-name",
        "ai-title",
        "attachment",
        "custom-title",
        "file-history-snapshot",
        "last-prompt",
        "mode",
        "permission-mode",
        "pr-link",
        "progress",
        "queue-operation",
        "summary",
        "system",
        "tag",
        "worktree-state",
    }
)
"""Kinds of line that hold nothing the model saw, or are looked at one by one below."""

_BOUNDARY = "compact_boundary"
_QUEUED = "queued_command"
_MOST_BRANCHES = 50
"""Finding one more costs as much as the first; people make a handful."""


@dataclass(frozen=True, slots=True)
class ClaudeRecord:
    """One line that is part of the conversation; `data` is what it holds."""

    number: int
    uuid: str
    data: JsonObject

    @property
    def is_boundary(self) -> bool:
        """Whether Claude Code began its context anew here."""
        return self.data.get("subtype") == _BOUNDARY

    @property
    def is_reply(self) -> bool:
        """Whether it is one block of a reply."""
        return self.data.get("type") == "assistant"

    @property
    def message(self) -> JsonObject:
        """The message as the provider's interface has it."""
        return as_object(self.data.get("message"))

    @property
    def blocks(self) -> list[JsonObject]:
        """The content in parts; a plain text is one of them."""
        content = self.message.get("content")
        if isinstance(content, str):
            return [{"type": "text", "text": content}]
        return [block for block in as_list(content) if isinstance(block, dict)]

    @property
    def queued(self) -> JsonValue:
        """What the person typed while a turn ran, if that is what the line holds."""
        attachment = as_object(self.data.get("attachment"))
        return attachment.get("prompt") if attachment.get("type") == _QUEUED else None


@dataclass(slots=True)
class QueuedMessage:
    """One message in the queue.

    Args:
        number: Of the line that queued it, from 1.
        timestamp: When it was queued, as the line has it.
        text: What was typed, or what the program itself queued.
        is_said: Whether the file holds it as a message of its own, too.
    """

    number: int
    timestamp: str
    text: str
    is_said: bool = False


class ClaudeQueue:
    """The ``queue-operation`` lines of a file, followed in their order.

    ``enqueue`` has the text. ``dequeue`` and ``remove`` take out the oldest, which the model is
    given then: at the start of a turn as an ordinary line, within one without any. ``popAll``
    takes everything back into the prompt.
    """

    def __init__(self) -> None:
        self._waiting: list[QueuedMessage] = []
        self._given: list[QueuedMessage] = []

    def take(self, number: int, data: JsonObject) -> None:
        """One line; `number` is its place in the file, from 1."""
        text = joined_text(data.get("content"))
        match data.get("operation"):
            case "enqueue" if text.strip():
                self._waiting.append(QueuedMessage(number, text_at(data, "timestamp"), text))
            case "dequeue" | "remove" if self._waiting:
                named = (at for at, one in enumerate(self._waiting) if one.text == text)
                self._given.append(self._waiting.pop(next(named, 0)))
            case "popAll":
                self._waiting.clear()
            case _:
                pass

    def was_said(self, text: str) -> None:
        """`text` is in the file as a message: alone, or with others a line each."""
        for message in (*self._given, *self._waiting):
            if f"\n{message.text.strip()}\n" in f"\n{text.strip()}\n":
                message.is_said = True

    def given(self) -> list[QueuedMessage]:
        """What the model was given since the last call of this and stands nowhere else."""
        given, self._given = self._given, []
        return [message for message in given if not message.is_said]

    def never_given(self) -> list[QueuedMessage]:
        """What is still to be answered at the end of the file."""
        return [message for message in (*self._given, *self._waiting) if not message.is_said]


class ClaudeTree:
    """The lines of a file, linked by ``uuid`` and ``parentUuid``.

    A reply comes as one line for each of its blocks, and the results of calls made together
    hang below different ones of them. So a conversation is the way from its newest line up to
    the root, and beside it the other blocks of its replies and the results of its calls.
    """

    def __init__(self, numbered: Iterable[tuple[int, JsonValue]], warnings: Warnings) -> None:
        self._warnings = warnings
        self._title = ""
        self._summaries: dict[str, str] = {}
        self._lines: list[ClaudeRecord] = []
        self._parents: dict[str, str] = {}
        self._before: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._newest = ""
        self._subagent_lines = 0
        self._queue = ClaudeQueue()
        self._reply_ids: set[str] = set()
        self._previous = ""
        for number, data in numbered:
            self._take(number, data)
        for message in self._queue.never_given():
            if claude_words(message.text).said:
                self._link_queued(message, self._newest)

    @property
    def title(self) -> str:
        """The session's name, else the newest summary of it; empty where it has neither.

        Files of older versions also hold the summaries of other sessions.
        """
        own = [text for leaf, text in self._summaries.items() if not leaf or leaf in self._parents]
        return self._title or next(reversed(own), "")

    def branches(self) -> list[list[ClaudeRecord]]:
        """Each branch from its root to its newest line, in file order; the present one is last.

        They share the lines before the place where they part.
        """
        present = self._branch_to(self._newest) if self._newest else set[str]()
        left = {line.uuid for line in self._lines} - present
        chosen = [present]
        for line in reversed(self._lines):
            if line.uuid in left and len(chosen) < _MOST_BRANCHES:
                chosen.append(self._branch_to(line.uuid))
                left -= chosen[-1]
        self._tell_of_the_rest(left)
        return [[line for line in self._lines if line.uuid in uuids] for uuids in reversed(chosen)]

    def _branch_to(self, leaf: str) -> set[str]:
        """The lines of the conversation that `leaf` is the end of."""
        on_path = self._ancestors(leaf)
        reply_ids = {reply_id(line) for line in self._lines if line.uuid in on_path} - {""}
        chosen = {
            line.uuid
            for line in self._lines
            if line.uuid in on_path or (line.is_reply and reply_id(line) in reply_ids)
        }
        calls = set(_ids(self._lines, chosen, "tool_use", "id"))
        calls -= set(_ids(self._lines, chosen, "tool_result", "tool_use_id"))
        for line in self._lines:
            answered = {text_at(block, "tool_use_id") for block in line.blocks} & calls
            if line.uuid not in chosen and answered:
                chosen.add(line.uuid)
                calls -= answered
        return chosen

    def _take(self, number: int, data: JsonValue) -> None:
        """Keep the line if it is part of the tree."""
        if not isinstance(data, dict):
            self._warnings.add(f"line {number}: not a JSON object; left out")
            return
        kind = text_at(data, "type")
        self._take_title(kind, data)
        if kind not in _SPOKEN and kind not in _SILENT:
            self._warnings.add(f"line {number}: unknown kind {kind[:40]!r}; left out")
        if data.get("isSidechain") is True:
            self._subagent_lines += kind in _SPOKEN
            return
        if kind == "queue-operation":
            self._queue.take(number, data)
        uuid = text_at(data, "uuid")
        if not uuid and kind in _SPOKEN:
            uuid = f"line {number}"
            data.setdefault("parentUuid", self._newest or None)
        if uuid:
            line = ClaudeRecord(number, uuid, data)
            self._take_queued(line)
            self._link(line, kind)

    def _take_queued(self, line: ClaudeRecord) -> None:
        """Put what was queued, and given to the model, between a new reply and what is above it.

        A queued message that is in the file as an ordinary one, too, is that one.
        """
        if not line.is_reply:
            said = line.queued if line.queued is not None else line.message.get("content")
            text = joined_text(said)
            self._queue.was_said(claude_words(text).command or text)
        elif reply_id(line) not in self._reply_ids:
            self._reply_ids.add(reply_id(line))
            for message in self._queue.given():
                above = text_at(line.data, "parentUuid", "logicalParentUuid")
                line.data["parentUuid"] = self._link_queued(message, above)

    def _link_queued(self, message: QueuedMessage, parent: str) -> str:
        """Put a queued message below `parent` into the tree; returns its uuid."""
        uuid = f"line {message.number}"
        said: JsonObject = {
            "type": "user",
            "uuid": uuid,
            "parentUuid": parent or None,
            "timestamp": message.timestamp,
            "message": {"role": "user", "content": message.text},
        }
        self._link(ClaudeRecord(message.number, uuid, said), "user")
        return uuid

    def _take_title(self, kind: str, data: JsonObject) -> None:
        if kind == "summary":
            self._summaries[text_at(data, "leafUuid")] = text_at(data, "summary")
        elif kind in ("custom-title", "ai-title"):
            self._title = text_at(data, "customTitle", "aiTitle") or self._title

    def _link(self, line: ClaudeRecord, kind: str) -> None:
        """Put a line into the tree, unless its uuid is there already."""
        number, uuid, data = line.number, line.uuid, line.data
        if uuid in self._parents:
            self._warnings.add(f"line {number}: repeats {uuid}; left out")
            return
        self._parents[uuid] = text_at(data, "parentUuid", "logicalParentUuid")
        self._numbers[uuid] = number
        if "toolUseResult" in data:
            data["toolUseResult"] = noted_facts(data["toolUseResult"])
        if kind in _SPOKEN or line.is_boundary or line.queued is not None:
            self._lines.append(line)
        if kind in _SPOKEN:
            self._newest = uuid
        self._before[uuid] = self._previous
        self._previous = uuid

    def _ancestors(self, leaf: str) -> set[str]:
        """`leaf` and everything above it."""
        seen: set[str] = set()
        present = leaf
        while present and present not in seen:
            seen.add(present)
            parent = self._parents[present]
            if parent and parent not in self._parents:
                parent = self._parents[present] = self._substitute(present, parent)
            present = parent
        return seen

    def _substitute(self, uuid: str, missing: str) -> str:
        before = self._before[uuid]
        where = f"linked to line {self._numbers[before]}" if before else "made the first"
        self._warnings.add(f"line {self._numbers[uuid]}: parent {missing} is missing; {where}")
        return before

    def _tell_of_the_rest(self, left: set[str]) -> None:
        if left:
            first = min(self._numbers[uuid] for uuid in left)
            self._warnings.add(
                f"line {first}: more than {_MOST_BRANCHES} branches; {len(left):,} lines from "
                "here on are left out"
            )
        if self._subagent_lines:
            self._warnings.add(f"{self._subagent_lines:,} subagent lines were left out")


def reply_id(line: ClaudeRecord) -> str:
    """The reply that `line` is a block of; empty for other lines."""
    return (text_at(line.message, "id") or line.uuid) if line.is_reply else ""


def _ids(lines: Iterable[ClaudeRecord], chosen: set[str], kind: str, key: str) -> Iterable[str]:
    for line in lines:
        if line.uuid in chosen:
            yield from (text_at(b, key) for b in line.blocks if b.get("type") == kind)
