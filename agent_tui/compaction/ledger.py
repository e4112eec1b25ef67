"""Facts taken from a session by code, so that no summary has to be trusted with them."""

import re
from collections.abc import Iterable, Sequence

from agent_tui.compaction.ledger_files import FileTracker, touched_files
from agent_tui.compaction.pinned import bounded_pins, pinned_sentences
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

MAX_USER_MESSAGE_CHARS = 1_500
MAX_USER_MESSAGES_CHARS = 24_000
MAX_ERRORS = 12
MAX_COMMANDS = 20
MAX_TODOS = 40
MAX_DECISIONS = 20

ERROR_MARK = " => "
"""Between the command and the error it gave, in one line of the ledger."""

_SHELLS = frozenset({"bash", "shell", "run", "execute", "terminal", "run_command"})
_ERROR_LINE = re.compile(
    r"\b(error|exception|failed|failure|fatal|panic|denied|not found|no such|cannot|could not)\b"
    r"|\w(?:Error|Exception)\b",
    re.IGNORECASE,
)
_NO_ERROR = re.compile(
    r"^\W*(?:operation |command |request |tool )?(?:was )?(?:aborted|cancell?ed"
    r"|interrupted|denied by|the person)",
    re.IGNORECASE,
)
_SAYS_NOTHING = re.compile(
    r"^\(?(?:no output|(?:command |process )?exited with (?:code|status) \d+)\)?$", re.IGNORECASE
)
_LONGEST_ERROR_LINE = 400
"""Longer lines are generated or minified text that happens to hold the word."""

_CONFIRMED = re.compile(
    r"^\W*(?:yes|yep|yeah|ok(?:ay)?|sure|agreed|go ahead|go with|do it|let['’]?s|sounds good"
    r"|perfect|correct|approved|option \w+)\b",
    re.IGNORECASE,
)

_CHOSE = re.compile(r"^\W*(?:yes|agreed|go with|let['’]?s|option \w+)\b|\bgo with\b", re.IGNORECASE)
_QUESTION = re.compile(r"(?:[^.!?\n]|[.!?](?=\S))+\?(?=\s|$)")
_LONGEST_CONSENT = 60
"""A longer message that begins with "ok" is a new request rather than an answer."""


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
        self._commands = _Recent(previous.commands)
        self._decisions = _Recent(previous.decisions)
        self._errors: dict[str, str] = {
            error_command(line): line for line in reversed(previous.errors)
        }
        self._open_todos = previous.open_todos
        self._calls: dict[str, ToolCall] = {}
        self._last_reply = ""

    def add_files(self, read: Iterable[str], modified: Iterable[str]) -> None:
        self._files.add_read(read)
        self._files.add_modified(modified)

    def add(self, message: Message) -> None:
        match message:
            case UserMessage():
                self._add_user(message.text)
            case AssistantMessage():
                self._calls.update((call.id, call) for call in message.tool_calls)
                self._last_reply = message.text or self._last_reply
            case ToolResultMessage():
                self._add_result(message, self._calls.get(message.tool_call_id))
            case BashExecutionMessage():
                failed = message.exit_code not in (None, 0) and not message.cancelled
                self._add_outcome("$ " + one_line(message.command, 200), message.output, failed)
                self._commands.put(one_line(message.command, 200))

    def _add_user(self, text: str) -> None:
        if not text.strip():
            return
        self._user_messages.put(shorten_middle(text.strip(), MAX_USER_MESSAGE_CHARS))
        for sentence in pinned_sentences(text):
            self._pinned.put(sentence)
        self._decisions.put(_decision(text, self._last_reply))

    def _add_result(self, result: ToolResultMessage, call: ToolCall | None) -> None:
        self._files.add(touched_files(result, call))
        details = result.tool_details
        if details.todos is not None and not result.is_error:
            self._open_todos = tuple(_todo_line(t) for t in details.todos if _is_open(t))
        subject = _subject(result.tool_name, call)
        if subject.startswith("$ "):
            self._commands.put(subject.removeprefix("$ "))
        failed = result.is_error or (
            details.exit_code not in (None, 0) and bool(_ERROR_LINE.search(result.text))
        )
        self._add_outcome(subject, result.text, failed)

    def _add_outcome(self, subject: str, output: str, failed: bool) -> None:
        """An error stays open until the same command succeeds."""
        message = _error_text(output) if failed else ""
        if failed and not message:
            return
        self._errors.pop(subject, None)
        if message:
            self._errors[subject] = f"{subject}{ERROR_MARK}{message}"

    @property
    def ledger(self) -> Ledger:
        files = self._files.operations
        return Ledger(
            user_messages=_within(self._user_messages.newest_first(), MAX_USER_MESSAGES_CHARS),
            pinned=bounded_pins(self._pinned.newest_first()),
            read_files=files.read,
            modified_files=files.modified,
            errors=tuple(reversed(self._errors.values()))[:MAX_ERRORS],
            commands=self._commands.newest_first()[:MAX_COMMANDS],
            open_todos=self._open_todos[:MAX_TODOS],
            decisions=self._decisions.newest_first()[:MAX_DECISIONS],
        )


def error_command(line: str) -> str:
    """The command part of one line of `Ledger.errors`."""
    return line.partition(ERROR_MARK)[0]


def _within(texts: Sequence[str], max_chars: int) -> tuple[str, ...]:
    taken: list[str] = []
    for text in texts:
        max_chars -= len(text)
        if max_chars < 0:
            break
        taken.append(text)
    return tuple(taken)


def _subject(tool_name: str, call: ToolCall | None) -> str:
    """What was tried, in one line: ``$ pytest -q`` or ``edit src/a.py``."""
    arguments = call.arguments if call is not None else {}
    command = arguments.get("command")
    if tool_name.lower() in _SHELLS and isinstance(command, str):
        return "$ " + one_line(command, 200)
    target = next((v for v in arguments.values() if isinstance(v, str) and v), "")
    return f"{tool_name} {one_line(target, 120)}".strip()


def _error_text(output: str) -> str:
    """The lines that say what went wrong: the last three that look like an error, or the end."""
    lines = [line.strip() for line in output[-20_000:].split("\n")]
    lines = [line for line in lines if line and not _SAYS_NOTHING.match(line)]
    if not lines or _NO_ERROR.match(lines[0]) or _NO_ERROR.match(lines[-1]):
        return ""
    short = [line for line in lines if len(line) <= _LONGEST_ERROR_LINE] or lines
    telling = [line for line in short if _ERROR_LINE.search(line)] or short[-1:]
    return one_line(" | ".join(dict.fromkeys(telling[-3:])), 300)


def _decision(text: str, last_reply: str) -> str:
    """What the person agreed to: their words, and the question they answer when it is short."""
    said = one_line(text, 200)
    if not _CONFIRMED.match(said) or said.endswith("?"):
        return ""
    if len(said) > _LONGEST_CONSENT:
        return said if _CHOSE.search(said) else ""
    questions = _QUESTION.findall(last_reply[-4_000:])
    return f"{said} (asked: {one_line(questions[-1], 200)})" if questions else ""


def _is_open(todo: Todo) -> bool:
    return todo.status != "completed"


def _todo_line(todo: Todo) -> str:
    return f"{one_line(todo.text, 200)}{' (in progress)' if todo.status == 'in_progress' else ''}"
