"""The files as they are now, derived from what was read, written and edited."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from tempfile import gettempdir
from typing import TypeAlias

from agent_tui.compaction.ledger.files import files_of, normalise_path
from agent_tui.compaction.sections.commands import (
    is_commit,
    shows_uncommitted,
    without_folder,
)
from agent_tui.compaction.sections.file_views import (
    edits_in,
    file_in_command,
    file_views,
    folder_of,
    text_to_write,
)
from agent_tui.compaction.sections.history import Done, HistoryEvent
from agent_tui.compaction.tiers.describe import action_label
from agent_tui.omissions import one_line
from agent_tui.sessions.actions import Action, Output
from agent_tui.sessions.entries import KnownFile, KnownLines
from agent_tui.sessions.shell_files import shell_changes

ReadFile: TypeAlias = Callable[[str], str | None]
"""Reads a file on disk by its path in the log; None if there is none."""

_MOVED_LINES = 5
"""Fewer equal lines, such as blanks and braces, match anywhere."""

_LONG_LINES = 2_000
"""In a longer file, frequent lines are not compared: that would take seconds."""

_COMMAND_CHARS = 90
_LONG_LINE_CHARS = 500
_RAN, _BY_GIT = "$ ", "$ git "
_CLEAN = "nothing to commit, working tree clean"
TO_COMMITTED = re.compile(
    r"git (?:checkout(?: HEAD)? (?:-- |\.$)|restore (?!.*(?:--source|-s\b))|reset --hard(?: HEAD)?$"
    r"|stash(?: push\b|$))"
)
"""Commands of git that set files to the state that was last committed."""

_MOST_PLACES = 40
_PATCHED = re.compile(
    r"^\*\*\* (?P<kind>Add|Update|Delete) File: (?P<path>.+?)\n(?P<body>.*?)"
    r"(?=^\*\*\* (?:Add|Update|Delete|End)|\Z)",
    re.MULTILINE | re.DOTALL,
)
_MOVED_TO = re.compile(r"^\*\*\* Move to: (.+)$", re.MULTILINE)
COMMIT_LINE = re.compile(
    r"^\[(detached HEAD|[\w./-]+)(?: \([\w-]+\))? ([0-9a-f]{7,40})\] (.+)$", re.MULTILINE
)
"""What git prints for a commit: branch, hash and subject."""

MODE_LINE = re.compile(r"^ (?:create|delete|rename|rewrite|mode change) .*\n?", re.MULTILINE)
"""What it prints below that for each file that is new, gone, moved or mostly new."""

_DELETED = re.compile(r"^ delete mode \d+ (.+)$", re.MULTILINE)
"""What it prints for each file that a commit removes."""

SCRATCH = ("/tmp/", "/var/tmp/", f"{gettempdir()}/")
"""Scripts and outputs there are of the moment."""


@dataclass(slots=True)
class FileState:
    """What is known of one file: runs of lines, each in its newest known state.

    `runs`: number of the first line (0 if unknown) and lines; `places`: new texts of edits and
    texts of the parts that were looked at, newest last; `unseen`: commands that changed it in a way
    the log does not show; `stale`: the lines not seen since; `written_at`: the result entry of the
    call that wrote all of it as it is now, if any; `is_committed`: git has it as it is;
    `old_paths`: its paths before it was moved; `is_changed_outside`: the disk lacks lines of the
    log, and no command explains that; `is_from_disk`: the lines are those of the disk;
    `seen_before`: git's command (after `_RAN`) that set the file to another state since it was last
    seen or changed; `committed`: `runs` and `unseen` as git has them, if the file changed since.
    """

    path: str
    runs: list[tuple[int, list[str]]] = field(default_factory=list[tuple[int, list[str]]])
    is_whole: bool = False
    is_changed: bool = False
    reads: int = 0
    last: int = 0
    places: list[str] = field(default_factory=list[str])
    unseen: list[str] = field(default_factory=list[str])
    stale: Set[str] = frozenset()
    written_at: str = ""
    is_committed: bool = False
    old_paths: list[str] = field(default_factory=list[str])
    is_changed_outside: bool = False
    is_from_disk: bool = False
    seen_before: str = ""
    committed: "tuple[list[tuple[int, list[str]]], list[str]] | None" = None

    def _begin_change(self) -> None:
        if self.is_committed or not self.is_changed:
            self.committed = (list(self.runs), self.unseen)
        if self.is_committed and self.is_changed:
            self.places = []
        self.is_changed, self.is_committed, self.written_at = True, False, ""

    def write(self, text: str, entry_id: str = "") -> None:
        """Set the whole file to `text`; `entry_id` is the result entry of the writing call."""
        self._begin_change()
        self.runs = [(1, text.removesuffix("\n").split("\n"))]
        self.is_whole, self.written_at = True, entry_id
        self.places, self.unseen, self.seen_before = [], [], ""

    def read(self, first: int, lines: list[str], *, is_whole: bool) -> None:
        """Record `lines`, just seen, from number `first` on (0 if unknown)."""
        if is_whole:
            self.runs, self.is_whole, self.unseen = [(1, lines)], True, []
            self.seen_before = ""
            return
        if not lines:
            return
        self._note_place("\n".join(lines))
        end = first + len(lines)
        kept: list[tuple[int, list[str]]] = []
        for start, known in self.runs:
            if moved := _around(start, known, first, lines):
                kept += moved
                self.is_whole = False
                continue
            if not first or not start:
                if "\n".join(known) not in "\n".join(lines):
                    kept.append((start, known))
                continue
            if head := known[: max(first - start, 0)]:
                kept.append((start, head))
            if start + len(known) > end and (tail := known[max(end - start, 0) :]):
                kept.append((max(start, end), tail))
        kept.append((first, lines))
        self.runs = _join_runs(kept)
        self._note_seen(lines)

    def _note_seen(self, lines: Iterable[str]) -> None:
        """Note that `lines` are so; if no others are known, no change is unseen."""
        self.stale = self.stale - {*lines}
        if self.unseen and all(self.stale.isdisjoint(run) for _, run in self.runs):
            self.unseen = []

    def edit(self, old: str, new: str, *, is_everywhere: bool = False) -> None:
        """Replace `old` with `new`; if its place is unknown, so are the numbers of what follows."""
        self._begin_change()
        self.seen_before = ""
        self._note_place(new)
        found = is_placed = False
        shifted: list[tuple[int, list[str]]] = []
        delta = 0
        for start, lines in self.runs:
            text = "\n".join(lines)
            made = lines
            if old and old in text and (is_everywhere or not found):
                found, is_placed = True, start > 0 and not (is_everywhere and not self.is_whole)
                changed = text.replace(old, new) if is_everywhere else text.replace(old, new, 1)
                made = changed.split("\n") if changed else []
            shifted.append((start + delta if start else 0, made))
            delta += len(made) - len(lines)
        if not is_placed and old.count("\n") != new.count("\n"):
            shifted = [(start if start == 1 else 0, lines) for start, lines in shifted]
        self.runs = [run for run in shifted if run[1]]
        if not found and new.strip() and not any(new in "\n".join(run) for _, run in self.runs):
            self.is_whole = False
            self.runs.append((0, new.split("\n")))

    def _note_place(self, text: str) -> None:
        self.places = [*self.places[1 - _MOST_PLACES :], text]

    def note_command(self, command: str) -> None:
        """Note that a command changed the file in a way that the log does not show."""
        self._begin_change()
        if self.runs or "<<" in command:  # else all that will be read is newer
            self.unseen = [*self.unseen[-2:], command]
            self.stale = _lines_in(self.runs)

    def restore(self, command: str) -> None:
        """Set the file to the state that git's `command` leaves it in, as far as that is known."""
        is_at_head = self.is_committed or not self.is_changed
        if is_at_head and TO_COMMITTED.match(command):
            return
        self.written_at = ""
        if self.committed is not None and self.committed[0] and TO_COMMITTED.match(command):
            (self.runs, self.unseen), self.places, self.is_committed = self.committed, [], True
        else:
            self.seen_before = _RAN + command
            self.unseen = [] if "reset" in command.split() else self.unseen

    @property
    def awaits_commit(self) -> bool:
        """Whether it is a file of the work with changes that are not committed."""
        return self.is_changed and not self.is_committed and is_of_the_work(self.path)

    @property
    def is_changed_by_text(self) -> bool:
        """Whether a here-document in a command, such as a script, changed it in unseen ways."""
        return any("<<" in command for command in self.unseen)

    @property
    def doubt(self) -> str:
        """What may have changed the file since it was seen, as a clause; may be empty."""
        if self.is_from_disk:
            return ""
        if self.unseen:
            change = one_line(self.unseen[-1], _COMMAND_CHARS)
            return f"perhaps older than this change: {change}"
        what = one_line(self.seen_before, _COMMAND_CHARS)
        return f"perhaps changed since, by {what}" if what.startswith(_BY_GIT) else ""

    @property
    def text(self) -> str:
        """All known lines, with gaps marked."""
        return "\n[...]\n".join("\n".join(lines) for _, lines in self.runs)


