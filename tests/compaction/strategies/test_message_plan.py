"""The plan that strategies make: what becomes of messages, and the check of all of it."""

from pathlib import Path

import pytest

from agent_tui.compaction.request import CompactionRequest, ContextSizes
from agent_tui.compaction.strategies.message_plan import (
    ConversationUnits,
    Fates,
    Gone,
    Lines,
    MessagePlan,
    OneLine,
    Words,
)
from agent_tui.config import CompactionSettings
from agent_tui.errors import CompactionError, NothingToCompactError
from agent_tui.messages import (
    AssistantMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
)
from agent_tui.providers.base import ModelRef
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import CustomMessageEntry, Entry, MessageEntry
from agent_tui.tokens import TokenCounter
from tests.features.strategies.agent.scene import RULE, SETTINGS, long_session
from tests.support.context_checks import assert_sendable
from tests.support.talk import Talk


def plan_of(
    path: tuple[Entry, ...],
    counter: TokenCounter,
    *,
    target: int = 1,
    settings: CompactionSettings = SETTINGS,
) -> MessagePlan:
    """The plan to begin with."""
    request = CompactionRequest(
        path=path,
        previous=None,
        model=ModelRef("scripted/one"),
        cwd=Path("/project"),
        settings=settings,
        sizes=ContextSizes(window=20_000, used=10_000, overhead=500, target=target),
    )
    return ConversationUnits(request, counter, "test").plan()


def text_at(plan: MessagePlan, position: int) -> str:
    """What the model would see of one message."""
    entry_id = plan.conversation.units[position].entry_id
    return next(item.message.text for item in plan.context if item.entry_id == entry_id)


def problem_of(plan: MessagePlan, fates: Fates) -> str:
    """What the check says of `plan` with `fates`."""
    try:
        plan.taking(fates).finish({})
    except CompactionError as error:
        return str(error)
    return ""


def test_a_plan_is_a_value_that_says_what_is_left(counter: TokenCounter) -> None:
    plan = plan_of(long_session(), counter)
    other = plan.taking({2: OneLine(), 4: OneLine()})
    assert (plan.fates, plan.edits) == ({}, ())
    assert [edit.target_id for edit in other.edits] == ["e0000002", "e0000004"]
    assert other.used_tokens == plan.used_tokens - sum(plan.size(n) - other.size(n) for n in (2, 4))
    made = other.finish({"results": 2}, "A note.")
    assert (made.edits, made.note) == (other.edits, "A note.")
    assert made.tokens_after == other.used_tokens < made.tokens_before == plan.used_tokens
    after = build_context((*plan.conversation.request.path, *made.edits)).messages
    assert made.tokens_after == 500 + counter.count_messages(item.message for item in after)
    sizes = {"before": made.tokens_before, "after": made.tokens_after}
    assert made.statistics == {"results": 2, "protected": 5, **sizes}


def test_offers_are_taken_in_order_up_to_the_target_if_they_save_something(
    counter: TokenCounter,
) -> None:
    path = long_session()
    before = plan_of(path, counter).used_tokens
    plan = plan_of(path, counter, target=before - 1_200)
    offers = [(0, Words("longer than before " * 300)), (2, OneLine()), (2, Lines()), (8, OneLine())]
    taken = plan.towards_target([*offers, (14, OneLine())])
    assert dict(taken.fates) == {2: OneLine(), 8: OneLine()}
    assert taken.is_met


def test_lines_of_a_result_stay_with_their_numbers(counter: TokenCounter) -> None:
    talk = Talk(prefix="f")
    talk.user("go")
    shown = "\n".join(f"{n}\tline number {n} of the file" for n in range(11, 61))
    talk.tool("read", {"path": "a.py", "offset": 11, "limit": 50}, shown)
    talk.tool("bash", {"command": "make"}, "\n".join(f"output {n}" for n in range(1, 61)))
    path = (*talk.path, *long_session())
    plan = plan_of(path, counter).taking({2: Lines(((20, 21), (58, 90))), 4: Lines(((60, 60),))})
    assert text_at(plan, 2).split("\n") == [
        "[... 9 lines left out ...]",
        "20\tline number 20 of the file",
        "21\tline number 21 of the file",
        "[... 36 lines left out ...]",
        "58\tline number 58 of the file",
        "59\tline number 59 of the file",
        "60\tline number 60 of the file",
        f"[recall {path[2].id}]",
    ]
    left = f"[... 59 lines left out ...]\noutput 60\n[recall {path[4].id}]"
    assert text_at(plan, 4) == left
    assert [edit.tier for edit in plan.edits] == [1, 1]


def test_images_of_a_result_stay_beside_its_lines(counter: TokenCounter) -> None:
    talk = Talk(prefix="f")
    talk.user("go")
    call = ToolCall(id="c", name="bash", arguments={"command": "make"})
    talk.reply("", call)
    image = ImageContent(data="aGk=", mime_type="image/png")
    text = TextContent(text="one line of output\n" * 90)
    talk.message(
        lambda ms: ToolResultMessage(
            tool_call_id="c", tool_name="bash", content=(text, image), timestamp=ms
        )
    )
    plan = plan_of((*talk.path, *long_session()), counter).taking({2: Lines(((1, 2),))})
    (edit,) = plan.edits
    assert isinstance(edit.replacement, tuple)
    assert edit.replacement[1:] == (image,)


