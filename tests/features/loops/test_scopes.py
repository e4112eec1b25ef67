"""Scopes as states read from a session's entries, and what the model sees of them."""

from collections.abc import Sequence
from itertools import pairwise

import pytest

from agent_tui.features.loops.scopes import (
    Scope,
    ScopeState,
    entries_inside,
    pending_mark,
    scope_state,
)
from agent_tui.messages import ToolCall
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import CustomEntry, CustomMessageEntry, Entry
from agent_tui.sessions.replay.changes import newest_change, undo_mark
from agent_tui.sessions.replay.scope_entries import (
    ScopeBreak,
    ScopeEnding,
    ScopeEnter,
    ScopeExit,
    ScopeKind,
    ScopePending,
    ScopeStep,
    compression_of,
    mark_entry,
    mark_of,
)
from tests.support.context_checks import assert_sendable, context_bytes, shown
from tests.support.drawn_history import Choices, History
from tests.support.histories import SOME_OR_ALL, drawn_bytes, for_every
from tests.support.talk import Talk


def left(scope_id: str, label: str, ending: ScopeEnding) -> Entry:
    return mark_entry(ScopeExit(scope=scope_id, label=label, ending=ending))


class Scopes:
    """A session that grows by what is said and by scopes."""

    def __init__(self, talk: Talk | None = None) -> None:
        self.talk = talk or Talk()

    @property
    def path(self) -> tuple[Entry, ...]:
        return self.talk.path

    def put(self, entry: Entry) -> str:
        entries = self.talk.entries
        placed = entry.model_copy(
            update={
                "id": f"{self.talk.prefix}{len(entries):07d}",
                "parent_id": entries[-1].id if entries else None,
            }
        )
        entries.append(placed)
        return placed.id

    def enter(self, label: str = "search", kind: ScopeKind = "tool", prompt: str = "") -> str:
        begun = ScopeEnter(kind=kind, label=label, is_compressed=True, prompt=prompt)
        return self.put(mark_entry(begun))

    @property
    def innermost(self) -> Scope:
        return scope_state(self.path).open_scopes[-1]

    def end(self) -> bool:
        """End the innermost scope; false where it was empty and is left at once."""
        scope = self.innermost
        pending = pending_mark(self.path, scope)
        self.put(mark_entry(pending) if pending else left(scope.id, scope.begun.label, "done"))
        return pending is not None

    def resume(self, summary: str = "It is in a.py.") -> str:
        pending = scope_state(self.path).pending
        assert pending is not None
        return self.put(mark_entry(pending.exit_with(summary)))

    def exchange(self, word: str = "look") -> None:
        self.talk.user(word)
        self.talk.reply(f"I did {word}.")

    def round(self, number: int) -> None:
        call = ToolCall(id=f"call_{number}", name="ls", arguments={})
        self.talk.reply("", call)
        self.talk.result(call, f"listing {number}")


@pytest.fixture
def scopes() -> Scopes:
    scopes = Scopes()
    scopes.exchange("hello")
    return scopes


def test_the_states_follow_each_other(scopes: Scopes):
    assert scope_state(scopes.path) == ScopeState()
    scope_id = scopes.enter("search", prompt="which file")
    scopes.exchange()
    inside = [entry.id for entry in scopes.path[-2:]]
    assert [scope.id for scope in scope_state(scopes.path).open_scopes] == [scope_id]
    where = scopes.path[-1].id
    assert scopes.end()
    assert scope_state(scopes.path) == ScopeState(
        pending=ScopePending(
            scope=scope_id,
            kind="tool",
            label="search",
            prompt="which file",
            entries=tuple(inside),
            at=where,
        )
    )
    scopes.resume()
    assert scope_state(scopes.path) == ScopeState()


def test_the_default_wording_is_no_prompt(scopes: Scopes):
    scopes.enter()
    scopes.exchange()
    scopes.end()
    pending = scope_state(scopes.path).pending
    assert pending is not None
    assert pending.prompt is None


def test_the_outer_scope_is_open_while_the_inner_one_waits(scopes: Scopes):
    outer = scopes.enter("outer")
    scopes.enter("inner")
    scopes.exchange()
    scopes.end()
    assert [scope.id for scope in scope_state(scopes.path).open_scopes] == [outer]
    scopes.resume()
    assert scopes.innermost.id == outer


