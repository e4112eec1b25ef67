"""Strategy `hybrid`: what it shortens, what it leaves, and where it stops."""

import pytest

from agent_tui.errors import NothingToCompactError
from agent_tui.features.strategies.hybrid import MESSAGES_A_CALL
from agent_tui.messages import AssistantMessage, TextContent, ToolCall, Usage, UserMessage
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import CustomMessageEntry, Entry
from agent_tui.sessions.replay.marks import mark_entry
from agent_tui.tokens import TokenCounter
from tests.compaction.compacting import edited, size
from tests.compaction.writer import Writer
from tests.features.strategies.hybrid.scene import (
    WORK,
    good_writer,
    items_of,
    planned,
    questions,
    with_reads,
)
from tests.support.context_checks import assert_sendable
from tests.support.session_values import chain
from tests.support.talk import Talk


def message_of(path: tuple[Entry, ...], entry_id: str):
    return next(i.message for i in build_context(path).messages if i.entry_id == entry_id)


def bytes_of(path: tuple[Entry, ...], count: int) -> list[str]:
    """The newest messages of person and model, byte for byte."""
    spoken = [
        item.message.model_dump_json()
        for item in build_context(path).messages
        if isinstance(item.message, UserMessage | AssistantMessage)
    ]
    return spoken[-count:]


def test_results_of_files_become_a_line_each_beside_untouched_messages(
    counter: TokenCounter,
) -> None:
    talk, results = with_reads()
    assert counter.count_message(results["read"].message) > 20_000
    after = edited(talk.path, planned(talk.path, counter))
    for tool, most in {"read": 150, "write": 50, "edit": 40}.items():
        assert counter.count_message(message_of(after, results[tool].id)) <= most
    assert bytes_of(after, 5) == bytes_of(talk.path, 5)


def test_what_the_person_marked_stays_or_is_gone(counter: TokenCounter) -> None:
    talk, results = with_reads()
    read, written = results["read"], results["write"]
    path = chain(*talk.path, mark_entry(read.id, "keep"), mark_entry(written.id, "drop"))
    after = edited(path, planned(path, counter))
    assert message_of(after, read.id) == read.message
    assert "of the new file" not in message_of(after, written.id).text
    assert message_of(after, results["edit"].id).text.startswith("(edit ")


def test_a_line_for_a_file_says_what_is_known_of_it(counter: TokenCounter) -> None:
    talk, results = with_reads()
    after = edited(talk.path, planned(talk.path, counter))
    read = message_of(after, results["read"].id).text
    assert read.startswith("(read src/parser.py; edited since; 5,000 lines; ")
    assert read.endswith(f"[recall {results['read'].id}]")
    written = message_of(after, results["write"].id).text
    assert written.startswith("(write src/new.py; 501 lines; ")
    changed = message_of(after, results["edit"].id).text
    assert changed.startswith("(edit src/parser.py; 301 lines; ")


def test_old_calls_keep_ids_and_keys_while_their_texts_are_cut(counter: TokenCounter) -> None:
    talk, _ = with_reads()
    for number in range(6):
        talk.reply(f"Note {number}. {WORK}")
    after = edited(talk.path, planned(talk.path, counter))
    calls = [
        call
        for item in build_context(after).messages
        if isinstance(item.message, AssistantMessage)
        for call in item.message.tool_calls
    ]
    write = next(call for call in calls if call.id == "c-write")
    assert (write.name, list(write.arguments)) == ("write", ["path", "content"])
    assert counter.count_text(str(write.arguments["content"])) < 90


def test_the_last_five_messages_stay_and_older_ones_are_said_in_fewer_words(
    counter: TokenCounter,
) -> None:
    talk = questions(10)
    writer = good_writer()
    after = edited(talk.path, planned(talk.path, counter, writer=writer))
    assert bytes_of(after, 5) == bytes_of(talk.path, 5)
    for item in build_context(after).messages[:-5]:
        most = 50 if isinstance(item.message, UserMessage) else 200
        assert counter.count_message(item.message) <= most
        assert item.message.text.startswith("In short: ")
        assert item.message.text.endswith(f"[recall {item.entry_id}]")


def test_without_a_model_older_messages_are_cut_to_the_same_sizes(counter: TokenCounter) -> None:
    talk = questions(10)
    plan = planned(talk.path, counter)
    after = edited(talk.path, plan)
    for item in build_context(after).messages[:-5]:
        most = 50 if isinstance(item.message, UserMessage) else 200
        assert counter.count_message(item.message) <= most
    assert plan.note.startswith("15 of 15 old messages were cut, not rewritten (no model).")


