"""How a request is put to litellm."""

import subprocess
import sys

import pytest

from agent_tui.features.litellm.requests import DUMMY_KEY, request_arguments
from agent_tui.messages import JsonObject
from agent_tui.providers.base import ThinkingEffort
from agent_tui.providers.wires.base import WireRequest

PROVIDERS = ("openai", "anthropic", "ollama_chat")
ENVIRON = {"OPENAI_API_KEY": "the-real-key", "MINE": "my-key"}
USER: JsonObject = {"role": "user", "content": "hi"}


def arguments(
    model: str,
    *,
    base_url: str = "",
    api_key_env: str = "",
    messages: list[JsonObject] | None = None,
    thinking: ThinkingEffort = "off",
    max_output_tokens: int | None = None,
) -> dict[str, object]:
    """The arguments for a request, with a table that allows 64,000 tokens."""
    request = WireRequest(
        model,
        messages or [USER],
        base_url=base_url,
        api_key_env=api_key_env,
        thinking=thinking,
        max_output_tokens=max_output_tokens,
    )
    return request_arguments(request, PROVIDERS, ENVIRON, {"max_output_tokens": 64_000})


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("qwen3", "openai/qwen3"),
        ("qwen/qwen3-8b", "openai/qwen/qwen3-8b"),
        ("openai/qwen3", "openai/qwen3"),
        ("ollama_chat/qwen3", "ollama_chat/qwen3"),
    ],
)
def test_a_server_of_ones_own_speaks_openai_unless_the_name_says_otherwise(
    model: str, expected: str
) -> None:
    given = arguments(model, base_url="http://127.0.0.1:9/v1")
    assert (given["model"], given["api_base"]) == (expected, "http://127.0.0.1:9/v1")


def test_a_providers_key_never_goes_to_another_address() -> None:
    unnamed = arguments("openai/gpt-5", base_url="http://127.0.0.1:9/v1")
    named = arguments("openai/gpt-5", base_url="http://127.0.0.1:9/v1", api_key_env="MINE")
    assert unnamed["api_key"] == DUMMY_KEY
    assert named["api_key"] == "my-key"
    assert "api_key" not in arguments("openai/gpt-5")


def test_nothing_is_retried_behind_our_back() -> None:
    given = arguments("openai/gpt-5")
    assert (given["num_retries"], given["max_retries"]) == (0, 0)


def test_a_claude_behind_litellm_gets_a_limit_and_a_cached_prefix_others_neither() -> None:
    claude = arguments("bedrock/us.anthropic.claude-sonnet-5")
    assert claude["max_tokens"] == 64_000
    assert "cache_control_injection_points" in claude
    assert arguments("bedrock/claude-sonnet-5", max_output_tokens=99)["max_tokens"] == 99
    assert not {"max_tokens", "cache_control_injection_points"} & set(arguments("openai/gpt-5"))


def test_thinking_is_asked_for_except_in_a_tool_round_that_began_without() -> None:
    bare: list[JsonObject] = [
        USER,
        {"role": "assistant", "content": "x"},
        {"role": "tool", "content": "y"},
    ]
    signed = [USER, {**bare[1], "thinking_blocks": [{"type": "thinking"}]}, bare[2]]
    claude = "bedrock/us.anthropic.claude-sonnet-4-5"
    budget = {"type": "enabled", "budget_tokens": 16_000}
    assert arguments(claude, thinking="high")["thinking"] == budget
    assert "thinking" not in arguments(claude, thinking="high", messages=bare)
    assert arguments(claude, thinking="high", messages=signed)["thinking"] == budget
    short = arguments(claude, thinking="max", max_output_tokens=8_000)["thinking"]
    assert short == {"type": "enabled", "budget_tokens": 6_000}
    assert "reasoning_effort" in arguments("mistral/some", thinking="low", messages=bare)
    assert "reasoning_effort" not in arguments("mistral/some")


def test_the_room_imports_neither_litellm_nor_a_terminal_library() -> None:
    code = (
        "import sys, agent_tui.providers.host, agent_tui.features.litellm.worker\n"
        "from agent_tui.providers.catalog import ModelCatalog\n"
        "from agent_tui.config import Settings\n"
        "ModelCatalog(Settings(), {}).resolve('claude-sonnet-4-5')\n"
        "print([m for m in ('litellm', 'tiktoken', 'textual', 'rich') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
