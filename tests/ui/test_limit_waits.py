"""A session that was left while its turn waited for a limit, opened on the screen."""

from pathlib import Path

from agent_tui.agent.turn.limit_wait import open_wait
from agent_tui.features.tour.scripted import Reply
from agent_tui.providers.base import ProviderError
from agent_tui.sessions.log import SessionLog
from tests.support.runtime import Stage
from tests.support.waiting_session import leave_waiting
from tests.support.wall_clock import SleptClock
from tests.ui.app_support import asking, running_app

HOUR_S = 3_600.0


async def test_it_continues_at_the_reset_without_a_key(tmp_path: Path):
    stage, clock = Stage(tmp_path), SleptClock()
    path = await leave_waiting(stage, clock, 5 * HOUR_S)
    clock.now_s += 2 * HOUR_S
    runtime = asking(stage, Reply("Seven files."), sleep=clock.sleep, limit_wait_h=12)
    runtime.services.wall_clock = clock.read
    async with running_app(tmp_path, stage=stage, runtime=runtime, resume=str(path)) as ui:
        await ui.until(lambda: any("Continuing after 3h 00m." in text for text in ui.notices))
        await ui.settle()
        assert runtime.conversation.log.path == path
        assert runtime.unfinished_wait is None
        assert [message.text for message in stage.model.requests[0].messages] == ["count the files"]


async def test_quitting_during_the_wait_leaves_it_for_the_next_start(tmp_path: Path):
    limited = Reply(error=ProviderError("rate_limit", "Too fast.", retry_after_s=5 * HOUR_S))
    stage = Stage(tmp_path)
    runtime = asking(stage, limited, limit_wait_h=12)
    async with running_app(tmp_path, stage=stage, runtime=runtime) as ui:
        await ui.submit("count the files")
        await ui.until(lambda: ui.activity.state is not None and ui.activity.state.ends_at_s)
    path = runtime.conversation.log.path
    assert path is not None
    with SessionLog.open(path, read_only=True) as log:
        assert open_wait(log.path_entries()) is not None
