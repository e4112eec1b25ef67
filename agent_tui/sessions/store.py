"""All sessions of a user: create, find by id or name, list, and move to the trash."""

import difflib
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

from agent_tui.atomic_files import replace_private_file
from agent_tui.config import Durability
from agent_tui.errors import SessionError
from agent_tui.messages import UserMessage
from agent_tui.paths import cwd_slug, make_private_dir
from agent_tui.regular_files import kind_of_file, open_regular_file, read_regular_file
from agent_tui.safe_paths import is_file
from agent_tui.safe_text import printable_line
from agent_tui.sessions.context import newest_base_url, newest_model, newest_thinking_level
from agent_tui.sessions.entries import (
    Carryover,
    Entry,
    Header,
    MessageEntry,
    SessionInfoEntry,
    as_thinking_level,
    milliseconds,
)
from agent_tui.sessions.file.disk import DiskFile, describe_fault, write_new_file
from agent_tui.sessions.file.kept_files import folder_of
from agent_tui.sessions.file.side_files import move_side_files
from agent_tui.sessions.file.writer import RunningSession, SessionLock, running_session
from agent_tui.sessions.format.codec import encode_header, encode_repaired
from agent_tui.sessions.format.parse import id_in_name
from agent_tui.sessions.importers.builder import ImportFormat
from agent_tui.sessions.importers.formats import FORMATS
from agent_tui.sessions.listing import (
    SessionFile,
    SessionIndex,
    SessionSummary,
    prompt_line,
    read_summary,
    session_files,
)
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.search.session_search import SessionSearch
from agent_tui.sessions.search.word_index import SearchHit
from agent_tui.text import is_same_path

_PAGE_SIZE = 100
_GLANCED_FILES = 50
TRASH = "trash"
"""The folder of deleted sessions, in that of all sessions."""

_LEFT = ".left"
"""In a project's folder: a file with the path of the session that the user left last."""
EXPLORED = "explored"
"""The folder of the sessions of helpers, in that of their project's; below it one for each
session they worked for."""

_NEAR_MATCHES = 5


