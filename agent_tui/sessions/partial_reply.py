"""The reply that is being streamed, in a private file beside its session until it is stored."""

from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from threading import Lock

from agent_tui.atomic_files import replace_private_file
from agent_tui.errors import SessionError
from agent_tui.messages import AssistantMessage
from agent_tui.regular_files import read_regular_file
from agent_tui.sessions.entries import Entry, MessageEntry
from agent_tui.sessions.file.side_files import side_file
from agent_tui.sessions.format.codec import UnreadableRecordError, decode_record, encode_repaired
from agent_tui.sessions.log import SessionLog


class PartialReply:
    """The file of one reply. Blocking; any thread may use it.

    Args:
        session: The file of the session.
        newest_id: The id of the newest entry in that file before the reply.
    """

    def __init__(self, session: Path, newest_id: str) -> None:
        self._path = side_file(session, ".reply")
        self._newest_id = newest_id
        self._is_closed = False
        self._one_by_one = Lock()

    def write(self, message: AssistantMessage, parent_id: str | None) -> None:
        """Keep `message`, the reply so far, in place of what was kept before.

        Does nothing after `remove`, or if the file cannot be written.

        Args:
            message: The reply as an interruption would record it.
            parent_id: The entry that it follows.
        """
        line = encode_repaired(MessageEntry(parent_id=parent_id, message=message))[1]
        with self._one_by_one, suppress(OSError):
            if not self._is_closed:
                replace_private_file(self._path, self._newest_id.encode() + b"\n" + line)

    def remove(self) -> None:
        """Remove the file: the reply is stored, or there is none."""
        with self._one_by_one, suppress(OSError):
            self._is_closed = True
            self._path.unlink()


def store_partial_reply(log: SessionLog) -> None:
    """Append the reply that a killed program was streaming, unless `log` has it; once. Blocking.

    If it cannot be appended, the next opening tries again.

    Args:
        log: The session, just opened for writing.
    """
    if log.path is None:
        return
    path = side_file(log.path, ".reply")
    with suppress(OSError, SessionError):
        first, _, line = read_regular_file(path).partition(b"\n")
        newest_id, entry = first.decode("utf-8", "replace"), _decode(line)
        if entry is not None and _lacks(log, newest_id, entry):
            if log.entries[-1].id == newest_id:  # otherwise the path goes through what came later
                log.branch_to(entry.parent_id)
            log.append(MessageEntry(message=entry.message))
        path.unlink()


def _decode(line: bytes) -> MessageEntry | None:
    """The entry of the file; None for anything that `PartialReply` did not write."""
    try:
        entry = decode_record(line).value
    except UnreadableRecordError:
        return None
    return entry if isinstance(entry, MessageEntry) and _is_reply(entry) else None


def _lacks(log: SessionLog, newest_id: str, partial: MessageEntry) -> bool:
    """Whether no reply was stored after the entry `newest_id`, and the partial one has a place."""
    known = {entry.id for entry in log.entries}
    if newest_id not in known or partial.parent_id not in known:
        return False
    later = takewhile(lambda entry: entry.id != newest_id, reversed(log.entries))
    return not any(map(_is_reply, later))


def _is_reply(entry: Entry) -> bool:
    return isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage)
