"""What the person said stands word for word, and is shortened only where there is no room."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.compaction.sections.person import LEAST_TOKENS, choose_messages, least_tokens
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


FILLER = "Thanks, go on."
STATED = "The budget is $803 and must not be exceeded."


def test_fillers_and_repetitions_go_first(counter: TokenCounter) -> None:
    texts = ["Fix the parser.", *["undo it", FILLER, " Undo  it"] * 40, STATED, "yes", "What next?"]
    spoken = choose_messages(said(*texts), 60, counter)
    assert spoken.lines == ["Fix the parser.", " Undo  it", STATED, "yes", "What next?"]
    assert (spoken.left_out, spoken.is_whole) == ((), True)


def test_nothing_goes_while_all_of_it_fits(counter: TokenCounter) -> None:
    texts = ["Fix the parser.", "ok", "ok", STATED, "ok"]
    assert choose_messages(said(*texts), 100, counter).lines == texts


def test_a_repetition_with_another_value_is_none(counter: TokenCounter) -> None:
    texts = ["Fix the parser.", STATED, STATED.replace("803", "950"), *[FILLER] * 20]
    lines = choose_messages(said(*texts), 90, counter).lines
    assert STATED in lines
    assert STATED.replace("803", "950") in lines


def test_a_paste_is_cut_all_the_way_down_before_an_order_goes(counter: TokenCounter) -> None:
    orders = [f"Rename part {number}" for number in range(20)]
    spoken = choose_messages(said("Begin.", *orders, LONG, "Go.", "Now."), 240, counter)
    assert set(orders) <= set(spoken.lines)
    (cut,) = (line for line in spoken.lines if "[recall id21]" in line)
    assert counter.count_text(cut) <= LEAST_TOKENS
    assert (spoken.left_out, spoken.is_whole) == ((), False)


def test_long_sentences_keep_their_beginning_before_one_goes(counter: TokenCounter) -> None:
    wishes = [f"Part {n} has words, " + "short and plain, " * 9 for n in range(20)]
    spoken = choose_messages(said("Begin.", *wishes, "Go.", "Now."), 900, counter)
    assert not spoken.left_out
    assert all(f"Part {n} has words" in line for n, line in enumerate(spoken.lines[1:-2]))
    assert all(line.endswith(f"… [recall id{n}]") for n, line in enumerate(spoken.lines[1:-2], 1))


def test_where_there_is_no_room_the_oldest_are_counted_and_named(counter: TokenCounter) -> None:
    orders = [f"Rename part {number}" for number in range(200)]
    spoken = choose_messages(said("Begin.", *orders, "Go.", "Now."), 600, counter)
    first, mark, *rest = spoken.lines
    assert first == "Begin."
    gone = 200 - (len(rest) - 2)
    assert spoken.left_out == tuple(orders[:gone])
    assert rest == [*orders[gone:], "Go.", "Now."]
    assert mark.startswith(f"[{gone} later messages left out; recall finds them: id")
    assert mark.endswith(f" id{gone}]")
    assert mark.count(" id") == gone
    assert 550 <= sum(counter.count_text(line) + 4 for line in spoken.lines) <= 610


def test_the_first_and_the_newest_stay_even_without_any_room(counter: TokenCounter) -> None:
    texts = ["first", "second " * 20, "third", "newest"]
    assert choose_messages(said(*texts), 0, counter).lines == [
        "first",
        "[1 later message left out; recall finds it: id1]",
        "third",
        "newest",
    ]


def test_no_message_goes_that_is_shorter_than_the_line_about_it(counter: TokenCounter) -> None:
    texts = ["first", "second", "third", "newest"]
    assert choose_messages(said(*texts), 0, counter).lines == texts


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(min_value=1, max_value=400), max_size=60),
    room=st.integers(min_value=0, max_value=3_000),
)
def test_a_message_that_is_left_out_has_its_id(
    counter: TokenCounter, sizes: list[int], room: int
) -> None:
    texts = [f"Part {number}: " + "words " * size for number, size in enumerate(sizes)]
    spoken = choose_messages(said(*texts), room, counter)
    shown = "\n".join(spoken.lines)
    gone = [number for number in range(len(texts)) if f"Part {number}: " not in shown]
    assert spoken.left_out == tuple(texts[number] for number in gone)
    assert all(re.search(rf"\bid{number}\b", shown) for number in gone)


def test_what_an_earlier_session_said_has_no_empty_id(counter: TokenCounter) -> None:
    spoken = choose_messages([("", LONG), ("", "Wait. " * 30), ("", "Go.")], 120, counter)
    assert "recall" not in "".join(spoken.lines)


def test_the_least_that_messages_need_keeps_them_all(counter: TokenCounter) -> None:
    messages = said("Begin.", *(f"Rename part {n}" for n in range(50)), LONG, LONG * 2, "Go.")
    needed = least_tokens(messages, counter)
    assert needed < 700
    assert choose_messages(messages, needed, counter).left_out == ()


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


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 900)), min_size=1, max_size=5),
    room=st.integers(min_value=0, max_value=6_000),
)
def test_typed_words_stay_whole_as_long_as_they_and_a_mark_for_each_paste_fit(
    counter: TokenCounter, sizes: list[tuple[int, int]], room: int
) -> None:
    parts = [
        (f"Rule {number}: " + "use tabs " * typed, "".join(f"log{n} " for n in range(pasted)))
        for number, (typed, pasted) in enumerate(sizes)
    ]
    text = "\n".join(f"{typed}\n{pasted}" for typed, pasted in parts)
    words = tuple(typed.strip() for typed, _ in parts)
    spoken = choose_messages(said("Begin.", text, "Go."), room, counter, typed={text: words})
    least = sum(counter.count_text(typed) + 30 for typed, _ in parts) + 20
    if room >= least:
        assert all(typed in spoken.lines[1] for typed in words)
        assert sum(counter.count_text(line) + 4 for line in spoken.lines) <= room
    assert spoken.is_whole == (spoken.lines == ["Begin.", text, "Go."])


def test_pastes_go_before_what_another_message_says(counter: TokenCounter) -> None:
    pasted = f"See this:\n{LONG * 4}"
    spoken = choose_messages(
        said("Begin.", LONG, pasted, "a", "b"), 2_600, counter, typed={pasted: ("See this:",)}
    )
    assert spoken.lines[1] == LONG
    assert "[recall id2]" in spoken.lines[2]


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(min_value=30, max_value=120), min_size=1, max_size=40),
    word=st.sampled_from(["words ", "Ж漢 ", "a1b2"]),
)
def test_with_the_least_that_they_need_no_message_goes(
    counter: TokenCounter, sizes: list[int], word: str
) -> None:
    messages = [(f"e{at:07x}", f"{at} {word * size}") for at, size in enumerate(sizes)]
    needed = least_tokens(messages, counter)
    assert choose_messages(messages, needed, counter).left_out == ()


def test_a_message_shorter_than_its_id_stays(counter: TokenCounter) -> None:
    texts = ["Begin.", *["undo 7", LONG] * 20, "Go.", "Now."]
    messages = [("0123456789abcdef" * 2 + str(at), text) for at, text in enumerate(texts)]
    spoken = choose_messages(messages, 0, counter)
    assert spoken.left_out
    assert "undo 7" in spoken.lines
