"""What a person states is there after ten compactions: measured by a kit that others wrote."""

from contextlib import closing

import pytest
from compaction_kit.canaries import Canary, seeded_canaries
from compaction_kit.generated import build_generated_session
from compaction_kit.runner import run_conformance
from compaction_kit.session import SeededSession, build_seeded_session

from tests.benchmarks.conformance import AmidTalk, AtWork
from tests.support.rows import each_row

_ROUNDS = 10
_WINDOWS = (16_000, 32_000, 64_000, 128_000)


@pytest.mark.thorough
@each_row("way", [AtWork, AmidTalk])
@each_row("window", _WINDOWS)
def test_all_that_was_planted_is_there_after_ten_compactions(way: type[AtWork], window: int):
    assert _lost(way(window), build_seeded_session(), seeded_canaries()) == []


@pytest.mark.thorough
@each_row("seed", range(1, 11))
def test_so_is_what_was_stated_in_other_words(seed: int):
    session, planted = build_generated_session(seed)
    assert _lost(AmidTalk(_WINDOWS[seed % len(_WINDOWS)]), session, planted) == []


def _lost(way: AtWork, session: SeededSession, planted: list[Canary]) -> list[str]:
    with closing(way):
        run = run_conformance(session, way, rounds=_ROUNDS, canaries=planted)
    return [name for name, survived in run.rounds[-1].survived.items() if not survived]
