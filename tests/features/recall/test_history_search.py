"""Getting back what was said, by words."""

import pytest

from agent_tui.messages import ToolCall, UserMessage
from agent_tui.sessions.entries import CustomMessageEntry, MessageEntry
from tests.support.recalling import body, hits, look_in, recall, small_talk
from tests.support.rows import each_row
from tests.support.talk import Talk
from tests.support.tool_calls import call_tool


@pytest.fixture
def talk() -> Talk:
    return small_talk()


async def test_a_hit_says_what_it_is_and_shows_the_lines_around_it(context, talk) -> None:
    look_in(context, talk.path)
    assert await recall(context, query="valueerror") == (
        "1 message matches (9 messages in 1 session).\n\n"
        "e0000004 · error of bash pytest -q · 2023-11-14 22:13 · line 2\n"
        "  1: 1 failed\n"
        "  2: ValueError: '1,250.00'\n\n"
        "Recall an id to see it in full, or from a line with offset."
    )


async def test_a_hint_of_earlier_work_is_no_hit(context) -> None:
    talk = Talk()
    talk.user("the red fox")
    hint = CustomMessageEntry(id="hint", custom_type="earlier_work", content="the red fox")
    look_in(context, [*talk.path, hint])
    assert hits(await recall(context, query="red fox")) == ["e0000000"]


async def test_all_words_must_occur_and_a_phrase_as_it_is(context) -> None:
    talk = Talk()
    talk.user("the red fox and the brown dog")
    talk.user("the brown fox")
    look_in(context, talk.path)
    assert hits(await recall(context, query="fox brown")) == ["e0000001", "e0000000"]
    assert hits(await recall(context, query='"brown fox"')) == ["e0000001"]
    assert hits(await recall(context, query='dog "the red"')) == ["e0000000"]


@each_row(
    ("said", "query"),
    [
        ("Straße nach Süden", "STRASSE süden"),
        ("src/agent/App.TSX:12", "agent/app.tsx"),
        ("snake_case_name()", "case_name("),
        ("ΑΒΓ", "αβγ"),
        ("the résumé", "RESUME"),
        ("the resume", "résumé"),
        ("half \ud800 pair", "half"),
        ("half \ud800 paír", "PAÍR"),
        ("a.*b", ".*"),
        ('say "hi', '"hi'),
    ],
)
async def test_words_are_found_whatever_their_case_and_signs(context, said: str, query: str):
    talk = Talk()
    talk.put(MessageEntry.model_construct(message=UserMessage.model_construct(content=said)))
    talk.user("other")
    look_in(context, talk.path)
    assert hits(await recall(context, query=query)) == ["e0000000"]


async def test_what_has_the_words_in_one_line_and_more_often_comes_first(context) -> None:
    talk = Talk()
    talk.user("timeout here\nand there\nretry timeout timeout\nand so on")
    talk.user("timeout once, retry")
    talk.user("timeout\n" * 20 + "retry\n" * 20)
    look_in(context, talk.path)
    assert hits(await recall(context, query="timeout retry")) == [
        "e0000000",
        "e0000001",
        "e0000002",
    ]


async def test_equals_come_newest_first_and_summaries_last(context) -> None:
    talk = Talk()
    talk.user("the secret word")
    talk.compaction("the secret word, secret and secret", "e0000000")
    talk.user("a secret again")
    look_in(context, talk.path)
    found = hits(await recall(context, query="secret"))
    assert found == ["e0000002", "e0000000", "e0000001"]


async def test_a_path_in_the_call_counts_for_its_result(context, talk) -> None:
    look_in(context, talk.path)
    assert hits(await recall(context, query="tally.py csv")) == ["e0000002"]


async def test_what_a_call_of_the_same_id_was_about_before_does_not_count(context) -> None:
    talk = Talk()
    for path in ("one.py", "two.py"):
        call = ToolCall(id="call_1", name="read", arguments={"path": path})
        talk.reply("", call)
        talk.result(call, f"content {path[0]}")
    look_in(context, talk.path)
    assert hits(await recall(context, query='one.py "content"')) == ["e0000001"]