class SessionStore:
    """Session files below one folder: ``<root>/<cwd slug>/<timestamp>_<id>.jsonl``.

    Nothing is created on disk before the first session is written.

    Args:
        root: The folder.
        durability: When a file is synced to the disk.
        formats: The formats of other agents' sessions that can be read and imported.
    """

    def __init__(
        self,
        root: Path,
        durability: Durability = "entry",
        formats: Sequence[ImportFormat] = FORMATS,
    ) -> None:
        self.root = root
        self.formats = tuple(formats)
        self._durability: Durability = durability
        self._search = SessionSearch(root / "search.sqlite")

    def create(self, header: Header) -> SessionLog:
        """Create a session; its file is created by the first append."""
        return SessionLog.create(self._path_for(header), header, self._durability)

    def create_explored(self, header: Header, parent_id: str) -> SessionLog:
        """Create the session of a helper of `parent_id`; lists of sessions leave it out."""
        path = self._path_for(header)
        file = path.parent / EXPLORED / parent_id / path.name
        return SessionLog.create(file, header, self._durability)

    def files_of_helpers(self, cwd: Path) -> Iterator[Path]:
        """The files of the sessions of helpers that worked in `cwd`."""
        return (self.root / cwd_slug(cwd) / EXPLORED).glob("*/[!.]*.jsonl")

    def write_copy(self, header: Header, entries: Sequence[Entry]) -> Path:
        """Write a session whose entries have their ids and parents; returns its new file.

        The file appears complete or not at all, with the time of its newest entry.

        Raises:
            SessionError: The file exists already, or could not be written and does not exist.
        """
        path = self._path_for(header)
        if os.path.lexists(path):
            raise SessionError(f"{path} exists already and stays as it is.", "Rename that file.")
        lines = [encode_header(header), *(encode_repaired(entry)[1] for entry in entries)]
        try:
            is_durable = self._durability != "none"
            write_new_file(path, b"".join(lines), DiskFile, sync=is_durable)
        except OSError as error:
            raise describe_fault(path, "written", error) from error
        date_session(path, entries)
        return path

    def create_child(
        self,
        parent: SessionLog,
        first_entries: Sequence[Entry],
        carryover: Carryover | None,
        *,
        cwd: Path | None = None,
    ) -> SessionLog:
        """Create the session that follows `parent` after ``/compact``, written all at once.

        It takes the parent's last name, model and thinking level; its folder is `cwd` or the
        parent's. The child of a session in memory is in memory too.

        Raises:
            SessionError: The file could not be written and does not exist.
        """
        before = parent.header
        path = parent.path_entries()
        provider, model_id = newest_model(path)
        if not model_id:
            provider, model_id = before.provider, before.model_id
        level = as_thinking_level(newest_thinking_level(path) or before.thinking_level)
        header = Header(
            cwd=str(cwd) if cwd else before.cwd,
            provider=provider,
            model_id=model_id,
            base_url=newest_base_url(path, before) or None,
            thinking_level=level,
            parent_session=str(parent.path) if parent.path else before.id,
            compaction=carryover,
            launch_cwd=before.launch_cwd,
            origin=before.origin,
            first_prompt=before.first_prompt or _first_prompt(path),
        )
        name = (SessionInfoEntry(name=parent.name),) if parent.name else ()
        file = self._path_for(header) if parent.path else None
        return SessionLog.write(file, header, (*first_entries, *name), self._durability)

    def open(self, ref: str, cwd: Path, *, read_only: bool = False) -> SessionLog:
        """Open the session that `ref` names: a file, an id, a name, or the beginning of one id.

        Args:
            ref: Paths are relative to `cwd`. Of several sessions with one name, the newest counts;
                one that was pulled only if no other is meant.
            cwd: The folder the user is in.
            read_only: Take no lock; appending is refused.

        Raises:
            SessionInUseError: Another process writes it.
            SessionNotWritableError: It may not be written.
            SessionError: There is none, or several; the text names the nearest ones.
        """
        return SessionLog.open(self.find(ref, cwd), self._durability, read_only=read_only)

    def find(self, ref: str, cwd: Path) -> Path:
        """The file of the session that `ref` names; see `open`."""
        file = _existing_file(ref, cwd) or self._place_of_another(ref, cwd)
        if file is not None:
            return file
        if os.sep in ref or ref.endswith(".jsonl"):
            if kind := _kind_at(ref, cwd):
                raise SessionError(f"{cwd / ref} is a {kind}, not a session file.")
            raise SessionError(f"The file {cwd / ref} does not exist.")
        sessions = self.list()
        own = [found for found in sessions if not found.pulled_from]
        for matches in (
            [found for found in own if found.id == ref],
            [found for found in own if found.name and found.name == ref],
        ):
            if matches:
                return matches[0].path
        begun = [found for found in sessions if ref and _may_name(ref, found)]
        if len(begun) == 1:
            return begun[0].path
        if whole := [found for found in begun if found.id == ref and _all_pulled(begun)]:
            return whole[0].path
        if begun:
            raise SessionError(
                f'"{ref}" matches {len(begun)} sessions: {_name_sessions(begun)}.',
                "Give more of the id.",
            )
        if (helper := self._helper_named(ref)) is not None:
            return helper
        near = _near(ref, sessions)
        hint = f"Similar: {_name_sessions(near)}." if near else "{sessions}"
        raise SessionError(f'There is no session "{ref}".', hint)

    def _place_of_another(self, ref: str, cwd: Path) -> Path | None:
        """The session of another agent that `ref` names in a file with several of them."""
        path = _named_path(ref, cwd) if os.sep in ref else None
        is_place = path is not None and any(known.is_place(path) for known in self.formats)
        return path if is_place else None

    def _helper_named(self, start: str) -> Path | None:
        """The session of the only helper whose id begins with `start`."""
        files = self.root.glob(f"*/{EXPLORED}/*/[!.]*.jsonl")
        named = [path for path in files if id_in_name(path).startswith(start)]
        return named[0] if start and len(named) == 1 else None

    def list(self, cwd: Path | None = None, elsewhere: Sequence[Path] = ()) -> list[SessionSummary]:
        """All sessions, newest first; with `cwd` those that work or were started there.

        Args:
            cwd: The folder; None for all.
            elsewhere: Other folders of the same project: sessions in and below them count, too.
        """
        sessions = [found for page in self.pages() for found in page]
        if cwd is not None:
            slug = cwd_slug(cwd)
            sessions = [
                found
                for found in sessions
                if any(is_same_path(str(one), str(cwd)) for one in (found.cwd, found.launch_cwd))
                or (found.cwd == Path() and found.path.parent.name == slug)
                or any(found.cwd.is_relative_to(folder) for folder in elsewhere)
            ]
        return sorted(sessions, key=lambda found: (found.modified, found.id), reverse=True)

    def locked(self) -> Sequence[Path]:
        """The files of the sessions that have a lock, held or left by a killed program."""
        if not self.root.is_dir():
            return ()
        return tuple(lock.with_suffix("") for lock in self.root.glob("*/*.jsonl.lock"))

    def running(self) -> dict[Path, RunningSession]:
        """The sessions that programs on this machine have open now, by file. Blocking."""
        held = ((file, running_session(file)) for file in self.locked())
        return {file: found for file, found in held if found is not None}

    def unreadable(
        self, listed: Iterable[SessionSummary], cwd: Path | None = None
    ) -> tuple[str, ...]:
        """Session files that cannot be read: the name of each, and why.

        One that another program made after `listed` is read now.

        Args:
            listed: The results of `list` or `pages` for all folders.
            cwd: Only those in this working folder's own folder. Blocking.
        """
        known = {found.path for found in listed}
        slug = cwd_slug(cwd) if cwd is not None else ""
        return tuple(
            f"{path.name}: {_why_unreadable(path)}"
            for path in sorted(self._files() if self.root.is_dir() else ())
            if path not in known and slug in ("", path.parent.name) and read_summary(path) is None
        )

    def newest_of_project(self, cwd: Path) -> Sequence[SessionSummary]:
        """Some of the newest sessions that work in `cwd`. Blocking; mostly from the cache."""
        with closing(self.pages(first=cwd, page_size=_GLANCED_FILES)) as pages:
            return [one for one in next(pages, ()) if is_same_path(str(one.cwd), str(cwd))]

    def pages(
        self, first: Path | None = None, page_size: int = _PAGE_SIZE
    ) -> Generator[Sequence[SessionSummary]]:
        """All sessions in pages, newest first, so that a screen can show the first at once.

        Without the cache, all files are read completely, which takes seconds for gigabytes. Close
        the generator to stop early; the cache keeps what was read. Blocking.

        Args:
            first: The sessions in this working folder's own folder come before all others.
            page_size: Number of files read per page.
        """
        files = list(self.files())
        if first is not None:
            slug = cwd_slug(first)
            files.sort(key=lambda file: file.path.parent.name != slug)
        with closing(SessionIndex(self.root / "index.sqlite").summaries(files)) as summaries:
            while page := tuple(islice(summaries, page_size)):
                yield tuple(found for found in page if found is not None)

    def files(self) -> Sequence[SessionFile]:
        """All session files, those that were last written first; nothing is read. Blocking."""
        return session_files(self._files()) if self.root.is_dir() else ()

    def summaries(
        self, files: Sequence[SessionFile]
    ) -> Generator[tuple[SessionFile, SessionSummary | None]]:
        """Yield each of some `files` with its summary; None for a file that is no session.

        Close the generator to stop early, as for `pages`. Blocking.
        """
        index = SessionIndex(self.root / "index.sqlite")
        with closing(index.summaries(files, is_all=False)) as found:
            yield from zip(files, found, strict=False)

    def search(self, query: str, limit: int = 100) -> Sequence[SearchHit]:
        """Sessions in which all words of `query` occur, the best first. Blocking; never raises.

        Names, prompts, replies, thinking, tool arguments and outputs are searched, ignoring case
        and accents. The words of ``"a phrase"`` must be adjacent; the last word may be incomplete.
        Sessions that `update_search` has not reached are not found.
        """
        return self._search.search(query, limit)

    def search_project(self, query: str, cwd: Path, limit: int) -> tuple[Sequence[SearchHit], int]:
        """Like `search`, for the sessions that work in `cwd`, indexed or not.

        Returns the hits and how many sessions could not be looked at in the time allowed.
        """
        return self._search.search_among(query, session_files(self.project_files(cwd)), limit)

    def project_files(self, cwd: Path) -> Iterator[Path]:
        """The files of the sessions that work in `cwd`, in no particular order."""
        return (self.root / cwd_slug(cwd)).glob("[!.]*.jsonl")

    def update_search(
        self,
        progress: Callable[[int, int], None] | None = None,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> int:
        """Update the search index, newest sessions first; returns how many are left.

        Some are left if it was cancelled, the disk is full or another process is updating. It takes
        about a minute per new gigabyte. Blocking: call it in a thread.

        Args:
            progress: Called now and then with the number of sessions done and in total.
            is_cancelled: Called several times a second; finished work is kept.
        """
        return self._search.update(self.files(), progress, is_cancelled)

    def count_unsearched(self) -> int:
        """The number of sessions whose present version `search` does not cover."""
        return self._search.pending(self.files())

    def newest(self, cwd: Path) -> SessionSummary | None:
        """The most recently written session in `cwd`, without those that were pulled."""
        return next((found for found in self.list(cwd) if not found.pulled_from), None)

    def find_left_last(self, cwd: Path) -> Path | None:
        """The session that the user left last in `cwd`.

        That is the one of `note_left`, unless another session of the user's was written since.
        """
        own = (found for found in self.list(cwd) if not found.pulled_from)
        made = (found.path for found in own if not found.origin)
        newest, note = next(made, None), self._path_of_left(cwd)
        try:
            left, left_at = Path(os.fsdecode(read_regular_file(note))), note.stat().st_mtime_ns
            is_last = newest is None or newest.stat().st_mtime_ns <= left_at
        except OSError:
            return newest
        return left if is_last and left.is_file() else newest

    def note_left(self, path: Path, cwd: Path) -> None:
        """Record that the user leaves the session at `path`, if it has a file, in `cwd`.

        The time of the session file does not change.
        """
        if path.is_file():
            with suppress(OSError):
                replace_private_file(self._path_of_left(cwd), os.fsencode(path.absolute()))

    def _path_of_left(self, cwd: Path) -> Path:
        return self.root / cwd_slug(cwd) / _LEFT

    def rename(self, path: Path, name: str) -> None:
        """Rename the session at `path`, which no process may have open.

        The name becomes one line without control characters. The file's time stays that of the last
        message, so that renaming does not make a session the newest.

        Raises:
            SessionInUseError: It is open; rename it there.
            SessionError: It cannot be written.
        """
        with SessionLog.open(path, self._durability) as log:
            before = path.stat()
            log.append(SessionInfoEntry(name=printable_line(name)))
            with suppress(OSError):
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def delete(self, path: Path) -> Path:
        """Move the session at `path` with its helpers' sessions and stored files to the trash.

        Returns its new path.

        Raises:
            SessionInUseError: It is open.
            SessionError: It cannot be moved.
        """
        lock = SessionLock(path)
        try:
            folder = make_private_dir(self.root / TRASH / path.parent.name)
            target, number = folder / path.name, 2
            while target.exists():
                target, number = folder / f"{path.stem}-{number}{path.suffix}", number + 1
            moved = path.rename(target)
            if (kept := folder_of(path)).is_dir():
                kept.rename(folder_of(target))
            move_side_files(path, target)
            explored = path.parent / EXPLORED / id_in_name(path)
            if explored.is_dir():
                explored.rename(make_private_dir(folder / EXPLORED) / target.stem)
            return moved
        except OSError as error:
            raise describe_fault(path, "moved to the trash", error) from error
        finally:
            lock.release()

    def _path_for(self, header: Header) -> Path:
        stamp = header.timestamp.replace(":", "-").replace(".", "-")
        return self.root / cwd_slug(Path(header.cwd)) / f"{stamp}_{header.id}.jsonl"

    def _files(self) -> Iterator[Path]:
        folders = [self.root]
        while folders:
            folder = folders.pop()
            try:
                items = list(os.scandir(folder))
            except OSError:
                continue
            for item in items:
                if item.name.endswith(".jsonl") and not item.name.startswith("."):
                    yield Path(item.path)
                elif folder == self.root and item.name != TRASH and item.is_dir():
                    folders.append(Path(item.path))


def date_session(path: Path, entries: Iterable[Entry], *, earliest_ns: int = 0) -> None:
    """Give the file at `path` the time of the newest of `entries`, not `earliest_ns` or before.

    So a session that was only copied is not listed as the newest one.
    """
    newest_ms = max((milliseconds(entry.timestamp) for entry in entries), default=0)
    when = min(max(newest_ms * 1_000_000, earliest_ns), time.time_ns())
    with suppress(OSError):
        os.utime(path, ns=(when, when))


def _why_unreadable(path: Path) -> str:
    try:
        with open_regular_file(path) as file:
            return "it contains no session" if file.read(1) else "it is empty"
    except OSError as error:
        return error.strerror or str(error)


def _existing_file(ref: str, cwd: Path) -> Path | None:
    file = _named_path(ref, cwd)
    return file if file is not None and is_file(file) else None


def _named_path(ref: str, cwd: Path) -> Path | None:
    try:
        return cwd / Path(ref).expanduser()
    except RuntimeError:  # ~ of nobody known
        return None


def _kind_at(ref: str, cwd: Path) -> str:
    """The kind of file named `ref`; empty if there is none."""
    try:
        return kind_of_file((cwd / Path(ref).expanduser()).stat().st_mode)
    except (OSError, RuntimeError, ValueError):
        return ""


def _may_name(ref: str, found: SessionSummary) -> bool:
    """Whether `ref` begins the id of a session, or is the name of one that was pulled."""
    return found.id.startswith(ref) or bool(found.pulled_from and found.name == ref)


def _all_pulled(sessions: Sequence[SessionSummary]) -> bool:
    return all(found.pulled_from for found in sessions)


def _near(ref: str, sessions: Sequence[SessionSummary]) -> list[SessionSummary]:
    """Sessions whose name or id resembles `ref`, best first."""
    wanted = ref.casefold()
    by_label: dict[str, SessionSummary] = {}
    for found in reversed(sessions):
        by_label[found.id[: max(len(ref), 8)].casefold()] = found
        if found.name:
            by_label[found.name.casefold()] = found
    close = difflib.get_close_matches(wanted, by_label, n=_NEAR_MATCHES, cutoff=0.5)
    partly = [label for label in by_label if wanted in label and label not in close]
    return [by_label[label] for label in (close + partly)[:_NEAR_MATCHES]]


def _name_sessions(sessions: Sequence[SessionSummary]) -> str:
    texts = [
        f"{found.id[:13]} ({found.name or found.first_prompt[:40] or 'empty'}"
        f"{f', from {found.pulled_from}' if found.pulled_from else ''})"
        for found in sessions[:_NEAR_MATCHES]
    ]
    return ", ".join(texts) + (", ..." if len(sessions) > _NEAR_MATCHES else "")


def _first_prompt(path: Iterable[Entry]) -> str | None:
    """The user's first message on `path`, on one line."""
    for entry in path:
        if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
            return prompt_line(entry.message) or None
    return None
