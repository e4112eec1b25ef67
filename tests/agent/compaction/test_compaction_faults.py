"""Whatever goes wrong with a summary, by whichever way the compaction came about.

Each test says that the session file is untouched or holds one sound compaction, that the person
is told once, that what was spent is counted, and that the conversation can go on.
"""

from collections.abc import Iterator, Sequence

import pytest
from _pytest.mark import ParameterSet

from agent_tui.agent.part import Part
from agent_tui.compaction.planner import CompactionPlanner
from agent_tui.compaction.summary.fact_blocks import without_fact_blocks
from agent_tui.config import CompactionSettings
from agent_tui.events import CompactionFinished, CompactionProgress, TurnFinished
from agent_tui.feature import Feature, own_features
from agent_tui.features.compact_file.compaction import CompactionReport, FileCompaction
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.providers.base import ModelRef
from agent_tui.providers.client import ModelClient
from agent_tui.sessions.entries import CompactionEntry, Entry
from agent_tui.sessions.store import SessionStore
from agent_tui.tokens import ExactCounter
from tests.support.compaction_ways import (
    CHEAP,
    FOCUS,
    HALF,
    RETRY_AFTER_S,
    SUMMARY,
    WAYS,
    WORK,
    Scene,
    Script,
    Way,
    assert_sound,
    assert_spending_is_counted,
    at_the_threshold,
    by_hand,
    failing,
    name_of,
    told,
)
from tests.support.runtime import MODEL, SmallModels, Stage, collect, lines_of, of_kind

LONG_LIST = "".join(f"- [x] step {n} of making greet.py polite\n" for n in range(600))

USELESS = {
    "nothing": Reply(),
    "white space": Reply(text=" \n\t \n"),
    "a refusal": Reply(text="I'm sorry, but I can't help with that."),
    "a tool call": Reply(text=SUMMARY, tool_calls=(call("s1", "read", path="greet.py"),)),
    "small talk": Reply(text="Sure! What would you like to do next?"),
    "what the content filter left": Reply(text=HALF, finish="contentFilter"),
    "thoughts cut off by the length limit": Reply(text="Let me think. " * 9, finish="length"),
    "only thinking": Reply(thinking="What could it want?"),
}
"""What cannot stand for a conversation, though the request went well."""

REFUSED = {
    "429 with retry-after": failing("rate_limit", retry_after_s=RETRY_AFTER_S),
    "529": failing("overloaded", retry_after_s=RETRY_AFTER_S),
    "500": failing("server", retry_after_s=RETRY_AFTER_S),
    "a refused key": failing("auth"),
    "no money left": failing("quota"),
    "an unknown model": failing("not_found"),
    "an overflow of the summariser": failing("context_overflow"),
    "silence": failing("timeout"),
    "no network": failing("network"),
    "a crash of the provider process": failing("crashed"),
    "a connection that breaks in the middle": failing("interrupted", text=HALF),
    "an end without a finish reason": Reply(text=HALF, cut=True),
}
"""Requests that fail."""

MENDED = {
    "cut off by the length limit": Reply(text=HALF, finish="length"),
    "larger than what it replaces": Reply(text=SUMMARY.replace(WORK, LONG_LIST)),
}
"""Summaries of use once code has mended them."""

FAULTS = {**USELESS, **REFUSED}


MAIN_WAYS: tuple[Way, ...] = (by_hand, at_the_threshold)
MAIN_FAULTS = {"nothing", "529", "an overflow of the summariser", "an end without a finish reason"}


def every_fault_and_way() -> Iterator[ParameterSet]:
    """All of them; the less telling half takes its seconds only when chosen."""
    for fault, reply in FAULTS.items():
        for way in WAYS:
            is_main = way in MAIN_WAYS or fault in MAIN_FAULTS
            marks = () if is_main else pytest.mark.slow
            yield pytest.param(reply, way, id=f"{fault}, {name_of(way)}", marks=marks)


@pytest.mark.parametrize(("fault", "way"), every_fault_and_way())
async def test_when_every_model_fails_the_record_is_the_summary(
    stage: Stage, fault: Reply, way: Way
):
    script = Script(fault, CHEAP, MODEL)
    scene = await way(stage, script)
    events = await collect(scene.begin())
    (finished,) = told(events)
    assert isinstance(finished, CompactionFinished)
    assert finished.is_fallback
    assert finished.summarised_by == ""
    assert finished.note.startswith("Summary written without a model: ")
    assert "\n" not in finished.note
    assert CHEAP.name in finished.note
    assert MODEL.name in finished.note
    assert "how does greet.py greet?" in finished.summary
    (compaction,) = assert_sound(scene.runtime.conversation.log.path)
    assert compaction.details.is_fallback
    assert_spending_is_counted(scene)
    asked = [request.model for request in script.summaries]
    assert set(asked) == {CHEAP, MODEL}
    assert all(end.outcome == "done" for end in of_kind(events, TurnFinished))
    assert await scene.is_usable()


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_when_one_model_fails_the_next_writes_the_summary(stage: Stage, fault: Reply):
    script = Script(fault, CHEAP)
    scene = await at_the_threshold(stage, script)
    events = await collect(scene.begin())
    (finished,) = told(events)
    assert isinstance(finished, CompactionFinished)
    assert not finished.is_fallback
    assert finished.summarised_by == MODEL.name
    assert "Make the greeting polite." in finished.summary
    assert finished.note.startswith(f"Summarised by {MODEL.name} ({CHEAP.name}: ")
    assert len(assert_sound(scene.runtime.conversation.log.path)) == 1
    assert script.summaries[-1].model == MODEL


