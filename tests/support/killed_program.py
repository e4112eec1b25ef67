"""A program that writes sessions, says what it was told is written, and is killed doing it.

Run as ``python -m tests.support.killed_program``. It reads orders (one JSON object a line) and
answers each with a fork of itself, which starts within milliseconds. The fork works in the
order's folder until it is killed, from outside or by its own hand at the place the order says,
and prints a JSON line for each thing that is done; the program then prints ``{"dead": true}``.
"""

import json
import os
import random
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Literal

from agent_tui.sessions.entries import (
    Carryover,
    CompactionEntry,
    ContextEditEntry,
    Entry,
    Header,
    SessionInfoEntry,
)
from agent_tui.sessions.format.codec import encode_entry
from agent_tui.sessions.importers.import_session import import_session
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from tests.support.session_values import entry, reply, result, user

if TYPE_CHECKING:
    from _typeshed import TraceFunction

Doing = Literal["talk", "compact", "migrate", "rename", "delete", "import", "index", "anew"]
OLD_FILES = "old"
FOREIGN = "said to another agent"


@dataclass(frozen=True, slots=True)
class Order:
    """`line` and `write`: kill yourself at the n-th line of the sessions room, or in the middle
    of the n-th write to a file. 0: wait to be killed."""

    folder: str
    doing: Doing
    seed: int
    line: int = 0
    write: int = 0


def main() -> None:
    for order in sys.stdin:
        child = os.fork()
        if child == 0:
            _obey(Order(**json.loads(order)))
        _tell({"pid": child})
        _, status = os.waitpid(child, 0)
        _tell({"dead": os.WIFSIGNALED(status)})


def ask(order: Order) -> bytes:
    return json.dumps(asdict(order)).encode() + b"\n"


def old_file(version: int, lines: int, cwd: str = "/w") -> bytes:
    """A session of format version 1 or 2."""
    first = {"type": "session", "id": f"old-{version}", "timestamp": "t", "cwd": cwd}
    data = [first if version == 1 else {**first, "version": version}]
    for number in range(lines):
        message = {"role": "user", "content": f"old {number}", "timestamp": 1}
        item: dict[str, object] = {"type": "message", "timestamp": "t", "message": message}
        if version > 1:
            item |= {"id": f"{number + 1:08x}", "parentId": f"{number:08x}" if number else None}
        data.append(item)
    return b"".join(json.dumps(line).encode() + b"\n" for line in data)


def _obey(order: Order) -> None:
    if order.line:
        _die_at_line(order.line)
    if order.write:
        _die_in_write(order.write, random.Random(order.seed))
    chance = random.Random(order.seed)
    waits_for_disk = order.seed % 3 == 0  # the rest is quicker, and no kill empties its cache
    store = SessionStore(Path(order.folder), "entry" if waits_for_disk else "none")
    work = _WORK[order.doing]
    try:
        for number in count():
            work(store, chance, number)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the test must hear of it
        _tell({"failed": repr(error)})
    os._exit(1)


def _talk(store: SessionStore, chance: random.Random, number: int) -> None:
    with store.create(Header(cwd="/w", id=f"talk-{number}")) as log:
        _acknowledge(log, log.append(entry(user(f"prompt {number}"))))
        for turn in range(chance.randint(1, 6)):
            call = f"c{turn}"
            _acknowledge(log, log.append(entry(reply("Reading.", (call, "read")))))
            output = "x" * chance.choice((10, 1_000, 100_000))
            several = log.append_many([entry(result(call, output)), entry(reply("Done."))])
            _acknowledge(log, *several)
            edit = ContextEditEntry(target_id=several[0].id, batch=str(turn))
            _acknowledge(log, log.append(edit))


def _compact(store: SessionStore, chance: random.Random, number: int) -> None:
    parent = store.create(Header(cwd="/w", id=f"parent-{number}"))
    with parent:
        tail = parent.append_many([entry(user("a")), entry(reply("b" * chance.randint(1, 50_000)))])
        _acknowledge(parent, *tail)
        first = CompactionEntry(summary="S", first_kept_entry_id=tail[0].id)
        child = store.create_child(parent, [first, *tail], Carryover(lastSummary="S"))
    with child:
        _acknowledge(child, *child.entries)
        _acknowledge(child, child.append(entry(user("go on"))))


def _migrate(store: SessionStore, chance: random.Random, number: int) -> None:
    folder = store.root / OLD_FILES
    version = chance.randint(1, 2)
    path = folder / f"{number}_v{version}.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(old_file(version, chance.randint(1, 200)))
    with SessionLog.open(path) as log:
        _acknowledge(log, *log.entries)
        for _ in range(3):
            _acknowledge(log, log.append(entry(user("go on"))))


