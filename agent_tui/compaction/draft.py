"""Everything about a compaction that is decided before a model is asked; pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from agent_tui.compaction.conversation import (
    Conversation,
    folders_of,
    read_conversation,
    summary_tokens,
    target_of,
    text_of,
)
from agent_tui.compaction.curation.answer import KeepChoice, Pick, Promise, Proof, prove
from agent_tui.compaction.curation.excerpts import Kept
from agent_tui.compaction.curation.pieces import Piece
from agent_tui.compaction.curation.since import notes_now
from agent_tui.compaction.plan import CompactionPlan
from agent_tui.compaction.request import CompactionRequest
from agent_tui.compaction.sections.compose import handover_of
from agent_tui.compaction.sections.file_views import plain_lines
from agent_tui.compaction.sections.history import split_after
from agent_tui.compaction.space import SpacePlanner
from agent_tui.compaction.summary.fact_blocks import without_fact_blocks
from agent_tui.compaction.summary.templates import earlier_notes, template_named
from agent_tui.compaction.transcript import UNLIMITED, escape_tags, message_texts
from agent_tui.errors import NothingToCompactError, TargetTooSmallError
from agent_tui.sessions.entries import Handover, Ledger
from agent_tui.sessions.replay.changes import in_force
from agent_tui.tokens import TokenCounter

_EARLIER_SHARE = 0.10
"""Share for a model's notes of an earlier compaction, if no model writes new ones."""

_LEAST_GAIN_TOKENS = 150
"""Least saving beside a model's notes; asking one for less is not worth it."""

_FILLER_LINE_TOKENS = 3
_LEAST_STEP_TOKENS = 50


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
        conversation: What it was made from.
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
    conversation: Conversation
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


def make_draft(request: CompactionRequest, *, counter: TokenCounter) -> CompactionDraft:
    """Make the draft of the compaction for `request`.

    Code first writes the sections, each within its share of the target; the newest messages get the
    rest, at least `TAIL_SHARE` of the target. If the target is a limit, the draft is made again in
    less space until it fits.

    Raises:
        NothingToCompactError: A summary would gain nothing.
        TargetTooSmallError: The target is a limit, and less than the smallest draft.
    """
    return _draft_that_gains(request, read_conversation(request, counter), counter)


def _draft_that_gains(
    request: CompactionRequest, conversation: Conversation, counter: TokenCounter
) -> CompactionDraft:
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
    draft = _draft_as_promised(request, conversation, counter)
    if request.occasion == "limit":
        return draft
    gained = draft.tokens_before(request) - draft.tokens_after(request, counter)
    beside_notes = gained + counter.count_text(draft.notes)
    if gained <= 0 or beside_notes < _LEAST_GAIN_TOKENS:
        raise NothingToCompactError(
            "Nothing to compact: the conversation is already smaller than a summary of it."
        )
    return draft


def _draft_as_promised(
    request: CompactionRequest, conversation: Conversation, counter: TokenCounter
) -> CompactionDraft:
    """The draft for `request` in which everything stands that was said to stay.

    What was among the newest messages when that was said may have to leave them: then it is kept
    like a chosen piece.
    """
    brought: dict[Piece, Pick] = {}
    while True:
        draft = _draft_of(request, conversation, counter, tuple(brought.values()))
        shown = frozenset(_lines_of(draft))
        missing = [
            piece
            for piece in request.selection.promise.pieces
            if piece not in brought and not shown.issuperset(_plain("\n".join(piece.lines)))
        ]
        if not missing:
            return draft
        brought |= {piece: Pick(piece, is_certain=True) for piece in missing}


def _lines_of(draft: CompactionDraft) -> Iterator[str]:
    """The lines of the context after `draft`, without numbers and indentation."""
    for text in (draft.summary, *map(text_of, draft.plan.left.values())):
        yield from _plain(text)


def _plain(text: str) -> Iterator[str]:
    """The lines of `text` that are not blank, as a summary and a message both have them."""
    lines = (plain.strip() for _, plain in plain_lines(escape_tags(text)))
    return filter(None, lines)


def _draft_of(
    request: CompactionRequest,
    conversation: Conversation,
    counter: TokenCounter,
    brought: tuple[Pick, ...] = (),
) -> CompactionDraft:
    """The draft for `request`, whatever it gains; `brought` are kept before all that was chosen."""
    live, summary, whole = conversation.live, conversation.summary, conversation.room
    path, record = conversation.path, conversation.record

    def draft_within(room: int, window: int) -> CompactionDraft:
        notes = _notes(request, summary, room, counter)
        said_room = room if request.occasion == "limit" else max(whole, target_of(request))
        planner = SpacePlanner(
            request, conversation, room, said_room, notes, brought, window, counter
        )
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
            conversation=conversation,
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
    target = request.sizes.target if is_limit else max(within, target_of(request))
    size, drafts = 0, list[CompactionDraft]()
    for has_newest in ways:
        room, step, before = whole, 0, 0
        while True:
            window = request.sizes.window
            window = window if has_newest else min(window, 2 * room)
            drafts.append(draft_within(room, window))
            size = drafts[-1].tokens_after(request, counter)
            if size <= target:
                return drafts[-1]
            if not room:
                break
            more = 2 * step if size >= before else step
            step, before = max(size - target, more, _LEAST_STEP_TOKENS), size
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
    promise: Promise,
    *,
    counter: TokenCounter,
) -> CompactionDraft:
    """The draft as it will be beside notes and chosen texts of these sizes."""
    through = conversation.path[-1].id
    lines = tuple(f"-{number}" for number in range(max(texts_tokens, 0) // _FILLER_LINE_TOKENS + 1))
    filler = Pick(Piece(0, "", "kept", "", lines))
    choice = KeepChoice("- " * max(notes_tokens, 1), (filler,), request.model, through, promise)
    return _draft_of(_choosing(request, choice), conversation, counter)


def draft_choice(
    request: CompactionRequest, choice: KeepChoice, *, counter: TokenCounter
) -> tuple[CompactionDraft, Proof]:
    """The draft with the pieces of `choice`, and with what later steps would have missed."""
    template = template_named(request.settings.template)
    notes = notes_now(choice, in_force(request.path), template, folders_of(request))
    choice = replace(choice, notes=notes)
    request = replace(request, selection=replace(request.selection, promise=choice.promise))
    conversation = read_conversation(request, counter)
    draft = _draft_that_gains(_choosing(request, choice), conversation, counter)
    proof = _prove(request, choice, draft)
    if proof.brought_back:
        choice = replace(choice, picks=(*proof.brought_back, *choice.picks))
        draft = _draft_that_gains(_choosing(request, choice), conversation, counter)
    return draft, proof


def _prove(request: CompactionRequest, choice: KeepChoice, draft: CompactionDraft) -> Proof:
    """Check whether `draft`, made from `choice`, would have sufficed for the steps since."""
    path = in_force(request.path)
    seen = {entry.id for entry in split_after(path, choice.through)[0]}
    kept = (message for id, message in draft.plan.left.items() if id in seen)
    shown = "\n".join((draft.summary, *message_texts(kept, UNLIMITED)))
    return prove(path, choice.through, shown, folders_of(request))


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
