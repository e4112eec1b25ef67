from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from agent_tui.providers.host import ProviderHost
from tests.agent.conftest import stage
from tests.support.search_server import SearchServer

__all__ = ["stage"]

PRICES = {"input_cost_per_token": 1e-5, "output_cost_per_token": 1e-5}


@pytest.fixture
def server() -> Iterator[SearchServer]:
    with SearchServer() as server:
        yield server


@pytest.fixture
async def host(tmp_path: Path) -> AsyncGenerator[ProviderHost]:
    host = ProviderHost(
        log_path=tmp_path / "log", environ={"A_KEY": "key"}, known=lambda _name: PRICES
    )
    yield host
    await host.aclose()
