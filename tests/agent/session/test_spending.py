from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.session.spending import Spent, spending_of
from agent_tui.features.tour.scripted import Reply
from agent_tui.messages import AssistantMessage, Cost, TextContent, Usage, UserMessage
from agent_tui.sessions.entries import CompactionEntry, Header, MessageEntry
from agent_tui.sessions.log import SessionLog
from tests.support.runtime import GOOD_SUMMARY, collect


def reply(model: str, tokens: int, cost: float, cached: int = 0) -> MessageEntry:
    usage = Usage(input=tokens, output=10, cache_read=cached, cost=Cost(total=cost))
    message = AssistantMessage(
        content=(TextContent(text="ok"),), provider="anthropic", model=model, usage=usage
    )
    return MessageEntry(message=message)


def test_requests_are_counted_by_model_and_since_the_last_compaction():
    log = SessionLog.create(None, Header(cwd="/", provider="anthropic", model_id="big"))
    log.append(MessageEntry(message=UserMessage(content="go")))
    log.append(reply("big", 1_000, 0.5, cached=200))
    log.append(reply("small", 5_000, 0.01))
    assert spending_of(log).since_compaction is None
    log.append(
        CompactionEntry(
            summary="s",
            first_kept_entry_id=log.entries[0].id,
            usage=Usage(input=700, output=70, cost=Cost(total=0.02)),
        )
    )
    log.append(reply("big", 300, 0.1))
    spending = spending_of(log)
    assert spending.replies == (
        Spent("anthropic/big", 2, 1_500, 200, 20, 0.6),
        Spent("anthropic/small", 1, 5_000, 0, 10, 0.01),
    )
    assert spending.summaries == Spent("", 1, 700, 0, 70, 0.02)
    assert spending.since_compaction == Spent("", 1, 300, 0, 10, 0.1)


def test_a_branch_that_was_left_was_paid_for_all_the_same():
    log = SessionLog.create(None, Header(cwd="/", provider="anthropic", model_id="big"))
    first = log.append(MessageEntry(message=UserMessage(content="go")))
    log.append(reply("big", 1_000, 0.5))
    log.branch_to(first.id)
    log.append(reply("big", 1_000, 0.5))
    assert [spent.requests for spent in spending_of(log).replies] == [2]


def whole(runtime: AgentRuntime) -> tuple[int, int, int]:
    """Requests, tokens in and tokens out, as /cost adds them up."""
    spending = spending_of(runtime.conversation.log)
    spent = (*spending.replies, spending.summaries)
    return (
        sum(one.requests for one in spent),
        sum(one.input_tokens for one in spent),
        sum(one.output_tokens for one in spent),
    )


async def test_what_was_spent_before_compact_still_counts(stage):
    def script(request):
        return Reply(text=GOOD_SUMMARY if request.purpose == "summary" else "word " * 4_000)

    runtime: AgentRuntime = stage.runtime(script)
    for _ in range(2):
        for text in ("one", "two", "three"):
            await collect(runtime.submit(text))
        before, totals = whole(runtime), runtime.conversation.totals
        await collect(runtime.compact())
        assert runtime.conversation.totals.input_tokens > totals.input_tokens, "the summary counts"
        assert whole(runtime)[0] == before[0] + 1
    await collect(runtime.submit("four"))
    assert whole(runtime)[0] == 3 + 1 + 3 + 1 + 1
    conversation = runtime.conversation
    shown = (conversation.totals.input_tokens, conversation.totals.output_tokens)
    assert shown == whole(runtime)[1:]
    since = spending_of(conversation.log).since_compaction
    assert since is not None
    assert since.requests == 1

    child = str(conversation.log.path)
    await runtime.sessions.start_new()
    assert runtime.conversation.totals.input_tokens == 0
    await runtime.sessions.open(child)
    reopened = runtime.conversation.totals
    assert (reopened.input_tokens, reopened.output_tokens) == shown, "also when it is reopened"

    await runtime.sessions.fork_at(runtime.conversation.log.leaf_id)
    assert whole(runtime) == (0, 0, 0), "a copy has spent nothing"
    assert runtime.conversation.totals.input_tokens == 0
