"""The lines of a session file as values. `Entry` is the closed set of their types."""

import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import Field, JsonValue, ValidationError

from agent_tui.messages import (
    ImageContent,
    Job,
    Message,
    Stored,
    StoredPath,
    TextContent,
    ThinkingContent,
    ThinkingLevel,
    ToolCall,
    Usage,
    UserContent,
    text_in,
)

FORMAT_VERSION = 3

StoredT = TypeVar("StoredT", bound=Stored)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def timestamp_now() -> str:
    """The present time as ISO 8601 in UTC with milliseconds, as pi writes it."""
    return _iso(datetime.now(UTC))


def timestamp_after(times_ms: Iterable[int]) -> str:
    """The present time, or a millisecond after the newest of `times_ms` if that is later.

    Entries copied into a session, or kept by a compaction, are recognized by their earlier time.
    """
    newest_ms = max(times_ms, default=0)
    try:
        return max(timestamp_now(), _iso(_EPOCH + (newest_ms + 1) * _MILLISECOND))
    except OverflowError:
        return timestamp_now()


def timestamp_behind(timestamps: Iterable[str]) -> str:
    """A millisecond after the newest of `timestamps`; empty if none can be parsed."""
    newest_ms = max(map(milliseconds, timestamps), default=0)
    try:
        return _iso(_EPOCH + (newest_ms + 1) * _MILLISECOND) if newest_ms > 0 else ""
    except OverflowError:
        return ""


