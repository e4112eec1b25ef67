"""Makes the question to the model from the conversation: what can be kept, and in what space."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

from agent_tui.compaction.conversation import Conversation, last_exchange_tokens, text_of
from agent_tui.compaction.curation.ask import LEAST_NOTES_TOKENS, Ask, Staying, TokenBudget
from agent_tui.compaction.curation.excerpts import earlier_pieces
from agent_tui.compaction.curation.pieces import Piece, read_pieces
from agent_tui.compaction.draft import CompactionDraft, draft_beside
from agent_tui.compaction.ledger.files import normalise_path
from agent_tui.compaction.plan import LiveConversation, LiveEntry
from agent_tui.compaction.request import CompactionRequest
from agent_tui.compaction.sections.commands import is_looking_around, without_folder
from agent_tui.compaction.sections.compose import LEAST_KEPT, TAIL_SHARE, WorkRecord
from agent_tui.compaction.sections.file_views import FileView, file_view
from agent_tui.compaction.sections.files import paths_shown_in
from agent_tui.compaction.sections.history import Done, Replied, Said, is_filler, with_short_paths
from agent_tui.compaction.summary.templates import template_named
from agent_tui.compaction.tiers.describe import action_label
from agent_tui.compaction.tiers.model import UNEDITED, Unit
from agent_tui.compaction.transcript import escape_tags
from agent_tui.messages import AssistantMessage, Message, ToolCall, UserMessage, texts_in
from agent_tui.omissions import one_line
from agent_tui.sessions.actions import Action
from agent_tui.sessions.context import apply_edit
from agent_tui.sessions.entries import ContextEditEntry
from agent_tui.sessions.outputs import action_of
from agent_tui.tokens import TokenCounter

_NOTES_TOKENS, _NOTES_SHARE = 1_500, 0.15
"""Together 4,500 tokens of notes at a target of 20,000, and 3,000 at 10,000.

