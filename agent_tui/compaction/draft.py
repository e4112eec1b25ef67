"""Everything about a compaction that is decided before a model is asked; pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from agent_tui.compaction.curation.answer import KeepChoice, Pick, Proof, prove
from agent_tui.compaction.curation.excerpts import Kept, earlier_pieces, keep_excerpts
from agent_tui.compaction.curation.pieces import Piece
from agent_tui.compaction.curation.since import notes_now, older_than_notes
from agent_tui.compaction.ledger.build import build_ledger, earlier_ledger, entries_to_record
from agent_tui.compaction.plan import (
    CompactionPlan,
    LiveConversation,
    choose_cut,
    plan_cut,
    previous_summary,
    read_live,
)
from agent_tui.compaction.request import CompactionRequest
from agent_tui.compaction.sections.compose import (
    FILES_SHARE,
    KEPT_SHARE,
    LEAST_KEPT,
    NEWEST_SHARE,
    RULES_SHARE,
    SAID_MOST_SHARE,
    STEP_SHARE,
    TAIL_SHARE,
    WAY_SHARE,
    SectionRooms,
    Sections,
    WorkRecord,
    handover_of,
    make_sections,
    read_work,
    way_block,
)
from agent_tui.compaction.sections.files import ShownFile, choose_files, complete_file
from agent_tui.compaction.sections.tail import Tail, TailEditor
from agent_tui.compaction.summary.fact_blocks import without_fact_blocks
from agent_tui.compaction.summary.templates import earlier_notes, template_named
from agent_tui.compaction.tiers.model import Unit
from agent_tui.compaction.tiers.units import batch_id, read_units
from agent_tui.compaction.transcript import UNLIMITED, message_texts
from agent_tui.errors import NothingToCompactError, TargetTooSmallError
from agent_tui.messages import UserMessage
from agent_tui.sessions.context import without_dropped, wrap_summary
from agent_tui.sessions.entries import Entry, Handover, Ledger, MessageEntry
from agent_tui.sessions.replay.changes import in_force
from agent_tui.sessions.replay.marks import read_marks
from agent_tui.tokens import TokenCounter

_EARLIER_SHARE = 0.10
"""Share for a model's notes of an earlier compaction, if no model writes new ones."""

_LEAST_GAIN_TOKENS = 150
"""Least saving beside a model's notes; asking one for less is not worth it."""

