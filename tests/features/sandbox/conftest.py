"""What the tests of the sandbox share."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import pytest

from agent_tui.errors import ToolError
from tests.agent.conftest import stage
from tests.support.watched_folder import OPEN_WATCHES

__all__ = ["stage"]


@pytest.fixture(autouse=True)
def _watches_are_closed() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """Close the watches of a test: each keeps files open, of which a process may have 1,024."""
    yield
    while OPEN_WATCHES:
        with suppress(OSError, ToolError):
            asyncio.run(OPEN_WATCHES.pop().close())
