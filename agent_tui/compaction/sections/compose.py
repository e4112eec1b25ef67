"""The sections around a summary's prose, each within its share of the space.

What changes least comes first, so that a provider's cache of the beginning survives the next
compaction: the user's messages, the task's text, then (the prose and) the state of the work,
failures, the current files, and the way so far.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path

from agent_tui.compaction.ledger.files import FileOperations, cap_lists, normalise_path
from agent_tui.compaction.ledger.pinned import fit_pins, is_strong
from agent_tui.compaction.sections.commands import is_commit, may_change_others
from agent_tui.compaction.sections.failures import FailureReader, failures_that_fit
from agent_tui.compaction.sections.file_states import (
    FileReader,
    FileState,
    ReadFile,
    complete_file,
    files_for_later,
    is_of_the_work,
)
from agent_tui.compaction.sections.file_views import path_shown_by
from agent_tui.compaction.sections.files import ShownFile
from agent_tui.compaction.sections.history import (
    Done,
    HistoryEvent,
    Said,
    as_recorded,
    read_history,
    with_short_paths,
)
from agent_tui.compaction.sections.person import Spoken, choose_messages, least_tokens
from agent_tui.compaction.sections.state import (
    StateReader,
    check_lines,
    commit_lines,
    in_progress_lines,
    items_begun,
    lines_of_done,
    pending_lines,
    repository_lines,
)
from agent_tui.compaction.sections.task import (
    is_document,
    is_done,
    lists_steps,
    task_blocks,
    task_texts,
    text_shown,
)
from agent_tui.compaction.sections.way import way_so_far
from agent_tui.compaction.transcript import escape_tags, tag_blocks, those_that_fit
from agent_tui.messages import Job
from agent_tui.omissions import one_line
from agent_tui.sessions.entries import (
    Entry,
    Failure,
    Handover,
    Ledger,
    RepositoryState,
    TaskText,
    WorkState,
)
from agent_tui.sessions.replay.notes import jobs_on
from agent_tui.tokens import TokenCounter

PERSON_SHARE = 0.15
TASK_SHARE, TASK_LEAST_TOKENS = 0.10, 2_000
"""What the task's text does not use goes to the user's messages, which often state the task."""

SAID_MOST_SHARE = 0.40
"""A maximum for the user's messages, cut as far as possible, before any of them is left out."""

RULES_SHARE = 0.5
"""A maximum, for rules that are not in the messages above; it only matters in a small window."""

STATE_SHARE = 0.05
FAILURES_SHARE, NOTED_FAILURES_SHARE = 0.10, 0.05
"""In a small context, the share holds hardly a few sentences; twice the share is the limit."""

FILES_SHARE = 0.60
"""A maximum; the newest messages keep their share."""

WAY_SHARE = 0.12
LEAST_KEPT, KEPT_SHARE = 0.25, 0.75
"""If a model chooses what stays: the smallest and the largest share of the excerpts."""

LISTS_SHARE = 0.02
_LEAST_LIST_CHARS = 400
_MOST_UNCOMMITTED = 8
_NEWEST_TEXTS = 12
TAIL_SHARE = 0.20
"""The minimum for the newest messages; they also get what the sections leave."""

STEP_SHARE = 0.12
"""A maximum for an earlier step: the model has answered it."""

STEPS_SHARE = 0.5
"""Of what is left for earlier steps, the part that they take before their results come back."""

NEWEST_SHARE = 0.50
"""A maximum for the newest exchange, as far as its outputs can be cut."""


