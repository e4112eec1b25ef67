"""What the person said stands word for word, and is shortened only where there is no room."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.compaction.sections.person import said_by_person
from agent_tui.tokens import TokenCounter

LONG = " ".join(f"word{number}" for number in range(600))


def said(*texts: str) -> list[tuple[str, str]]:
    return [(f"id{number}", text) for number, text in enumerate(texts)]


def test_all_messages_stand_as_they_were_typed_and_in_their_order(counter: TokenCounter) -> None:
    texts = ("Fix it.\n\n  - please", "no, the other one", "<b>thanks</b>")
    assert said_by_person(said(*texts), 1_000, counter) == list(texts)


def test_nothing_that_was_said_is_nothing_to_say(counter: TokenCounter) -> None:
    assert said_by_person([], 1_000, counter) == []


def test_one_long_message_is_shortened_in_the_middle_and_short_ones_stay(
    counter: TokenCounter,
) -> None:
    first, long, last = said_by_person(said("Begin here.", LONG, "End there."), 200, counter)
    assert (first, last) == ("Begin here.", "End there.")
    assert long.startswith("word0 word1 ")
    assert long.endswith(" word599")
    assert "tokens left out ...] [recall id1]" in long
    assert counter.count_text(long) < 220


def test_long_messages_are_all_brought_down_to_the_same_size(counter: TokenCounter) -> None:
    lines = said_by_person(said(LONG, LONG * 3, "short"), 600, counter)
    sizes = [counter.count_text(line) for line in lines]
    assert lines[2] == "short"
    assert abs(sizes[0] - sizes[1]) < 30
    assert 500 < sum(sizes) <= 640


def test_of_too_many_the_first_and_the_newest_stay_and_the_rest_are_counted(
    counter: TokenCounter,
) -> None:
    texts = [f"message {number} " + "and some more words to it " * 12 for number in range(40)]
    lines = said_by_person(said(*texts), 600, counter)
    assert lines[0].startswith("message 0 ")
    assert lines[-1].startswith("message 39 ")
    shown = len(lines) - 1
    assert lines[1] == f"[{40 - shown} messages in between left out; recall finds them]"
    assert lines[2].startswith(f"message {40 - shown + 1} ")
    assert shown >= 5


def test_the_first_and_the_newest_stay_even_without_any_room(counter: TokenCounter) -> None:
    lines = said_by_person(said("first", "second", "third", "newest"), 0, counter)
    assert lines[0] == "first"
    assert lines[-1] == "newest"
    assert lines[1].startswith("[2 messages in between")


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.sampled_from(["ok", "do it now", LONG, "x" * 3_000]), max_size=30),
    room=st.integers(min_value=300, max_value=4_000),
)
def test_whatever_was_said_the_lines_keep_to_their_room(
    counter: TokenCounter, texts: list[str], room: int
) -> None:
    lines = said_by_person(said(*texts), room, counter)
    assert sum(counter.count_text(line) for line in lines) <= 1.15 * room + 20
    assert [line for line in lines if line in ("ok", "do it now")] == [
        text for text in texts if text in ("ok", "do it now")
    ] or any(line.startswith("[") for line in lines)
