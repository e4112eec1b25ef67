import pytest

from agent_tui.compaction.outcome import child_entries
from agent_tui.messages import ToolCall
from agent_tui.sessions.context import build_context
from agent_tui.sessions.context_size import measure_context
from agent_tui.sessions.entries import Entry
from agent_tui.tokens import ContextUsage, TokenCounter, TokenRatios
from tests.compaction.results import result_of
from tests.support.talk import MODEL, Talk

OVERHEAD = 300


@pytest.fixture
def talk() -> Talk:
    talk = Talk()
    talk.user("read the file")
    talk.reply("it says hello " * 50, tokens=1_000)
    return talk


def measure(
    path: tuple[Entry, ...],
    counter: TokenCounter,
    *,
    model: str = MODEL,
    ratios: TokenRatios | None = None,
) -> ContextUsage:
    return measure_context(
        build_context(path),
        counter=counter,
        ratios=ratios or TokenRatios(),
        model=model,
        window=10_000,
        overhead_tokens=OVERHEAD,
    )


def test_the_providers_figure_of_the_last_reply_is_taken(talk: Talk, counter: TokenCounter):
    assert measure(talk.path, counter) == ContextUsage(1_000, 10_000, is_estimate=False)


def test_messages_after_the_figure_are_estimated_on_top(talk: Talk, counter: TokenCounter):
    newer = talk.user("and now something more")
    usage = measure(talk.path, counter)
    assert usage.used == 1_000 + counter.count_message(newer.message)
    assert not usage.is_estimate


def test_a_figure_with_much_behind_it_that_nobody_counted_is_an_estimate(
    talk: Talk, counter: TokenCounter
):
    talk.user("something more " * 600)
    assert measure(talk.path, counter).is_estimate


def test_the_learned_ratio_scales_what_is_estimated(talk: Talk, counter: TokenCounter):
    ratios = TokenRatios()
    ratios.observe(MODEL, estimated=1_000, counted=2_000)
    newer = talk.user("and now something more")
    usage = measure(talk.path, counter, ratios=ratios)
    assert usage.used == 1_000 + 2 * counter.count_message(newer.message)


def test_without_a_figure_everything_and_the_overhead_is_estimated(counter: TokenCounter):
    talk = Talk()
    talk.user("hello")
    expected = OVERHEAD + counter.count_messages(
        item.message for item in build_context(talk.path).messages
    )
    assert measure(talk.path, counter) == ContextUsage(expected, 10_000, is_estimate=True)


@pytest.mark.parametrize("stop", ["aborted", "error"])
def test_interrupted_and_failed_replies_do_not_count(talk: Talk, counter: TokenCounter, stop: str):
    talk.user("go on")
    talk.reply("half a", tokens=77, stop=stop)  # pyright: ignore[reportArgumentType]
    assert measure(talk.path, counter).used > 1_000


def test_a_zero_or_estimated_usage_does_not_count(talk: Talk, counter: TokenCounter):
    talk.user("go on")
    talk.reply("a", tokens=0)
    talk.reply("b", tokens=5_000, is_estimate=True)
    assert 1_000 < measure(talk.path, counter).used < 2_000


def test_the_figure_of_another_model_does_not_count(talk: Talk, counter: TokenCounter):
    assert measure(talk.path, counter, model="other/two").is_estimate


def test_a_model_is_known_with_and_without_its_provider(counter: TokenCounter):
    talk = Talk()
    talk.user("hello")
    talk.reply("hi", tokens=123, model="one")
    assert measure(talk.path, counter, model="scripted/one").used == 123
    assert measure(talk.path, counter, model="one").used == 123


def test_kept_replies_do_not_bring_back_the_usage_from_before_a_compaction(
    talk: Talk, counter: TokenCounter
):
    kept = talk.user("last question")
    talk.reply("last answer", tokens=9_000)
    talk.put(result_of(talk.entries[-2:], first_kept=kept.id).entry("threshold"))
    usage = measure(talk.path, counter)
    assert usage.is_estimate
    assert usage.used < 1_000


def test_replies_copied_into_the_child_session_do_not_bring_back_the_old_usage(
    talk: Talk, counter: TokenCounter
):
    kept = talk.user("last question")
    talk.reply("last answer", tokens=9_000)
    child = child_entries(result_of(talk.entries[-2:], first_kept=kept.id))
    usage = measure(child, counter)
    assert usage.is_estimate
    assert usage.used < 1_000


def test_a_kept_reply_dated_in_the_future_is_still_older_than_the_compaction(
    talk: Talk, counter: TokenCounter
):
    talk.now_ms = 4_000_000_000_000
    kept = talk.user("last question")
    talk.reply("last answer", tokens=9_000)
    child = child_entries(result_of(talk.entries[-2:], first_kept=kept.id))
    assert measure(child, counter).is_estimate


def test_the_first_reply_after_a_compaction_counts_again(talk: Talk, counter: TokenCounter):
    kept = talk.user("last question")
    talk.reply("last answer", tokens=9_000)
    compaction = talk.compaction("summary", kept.id)
    talk.user("more")
    talk.reply("yes", tokens=1_500)
    assert compaction.timestamp
    assert measure(talk.path, counter) == ContextUsage(1_500, 10_000, is_estimate=False)


def test_the_ratio_is_learned_from_the_newest_figure(counter: TokenCounter):
    talk = Talk()
    talk.user("word " * 1_000)
    talk.reply("ok")
    context = build_context(talk.path)
    estimated = OVERHEAD + counter.count_messages(item.message for item in context.messages)
    talk.entries.pop()
    talk.reply("ok", tokens=2 * estimated)
    talk.user("not yet counted")
    ratios = TokenRatios()
    measure(talk.path, counter, ratios=ratios)
    assert ratios.ratio(MODEL) == pytest.approx(2.0)


def test_nothing_is_learned_without_a_figure(counter: TokenCounter):
    talk = Talk()
    talk.user("word " * 1_000)
    talk.reply("", ToolCall(id="a", name="read"), stop="aborted", tokens=9)
    ratios = TokenRatios()
    measure(talk.path, counter, ratios=ratios)
    assert ratios.ratio(MODEL) == 1.0


@pytest.mark.parametrize("figure", [1, 700, 90_000_000], ids=["next to nothing", "part", "absurd"])
def test_a_figure_that_cannot_be_is_neither_shown_nor_learned_from(
    counter: TokenCounter, figure: int
):
    talk = Talk()
    talk.user("word " * 4_000)
    talk.reply("ok", tokens=figure)
    ratios = TokenRatios()
    measure(talk.path, counter, ratios=ratios)
    assert ratios.ratio(MODEL) == 1.0
    usage = measure(talk.path, counter, ratios=ratios)
    assert usage.is_estimate
    assert 4_000 < usage.used < 5_000


@pytest.mark.parametrize("figure", [1_500, 9_000, 30_000])
def test_a_figure_that_can_be_is_believed(counter: TokenCounter, figure: int):
    """Vocabularies differ, and some windows are larger than is known."""
    talk = Talk()
    talk.user("word " * 4_000)
    talk.reply("ok", tokens=figure)
    assert measure(talk.path, counter) == ContextUsage(figure, 10_000, is_estimate=False)