@dataclass(frozen=True, slots=True)
class WorkRecord:
    """What the log says about the work, at its end.

    Args:
        said: Entry id and text of all that the user said, oldest first; the id is empty if unknown.
        typed: The typed parts of those texts that hold pastes, by text.
        events: The events in this session's log.
        views: The file that each of them showed; empty for one that showed none.
        tasks: Texts of tasks, the most recently shown last.
        state: The state of the work.
        failures: What failed, oldest first.
        files: The current files, the most recently touched first.
        ledger: Pinned rules and lists of files.
        earlier_way: Lines passed on by a parent session.
        folders: Paths of the working folder.
        repositories: What git says now.
    """

    said: tuple[tuple[str, str], ...]
    typed: Mapping[str, tuple[str, ...]]
    events: tuple[HistoryEvent, ...]
    views: tuple[str, ...]
    tasks: tuple[TaskText, ...]
    state: WorkState
    failures: tuple[Failure, ...]
    files: tuple[FileState, ...]
    ledger: Ledger
    earlier_way: tuple[str, ...]
    folders: tuple[str, ...]
    repositories: tuple[RepositoryState, ...] = ()

    @property
    def uncommitted(self) -> tuple[str, ...]:
        """The files changed since the last commit; empty if nothing was ever committed."""
        if not self.state.commits and not any(one.head for one in self.repositories):
            return ()
        return tuple(file.path for file in self.files if file.awaits_commit)

    @property
    def newest_texts(self) -> str:
        """What was said and replied last, and what is in progress."""
        texts = [event.text for event in self.events if not isinstance(event, Done)]
        return "\n".join((*texts[-_NEWEST_TEXTS:], *in_progress_lines(self.state)))

    def documents_in(self, text: str) -> frozenset[str]:
        """The paths of the task's documents that stand whole in `text`."""
        stands = (t for t in self.named_tasks if escape_tags(text_shown(t)) in text)
        return frozenset(map(self.path_of, stands))

    def path_of(self, task: TaskText) -> str:
        """The path of the document whose text `task` is."""
        return normalise_path(task.item, self.folders)

    @property
    def named_tasks(self) -> tuple[TaskText, ...]:
        """The tasks, documents with the paths that the user and the model see."""
        return tuple(
            task.model_copy(update={"item": self.path_of(task)})
            if task.item.startswith("/")
            else task
            for task in self.tasks
        )


def read_work(
    path: Sequence[Entry],
    ledger: Ledger,
    handover: Handover | None,
    folders: Sequence[str],
    on_disk: ReadFile | None = None,
    repositories: tuple[RepositoryState, ...] = (),
) -> WorkRecord:
    """The record of `path`, including what a parent session passed on.

    Args:
        path: Entries from the root to the leaf.
        ledger: Facts at the end of `path`, including earlier sessions.
        handover: What the parent session passed on; None without one.
        folders: Paths of the working folder.
        on_disk: Reads a file of the working folder; None if files are unavailable.
        repositories: What git says now.
    """
    earlier = handover or Handover()
    ids = [entry.id for entry in path]
    known = ids.index(earlier.through) + 1 if earlier.through in ids else 0
    events = read_history(path)
    new = read_history(path[known:]) if known else events
    said = tuple(_all_said(events, ledger, earlier))
    state = StateReader(earlier.state, folders).read(new)
    reader = FileReader(folders, earlier.files)
    files = tuple(reader.read(new))
    for repository in repositories:
        _mark_committed(files, repository, folders)
    begun = items_begun(earlier.state)
    texts = [text for _, text in said]
    changed = {file.path for file in files if file.is_changed}  # their work, not the task
    tasks = task_texts(new, earlier.tasks, texts, begun)
    return WorkRecord(
        said=said,
        typed=_typed_parts(said, events, earlier),
        events=events,
        views=tuple(path_shown_by(event, folders) for event in events),
        tasks=tuple(
            now
            for task in tasks
            if lists_steps(task) or normalise_path(task.item, folders) not in changed
            if not _is_gone(task, reader, folders, on_disk)
            if not is_done(now := _as_it_is_now(task, files, folders, on_disk))
        ),
        state=state.model_copy(update={"jobs": _running(path, earlier.state)}),
        failures=FailureReader(folders, earlier.failures).read(new, files),
        files=files,
        ledger=ledger,
        earlier_way=earlier.way,
        folders=tuple(folders),
        repositories=repositories,
    )


def _mark_committed(
    files: Iterable[FileState], repository: RepositoryState, folders: Sequence[str]
) -> None:
    """Mark which `files` of `repository` git has as they are."""
    root = repository.root.rstrip("/")
    dirty = {normalise_path(f"{root}/{name}", folders) for name in repository.uncommitted}
    for file in files:
        if str(Path(folders[0]) / file.path).startswith(f"{root}/"):
            has_all = repository.changed == len(repository.uncommitted)
            file.is_committed = file.path not in dirty and (has_all or file.is_committed)


def _all_said(
    events: Iterable[HistoryEvent], ledger: Ledger, earlier: Handover
) -> Iterator[tuple[str, str]]:
    """Entry id and text of all that the user said, each text where it was said last.

    What no event has was said in an earlier session; its ledger may have shortened it.
    """
    spoken: dict[str, Said] = {}
    for event in events:
        if isinstance(event, Said):
            spoken.pop(event.told, None)
            spoken[event.told] = event
    known = {form for event in spoken.values() for form in event.forms}
    for text in reversed(ledger.user_messages):
        if text not in known:
            yield earlier.said.get(_digest(text), ""), text
    for told, event in spoken.items():
        yield event.entry_id, told


