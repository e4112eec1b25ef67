"""The way so far: the model's own sentences with a line for each action, the oldest thinned."""

import re

import pytest

from agent_tui.compaction.sections.history import Done, HistoryEvent, read_history
from agent_tui.compaction.sections.way import first_sentence, way_so_far
from agent_tui.compaction.tiers.describe import describe
from agent_tui.messages import CallEnding, FileTouches, ToolCall
from agent_tui.tokens import TokenCounter
from tests.compaction.sections.scene import FOLDERS, begun, called, ran, replied, run
from tests.support.talk import Talk

LEFT_OUT = "(earlier steps are left out; recall finds them by their words)"
PLENTY = 10_000


def way(events: tuple[HistoryEvent, ...], counter: TokenCounter, room: int = PLENTY) -> list[str]:
    return way_so_far(events, (), room, counter, FOLDERS)


def steps(count: int) -> tuple[HistoryEvent, ...]:
    """Steps that look at a file, say why, change it and run its test."""
    talk = begun()
    for number in range(count):
        path = f"src/part_{number}.py"
        read = ToolCall(id=f"r{number}", name="read", arguments={"path": path})
        edit = ToolCall(id=f"e{number}", name="edit", arguments={"path": path})
        said = f"Part {number} is slow. " + "It walks the list for each token again. " * 10
        talk.reply(said, read, edit)
        talk.result(read, "text of the file " * 20)
        talk.result(edit, "Edited.", files=FileTouches(edited=(path,)))
        run(talk, f"pytest tests/part_{number}.py", "1 passed")
    return read_history(talk.path)


def test_it_tells_in_order_what_was_said_replied_and_done(counter: TokenCounter) -> None:
    talk = begun("Fix the parser.")
    call = ToolCall(id="c", name="read", arguments={"path": "src/a.py", "offset": 5, "limit": 10})
    talk.reply("I look at it first.", call)
    seen = talk.result(call, "x = 1")
    run(talk, "cd /project && pytest -q", "...\n3 passed in 0.1s")
    talk.reply("It works.")
    assert way(read_history(talk.path), counter) == [
        "[the user] Fix the parser.",
        "I look at it first.",
        f"- read src/a.py:5-14 [{seen.id}]",
        f"- $ pytest -q -> 3 passed in 0.1s [{talk.entries[-2].id}]",
        "It works.",
    ]


def test_of_a_failure_only_the_exit_code_is_told(counter: TokenCounter) -> None:
    lines = way(ran(("pytest", "E   KeyError: 'x'\n1 failed", 1)), counter)
    assert lines[-1].startswith("- $ pytest -> exit 1 [")
    talk = begun()
    talk.tool("edit", {"path": "a.py"}, "Error: not unique", is_error=True)
    assert "- edit a.py -> failed [" in way(read_history(talk.path), counter)[-1]


@pytest.mark.parametrize(
    ("ending", "told"), [("declined", "refused"), ("cancelled", "interrupted")]
)
def test_what_the_user_ended_is_no_failure(
    counter: TokenCounter, ending: CallEnding, told: str
) -> None:
    talk = begun()
    talk.tool("bash", {"command": "pytest"}, "1 failed", is_error=True, ending=ending)
    events = read_history(talk.path)
    assert f"- $ pytest -> {told} [" in way(events, counter)[-1]
    done = events[-1]
    assert isinstance(done, Done)
    assert describe(done.output, "id").startswith(f"($ pytest; {told}; ")


def test_a_command_that_the_user_interrupted_is_told_as_interrupted(counter: TokenCounter) -> None:
    talk = begun()
    talk.bash("make all", "cc a.c", None, cancelled=True)
    events = read_history(talk.path)
    assert "- $ make all -> interrupted [" in way(events, counter)[-1]
    done = events[-1]
    assert isinstance(done, Done)
    assert describe(done.output, "id").startswith("($ make all; interrupted; ")


