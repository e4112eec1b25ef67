"""What the person said stands word for word, and is shortened only where there is no room."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.compaction.sections.person import choose_messages
from agent_tui.tokens import TokenCounter

LONG = " ".join(f"word{number}" for number in range(600))


def said(*texts: str) -> list[tuple[str, str]]:
    return [(f"id{number}", text) for number, text in enumerate(texts)]


def test_all_messages_stand_as_they_were_typed_and_in_their_order(counter: TokenCounter) -> None:
    texts = ("Fix it.\n\n  - please", "no, the other one", "<b>thanks</b>")
    assert choose_messages(said(*texts), 1_000, counter).lines == list(texts)


def test_nothing_that_was_said_is_nothing_to_say(counter: TokenCounter) -> None:
    assert choose_messages([], 1_000, counter).lines == []


def test_one_long_message_is_shortened_in_the_middle_and_short_ones_stay(
    counter: TokenCounter,
) -> None:
    first, long, last = choose_messages(said("Begin here.", LONG, "End there."), 200, counter).lines
    assert (first, last) == ("Begin here.", "End there.")
    assert long.startswith("word0 word1 ")
    assert long.endswith(" word599")
    assert "tokens left out ...] [recall id1]" in long
    assert counter.count_text(long) < 220


def test_long_messages_are_all_brought_down_to_the_same_size(counter: TokenCounter) -> None:
    lines = choose_messages(said(LONG, LONG * 3, "short"), 600, counter).lines
    sizes = [counter.count_text(line) for line in lines]
    assert lines[2] == "short"
    assert abs(sizes[0] - sizes[1]) < 30
    assert 500 < sum(sizes) <= 640


FILLER = "We went through the plan again and talked about all of it for quite a while."
STATED = "The budget is $803 and must not be exceeded."


def test_what_is_said_again_later_goes_first(counter: TokenCounter) -> None:
    texts = ["Fix the parser.", *[FILLER, "go on"] * 40, STATED, "yes", "What next?"]
    lines = choose_messages(said(*texts), 40, counter).lines
    assert lines[0] == "Fix the parser."
    assert STATED in lines
    assert lines.count(FILLER) <= 1
    assert lines[1].endswith("of the later messages left out; recall finds them]")
    assert lines[-1] == "What next?"


def test_a_repetition_with_another_value_is_none(counter: TokenCounter) -> None:
    texts = ["Fix the parser.", STATED, STATED.replace("803", "950"), *[FILLER] * 20]
    lines = choose_messages(said(*texts), 90, counter).lines
    assert STATED in lines
    assert STATED.replace("803", "950") in lines


def test_plain_sentences_go_before_statements(counter: TokenCounter) -> None:
    plain = [
        f"{word} we talked a good deal about the {word} side of it once more, " * 4 + "and so on."
        for word in ("north", "south", "upper", "lower", "inner", "outer", "early", "later")
    ]
    stated = [f"The budget of part {number} is ${number}00." for number in range(1, 9)]
    texts = ["Fix the parser.", *map(" ".join, zip(plain, stated, strict=True)), "Go.", "Now."]
    lines = choose_messages(said(*texts), 300, counter).lines
    assert lines[1] == f"[…] {stated[0]}"
    assert all(any(one in line for line in lines) for one in stated)


def test_what_a_short_message_states_stays_together(counter: TokenCounter) -> None:
    rule = "Only Python 3.11. Calls from inside the sandbox to the outside."
    lines = choose_messages(
        said("Fix the parser.", rule, *[FILLER, "Go on"] * 9), 70, counter
    ).lines
    assert rule in lines


def test_what_there_is_no_room_for_is_counted(counter: TokenCounter) -> None:
    texts = ["Fix the parser.", *(f"{FILLER} {word}" for word in "abc"), STATED, "Now.", "Next?"]
    assert choose_messages(said(*texts), 1_000, counter).left_out == 0
    assert choose_messages(said(*texts), 50, counter).left_out == 3


def test_of_too_many_statements_the_oldest_leave_a_line_or_a_number(
    counter: TokenCounter,
) -> None:
    texts = [
        f"Part {number} of the plan is called P{number:03d} and belongs to team {number}, "
        + "which answers for all of it in every respect and until the end of the year, " * 6
        for number in range(40)
    ]
    lines = choose_messages(said(*texts), 1_500, counter).lines
    assert lines[0] == texts[0]
    assert lines[-2:] == texts[-2:]
    gone = [line for line in lines if line.startswith("Part ") and line.endswith("]")]
    assert gone or "of the later messages left out" in lines[1]
    assert sum(map(counter.count_text, lines)) <= 1_540


def test_the_first_and_the_newest_stay_even_without_any_room(counter: TokenCounter) -> None:
    lines = choose_messages(said("first", "second", "third", "newest"), 0, counter).lines
    assert lines == [
        "first",
        "[1 of the later messages left out; recall finds them]",
        "third",
        "newest",
    ]


def test_a_rule_never_stays_without_the_value_beside_it(counter: TokenCounter) -> None:
    rule = "The cap of the budget is $803 in total. Never exceed it without approval."
    stated = [f"Part {number} of it belongs to team {number}." for number in range(60)]
    for room in range(100, 900, 20):
        lines = choose_messages(said("Begin.", rule, *stated, "Go.", "Now."), room, counter).lines
        assert rule in lines or not any(
            "Never exceed" in line and "$803" not in line for line in lines
        )


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.integers(100, 999), min_size=1, max_size=40, unique=True),
    chatter=st.lists(st.sampled_from(["go on", FILLER]), max_size=20),
    room=st.integers(min_value=0, max_value=1_500),
)
def test_what_was_stated_stands_whole_within_the_share_and_beyond_it_its_id(
    counter: TokenCounter, values: list[int], chatter: list[str], room: int
) -> None:
    stated = [f"The limit of part {value} is ${value}." for value in values]
    messages = said("Begin.", *stated, *chatter, "Go on.", "And now?")
    text = "\n".join(choose_messages(messages, room, counter).lines)
    gone = [(id, one) for id, one in messages if one in stated and one not in text]
    if room >= 8 * len(messages) + 60:
        assert all(re.search(rf"\b{id}\b", text) for id, _ in gone)
    needed = sum(counter.count_text(one) + 4 for one in stated)
    if needed + 60 * len(chatter) + 60 <= room:
        assert not gone


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.sampled_from(["ok", "do it now", LONG, "x" * 3_000]), max_size=30),
    room=st.integers(min_value=300, max_value=4_000),
)
def test_whatever_was_said_the_lines_keep_to_their_room(
    counter: TokenCounter, texts: list[str], room: int
) -> None:
    lines = choose_messages(said(*texts), room, counter).lines
    assert sum(counter.count_text(line) for line in lines) <= 1.15 * room + 20
    assert [line for line in lines if line in ("ok", "do it now")] == [
        text for text in texts if text in ("ok", "do it now")
    ] or any("recall" in line for line in lines)