def _typed_parts(
    said: Iterable[tuple[str, str]], events: Iterable[HistoryEvent], earlier: Handover
) -> dict[str, tuple[str, ...]]:
    """The typed parts of those texts in `said` that hold pastes, by text."""
    here = {event.told: event.typed for event in events if isinstance(event, Said)}
    found = ((text, here.get(text) or earlier.typed.get(_digest(text))) for _, text in said)
    return {text: typed for text, typed in found if typed}


def _as_it_is_now(
    task: TaskText, files: Iterable[FileState], folders: Sequence[str], on_disk: ReadFile | None
) -> TaskText:
    """`task` as it is now, if it is a document whose full text is known or on the disk."""
    path = normalise_path(task.item, folders)
    for file in (file for file in files if file.path == path):
        complete_file(file, on_disk)
        if file.is_whole and not file.unseen:
            return task.model_copy(update={"text": file.text})
    return task


def _is_gone(
    task: TaskText, reader: FileReader, folders: Sequence[str], on_disk: ReadFile | None
) -> bool:
    """Whether `task` is a document that was removed: by a call, by a commit, or from the disk."""
    path = normalise_path(task.item, folders)
    is_inside = is_document(path) and not path.startswith(("/", "~"))
    is_missing = is_inside and on_disk is not None and on_disk(path) is None
    return path in reader.gone or is_missing


def _running(path: Sequence[Entry], earlier: WorkState) -> dict[str, Job]:
    """The background commands still running at the end of `path`."""
    known = jobs_on(path, earlier.jobs)
    return {id: job for id, job in known.items() if not job.ending}


_CITED = re.compile(r"\((\d{1,4}(?:, ?\d{1,4})*)\)")
_CITED_CHARS = 60
_RULES_LEFT_OUT = "[{count} more rule{s} left out; recall finds them by their words]"
_ORDER = "(Oldest first. Where two of these disagree, the later one holds.)"


@dataclass(frozen=True, slots=True)
class Sections:
    """The blocks of a summary, except the way so far, which depends on the cut.

    Args:
        before_prose: Blocks before the prose.
        after_prose: Blocks after it, up to the files.
        read: Paths of files that were only read.
        modified: Paths of changed files.
        shown: The files shown.
        left_out: Number of user messages that did not fit and do not stand as rules either.
        has_all_said: Whether all user messages are there whole, apart from repetitions and fillers.
    """

    before_prose: str
    after_prose: str
    read: tuple[str, ...]
    modified: tuple[str, ...]
    shown: tuple[ShownFile, ...]
    left_out: int
    has_all_said: bool = True

    def with_files(self, files: Iterable[ShownFile]) -> "Sections":
        """The same sections with `files` as they are now."""
        shown = tuple(files)
        block = tag_blocks(("files-now", [file.text for file in shown]))
        after = "\n\n".join(part for part in (self.after_prose, block) if part)
        named = {file.path for file in shown}
        read, modified = (
            tuple(path for path in paths if path not in named)
            for paths in (self.read, self.modified)
        )
        return replace(self, after_prose=after, read=read, modified=modified, shown=shown)

    @property
    def lists(self) -> str:
        """The last blocks: the paths of files that are not shown."""
        return tag_blocks(("read-files", self.read), ("modified-files", self.modified))


@dataclass(frozen=True, slots=True)
class SectionRooms:
    """Tokens for single sections; None for their share of the space.

    Args:
        rules: For rules that are not in the messages above them.
        said: For the user's messages, as far as that is needed to leave none of them out.
        unused: For the user's messages beyond everything else.
        promised: The space of which the state of the work and failures have their shares, if a
            model was told what stays.
        staying: Entries of the user's messages that it was told of, and whether they stay whole.
        are_noted: A model's new notes and choice cover the task, the rules and files.
    """

    rules: int | None = None
    said: int | None = None
    unused: int = 0
    promised: int | None = None
    staying: Mapping[str, bool] = field(default_factory=dict[str, bool])
    are_noted: bool = False


BY_SHARE = SectionRooms()


