"""Divides the space of a compaction among sections, chosen texts and the newest messages."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from agent_tui.compaction.conversation import Conversation, folders_of, summary_tokens
from agent_tui.compaction.curation.answer import Pick
from agent_tui.compaction.curation.excerpts import Kept, earlier_pieces, keep_excerpts
from agent_tui.compaction.curation.since import files_ahead, older_than_notes
from agent_tui.compaction.plan import CompactionPlan, choose_cut, plan_cut
from agent_tui.compaction.request import CompactionRequest
from agent_tui.compaction.sections.compose import (
    FILES_SHARE,
    KEPT_SHARE,
    LEAST_KEPT,
    NEWEST_SHARE,
    RULES_SHARE,
    SAID_MOST_SHARE,
    STEP_SHARE,
    STEPS_SHARE,
    TAIL_SHARE,
    WAY_SHARE,
    SectionRooms,
    Sections,
    WorkRecord,
    make_sections,
    way_block,
)
from agent_tui.compaction.sections.files import ShownFile, choose_files
from agent_tui.compaction.sections.history import split_after
from agent_tui.compaction.sections.tail import Tail
from agent_tui.compaction.summary.templates import template_named
from agent_tui.compaction.transcript import UNLIMITED, message_texts
from agent_tui.sessions.entries import MessageEntry
from agent_tui.sessions.replay.marks import read_marks
from agent_tui.tokens import TokenCounter

Way: TypeAlias = tuple[str, tuple[str, ...]]
"""The block of the way so far, and its lines."""

_LOOKED_AT = 2
"""Of the messages that fill the space this often, what is spent is left out."""

_LEAST_SECTIONS_SHARE = 0.4
_UNCHOSEN_SHARE = 0.5
"""A choice that leaves more of the space says too little about the conversation."""


class SpacePlanner:
    """Divides the space among sections, the way so far and the newest messages."""

    def __init__(
        self,
        request: CompactionRequest,
        conversation: Conversation,
        room: int,
        said_room: int,
        notes: str,
        brought: tuple[Pick, ...],
        window: int,
        counter: TokenCounter,
    ) -> None:
        self._said_room = said_room
        self._promised_room = conversation.room
        self._notes = notes
        self._brought = brought
        self._request = request
        self._path = conversation.path
        self._live = conversation.live
        self._summary = conversation.summary
        choice = request.selection.choice
        self._has_notes = choice is not None and bool(choice.notes and choice.picks)
        self._record = record = conversation.record
        self._room = room
        self._counter = counter
        self._folders = folders_of(request)
        marks = read_marks(self._path)
        self._dropped = marks.dropped | marks.emptied
        self._tasks = frozenset(task.entry_id for task in record.tasks)
        self._editor = conversation.editor
        self._sections_room = room
        self._window = window
        self.older = ""
        self._offered: dict[str, frozenset[str]] = {}
        if choice is not None and self._has_notes:
            seen = frozenset(entry.id for entry in split_after(self._path, choice.through)[0])
            files = choice.promise.files
            entries = seen - {piece.entry_id for piece in files}
            self._offered = dict.fromkeys((piece.path for piece in files), entries)
        self._lasting: tuple[Pick, ...] = ()
        self._unused = 0
        self.kept = Kept()

    def plan(self) -> tuple[CompactionPlan, Sections, Way]:
        """The cut, the sections, and the way so far.

        The newest messages get their share first. The sections are sized beside them. What the
        sections leave takes in earlier messages, and the sections then omit what those show. The
        newest messages repeat neither files nor chosen lines.
        """
        plan, shown = self._plan_once(is_chosen_once=True)
        if not self.kept.shows(shown):  # the newest messages refer to it
            plan, _ = self._plan_once(is_chosen_once=False)
        return plan

    def _plan_once(
        self, *, is_chosen_once: bool
    ) -> tuple[tuple[CompactionPlan, Sections, Way], Kept]:
        """A plan, and the chosen lines that its newest messages may refer to."""
        self._unused, self.kept = 0, Kept()
        released = {(piece.label, piece.lines) for piece in self._request.selection.released}
        self._lasting = tuple(
            Pick(piece, is_lasting=True)
            for piece in earlier_pieces(self._summary, self._counter)
            if piece.is_lasting and (piece.label, piece.lines) not in released
        )
        tail = self._tail(())
        newest = sum(tail.tokens[self._live.cuts[-1] :]) if self._live.cuts else 0
        self._sections_room = sections_room_of(self._room, max(newest, self._since_choice()))
        cut = choose_cut(self._live, tail.tokens, int(self._room * TAIL_SHARE), self._window)
        sections, way = self._before_cut(cut, tail)
        files = sections.shown
        kept = self.kept if is_chosen_once else Kept()
        tail = self._tail((*kept.shown, *files))
        if sections.left_out or self.kept.is_cut:
            self._unused = self._left(sections, way, tail, cut)
            sections, way = self._before_cut(cut, tail, files)
            kept = self.kept if is_chosen_once else Kept()
            tail = self._tail((*kept.shown, *files))
        for share in (STEPS_SHARE, 1) if self._for_tail(sections, way, tail, cut) else ():
            left = int(self._left(sections, way, tail, cut) * share)
            while (more := self._fill(cut, tail, left))[0] < cut:
                cut, tail = more
                sections, way = self._before_cut(cut, tail, files, way)
                left = self._left(sections, way, tail, cut) if share == 1 else 0
            left, most = self._left(sections, way, tail, cut), int(self._room * STEP_SHARE)
            tail = self._editor.restore(self._live, tail, cut, left, most)
            sections, way = self._before_cut(cut, tail, files, way)
        if (left := self._left(sections, way, tail, cut)) and not sections.has_all_said:
            self._unused += left
            sections, way = self._before_cut(cut, tail, files)
        self._kept_below(cut, tail)
        plan = plan_cut(self._path, self._live, cut, tail.edits, tail.tokens)
        return (plan, sections, way), kept

    def _tail(self, files: Sequence[ShownFile]) -> Tail:
        """The newest messages beside `files`, the newest exchange within its share."""
        shown = {file.path: file for file in files}
        near = _LOOKED_AT * self._room
        tail = self._editor.lines_for_what_stands_elsewhere(
            self._live, shown, near, self._record.files, self._offered
        )
        tail = self._editor.leave_out_spent(self._live, tail, near)
        if not self._live.cuts:
            return tail
        most = int(self._room * NEWEST_SHARE)
        return self._editor.shorten_newest(
            self._live, tail, self._live.cuts[-1], most, self._request.on_disk
        )

    def _left(self, sections: Sections, way: Way, tail: Tail, cut: int) -> int:
        """Tokens that neither the sections nor the messages from `cut` on use."""
        return max(self._room - self._size(sections, way[0]) - sum(tail.tokens[cut:]), 0)

    def _for_tail(self, sections: Sections, way: Way, tail: Tail, cut: int) -> int:
        """Tokens that earlier messages may take: beside a choice, none.

        The model was told which messages stay, and said what it needs of the others, unless it
        chose next to nothing.
        """
        left = self._left(sections, way, tail, cut)
        is_chosen = self._has_notes and left <= int(self._room * _UNCHOSEN_SHARE)
        return 0 if is_chosen else left

    def _before_cut(
        self,
        cut: int,
        tail: Tail,
        files: tuple[ShownFile, ...] | None = None,
        earlier: Way | None = None,
    ) -> tuple[Sections, Way]:
        """The sections and the way so far, with `files`, or with those that fit.

        Beside an `earlier` way, which told of more steps, it takes no more space.
        """
        way_room = 0 if self._has_notes else int(self._sections_room * WAY_SHARE)
        if earlier is not None:
            way_room = min(way_room, self._counter.count_text(earlier[0]))
        before = self._before(cut)
        way = way_block(self._record, before, way_room, self._counter, files or ())
        return self._sections(cut, tail, way[0], files), way

    def _since_choice(self) -> int:
        """Tokens of the entries that the model had not seen when it chose."""
        choice, live = self._request.selection.choice, self._live
        seen, _ = split_after(live.entries, choice.through if choice is not None else "")
        return sum(live.tokens[len(seen) :])

    def _fill(self, cut: int, tail: Tail, left: int) -> tuple[int, Tail]:
        """Move the cut back to earlier steps while they fit, without a choice also shortened."""
        for place in sorted((place for place in self._live.cuts if place < cut), reverse=True):
            whole = sum(tail.tokens[place:cut])
            if whole > left and self._has_notes:
                break
            most = left if self._has_notes else min(left, int(self._room * STEP_SHARE))
            if whole > most:
                filled = self._editor.fill(self._live, tail, place, cut, most, self._tasks)
                if (whole := sum(filled.tokens[place:cut])) > most:
                    break
                tail = filled
            left -= whole
            cut = place
        return cut, tail

    def _sections(
        self, cut: int, tail: Tail, way: str, files: tuple[ShownFile, ...] | None
    ) -> Sections:
        request, choice, room = self._request, self._request.selection.choice, self._sections_room
        kept = self._kept_below(cut, tail)
        chosen = choice.picks if choice is not None else ()
        entries = self._live.entries[cut:]
        said = [e.message for e in entries if isinstance(e, MessageEntry) and e.id in kept]
        wanted = (*self._brought, *self._lasting, *request.selection.marked, *chosen)
        picks = [pick for pick in wanted if pick.piece.entry_id not in self._dropped]
        messages = message_texts(said, UNLIMITED)
        rooms = self._rooms
        sections = make_sections(
            self._record_without(kept),
            room,
            self._counter,
            rooms=rooms,
            kept=kept,
            notes=self._notes,
            elsewhere="\n".join((way, *messages)),
        )
        self.kept = Kept()
        left = int(room * (1 - TAIL_SHARE)) + rooms.unused - self._size(sections, way)
        needed = tail.files_to_show(entries)
        if picks:
            least, most = (int(room * share) for share in (LEAST_KEPT, KEPT_SHARE))
            self.kept = keep_excerpts(
                picks,
                staying=kept,
                files=self._record.files,
                on_disk=request.on_disk,
                room_tokens=max(min(left, most), least),
                counter=self._counter,
                shown=[file for file in files or () if file.path in needed],
                messages="\n".join(messages),
            )
            left -= self._counter.count_text(self.kept.text)
        if files is None:
            elsewhere = self.kept.paths | self._record.documents_in(sections.before_prose)
            known = [file for file in self._record.files if file.path not in elsewhere]
            if choice is not None and self._has_notes:
                template = template_named(request.settings.template)
                known = files_ahead(known, choice, self._notes, self._path, template, self._folders)
            elif choice is not None:
                known.sort(key=lambda file: file.is_committed)
            files_room = max(min(left, int(room * FILES_SHARE)), 0)
            verbatim = self._editor.verbatim(self._live)
            files = tuple(
                choose_files(
                    known,
                    files_room,
                    self._counter,
                    request.on_disk,
                    verbatim=verbatim,
                    named=self._record.newest_texts,
                )
            )
        return sections.with_files(
            file for file in files if file.path not in self.kept.paths or file.path in needed
        )

    def _kept_below(self, cut: int, tail: Tail) -> frozenset[str]:
        """The entries that stay as written; notes which of them are older than the notes."""
        choice, record = self._request.selection.choice, self._record
        kept = self._editor.entries_as_written(self._live, tail, cut)
        kept |= {entry.id for entry in self._live.pinned}
        if choice is not None:
            views = zip(record.events, record.views, strict=True)
            viewed = {view for event, view in views if event.entry_id in kept}
            doubtful = [file for file in record.files if file.path in viewed and file.doubt]
            self.older = older_than_notes(choice, self._path, record.events, doubtful)
        return kept

    def _record_without(self, kept: frozenset[str]) -> WorkRecord:
        """The record; for a reader without the recall tool, without ids and what is `kept`."""
        record = self._record
        if self._request.occasion != "limit":
            return record
        said = tuple(("", text) for key, text in record.said if key not in kept or not key)
        return replace(record, said=said)

    @property
    def _rooms(self) -> SectionRooms:
        """Rules and the user's messages have shares of the target.

        However small the conversation itself is, it is not the reason to leave one out.
        """
        room = max(self._sections_room, self._said_room)
        rules, said = (int(room * share) for share in (RULES_SHARE, SAID_MOST_SHARE))
        return SectionRooms(
            rules=rules,
            said=said,
            unused=self._unused,
            promised=self._promised_room if self._request.selection.choice is not None else None,
            staying=self._request.selection.promise.said,
            are_noted=self._has_notes,
        )

    def _before(self, cut: int) -> frozenset[str]:
        """The entries that the way so far covers: the path up to the cut, without pinned ones."""
        kept = {entry.id for entry in (*self._live.pinned, *self._live.entries[cut:])}
        return frozenset(entry.id for entry in self._path if entry.id not in kept)

    def _size(self, sections: Sections, way: str) -> int:
        """The size of the summary in tokens."""
        parts = (sections.before_prose, self.kept.text, sections.after_prose, way, sections.lists)
        size = summary_tokens("\n\n".join((*parts, self.older)), self._counter)
        return size + self._counter.count_text(self._notes)


def sections_room_of(room: int, newest: int) -> int:
    """The space for sizing sections: less than `room` if the newest exchange is large.

    `newest` is the size of that exchange, which always stays.
    """
    left = int((room - newest) / (1 - TAIL_SHARE))
    return min(room, max(left, int(room * _LEAST_SECTIONS_SHARE)))
