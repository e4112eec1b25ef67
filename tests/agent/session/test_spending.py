from agent_tui.agent.session.spending import Spent, spending_of
from agent_tui.messages import AssistantMessage, Cost, TextContent, Usage, UserMessage
from agent_tui.sessions.entries import CompactionEntry, Header, MessageEntry
from agent_tui.sessions.log import SessionLog


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