def make_sections(
    record: WorkRecord,
    room_tokens: int,
    counter: TokenCounter,
    *,
    rooms: SectionRooms = BY_SHARE,
    kept: frozenset[str] = frozenset(),
    notes: str = "",
    elsewhere: str = "",
) -> Sections:
    """The sections of `record`, without the files.

    Args:
        record: What the log says about the work.
        room_tokens: Space for sections, prose and newest messages together.
        counter: Counts their tokens.
        rooms: Tokens for single sections.
        kept: Entries that stay in the context and are not repeated.
        notes: A model's notes, which may be those of an earlier compaction.
        elsewhere: Text that is in the context anyway: the way so far and the newest messages. Lines
            in it, or in an earlier section, are not repeated.
    """
    numbered = dict(enumerate(record.said, 1))
    apart = {n: one for n, one in numbered.items() if one[0] not in kept or not one[0]}
    said = list(apart.values())
    tasks = [task for task in record.named_tasks if task.entry_id not in kept]
    share = 0 if rooms.are_noted else int(room_tokens * TASK_SHARE)
    tasks_room = max(share, min(TASK_LEAST_TOKENS, 2 * share))
    task = task_blocks(tasks, tasks_room, counter)
    unused = tasks_room - counter.count_text("\n".join(task))
    spoken_room = int(room_tokens * PERSON_SHARE) + max(unused, 0)
    most = int(room_tokens * SAID_MOST_SHARE) if rooms.said is None else rooms.said
    needed = min(least_tokens(said, counter, rooms.staying), most)
    borrowed = max(needed - spoken_room, 0)
    room_tokens -= borrowed
    most_said = max(needed, spoken_room) + rooms.unused
    spoken = choose_messages(said, most_said, counter, typed=record.typed, staying=rooms.staying)
    fixed = room_tokens if rooms.promised is None else rooms.promised
    state = _state_lines(record, int(fixed * STATE_SHARE), counter)
    known = " ".join("\n".join((elsewhere, *spoken.lines, *task, *state)).split())
    failures = failures_that_fit(
        [one for one in record.failures if one.entry_id not in kept],
        notes=notes,
        elsewhere=known,
        room_tokens=int(fixed * (NOTED_FAILURES_SHARE if rooms.are_noted else FAILURES_SHARE)),
        counter=counter,
        is_brief=rooms.are_noted,
    )
    chars = max(int(room_tokens * LISTS_SHARE * 4), min(_LEAST_LIST_CHARS, room_tokens))
    was_read = tuple(filter(is_of_the_work, record.ledger.read_files))
    was_modified = tuple(filter(is_of_the_work, record.ledger.modified_files))
    read, modified = cap_lists(FileOperations(was_read, was_modified), chars)
    rules_room = int(room_tokens * RULES_SHARE) if rooms.rules is None else rooms.rules
    rules_room = max(rules_room - borrowed, 0)
    below = [text for id, text in record.said if id in kept]
    pins = (
        [] if rooms.are_noted else _rules_beside(spoken.lines, below, record, rules_room, counter)
    )
    before = tag_blocks(
        (
            "said-by-the-person",
            [
                *_number_messages(spoken, tuple(apart), record.folders),
                *_cited_below(notes, {n: numbered[n][1] for n in numbered.keys() - apart.keys()}),
            ],
        ),
        ("pinned-constraints", pins),
        ("task-text", task),
    )
    after = tag_blocks(
        ("work-state", state),
        ("failures", failures),
    )
    return Sections(
        before_prose=before,
        after_prose=after,
        read=() if rooms.are_noted else tuple(read),
        modified=() if rooms.are_noted else tuple(modified),
        shown=(),
        left_out=_missing(spoken.left_out, pins),
        has_all_said=spoken.is_whole,
    )


def way_block(
    record: WorkRecord,
    before: frozenset[str],
    room_tokens: int,
    counter: TokenCounter,
    shown: Sequence[ShownFile] = (),
) -> tuple[str, tuple[str, ...]]:
    """The block of the way so far, from the entries `before` the cut, and its lines.

    Reading a file that is `shown` gets no line.
    """
    paths = {file.path for file in shown}
    events = [
        event
        for event, viewed in zip(record.events, record.views, strict=True)
        if event.entry_id in before and viewed not in paths
    ]
    lines = way_so_far(events, record.earlier_way, room_tokens, counter, record.folders)
    return tag_blocks(("way-so-far", lines)), tuple(lines)