Contexts with these answered all questions on failures and reasons of three real sessions.
"""

_MOST_NOTES_SHARE = 2 / 3
"""Of notes and chosen texts together."""

_LIST_SHARE, _LIST_TOKENS = 0.03, 3_000
"""Of the window, and at most, for the list of what can be kept."""

_SAID = "said-by-the-person"
_STAYING = {
    _SAID: "the user's messages, reasons of refusals and answers to questions",
    "work-state": "the plan, items, commits and newest test results",
    "failures": "error messages that your notes lack, what was tried and what cured them, at most",
}
"""Blocks that code writes whatever a model chooses."""

_NEWEST = "your newest messages"
_TAG_LINE = re.compile(r"</?[\w-]+>$")
_STAYING_CHARS = 600
_OPENING_CHARS = 40
_LEAST_NAMED_TOKENS = 60
_NEARLY_WHOLE = 0.9
_TRIALS = 2
"""What stays depends on the sizes of notes and texts, and these on what stays."""


def make_ask(request: CompactionRequest, draft: CompactionDraft, *, counter: TokenCounter) -> Ask:
    """The question for the model of `request`.

    Args:
        request: The conversation.
        draft: Its compaction without a model.
        counter: Counts tokens.
    """
    conversation = draft.conversation
    live, record, summary = conversation.live, conversation.record, conversation.summary
    entries = {entry.id for entry in live.entries}
    own = [unit for unit in conversation.units if unit.entry_id in entries]
    room = conversation.room
    tail = max(last_exchange_tokens(live), int(room * TAIL_SHARE))
    least = int(room * LEAST_KEPT)
    sizes = _sizes_of(draft, counter)
    most_notes = request.settings.max_summary_tokens
    for number in range(_TRIALS):
        free = max(room - tail - sum(sizes.values()), least)
        notes = min(max(int(free * _MOST_NOTES_SHARE), LEAST_NOTES_TOKENS), most_notes)
        texts = free - notes if number else room  # what is left would go to the user's messages
        draft = draft_beside(request, conversation, notes, texts, counter=counter)
        sizes = _sizes_of(draft, counter)
    free = max(room - tail - sum(sizes.values()), least)
    said = _block(draft.before_notes, _SAID)
    edits = {edit.target_id: edit for edit in draft.plan.edits}
    kept = {e.id for e in draft.plan.kept_entries if isinstance(e, LiveEntry)}  # edits have no ids
    spoken = [event for event in record.events if isinstance(event, Said)]
    events = pairwise(record.events)
    answered = [a for a, b in events if isinstance(a, Replied) and isinstance(b, Said)]
    edited = {unit.entry_id for unit in conversation.units if unit.edited_tier != UNEDITED}
    as_written = {entry_id for entry_id in kept - edited if live.seen[entry_id]}
    before = [e for e in spoken if e.entry_id not in as_written and not is_filler(e.text)]
    told = [_told(event, _as_shown(event, record), said, counter) for event in before]
    whole = {e.entry_id for e in spoken if e.entry_id in as_written or _as_shown(e, record) in said}
    cut = {e.entry_id for e, (number, _, _) in zip(before, told, strict=True) if number}
    pieces = read_pieces(
        [unit for unit in own if unit.entry_id not in whole or unit.output is not None],
        (*earlier_pieces(summary, counter), *_tasks_before(conversation, own)),
        record.files,
        record.folders,
        counter,
        on_disk=request.on_disk,
        shown=frozenset(paths_shown_in(summary)),
        said={event.entry_id for event in (*spoken, *answered)},
    )
    target = request.sizes.overhead + live.pinned_tokens + room
    most_notes = min(max(int(free * _MOST_NOTES_SHARE), LEAST_NOTES_TOKENS), most_notes)
    newest = [(unit, _left_of(unit, live, edits)) for unit in own if unit.entry_id in kept]
    shortened = {u.entry_id: text_of(after) for u, after in newest if after != u.message}
    return Ask(
        units=own,
        pieces=pieces,
        staying=Staying(
            sizes={
                "the system prompt and the tools": request.sizes.overhead,
                "pinned texts": live.pinned_tokens,
                **sizes,
                _NEWEST: tail,
            },
            texts={
                **{
                    _STAYING[tag]: _first_lines(block)
                    for tag, block in _blocks_that_stay(draft).items()
                    if tag != _SAID
                },
                _NEWEST: _newest_words(newest, record.folders, counter),
            },
            messages=told,
            said={
                e.entry_id: e.entry_id in whole
                for e in spoken
                if e.entry_id in whole | cut and not is_filler(e.text)
            },
            entries=kept - shortened.keys(),
            shortened=shortened,
        ),
        budget=TokenBudget(
            used=request.sizes.used_estimate,
            target=target,
            notes=min(_NOTES_TOKENS + int(target * _NOTES_SHARE), most_notes),
            most_notes=most_notes,
            free=free,
            listed=min(int(request.sizes.window * _LIST_SHARE), _LIST_TOKENS),
        ),
        template=template_named(request.settings.template),
        counter=counter,
        focus=request.asking.focus,
        through=live.entries[-1].id if live.entries else "",
        earlier=summary,
        failures=record.failures,
        files=record.files,
        repeated=_repeated(conversation),
        has_disk=request.on_disk is not None,
    )


def _repeated(conversation: Conversation) -> dict[str, int]:
    """The commands of one line that ran more than once, but for git's, the most frequent first."""
    steps = (event for event in conversation.record.events if isinstance(event, Done))
    ran = (step.output.action.command for step in steps)
    plain = (without_folder(one) for one in ran if "\n" not in one and not is_looking_around(one))
    runs = Counter(one for one in plain if not one.startswith("git ")).most_common()
    return {command: times for command, times in runs if times > 1}


def _tasks_before(conversation: Conversation, own: Sequence[Unit]) -> Iterator[Piece]:
    """The texts of tasks that neither a message in `own` nor a known file has."""
    entries, record = {unit.entry_id for unit in own}, conversation.record
    files = {file.path for file in record.files}
    for task in record.named_tasks:
        if task.entry_id not in entries and task.item not in files:
            lines = tuple(task.text.split("\n"))
            yield Piece(0, "", "kept", f"the task {task.item}", lines, remark="as it was shown")


