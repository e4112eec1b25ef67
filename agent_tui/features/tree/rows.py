"""The tree of a session's messages, as rows to choose from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.safe_text import printable_line
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
)
from agent_tui.sessions.lineage.entry_text import ShownEntry, entry_text
from agent_tui.sessions.lineage.joined import labels_of
from agent_tui.sessions.replay.changes import in_force
from agent_tui.sessions.replay.marks import Mark, read_marks
from agent_tui.text import markdown_words

TreeRowKind: TypeAlias = Literal[
    "person", "command", "reply", "result", "compaction", "branch summary", "note"
]

_FIRST_SHOWN: frozenset[TreeRowKind] = frozenset(
    {"person", "command", "compaction", "branch summary"}
)
"""Kinds that users go back to; replies and results are shown only with everything."""

_BRANCH, _FIRST_BRANCH, _BESIDE = "├─ ", "╭─ ", "│  "
_LAST_BRANCH, _BELOW_LAST = "└─ ", "   "
_SEARCHED_CHARS = 2_000
_TITLE_CHARS = 400
_LEAST_LIKENESS = 75


@dataclass(frozen=True, slots=True)
class TreeRow:
    """One message in the tree.

    Attributes:
        entry: The entry to go back to.
        guide: Lines drawn from the branch it left; empty on the main line.
        is_on_path: Whether it is on the present branch.
        is_here: Whether it is the newest such row.
        label: The user's bookmark, or empty.
        mark: The user's mark for the context; None without one.
    """

    entry: ShownEntry
    guide: str
    is_on_path: bool
    is_here: bool
    label: str
    mark: Mark | None = None

    @property
    def kind(self) -> TreeRowKind:
        """The role of the message, or what else the entry records."""
        return _kind_of(self.entry)

    @property
    def title(self) -> str:
        """The beginning of its text, or the meaning of a marker, on one line."""
        match self.entry:
            case CompactionEntry(tokens_before=0):
                return "context compacted"
            case CompactionEntry(tokens_before=before):
                return f"context compacted, {before:,} tokens before"
            case BranchSummaryEntry():
                return "summary of another branch"
            case _:
                text = entry_text(self.entry, _TITLE_CHARS)
                if self.kind == "reply":
                    text = markdown_words(text)
                return printable_line(text) or "(no text)"


class MessageTree:
    """The tree of `entries`; 100,000 of them take a fraction of a second.

    The present branch is at the left; other branches are indented below the message where they
    begin. If none of several is the present one, the longest is the main line, so that rows are
    never indented far.

    Args:
        entries: All entries of a session, parents before children.
        leaf_id: The conversation's leaf.
    """

    def __init__(self, entries: Sequence[Entry], leaf_id: str | None) -> None:
        self._labels = labels_of(entries)
        self._parents = {entry.id: entry.parent_id for entry in entries}
        self._shown = {entry.id: entry for entry in entries if isinstance(entry, ShownEntry)}
        self._path: set[str] = set()
        while leaf_id is not None:
            self._path.add(leaf_id)
            leaf_id = self._parents[leaf_id]
        path = [entry for entry in entries if entry.id in self._path]
        self._marks = read_marks(in_force(path)).by_id
        self._kinds = {entry.id: _kind_of(entry) for entry in self._shown.values()}
        self._searched: dict[str, str] = {}

    def rows(self, *, everything: bool = False, wanted: str = "") -> list[TreeRow]:
        """The tree from top to bottom.

        Args:
            everything: Whether to include replies, tool calls, their results, and notes.
            wanted: Only rows whose text or label has each of these words; if none has, the most
                similar.
        """
        visible = [
            entry
            for entry in self._shown.values()
            if everything or self._kinds[entry.id] in _FIRST_SHOWN or entry.id in self._labels
        ]
        if words := wanted.casefold().split():
            visible = self._find(visible, words)
        return self._lay_out(visible)

    def with_results(self, entry: ShownEntry) -> list[ShownEntry]:
        """`entry`, followed by the results of its calls if it is a reply."""
        if not isinstance(entry, MessageEntry) or not isinstance(entry.message, AssistantMessage):
            return [entry]
        calls = {call.id for call in entry.message.tool_calls}
        results = (
            found
            for found in (self._shown.values() if calls else ())
            if isinstance(found, MessageEntry)
            and isinstance(found.message, ToolResultMessage)
            and found.message.tool_call_id in calls
        )
        return [entry, *results]

    def answer_to(self, entry_id: str) -> str:
        """The text of the model's next message after an entry; empty if there is none."""
        waiting = {entry_id}
        for found in self._parents:  # children come after their parents
            if self._parents[found] not in waiting:
                continue
            match self._shown.get(found):
                case MessageEntry(message=AssistantMessage() as reply) if reply.text.strip():
                    return reply.text
                case MessageEntry(message=UserMessage()):
                    pass
                case _:
                    waiting.add(found)
        return ""

    def _find(self, entries: Sequence[ShownEntry], words: Sequence[str]) -> list[ShownEntry]:
        if not self._searched:
            self._searched = {
                entry.id: entry_text(entry, _SEARCHED_CHARS).casefold()
                for entry in self._shown.values()
            }
        labels = self._labels
        texts = [
            f"{labels[entry.id].casefold()}\n{self._searched[entry.id]}"
            if entry.id in labels
            else self._searched[entry.id]
            for entry in entries
        ]
        found = [
            entry
            for entry, text in zip(entries, texts, strict=True)
            if all(word in text for word in words)
        ]
        if found:
            return found
        from rapidfuzz import fuzz, process  # only if no row contains what was typed

        like = process.extract_iter(
            " ".join(words), texts, scorer=fuzz.partial_ratio, score_cutoff=_LEAST_LIKENESS
        )
        return [entries[index] for _, _, index in like]

    def _lay_out(self, visible: Sequence[ShownEntry]) -> list[TreeRow]:
        """Rows for `visible`, each below its nearest visible ancestor."""
        ids = {entry.id for entry in visible}
        children = self._visible_children(ids)
        sizes = _sizes(children)
        here = next((found for found in reversed(self._parents) if self._is_on(found, ids)), None)
        rows: list[TreeRow] = []
        waiting: list[tuple[str, str, str]] = []

        def push(siblings: Sequence[str], beside: str) -> None:
            """Push `siblings` so that the main line comes out last."""
            if len(siblings) < 2:
                waiting.extend((only, beside, beside) for only in siblings)
                return
            main = max(siblings, key=lambda one: (one in self._path, sizes.get(one, 0)))
            waiting.append((main, beside, beside))
            aside = [one for one in siblings if one != main]
            for one in reversed(aside):
                # Branches beside the first message are connected to the line below it.
                is_last = one is aside[-1] and bool(rows)
                guide, below = (_LAST_BRANCH, _BELOW_LAST) if is_last else (_BRANCH, _BESIDE)
                waiting.append((one, beside + guide, beside + below))

        push(children.get(None, ()), "")
        while waiting:
            entry_id, guide, beside = waiting.pop()
            if not rows and guide:
                guide = _FIRST_BRANCH
            label = self._labels.get(entry_id, "")
            is_on_path = entry_id in self._path
            entry = self._shown[entry_id]
            mark = self._marks.get(entry_id)
            rows.append(TreeRow(entry, guide, is_on_path, entry_id == here, label, mark))
            push(children.get(entry_id, ()), beside)
        return rows

    def _is_on(self, entry_id: str, visible: set[str]) -> bool:
        return entry_id in visible and entry_id in self._path

    def _visible_children(self, visible: set[str]) -> dict[str | None, list[str]]:
        """Visible children by visible parent; those without a visible ancestor are under None."""
        nearest: dict[str | None, str | None] = {None: None}
        children: dict[str | None, list[str]] = {}
        for entry_id, parent_id in self._parents.items():
            above = nearest[parent_id]
            if entry_id in visible:
                children.setdefault(above, []).append(entry_id)
                above = entry_id
            nearest[entry_id] = above
        return children


def _sizes(children: dict[str | None, list[str]]) -> dict[str | None, int]:
    """The number of visible entries below each parent in `children`."""
    sizes: dict[str | None, int] = {}
    for parent_id in reversed(children):  # parents come before their children
        sizes[parent_id] = sum(1 + sizes.get(child, 0) for child in children[parent_id])
    return sizes


def _kind_of(entry: ShownEntry) -> TreeRowKind:
    """The role of the message `entry`, or what else it records."""
    match entry:
        case MessageEntry(message=UserMessage()):
            return "person"
        case MessageEntry(message=AssistantMessage()):
            return "reply"
        case MessageEntry(message=ToolResultMessage()):
            return "result"
        case MessageEntry(message=BashExecutionMessage()):
            return "command"
        case CompactionEntry():
            return "compaction"
        case BranchSummaryEntry():
            return "branch summary"
        case CustomMessageEntry():
            return "note"
        case _:
            raise AssertionError(f"{type(entry.message).__name__} is no message")
