"""Ten compactions of a conversation amid work: nothing that the person stated falls off."""

import pytest
from compaction_kit.canaries import seeded_canaries
from compaction_kit.generated import build_generated_session
from compaction_kit.runner import run_conformance
from compaction_kit.session import build_seeded_session

from tests.benchmarks.conformance import AtWork


@pytest.mark.thorough
@pytest.mark.timeout(90)
@pytest.mark.parametrize("window", [16_000, 128_000])
@pytest.mark.parametrize("seed", [None, 1])
def test_all_that_was_stated_is_there_after_ten_compactions(window: int, seed: int | None) -> None:
    if seed is None:
        session, stated = build_seeded_session(), seeded_canaries()
    else:
        session, stated = build_generated_session(seed)
    compactor = AtWork(window)
    run = run_conformance(session, compactor, rounds=10, canaries=stated)
    gone = {one for done in run.rounds for one, is_there in done.survived.items() if not is_there}
    assert len(run.rounds) == 10
    assert not gone
