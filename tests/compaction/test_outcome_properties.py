"""What every way to compact must hold to, whatever the session and the strategy; without a model.

What is previewed is what happens, the shell does what the chat does, sizes add up, nothing the
person typed is lost, and what was done can be taken back.
"""

import asyncio
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import strategies as st

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.compaction.ledger.files import normalise_path
from agent_tui.compaction.outcome import Outcome
from agent_tui.compaction.planner import CompactionPlanner
from agent_tui.compaction.request import CompactionRequest, ContextSizes
from agent_tui.compaction.sections import compose
from agent_tui.compaction.sections.file_states import FileReader
from agent_tui.compaction.sections.file_views import path_shown_by, plain_lines
from agent_tui.compaction.sections.history import Done, read_history
from agent_tui.compaction.transcript import FACT_TAGS
from agent_tui.config import STRATEGY_NAMES, CompactionSettings
from agent_tui.errors import CompactionError
from agent_tui.events import AgentEvent, CompactionFinished
from agent_tui.features.compact_file.compaction import FileCompaction
from agent_tui.features.tour.scripted import Reply
from agent_tui.providers.base import ModelRef
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import (
    Carryover,
    CompactionEntry,
    ContextEditEntry,
    Entry,
    MessageEntry,
)
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import newest_change, undo_mark
from agent_tui.sessions.replay.normalise import ContextMessage
from agent_tui.sessions.store import SessionStore
from agent_tui.tokens import TokenCounter
from tests.compaction.writer import GOOD, Models, Writer, compact
from tests.support.context_checks import assert_sendable, context_bytes
from tests.support.histories import SOME_OR_ALL, changed_histories, continued, for_every
from tests.support.runtime import MODEL, SmallModels, Stage, collect, of_kind
from tests.support.session_values import header
from tests.support.talk import Talk

WINDOW = 20_000
OVERHEAD = 500
SETTINGS = CompactionSettings(keep_recent_tokens=1_500, protected_messages=4)
SLACK_TOKENS = 6
"""For each message: call ids that the context had to change need not be changed afterwards."""

every_strategy = pytest.mark.parametrize("strategy", STRATEGY_NAMES)


@dataclass(frozen=True)
class Case:
    """A session and how far to go with it."""

    path: tuple[Entry, ...] = field(repr=False)
    target: int
    wants_summary: bool


CASES = st.builds(
    Case,
    changed_histories(),
    st.sampled_from([1, 1_000, 3_000, 8_000]),
    st.booleans(),
)


def request_of(
    path: Sequence[Entry],
    target: int,
    counter: TokenCounter,
    *,
    wants_summary: bool = False,
    previous: Carryover | None = None,
    window: int = WINDOW,
) -> CompactionRequest:
    return CompactionRequest(
        path=tuple(path),
        previous=previous,
        model=ModelRef("scripted/one"),
        cwd=Path("/project"),
        settings=SETTINGS,
        sizes=ContextSizes(
            window=window, used=size(path, counter, previous), overhead=OVERHEAD, target=target
        ),
        occasion="new session" if wants_summary else "due",
    )


def outcome_of(request: CompactionRequest, strategy: str, counter: TokenCounter) -> Outcome | None:
    """What comes of it; None where there is nothing to compact."""
    planner = CompactionPlanner(None, counter, Models())
    try:
        return asyncio.run(planner.outcome(request, strategy, lambda _phase, _chars: None))
    except CompactionError:
        return None


def size(path: Sequence[Entry], counter: TokenCounter, carryover: Carryover | None = None) -> int:
    """Tokens of the next request."""
    context = build_context(path, carryover=carryover)
    return OVERHEAD + counter.count_messages(item.message for item in context.messages)


def in_place(path: Sequence[Entry], outcome: Outcome, name: str = "made") -> tuple[Entry, ...]:
    """`path` after `outcome` was appended, with ids as a log gives them."""
    entries = outcome.entries("threshold", outcome.tokens_before)
    placed = [entry.model_copy(update={"id": f"{name}{n}"}) for n, entry in enumerate(entries)]
    if isinstance(last := placed[-1], CompactionEntry) and not last.first_kept_entry_id:
        placed[-1] = last.model_copy(update={"first_kept_entry_id": last.id})
    return (*path, *placed)