def _lines_in(runs: Iterable[tuple[int, list[str]]]) -> frozenset[str]:
    return frozenset(line for _, run in runs for line in run)


def _around(
    start: int, known: list[str], first: int, lines: list[str]
) -> list[tuple[int, list[str]]]:
    """The `known` lines before and after `lines`, if those have moved.

    Something not in the log, such as a formatter, added or removed lines before them, so the
    distance between them is unknown, and that to what follows if the last of `lines` are new.

    Returns: Runs; empty if nothing has moved.
    """
    low, high = max(start, first), min(start + len(known), first + len(lines))
    if not start or not first or low >= high:
        return []
    if known[low - start : high - start] == lines[low - first : high - first]:
        return []
    matcher = SequenceMatcher(None, known, lines, autojunk=len(known) > _LONG_LINES)
    found = [block for block in matcher.get_matching_blocks() if block.size]
    blocks = [block for block in found if block.size >= _MOVED_LINES]
    if not blocks or all(start + block.a == first + block.b for block in blocks):
        return []
    head = known[: max(blocks[0].a - blocks[0].b, 0)]
    reaches_end = found[-1].b + found[-1].size == len(lines) and any(lines[found[-1].b :])
    last = found[-1] if reaches_end else blocks[-1]
    new = len(lines) - last.b - last.size  # in place of as many known lines, or of others
    tail = known[last.a + last.size + 2 * new :]
    place = min(start, first - len(head))
    runs = [(place, head), (first + len(lines) + new, tail)]
    return [run for run in runs if run[1] and run[0] > 0]