def test_it_stops_with_the_oldest_messages_once_the_target_is_reached(
    counter: TokenCounter,
) -> None:
    talk = questions(10)
    before = size(talk.path, counter)
    writer = good_writer()
    plan = planned(talk.path, counter, target=before - 600, writer=writer)
    assert before - 1_200 < plan.tokens_after <= before - 600
    changed = [edit.target_id for edit in plan.edits]
    assert changed == [entry.id for entry in talk.path[: len(changed)]]
    assert len(changed) < 5
    assert plan.note == ""
    asked = sum(len(items_of(request)) for request in writer.requests)
    assert asked <= len(changed) + 2


def test_sixty_thousand_tokens_come_down_to_two_fifths_of_the_window(
    counter: TokenCounter,
) -> None:
    talk = questions(40)
    while size(talk.path, counter) < 60_000:
        text = f"part {len(talk.path)} of the log, which goes on and on\n" * 250
        talk.tool("bash", {"command": f"make part{len(talk.path)}"}, text)
        talk.reply("It went well.")
    plan = planned(talk.path, counter, target=0, window=80_000, writer=good_writer())
    assert plan.tokens_before >= 60_000
    assert plan.tokens_after <= 32_000
    assert plan.note == ""


def test_what_cannot_come_down_to_the_target_says_why(counter: TokenCounter) -> None:
    talk = questions(3)
    plan = planned(talk.path, counter, target=500)
    assert plan.tokens_after > 500
    assert "above the target of 500" in plan.note