def test_code_in_a_reply_is_left_out_of_its_words(counter: TokenCounter) -> None:
    lines = way(replied("I change it:\n\n```python\nx = 1\n```\n\nThat is all."), counter)
    assert "x = 1" not in "\n".join(lines)
    assert "That is all." in lines[-1]


def test_a_long_reply_keeps_its_two_ends(counter: TokenCounter) -> None:
    text = "I begin. " + "This is one of many sentences. " * 200 + "Next comes the printer."
    (_, line) = way(replied(text), counter)
    assert 1_000 < len(line) <= 1_200
    assert line.startswith("I begin. ")
    assert line.endswith("Next comes the printer.")


def test_a_tool_without_a_file_is_told_by_its_arguments(counter: TokenCounter) -> None:
    lines = way(
        called(("web_search", {"query": "hex escapes", "limit": 3}, "found nothing")), counter
    )
    assert lines[-1].startswith("- web_search hex escapes -> found nothing [")


def test_what_is_older_is_told_in_fewer_words(counter: TokenCounter) -> None:
    lines = way(steps(30), counter, 4_000)
    text = "\n".join(lines)
    newest, oldest = text.index("Part 29 is slow."), text.index("Part 0 is slow.")
    assert oldest < newest
    assert lines.count("Part 0 is slow.") == 1
    assert "- read src/part_29.py [" in text
    assert "- looked: src/part_0.py" not in text
    assert "read src/part_0.py" not in text
    assert "- edit src/part_0.py [" in text
    assert "- $ pytest tests/part_0.py" not in text
    assert LEFT_OUT not in text


def test_fragments_are_no_steps(counter: TokenCounter) -> None:
    talk = Talk()
    talk.user("Please go on.")
    talk.reply("Good point.")
    talk.reply("Interesting.\nThe cause is this:\n\nThe cache is read twice.")
    lines = way((*read_history(talk.path), *steps(30)), counter, 4_000)
    assert "The cache is read twice." in lines
    assert not {"Good point.", "Interesting.", "The cause is this:"} & set(lines)


def test_a_long_reply_is_cut_between_sentences(counter: TokenCounter) -> None:
    talk = Talk()
    talk.reply(" ".join(f"Sentence {n} says something of length." for n in range(90)))
    (line,) = way(read_history(talk.path), counter, 4_000)
    head, tail = line.split(" … ")
    assert head.endswith("length.")
    assert re.match(r"Sentence \d+ says", tail)


def test_between_them_what_only_looked_leaves_no_line(counter: TokenCounter) -> None:
    lines = way(steps(30), counter, 4_000)
    looks = [at for at, line in enumerate(lines) if line.startswith("- read src/part_")]
    assert looks
    assert min(looks) > len(lines) // 4  # the newest steps alone have them


@pytest.mark.parametrize("room", [0, 50, 300, 1_000, 3_000])
def test_all_of_it_keeps_to_its_room(counter: TokenCounter, room: int) -> None:
    lines = way(steps(60), counter, room)
    told = [line for line in lines if line != LEFT_OUT]
    assert counter.count_text("\n".join(told)) <= room
    assert lines[:1] == ([LEFT_OUT] if told else [])
    if room >= 300:
        assert counter.count_text("\n".join(told)) > 0.6 * room
        assert "part_59" in told[-1]


def test_the_lines_of_a_parent_session_come_before_it_the_newest_of_them_that_fit(
    counter: TokenCounter,
) -> None:
    events = replied("It works.")
    earlier = [f"- edit src/part_{number}.py [e{number}]" for number in range(40)]
    assert way_so_far(events, earlier, PLENTY, counter, FOLDERS) == [
        *earlier,
        *way(events, counter),
    ]
    fewer = way_so_far(events, earlier, 100, counter, FOLDERS)
    assert fewer[0] == LEFT_OUT
    assert fewer[1:-2] == earlier[-len(fewer) + 3 :]
    assert fewer[-2:] == way(events, counter)


