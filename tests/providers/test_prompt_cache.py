import pytest

from agent_tui.providers.base import ModelRef
from agent_tui.providers.prompt_cache import cache_lifetime
from tests.support.rows import each_row


@each_row(
    ("name", "minutes"),
    [
        ("anthropic/claude-sonnet-4-5", (5, 5)),
        ("bedrock/eu.anthropic.claude-sonnet-4-5", (5, 5)),
        ("bedrock/amazon.nova-pro-v1:0", (5, 5)),
        ("vertex_ai/claude-sonnet-4-5", (5, 5)),
        ("openrouter/anthropic/claude-sonnet-4.5", (5, 5)),
        ("openai/gpt-4o", (5, 60)),
        ("openai/gpt-4.1", (5, 24 * 60)),
        ("openai/gpt-5.2", (5, 24 * 60)),
        ("azure/mine", (5, 24 * 60)),
    ],
)
def test_a_documented_lifetime_is_known(name: str, minutes: tuple[int, int]):
    lifetime = cache_lifetime(ModelRef(name))
    assert lifetime is not None
    assert (lifetime.least_s, lifetime.most_s) == tuple(60 * m for m in minutes)


@pytest.mark.parametrize(
    "name",
    ["gemini/gemini-3-pro", "deepseek/deepseek-chat", "bedrock/meta.llama3", "openrouter/x/y"],
)
def test_one_that_is_not_documented_is_not_guessed(name: str):
    assert cache_lifetime(ModelRef(name)) is None


def test_a_server_of_the_user_s_may_call_anything_by_a_known_name():
    assert cache_lifetime(ModelRef("openai/gpt-5.2", base_url="http://127.0.0.1:1")) is None
