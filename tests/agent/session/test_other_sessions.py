"""A turn that asks for what was said in an earlier session of the folder."""

import pytest

from agent_tui.events import ToolFinished
from agent_tui.features.tour.scripted import Reply, call
from tests.support.runtime import Stage, collect, only


@pytest.mark.parametrize("reaches_others", [True, False])
async def test_the_model_finds_an_earlier_session_unless_the_setting_forbids_it(
    stage: Stage, reaches_others: bool
) -> None:
    first = stage.runtime([Reply(text="The flaky test waits for the violet port.")])
    await collect(first.submit("Fix it."))
    await first.aclose()
    asking = [Reply(tool_calls=(call("r1", "recall", query="flaky violet"),)), Reply(text="So.")]
    second = stage.runtime(asking)
    second.services.settings = second.services.settings.model_copy(
        update={"recall_other_sessions": reaches_others}
    )
    found = only(await collect(second.submit("How was it done?")), ToolFinished).message.text
    await second.aclose()
    assert ("The flaky test waits for the violet port." in found) is reaches_others
