"""How the provider's counts correct our estimates, live and in a session that is opened."""

from pathlib import Path

from agent_tui.events import CompactionFinished
from agent_tui.features.tour.scripted import Reply
from tests.support.long_work import long_work
from tests.support.runtime import Stage, collect, only


async def test_a_session_that_is_opened_is_compacted_to_its_target_as_the_provider_counts(
    tmp_path: Path,
):
    stage = Stage(tmp_path)
    earlier = long_work(stage.runtime([], window=200_000), lines=150, tokens=165_000)
    path = str(earlier.conversation.log.path)
    await earlier.aclose()
    runtime = stage.runtime([Reply(text="Done.")], window=200_000)
    await runtime.sessions.open(path)
    finished = only(await collect(runtime.submit("go on")), CompactionFinished)
    assert finished.tokens_before > 165_000
    assert finished.tokens_after <= runtime.conversation.limits.target