_FILLER_LINE_TOKENS = 3
_LEAST_ROOM_TOKENS = 300
_LEAST_STEP_TOKENS = 50
_LEAST_SECTIONS_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class CompactionDraft:
    """A compaction that is not written yet. Sizes are in tokens.

    Args:
        plan: The cut and the entries that stay.
        ledger: Facts as of the end of the conversation.
        before_notes: The blocks that code puts before a model's notes.
        notes: A model's notes for this compaction, else what still holds of earlier ones.
        after_notes: The blocks that code puts after them.
        handover: What a session that continues from here needs beside the ledger.
        replaced_tokens: Size of what is removed, including the previous summary.
        kept: The pieces to keep word for word.
        left_out: Number of the user's messages that are nowhere in the context.
    """

    plan: CompactionPlan
    ledger: Ledger
    before_notes: str
    notes: str
    after_notes: str
    handover: Handover
    replaced_tokens: int
    kept: Kept = field(default_factory=Kept)
    left_out: int = 0

    @property
    def summary(self) -> str:
        """The text that replaces the removed messages."""
        parts = (self.before_notes, self.notes, self.kept.text, self.after_notes)
        return "\n\n".join(part for part in parts if part)

    def tokens_before(self, request: CompactionRequest) -> int:
        """Estimated size of the next request without the compaction."""
        return request.sizes.overhead + self.plan.kept_tokens_now + self.replaced_tokens

    def tokens_after(self, request: CompactionRequest, counter: TokenCounter) -> int:
        """Estimated size of the next request after the compaction."""
        kept = request.sizes.overhead + self.plan.kept_tokens
        return kept + summary_tokens(self.summary, counter)


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the path of a request says.

    Args:
        path: Its entries in force.
        live: The part that a compaction can change.
        units: The messages of the context that can be changed.
        summary: The summary in force; may be empty.
        replaced_tokens: Size of that summary and of messages marked to stay until now.
        room: Target tokens of the result, see `room_of`.
        record: The work that it tells of, with the facts at its end.
    """

    path: Sequence[Entry]
    live: LiveConversation
    units: tuple[Unit, ...]
    summary: str
    replaced_tokens: int
    room: int
    record: WorkRecord


def read_conversation(request: CompactionRequest, counter: TokenCounter) -> Conversation:
    """Read the path of `request`."""
    path = in_force(request.path)
    live = read_live(path, counter)
    summary = previous_summary(path, request.previous)
    replaced = live.leaving_tokens + (summary_tokens(summary, counter) if summary else 0)
    units = read_units(
        path,
        carryover=request.previous,
        counter=counter,
        settings=request.settings,
        window=request.sizes.window,
    )
    return Conversation(
        path=path,
        live=live,
        units=units.items,
        summary=summary,
        replaced_tokens=replaced,
        room=room_of(request, sum(live.tokens) + replaced, live.pinned_tokens),
        record=read_work(
            without_dropped(path, read_marks(path)),
            ledger_of(request),
            request.previous.handover if request.previous is not None else None,
            folders_of(request),
            request.on_disk,
            request.repositories,
        ),
    )


def make_draft(request: CompactionRequest, *, counter: TokenCounter) -> CompactionDraft:
    """Make the draft of the compaction for `request`.

    Code first writes the sections, each within its share of the target; the newest messages get the
    rest, at least `TAIL_SHARE` of the target. If the target is a limit, the draft is made again in
    less space until it fits.

    Raises:
        NothingToCompactError: A summary would gain nothing.
        TargetTooSmallError: The target is a limit, and less than the smallest draft.
    """
    conversation = read_conversation(request, counter)
    live, summary = conversation.live, conversation.summary
    is_exchange = live.is_exchange or (summary and "assistant" in live.roles)
    if (
        not is_exchange
        and request.occasion != "limit"
        and sum(live.tokens) <= request.sizes.window // 2
    ):
        raise NothingToCompactError(
            "Nothing to compact: less than one exchange since the start or the last compaction."
        )
    draft = _draft_of(request, conversation, counter)
    if request.occasion == "limit":
        return draft
    gained = draft.tokens_before(request) - draft.tokens_after(request, counter)
    beside_notes = gained + counter.count_text(draft.notes)
    if gained <= 0 or beside_notes < _LEAST_GAIN_TOKENS:
        raise NothingToCompactError(
            "Nothing to compact: the conversation is already smaller than a summary of it."
        )
    return draft


def _draft_of(
    request: CompactionRequest, conversation: Conversation, counter: TokenCounter
) -> CompactionDraft:
    """The draft for `request`, whatever it gains."""
    live, summary, whole = conversation.live, conversation.summary, conversation.room
    path, record = conversation.path, conversation.record

    def draft_within(room: int, window: int) -> CompactionDraft:
        notes = _notes(request, summary, room, counter)
        said_room = room if request.occasion == "limit" else max(whole, _target(request))
        planner = _Planner(request, conversation, room, said_room, notes, window, counter)
        plan, sections, (way, way_lines) = planner.plan()
        after = (sections.after_prose, way, sections.lists, planner.older)
        through = path[-1].id if path else ""
        return CompactionDraft(
            plan=plan,
            ledger=record.ledger,
            before_notes=sections.before_prose,
            notes=notes,
            after_notes="\n\n".join(filter(None, after)),
            handover=handover_of(record, sections, way_lines, through, planner.kept.paths),
            replaced_tokens=plan.summarised_tokens + conversation.replaced_tokens,
            kept=planner.kept,
            left_out=sections.left_out,
        )

    is_unanswered = bool(live.cuts) and live.roles[live.cuts[-1]] == "user"
    has_newest = request.occasion != "limit"
    ways = [has_newest, False] if request.wants_summary and is_unanswered else [has_newest]
    return _fit(request, draft_within, whole, live.pinned_tokens, counter, ways)


def _fit(
    request: CompactionRequest,
    draft_within: Callable[[int, int], CompactionDraft],
    whole: int,
    pinned: int,
    counter: TokenCounter,
    ways: Sequence[bool],
) -> CompactionDraft:
    """The first draft that is within the target, made in less space each time.

    If not even the draft without any space is, the first one, which keeps the most.

    Args:
        request: What asks for it.
        draft_within: Makes a draft in so many tokens; how much of the window its newest exchange
            may take half of.
        whole: The tokens to begin with.
        pinned: Tokens of pinned texts.
        counter: Counts the tokens of drafts.
        ways: Tried in turn: whether the newest exchange stays though it takes more than the target.
            If it does not, a pasted message without a reply is cut like all others.

    Raises:
        TargetTooSmallError: There is no such draft, and the target is a limit.
    """
    is_limit = request.occasion == "limit"
    within = request.sizes.overhead + pinned + whole
    target = request.sizes.target if is_limit else max(within, _target(request))
    size, drafts = 0, list[CompactionDraft]()
    for has_newest in ways:
        room, step = whole, 0
        while True:
            window = request.sizes.window
            window = window if has_newest else min(window, 2 * room)
            drafts.append(draft_within(room, window))
            size = drafts[-1].tokens_after(request, counter)
            if size <= target:
                return drafts[-1]
            if not room:
                break
            step = max(size - target, 2 * step, _LEAST_STEP_TOKENS)
            room = room - step if room - step >= _LEAST_STEP_TOKENS else 0
    if is_limit:
        raise TargetTooSmallError(request.sizes.target, min(size, request.sizes.used_estimate))
    return drafts[0]


def _choosing(request: CompactionRequest, choice: KeepChoice) -> CompactionRequest:
    return replace(request, selection=replace(request.selection, choice=choice))


def draft_beside(
    request: CompactionRequest,
    conversation: Conversation,
    notes_tokens: int,
    texts_tokens: int,
    *,
    counter: TokenCounter,
) -> CompactionDraft:
    """The draft as it will be beside notes and chosen texts of these sizes."""
    through = conversation.path[-1].id
    lines = tuple(f"-{number}" for number in range(max(texts_tokens, 0) // _FILLER_LINE_TOKENS + 1))
    filler = Pick(Piece(0, "", "kept", "", lines))
    choice = KeepChoice("- " * max(notes_tokens, 1), (filler,), request.model, through)
    return _draft_of(_choosing(request, choice), conversation, counter)


def draft_choice(
    request: CompactionRequest, choice: KeepChoice, *, counter: TokenCounter
) -> tuple[CompactionDraft, Proof]:
    """The draft with the pieces of `choice`, and with what later steps would have missed."""
    template = template_named(request.settings.template)
    notes = notes_now(choice, in_force(request.path), template, folders_of(request))
    choice = replace(choice, notes=notes)
    draft = make_draft(_choosing(request, choice), counter=counter)
    proof = _prove(request, choice, draft)
    if proof.brought_back:
        choice = replace(choice, picks=(*proof.brought_back, *choice.picks))
        draft = make_draft(_choosing(request, choice), counter=counter)
    return draft, proof


def _prove(request: CompactionRequest, choice: KeepChoice, draft: CompactionDraft) -> Proof:
    """Check whether `draft`, made from `choice`, would have sufficed for the steps since."""
    path = in_force(request.path)
    ids = [entry.id for entry in path]
    seen = set(ids[: ids.index(choice.through) + 1] if choice.through in ids else ())
    edited = {edit.target_id for edit in draft.plan.edits}
    kept = (
        entry.message
        for entry in draft.plan.kept_entries
        if isinstance(entry, MessageEntry) and entry.id in seen - edited
    )
    shown = "\n".join((draft.summary, *message_texts(kept, UNLIMITED)))
    return prove(path, choice.through, shown, folders_of(request))


class _Planner:
    """Divides the space among sections, the way so far and the newest messages."""

    def __init__(
        self,
        request: CompactionRequest,
        conversation: Conversation,
        room: int,
        said_room: int,
        notes: str,
        window: int,
        counter: TokenCounter,
    ) -> None:
        self._said_room = said_room
        self._notes = notes
        self._request = request
        self._path = conversation.path
        self._live = conversation.live
        self._summary = conversation.summary
        choice = request.selection.choice
        self._has_notes = choice is not None and bool(choice.notes and choice.picks)
        self._record = record = self._with_failures_of_now(conversation.record)
        self._room = room
        self._counter = counter
        self._folders = folders_of(request)
        marks = read_marks(self._path)
        self._dropped = marks.dropped | marks.emptied
        self._tasks = frozenset(task.entry_id for task in record.tasks)
        for file in record.files:
            if file.is_changed:
                complete_file(file, request.on_disk)
        self._editor = TailEditor(conversation.units, batch_id(self._path, "kept"), counter)
        self._sections_room = room
        self._window = window
        self.older = older_than_notes(choice, self._path) if choice is not None else ""
        self._lasting: tuple[Pick, ...] = ()
        self._unused = 0
        self.kept = Kept()

    def plan(self) -> tuple[CompactionPlan, Sections, tuple[str, tuple[str, ...]]]:
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
    ) -> tuple[tuple[CompactionPlan, Sections, tuple[str, tuple[str, ...]]], Kept]:
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
        while (more := self._fill(cut, tail, self._left(sections, way, tail, cut)))[0] < cut:
            cut, tail = more
            sections, way = self._before_cut(cut, tail, files)
        if (left := self._left(sections, way, tail, cut)) and not sections.has_all_said:
            self._unused += left
            sections, way = self._before_cut(cut, tail, files)
        plan = plan_cut(self._path, self._live, cut, tail.edits, tail.tokens, self._summary)
        return (plan, sections, way), kept

    def _tail(self, files: Sequence[ShownFile]) -> Tail:
        """The newest messages beside `files`, the newest exchange within its share."""
        shown = {file.path: file for file in files}
        tail = self._editor.lines_for_what_stands_elsewhere(
            self._live, shown, self._folders, self._room, self._record.files, self._written
        )
        if not self._live.cuts:
            return tail
        most = int(self._room * NEWEST_SHARE)
        return self._editor.shorten_newest(
            self._live, tail, self._live.cuts[-1], most, self._request.on_disk
        )

    @property
    def _written(self) -> frozenset[str]:
        """The changed files other than the newest one, if a model chose what it needs of them."""
        changed = [file.path for file in self._record.files if file.is_changed]
        return frozenset(changed[1:] if self._has_notes else ())

    def _left(
        self, sections: Sections, way: tuple[str, tuple[str, ...]], tail: Tail, cut: int
    ) -> int:
        """Tokens that neither the sections nor the messages from `cut` on use."""
        return max(self._room - self._size(sections, way[0]) - sum(tail.tokens[cut:]), 0)

    def _before_cut(
        self, cut: int, tail: Tail, files: tuple[ShownFile, ...] | None = None
    ) -> tuple[Sections, tuple[str, tuple[str, ...]]]:
        """The sections and the way so far, with `files`, or with those that fit."""
        way_room = 0 if self._has_notes else int(self._sections_room * WAY_SHARE)
        before = self._before(cut)
        way = way_block(self._record, before, way_room, self._counter, files or ())
        return self._sections(cut, tail, way[0], files), way

    def _since_choice(self) -> int:
        """Tokens of the entries that the model had not seen when it chose."""
        choice, live = self._request.selection.choice, self._live
        ids = [entry.id for entry in live.entries]
        if choice is None or choice.through not in ids:
            return 0
        return sum(live.tokens[ids.index(choice.through) + 1 :])

    def _fill(self, cut: int, tail: Tail, left: int) -> tuple[int, Tail]:
        """Move the cut back to earlier steps, shortened if they are long, while they fit."""
        for place in sorted((place for place in self._live.cuts if place < cut), reverse=True):
            whole = sum(tail.tokens[place:cut])
            if whole > left:
                most = min(left, int(self._room * STEP_SHARE))
                filled = self._editor.fill(self._live, tail, place, cut, most, self._tasks)
                if filled is None:
                    break
                tail = filled
            left -= sum(tail.tokens[place:cut])
            cut = place
        return cut, tail

    def _sections(
        self,
        cut: int,
        tail: Tail,
        way: str,
        files: tuple[ShownFile, ...] | None,
    ) -> Sections:
        request, choice, room = self._request, self._request.selection.choice, self._sections_room
        kept = self._editor.entries_as_written(self._live, tail, cut)
        kept |= {entry.id for entry in self._live.pinned}
        chosen = choice.picks if choice is not None else ()
        entries = self._live.entries[cut:]
        said = [e.message for e in entries if isinstance(e, MessageEntry) and e.id in kept]
        wanted = (*self._lasting, *request.selection.marked, *chosen)
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
            if choice is not None:
                known.sort(key=lambda file: file.is_committed)
            files_room = max(min(left, int(room * FILES_SHARE)), 0)
            verbatim = self._editor.verbatim(self._live)
            files = tuple(
                choose_files(known, files_room, self._counter, request.on_disk, verbatim=verbatim)
            )
        return sections.with_files(
            file for file in files if file.path not in self.kept.paths or file.path in needed
        )

    def _with_failures_of_now(self, record: WorkRecord) -> WorkRecord:
        """`record` without failures that ended before an earlier compaction.

        Beside a model's notes, only those are left that are open, or came after the notes.
        """
        choice, entries = self._request.selection.choice, [e.id for e in self._live.entries]
        if self._has_notes and choice is not None and choice.through in entries:
            entries = entries[entries.index(choice.through) + 1 :]
        return replace(
            record,
            failures=tuple(
                failure
                for failure in record.failures
                if failure.entry_id in entries
                or (failure.ending == "open" and not (self._has_notes and failure.since))
            ),
        )

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
        return SectionRooms(rules=rules, said=said, unused=self._unused, are_noted=self._has_notes)

    def _before(self, cut: int) -> frozenset[str]:
        """The entries that the way so far covers: the path up to the cut, without pinned ones."""
        kept = self._entries_to_keep(cut)
        return frozenset(entry.id for entry in self._path if entry.id not in kept)

    def _entries_to_keep(self, cut: int) -> frozenset[str]:
        """The entries that stay unchanged: those from the cut on, and pinned or marked ones."""
        return frozenset(entry.id for entry in (*self._live.pinned, *self._live.entries[cut:]))

    def _size(self, sections: Sections, way: str) -> int:
        """The size of the summary in tokens."""
        parts = (sections.before_prose, self.kept.text, sections.after_prose, way, sections.lists)
        size = summary_tokens("\n\n".join((*parts, self.older)), self._counter)
        return size + self._counter.count_text(self._notes)


def room_of(request: CompactionRequest, conversation: int, pinned: int) -> int:
    """Target tokens of the context without system prompt, tools and pinned texts.

    If the conversation is already below the target, a requested compaction applies the target's
    share to it. If system prompt, tools and pinned texts take nearly all of the target, the result
    exceeds it: an eighth of the target's share of the rest of the window is the least.
    """
    settings, overhead = request.settings, request.sizes.overhead + pinned
    target = _target(request)
    room = target - overhead
    if request.occasion == "limit":
        return max(room, 0)
    if room >= conversation:
        room = int(conversation * settings.target_share(conversation))
    least = int(max(request.sizes.window - overhead, 0) * target / max(request.sizes.window, 1) / 8)
    return max(room, min(least, conversation // 2), _LEAST_ROOM_TOKENS)


def _target(request: CompactionRequest) -> int:
    return request.sizes.target or request.settings.target_tokens(request.sizes.window)


def last_exchange_tokens(live: LiveConversation) -> int:
    """Tokens of the newest exchange, which always stays."""
    return sum(live.tokens[live.cuts[-1] :]) if live.cuts else 0


def sections_room_of(room: int, newest: int) -> int:
    """The space for sizing sections: less than `room` if the newest exchange is large.

    `newest` is the size of that exchange, which always stays.
    """
    left = int((room - newest) / (1 - TAIL_SHARE))
    return min(room, max(left, int(room * _LEAST_SECTIONS_SHARE)))


def _notes(request: CompactionRequest, summary: str, room: int, counter: TokenCounter) -> str:
    """A model's notes for this compaction, or what still holds of the earlier `summary`."""
    if request.selection.choice is not None:
        return request.selection.choice.notes
    share = max(int(room * _EARLIER_SHARE), min(2 * _LEAST_GAIN_TOKENS, room // 2))
    return earlier_notes(
        without_fact_blocks(summary),
        template=template_named(request.settings.template),
        counter=counter,
        max_tokens=min(request.settings.max_summary_tokens, share),
    )


def folders_of(request: CompactionRequest) -> tuple[str, str]:
    """Paths of the working folder: as given, and without links."""
    return str(request.cwd), str(request.cwd.resolve())


def ledger_of(request: CompactionRequest) -> Ledger:
    """The facts at the end of the conversation, including earlier sessions."""
    marks = read_marks(in_force(request.path))
    return build_ledger(
        without_dropped(entries_to_record(request.path), marks),
        folders=folders_of(request),
        previous=earlier_ledger(request.path, request.previous),
    )


def summary_tokens(summary: str, counter: TokenCounter) -> int:
    """The tokens of `summary` as the model sees it."""
    return counter.count_message(UserMessage(content=wrap_summary(summary)))
