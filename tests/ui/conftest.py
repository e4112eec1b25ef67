from collections.abc import Generator

import pytest

from tests.support.leaping_clock import leaping_time


@pytest.fixture(autouse=True, scope="package")
def time_leaps() -> Generator[None]:
    """Nothing here waits for real: see `leaping_time`."""
    with leaping_time():
        yield
