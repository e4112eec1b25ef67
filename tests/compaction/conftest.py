import pytest

from agent_tui.tokens import TokenCounter


@pytest.fixture(scope="session")
def counter() -> TokenCounter:
    return TokenCounter()
