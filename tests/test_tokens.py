import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
)
from agent_tui.tokens import (
    IMAGE_TOKENS,
    MESSAGE_OVERHEAD_TOKENS,
    ContextUsage,
    ExactCounter,
    TokenCounter,
    TokenRatios,
)
from tests.support.rows import each_row


@pytest.fixture(scope="module", params=[TokenCounter, ExactCounter])
def counter(request: pytest.FixtureRequest) -> TokenCounter:
    return request.param()


@each_row(
    ("used", "window", "is_estimate", "label"),
    [
        (0, 200_000, True, "[ctx: ~0%]"),
        (145_999, 200_000, False, "[ctx: 73%]"),
        (144_999, 200_000, False, "[ctx: 72%]"),
        (1_000, 200_000, False, "[ctx: 1%]"),
        (199_999, 200_000, False, "[ctx: 99%]"),
        (200_000, 200_000, False, "[ctx: 100%]"),
        (250_000, 200_000, False, "[ctx: 125%]"),
        (0, 0, True, "[ctx: …]"),
    ],
)
def test_the_label_rounds_to_the_nearest_and_marks_an_estimate(
    used: int, window: int, is_estimate: bool, label: str
):
    assert ContextUsage(used, window, is_estimate).label == label


def test_an_unknown_window_is_no_division_by_zero():
    assert ContextUsage(5, 0, False).fraction == 0.0


def test_known_texts_have_known_counts(counter: TokenCounter):
    assert counter.count_text("") == 0
    assert counter.count_text("hello world") == 2


def test_special_tokens_in_a_text_are_plain_text(counter: TokenCounter):
    assert counter.count_text("<|endoftext|>") > 1


def test_lone_surrogates_are_counted(counter: TokenCounter):
    assert counter.count_text("a\ud800b") > 0


def test_a_text_without_spaces_is_counted_in_slices():
    assert ExactCounter().count_text("x" * 200_000) >= 20_000


def test_a_message_costs_its_parts_and_its_frame(counter: TokenCounter):
    image = ImageContent(data="AAAA", mime_type="image/png")
    said = UserMessage(content=(TextContent(text="hello world"), image))
    assert counter.count_message(said) == MESSAGE_OVERHEAD_TOKENS + 2 + IMAGE_TOKENS
    result = ToolResultMessage(
        tool_call_id="a", tool_name="read", content=(TextContent(text="hello world"),)
    )
    assert counter.count_message(result) == MESSAGE_OVERHEAD_TOKENS + 2


def test_calls_and_thinking_count(counter: TokenCounter):
    call = ToolCall(id="a", name="write", arguments={"content": "hello world " * 100})
    bare = counter.count_message(AssistantMessage())
    assert counter.count_message(AssistantMessage(content=(call,))) > bare + 200
    thinking = AssistantMessage(content=(ThinkingContent(thinking="hello world"),))
    assert counter.count_message(thinking) == bare + 2


def test_a_command_outside_the_context_costs_nothing(counter: TokenCounter):
    inside = BashExecutionMessage(command="hello world", output="hello world")
    outside = inside.model_copy(update={"exclude_from_context": True})
    assert counter.count_messages([inside, outside]) == MESSAGE_OVERHEAD_TOKENS + 4
    assert counter.count_message(outside) == 0


def test_a_message_is_looked_at_once_while_it_lives(monkeypatch: pytest.MonkeyPatch):
    counter, counted = ExactCounter(), list[str]()
    monkeypatch.setattr(counter, "count_text", lambda text: counted.append(text) or 1)
    message = UserMessage(content="hello")
    assert counter.count_message(message) == counter.count_message(message)
    assert counted == ["hello"]
    for number in range(50):  # may be put where one was that is gone
        counter.count_message(UserMessage(content=f"{number}"))
    assert len(counted) == 51


def test_tools_count_with_their_schemas(counter: TokenCounter):
    tool = ToolSpec(name="read", description="Reads a file.", parameters={"type": "object"})
    assert counter.count_tools([tool, tool]) == 2 * counter.count_tools([tool]) > 10


@given(st.text(max_size=300))
def test_the_count_is_never_more_than_the_bytes(counter: TokenCounter, text: str):
    assert 0 <= counter.count_text(text) <= len(text.encode("utf-8", "surrogatepass"))


def test_a_ratio_is_one_until_something_was_learned():
    assert TokenRatios().ratio("m") == 1.0


def test_the_newest_pair_sets_the_ratio():
    ratios = TokenRatios()
    ratios.observe("m", estimated=1_000, counted=1_300)
    assert ratios.ratio("m") == pytest.approx(1.3)
    ratios.observe("m", estimated=1_000, counted=1_000)
    assert ratios.ratio("m") == 1.0
    assert ratios.ratio("other") == 1.0


def test_small_and_absurd_pairs_do_not_spoil_the_ratio():
    ratios = TokenRatios()
    ratios.observe("m", estimated=100, counted=1_000)
    ratios.observe("m", estimated=1_000, counted=0)
    assert ratios.ratio("m") == 1.0
    ratios.observe("m", estimated=1_000, counted=1_000_000)
    assert ratios.ratio("m") == 3.0


def test_importing_it_loads_no_tokenizer():
    code = "import sys, agent_tui.tokens; print('tiktoken' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