def test_where_not_even_the_newest_step_fits_nothing_is_told(counter: TokenCounter) -> None:
    assert way_so_far(steps(3), ["- older"], 5, counter, FOLDERS) == []


def test_the_way_of_a_session_in_which_nothing_happened_is_empty(counter: TokenCounter) -> None:
    assert way(read_history(Talk().path), counter) == []


def test_paths_in_the_working_folder_are_told_without_it(counter: TokenCounter) -> None:
    events = called(("read", {"path": "/project/src/a.py"}, "x = 1"), ("read", {"path": "/b"}, "y"))
    told = "\n".join(way(events, counter))
    assert "read src/a.py" in told
    assert "read /b" in told


def test_a_search_is_told_with_what_was_looked_for(counter: TokenCounter) -> None:
    arguments = {"pattern": "load_.*", "path": "src/a.py", "output_mode": "content"}
    assert "- Grep load_.* src/a.py -> 3: def load_x" in "\n".join(
        way(called(("Grep", arguments, "3: def load_x")), counter)
    )


def test_a_long_path_outside_the_working_folder_is_told_by_its_last_parts(
    counter: TokenCounter,
) -> None:
    path = "/home/someone/work/other/lib/web/live/page.ex"
    assert "- read …/lib/web/live/page.ex [" in "\n".join(
        way(called(("read", {"path": path}, "text")), counter)
    )


def test_a_test_run_is_told_by_its_count(counter: TokenCounter) -> None:
    output = (
        "Compiling 4 files\n12:00 [warning] nothing to see\n14 doctests, 410 tests, 0 failures\n"
    )
    assert (
        "- $ mix test -> 14 doctests, 410 tests, 0 failures ["
        in way(ran(("mix test", output, 0)), counter)[-1]
    )


def test_a_reply_is_not_cut_behind_the_mark_of_an_item(counter: TokenCounter) -> None:
    end = "I have two options, which I list here:\n\n1. "
    text = f"{'All of it is said. ' * 29}{end}{'Wait for it ' * 120}."
    lines = way_so_far(replied(text), (), 5_000, counter, FOLDERS)
    assert "1. …" not in "\n".join(lines)


def test_of_an_old_reply_the_list_stays_with_the_sentence_that_announces_it(
    counter: TokenCounter,
) -> None:
    talk = Talk()
    talk.reply("The cause is both:\n\n1. **the cache** is on\n2. **the lock** is held\n\nI wait.")
    talk.reply("1. Raise the limit to 40. Then all is well.\nLet me look.")
    lines = way((*read_history(talk.path), *steps(30)), counter, 4_000)
    assert "The cause is both: 1. **the cache** is on 2. **the lock** is held" in lines
    assert "1. Raise the limit to 40." in lines


def test_edits_of_one_file_in_a_row_share_a_line(counter: TokenCounter) -> None:
    talk = begun()
    for old in ("one", "two"):
        talk.tool("edit", {"path": "src/a.py", "old": old, "new": "x"}, "Edited.")
    talk.tool("edit", {"path": "src/b.py", "old": "one", "new": "x"}, "Edited.")
    found = way(read_history(talk.path), counter)
    assert [line.count("[") for line in found if line.startswith("- edit src/a.py")] == [2]
    assert [line.count("[") for line in found if line.startswith("- edit src/b.py")] == [1]


def test_the_first_sentence_is_the_beginning_of_a_text() -> None:
    assert first_sentence("  I looked. Then I wrote.", 100) == "I looked."
    assert first_sentence("A heading\nand more", 100) == "A heading"
    assert first_sentence("v1.2 is out", 100) == "v1.2 is out"
    assert first_sentence("word " * 50, 20) == "word word word word…"
    text = "It waits for the lock... and then stops, because nobody frees it."
    assert first_sentence(f"{text} Next.", 200) == text