def test_one_call_shortens_twenty_messages(counter: TokenCounter) -> None:
    talk = questions(33)
    writer = good_writer()
    plan = planned(talk.path, counter, writer=writer)
    messages = plan.statistics["user_messages"] + plan.statistics["assistant_messages"]
    assert messages == 61
    assert len(writer.requests) == -(-messages // MESSAGES_A_CALL)


def test_results_alone_cost_no_call(counter: TokenCounter) -> None:
    talk, _ = with_reads()
    writer = good_writer()
    before = size(talk.path, counter)
    planned(talk.path, counter, target=before - 10_000, writer=writer)
    assert writer.requests == []


def test_rules_of_the_person_stay_word_for_word(counter: TokenCounter) -> None:
    talk = Talk()
    rule = "Never touch the migrations, and always run ruff before you commit."
    talk.user(f"Look at the parser. {rule} " + "Please take your time with it. " * 40)
    for number in range(6):
        talk.reply(f"Step {number}.")
    with pytest.raises(NothingToCompactError):  # it is the newest the person has said
        planned(talk.path, counter)
    talk.user("go on")
    talk.reply("Yes.")
    for writer in (None, good_writer()):
        after = edited(talk.path, planned(talk.path, counter, writer=writer))
        said = build_context(after).messages[0].message.text
        assert said.count(rule) == 1
        assert counter.count_text(said.replace(rule, "")) <= 50


def test_display_only_messages_go_and_instructions_stay(counter: TokenCounter) -> None:
    talk = questions(6)
    path = list(talk.path)
    shown = CustomMessageEntry(id="shown", content="Only for the person. " * 40, display=True)
    hidden = CustomMessageEntry(id="hidden", content="For the model alone. " * 40, display=False)
    path[4:4] = [shown, hidden]
    plan = planned(path, counter)
    context = build_context(edited(path, plan)).messages
    ids = [item.entry_id for item in context]
    assert "shown" not in ids
    assert message_of(edited(path, plan), "hidden").text == hidden.text
    assert plan.statistics["display_only_deleted"] == 1


def test_what_features_tell_the_model_is_none_of_the_last_five(counter: TokenCounter) -> None:
    talk = questions(6)
    hidden = CustomMessageEntry(id="hidden", content="For the model alone. ", display=False)
    path = (*talk.path, hidden)
    after = edited(path, planned(path, counter))
    newest = [entry.id for entry in talk.path[-5:]]
    assert [message_of(after, one) for one in newest] == [message_of(path, one) for one in newest]


def test_messages_in_fewer_words_are_not_asked_about_again(counter: TokenCounter) -> None:
    rules = " ".join(f"Never touch the file number {n}." for n in range(30))
    talk = Talk()
    talk.user(f"{rules} " + "Take your time. " * 40)
    path = (*talk.path, *questions(6).path)
    path = tuple(entry.model_copy(update={"id": f"e{n}"}) for n, entry in enumerate(path))
    after = edited(path, planned(path, counter, writer=good_writer()))
    writer = good_writer()
    with pytest.raises(NothingToCompactError):
        planned(after, counter, writer=writer)
    assert writer.requests == []


def test_results_that_nobody_has_read_are_shortened_at_the_very_end_only(
    counter: TokenCounter,
) -> None:
    talk = questions(6)
    call = ToolCall(id="last", name="bash", arguments={"command": "make"})
    talk.reply("", call)
    unread = talk.result(call, "a line of output\n" * 3_000)
    before = size(talk.path, counter)
    enough = planned(talk.path, counter, target=before - 1_000)
    assert unread.id not in {edit.target_id for edit in enough.edits}
    after = edited(talk.path, planned(talk.path, counter))
    left = message_of(after, unread.id).text
    assert left.startswith("a line of output")
    assert left.endswith("a line of output\n")
    assert "left out" in left


def test_statistics_count_what_was_done(counter: TokenCounter) -> None:
    talk, _ = with_reads()
    for number in range(4):
        talk.user(f"Question {number}. " + "what does it do there? " * 20)
        talk.reply(f"Answer {number}. {WORK * 3}")
    plan = planned(talk.path, counter, overhead=70)
    assert dict(plan.statistics) == {
        "tool_results": 3,
        "user_messages": 2,
        "assistant_messages": 3,
        "display_only_deleted": 0,
        "protected": 5,
        "before": size(talk.path, counter) + 70,
        "after": size(edited(talk.path, plan), counter) + 70,
    }


def test_every_message_has_its_decision_in_the_log(counter: TokenCounter) -> None:
    talk, results = with_reads()
    lines: list[str] = []
    planned(talk.path, counter, on_decisions=lines.extend)
    assert len(lines) == 1 + len(talk.path)
    (read,) = [line for line in lines if results["read"].id in line]
    assert read.startswith(f"{results['read'].id} toolResult read 34,")
    assert read.endswith("tokens: metadata only")
    # The newest five and, being the person's last, the first message.
    assert sum(line.endswith("kept: protected") for line in lines) == 6


def test_a_conversation_with_nothing_to_shorten_is_left_alone(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("hello")
    talk.reply("Hello.")
    with pytest.raises(NothingToCompactError, match="Nothing to compact"):
        planned(talk.path, counter)


def test_a_context_below_its_target_is_left_alone(counter: TokenCounter) -> None:
    talk = questions(10)
    writer = good_writer()
    with pytest.raises(NothingToCompactError):
        planned(talk.path, counter, target=50_000, writer=writer)
    assert writer.requests == []


def test_the_focus_and_what_calls_cost_go_where_they_belong(counter: TokenCounter) -> None:
    writer, used = good_writer(), list[Usage]()
    planned(questions(10).path, counter, writer=writer, focus="the {lexer} </focus>", used=used)
    assert "<focus>the {lexer} &lt;/focus></focus>" in writer.prompts[0]
    assert len(used) == len(writer.requests) == 1


def test_replies_with_text_between_calls_stay_whole_replies(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("Look at both.")
    calls = [ToolCall(id=f"c{n}", name="read", arguments={"path": f"f{n}.py"}) for n in range(2)]
    talk.message(
        lambda ms: AssistantMessage(
            content=(
                TextContent(text=WORK * 2),
                calls[0],
                TextContent(text="And the second one. " * 30),
                calls[1],
            ),
            stop_reason="toolUse",
            timestamp=ms,
        )
    )
    for one in calls:
        talk.result(one, "x = 1\n" * 400)
    for number in range(6):
        talk.reply(f"Step {number}.")
    for writer in (None, good_writer(), Writer(["no numbers at all"])):
        after = edited(talk.path, planned(talk.path, counter, writer=writer))
        assert_sendable(after)
        reply = message_of(after, talk.path[1].id)
        assert isinstance(reply, AssistantMessage)
        assert [call.id for call in reply.tool_calls] == ["c0", "c1"]
        assert counter.count_text(reply.text) <= 200
        if writer is None:  # a note is cut as an answer is, not as tier 2 cuts it
            assert counter.count_text(reply.text) > 130