def test_the_model_sees_the_marks_and_one_summary(scopes: Scopes):
    scopes.enter()
    scopes.exchange()
    scopes.round(1)
    scopes.end()
    scopes.resume()
    scopes.exchange("more")
    assert shown(build_context(scopes.path)) == [
        "user: hello",
        "assistant: I did hello.",
        "user: ==> search",
        "user: <summary>\nIt is in a.py.\n</summary>\n<== search",
        "user: more",
        "assistant: I did more.",
    ]


def test_an_empty_scope_waits_for_nothing(scopes: Scopes):
    scopes.enter()
    assert not scopes.end()
    assert shown(build_context(scopes.path))[2:] == ["user: ==> search", "user: <== search"]
    assert newest_change(scopes.path) == ()


def test_undoing_takes_back_the_newest_scope_first(scopes: Scopes):
    scopes.enter("one")
    scopes.exchange("a")
    scopes.end()
    before_first = context_bytes(scopes.path)
    first = scopes.resume()
    scopes.enter("two")
    scopes.exchange("b")
    scopes.end()
    before_second = context_bytes(scopes.path)
    second = scopes.resume()
    assert newest_change(scopes.path) == (second,)
    scopes.put(undo_mark((second,)))
    assert context_bytes(scopes.path) == before_second
    assert newest_change(scopes.path) == (first,)
    scopes.put(undo_mark((first,)))
    undone = context_bytes(scopes.path)
    assert undone[: len(before_first)] == before_first
    assert newest_change(scopes.path) == ()


def test_of_three_nested_scopes_the_outer_summary_stands_for_all(scopes: Scopes):
    scopes.enter("one")
    scopes.exchange("a")
    scopes.enter("two")
    scopes.exchange("b")
    scopes.enter("three")
    scopes.exchange("c")
    for text in ("C.", "B and C.", "A, B and C."):
        assert scopes.end()
        scopes.resume(text)
        assert_sendable(scopes.path)
    assert shown(build_context(scopes.path))[2:] == [
        "user: ==> one",
        "user: <summary>\nA, B and C.\n</summary>\n<== one",
    ]


def test_the_reply_that_ends_a_scope_and_the_results_of_earlier_calls_stay(scopes: Scopes):
    begin, other = ToolCall(id="c1", name="scope"), ToolCall(id="c2", name="ls")
    scopes.talk.reply("", begin, other)
    scope_id = scopes.enter()
    scopes.talk.result(begin, "entered")
    scopes.talk.result(other, "a listing")
    scopes.round(1)
    first, end = ToolCall(id="c3", name="ls"), ToolCall(id="c4", name="scope")
    scopes.talk.reply("", first, end)
    scopes.talk.result(first, "another listing")
    assert len(entries_inside(scopes.path, scope_id)) == 2
    scopes.end()
    scopes.resume()
    assert_sendable(scopes.path)
    scopes.talk.result(end, "left")
    assert_sendable(scopes.path)
    assert shown(build_context(scopes.path))[2:] == [
        "assistant:  <c1> <c2>",
        "result c1: entered",
        "result c2: a listing",
        "user: ==> search",
        "assistant:  <c3> <c4>",
        "result c3: another listing",
        "result c4: left",
        "user: <summary>\nIt is in a.py.\n</summary>\n<== search",
    ]


def test_a_scope_whose_beginning_was_summarised_away_sums_up_what_is_left(scopes: Scopes):
    scope_id = scopes.enter()
    scopes.exchange("gone")
    scopes.talk.user("kept")
    kept = scopes.path[-1].id
    scopes.talk.reply("I did kept.")
    scopes.talk.compaction("Everything up to there.", kept)
    scopes.exchange("new")
    inside = entries_inside(scopes.path, scope_id)
    assert [entry.id for entry in inside] == [
        kept,
        *(e.id for e in (*scopes.path[-4:-3], *scopes.path[-2:])),
    ]
    scopes.end()
    scopes.resume("Kept and new.")
    texts = shown(build_context(scopes.path))
    assert "Everything up to there." in texts[0]
    assert texts[1:] == ["user: <summary>\nKept and new.\n</summary>\n<== search"]
    assert_sendable(scopes.path)