def _rename(store: SessionStore, chance: random.Random, number: int) -> None:
    del chance
    with store.create(Header(cwd="/w", id=f"named-{number}")) as log:
        _acknowledge(log, log.append(entry(user("x"))))
    assert log.path is not None
    for name in ("one", "two"):
        store.rename(log.path, name)
        _tell({"file": log.path.name, "name": name})


def _delete(store: SessionStore, chance: random.Random, number: int) -> None:
    with store.create(Header(cwd="/w", id=f"gone-{number}")) as log:
        count_of_entries = chance.randint(1, 3)
        _acknowledge(log, *log.append_many([entry(user("x"))] * count_of_entries))
        _acknowledge(log, log.append(SessionInfoEntry(name="n")))
    assert log.path is not None
    moved = store.delete(log.path)
    _tell({"file": log.path.name, "moved": str(moved)})


def _import(store: SessionStore, chance: random.Random, number: int) -> None:
    foreign = store.root / f"foreign-{number}"
    store.root.mkdir(parents=True, exist_ok=True)
    foreign.write_bytes(foreign_file(foreign.name, chance.randint(1, 100)))
    imported = import_session(store, foreign, cwd=Path("/w"), format_name="claude")
    with SessionLog.open(imported.path) as log:
        _acknowledge(log, *log.entries)
        _acknowledge(log, log.append(entry(user("go on"))))


def foreign_file(name: str, lines: int, cwd: str = "/w") -> bytes:
    """A session of another agent."""
    data = [
        {
            "type": "user",
            "uuid": f"u{line}",
            "parentUuid": f"u{line - 1}" if line else None,
            "sessionId": name,
            "cwd": cwd,
            "timestamp": "2026-01-01T00:00:00.000Z",
            "message": {"role": "user", "content": f"{FOREIGN} {line}"},
        }
        for line in range(lines)
    ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in data)


def _index(store: SessionStore, chance: random.Random, number: int) -> None:
    with store.create(Header(cwd="/w", id=f"indexed-{number}")) as log:
        _acknowledge(log, *log.append_many([entry(user("needle " * chance.randint(1, 5_000)))]))
        store.list()
        store.update_search()
        _acknowledge(log, log.append(SessionInfoEntry(name=f"named {number}")))
    store.update_search()


def _anew(store: SessionStore, chance: random.Random, number: int) -> None:
    """The file is taken away while it is in use; what was said before is promised again then."""
    with store.create(Header(cwd="/w", id=f"anew-{number}")) as log:
        log.append_many([entry(user("x" * chance.randint(1, 50_000)))] * chance.randint(1, 5))
        assert log.path is not None
        log.path.unlink()
        log.append(entry(user("written anew")))
        _acknowledge(log, *log.entries)


_WORK: dict[Doing, Callable[[SessionStore, random.Random, int], None]] = {
    "talk": _talk,
    "compact": _compact,
    "migrate": _migrate,
    "rename": _rename,
    "delete": _delete,
    "import": _import,
    "index": _index,
    "anew": _anew,
}


def _acknowledge(log: SessionLog, *entries: Entry) -> None:
    """Say that `entries` are written; what is read again from the file must be this."""
    assert log.path is not None
    lines = [_fingerprint(item) for item in entries]
    _tell({"file": log.path.name, "entries": lines})


def fingerprints(entries: Sequence[Entry]) -> list[list[object]]:
    return [_fingerprint(item) for item in entries]


def _fingerprint(item: Entry) -> list[object]:
    line = encode_entry(item)
    return [item.id, len(line), hash_of(line)]


def hash_of(data: bytes) -> str:
    import hashlib

    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _tell(fact: dict[str, object]) -> None:
    _real_write(1, json.dumps(fact).encode() + b"\n")


def _kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_at_line(wanted: int) -> None:
    remaining = wanted

    def trace(frame: FrameType, event: str, argument: object) -> "TraceFunction | None":
        nonlocal remaining
        del argument
        if "sessions" not in frame.f_code.co_filename:
            return None
        if event == "line":
            remaining -= 1
            if remaining == 0:
                _kill_self()
        return trace

    sys.settrace(trace)


def _die_in_write(wanted: int, chance: random.Random) -> None:
    remaining = wanted

    def write(descriptor: int, data: bytes) -> int:
        nonlocal remaining
        remaining -= 1
        if remaining == 0:
            _real_write(descriptor, data[: chance.randint(0, len(data))])
            _kill_self()
        return _real_write(descriptor, data)

    os.write = write


_real_write = os.write

if __name__ == "__main__":
    main()
