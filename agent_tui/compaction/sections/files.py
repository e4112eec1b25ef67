"""The files as they are now, derived from what was read, written and edited."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from tempfile import gettempdir
from typing import TypeAlias

from pydantic import JsonValue

from agent_tui.compaction.ledger.files import normalise_path
from agent_tui.compaction.sections.commands import is_commit, is_looking_around, runs_of
from agent_tui.compaction.sections.history import Done, HistoryEvent
from agent_tui.messages import JsonObject
from agent_tui.omissions import one_line
from agent_tui.sessions.actions import Action, Output
from agent_tui.sessions.entries import KnownFile, KnownLines
from agent_tui.sessions.outputs import is_test
from agent_tui.sessions.shell_files import shell_changes
from agent_tui.tokens import TokenCounter

ReadFile: TypeAlias = Callable[[str], str | None]
"""Reads a file on disk by its path in the log; None if there is none."""

WHOLE_TOKENS, WHOLE_SHARE = 6_500, 1 / 3
"""A changed file larger than both is shown only by its edited places.

The share is of the space for files.
"""

PLACES_TOKENS = 3_000
"""Limit for the edited places of one file; the newest are shown."""

_COMMITTED_TOKENS = 1_500
"""Limit for an edited file whose changes are committed."""

_FILES_NOW = re.compile(r"^<files-now>\n(.*?)\n</files-now>", re.DOTALL | re.MULTILINE)
_FILE_HEAD = re.compile(r"^### (.+?) \((?:changed|read \d+ times);", re.MULTILINE)
_CHANGED_OUTSIDE = "\n(changed outside since you last saw it)"
_WRITTEN_BELOW = "changed; whole in the newest messages"
_AROUND_LINES = (0, 4, 12)
"""Lines shown before and after an edit, depending on the space."""

_LEAST_TOKENS = 60
_LEAST_BEGINNING_TOKENS = 250
_LEAST_PLACE_LINES = 2
_PLACE_TOKENS = 8
"""Tokens of the line above an edited place."""

_MOVED_LINES = 5
"""Fewer equal lines, such as blanks and braces, match anywhere."""

_LEAST_EQUAL_LINES = 2
_LONG_LINES = 2_000
"""In a longer file, frequent lines are not compared: that would take seconds."""

_COMMAND_CHARS = 90
_LONG_LINE_CHARS = 500
_RAN = "$ "
_OFTEN_READ = 2
_MOST_COMPARED = 20
"""So many of the files touched last are compared with the disk."""

_MOST_EDITS = 40
_NUMBERED = re.compile(r"[ \t]*(\d+)(?:\t|→|: |\| )")
_CUT_NOTE = re.compile(
    r"^[\[(<].*(?:offset|truncated|clipped|more lines|left out|not shown).*$",
    re.IGNORECASE,
)
_REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*\Z", re.DOTALL)
"""What Claude Code adds after a file, for the model."""

_LAST_LINES = 4

_PATH = r"(?P<path>'[^'\n]+'|\"[^\"\n]+\"|[\w./~@+-]+)"
_ALONE = r"^\s*(?:cd\s+[^\s&;|]+\s*(?:&&|;|\n)\s*)*"
"""May precede a command that shows a file; after others, the output would be more than the file."""

_SHOWN = re.compile(
    rf"{_ALONE}(?:cat(?:\s+-n)?|nl(?:\s+-\S+)*|less)\s+{_PATH}"
    r"(?:\s*\|\s*sed\s+-n\s+['\"]?(?P<a>\d+),(?P<b>\d+)p['\"]?|\s*\|\s*head\s+-n?\s*(?P<h>\d+))?\s*$"
)
_SED_SHOWN = re.compile(rf"{_ALONE}sed\s+-n\s+['\"]?(?P<a>\d+),(?P<b>\d+)p['\"]?\s+{_PATH}\s*$")
_HEAD_SHOWN = re.compile(rf"{_ALONE}head\s+(?:-n\s*|-)(?P<h>\d+)\s+{_PATH}\s*$")
_HEREDOC = re.compile(
    rf"\bcat\s*(?:>\s*{_PATH}\s*<<-?\s*['\"]?(?P<end>\w+)['\"]?"
    rf"|<<-?\s*['\"]?(?P<end2>\w+)['\"]?\s*>\s*(?P<path2>[\w./~@+-]+))[^\n]*\n(?P<body>.*?)\n(?:(?P=end)|(?P=end2))\s*(?:\n|$)",
    re.DOTALL,
)
_FOLDER = re.compile(r"^\s*cd\s+(?P<path>[\w./~@+-]+)\s*(?:&&|;|\n)")
_WRAPPED = re.compile(r"<output>\n?(.*?)\n?</output>", re.DOTALL)
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

_DELETED = re.compile(r"^ delete mode \d+ (.+)$", re.MULTILINE)
"""What it prints for each file that a commit removes."""

OLD_NAMES = ("old", "old_string", "oldText", "old_str", "old_text", "search", "oldString")
_NEW_NAMES = ("new", "new_string", "newText", "new_str", "new_text", "replace", "newString")
_EVERYWHERE_NAMES = ("all", "replace_all", "replaceAll")
_SCRATCH = ("/tmp/", "/var/tmp/", f"{gettempdir()}/")
"""Scripts and outputs there are of the moment."""

_CHANGING = ("write", "edit")
_BODY_NAMES = ("content", "file_text", "contents", "text")


@dataclass(slots=True)
class FileState:
    """What is known of one file: runs of lines, each in its newest known state.

    `runs`: number of the first line (0 if unknown) and lines; `edits`: new texts of edits, newest
    last; `unseen`: commands that changed it in a way the log does not show; `written_at`: the
    result entry of the call that wrote all of it as it is now, if any; `is_committed`: git has it
    as it is; `old_paths`: its paths before it was moved; `is_changed_outside`: the disk lacks lines
    of the log, and no command explains that; `is_from_disk`: the lines are those of the disk;
    `seen_before`: the first commit since the file was last seen or changed, or the first command
    (after `_RAN`) that may have changed it, as the log does not record what commands change.
    """

    path: str
    runs: list[tuple[int, list[str]]] = field(default_factory=list[tuple[int, list[str]]])
    is_whole: bool = False
    is_changed: bool = False
    reads: int = 0
    last: int = 0
    edits: list[str] = field(default_factory=list[str])
    unseen: list[str] = field(default_factory=list[str])
    written_at: str = ""
    is_committed: bool = False
    old_paths: list[str] = field(default_factory=list[str])
    is_changed_outside: bool = False
    is_from_disk: bool = False
    seen_before: str = ""

    def write(self, text: str, entry_id: str = "") -> None:
        """Set the whole file to `text`; `entry_id` is the result entry of the writing call."""
        self.runs = [(1, text.removesuffix("\n").split("\n"))]
        self.written_at = entry_id
        self.is_whole, self.is_changed, self.is_committed = True, True, False
        self.edits, self.unseen, self.seen_before = [], [], ""

    def read(self, first: int, lines: list[str], *, is_whole: bool) -> None:
        """Record `lines`, just seen, from number `first` on (0 if unknown)."""
        self.reads += 1
        if is_whole:
            self.runs, self.is_whole, self.unseen = [(1, lines)], True, []
            self.seen_before = ""
            return
        if not lines:
            return
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

    def edit(self, old: str, new: str, *, is_everywhere: bool = False) -> None:
        """Replace `old` with `new`; if its place is unknown, so are the numbers of what follows."""
        self.seen_before = ""
        self.is_changed, self.is_committed, self.written_at = True, False, ""
        self.edits = [*self.edits[1 - _MOST_EDITS :], new]
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
            for at, (start, lines) in enumerate(self.runs):
                if made := _with_newer(lines, new.split("\n")):
                    self.runs[at] = (start, made)
                    return
            self.runs.append((0, new.split("\n")))

    def note_command(self, command: str) -> None:
        """Note that a command changed the file in a way that the log does not show."""
        self.is_changed, self.is_committed, self.written_at = True, False, ""
        self.unseen = [*self.unseen[-2:], command]

    @property
    def before(self) -> str:
        """What may have changed the file since it was seen: ``before commit 1a2b3c4``."""
        if self.is_from_disk or not self.seen_before:
            return ""
        is_command = self.seen_before.startswith(_RAN)
        return (
            f"before {'' if is_command else 'commit '}{one_line(self.seen_before, _COMMAND_CHARS)}"
        )

    @property
    def text(self) -> str:
        """All known lines, with gaps marked."""
        return "\n[...]\n".join("\n".join(lines) for _, lines in self.runs)


def _around(
    start: int, known: list[str], first: int, lines: list[str]
) -> list[tuple[int, list[str]]]:
    """The `known` lines before and after `lines`, if those have moved.

    Something not in the log, such as a formatter, added or removed lines before them, so the
    distance between them is unknown.

    Returns: Runs; empty if nothing has moved.
    """
    low, high = max(start, first), min(start + len(known), first + len(lines))
    if not start or not first or low >= high:
        return []
    if known[low - start : high - start] == lines[low - first : high - first]:
        return []
    matcher = SequenceMatcher(None, known, lines, autojunk=len(known) > _LONG_LINES)
    blocks = [block for block in matcher.get_matching_blocks() if block.size >= _MOVED_LINES]
    if not blocks or all(start + block.a == first + block.b for block in blocks):
        return []
    head = known[: max(blocks[0].a - blocks[0].b, 0)]
    tail = known[blocks[-1].a + len(lines) - blocks[-1].b :]
    place = min(start, first - len(head))
    runs = [(place, head), (first + len(lines), tail)]
    return [run for run in runs if run[1] and run[0] > 0]


def _with_newer(known: list[str], lines: list[str]) -> list[str]:
    """The `known` lines with `lines` in place of an older form of them; empty if there is none."""
    matcher = SequenceMatcher(None, known, lines, autojunk=len(known) > _LONG_LINES)
    blocks = [block for block in matcher.get_matching_blocks() if block.size >= _LEAST_EQUAL_LINES]
    if 2 * sum(block.size for block in blocks) < len(lines):
        return []
    first, last = blocks[0], blocks[-1]
    end = last.a + len(lines) - last.b
    return [*known[: max(first.a - first.b, 0)], *lines, *known[end:]]


@dataclass(frozen=True, slots=True)
class FileView:
    """The part of a file that an output shows: its path as named there, and lines from `first`."""

    path: str
    first: int
    lines: tuple[str, ...]
    is_whole: bool


def changes_files(event: Done) -> bool:
    """Whether `event` changed a file, as far as the log shows."""
    action = event.output.action
    touched = shell_changes(action.command).touches
    return bool(event.changed or touched.written or touched.edited) or action.kind in _CHANGING


def file_view(output: Output) -> FileView | None:
    """The file view in `output`; None if it does not show a file."""
    action = output.action
    if output.has_failed or output.exit_code not in (None, 0):
        return None
    if not action.command:
        if action.kind != "read" or not action.path:
            return None
        first, lines, is_cut = _parse_view(output.text)
        asked = _first_asked(action.arguments)
        is_part = asked is not None or is_cut or output.is_truncated
        return FileView(action.path, first or asked or 1, tuple(lines), not is_part)
    command = action.command
    shown = _SED_SHOWN.search(command) or _HEAD_SHOWN.search(command) or _SHOWN.search(command)
    if shown is None:
        return None
    ranges = shown.groupdict()
    first, lines, is_cut = _parse_view(_inner(output.text))
    start = int(ranges.get("a") or 0)
    is_part = bool(start or ranges.get("h")) or is_cut or output.is_truncated
    path = _within(folder_of(command), shown["path"])
    return FileView(path, first or start or 1, tuple(lines), not is_part)


def path_shown_by(event: HistoryEvent, folders: Sequence[str]) -> str:
    """The file that `event` showed; empty if it showed none."""
    view = file_view(event.output) if isinstance(event, Done) else None
    return normalise_path(view.path.strip("'\""), folders) if view is not None else ""


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
                edits=list(known.edits),
                unseen=list(known.unseen),
                is_committed=known.is_committed,
                seen_before=known.seen_before,
            )

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
        output, action = event.output, event.output.action
        if action.command:
            self._follow_command(event)
            return
        if output.has_failed or action.kind == "other":
            return
        patches = [v for v in action.arguments.values() if isinstance(v, str) and "*** " in v]
        if action.kind == "edit" and any(self._follow_patch(text) for text in patches):
            return
        if not action.path or (file := self._file(action.path)) is None:
            return
        match action.kind:
            case "read":
                if (view := file_view(output)) is not None:
                    file.read(view.first, list(view.lines), is_whole=view.is_whole)
            case "write":
                file.write(text_to_write(action.arguments) or "", event.entry_id)
            case _:
                for old, new, is_everywhere in edits_in(action.arguments):
                    file.edit(old, new, is_everywhere=is_everywhere)

    def _follow_command(self, event: Done) -> None:
        """What a command did to files; of what it does not show only that it changed them."""
        output, command = event.output, event.output.action.command
        if output.has_failed or output.exit_code not in (None, 0):
            self._note_changes(event.changed, command)
            return
        changes = shell_changes(command)
        known = set(self._follow_patch(command))
        for old, new in changes.moved:
            known.update(self._move(old, new))
        for path in changes.removed:
            self._remove(path)
        if written := file_in_command(command):
            path, body = written
            if path in changes.touches.written and (file := self._file(path)) is not None:
                file.write(body, event.entry_id)
                known.add(file.path)
        touched = changes.touches
        others = (*touched.written, *touched.edited, *event.changed, *changes.restored)
        paths = {normalise_path(path, self._folders) for path in others} - known
        self._note_changes(sorted(paths), command)
        view = file_view(output) if not known and not paths else None
        if view is not None and (file := self._file(view.path)) is not None:
            file.read(view.first, list(view.lines), is_whole=view.is_whole)
        self._note_time(output)

    def _note_time(self, output: Output) -> None:
        """Note for files that a command did not touch that they were seen before it."""
        command, before = output.action.command, ""
        if is_commit(output):
            before = next(iter(COMMIT_LINE.findall(output.text)), ("", "", ""))[1]
            for path in _DELETED.findall(output.text):
                self._remove(path)
            for file in self._files.values():
                file.is_committed = True
        elif output.files is None and not is_looking_around(command) and not is_test(command):
            before = "".join(_RAN + " ".join(run.words[:2]) for run in runs_of(command)[:1])
        for file in self._files.values():
            if file.last < self._clock:
                file.seen_before = file.seen_before or before

    def _note_changes(self, paths: Iterable[str], command: str) -> None:
        for path in paths:
            if (file := self._file(path)) is not None:
                file.note_command(" ".join(command.split())[:160])

    def _remove(self, path: str) -> None:
        """Remove the file `path`, or everything in the folder `path`."""
        gone = normalise_path(path, self._folders)
        known = [name for name in self._files if name == gone or name.startswith(f"{gone}/")]
        for name in known:
            del self._files[name]
        self.gone.update((gone, *known))

    def _move(self, old: str, new: str) -> list[str]:
        """Rename the file `old`, or the known files in that folder, to `new`.

        Returns: The new paths, normalized.
        """
        before, after = normalise_path(old, self._folders), normalise_path(new, self._folders)
        inside = [path for path in self._files if path.startswith(f"{before}/")]
        for path in [path for path in (before, *inside) if path in self._files and after]:
            state = self._files.pop(path)
            state.old_paths.append(path)
            state.path, state.last = f"{after}{path[len(before) :]}", self._clock
            state.is_changed, state.is_committed = True, False
            self._files[state.path] = state
        return [after, *(f"{after}{path[len(before) :]}" for path in inside)]

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
                return self._move(file.path, moved[1].strip())[0]
        return file.path


@dataclass(frozen=True, slots=True)
class ShownFile:
    """One file as the context shows it.

    `is_whole`: all of it is shown as it is; `hidden`: known lines that are not shown.
    """

    path: str
    text: str
    is_whole: bool
    hidden: frozenset[str] = frozenset()

    def holds(self, text: str) -> bool:
        """Whether the current lines of `text`, from this file, are shown here, numbered or not."""
        return self.hidden.isdisjoint(line for forms in plain_lines(text) for line in forms)

    def shows(self, lines: Iterable[str]) -> bool:
        """Whether each of `lines` is shown here."""
        return {line for line in lines if line.strip()} <= set(self.text.split("\n"))


def choose_files(
    files: Sequence[FileState],
    room_tokens: int,
    counter: TokenCounter,
    on_disk: ReadFile | None = None,
    *,
    verbatim: frozenset[str] = frozenset(),
) -> list[ShownFile]:
    """The files to show: changed and often read ones, and those that read differently on the disk.

    The most recently touched come first; those whose changes are committed come last.

    A changed file is shown whole up to `WHOLE_TOKENS` or `WHOLE_SHARE` of the space, else by its
    edited places with the lines around them. One that was written whole and is not committed may
    take all the space; an edited one whose changes are committed shows only some of its places.
    Files that do not fit are only in the lists of paths. Temporary files are not shown.

    Args:
        files: The files in the log, the most recently touched first.
        room_tokens: Limit of all together.
        counter: Counts their tokens.
        on_disk: Reads a file of the working folder, which is shown as it is there; None if files
            are unavailable.
        verbatim: Entries that stay unchanged; a file that one of them wrote is visible there.
    """
    for file in files[:_MOST_COMPARED]:
        complete_file(file, on_disk)
    at_work = [
        file
        for file in files
        if (file.is_changed or file.reads >= _OFTEN_READ or file.is_changed_outside)
        and not file.path.startswith(_SCRATCH)
        and (file.is_changed or is_of_the_work(file.path))
    ]
    settled = [file for file in at_work if file.is_changed and file.is_committed]
    current = [file for file in at_work if file not in settled]
    turns = [(file, False) for file in current]
    turns += [(file, True) for file in current if file.is_changed and not file.edits]
    turns += [(file, False) for file in settled]
    shown: dict[str, ShownFile] = {}
    whole = max(WHOLE_TOKENS, int(room_tokens * WHOLE_SHARE))
    for file, is_beginning in turns:
        if room_tokens < _LEAST_TOKENS:
            break
        if file.path in shown or (is_beginning and room_tokens < _LEAST_BEGINNING_TOKENS):
            continue
        complete_file(file, on_disk)
        if file.written_at in verbatim and not file.is_changed_outside:
            head = f"### {file.path} ({_WRITTEN_BELOW})"
            shown[file.path] = ShownFile(file.path, head, is_whole=True)
            continue
        limit = min(room_tokens, _limit(file, room_tokens, whole))
        for text, is_whole in _forms(file, limit, counter, is_beginning=is_beginning):
            tokens = counter.count_text(text) + 4
            if tokens <= room_tokens:
                hidden = set(file.text.split("\n")) - {"", *text.split("\n")}
                shown[file.path] = ShownFile(file.path, text, is_whole, frozenset(hidden))
                room_tokens -= tokens
                break
    return list(shown.values())


def is_of_the_work(path: str) -> bool:
    """Whether `path` is neither temporary nor in a hidden folder outside the working folder.

    A program keeps its own files in such a folder.
    """
    is_elsewhere = path.startswith(("/", "~"))
    return not path.startswith(_SCRATCH) and not (is_elsewhere and "/." in path)


def _limit(file: FileState, room_tokens: int, whole: int) -> int:
    """Most tokens of `file`: more if it is at work and has no edited places, less if committed."""
    if file.is_committed and file.edits:
        return _COMMITTED_TOKENS
    is_only_whole = file.is_changed and not file.is_committed and not file.edits
    return room_tokens if is_only_whole else whole


def paths_shown_in(summary: str) -> list[str]:
    """The files that `summary` shows in their state at that time."""
    block = _FILES_NOW.search(summary)
    return _FILE_HEAD.findall(block[1]) if block else []


def files_for_later(files: Sequence[FileState], paths: Set[str]) -> tuple[KnownFile, ...]:
    """What a later session needs of the files at `paths`, the most recently touched last."""
    return tuple(
        KnownFile(
            path=file.path,
            runs=tuple(KnownLines(first=first, text="\n".join(ls)) for first, ls in file.runs),
            is_whole=file.is_whole,
            is_changed=file.is_changed,
            reads=file.reads,
            edits=tuple(file.edits),
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


def _forms(
    file: FileState, room: int, counter: TokenCounter, *, is_beginning: bool
) -> Iterable[tuple[str, bool]]:
    """Ways to show `file`, the most complete first."""
    unseen = one_line(file.unseen[-1], _COMMAND_CHARS) if file.unseen else ""
    note = f"\n(some lines may be from before: {unseen})" if unseen else ""  # edits may be newer
    note += _CHANGED_OUTSIDE if file.is_changed_outside and not file.is_changed else ""
    if before := file.before:
        note += f"\n(last seen {before})"
    what = "changed" if file.is_changed else f"read {file.reads} times"
    text = file.text
    if text and len(text) <= 8 * room and counter.count_text(text) <= room:
        part = "whole" if file.is_whole else "as far as read"
        yield f"### {file.path} ({what}; {part}){note}\n{text}", file.is_whole and not file.unseen
    if file.edits or is_beginning:
        part = "edited places" if file.edits else "the beginning"
        head = f"### {file.path} ({what}; {part}){note}"
        room = min(room, PLACES_TOKENS) - counter.count_text(head)
        places = _cut_places(file, room, counter)
        if places.count("\n") >= _LEAST_PLACE_LINES:
            yield f"{head}\n{places}", False


def _cut_places(file: FileState, room: int, counter: TokenCounter) -> str:
    """The lines of edits, newest first, then the lines around them, as many as fit.

    Without edits, the lines from the beginning.
    """
    wanted: list[set[int]] = [set() for _ in file.runs]
    found = list(_places_of_edits(file))
    if not file.edits:
        found = [(run, 0, len(lines)) for run, (_, lines) in enumerate(file.runs)]
    for around in _AROUND_LINES:
        for run, first, last in found:
            lines = file.runs[run][1]
            for at in range(max(first - around, 0), min(last + around + 1, len(lines))):
                if at in wanted[run]:
                    continue
                is_new_place = at - 1 not in wanted[run]
                room -= counter.count_text(lines[at]) + 1 + is_new_place * _PLACE_TOKENS
                if room < 0:
                    return _places(file, wanted)
                wanted[run].add(at)
    return _places(file, wanted)


def _places_of_edits(file: FileState) -> Iterator[tuple[int, int, int]]:
    """Run, first and last line of each edit whose new text is still there, newest first."""
    texts = ["\n".join(lines) for _, lines in file.runs]
    for new in reversed(file.edits):
        run = next((at for at, text in enumerate(texts) if new and new in text), None)
        if run is not None:
            first = texts[run].count("\n", 0, texts[run].find(new))
            yield run, first, first + new.count("\n")


def _places(file: FileState, wanted: Sequence[set[int]]) -> str:
    """The `wanted` lines of each run, each part below the number of its first line."""
    parts: list[str] = []
    for (start, lines), places in zip(file.runs, wanted, strict=True):
        previous = -2
        for at in sorted(places):
            if at != previous + 1:
                parts.append(f"@@ line {start + at}" if start else "@@")
            parts.append(lines[at])
            previous = at
    return "\n".join(parts)


def _join_runs(runs: Sequence[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """`runs` sorted by number, with adjacent ones joined; those without numbers come last."""
    joined: list[tuple[int, list[str]]] = []
    for start, lines in sorted(runs, key=lambda run: run[0] or 1 << 40):
        if joined and start and joined[-1][0] and joined[-1][0] + len(joined[-1][1]) == start:
            joined[-1] = (joined[-1][0], [*joined[-1][1], *lines])
        else:
            joined.append((start, lines))
    return joined


def _parse_view(text: str) -> tuple[int, list[str], bool]:
    """The number of the first line (0 if unnumbered), the lines, and whether more follow."""
    text = _REMINDER.sub("", text)
    lines = text.removesuffix("\n").split("\n")
    is_cut = False
    for _ in range(_LAST_LINES):
        if lines and (not lines[-1].strip() or _CUT_NOTE.match(lines[-1].strip())):
            is_cut = is_cut or bool(lines[-1].strip())
            lines.pop()
    numbered = [_NUMBERED.match(line) for line in lines]
    if lines and sum(match is not None for match in numbered) * 10 >= len(lines) * 9:
        first = next(int(match[1]) for match in numbered if match is not None)
        plain = [
            line[match.end() :] if match is not None else line
            for line, match in zip(lines, numbered, strict=True)
        ]
        return first, plain, is_cut
    return 0, lines, is_cut


def _first_asked(arguments: JsonObject) -> int | None:
    """The first line that a partial read asked for; None if it asked for the whole file."""
    view = arguments.get("view_range")
    if isinstance(view, list) and view and isinstance(view[0], int):
        return max(view[0], 1)
    offset, limit = arguments.get("offset"), arguments.get("limit")
    if isinstance(offset, int) or isinstance(limit, int):
        return max(offset, 1) if isinstance(offset, int) else 1
    return None


def edits_in(arguments: JsonObject) -> list[tuple[str, str, bool]]:
    """Old and new text of each edit in a call, and whether it applies everywhere."""
    listed = arguments.get("edits")
    parts: list[JsonValue] = [arguments, *(listed if isinstance(listed, list) else ())]
    found: list[tuple[str, str, bool]] = []
    for part in parts:
        if not isinstance(part, dict):
            continue
        old, new = _first_text(part, OLD_NAMES), _first_text(part, _NEW_NAMES)
        if old or new:
            everywhere = any(part.get(name) is True for name in _EVERYWHERE_NAMES)
            found.append((old or "", new or "", everywhere))
    return found


def text_to_write(arguments: JsonObject) -> str | None:
    """The complete file text that a call writes; None if it has none."""
    return _first_text(arguments, _BODY_NAMES)


def text_of_change(action: Action) -> str:
    """What a call writes into its file: the whole text, the new texts of its edits, or a patch."""
    new = [text for _, text, _ in edits_in(action.arguments)] or [text_to_write(action.arguments)]
    patch = [v for v in action.arguments.values() if isinstance(v, str) and "*** " in v]
    return "\n".join(text for text in (*new, *patch) if text)


def file_in_command(command: str) -> tuple[str, str] | None:
    """Path and text of the file that `command` writes with a here-document; None if it does not."""
    if "<<" not in command or (found := _HEREDOC.search(command)) is None:
        return None
    return _within(folder_of(command), found["path"] or found["path2"]), found["body"]


def plain_lines(text: str) -> list[tuple[str, str]]:
    """The lines of `text`, each as it is and without its line number."""
    return [
        (line, line[number.end() :] if (number := _NUMBERED.match(line)) else line)
        for line in text.split("\n")
    ]


def _first_text(arguments: JsonObject, names: Sequence[str]) -> str | None:
    return next((v for name in names if isinstance(v := arguments.get(name), str)), None)


def _inner(text: str) -> str:
    found = _WRAPPED.search(text)
    return found[1] if found else text


def folder_of(command: str) -> str:
    """The folder that `command` first changes to, with a trailing slash."""
    found = _FOLDER.match(command)
    return f"{found['path']}/" if found else ""


def _within(folder: str, path: str) -> str:
    plain = path.strip("'\"")
    return plain if plain.startswith(("/", "~")) else f"{folder}{plain}"
