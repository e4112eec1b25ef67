from pathlib import Path

import pytest

from agent_tui.features.tour.scripted import Reply, call
from agent_tui.ui.transcript.blocks import UserBlock
from tests.support.runtime import Stage
from tests.ui.app_support import Ui, asking, held, running_app

WRITE = Reply(tool_calls=(call("c1", "write", path="AGENTS.md", content="Mine."),))


async def allow(ui: Ui) -> None:
    """Let the file be written."""
    ui.approval.arm()
    await ui.pilot.press("y")
    await ui.settle()


async def test_init_has_the_model_write_the_file_and_puts_it_in_force(tmp_path: Path):
    script = (WRITE, held("Written."), Reply(text="It is good as it is."))
    async with running_app(tmp_path, *script, approval_quiet_s=3_600.0) as ui:
        await ui.send("/init the release steps")
        assert ui.sent[0].startswith("Write AGENTS.md: ")
        assert "as short as possible" in ui.sent[0]
        (shown,) = [block.text for block in ui.blocks if isinstance(block, UserBlock)]
        assert shown.endswith("\n\nIn particular: the release steps")
        assert len(shown) < 200, "the person sees what is asked, the model all of it"
        await allow(ui)
        await ui.send("/init")
        assert ui.notices[-1].startswith("Cannot write AGENTS.md while the agent works")
        await ui.finish()
        assert ui.notices[-1] == "AGENTS.md takes effect with your next message."
        assert "Mine." in ui.system_prompt
        await ui.send("/init")
        assert "so improve it" in ui.sent[1]
        assert ui.notices[-1] == "AGENTS.md takes effect with your next message."
        assert len(ui.notices) == 2, "nothing changed, so nothing is said"


@pytest.mark.thorough
async def test_init_says_when_what_was_written_is_not_obeyed_and_writes_nothing_in_plan_mode(
    tmp_path: Path,
):
    stage = Stage(tmp_path, is_trusted=False)
    runtime = asking(stage, WRITE, Reply(text="Written."))
    options = {"stage": stage, "runtime": runtime, "approval_quiet_s": 3_600.0}
    async with running_app(tmp_path, **options) as ui:
        await ui.send("/permissions plan")
        await ui.send("/init")
        assert ui.notices[-1].startswith("Plan mode cannot write files")
        assert ui.sent == []
        await ui.send("/permissions ask")
        await ui.send("/init")
        await allow(ui)
        await ui.until(lambda: "not in effect" in ui.notices[-1])
        assert ui.notices[-1] == (
            "AGENTS.md is not in effect: the folder is not trusted. /trust changes that."
        )
