from pathlib import Path

import pytest

from agent_tui.config import CompactionSettings
from agent_tui.features.context.contents import (
    LargeMessage,
    Part,
    map_context,
    scale_to_usage,
    token_price,
)
from agent_tui.messages import (
    AssistantMessage,
    Cost,
    TextContent,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from agent_tui.sessions.entries import MessageEntry
from agent_tui.tokens import ContextUsage
from tests.support.runtime import Stage
from tests.support.talk import Talk


def test_the_parts_add_up_to_what_the_provider_counted():
    usage = ContextUsage(1_000, 4_000, is_estimate=False)
    shown = scale_to_usage(usage, {"system": 100, "you": 400}, [LargeMessage("you: hi", 400)])
    assert shown.parts == (Part("system", 200), Part("you", 800), Part("free", 3_000))
    assert shown.largest == (LargeMessage("you: hi", 800),)


def test_only_the_five_largest_messages_are_named():
    counted = [LargeMessage(f"m{n}", n) for n in range(20)]
    shown = scale_to_usage(ContextUsage(0, 1_000, True), {"you": 190}, counted)
    assert [message.label for message in shown.largest] == ["m19", "m18", "m17", "m16", "m15"]


async def test_messages_are_counted_by_kind(tmp_path):
    runtime = Stage(tmp_path).runtime([])
    for message in (
        UserMessage(content="What is in the file? " * 20),
        AssistantMessage(content=(TextContent(text="A list. " * 20),)),
        ToolResultMessage(tool_call_id="x", tool_name="read", content=()),
    ):
        runtime.conversation.log.append(MessageEntry(message=message))
    shown = await map_context(runtime.conversation)
    kinds = [part.kind for part in shown.parts]
    assert kinds[:4] == ["system", "tools", "you", "replies"]
    assert shown.largest[0].label.startswith("you: What is in the file?")
    assert shown.target_tokens == runtime.conversation.limits.target > 0


@pytest.mark.parametrize(
    ("window", "settings", "held_by"),
    [
        (4_000, CompactionSettings(trigger_at=0.99), "the rest is for the reply"),
        (400_000, CompactionSettings(trigger_tokens=100_000), "compaction.trigger_tokens"),
        (400_000, CompactionSettings(trigger_tokens=0), ""),
    ],
)
async def test_what_makes_compaction_start_below_the_setting_is_named(
    tmp_path: Path, window: int, settings: CompactionSettings, held_by: str
):
    runtime = Stage(tmp_path).runtime([], window=window, compaction=settings)
    shown = await map_context(runtime.conversation)
    assert shown.held_by == held_by
    assert f"({held_by})" * bool(held_by) in shown.compaction_words
    assert (shown.compacts_at < round(settings.trigger_at * 100)) is bool(held_by)


async def test_a_result_is_named_by_its_call_not_by_what_it_begins_with(tmp_path):
    runtime = Stage(tmp_path).runtime([])
    talk = Talk()
    talk.tool("read", {"path": "src/a.py"}, "import sys\n" * 50)
    talk.tool("bash", {"command": "pytest -q"}, "....\n" * 20)
    talk.user("And?")
    runtime.conversation.log.append_many(talk.entries)
    shown = await map_context(runtime.conversation)
    assert {"read src/a.py", "$ pytest -q"} <= {message.label for message in shown.largest}


def test_a_token_costs_what_the_newest_priced_request_paid_for_its_context():
    cost = Cost(input=0.03, cache_read=0.01, cache_write=0.06, output=0.5, total=0.6)
    usage = Usage(input=1_000, cache_read=8_000, cache_write=1_000, output=90, cost=cost)
    older = AssistantMessage(usage=Usage(input=1, cost=Cost(input=9.0, total=9.0)))
    paid, free = AssistantMessage(usage=usage), AssistantMessage(usage=Usage(input=5))
    assert token_price([older, paid, free]) == pytest.approx(0.00001)
    assert token_price([free, UserMessage(content="x")]) == 0
