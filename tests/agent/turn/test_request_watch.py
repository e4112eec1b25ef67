"""What broke the cache is found by comparing each request with the one before."""

from dataclasses import replace

from agent_tui.agent.turn.request_watch import RequestWatch
from agent_tui.messages import ToolSpec, Usage, UserMessage
from agent_tui.providers.base import ModelRef, ModelRequest
from agent_tui.providers.prompt_cache import CacheLifetime
from tests.support.rows import each_row

SAID = tuple(UserMessage(content=f"message {number}", timestamp=number) for number in range(4))
FIRST = ModelRequest(ModelRef("a/one"), "Be good.", SAID[:3])
CACHED = Usage(input=10, cache_read=90, cache_write=5)
MISSED = Usage(input=10, cache_write=90)
KEPT = CacheLifetime(300, 300)


def cause(
    second: ModelRequest, *, compaction: str = "", after_s: float = 1.0, usage: Usage = CACHED
) -> str:
    watch = RequestWatch()
    watch.record(FIRST, "", 1_000.0, MISSED, KEPT)
    watch.record(second, compaction, 1_000.0 + after_s, usage, KEPT)
    assert watch.count == 2
    assert [one.number for one in watch.breaks] in ([], [2])
    return watch.breaks[0].cause if watch.breaks else ""


def test_a_request_that_continues_the_one_before_breaks_nothing():
    assert cause(replace(FIRST, messages=SAID)) == ""
    assert cause(replace(FIRST, messages=(*(m.model_copy() for m in SAID),))) == ""


TOOL = ToolSpec(name="read", description="Reads.", parameters={})


@each_row(
    ("second", "named"),
    [
        (replace(FIRST, model=ModelRef("a/two")), "the model: a/one, then a/two"),
        (replace(FIRST, tools=(TOOL,)), "the tools"),
        (replace(FIRST, system="Be bad."), "the system text"),
        (replace(FIRST, thinking="high"), "thinking: off, then high"),
        (replace(FIRST, messages=(SAID[0], SAID[3], SAID[2])), "an edit in message 2 of 3"),
        (replace(FIRST, messages=SAID[:2]), "an edit in message 3 of 3"),
    ],
)
def test_the_first_part_that_is_different_is_named(second: ModelRequest, named: str):
    assert cause(second) == named


def test_a_compaction_is_named_with_its_place():
    second = replace(FIRST, messages=(SAID[3], SAID[2]))
    assert cause(second, compaction="c1") == "a compaction, from message 1 on"


def test_where_nothing_is_different_it_was_the_time_or_the_provider():
    assert cause(FIRST, after_s=720, usage=MISSED) == "a pause of 12 minutes"
    assert cause(FIRST, usage=MISSED) == "nothing in the request: the provider dropped it"
    assert cause(FIRST, after_s=720) == "", "what is read from the cache is not broken"
    assert cause(FIRST, usage=Usage(input=100)) == "", "a provider that counts no cache"
