"""Whatever was said, all of it is in the context whole, or shortened with its id."""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_tui.compaction.draft import make_draft
from agent_tui.compaction.outcome import child_entries
from agent_tui.compaction.sections.history import is_filler
from agent_tui.config import CompactionSettings
from agent_tui.errors import NothingToCompactError
from agent_tui.messages import (
    TextContent,
    ToolCall,
    ToolDetails,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.entries import Entry, MessageEntry
from agent_tui.tokens import TokenCounter
from tests.compaction.compacting import compacted, in_place, request_for, seen
from tests.compaction.writer import GOOD, Writer
from tests.support.talk import Talk

_SLACK_TOKENS = 150
"""A message takes at least a line; less room than a few of them is none."""


@dataclass(frozen=True)
class Statement:
    """What was said, and the entry that has it."""

    entry_id: str
    text: str


def _paste(talk: Talk, size: int) -> Statement:
    lines = (f"2026-03-01 worker-{n} INFO request {n * size} took {n} ms" for n in range(size))
    text = f"It printed this ({len(talk.entries)}):\n" + "\n".join(lines)
    return Statement(talk.user(text).id, text)


def _order(talk: Talk, size: int) -> Statement:
    text = f"Rename part {len(talk.entries)} of {size}"
    return Statement(talk.user(text).id, text)


def _wish(talk: Talk, size: int) -> Statement:
    text = f"In part {len(talk.entries)} {'the words are short and plain, ' * (size % 40)}please"
    return Statement(talk.user(text).id, text)


def _answer(talk: Talk, size: int) -> Statement:
    talk.reply(f"Part {len(talk.entries)} is done. Shall I drop table_{size}?")
    return Statement(talk.user("yes").id, f"drop table_{size}?")


def _refusal(talk: Talk, size: int) -> Statement:
    call = ToolCall(id=f"c{len(talk.entries)}", name="edit", arguments={"path": f"a{size}.py"})
    talk.reply("", call)
    words = f"never touch part {len(talk.entries)}"
    is_new = bool(size % 2)  # earlier versions have the words only in the text
    details = ToolDetails(ending="declined", user_words=words if is_new else "")
    entry = talk.message(
        lambda ms: ToolResultMessage(
            tool_call_id=call.id,
            tool_name=call.name,
            content=(TextContent(text=f"The user declined this call. They say: {words}"),),
            is_error=True,
            details=details.model_dump(mode="json", by_alias=True, exclude_defaults=True),
            timestamp=ms,
        )
    )
    return Statement(entry.id, words)


def _filler(talk: Talk, size: int) -> None:
    talk.reply("Done.")
    talk.user(("ok", "Go on!", "thanks, continue")[size % 3])


def _work(talk: Talk, size: int) -> None:
    text = "\n".join(f"value_{n} = {n}" for n in range(size))
    talk.tool("read", {"path": f"src/m{size}.py"}, text)


_KINDS = (_paste, _order, _order, _wish, _answer, _refusal, _filler, _work, _work)
_STEPS = st.lists(st.tuples(st.sampled_from(_KINDS), st.integers(1, 450)), min_size=4, max_size=60)


def _talk(steps: Sequence[tuple[object, int]]) -> tuple[Talk, list[Statement]]:
    talk = Talk()
    talk.user("Build the greeter.")
    talk.reply("I begin. " + "It is a long way to go. " * 60)
    statements: list[Statement] = []
    for make, size in steps:
        if (made := make(talk, size)) is not None:  # pyright: ignore
            statements.append(made)
        talk.reply(f"Part {len(talk.entries)} is done.")
    return talk, statements


def _is_there(statement: Statement, text: str) -> bool:
    is_cut = re.search(rf"\[recall {statement.entry_id}\]", text)
    return statement.text in text or is_cut is not None


@settings(max_examples=40, deadline=None)
@given(steps=_STEPS, window=st.sampled_from([16_000, 40_000, 128_000]), has_notes=st.booleans())
def test_all_that_was_said_is_there_while_the_target_is_not_full(
    counter: TokenCounter,
    steps: Sequence[tuple[object, int]],
    window: int,
    has_notes: bool,
) -> None:
    talk, statements = _talk(steps)
    chosen = CompactionSettings()
    writer = Writer([f"<notes>\n{GOOD}\n</notes>\n<keep>\n#1\n#2\n</keep>"]) if has_notes else None
    path: tuple[Entry, ...] = talk.path
    result = compacted(path, counter, settings=chosen, window=window, writer=writer)
    if result is None:
        return
    messages = seen(in_place(path, result))
    text = "\n".join(item.message.text for item in messages).replace("&lt;", "<")
    used = counter.count_messages(item.message for item in messages)
    lost = [one for one in statements if not _is_there(one, text)]
    assert not lost or used >= window * chosen.target_share(window) - _SLACK_TOKENS, lost


def test_only_fillers_say_nothing() -> None:
    for filler in ("ok", "Thanks!", "Go on.", "ok, go on", "Yes", "yes, please"):
        assert is_filler(filler)
    for said in ("no", "undo it", "ok, but skip the tests", "yes to the second", "stop", "do it"):
        assert not is_filler(said)


def _orders(count: int, *, with_files: bool) -> Talk:
    talk = Talk()
    talk.user("Build the greeter.")
    for number in range(count):
        if with_files and number % 10 == 0:
            _work(talk, 300 + number)
        talk.reply(f"Part {number} is done.")
        talk.user(f"Rename part {number} to piece {count - number}")
    talk.reply("All is done.")
    return talk


@pytest.mark.parametrize("count", [500, 1_400])
@pytest.mark.parametrize("with_files", [True, False])
def test_orders_are_left_out_only_when_the_target_is_full(
    counter: TokenCounter, count: int, with_files: bool
) -> None:
    talk, chosen = _orders(count, with_files=with_files), CompactionSettings()
    result = compacted(talk.path, counter, settings=chosen, window=100_000)
    assert result is not None
    messages = seen(in_place(talk.path, result))
    text = "\n".join(item.message.text for item in messages)
    lost = sum(f"Rename part {n} to piece {count - n}" not in text for n in range(count))
    used = counter.count_messages(item.message for item in messages)
    if count == 500:
        assert not lost
    else:
        assert 0.97 * 100_000 * chosen.target_share(100_000) <= used
        told = re.search(r"\[(\d+) later messages left out; recall .*: e0", text)
        assert told is not None
        assert 0 < lost <= int(told[1])


def test_room_that_nothing_else_takes_goes_to_what_was_said(counter: TokenCounter) -> None:
    talk, chosen = _orders(800, with_files=False), CompactionSettings()
    paste = _paste(talk, 3_000)
    talk.reply("I see.")
    result = compacted(talk.path, counter, settings=chosen, window=100_000)
    assert result is not None
    messages = seen(in_place(talk.path, result))
    text = "\n".join(item.message.text for item in messages)
    assert all(f"Rename part {n} to piece {800 - n}" in text for n in range(800))
    assert f"[recall {paste.entry_id}]" in text
    used = counter.count_messages(item.message for item in messages)
    assert used <= 1.01 * 100_000 * chosen.target_share(100_000)


def _steps_of(work: Callable[[], object]) -> int:
    """The number of function calls that `work` makes."""
    steps = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return steps


def test_a_paste_of_four_times_the_lines_takes_at_most_six_times_the_steps(
    counter: TokenCounter,
) -> None:
    def steps_for(lines: int) -> int:
        talk = Talk()
        talk.user("Build the greeter.")
        talk.reply("I begin.")
        log = (f"INFO app.services.authentication: request {n} took {n} ms" for n in range(lines))
        talk.user("\n".join(log))
        talk.reply("I see. " * 200)
        talk.user("Go on.")
        talk.reply("Done. " * 200)
        request = request_for(talk.path, settings=CompactionSettings(), window=100_000)
        return _steps_of(lambda: make_draft(request, counter=counter))

    assert steps_for(4_000) < 6 * steps_for(1_000)


def _log(lines: int, name: str) -> str:
    return "\n".join(f"INFO {name}: request {n} took {n * 7} ms" for n in range(lines))


TYPED = ("It fails.", "Use tabs in all SQL files.", "Begin with the tests.")


def _with_pastes(talk: Talk) -> str:
    text = "\n".join((TYPED[0], _log(300, "one"), TYPED[1], _log(300, "two"), TYPED[2]))
    return talk.message(lambda ms: UserMessage(content=text, typed=TYPED, timestamp=ms)).id


def _go_on(talk: Talk) -> None:
    for number in range(4):
        talk.reply(f"Part {number} is done. " * 200)
        talk.user(f"Go on with part {number}.")
    talk.reply("All is done.")


@pytest.mark.parametrize("is_newest", [False, True])
def test_words_typed_between_pastes_stay_whole(counter: TokenCounter, is_newest: bool) -> None:
    talk = Talk()
    talk.user("Build the greeter.")
    if is_newest:
        _go_on(talk)
    said = _with_pastes(talk)
    talk.reply("I see. " * 200)
    if not is_newest:
        _go_on(talk)
    result = compacted(talk.path, counter, settings=CompactionSettings(), window=40_000)
    assert result is not None
    text = "\n".join(item.message.text for item in seen(in_place(talk.path, result)))
    assert f"[recall {said}]" in text
    assert all(part in text for part in TYPED)
    assert "INFO one: request 150 " not in text


def test_words_typed_between_pastes_stay_whole_in_later_sessions(counter: TokenCounter) -> None:
    talk, chosen = Talk(), CompactionSettings()
    talk.user("Build the greeter.")
    said = _with_pastes(talk)
    previous = None
    for _ in range(3):
        _go_on(talk)
        result = compacted(talk.path, counter, settings=chosen, window=40_000, previous=previous)
        assert result is not None
        assert all(part in result.summary for part in TYPED)
        assert f"[recall {said}]" in result.summary
        previous = result.carryover
        talk = Talk(prefix=f"{talk.prefix}n")
        talk.entries.extend(child_entries(result))


_WHOLE_TOKENS = 30
"""A statement below this stays whole if all of them need less than a fifth of the target."""


def _rule(number: int) -> str:
    return f"Rule {number}: name file f{number}.py with {number}0 lines at most"


def _rules_kept(
    counter: TokenCounter, rules: int, pasted: Sequence[int], *, window: int, overhead: int
) -> int:
    """How many of `rules` are whole after a compaction with logs of `pasted` lines as newest."""
    talk = Talk()
    for number in range(rules):
        talk.user(_rule(number))
        talk.reply("Understood.")
    for at, lines in enumerate(pasted):
        talk.user(_log(lines, f"log{at}"))
        talk.reply("I read it.")
    path = talk.path[:-1]  # the newest log has no reply yet
    request = request_for(path, settings=CompactionSettings(), window=window)
    request = replace(request, sizes=replace(request.sizes, overhead=overhead))
    try:
        draft = make_draft(request, counter=counter)
    except NothingToCompactError:
        return rules
    kept = (e.message.text for e in draft.plan.kept_entries if isinstance(e, MessageEntry))
    text = "\n".join((draft.summary, *kept))
    return sum(_rule(number) in text for number in range(rules))


@settings(max_examples=40, deadline=None)
@given(
    share=st.floats(0.5, 1.0) | st.floats(0.02, 2.5),
    earlier=st.lists(st.integers(100, 500), max_size=3),
    window=st.sampled_from([16_000, 40_000]),
    overhead=st.integers(0, 5_000),
    rules=st.integers(1, 120),
)
@example(share=0.76, earlier=[150], window=16_000, overhead=0, rules=40)
@example(share=0.72, earlier=[450, 450], window=40_000, overhead=2_000, rules=40)
def test_a_newest_paste_of_any_size_leaves_short_statements_whole(
    counter: TokenCounter,
    share: float,
    earlier: list[int],
    window: int,
    overhead: int,
    rules: int,
) -> None:
    needed = [counter.count_text(_rule(number)) for number in range(rules)]
    assert max(needed) < _WHOLE_TOKENS
    target = CompactionSettings().target_tokens(window)
    newest = int(100 * share * target / counter.count_text(_log(100, "newest")))
    kept = partial(_rules_kept, counter, rules, window=window, overhead=overhead)
    whole = kept((*earlier, newest))
    assert whole >= kept((*earlier, 2 * newest))
    if sum(needed) < target / 5:
        assert whole == rules


@pytest.mark.parametrize("window", [16_000, 200_000])
def test_a_newest_paste_is_cut_when_a_summary_is_asked_for_and_it_alone_exceeds_the_target(
    counter: TokenCounter, window: int
) -> None:
    target = CompactionSettings().target_tokens(window)
    a_line = counter.count_text(_log(100, "newest")) / 100
    is_whole: list[bool] = []
    for share in (0.3, 0.7, 0.8, 0.9, 1.0, 1.1, 2.0):
        talk = Talk()
        for number in range(20):
            talk.user(_rule(number))
            talk.reply("Understood. " * (window // 200))
        pasted = talk.user(_log(int(share * target / a_line), "newest"))
        request = request_for(talk.path, settings=CompactionSettings(), window=window)
        draft = make_draft(replace(request, occasion="new session"), counter=counter)
        assert draft.tokens_after(request, counter) <= target
        kept = (e.message.text for e in draft.plan.kept_entries if isinstance(e, MessageEntry))
        text = "\n".join((draft.summary, *kept))
        assert all(_rule(number) in text for number in range(20))
        is_whole.append(pasted.message.text in text)
        assert is_whole[-1] or f"[recall {pasted.id}]" in text
    assert is_whole == sorted(is_whole, reverse=True)
    assert is_whole[1]
    assert not is_whole[4]


def test_only_messages_that_are_nowhere_in_the_context_are_counted(counter: TokenCounter) -> None:
    talk = Talk()
    for number in range(300):
        talk.user(_rule(number))
        talk.reply("Understood. " * 20)
    result = compacted(talk.path, counter, settings=CompactionSettings(), window=16_000)
    assert result is not None
    text = "\n".join(item.message.text for item in seen(in_place(talk.path, result)))
    assert "<pinned-constraints>" in text
    lost = sum(_rule(number) not in text for number in range(300))
    assert f"no longer sees {lost} of your messages" in result.note
