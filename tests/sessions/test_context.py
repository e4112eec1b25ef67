import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    FileTouches,
    ToolCall,
    ToolResultMessage,
)
from agent_tui.providers.wires.anthropic import anthropic_payload
from agent_tui.providers.wires.chat import openai_messages
from agent_tui.sessions.context import (
    OMITTED_RESULT_TEXT,
    build_context,
    extend_context,
    wrap_summary,
)
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    Carryover,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    Header,
    LabelEntry,
    MessageEntry,
    ModelChangeEntry,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
    UnknownEntry,
)
from agent_tui.sessions.format.parse import parse_session
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.file_changes import changes_entry
from agent_tui.sessions.replay.normalise import OPENING_TEXT, normalise_messages
from tests.support.context_checks import assert_normalised, shown
from tests.support.session_values import (
    WHEN,
    chain,
    conversation,
    entry,
    reply,
    result,
    user,
)
from tests.support.talk import Talk
from tests.support.trajectories import trajectory
from tests.support.wire_rules import anthropic_problems, openai_problems


def compaction(summary: str, first_kept: str) -> CompactionEntry:
    return CompactionEntry(summary=summary, first_kept_entry_id=first_kept, timestamp=WHEN)


def test_a_sound_conversation_is_seen_as_it_was_written() -> None:
    path = conversation()
    context = build_context(path)
    assert [item.entry_id for item in context.messages] == [item.id for item in path]
    for item, source in zip(context.messages, path, strict=True):
        assert isinstance(source, MessageEntry)
        assert item.message is source.message
    assert context.compaction is None


def test_the_summary_comes_first_then_the_kept_entries_then_the_newer_ones() -> None:
    path = chain(
        *conversation()[:5],
        compaction("Both files were read.", "00000005"),
        entry(user("next")),
    )
    context = build_context(path)
    assert shown(context) == [
        f"user: {wrap_summary('Both files were read.')}",
        "assistant: Both are fine.",
        "user: next",
    ]
    assert context.messages[0].entry_id == "00000006"
    assert context.compaction == path[5]


def test_the_second_compaction_starts_at_its_own_first_kept_entry() -> None:
    path = chain(
        entry(user("one")),
        entry(user("two")),
        compaction("first", "00000002"),
        entry(user("three")),
        compaction("second", "00000002"),
        entry(user("four")),
    )
    assert shown(build_context(path)) == [
        f"user: {wrap_summary('second')}",
        "user: two",
        "user: three",
        "user: four",
    ]


@pytest.mark.parametrize("first_kept", ["00000001", "00000002", "nowhere"])
def test_in_a_child_session_everything_after_the_compaction_is_kept(first_kept: str) -> None:
    path = chain(compaction("S", first_kept), entry(user("kept")), entry(reply("ok")))
    assert shown(build_context(path))[1:] == ["user: kept", "assistant: ok"]


def test_the_headers_summary_opens_a_session_without_a_compaction_entry() -> None:
    path = chain(entry(user("go on")))
    carried = Carryover(lastSummary="from the parent")
    assert shown(build_context(path, carryover=carried)) == [
        f"user: {wrap_summary('from the parent')}",
        "user: go on",
    ]
    newer = chain(compaction("own", ""), entry(user("go on")))
    assert "own" in shown(build_context(newer, carryover=carried))[0]
    assert len(build_context(newer, carryover=carried).messages) == 2


def test_with_a_system_summary_the_messages_hold_none_and_still_begin_with_the_user() -> None:
    path = chain(compaction("S", "00000002"), entry(reply("kept")))
    context = build_context(path, summary_role="system")
    assert shown(context) == [f"user: {OPENING_TEXT}", "assistant: kept"]
    assert context.compaction is not None


def test_the_summary_is_wrapped_in_tags_after_a_line_that_says_what_it_is() -> None:
    first, *rest = wrap_summary("\n## Goal\nship\n").split("\n")
    assert "compacted" in first
    assert rest == ["", "<summary>", "## Goal", "ship", "</summary>"]