class FileReader:
    """Tracks the files of a conversation; `gone` are those that were removed."""

    def __init__(self, folders: Sequence[str], earlier: Iterable[KnownFile] = ()) -> None:
        self._folders = folders
        self._files: dict[str, FileState] = {}
        self.gone: set[str] = set()
        self._clock = 0
        for known in earlier:
            self._clock += 1
            self._files[known.path] = FileState(
                path=known.path,
                runs=[(run.first, run.text.split("\n")) for run in known.runs],
                is_whole=known.is_whole,
                is_changed=known.is_changed,
                reads=known.reads,
                last=self._clock,
                places=list(known.edits),
                unseen=list(known.unseen),
                is_committed=known.is_committed,
                seen_before=known.seen_before,
            )
            self._files[known.path].stale = _lines_in(self._files[known.path].runs)

    def read(self, events: Iterable[HistoryEvent]) -> list[FileState]:
        """The files after `events`, the most recently touched first."""
        for event in events:
            if isinstance(event, Done):
                self._clock += 1
                self._read(event)
        return sorted(self._files.values(), key=lambda file: -file.last)

    def _file(self, path: str) -> FileState | None:
        normal = normalise_path(path.strip("'\""), self._folders)
        if not normal:
            return None
        self.gone.discard(normal)
        file = self._files.setdefault(normal, FileState(normal))
        file.last = self._clock
        return file

    def _read(self, event: Done) -> None:
        """Follow the files that `event` touched; of what it does not show, only that they changed.

        What a failed command changed is seen, but not what it wrote.
        """
        output, action = event.output, event.output.action
        touched, changes = files_of(event), shell_changes(action.command)
        if output.has_failed or (action.command and output.exit_code not in (None, 0)):
            self._note_changes(event.changed, action)
            return
        known = {path for text in _patches_in(action) for path in self._follow_patch(text)}
        is_patched = bool(known)
        for old, new in changes.moved:
            known.update(self._move(old, new))
        for path in touched.removed:
            self._remove(path)
        if touched.modified and not is_patched:
            known.update(self._follow_text(event))
        paths = {normalise_path(path, self._folders) for path in touched.modified} - known
        self._note_changes(sorted(paths), action)
        for path, by in changes.restored:
            self._note_restored(path, by)
        for view in file_views(output) if not known and not paths else ():
            if (file := self._file(view.path)) is not None:
                file.read(view.first, list(view.lines), is_whole=view.is_whole)
                file.reads += not view.is_found
        if action.command:
            self._note_commit(output)

    def _follow_text(self, event: Done) -> Iterator[str]:
        """Apply the text that a call or a here-document writes; yields the path it changed."""
        action = event.output.action
        written = file_in_command(action.command)
        if written and written[0] not in shell_changes(action.command).touches.written:
            written = None
        path, text = written or (action.path, text_to_write(action.arguments))
        edits = edits_in(action.arguments) if action.kind == "edit" else []
        is_known = written or edits or action.kind == "write"
        if not is_known or (file := self._file(path)) is None:
            return
        if not edits:
            file.write(text or "", event.entry_id)
        for old, new, is_everywhere in edits:
            file.edit(old, new, is_everywhere=is_everywhere)
        yield file.path

    def _note_commit(self, output: Output) -> None:
        """Note what git has by now: what was committed, or all if it shows no change."""
        if not is_commit(output):
            command = output.action.command
            is_clean = shows_uncommitted(output) and _CLEAN in output.text
            if not is_clean or folder_of(command) or " -C " in command:
                return
        for path in _DELETED.findall(output.text) if is_commit(output) else ():
            self._remove(path)
        for file in self._files.values():
            file.is_committed = True

    def _note_changes(self, paths: Iterable[str], action: Action) -> None:
        what = without_folder(action.command) or action_label(action)
        for path in paths:
            if (file := self._file(path)) is not None:
                file.note_command(what)

    def _note_restored(self, path: str, command: str) -> None:
        """Note that git set the file `path`, or all files in that folder, to another state."""
        root = normalise_path(path, self._folders)
        for file in self._files.values():
            is_inside = not root and not file.path.startswith(("/", "~"))
            if is_inside or file.path == root or file.path.startswith(f"{root}/"):
                file.restore(command)

    def _remove(self, path: str) -> None:
        """Remove the file `path`, or everything in the folder `path`."""
        gone = normalise_path(path, self._folders)
        known = [name for name in self._files if name == gone or name.startswith(f"{gone}/")]
        for name in known:
            del self._files[name]
        self.gone.update((gone, *known))

    def _move(self, old: str, new: str) -> list[str]:
        """Rename the file `old`, or the known files in that folder, to `new`.

        Returns: The new paths, normalized; the text of a file that was not known is not known now.
        """
        before, after = normalise_path(old, self._folders), normalise_path(new, self._folders)
        inside = [path for path in self._files if path.startswith(f"{before}/")]
        moved: list[str] = []
        for path in [path for path in (before, *inside) if path in self._files and after]:
            state = self._files.pop(path)
            state.old_paths.append(path)
            state.path, state.last = f"{after}{path[len(before) :]}", self._clock
            state.is_changed, state.is_committed = True, False
            self._files[state.path] = state
            moved.append(state.path)
        return moved

    def _follow_patch(self, text: str) -> list[str]:
        """Apply the patch in `text`; returns the paths it changed."""
        return [
            self._patch(match["kind"], match["path"].strip(), match["body"])
            for match in _PATCHED.finditer(text)
        ]

    def _patch(self, kind: str, path: str, body: str) -> str:
        file = self._file(path)
        if file is None:
            return ""
        if kind == "Delete":
            self._files.pop(file.path)
        elif kind == "Add":
            file.write("\n".join(line[1:] for line in body.split("\n") if line.startswith("+")))
        else:
            for hunk in re.split(r"^@@.*$", body, flags=re.MULTILINE):
                lines = [line for line in hunk.split("\n") if line[:1] in ("+", "-", " ")]
                if any(line[:1] in "+-" for line in lines):
                    old = "\n".join(line[1:] for line in lines if line[0] in " -")
                    file.edit(old, "\n".join(line[1:] for line in lines if line[0] in " +"))
            if moved := _MOVED_TO.search(body):
                return next(iter(self._move(file.path, moved[1].strip())), "")
        return file.path


