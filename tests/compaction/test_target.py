"""A compaction meets its target whenever what may not shrink fits in it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import strategies as st

from agent_tui.compaction.curation.answer import KeepChoice, Pick
from agent_tui.compaction.curation.question import make_ask
from agent_tui.compaction.draft import CompactionDraft, draft_choice, make_draft
from agent_tui.compaction.plan import read_live
from agent_tui.compaction.sections.compose import NEWEST_SHARE
from agent_tui.config import CompactionSettings
from agent_tui.errors import CompactionError, NothingToCompactError
from agent_tui.messages import AssistantMessage, ToolCall
from agent_tui.providers.base import ModelRef
from agent_tui.sessions.entries import CompactionEntry, Entry
from agent_tui.tokens import TokenCounter
from tests.compaction.compacting import request_for, seen, size
from tests.compaction.sections.scene import numbered
from tests.support.histories import SOME_OR_ALL, changed_histories, for_every
from tests.support.importers.formats import read_recorded
from tests.support.talk import Talk
from tests.support.trajectories import some_trajectories, trajectory

SETTINGS = CompactionSettings()
LEAST_SUMMARY = 800
"""The first and the newest words of the user, short notes and the lists of files."""

LEAST_OUTPUT = 260
NOTES = "## Goal\nMake it work.\n\n## Progress\n### Done\n" + "".join(
    f"- [x] Step {number} changed part_{number}.py, and its tests pass.\n" for number in range(200)
)


def smallest(path: Sequence[Entry], counter: TokenCounter) -> int:
    """What no compaction of `path` can do without: pinned texts, and the newest exchange.

    Only outputs of the newest exchange can be cut. Pinned texts take at most 7/8 of a target.
    """
    live = read_live(path, counter)
    first = live.cuts[-1] if live.cuts else len(live.entries)
    newest = sum(
        min(tokens, LEAST_OUTPUT) if role in ("other", "unseen") else tokens
        for tokens, role in zip(live.tokens[first:], live.roles[first:], strict=True)
    )
    return max(live.pinned_tokens + newest + LEAST_SUMMARY, live.pinned_tokens * 8 // 7 + 1)


def drafts(
    path: Sequence[Entry], target: int, counter: TokenCounter, cwd: str = "/project"
) -> Iterator[tuple[int, CompactionDraft]]:
    """The size and the draft by code, and with long notes and a choice of everything."""
    request = request_for(
        path, settings=SETTINGS, window=200_000, target_tokens=target, cwd=cwd or "/project"
    )
    try:
        draft = make_draft(request, counter=counter)
    except CompactionError:
        return
    yield draft.tokens_after(request, counter), draft
    ask = make_ask(request, draft, counter=counter)
    picks = tuple(Pick(piece) for piece in ask.pieces)
    choice = KeepChoice(NOTES[: max(target - 5_000, 600)], picks, ModelRef("one"), path[-1].id)
    with suppress(NothingToCompactError):
        draft, _ = draft_choice(request, choice, counter=counter)
    yield draft.tokens_after(request, counter), draft


@SOME_OR_ALL
def test_a_drawn_conversation_meets_its_target(examples: int, counter: TokenCounter) -> None:
    def check(drawn: tuple[tuple[Entry, ...], int]) -> None:
        path, more = drawn
        target = smallest(path, counter) + more
        if size(path, counter) > target:
            assert all(after <= target for after, _ in drafts(path, target, counter))

    for_every(st.tuples(changed_histories(), st.sampled_from([0, 400, 2_000])), examples, check)


@pytest.mark.parametrize("name", some_trajectories())
@pytest.mark.parametrize("target", [10_000, 20_000, 25_000])
def test_a_recorded_session_meets_its_target(name: str, target: int, counter: TokenCounter) -> None:
    recorded = read_recorded(trajectory(name))
    whole = [entry for entry in recorded.entries if not isinstance(entry, CompactionEntry)]
    for part in (5, 4):
        path = whole[: len(whole) * part // 5]
        if size(path, counter) > target >= smallest(path, counter):
            found = list(drafts(path, target, counter, recorded.header.cwd))
            assert found
            assert all(after <= target for after, _ in found)
            assert all(not draft.left_out or after > 0.95 * target for after, draft in found)


def three_results(lines: int, last: str = "") -> tuple[Talk, Mapping[str, str]]:
    """A conversation whose newest call reads two files, and lists them again or prints `last`."""
    talk = Talk()
    talk.user("Make the two parts agree. Never touch vendor/.")
    for number in range(30):
        talk.tool("bash", {"command": f"check {number}"}, f"part {number} is fine\n" * 40)
    files = {
        f"{name}.py": "\n".join(f"{name}_{line} = compute({line})" for line in range(lines))
        for name in ("one", "two")
    }
    calls = [ToolCall(id=f"r{n}", name="read", arguments={"path": p}) for n, p in enumerate(files)]
    calls.append(ToolCall(id="l", name="bash", arguments={"command": "tail -n +1 one.py two.py"}))
    talk.reply("I read both.", *calls)
    for call, text in zip(calls, (*files.values(), last or "\n".join(files.values())), strict=True):
        talk.result(call, text)
    return talk, files


def test_the_newest_results_leave_room_for_the_rest(counter: TokenCounter) -> None:
    talk, files = three_results(250)
    target = 8_000
    request = request_for(talk.path, settings=SETTINGS, window=200_000, target_tokens=target)
    request = replace(request, on_disk=files.get)
    draft = make_draft(request, counter=counter)
    assert draft.tokens_after(request, counter) <= target
    newest = [item.message for item in seen((*talk.path, *draft.plan.edits))][-4:]
    assert counter.count_messages(newest) <= target * NEWEST_SHARE
    results = [message.text for message in newest[1:]]
    assert sum("one_0 = compute(0)" in text for text in results) == 1
    assert sum("two_0 = compute(0)" in text for text in results) == 1
    assert all("recall" in text for text in results)


def test_what_the_disk_has_is_cut_before_other_output(counter: TokenCounter) -> None:
    log = "\n".join(f"test_{number} FAILED: {number * 7}" for number in range(150))
    talk, files = three_results(150, log)
    request = request_for(talk.path, settings=SETTINGS, window=200_000, target_tokens=6_000)
    draft = make_draft(replace(request, on_disk=files.get), counter=counter)
    cut = {edit.target_id for edit in draft.plan.edits}
    assert {entry.id for entry in talk.entries[-3:-1]} <= cut
    assert talk.entries[-1].id not in cut


def test_the_target_is_filled(counter: TokenCounter) -> None:
    talk = Talk()
    for number in range(80):
        talk.user(f"Look at part {number}, and at nothing else before it works. " * 4)
        talk.tool("bash", {"command": f"check {number}"}, f"part {number} is fine\n" * 40)
        talk.reply(f"Part {number} is checked. " * 20)
    for target in (6_000, 9_000, 12_000):
        request = request_for(talk.path, settings=SETTINGS, window=200_000, target_tokens=target)
        after = make_draft(request, counter=counter).tokens_after(request, counter)
        assert 0.93 * target <= after <= target


def test_results_of_the_steps_that_stay_come_before_older_steps(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("Work off the tasks.")
    for number in range(60):
        item = numbered([f"Of task {number}, rule {rule} is strict." for rule in range(24)])
        talk.tool("read", {"path": f"tasks/{number}.txt"}, item)
        talk.reply(f"Task {number} asks for 24 rules. " * 4)
    talk.tool("bash", {"command": "git commit -qam x"}, "[main 1234567] x\n 1 file changed")
    talk.reply("Committed.")
    request = request_for(talk.path, settings=SETTINGS, window=200_000, target_tokens=6_000)
    draft = make_draft(request, counter=counter)
    assert 0.93 * 6_000 <= draft.tokens_after(request, counter) <= 6_000
    text = "\n".join(message.text for message in draft.plan.left.values())
    whole = [number for number in range(60) if f"Of task {number}, rule 23" in text]
    kept = [number for number in range(60) if f"Task {number} asks" in text]
    assert whole == list(range(whole[0], 60))
    assert len(whole) > 4
    assert kept[0] < 50


@pytest.mark.parametrize("changed_since", [False, True])
def test_committed_work_goes_from_a_call_only_if_the_disk_has_it(
    counter: TokenCounter, changed_since: bool
) -> None:
    talk, written = three_results(10)[0], "\n".join(f"line_{n} = {n}" for n in range(60))
    talk.tool("write", {"path": "/tmp/made.py", "content": written})
    talk.tool("bash", {"command": "git commit -qam made"}, "[main 1234567] made", exit_code=0)
    talk.reply("It is committed.")
    disk = {"/tmp/made.py": written.replace("line_7 ", "other ") if changed_since else written}
    request = request_for(talk.path, settings=SETTINGS, window=200_000, target_tokens=3_000)
    draft = make_draft(replace(request, on_disk=disk.get), counter=counter)
    after = (*draft.plan.kept_entries, *draft.plan.edits)
    calls = [
        str(call.arguments)
        for item in seen(after)
        if isinstance(item.message, AssistantMessage)
        for call in item.message.tool_calls
    ]
    assert any("/tmp/made.py" in call for call in calls)
    assert any("line_9 = 9" in call for call in calls) is changed_since