def test_what_is_not_for_the_model_is_left_out_and_the_rest_is_the_users() -> None:
    hidden = BashExecutionMessage(command="pwd", output="/", exclude_from_context=True)
    path = chain(
        entry(user("hi")),
        CustomEntry(custom_type="x"),
        LabelEntry(target_id="00000001"),
        SessionInfoEntry(name="n"),
        UnknownEntry(type="new"),
        entry(hidden),
        entry(BashExecutionMessage(command="ls", output="a")),
        CustomMessageEntry(content="note", timestamp=WHEN),
        BranchSummaryEntry(summary="tried B", timestamp=WHEN),
    )
    assert [text.split("\n")[0] for text in shown(build_context(path))] == [
        "user: hi",
        "bash: ls",
        "user: note",
        "user: This is what happened on a branch of the conversation the user left:",
    ]
    assert build_context(path) == build_context(path)


def test_the_newest_model_and_thinking_level_are_named() -> None:
    path = chain(
        ModelChangeEntry(provider="a", model_id="old"),
        ThinkingLevelChangeEntry(thinking_level="low"),
        entry(user("x")),
        ThinkingLevelChangeEntry(thinking_level="high"),
        ModelChangeEntry(provider="b", model_id="new"),
    )
    context = build_context(path)
    assert (context.provider, context.model_id, context.thinking_level) == ("b", "new", "high")
    context = build_context(conversation())
    assert (context.provider, context.model_id, context.thinking_level) == ("", "", "")


def edit(target: str, replacement: object) -> ContextEditEntry:
    return ContextEditEntry.model_validate({"targetId": target, "replacement": replacement})


def test_edits_replace_and_omit_for_the_model_only_and_the_newest_counts() -> None:
    path = chain(
        *conversation(),
        edit("00000003", "first try"),
        edit("00000003", "(read app.py)"),
        edit("00000004", None),
        edit("00000005", None),
        edit("00000006", [{"type": "text", "text": "thx"}]),
    )
    assert shown(build_context(path)) == [
        "user: look at both files",
        "assistant: Reading. <c1> <c2>",
        "result c1: (read app.py)",
        f"result c2: {OMITTED_RESULT_TEXT}",
        "user: thx",
        "assistant: Welcome.",
    ]


def test_an_omitted_reply_takes_its_results_with_it() -> None:
    path = chain(*conversation(), edit("00000002", None))
    assert shown(build_context(path))[:2] == [
        "user: look at both files",
        "assistant: Both are fine.",
    ]


def test_an_edited_reply_keeps_its_calls_or_gets_new_arguments() -> None:
    assert "assistant: R. <c1> <c2>" in shown(
        build_context(chain(*conversation(), edit("00000002", "R.")))
    )
    shorter = [
        {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "..."}},
        {"type": "toolCall", "id": "c2", "name": "read", "arguments": {}},
    ]
    context = build_context(chain(*conversation(), edit("00000002", shorter)))
    message = context.messages[1].message
    assert isinstance(message, AssistantMessage)
    assert message.tool_calls[0].arguments == {"path": "..."}
    assert_normalised(context.messages)


MESSAGES = st.one_of(
    st.builds(user, st.sampled_from(["hi", "", "a\ud800"])),
    st.builds(
        lambda text, calls: reply(text, *((call, "read") for call in calls)),
        st.sampled_from(["", " ", "ok"]),
        st.lists(st.sampled_from(["c1", "c2", "c3", ""]), max_size=3),
    ),
    st.builds(result, st.sampled_from(["c1", "c2", "c3", ""])),
    st.builds(BashExecutionMessage, command=st.just("ls"), output=st.just("a")),
)


@st.composite
def paths(draw: st.DrawFn) -> tuple[Entry, ...]:
    """Any messages in any order, with compactions and edits that may point anywhere."""
    count = draw(st.integers(0, 14))
    ids = st.integers(1, 15).map(lambda number: f"{number:08x}")
    kinds = st.one_of(
        MESSAGES.map(entry),
        MESSAGES.map(entry),
        ids.map(lambda target: compaction("S", target)),
        st.builds(edit, ids, st.sampled_from([None, "", "short", [{"type": "text", "text": "t"}]])),
    )
    return chain(*(draw(kinds) for _ in range(count)))


