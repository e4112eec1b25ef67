from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agent_tui.tools.processes.keeper import ProcessKeeper
from tests.support.mcp_servers import Stage


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncGenerator[Stage]:
    keeper = ProcessKeeper()
    stage = Stage(tmp_path, keeper)
    yield stage
    await stage.hub.aclose()
    keeper.close()