async def test_arguments_of_calls_are_searched_with_the_line_to_ask_for(context, talk) -> None:
    look_in(context, talk.path)
    found = await recall(context, query='"# end"')
    assert hits(found) == ["e0000005"]
    assert " · line 5\n" in found
    assert body(await recall(context, id="e0000005", offset=5)).startswith("# end")


async def test_its_own_calls_and_results_are_no_hits(context) -> None:
    talk = Talk()
    talk.user("the needle")
    talk.tool("recall", {"query": "needle"}, "e0000000 needle needle needle")
    talk.tool("compact", {"focus": "needle"}, "Kept: needle needle")
    call = ToolCall(id="call-9", name="recall", arguments={"query": "needle"})
    talk.reply("Where is it?", call)
    look_in(context, talk.path)
    assert hits(await recall(context, query="needle")) == ["e0000000"]
    assert hits(await recall(context, query='"where is it"')) == ["e0000005"]
    assert "needle" in body(await recall(context, id="e0000002"))


async def test_messages_that_would_look_the_same_are_one_hit(context) -> None:
    talk = Talk()
    for _ in range(12):
        talk.tool("read", {"path": "a.py"}, "x = needle\n")
    talk.user("one needle")
    look_in(context, talk.path)
    found = await recall(context, query="needle")
    assert hits(found) == ["e0000024", "e0000023"]
    assert "13 messages match" in found
    assert " · line 1 · 11 similar, older\n" in found


async def test_at_most_ten_hits_are_given(context) -> None:
    talk = Talk()
    for number in range(30):
        talk.user(f"needle {number}")
    look_in(context, talk.path)
    output = await call_tool(context, "recall", {"query": "needle"})
    assert hits(output.for_model) == [f"e00000{number}" for number in range(29, 19, -1)]
    assert output.for_person.truncated


async def test_a_long_line_is_cut_around_the_word(context) -> None:
    talk = Talk()
    talk.user("a" * 300 + " needle " + "b" * 150)
    look_in(context, talk.path)
    (line,) = [row for row in (await recall(context, query="needle")).split("\n") if "1: " in row]
    assert line.startswith("  1: …a")
    assert " needle b" in line
    assert len(line) < 220


async def test_words_that_stand_across_lines_are_found(context) -> None:
    talk = Talk()
    talk.user("begin here\nand end there")
    look_in(context, talk.path)
    assert hits(await recall(context, query='"here\nand"')) == ["e0000000"]


async def test_without_a_full_match_the_nearest_are_given_with_what_they_lack(
    context, talk
) -> None:
    look_in(context, talk.path)
    found = await recall(context, query="march crashes file nowhere")
    assert found.startswith("No message matches all of it (9 messages in 1 session). Nearest:")
    assert hits(found) == ["e0000000"]
    assert " · line 1 · without nowhere\n" in found


async def test_only_a_few_of_the_nearest_are_given(context) -> None:
    talk = Talk()
    for number in range(9):
        talk.user(f"needle {number}")
    look_in(context, talk.path)
    assert len(hits(await recall(context, query="needle nowhere"))) == 3


async def test_a_long_path_or_command_keeps_both_its_ends(context) -> None:
    talk = Talk()
    talk.tool("read", {"path": f"/home/{'deep/' * 40}end.py"}, "x")
    look_in(context, talk.path)
    label = (await recall(context, id="e0000001")).split(" · ")[1]
    assert label.startswith("result of read /home/deep/")
    assert label.endswith("deep/end.py")
    assert len(label) < 100


async def test_less_than_half_of_the_words_is_nothing_found(context, talk) -> None:
    look_in(context, talk.path)
    assert await recall(context, query="march nowhere never-said") == (
        "Nothing found in 9 messages in 1 session. Try fewer or other words."
    )