@settings(max_examples=300)
@given(paths())
def test_whatever_the_entries_the_context_can_be_sent(path: tuple[Entry, ...]) -> None:
    context = build_context(path)
    assert_normalised(context.messages)
    messages = [item.message for item in context.messages]
    assert openai_problems(openai_messages("", messages)) == []
    assert anthropic_problems(anthropic_payload("", messages)) == []
    assert normalise_messages(context.messages) == context.messages
    assert build_context(path) == context


@settings(max_examples=300)
@given(paths(), st.integers(0, 12))
def test_a_context_that_is_gone_on_with_is_the_one_that_is_built(
    path: tuple[Entry, ...], count: int
) -> None:
    before = path[:count]
    extended = extend_context(build_context(before), before, path)
    assert extended is None or extended == build_context(path)


def steps(count: int) -> tuple[Entry, ...]:
    talk = Talk()
    talk.user("Go on.")
    for number in range(count):
        talk.tool("bash", {"command": f"echo {number}"})
    return talk.path


def test_a_step_of_a_long_conversation_reads_nothing_but_its_end() -> None:
    path = steps(5)
    for count in range(3, len(path)):
        known = build_context(path[:count])
        extended = extend_context(known, path[:count], path[: count + 1])
        assert extended == build_context(path[: count + 1])


@pytest.mark.parametrize("later", [0, 1, 2])
def test_what_a_command_is_found_to_have_changed_is_in_a_context_that_is_gone_on_with(
    later: int,
) -> None:
    log = SessionLog.create(None, Header(id="s"))
    log.append_many(steps(4)[: 7 + later])
    before = log.path_entries()
    known = build_context(before)
    log.append(changes_entry(before[6].id, FileTouches(edited=("/w/a.py",))))
    after = log.path_entries()
    extended = extend_context(known, before, after)
    assert extended is not None
    assert extended == build_context(after)
    results = [item.message for item in extended.messages if item.entry_id == before[6].id]
    assert [isinstance(found, ToolResultMessage) for found in results] == [True]
    assert extended.messages != known.messages


def test_a_result_that_comes_late_is_put_in_its_place() -> None:
    talk = Talk()
    talk.user("Go on.")
    call = ToolCall(id="late", name="bash", arguments={})
    talk.reply("I run it.", call)
    talk.tool("bash", {"command": "true"})
    before = talk.path
    talk.result(call, "here at last")
    assert extend_context(build_context(before), before, talk.path) is None


def test_another_branch_and_another_change_are_built_anew() -> None:
    path = steps(3)
    known = build_context(path[:5])
    assert extend_context(known, path[:5], steps(3)) is None
    assert extend_context(known, path[:5], path[:4]) is None
    changed = (*path[:5], edit(path[2].id, None))
    assert extend_context(known, path[:5], changed) is None
    assert extend_context(build_context(changed), changed, (*changed, path[5])) is None


@settings(max_examples=100)
@given(paths(), paths())
def test_later_entries_never_change_what_an_uncompacted_call_got(
    path: tuple[Entry, ...], more: tuple[Entry, ...]
) -> None:
    """Messages before the newest reply stay as they are, so that a prompt cache holds."""
    plain = chain(*(item for item in path if isinstance(item, MessageEntry)))
    later = [item for item in more if isinstance(item, MessageEntry)]
    later = [item for item in later if not isinstance(item.message, ToolResultMessage)]
    longer = chain(*plain, *(item.model_copy(update={"id": ""}) for item in later))
    before = build_context(plain).messages
    if before and before[0].entry_id:
        assert build_context(longer).messages[: len(before)] == before


def test_every_cut_of_a_real_session_gives_a_context_that_can_be_sent() -> None:
    data = (trajectory("pi/before-compaction.jsonl")).read_bytes()
    entries = parse_session(data).entries
    for cut in range(0, len(entries) + 1, 7):
        assert_normalised(build_context(entries[:cut]).messages)
    context = build_context(entries)
    messages = [item.message for item in context.messages]
    assert openai_problems(openai_messages("", messages)) == []
    assert anthropic_problems(anthropic_payload("", messages)) == []
    assert context.compaction is not None
    assert context.messages[0].entry_id == context.compaction.id
    assert context.messages[1].entry_id == context.compaction.first_kept_entry_id
