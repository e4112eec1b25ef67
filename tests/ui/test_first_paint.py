import subprocess
import sys

NOT_YET = {"pydantic", "agent_tui.events", "agent_tui.messages", "agent_tui.agent.runtime"}


def test_the_first_paint_waits_neither_for_pydantic_nor_for_the_conversation():
    code = "import sys, agent_tui.ui.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & NOT_YET == set()