@every_strategy
@SOME_OR_ALL
def test_what_is_left_can_be_sent_and_is_as_small_as_it_is_said(
    strategy: str, examples: int, counter: TokenCounter
) -> None:
    def check(case: Case) -> None:
        request = request_of(case.path, case.target, counter, wants_summary=case.wants_summary)
        outcome = outcome_of(request, strategy, counter)
        if outcome is None:
            return
        before = size(case.path, counter)
        assert before - _opening_tokens(case.path, counter) <= outcome.tokens_before <= before
        assert outcome.tokens_after < outcome.tokens_before
        carryover = outcome.summary.carryover if outcome.summary else None
        child = outcome.child_entries(request.path, "manual", outcome.tokens_before)
        for after, known in ((in_place(case.path, outcome), None), (child, carryover)):
            assert_sendable(after)
            left = size(after, counter, known)
            slack = SLACK_TOKENS * len(build_context(after).messages)
            assert left == pytest.approx(outcome.tokens_after, abs=slack)

    for_every(CASES, examples, check)


def _opening_tokens(path: Sequence[Entry], counter: TokenCounter) -> int:
    """What the context puts before a conversation that begins with a reply."""
    return counter.count_messages(
        item.message for item in build_context(path).messages if not item.entry_id
    )


@every_strategy
@SOME_OR_ALL
def test_taking_it_back_gives_the_context_byte_for_byte_also_after_the_file_was_read_again(
    strategy: str,
    examples: int,
    counter: TokenCounter,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    file = tmp_path_factory.mktemp("sessions") / "session.jsonl"

    def check(case: Case) -> None:
        file.unlink(missing_ok=True)
        request = request_of(case.path, case.target, counter, wants_summary=case.wants_summary)
        with SessionLog.write(file, header(), case.path, "none") as log:
            before = context_bytes(log.path_entries())
            outcome = outcome_of(replace(request, path=log.path_entries()), strategy, counter)
            if outcome is None:
                return
            log.append_many(outcome.entries("threshold", outcome.tokens_before))
            live = context_bytes(log.path_entries())
            assert live != before
        with SessionLog.open(file, "none") as log:
            assert context_bytes(log.path_entries()) == live
            log.append(undo_mark(newest_change(log.path_entries())))
            assert context_bytes(log.path_entries()) == before

    for_every(CASES, examples, check)


@every_strategy
@SOME_OR_ALL
def test_a_file_that_a_line_points_to_is_shown(
    strategy: str, examples: int, counter: TokenCounter
) -> None:
    def check(case: Case) -> None:
        request = request_of(case.path, case.target, counter, wants_summary=True)
        outcome = outcome_of(request, strategy, counter)
        if outcome is not None and outcome.summary is not None:
            assert_pointers_hold(case.path, outcome)

    for_every(CASES, examples, check)


def assert_pointers_hold(path: Sequence[Entry], outcome: Outcome) -> None:
    """What a line stands for is shown in files-now, as far as the file still has it."""
    assert outcome.summary is not None
    texts = {e.id: e.message.text for e in path if isinstance(e, MessageEntry)}
    views = views_in(path)
    files = {file.path: file for file in FileReader(["/project"]).read(read_history(path))}
    for edit in outcome.edits:
        pointed = re.match(_STANDS, str(edit.replacement))
        if pointed is None:
            continue
        name = views[edit.target_id]
        assert pointed[1] in (None, name)
        block = re.search(
            rf"^### {re.escape(name)} \(([^\n]*)\)\n(.*?)(?=^### |^</files-now>)",
            f"{outcome.summary.summary}\n",
            re.M | re.S,
        )
        assert block is not None, name
        if "whole in the newest messages" in block[1]:
            continue
        now = set(files[name].text.split("\n"))
        gone = {plain for _, plain in plain_lines(texts[edit.target_id])} & now - {""}
        assert gone <= set(block[2].split("\n")), name
        if (told := re.search(r"lines ([\d, -]+) are", pointed[0])) and "places" in block[1]:
            parts = re.findall(r"^@@ line (\d+)[^\n]*\n(.*?)(?=\n@@|\n\Z)", block[2], re.M | re.S)
            shown = [f"{first}-{int(first) + text.count(chr(10))}" for first, text in parts]
            assert told[1].split(", ") == shown, name


_STANDS = r"\((?:(?:parts|lines [\d, -]+) are|(.*) is shown) in the summary\)"


def views_in(path: Sequence[Entry]) -> dict[str, str]:
    """The path of the file that each result is about, by its entry."""
    steps = [event for event in read_history(path) if isinstance(event, Done)]
    return {
        step.entry_id: normalise_path(
            step.output.action.path or path_shown_by(step, ["/project"]), ["/project"]
        )
        for step in steps
    }


def test_a_line_that_points_to_a_file_is_true_where_a_model_kept_parts_of_it(
    counter: TokenCounter,
) -> None:
    keep = "\n".join(f"#{number} 1-4" for number in range(1, 30))
    ahead = ", ".join(f"src/part_{number}.py" for number in range(20))
    notes = GOOD.replace("1. Run the tests.", f"1. Look at {ahead}.")
    answer = f"<notes>\n{notes}\n</notes>\n<keep>\n{keep}\n</keep>"
    path, pointed = changed_files(20).path, 0
    views = views_in(path)
    for target in range(3_000, 12_000, 500):
        request = request_of(path, target, counter, wants_summary=True, window=64_000)
        result = asyncio.run(compact(Writer([answer]), counter, request))
        for edit in result.edits:
            if re.match(_STANDS, str(edit.replacement)):
                pointed += 1
                name = views[edit.target_id]
                assert f"### {name} (" in result.summary
                if f"### {name} (changed; whole)" in result.summary:
                    assert f'<excerpt file="{name}"' not in result.summary
    assert pointed


def test_edits_of_messages_that_stay_are_made_and_taken_back_with_the_compaction(
    counter: TokenCounter,
) -> None:
    path = changed_files(20).path
    outcome = outcome_of(request_of(path, 9_000, counter, wants_summary=True), "tiered", counter)
    assert outcome is not None
    assert outcome.summary is not None
    assert any(re.match(_STANDS, str(edit.replacement)) for edit in outcome.edits)
    assert_pointers_hold(path, outcome)
    after = in_place(path, outcome)
    kinds = [type(entry) for entry in after[len(path) :]]
    assert kinds == [*[ContextEditEntry] * len(outcome.edits), CompactionEntry]
    assert len(newest_change(after)) == len(kinds)
    assert context_bytes((*after, undo_mark(newest_change(after)))) == context_bytes(path)


def changed_files(count: int) -> Talk:
    """Files that are read, written, and looked at once more."""
    talk = Talk()
    talk.user("Please write all parts anew.")
    for number in range(count):
        path = f"src/part_{number}.py"
        lines = [f"value_{number}_{line} = {line}" for line in range(60)]
        talk.tool("write", {"path": path, "content": "\n".join(lines)}, f"Wrote {path}.")
        talk.tool("read", {"path": path}, "\n".join(lines))
        talk.reply(f"Part {number} is written.")
        talk.user(f"Now part {number + 1}.")
    talk.reply("All of them are written.")
    return talk


def test_what_the_person_typed_stands_in_the_summary_or_where_it_was_but_not_in_both(
    counter: TokenCounter,
) -> None:
    path = changed_files(20).path
    outcome = outcome_of(request_of(path, 6_000, counter, wants_summary=True), "tiered", counter)
    assert outcome is not None
    first, *rest = build_context(in_place(path, outcome)).messages
    said = block(first.message.text, "said-by-the-person")
    stays = [item.message.text for item in rest if item.message.role == "user"]
    typed = [f"Now part {number + 1}." for number in range(20)]
    assert [text for text in typed if (f") {text}" in said) + (text in stays) != 1] == []
    assert len(stays) >= 2


# The preview, the chat and the shell


def runtime_on(
    path: Sequence[Entry], folder: Path, settings: CompactionSettings, counter: TokenCounter
) -> AgentRuntime:
    """A conversation that goes on from `path`, with nobody to write summaries."""
    stage = Stage(folder)
    runtime = stage.runtime(
        lambda request: Reply(text="Fine."),
        window=WINDOW,
        compaction=settings,
        counter=counter,
        planner=CompactionPlanner(None, counter, SmallModels(WINDOW, {}, None)),
    )
    runtime.conversation.log.append_many(path)
    return runtime


@every_strategy
@pytest.mark.parametrize("examples", [12, pytest.param(300, marks=pytest.mark.slow)])
def test_what_the_chat_previews_is_what_then_happens(
    strategy: str,
    examples: int,
    counter: TokenCounter,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    settings = SETTINGS.model_copy(update={"strategy": strategy, "target": 0.2})
    seen: set[bool] = set()

    async def compared(path: tuple[Entry, ...]) -> None:
        runtime = runtime_on(path, tmp_path_factory.mktemp("chat"), settings, counter)
        try:
            found = await runtime.preview_compaction()
            events: list[AgentEvent] = []
            outcome = await runtime._compactor().make_room("threshold", events.append)
            seen.add(outcome is not None)
            if outcome is None:
                assert found.tokens_after == found.tokens_before
                assert not of_kind(events, CompactionFinished)
                return
            (finished,) = of_kind(events, CompactionFinished)
            assert found.tokens_before == finished.tokens_before
            assert found.tokens_after == finished.tokens_after
            assert found.messages == (outcome.messages if outcome.strategy == "tiered" else {})
        finally:
            await runtime.aclose()

    for_every(bulky(changed_histories()), examples, lambda path: asyncio.run(compared(path)))
    assert True in seen


@pytest.mark.parametrize("examples", [12, pytest.param(300, marks=pytest.mark.slow)])
def test_the_shell_writes_the_child_that_the_chat_writes(
    examples: int, counter: TokenCounter, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async def compared(path: tuple[Entry, ...]) -> None:
        folder = tmp_path_factory.mktemp("both")
        runtime = runtime_on(path, folder, SETTINGS, counter)
        try:
            conversation = runtime.conversation
            overhead = conversation.overhead_tokens()
            job = FileCompaction(
                runtime.planner,
                counter,
                conversation.settings,
                window=WINDOW,
                target_tokens=conversation.limits.target - overhead,
            )
            before = conversation.log
            try:
                report = await job.run(
                    before,
                    strategy="tiered",
                    model=MODEL,
                    focus="",
                    cwd=conversation.cwd,
                    store=SessionStore(folder / "shell", "none"),
                    on_progress=lambda _phase, _chars: None,
                )
            except CompactionError:
                report = None
            finished = of_kind(await collect(runtime.compact()), CompactionFinished)
            if report is None:
                assert not finished
                return
            assert finished
            assert report.path is not None
            with SessionLog.open(report.path, read_only=True) as shell:
                chat = runtime.conversation.log
                assert chat is not before
                assert told(shell) == told(chat)
                assert shell.header.compaction == chat.header.compaction
        finally:
            await runtime.aclose()

    for_every(bulky(changed_histories()), examples, lambda path: asyncio.run(compared(path)))


def told(log: SessionLog) -> list[str]:
    context = build_context(log.path_entries(), carryover=log.header.compaction)
    return [item.message.model_dump_json(exclude={"timestamp"}) for item in context.messages]


def bulky(
    drawn: st.SearchStrategy[tuple[Entry, ...]],
) -> st.SearchStrategy[tuple[Entry, ...]]:
    """Histories that begin with enough for a compaction to be worth it, most of them."""

    def with_beginning(case: tuple[tuple[Entry, ...], int]) -> tuple[Entry, ...]:
        path, parts = case
        return (*changed_files(parts).path, *(_renamed(entry) for entry in path))

    return st.tuples(drawn, st.sampled_from([8, 4, 0])).map(with_beginning)


def _renamed(entry: Entry) -> Entry:
    """`entry` under an id that the beginning does not use, and what it names likewise."""
    changes: dict[str, object] = {"id": f"d{entry.id}", "parent_id": None}
    for name in ("target_id", "first_kept_entry_id"):
        if value := getattr(entry, name, ""):
            changes[name] = f"d{value}"
    return entry.model_copy(update=changes)


# Twenty compactions


ROUNDS = 20
TARGET = 12_000
ROOM = TARGET - OVERHEAD
SHARES = {
    "work-state": compose.STATE_SHARE,
    "failures": compose.FAILURES_SHARE,
    "files-now": compose.FILES_SHARE,
    "way-so-far": compose.WAY_SHARE,
}
TAG_TOKENS = 40


@dataclass(frozen=True)
class Round:
    """A session after one more round of work and compaction."""

    number: int
    path: tuple[Entry, ...]
    carryover: Carryover | None
    outcome: Outcome


def rounds(strategy: str, seed: int, counter: TokenCounter, *, in_child: bool) -> Iterator[Round]:
    drawn = random.Random(seed)
    path: tuple[Entry, ...] = ()
    carryover: Carryover | None = None
    for number in range(ROUNDS):
        talk = Talk(entries=list(path), prefix=f"r{number}-")
        talk.user(wish(number))
        for step in range(4):
            lines = [f"value_{number}_{step}_{line} = {line}" for line in range(150)]
            file = f"src/part_{number % 7}_{step}.py"
            talk.tool("write", {"path": file, "content": "\n".join(lines)}, f"Wrote {file}.")
            output = "".join(f"{line} of round {number}, step {step}\n" for line in range(200))
            talk.tool("bash", {"command": f"make part_{number}_{step}"}, output)
            talk.reply(f"Step {step} of round {number} was needed because the part was missing.")
        path = continued(talk.path, drawn.randbytes(60))
        request = request_of(
            path,
            TARGET,
            counter,
            wants_summary=in_child,
            previous=carryover,
            window=30_000,
        )
        outcome = outcome_of(request, strategy, counter)
        assert outcome is not None
        if in_child:
            path = outcome.child_entries(path, "manual", request.sizes.used)
            carryover = outcome.summary.carryover if outcome.summary else carryover
        else:
            path = in_place(path, outcome, f"made{number}-")
        yield Round(number, path, carryover, outcome)


def wish(number: int) -> str:
    return f"Wish number {number}, please: see to part {number}!"


@every_strategy
@pytest.mark.parametrize("in_child", [True, False], ids=["in child sessions", "in place"])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_over_twenty_compactions_typed_words_stay_and_sections_keep_to_their_shares(
    strategy: str, in_child: bool, seed: int, counter: TokenCounter
) -> None:
    filled: list[float] = []
    for done in rounds(strategy, seed, counter, in_child=in_child):
        context = build_context(done.path, carryover=done.carryover)
        newest = _newest_exchange_tokens(context.messages, counter)
        left = size(done.path, counter, done.carryover)
        assert left <= 1.05 * TARGET + max(newest - compose.TAIL_SHARE * ROOM, 0)
        assert_sendable(done.path)
        texts = [item.message.text for item in context.messages if item.message.role == "user"]
        for number in range(done.number + 1):
            assert any(wish(number) in text for text in texts), (done.number, number)
        if done.outcome.summary is None:
            continue
        text = done.outcome.summary.summary
        for tag, share in SHARES.items():
            assert counter.count_text(block(text, tag)) <= share * ROOM + TAG_TOKENS, tag
        said = block(text, "said-by-the-person") + block(text, "task-text")
        assert counter.count_text(said) <= 1.1 * compose.SAID_MOST_SHARE * ROOM + TAG_TOKENS
        filled.append(left / TARGET)
        for tag in set(FACT_TAGS) & set(re.findall(r"^<([\w-]+)>$", text, re.M)):
            assert text.count(f"<{tag}>") == 1
    assert sum(share > 0.95 for share in filled) > 0.6 * len(filled)
    assert filled


def _newest_exchange_tokens(messages: Sequence[ContextMessage], counter: TokenCounter) -> int:
    """What stays whatever its size: the newest message, or the newest reply with its results."""
    first = len(messages) - 1
    while first > 0 and messages[first].message.role == "toolResult":
        first -= 1
    return counter.count_messages(item.message for item in messages[first:])


def block(text: str, tag: str) -> str:
    found = re.search(rf"^<{tag}>\n(.*?)\n</{tag}>$", text, re.DOTALL | re.MULTILINE)
    return found[1] if found else ""
