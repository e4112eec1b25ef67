"""The order of models in lists: by versions in their names, those few look for apart."""

from agent_tui.providers.catalog import is_aside, newest_first, version_of, without_date
from tests.support.rows import each_row


@each_row(
    ("name", "version"),
    [
        ("anthropic/claude-opus-4-5", (4, 5)),
        ("anthropic/claude-opus-4-5-20251101", (4, 5)),
        ("anthropic/claude-3-5-sonnet-20241022", (3, 5)),
        ("bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0", (4, 5)),
        ("vertex_ai/claude-sonnet-4-6@20260205", (4, 6)),
        ("openai/gpt-5.4-mini", (5, 4)),
        ("openai/gpt-4o-2024-11-20", (4,)),
        ("openai/gpt-3.5-turbo-0125", (3, 5)),
        ("openai/o3", (3,)),
        ("openrouter/moonshotai/kimi-k2.5", (2, 5)),
        ("gemini/gemini-2.5-computer-use-preview-10-2025", (2, 5)),
        ("gemini/gemma-3-27b-it", (3,)),
        ("gemini/gemma-4-26b-a4b-it", (4,)),
        ("groq/openai/gpt-oss-120b", ()),
        ("mistral/mixtral-8x7b", ()),
        ("mistral/mistral-large-2512", ()),
        ("xai/grok-4.20", (4, 2)),
        ("openai/chat-latest", ()),
        ("local/smollm2", (2,)),
        ("", ()),
    ],
)
def test_the_version_in_a_name_is_no_date_and_no_size(name: str, version: tuple[int, ...]):
    assert version_of(name) == version


def test_the_newest_comes_first_and_the_plain_name_before_its_variants():
    newest = [
        "openai/gpt-5.5",
        "openai/gpt-5.5-pro",
        "openai/gpt-5.4",
        "openai/gpt-5",
        "openai/gpt-5-mini",
        "openai/gpt-4.1",
        "openai/o4-mini",
        "openai/chat-latest",
    ]
    assert newest_first(sorted(newest)) == newest
    assert newest_first(["xai/grok-4.20", "xai/grok-4.3"]) == ["xai/grok-4.3", "xai/grok-4.20"]


def test_a_snapshot_is_aside_only_beside_the_model_that_it_is_of():
    dated, plain = "openai/gpt-5.5-2026-04-23", "openai/gpt-5.5"
    assert without_date(dated) == plain
    assert is_aside(dated, {dated, plain})
    assert not is_aside(plain, {dated, plain})
    assert not is_aside(dated, {dated}), "nothing else is there of it"
    assert is_aside("openai/ft:gpt-4.1-2025-04-14", ())
    assert is_aside("openai/ft:gpt-4o-mini:acme::abc", ())
