"""Facts taken from a session by code, so that no summary has to be trusted with them."""

from collections.abc import Iterable, Sequence

from agent_tui.attachments import without_attachments
from agent_tui.compaction.ledger.call_facts import (
    call_label,
    error_text,
    looks_like_error,
)
from agent_tui.compaction.ledger.files import (
    FileTracker,
    removed_files,
    touched_by_person,
    touched_files,
)
from agent_tui.compaction.ledger.pinned import bounded_pins, pinned_sentences
from agent_tui.compaction.ledger.shell_files import shell_changes
from agent_tui.compaction.plan import newest_compaction
from agent_tui.compaction.shorten import one_line, shorten_middle
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Message,
    Todo,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.entries import Carryover, CompactionEntry, Entry, Ledger, MessageEntry

MAX_USER_MESSAGE_CHARS = 40_000
MAX_USER_MESSAGES_CHARS = 200_000
MAX_ERRORS = 12
MAX_TODOS = 40

ERROR_MARK = " => "
"""Between the command and the error it gave, in one line of the ledger."""


def build_ledger(
    entries: Iterable[Entry], *, folders: Sequence[str], previous: Ledger | None
) -> Ledger:
    """The ledger as of the last of `entries`, everything that `previous` knew included.

    Args:
        entries: Entries in the order they happened; they may overlap with what `previous`
            was made from.
        folders: Names of the working folder (as given, and with links followed).
        previous: The ledger carried over, or None.
    """
    collector = _Collector(folders, previous or Ledger())
    for entry in entries:
        if isinstance(entry, MessageEntry):
            collector.add(entry.message)
        elif isinstance(entry, CompactionEntry):
            collector.add_files(entry.details.read_files, entry.details.modified_files)
    return collector.ledger


def known_so_far(path: Sequence[Entry], carryover: Carryover | None) -> Ledger | None:
    """What earlier compactions handed on: the newest one on `path`, else the session's header.

    File lists outside the ledger (other programs write only those) are taken in.
    """
    newest = newest_compaction(path)
    details = newest.details if newest is not None else carryover
    if details is None:
        return None
    ledger = details.ledger or Ledger()
    return ledger.model_copy(
        update={
            "read_files": tuple(dict.fromkeys((*ledger.read_files, *details.read_files))),
            "modified_files": tuple(
                dict.fromkeys((*ledger.modified_files, *details.modified_files))
            ),
        }
    )


def unrecorded_entries(path: Sequence[Entry]) -> Sequence[Entry]:
    """What of `path` the newest compaction's ledger may not know: all from its first kept entry.

    A ledger can be older than the compaction that carries it, when that was prepared ahead of
    time, but never older than the first entry it kept. Without one it is all of `path`.
    """
    newest = newest_compaction(path)
    if newest is None or newest.details.ledger is None:
        return path
    ids = [entry.id for entry in path]
    at = ids.index(newest.id)
    first = newest.first_kept_entry_id
    return path[ids.index(first) if first in ids[:at] else at :]


class _Recent:
    """Distinct texts, the one seen last on top."""

    def __init__(self, newest_first: Sequence[str] = ()) -> None:
        self._texts = dict.fromkeys(reversed(newest_first))

    def put(self, text: str) -> None:
        if text:
            self._texts.pop(text, None)
            self._texts[text] = None

    def drop(self, text: str) -> None:
        self._texts.pop(text, None)

    def newest_first(self) -> tuple[str, ...]:
        return tuple(reversed(self._texts))


class _Collector:
    """Walks a conversation forward; later facts replace or close earlier ones."""

    def __init__(self, folders: Sequence[str], previous: Ledger) -> None:
        self._files = FileTracker(folders)
        self.add_files(previous.read_files[::-1], previous.modified_files[::-1])
        self._user_messages = _Recent(previous.user_messages)
        self._pinned = _Recent(previous.pinned)
        self._errors: dict[str, str] = {
            error_command(line): line for line in reversed(previous.errors)
        }
        self._open_todos = previous.open_todos
        self._calls: dict[str, ToolCall] = {}

    def add_files(self, read: Iterable[str], modified: Iterable[str]) -> None:
        self._files.add_read(read)
        self._files.add_modified(modified)

    def add(self, message: Message) -> None:
        if isinstance(message, BashExecutionMessage) and message.exclude_from_context:
            return  # the model is not to know of it
        match message:
            case UserMessage():
                self._add_user(message.text)
            case AssistantMessage():
                self._calls.update((call.id, call) for call in message.tool_calls)
            case ToolResultMessage():
                self._add_result(message, self._calls.get(message.tool_call_id))
            case BashExecutionMessage():
                self._files.add(touched_by_person(message))
                failed = message.exit_code not in (None, 0) and not message.cancelled
                if not failed:
                    self._files.remove(shell_changes(message.command).removed)
                self._add_outcome("$ " + one_line(message.command, 200), message.output, failed)

    def _add_user(self, message: str) -> None:
        text = without_attachments(message)
        if not text.strip():
            return
        self._user_messages.put(shorten_middle(text.strip(), MAX_USER_MESSAGE_CHARS))
        for sentence in pinned_sentences(text):
            self._pinned.put(sentence)

    def _add_result(self, result: ToolResultMessage, call: ToolCall | None) -> None:
        self._files.add(touched_files(result, call))
        self._files.remove(removed_files(result, call))
        details = result.tool_details
        if details.todos is not None and not result.is_error:
            self._open_todos = tuple(_todo_line(t) for t in details.todos if _is_open(t))
        label = call_label(result.tool_name, call)
        failed = result.is_error or (
            details.exit_code not in (None, 0) and looks_like_error(result.text)
        )
        self._add_outcome(label, result.text, failed)

    def _add_outcome(self, label: str, output: str, failed: bool) -> None:
        """An error stays open until the same command succeeds."""
        message = error_text(output) if failed else ""
        if failed and not message:
            return
        self._errors.pop(label, None)
        if message:
            self._errors[label] = f"{label}{ERROR_MARK}{message}"

    @property
    def ledger(self) -> Ledger:
        files = self._files.operations
        return Ledger(
            user_messages=_within(self._user_messages.newest_first(), MAX_USER_MESSAGES_CHARS),
            pinned=bounded_pins(self._pinned.newest_first()),
            read_files=files.read,
            modified_files=files.modified,
            errors=tuple(reversed(self._errors.values()))[:MAX_ERRORS],
            open_todos=self._open_todos[:MAX_TODOS],
        )


def error_command(line: str) -> str:
    """The command part of one line of `Ledger.errors`."""
    return line.partition(ERROR_MARK)[0]


def _within(newest_first: Sequence[str], max_chars: int) -> tuple[str, ...]:
    """The newest texts that fit, and the oldest in any case: it says what all of it is about."""
    if not newest_first:
        return ()
    *later, first = newest_first
    max_chars -= len(first)
    taken: list[str] = []
    for text in later:
        max_chars -= len(text)
        if max_chars < 0:
            break
        taken.append(text)
    return (*taken, first)


def _is_open(todo: Todo) -> bool:
    return todo.status != "completed"


def _todo_line(todo: Todo) -> str:
    return f"{one_line(todo.text, 200)}{' (in progress)' if todo.status == 'in_progress' else ''}"