def milliseconds(timestamp: str) -> int:
    """An ISO 8601 timestamp as milliseconds since 1970; 0 if it cannot be parsed."""
    try:
        return (datetime.fromisoformat(timestamp).astimezone(UTC) - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        return 0


def sound_timestamp(timestamp: str) -> str:
    """`timestamp` as we write it; the present time if it cannot be parsed."""
    written_ms = milliseconds(timestamp)
    return _iso(_EPOCH + written_ms * _MILLISECOND) if written_ms > 0 else timestamp_now()


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_THINKING_LEVELS: dict[str, ThinkingLevel] = {
    "auto": "auto",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}


def as_thinking_level(text: str) -> ThinkingLevel:
    """The level nearest to `text`, which another program may have written; ``off`` if unknown."""
    return _THINKING_LEVELS.get(text, "off")


def new_entry_id(taken: "frozenset[str] | set[str] | dict[str, object]") -> str:
    """Eight random hex digits that are not in `taken`."""
    while (candidate := uuid.uuid4().hex[:8]) in taken:
        pass
    return candidate


class TaskText(Stored):
    """The text of a task in a tracker, a plan or a document, as an output showed it."""

    item: str
    text: str
    entry_id: str = ""


class WorkState(Stored):
    """The state of the work: steps and items by state, commits, test results and running jobs.

    ``commits`` and ``branches`` (by folder; empty for the working folder) are as of the log.
    ``jobs`` are the running background commands by id. ``is_before_commit``: something was
    committed since a step or an item was last said to be in progress.
    """

    is_before_commit: bool = False
    plan: dict[str, str] = Field(default_factory=dict)
    items: dict[str, str] = Field(default_factory=dict)
    titles: dict[str, str] = Field(default_factory=dict)
    commits: dict[str, str] = Field(default_factory=dict)
    tests: dict[str, str] = Field(default_factory=dict)
    branches: dict[StoredPath, str] = Field(default_factory=dict)
    jobs: dict[str, Job] = Field(default_factory=dict[str, Job])


class Failure(Stored):
    """A call that failed or was refused, and what followed.

    ``label`` is the command or the tool with its path, ``lines`` are those of its error. ``times``
    counts the same failure in a row. ``said`` is the model's next reply. ``steps`` is what was done
    until the same call passed, or failed in another way. ``since`` are files it names that changed
    later, ``later`` is a clause on another command whose success shows the end,
    or on what settled it.
    """

    label: str
    lines: tuple[str, ...]
    entry_id: str = ""
    times: int = 1
    ending: Literal["open", "passed", "failed", "settled", "warned", "declined", "refused"] = "open"
    """``failed``: later, in another way; ``settled``: though it did not run again; ``warned``: it
    passed, but warned; ``declined``: by the user; ``refused``: by the program."""
    said: str = ""
    steps: tuple[str, ...] = ()
    since: tuple[StoredPath, ...] = ()
    later: str = ""


class RepositoryState(Stored):
    """A git repository as git described it when a compaction was made.

    ``root`` is its top folder. ``branch`` is empty without one, ``head`` before the first commit.
    ``ahead`` and ``behind`` count commits against ``upstream`` as last fetched. ``changed`` counts
    the files that differ from HEAD; ``uncommitted`` names the first of them, relative to ``root``.
    ``commits`` are hash and subject of those reachable from HEAD and not from ``since``, HEAD when
    the session began (empty: no commit yet; None: unknown), oldest first.
    """

    root: StoredPath
    branch: str = ""
    head: str = ""
    upstream: str = ""
    ahead: int = 0
    behind: int = 0
    uncommitted: tuple[StoredPath, ...] = ()
    changed: int = 0
    since: str | None = None
    commits: dict[str, str] = Field(default_factory=dict)


class KnownLines(Stored):
    """Consecutive lines of a file; ``first`` is 0 if their numbers are unknown."""

    first: int = 0
    text: str = ""


class KnownFile(Stored):
    """What the log knows of the current state of a file."""

    path: StoredPath
    runs: tuple[KnownLines, ...] = ()
    is_whole: bool = False
    is_changed: bool = False
    reads: int = 0
    edits: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    is_committed: bool = False
    """Whether git has it as it is."""
    seen_before: str = ""
    """The first commit since it was last seen or changed."""


class Handover(Stored):
    """What one session passes to the next beside the facts of the ledger, oldest first.

    ``through`` is the last entry of the parent that it covers; ``way`` ends before the first
    entry that was kept.
    """

    through: str = ""
    said: dict[str, str] = Field(default_factory=dict)
    """Entry ids of the user's messages in the ledger, by a digest of their text."""
    typed: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """The typed parts of those that hold pastes, by the same digest."""
    tasks: tuple[TaskText, ...] = ()
    state: WorkState = Field(default_factory=WorkState)
    failures: tuple[Failure, ...] = ()
    files: tuple[KnownFile, ...] = ()
    way: tuple[str, ...] = ()


class Ledger(Stored):
    """Facts taken from the log by code; every list newest first and bounded."""

    user_messages: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    read_files: tuple[StoredPath, ...] = ()
    modified_files: tuple[StoredPath, ...] = ()
    errors: tuple[str, ...] = ()
    open_todos: tuple[str, ...] = ()


class Requests(Stored):
    """The total usage of some requests; ``model`` is empty for summaries.

    ``purpose`` is what they were for, in a word or two; empty for replies and helpers.
    """

    model: str
    requests: int
    usage: Usage
    purpose: str = ""


class Carryover(Stored):
    """The only state that crosses sessions; on disk, the header's ``compaction`` state."""

    summary: str = Field(default="", alias="lastSummary")
    read_files: tuple[StoredPath, ...] = ()
    modified_files: tuple[StoredPath, ...] = ()
    ledger: Ledger | None = None
    handover: Handover | None = None
    spent: tuple[Requests, ...] = ()
    """What the conversation took before, by model: the sessions of ``/compact`` are one."""

    window: int = 0
    """The context window in tokens, if it was given for this session; 0 for that of its model."""


class PulledFrom(Stored):
    """Where a pulled session came from.

    ``by`` is the name that whoever pushed its beginning gave; nothing proves it. ``remote`` is the
    address of the git remote, without a login.
    """

    by: str = ""
    remote: str = ""

    @property
    def name(self) -> str:
        """Who pushed it, without an email address, or else the remote; never empty."""
        return self.by.partition("<")[0].strip() or self.remote or "a remote"


class Header(Stored):
    """Line 1 of a session file."""

    type: Literal["session"] = "session"
    version: int = FORMAT_VERSION
    id: str = Field(default_factory=lambda: str(uuid.uuid4()))
    timestamp: str = Field(default_factory=timestamp_now)
    cwd: StoredPath = ""
    provider: str = ""
    model_id: str = ""
    base_url: str | None = None
    """Address of the user's own server, for a model that is not asked at its usual one."""
    thinking_level: ThinkingLevel = "off"
    parent_session: StoredPath | None = None
    compaction: Carryover | None = None
    launch_cwd: StoredPath | None = None
    """The folder the program was started in, if it works in another (as the demo does)."""
    origin: str | None = None
    """The origin of the session, unless a user's conversation made it: ``print`` or ``tour``."""
    first_prompt: str | None = None
    """The user's first message, if it is in a session that this one was compacted from."""
    pulled_from: PulledFrom | None = None
    """Where it was pulled from, for a session that began in another clone of the project."""


class _Entry(Stored):
    id: str = ""
    """Empty until the log has placed the entry."""
    parent_id: str | None = None
    timestamp: str = Field(default_factory=timestamp_now)
    pulled_from: str | None = None
    """Who pushed it, as they stated it, for an entry that came from another clone."""


class MessageEntry(_Entry):
    """A message of the conversation."""

    type: Literal["message"] = "message"
    message: Message


class ModelChangeEntry(_Entry):
    """Replies from here on come from another model."""

    type: Literal["model_change"] = "model_change"
    provider: str = ""
    model_id: str = ""
    base_url: str | None = None


class ThinkingLevelChangeEntry(_Entry):
    """The thinking level from here on."""

    type: Literal["thinking_level_change"] = "thinking_level_change"
    thinking_level: str = "off"


class CompactionDetails(Stored):
    """Complete lists as of this compaction, earlier ones included, and how it was made."""

    read_files: tuple[StoredPath, ...] = ()
    modified_files: tuple[StoredPath, ...] = ()
    ledger: Ledger | None = None
    summarised_by: str = ""
    is_fallback: bool = False
    note: str = ""
    batch: str = ""
    """The batch of the edits of kept messages that were made with it, right before it."""
    repositories: tuple[RepositoryState, ...] = ()
    """What git said then; none if it was not asked or did not answer."""


class CompactionEntry(_Entry):
    """A summary that replaces everything before ``first_kept_entry_id``.

    In the session that ``/compact`` starts it is the first entry, and ``first_kept_entry_id``
    names the first of the copied messages after it (or itself if none was copied).
    """

    type: Literal["compaction"] = "compaction"
    summary: str
    first_kept_entry_id: str
    tokens_before: int = 0
    tokens_after: int = 0
    details: CompactionDetails = Field(default_factory=CompactionDetails)
    reason: str = "manual"
    focus: str | None = None
    usage: Usage | None = None


EditContent: TypeAlias = Annotated[
    TextContent | ImageContent | ThinkingContent | ToolCall, Field(discriminator="type")
]


class ContextEditEntry(_Entry):
    """Replaces (or, with null, omits) the content of an earlier message, for the model only.

    Parts that do not fit the role of the message are ignored; see `build_context`.
    """

    type: Literal["context_edit"] = "context_edit"
    target_id: str
    replacement: str | tuple[EditContent, ...] | None = None
    tier: int = 0
    batch: str = ""


class CustomEntry(_Entry):
    """State of a feature; never in the context."""

    type: Literal["custom"] = "custom"
    custom_type: str
    data: JsonValue = None


def custom_entry(kind: str, value: Stored) -> CustomEntry:
    """The entry of the custom type `kind` that records `value`."""
    return CustomEntry(custom_type=kind, data=value.model_dump(mode="json", by_alias=True))


def custom_value(entry: "Entry", kind: str, model: type[StoredT]) -> StoredT | None:
    """What an entry of the custom type `kind` records; None for any other entry or bad data."""
    if not isinstance(entry, CustomEntry) or entry.custom_type != kind:
        return None
    try:
        return model.model_validate(entry.data)
    except ValidationError:
        return None


class CustomMessageEntry(_Entry):
    """A message added by a feature; in the context as the user's, shown if ``display``."""

    type: Literal["custom_message"] = "custom_message"
    custom_type: str = ""
    content: str | tuple[UserContent, ...] = ""
    display: bool = True
    details: JsonValue = None

    @property
    def text(self) -> str:
        """All text of the message."""
        return text_in(self.content)


class BranchSummaryEntry(_Entry):
    """What happened on a branch that was left (pi writes these); in the context as text."""

    type: Literal["branch_summary"] = "branch_summary"
    from_id: str = ""
    summary: str = ""
    usage: Usage | None = None


class LabelEntry(_Entry):
    """A bookmark on another entry."""

    type: Literal["label"] = "label"
    target_id: str = ""
    label: str | None = None


class SessionInfoEntry(_Entry):
    """The session's name; the newest one counts."""

    type: Literal["session_info"] = "session_info"
    name: str | None = None


class UnknownEntry(_Entry):
    """An entry of an unknown kind; kept in the tree, not in the context."""

    type: str


KnownEntry: TypeAlias = Annotated[
    MessageEntry
    | ModelChangeEntry
    | ThinkingLevelChangeEntry
    | CompactionEntry
    | ContextEditEntry
    | CustomEntry
    | CustomMessageEntry
    | BranchSummaryEntry
    | LabelEntry
    | SessionInfoEntry,
    Field(discriminator="type"),
]
Entry: TypeAlias = KnownEntry | UnknownEntry


def leaf_of(entries: Sequence[Entry]) -> Entry | None:
    """The entry after which a session continues; None if it has none.

    That is the last one written here. A session that was only pulled continues at its end.

    Args:
        entries: All entries of the session, in the order of its file.
    """
    own = (entry for entry in reversed(entries) if entry.pulled_from is None)
    return next(own, None) or next(reversed(entries), None)
