from collections.abc import Generator

import pytest

from agent_tui.key_actions import KeyMap, put_in_force
from tests.support.leaping_clock import leaping_time


@pytest.fixture(autouse=True, scope="package")
def time_leaps() -> Generator[None]:
    """Nothing here waits for real: see `leaping_time`."""
    with leaping_time():
        yield


@pytest.fixture(autouse=True)
def usual_keys() -> Generator[None]:
    """Keys that a test chose are its own."""
    yield
    put_in_force(KeyMap())