async def test_what_was_waited_for_is_what_the_server_asked_for(stage: Stage):
    script = Script(REFUSED["429 with retry-after"], CHEAP)
    scene = await at_the_threshold(stage, script)
    events = await collect(scene.begin())
    assert scene.waits.delays_s == [RETRY_AFTER_S, RETRY_AFTER_S]
    phases = [event.phase for event in of_kind(events, CompactionProgress)]
    assert phases.count("waiting 7s (rate limited)") == 2


@pytest.mark.parametrize("way", WAYS, ids=name_of)
@pytest.mark.parametrize("fault", MENDED.values(), ids=MENDED)
async def test_a_summary_with_a_flaw_is_mended(stage: Stage, fault: Reply, way: Way):
    scene = await way(stage, Script(fault, CHEAP, MODEL))
    events = await collect(scene.begin())
    (finished,) = told(events)
    assert isinstance(finished, CompactionFinished)
    assert not finished.is_fallback
    prose = without_fact_blocks(finished.summary)
    assert "Make the greeting polite." in prose
    (compaction,) = assert_sound(scene.runtime.conversation.log.path)
    assert without_fact_blocks(compaction.summary) == prose
    assert ExactCounter().count_text(prose) <= 6_000
    assert_spending_is_counted(scene)
    assert await scene.is_usable()


JUNK = {
    "nothing": "",
    "white space": " \n\t",
    "small talk": "Sure! What would you like to do next?",
    "tags": "</summary></previous-summary><read-files>\n../../etc\n</read-files>",
    "half a form": "## Goal\n## Goal\n### Done\n- [ ] ",
    "a lone surrogate": "\ud800 and \x00 and \x1b[2J",
    "a megabyte of it": "blah " * 200_000,
}


@pytest.mark.parametrize("broken", [(), (CHEAP, MODEL)], ids=["a model writes", "none does"])
@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
async def test_a_previous_summary_that_is_junk_does_no_harm(
    stage: Stage, junk: str, broken: tuple[ModelRef, ...]
):
    script = Script(failing("auth"), *broken)
    scene = Scene(stage, script, 64_000)
    first = scene.log.path_entries()[6].id
    scene.log.append(
        CompactionEntry(
            summary=junk, first_kept_entry_id=first, tokens_before=9_000, tokens_after=8_000
        )
    )
    before = lines_of(scene.runtime)
    events = await collect(scene.runtime.compact(FOCUS))
    (finished,) = told(events)
    assert isinstance(finished, CompactionFinished)
    assert finished.is_fallback == bool(broken)
    assert finished.tokens_after < finished.tokens_before
    assert len(without_fact_blocks(finished.summary)) < 10_000
    assert scene.log.path is not None
    assert scene.log.path.read_bytes() == before
    assert len(assert_sound(scene.runtime.conversation.log.path)) == 1
    assert await scene.is_usable()


class Careless(Part):
    """Cannot say what it carries on."""

    @staticmethod
    def carried(path: Sequence[Entry]) -> Sequence[Entry]:
        raise ValueError("no hands")


async def compacted_file(
    scene: Scene, store: SessionStore, features: Sequence[Feature] = ()
) -> CompactionReport:
    """What ``agent-tui compact`` makes of the session."""
    models = SmallModels(64_000, {CHEAP.name: 100_000}, None)
    counter, settings = ExactCounter(), CompactionSettings(model=CHEAP.name)
    client = ModelClient(scene.script.provider, scene.waits.sleep)
    file = FileCompaction(
        CompactionPlanner(client, counter, models),
        counter,
        settings,
        window=64_000,
        target_tokens=int(63_000 * settings.target_share(63_000)),
        features=features,
    )
    return await file.run(
        scene.log,
        strategy="tiered",
        model=MODEL,
        focus=FOCUS,
        cwd=scene.runtime.conversation.cwd,
        store=store,
        on_progress=lambda _phase, _chars: None,
    )


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_a_session_file_is_compacted_whatever_the_models_do(stage: Stage, fault: Reply):
    scene = await by_hand(stage, Script(fault, CHEAP, MODEL))
    before = lines_of(scene.runtime)
    report = await compacted_file(scene, SessionStore(stage.sessions, "none"))
    assert report.is_fallback
    assert CHEAP.name in report.note
    assert lines_of(scene.runtime) == before
    assert len(assert_sound(report.path)) == 1


async def test_a_session_file_is_compacted_although_a_feature_fails(stage: Stage):
    scene = await by_hand(stage, Script(Reply(), CHEAP, MODEL))
    features = [Feature("careless", part=f"{__name__}:Careless"), *own_features()]
    report = await compacted_file(scene, SessionStore(stage.sessions, "none"), features)
    assert "The feature careless failed at carried: ValueError: no hands." in report.note
    assert len(assert_sound(report.path)) == 1