def test_a_line_says_that_the_file_was_changed_since(counter: TokenCounter) -> None:
    talk = Talk(prefix="f")
    talk.user("go")
    talk.tool("read", {"path": "./src/a.py"}, "x = 1\n" * 80)
    talk.tool("read", {"path": "b.py"}, "x = 1\n" * 80)
    talk.tool("edit", {"path": "/project/src/a.py", "old_string": "1", "new_string": "2"})
    talk.tool("write", {"path": "b.py", "content": "no"}, "refused", is_error=True)
    plan = plan_of((*talk.path, *long_session()), counter).taking({2: OneLine(), 4: OneLine()})
    assert text_at(plan, 2).startswith("(read ./src/a.py; edited since; 80 lines; ")
    assert text_at(plan, 4).startswith("(read b.py; 80 lines; ")


def test_other_words_keep_calls_and_rules(counter: TokenCounter) -> None:
    plan = plan_of(long_session(), counter)
    plan = plan.taking({1: Words("I read it."), 6: Words("A look at part1 was asked for.")})
    assert text_at(plan, 6) == f"A look at part1 was asked for.\n{RULE}"
    reply = next(i.message for i in plan.context if i.entry_id == "e0000001")
    assert isinstance(reply, AssistantMessage)
    assert (reply.text, [call.name for call in reply.tool_calls]) == ("I read it.", ["read"])


def test_other_words_leave_out_what_calls_wrote(counter: TokenCounter) -> None:
    talk = Talk(prefix="f")
    talk.user("go")
    talk.tool("write", {"path": "a.py", "content": "x = 1\n" * 90}, "Created a.py")
    plan = plan_of((*talk.path, *long_session()), counter).taking({1: Words("I wrote it.")})
    reply = plan.context[1].message
    assert isinstance(reply, AssistantMessage)
    (call,) = reply.tool_calls
    assert call.arguments["path"] == "a.py"
    assert str(call.arguments["content"]).startswith("[... ")


def test_an_account_is_not_undone_by_what_costs_nothing(counter: TokenCounter) -> None:
    talk = Talk(prefix="f")
    talk.user("go")
    thought = ThinkingContent(thinking="I think about it. " * 40)
    said = TextContent(text="Done.")
    talk.message(lambda ms: AssistantMessage(content=(thought, said), timestamp=ms))
    path = (*talk.path, *long_session())
    first = plan_of(path, counter)
    assert [edit.target_id for edit in first.edits] == ["f0000001"]
    (edit,) = first.taking({1: Words("The account of all that was done. " * 30)}).edits
    assert plan_of((*path, edit), counter).edits == ()


def test_a_result_that_a_line_hardly_shortens_stays(counter: TokenCounter) -> None:
    talk = Talk(prefix="f")
    talk.user("go")
    talk.tool("bash", {"command": "make"}, "built it all\n" * 7)
    plan = plan_of((*talk.path, *long_session()), counter).taking({2: OneLine()})
    line = plan.conversation.units[2]
    assert 0 <= line.tokens - counter.count_text(f"($ make; ok; 7 lines) [recall {'f' * 8}]") < 24
    assert plan.edits == ()


def test_what_is_only_for_display_goes_first(counter: TokenCounter) -> None:
    shown = CustomMessageEntry(id="shown", content="for the person " * 80, display=True)
    path = long_session()
    plan = plan_of((*path[:6], shown, *path[6:]), counter)
    assert [(edit.target_id, edit.tier) for edit in plan.edits] == [("shown", 0)]
    assert plan_of((*path, shown), counter).edits == ()  # the newest messages are protected


def test_the_check_passes_whole_exchanges(counter: TokenCounter) -> None:
    plan = plan_of(long_session(), counter)
    assert problem_of(plan, {n: Gone() for n in range(6)}) == ""
    assert problem_of(plan, {n: Gone() for n in (1, 2)}) == ""
    assert problem_of(plan, {0: Gone()}) == ""  # then the context opens with a text of its own
    assert_sendable((*plan.conversation.request.path, *plan.taking({1: Gone(), 2: Gone()}).edits))


@pytest.mark.parametrize(
    ("fates", "problem"),
    [
        ({47: Words("short")}, "a protected message was changed"),
        ({1: Gone()}, "a call and its result were parted"),
        ({2: Gone()}, "a call and its result were parted"),
        ({6: Gone()}, "one of your rules would be lost"),
        ({0: Words("longer than before " * 300)}, "it frees nothing"),
    ],
)
def test_what_would_not_be_sound_is_found(
    fates: Fates, problem: str, counter: TokenCounter
) -> None:
    plan = plan_of(long_session(), counter)
    assert problem_of(plan, fates) == f"Its plan failed the check: {problem}."


def test_a_change_of_other_messages_is_found(counter: TokenCounter) -> None:
    """Without the reply in between, a result would answer a call of the same id that was lost."""
    path = long_session()
    reused = next(
        call.id
        for entry in path[6:]
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage)
        for call in entry.message.tool_calls
    )
    lost = AssistantMessage(content=(ToolCall(id=reused, name="read"),), timestamp=1)
    plan = plan_of((path[0], MessageEntry(id="lost", message=lost), *path[1:]), counter)
    exchange = next(e for e in plan.conversation.exchanges if e.start > 6 and len(e) == 2)
    assert "messages that had to stay unchanged" in problem_of(plan, {n: Gone() for n in exchange})


def test_a_plan_without_edits_or_need_is_none(counter: TokenCounter) -> None:
    with pytest.raises(NothingToCompactError, match="no older message can be shorter"):
        plan_of(long_session(), counter).finish({})
    with pytest.raises(NothingToCompactError, match="small enough"):
        plan_of(long_session(), counter, target=90_000)