def _left_of(unit: Unit, live: LiveConversation, edits: Mapping[str, ContextEditEntry]) -> Message:
    """The message of `unit` with its edit in `edits`, or that of an earlier compaction."""
    if (edit := edits.get(unit.entry_id)) is None and unit.edited_tier == UNEDITED:
        return unit.message
    before = [item.message for item in live.seen[unit.entry_id]]
    left = [apply_edit(unit.message, edit)] if edit else before
    return next(filter(None, left), UserMessage(content=""))


def _calls_of(message: Message) -> Sequence[ToolCall]:
    return message.tool_calls if isinstance(message, AssistantMessage) else ()


def _first_lines(block: str) -> str:
    """The first lines of a `block`, as many as fit, on one line."""
    lines = [line for line in block.split("\n") if line.strip() and not _TAG_LINE.match(line)]
    ends = list(accumulate(len(line) + 2 for line in lines))
    count = max(bisect_right(ends, _STAYING_CHARS), 1)
    more = f"; and {len(lines) - count} more" if len(lines) > count else ""
    return one_line("; ".join(line.strip() for line in lines[:count]), _STAYING_CHARS) + more


def _label(action: Action, view: FileView | None, folders: Sequence[str]) -> str:
    """The action in one line, with the path and the lines of the file that it shows."""
    path = normalise_path(view.path.strip("'\"") if view else action.path, folders)
    if not path or (action.command and view is None):
        return action_label(action)
    lines = f" {view.first}-{view.first + len(view.lines) - 1}" if view else ""
    return f"{'read' if action.command else action.tool} {path}{lines}"


def _newest_words(
    newest: Iterable[tuple[Unit, Message]], folders: Sequence[str], counter: TokenCounter
) -> str:
    """Which calls and results of the `newest` messages, before and after, stay, and how much."""
    sizes: dict[str, list[int]] = {}
    for unit, after in newest:
        if unit.output is not None:
            label = _label(unit.output.action, file_view(unit.output), folders)
            texts = [(label, unit.message.text, after.text)]
        else:
            left = {call.id: _text_of_call(call) for call in _calls_of(after)}
            texts = [
                (_label(action_of(call), None, folders), _text_of_call(call), left.get(call.id, ""))
                for call in _calls_of(unit.message)
            ]
        for label, before, now in texts:
            size = sizes.setdefault(label, [0, 0])
            size[0] += counter.count_text(before)
            size[1] += counter.count_text(now)
    whole, shortened = list[str](), list[str]()
    for label, (before, now) in sizes.items():
        if now >= before * _NEARLY_WHOLE:
            whole += [label] if before >= _LEAST_NAMED_TOKENS else []
        else:
            shortened.append(f"{label} ({now:,} of {before:,} tokens stay)")
    named = (("whole", whole), ("shortened", shortened))
    return ". ".join(f"{how}: {'; '.join(which)}" for how, which in named if which)


def _text_of_call(call: ToolCall) -> str:
    return "\n".join(texts_in(call.arguments))


def _sizes_of(draft: CompactionDraft, counter: TokenCounter) -> dict[str, int]:
    blocks = _blocks_that_stay(draft).items()
    return {_STAYING[tag]: counter.count_text(block) for tag, block in blocks}


def _blocks_that_stay(draft: CompactionDraft) -> dict[str, str]:
    """The blocks in `_STAYING`, as far as there are any."""
    text = f"{draft.before_notes}\n{draft.after_notes}"
    return {tag: block for tag in _STAYING if (block := _block(text, tag))}


def _block(text: str, tag: str) -> str:
    found = re.search(rf"^<{tag}>\n.*?^</{tag}>$", text, re.DOTALL | re.MULTILINE)
    return found[0] if found else ""


def _as_shown(event: Said, record: WorkRecord) -> str:
    return escape_tags(with_short_paths(event.told, record.folders))


def _told(event: Said, text: str, block: str, counter: TokenCounter) -> tuple[int, str, int]:
    """How `block` shows the `text` that the user said, see `Staying.messages`."""
    end = "$" if len(text) <= _OPENING_CHARS else ""
    opening = re.escape(text[:_OPENING_CHARS])
    number = re.search(rf"^\((\d+)\) {opening}{end}", block, re.MULTILINE)
    tokens = 0 if text in block else counter.count_text(text)
    return int(number[1]) if number else 0, one_line(event.text, _OPENING_CHARS), tokens
