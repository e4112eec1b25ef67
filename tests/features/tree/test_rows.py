"""The tree of a session as rows to pick from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.features.tree.rows import MessageTree, TreeRow
from agent_tui.messages import BashExecutionMessage, ImageContent, Message, UserMessage
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    Header,
    LabelEntry,
    MessageEntry,
    SessionInfoEntry,
)
from agent_tui.sessions.log import SessionLog
from tests.support.session_values import entry, reply, result, user


@pytest.fixture
def log() -> SessionLog:
    return SessionLog.create(None, Header(cwd="/w"))


def put(log: SessionLog, *messages: Message) -> list[str]:
    """Say something at the leaf; the ids of what was said."""
    return [log.append(entry(message)).id for message in messages]


def drawn(log: SessionLog, wanted: str = "", *, everything: bool = False) -> list[str]:
    """Each row as it could be drawn: the mark of the path, the guide, the text."""
    rows = MessageTree(log.entries, log.leaf_id).rows(everything=everything, wanted=wanted)
    return [_line(row) for row in rows]


def _line(row: TreeRow) -> str:
    mark = "@" if row.is_here else "*" if row.is_on_path else " "
    label = f"[{row.label}] " if row.label else ""
    return f"{mark} {row.guide}{label}{row.title}"


def test_a_session_without_branches_is_a_plain_list(log: SessionLog) -> None:
    put(log, user("one"), reply("first"), user("two"), reply("second"))
    assert drawn(log) == ["* one", "@ two"]


def test_a_message_is_what_the_person_typed(log: SessionLog) -> None:
    put(log, user('See @a.py\n\n<file path="a.py">\nthe whole file\n</file>'))
    assert drawn(log) == ["@ See @a.py"]


def test_everything_shows_replies_calls_and_results_too(log: SessionLog) -> None:
    put(log, user("one"), reply("", ("c1", "read")), result("c1", "text of it"), reply("Done."))
    shown = drawn(log, everything=True)
    assert shown == ["* one", "* read", "* read: text of it", "@ Done."]


def test_a_branch_that_was_left_stands_indented_where_it_began(log: SessionLog) -> None:
    first = put(log, user("one"), reply("a"))
    put(log, user("left"), reply("b"), user("left too"))
    log.branch_to(first[-1])
    put(log, user("two"), user("three"))
    assert drawn(log) == ["* one", "  └─ left", "     left too", "* two", "@ three"]


def test_branches_of_a_branch_go_further_in(log: SessionLog) -> None:
    (one,) = put(log, user("one"))
    (left,) = put(log, user("left"))
    put(log, user("left short"))
    log.branch_to(left)
    put(log, user("left long"), user("left longer"))
    log.branch_to(one)
    put(log, user("two"))
    assert drawn(log) == [
        "* one",
        "  └─ left",
        "     └─ left short",
        "     left long",
        "     left longer",
        "@ two",
    ]


def test_a_conversation_begun_anew_stands_below_the_first_one(log: SessionLog) -> None:
    put(log, user("one"), user("two"))
    log.branch_to(None)
    put(log, user("other one"))
    assert drawn(log) == ["  ╭─ one", "  │  two", "@ other one"]


def test_after_going_back_nothing_beyond_that_place_is_on_the_path(log: SessionLog) -> None:
    first = put(log, user("one"), reply("a"))
    put(log, user("two"), user("three"))
    log.branch_to(first[-1])
    assert drawn(log) == ["@ one", "  two", "  three"]
    log.branch_to(None)
    assert drawn(log) == ["  one", "  two", "  three"]


def test_entries_that_are_no_messages_make_no_branch(log: SessionLog) -> None:
    ids = put(log, user("one"), reply("a"))
    log.append(LabelEntry(target_id=ids[0], label="start"))
    log.append(SessionInfoEntry(name="named"))
    log.branch_to(ids[-1])
    log.append(CustomEntry(custom_type="x"))
    put(log, user("two"))
    log.append(ContextEditEntry(target_id=ids[1]))
    assert drawn(log) == ["* [start] one", "@ two"]


def test_labels_compactions_summaries_commands_and_images_are_shown(log: SessionLog) -> None:
    image = ImageContent(data="aGk=", mime_type="image/png")
    ids = put(log, user("one"), reply("labelled reply"), reply("other reply"))
    log.append(LabelEntry(target_id=ids[1], label="good"))
    log.append(LabelEntry(target_id=ids[0], label="gone"))
    log.append(LabelEntry(target_id=ids[0]))
    log.append(CompactionEntry(summary="## Goal\nx", first_kept_entry_id="", tokens_before=9_000))
    log.append(BranchSummaryEntry(summary="## Goal\ny"))
    log.append(CustomMessageEntry(content="a note"))
    put(log, BashExecutionMessage(command="make", output="", exit_code=0))
    put(log, UserMessage(content=(image,)))
    assert drawn(log) == [
        "* one",
        "* [good] labelled reply",
        "* context compacted, 9,000 tokens before",
        "* summary of another branch",
        "* make",
        "@ (image)",
    ]
    assert "* a note" in drawn(log, everything=True)


def test_a_search_looks_for_every_word_in_text_and_labels(log: SessionLog) -> None:
    ids = put(log, user("mend the Parser"), user("mend the lexer"), user("talk"))
    log.append(LabelEntry(target_id=ids[2], label="Parser talk"))
    assert drawn(log, "parser") == ["* mend the Parser", "@ [Parser talk] talk"]
    assert drawn(log, "mend lex") == ["@ mend the lexer"]
    assert drawn(log, "nothing like it") == []


def test_what_nothing_holds_is_searched_by_likeness(log: SessionLog) -> None:
    put(log, user("change the tokenizer"), user("say hello"))
    assert drawn(log, "tokeniser") == ["@ change the tokenizer"]


def test_the_answer_is_the_first_that_came_whatever_lay_between(log: SessionLog) -> None:
    ids = put(log, user("one"), reply("", ("c1", "read")), result("c1"), reply("It is read."))
    ids += put(log, user("two"))
    tree = MessageTree(log.entries, log.leaf_id)
    assert tree.answer_to(ids[0]) == "It is read."
    assert tree.answer_to(ids[-1]) == ""


def test_a_long_session_is_laid_out_without_recursion(
    log: SessionLog,
) -> None:
    entries: list[Entry] = []
    for number in range(20_000):
        parent = entries[number - 1 if number % 7 else max(number - 9, 0)].id if entries else None
        made = MessageEntry(message=user(f"message {number}"))
        entries.append(made.model_copy(update={"id": f"{number:08x}", "parent_id": parent}))
    rows = MessageTree(entries, entries[-1].id).rows(everything=True)
    assert len(rows) == 20_000
    assert max(len(row.guide) for row in rows) < 60


def test_however_a_tree_branches_its_guides_stay_short() -> None:
    """A new branch at each message, the longer one being the older."""
    entries: list[Entry] = []
    for number in range(4_000):
        parent = entries[number - 1 - number % 2].id if entries else None
        made = MessageEntry(message=user(f"message {number}"))
        entries.append(made.model_copy(update={"id": f"{number:08x}", "parent_id": parent}))
    rows = MessageTree(entries, entries[1].id).rows()
    assert max(len(row.guide) for row in rows) <= 6


MESSAGES = st.sampled_from([user("a"), reply("b", ("c", "read")), result("c"), reply("d")])


@given(
    st.lists(
        st.tuples(st.integers(-1, 30), st.one_of(MESSAGES, st.just("label"), st.just("summary"))),
        max_size=40,
    )
)
def test_with_all_shown_every_message_has_one_row_below_its_ancestors(
    drawn_entries: list[tuple[int, Message | str]],
) -> None:
    log = SessionLog.create(None, Header(cwd="/w"))
    for at, what in drawn_entries:
        ids = [item.id for item in log.entries]
        log.branch_to(ids[at % len(ids)] if ids and at >= 0 else None)
        match what:
            case "label":
                log.append(LabelEntry(target_id=ids[0] if ids else "", label="x"))
            case "summary":
                log.append(BranchSummaryEntry(summary="s"))
            case _:
                assert not isinstance(what, str)
                put(log, what)
    rows = MessageTree(log.entries, log.leaf_id).rows(everything=True)
    shown = [row.entry.id for row in rows]
    wanted = [e.id for e in log.entries if isinstance(e, MessageEntry | BranchSummaryEntry)]
    assert sorted(shown) == sorted(wanted)
    assert len(set(shown)) == len(shown)
    places = {entry_id: place for place, entry_id in enumerate(shown)}
    for row in rows:
        if row.entry.parent_id in places:
            assert places[row.entry.parent_id] < places[row.entry.id]
    on_path = {item.id for item in log.path_entries()}
    assert {row.entry.id for row in rows if row.is_on_path} == on_path & set(shown)
    assert sum(row.is_here for row in rows) == bool(on_path & set(shown))
    assert not any(row.guide for row in rows if row.is_on_path)


def test_rows_read_as_messages_are_drawn(log: SessionLog) -> None:
    asked = 'See @a.py\n\n<file path="a.py">\nx\n</file>'
    put(log, user(asked), reply("## Found\n\nThe **parser** reads `a.py`."), user("use **bold**"))
    assert drawn(log, everything=True) == [
        "* See @a.py",
        "* Found The parser reads a.py.",
        "@ use **bold**",
    ]
