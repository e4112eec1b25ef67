"""The line about a compaction and the bar after it show one figure."""

from pathlib import Path

import pytest

from agent_tui.events import CompactionFinished
from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.messages import Usage
from agent_tui.providers.base import ModelRequest
from agent_tui.tokens import ExactCounter, TokenCounter
from tests.support.runtime import Stage, collect, only

WINDOW = 40_000


def _counted(request: ModelRequest, counter: TokenCounter, factor: float) -> Usage:
    """What a provider counts that has `factor` tokens for each of ours, and 900 of its own."""
    ours = counter.count_messages(request.messages) + counter.count_tools(request.tools)
    total = round(factor * (ours + counter.count_text(request.system))) + 900
    return Usage(input=total, output=1, total_tokens=total)


@pytest.mark.parametrize("starts_session", [True, False])
@pytest.mark.parametrize("factors", [(1.4, 1.0), (1.0, 1.3), (0.8, 1.1)])
async def test_the_bar_stays_at_the_figure_in_the_line(
    tmp_path: Path, factors: tuple[float, float], *, starts_session: bool
):
    stage, counter = Stage(tmp_path), ExactCounter()
    for number in range(8):
        lines = (f"value {number} {row} of the table\n" for row in range(200))
        (stage.workspace / f"f{number}.py").write_text("".join(lines), encoding="utf-8")
    turns = 0

    def answer(request: ModelRequest) -> Reply:
        nonlocal turns
        turns += request.purpose == "turn"
        number = turns - 1
        usage = _counted(request, counter, factors[number > 2])
        if number < 8:
            return Reply(
                tool_calls=(call(f"c{number}", "read", path=f"f{number}.py"),), usage=usage
            )
        return Reply(text="Done.", usage=usage)

    runtime = stage.runtime(ScriptedProvider(answer), window=WINDOW)
    await collect(runtime.submit("Read all files."))
    compaction = runtime.compact() if starts_session else runtime.compact_here("tiered")
    finished = only(await collect(compaction), CompactionFinished)
    await runtime.refresh_usage()
    assert abs(runtime.conversation.usage.used - finished.tokens_after) <= 0.001 * WINDOW


async def test_the_newest_figure_before_a_compaction_gives_the_scale_of_both(tmp_path: Path):
    stage, counter = Stage(tmp_path), ExactCounter()

    def answer(request: ModelRequest) -> Reply:
        return Reply(text="It is so. " * 300, usage=_counted(request, counter, 1.8))

    runtime = stage.runtime(ScriptedProvider(answer), window=200_000)
    for number in range(6):
        await collect(runtime.submit(f"Say part {number}."))
    finished = only(await collect(runtime.compact()), CompactionFinished)
    await runtime.refresh_usage()
    assert abs(runtime.conversation.usage.used - finished.tokens_after) <= 40