def handover_of(
    record: WorkRecord,
    sections: Sections,
    way: tuple[str, ...],
    through: str,
    covered: frozenset[str] = frozenset(),
) -> Handover:
    """The parts of `record` that the next session needs beside the ledger.

    Args:
        record: What the log says about the work.
        sections: The sections of the summary.
        way: The lines of the way so far.
        through: The last entry that they cover.
        covered: Files of which the summary shows chosen parts.
    """
    known = set(record.ledger.user_messages)
    recorded = [
        (entry_id, as_recorded(text, typed), typed)
        for entry_id, text in record.said
        for typed in (record.typed.get(text, ()),)
    ]
    return Handover(
        through=through,
        said={_digest(text): entry_id for entry_id, text, _ in recorded if text in known},
        typed={_digest(text): typed for _, text, typed in recorded if typed and text in known},
        tasks=record.tasks[-8:],
        state=record.state,
        failures=record.failures,
        files=files_for_later(record.files, {file.path for file in sections.shown} | covered),
        way=way,
    )


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _state_lines(record: WorkRecord, room: int, counter: TokenCounter) -> list[str]:
    """The lines on the state of the work; open items have priority, then what was done last.

    If all is done, its commits tell.
    """
    state = record.state
    open_lines = in_progress_lines(state) + [f"- [ ] {line}" for line in pending_lines(state)]
    checks = repository_lines(state, record.repositories, record.folders)
    checks += check_lines(state) + _uncommitted_line(record)
    room -= sum(counter.count_text(line) + 1 for line in (*open_lines, *checks))
    finished = commit_lines(state, record.repositories)
    if open_lines or not finished:
        finished = lines_of_done(state) + finished
    done = _newest_that_fit(finished, max(room, 0), counter)
    return [*done, *open_lines, *checks]


def _rules_beside(
    spoken: Sequence[str],
    below: Sequence[str],
    record: WorkRecord,
    room: int,
    counter: TokenCounter,
) -> list[str]:
    """The rules that no line in `spoken` has, oldest first, and how many of them do not fit.

    A preference in the messages `below` stays with what was said after it.
    """
    said, later = "\n".join(spoken), "\n".join(below)
    pins = [pin for pin in record.ledger.pinned if pin not in said]
    pins = [pin for pin in pins if is_strong(pin) or pin not in later]
    fitting = fit_pins(pins, room, counter.count_text)
    missing = len(pins) - len(fitting)
    mark = _RULES_LEFT_OUT.format(count=missing, s="s" if missing > 1 else "")
    return [*([mark] if missing else ()), *(f"- {pin}" for pin in reversed(fitting))]


def _missing(left_out: Sequence[str], pins: Sequence[str]) -> int:
    """How many of the messages `left_out` do not stand word for word as a rule."""
    rules = "\n".join(pins)
    return sum(text.strip() not in rules for text in left_out)


def _uncommitted_line(record: WorkRecord) -> list[str]:
    """One line with the files edited since the last commit, unless git was asked or has none."""
    changed = record.uncommitted
    if not changed or record.repositories:
        return []
    more = len(changed) - _MOST_UNCOMMITTED
    paths = ", ".join(changed[:_MOST_UNCOMMITTED]) + (f" and {more} more" if more > 0 else "")
    steps = [event.output for event in record.events if isinstance(event, Done)]
    since = takewhile(lambda output: not is_commit(output), reversed(steps))
    least = "at least " if any(may_change_others(one.action.command) for one in since) else ""
    return [f"- edited since the last commit, as of the log: {least}{paths}"]


def _newest_that_fit(lines: Sequence[str], room: int, counter: TokenCounter) -> list[str]:
    """The last of `lines` that fit into `room` tokens, in their order."""
    return those_that_fit(reversed(lines), room, lambda one: counter.count_text(one) + 3)[::-1]


def _number_messages(spoken: Spoken, numbers: Sequence[int], folders: Sequence[str]) -> list[str]:
    """One line a message; its number among all messages does not depend on what is left out."""
    shown = [with_short_paths(text, folders) for text in spoken.lines]
    numbered = zip(spoken.numbers, shown, strict=True)
    lines = [f"({numbers[at - 1]}) {text}" if at else text for at, text in numbered]
    return [_ORDER, *lines] if len(lines) > 2 else lines


def _cited_below(notes: str, below: Mapping[int, str]) -> Iterator[str]:
    """One line for each message `below` the summary, by number, whose number `notes` cite."""
    cited = {int(number) for group in _CITED.findall(notes) for number in group.split(",")}
    for number in sorted(cited & below.keys()):
        yield f'({number}) "{one_line(below[number], _CITED_CHARS)}" (whole in the messages below)'