def _patches_in(action: Action) -> Iterator[str]:
    """The texts of a command or an edit that may hold a patch."""
    if action.command:
        yield action.command
    elif action.kind == "edit":
        yield from (text for text in action.arguments.values() if isinstance(text, str))


def is_of_the_work(path: str) -> bool:
    """Whether `path` is neither temporary nor in a hidden folder outside the working folder.

    A program keeps its own files in such a folder.
    """
    is_elsewhere = path.startswith(("/", "~"))
    return not path.startswith(SCRATCH) and not (is_elsewhere and "/." in path)


def files_for_later(files: Sequence[FileState], paths: Set[str]) -> tuple[KnownFile, ...]:
    """What a later session needs of the files at `paths`, the most recently touched last."""
    return tuple(
        KnownFile(
            path=file.path,
            runs=tuple(KnownLines(first=first, text="\n".join(ls)) for first, ls in file.runs),
            is_whole=file.is_whole,
            is_changed=file.is_changed,
            reads=file.reads,
            edits=tuple(file.places),
            unseen=tuple(file.unseen),
            is_committed=file.is_committed,
            seen_before=file.seen_before,
        )
        for file in reversed(files)
        if file.path in paths
    )


def complete_file(file: FileState, on_disk: ReadFile | None) -> None:
    """Set a file of which lines are known to its present text, if the disk has it."""
    if on_disk is None or file.is_from_disk or not file.runs:
        return
    if (text := on_disk(file.path)) is None:
        return
    lines = text.removesuffix("\n").split("\n")
    known = [line for _, run in file.runs for line in run if _is_compared(line)]
    if file.written_at:
        is_same = file.runs == [(1, lines)]
    elif file.is_whole and not file.is_changed:
        is_same = known == list(filter(_is_compared, lines))
    else:
        is_same = set(known) <= set(lines)
    file.is_changed_outside |= not file.unseen and not is_same
    file.runs, file.is_whole, file.unseen = [(1, lines)], True, []
    file.is_from_disk = True


def _is_compared(line: str) -> bool:
    """Whether a view surely shows `line` as it is: tools cut long ones."""
    return bool(line.strip()) and len(line) < _LONG_LINE_CHARS


def _join_runs(runs: Sequence[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """`runs` sorted by number, with adjacent ones joined; those without numbers come last."""
    joined: list[tuple[int, list[str]]] = []
    for start, lines in sorted(runs, key=lambda run: run[0] or 1 << 40):
        if joined and start and joined[-1][0] and joined[-1][0] + len(joined[-1][1]) == start:
            joined[-1] = (joined[-1][0], [*joined[-1][1], *lines])
        else:
            joined.append((start, lines))
    return joined