def test_leaving_an_outer_scope_leaves_the_inner_ones(scopes: Scopes):
    outer = scopes.enter("outer")
    scopes.enter("inner")
    scopes.put(left(outer, "outer", "stopped"))
    assert scope_state(scopes.path) == ScopeState()


def test_a_loop_knows_its_round_and_that_it_is_to_end(scopes: Scopes):
    loop = scopes.enter("loop", "loop")
    scopes.enter("inner", "loop")
    step = ScopeStep(scope=loop, number=2, count=3, item="b.py")
    scopes.put(mark_entry(step))
    assert [scope.step for scope in scope_state(scopes.path).open_scopes] == [step, None]
    scopes.put(left(scopes.innermost.id, "inner", "done"))
    scopes.put(mark_entry(ScopeBreak(scope="another")))
    assert scopes.innermost.step == step
    assert not scopes.innermost.is_broken
    scopes.put(mark_entry(ScopeBreak(scope=loop)))
    assert scopes.innermost.is_broken


def test_marks_that_cannot_be_read_or_are_of_no_open_scope_say_nothing(scopes: Scopes):
    scopes.put(CustomMessageEntry(custom_type="scope_enter", content="==> x", details=["odd"]))
    scopes.put(CustomEntry(custom_type="scope_pending", data={"scope": "x"}))
    scopes.put(left("of-another-session", "x", "done"))
    pending = ScopePending(scope="of-another-session", kind="tool", label="x")
    scopes.put(mark_entry(pending))
    assert scope_state(scopes.path) == ScopeState()
    assert mark_of(scopes.path[0]) is None


def test_a_summary_copied_from_another_session_is_not_what_is_undone(scopes: Scopes):
    """As ``/compact`` leaves it: the compaction first, then what was kept, without what waited."""
    scopes.enter()
    scopes.exchange()
    scopes.end()
    scopes.resume()
    kept = [entry for entry in scopes.path if not isinstance(entry, CustomEntry)]
    child = Talk(prefix="f")
    begun = child.compaction("What came before.", "")
    path = (begun, *kept)
    assert any(compression_of(entry) for entry in path)
    assert newest_change(path) == (begun.id,)


def _grown(drawn: bytes) -> Sequence[tuple[Entry, ...]]:
    """A session with scopes, at most three deep, as it was after each thing that happened."""
    choices, history = Choices(drawn[:80]), History(Choices(drawn[80:]))
    scopes = Scopes(history.talk)
    steps: list[tuple[Entry, ...]] = []
    for number in range(24):
        state = scope_state(scopes.path)
        if state.pending is not None:
            match choices.below(4):
                case 0:
                    scopes.talk.user("typed after a crash")
                case 1:
                    scopes.put(left(state.pending.scope, state.pending.label, "stopped"))
                case _:
                    scopes.resume()
        else:
            _next(scopes, history, choices, len(state.open_scopes), number)
        steps.append(scopes.path)
    return steps


def _next(scopes: Scopes, history: History, choices: Choices, depth: int, number: int) -> None:
    match choices.below(12):
        case 1 | 2 | 3 if depth < 3:
            scopes.enter(f"scope {number}")
        case 4 | 5 | 6 if depth:
            scopes.end()
        case 7:
            history._waiting_call()
        case 8 if newest := newest_change(scopes.path):
            scopes.put(undo_mark(newest))
        case 9 if len(scopes.path) > 4 and choices.one_in(2):
            scopes.talk.compaction("What came before.", choices.pick(scopes.path[-6:]).id)
        case _:
            history.talked(1)


@SOME_OR_ALL
def test_at_every_point_of_any_nesting_the_context_can_be_sent(examples: int):
    def check(drawn: bytes) -> None:
        for path in _grown(drawn)[::3]:
            assert_sendable(path)

    for_every(drawn_bytes(), examples, check)


@SOME_OR_ALL
def test_any_scope_can_be_undone_to_the_very_same_context(examples: int):
    def check(drawn: bytes) -> None:
        steps = _grown(drawn)
        for before, after in pairwise(steps):
            if len(after) == len(before) + 1 and compression_of(after[-1]) is not None:
                scopes = Scopes(Talk(entries=[*after]))
                assert len(build_context(after).messages) <= len(build_context(before).messages)
                scopes.put(undo_mark(newest_change(after)))
                assert context_bytes(scopes.path) == context_bytes(before)

    for_every(drawn_bytes(), examples, check)
