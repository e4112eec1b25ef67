"""The question says what stays, what there is room for, and what can be had now."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agent_tui.compaction.curation.ask import Ask, Staying, TokenBudget
from agent_tui.compaction.curation.pieces import Kind, Piece
from agent_tui.compaction.curation.question import make_ask
from agent_tui.compaction.draft import make_draft
from agent_tui.compaction.request import CompactionRequest, ContextSizes
from agent_tui.compaction.summary.templates import STRUCTURED
from agent_tui.config import CompactionSettings
from agent_tui.features.curation.wording import ask_text
from agent_tui.messages import JsonObject, ToolCall, ToolDetails
from agent_tui.providers.base import ModelRef
from agent_tui.sessions.replay.notes import stop_entry
from agent_tui.tokens import ExactCounter
from tests.compaction.sections.scene import numbered
from tests.support.talk import Talk

COUNTER = ExactCounter()


def ask_with(*pieces: Piece, listed: int = 3_000) -> Ask:
    return Ask(
        units=(),
        pieces=pieces,
        staying=Staying({}, (), frozenset()),
        budget=TokenBudget(90_000, 20_000, 4_500, 6_000, 13_000, listed),
        template=STRUCTURED,
        counter=COUNTER,
    )


def list_in(ask: Ask) -> list[str]:
    return ask_text(ask)[ask_text(ask).rindex("then the newest texts.") :].split("\n")[1:]


def piece(number: int, label: str, kind: Kind = "result", **kwargs: object) -> Piece:
    made = Piece(number, f"e{number}", kind, label, ("a", "b"), 1, 40)
    return replace(made, **kwargs)  # pyright: ignore[reportArgumentType]


def test_files_come_first_with_their_parts_in_one_line_and_then_the_newest_texts() -> None:
    a, b = (piece(n, "file a.py", "file", path="a.py", first=n * 10) for n in (1, 2))
    lines = list_in(ask_with(a, b, piece(3, "$ make"), piece(4, "$ ls")))
    assert lines == [
        "#1 file a.py 10-11, 40 tokens; #2 20-21, 40 tokens",
        "#4 $ ls 1-2, 40 tokens",
        "#3 $ make 1-2, 40 tokens",
    ]


def test_results_of_one_series_share_a_line() -> None:
    status = [piece(n, f"$ git status {n}", series="git status") for n in (1, 3, 5)]
    others = [piece(2, "$ git log", series="git log"), piece(4, "you replied", "reply")]
    assert list_in(ask_with(*sorted([*status, *others], key=lambda one: one.number))) == [
        "#5 $ git status 5 1-2, 40 tokens; earlier ones of git status: #3 3 40, #1 1 40",
        "#4 you replied 1-2, 40 tokens",
        "#2 $ git log 1-2, 40 tokens",
    ]


def test_what_the_user_answered_is_listed_before_newer_texts() -> None:
    answered = piece(1, "you replied 'Shall we?'", "reply", is_answered=True)
    lines = list_in(ask_with(answered, piece(2, "$ ls"), piece(3, "$ make"), listed=32))
    assert lines == [
        "#3 $ make 1-2, 40 tokens",
        "#1 you replied 'Shall we?' 1-2, 40 tokens",
        "(1 others are not listed.)",
    ]


def test_an_earlier_summary_is_said_to_go() -> None:
    line = "- The summary at the beginning does not stay: "
    assert line in ask_text(replace(ask_with(), earlier="## Goal\nMend it."))
    assert line not in ask_text(ask_with())


def test_limits_in_characters_are_those_of_the_texts_in_the_list() -> None:
    prose = piece(1, "$ cat", lines=("x" * 400,), tokens=80)
    assert "notes of at most 4,500 tokens (about 22,500 characters)" in ask_text(ask_with(prose))


def test_the_question_is_short_and_asks_for_what_quoting_cannot_say() -> None:
    text = " ".join(ask_text(ask_with()).split())
    assert COUNTER.count_text(text) <= 1_000
    for words in (
        "the command or edit itself, the whole exact message",
        "rejected, refused or dropped**: what it did",
        "taken back**: ",
        "nothing of which a part is still in Next Steps",
        "are not those of issues or pull requests",
    ):
        assert words in text


def test_without_the_disk_files_are_offered_as_they_were_last_seen() -> None:
    assert "A file is offered as it is now, " in ask_text(ask_with())
    seen = ask_text(replace(ask_with(), has_disk=False))
    assert "A file is offered as you last saw or edited it, " in seen


def test_a_piece_that_stays_in_part_says_so() -> None:
    said = piece(3, "you replied", "reply", entry_id="e1", lines=("so", "be it"))
    ask = ask_with(piece(1, "$ make"), piece(2, "$ ls"), said)
    staying = replace(ask.staying, entries={"e2"}, shortened={"e1": "so\nbe it\n\na [...]"})
    assert list_in(replace(ask, staying=staying)) == [
        "#1 $ make 1-2, 40 tokens, shortened in your newest messages"
    ]


def test_the_users_messages_stay_and_those_that_are_cut_are_named() -> None:
    told = [(n, f"message {n}", 90 if n in (2, 35) else 0) for n in range(1, 41)]
    ask = ask_with()
    text = ask_text(replace(ask, staying=replace(ask.staying, messages=told)))
    assert '(11) "message 11"; ' in text
    assert '(35) "message 35" (shortened, 90 tokens); ' in text
    assert "The 10 before these stay, too, shortened: (2). Newer ones stay." in text


def test_a_refusal_is_told_with_the_number_under_which_it_stays() -> None:
    talk = a_talk()
    words = ToolDetails(ending="declined", user_words="never touch it")
    call: JsonObject = {"path": "/project/src/a.py", "old": "x", "new": "y"}
    talk.tool("edit", call, "Refused.", is_error=True, details=words)
    for number in range(40):
        talk.reply(f"answer {number} of the writer " + "as it should be " * 90)
    assert re.search(r'; \(\d+\) "refused edit of ', ask_text(ask_of(talk, 10_000)))


def test_a_message_whose_turn_was_stopped_is_marked() -> None:
    talk = a_talk()
    talk.user("Delete the build folder.")
    talk.reply("I will", stop="aborted")
    talk.put(stop_entry())
    talk.user("List the tests.")
    for number in range(40):
        talk.reply(f"answer {number} of the writer " + "as it should be " * 90)
    said = ask_text(ask_of(talk, 10_000))
    assert '"Delete the build folder. [stopped by the user]"' in said


def test_the_newest_messages_say_what_of_them_stays_whole() -> None:
    talk = a_talk()
    talk.tool("bash", {"command": "pytest -q"}, "\n".join(f"test {n} passed" for n in range(40)))
    text = ask_text(ask_of(talk, 10_000))
    assert re.search(r"\(Not offered, as they stay whole .*\$ pytest -q 1-40[;.]", text)


def test_what_of_the_newest_messages_is_shortened_can_be_chosen() -> None:
    talk = a_talk()
    listing = "\n".join(f"file_{n}.py is a file of this folder" for n in range(900))
    talk.tool("bash", {"command": "ls -R"}, listing)
    ask = ask_of(talk, 10_000)
    (cut,) = (p for p in ask.pieces if p.label == "$ ls -R")
    assert f"{cut.line}, shortened in your newest messages" in ask_text(ask)


def test_of_a_reply_with_a_shortened_call_the_text_and_other_calls_stay_whole() -> None:
    talk = a_talk()
    old = "\n".join(f"line {n} of what stood there" for n in range(90))
    edit = ToolCall(id="c1", name="edit", arguments={"path": "b.py", "old": old, "new": "x = 1"})
    listing = ToolCall(id="c2", name="bash", arguments={"command": f"ls {'a/ ' * 90}"})
    talk.reply("The writer holds what it has to: " + "as it should be " * 30, edit, listing)
    talk.result(edit)
    talk.result(listing)
    talk.reply("That is the only file.")
    talk.user("Go on.")
    ask = ask_of(talk, 10_000)
    (whole,) = re.findall(r"\(Not offered, as they stay whole .*", ask_text(ask))
    assert "your command: ls a/" in whole
    assert "b.py" not in whole
    assert not any(line.startswith("#") and "The writer holds" in line for line in list_in(ask))


def test_what_stays_of_files_is_named_by_their_paths_and_lines() -> None:
    talk = a_talk()
    folder = f"/project/{'some/deeply/nested/' * 5}"
    shown = numbered([f"{n} is a line of the file that stays" for n in range(300, 330)], 300)
    read: JsonObject = {"path": f"{folder}one.py", "offset": 300, "limit": 30}
    talk.tool("read", read, shown)
    talk.user("Go on.")
    ask = ask_of(talk, 10_000)
    path = f"{folder}one.py".removeprefix("/project/")
    assert f"whole in your newest messages: #1 file {path} 300-329" in ask_text(ask)
    assert ask_text(ask).count(f"#1 file {path}") == 1


def test_the_state_that_stays_ends_with_a_whole_line() -> None:
    talk = a_talk()
    steps: list[JsonValue] = [
        {"text": f"grind the corn of field {n} {'well ' * 9}", "status": "pending"}
        for n in range(20)
    ]
    talk.tool("todo", {"todos": steps}, "ok")
    for number in range(9):
        talk.reply(f"answer {number} of the writer " + "as it should be " * 90)
    (state,) = re.findall(r"- the plan, items, commits.*", ask_text(ask_of(talk, 10_000)))
    assert re.search(r"field 6 (well ){8}well; and 13 more$", state)


def test_calls_of_one_tool_and_states_of_the_work_tree_share_a_line() -> None:
    talk = a_talk()
    for number in range(2):
        talk.tool(
            "task",
            {"prompt": f"Grind the corn of field {number}. " + "Do it well. " * 90},
            "Ground.",
        )
        changed = "\n".join(f"\tmodified: field_{number}_{n}.py" for n in range(60))
        talk.tool("bash", {"command": "git status"}, changed)
        talk.tool("bash", {"command": "git commit -m one"}, f"[main 111111{number}] One")
    for number in range(9):
        talk.reply(f"answer {number} of the writer " + "as it should be " * 90)
    text = ask_text(ask_of(talk, 10_000))
    assert re.search(
        r"^#\d+ \$ git status .*; earlier ones of uncommitted changes: #\d+ ", text, re.M
    )
    assert re.search(r"^#\d+ task prompt=.*; earlier ones of calls of task: #\d+ ", text, re.M)


def test_a_changed_file_is_offered_though_no_message_shows_it_as_it_is_now() -> None:
    talk = a_talk()
    talk.tool("edit", {"path": "a.py", "old": "value_3 = 3\n", "new": "value_3 = 33\n"}, "done")
    for number in range(9):
        talk.reply(f"answer {number} of the writer " + "as it should be " * 90)
    listing = "\n".join(f"file_{n}.py is a file of this folder" for n in range(900))
    talk.tool("bash", {"command": "ls -R"}, listing)
    ask = ask_of(talk, 10_000)
    assert ask.staying.shortened
    assert list_in(ask)[0].startswith("#1 file a.py 1-60, ")


def test_outlines_take_a_third_of_the_list_and_the_first_files_come_first() -> None:
    titles = tuple(f"{n}-{n + 9} def run_{n}()" for n in range(1, 100, 10))
    files = [
        piece(n, f"file {n}.py", "file", path=f"{n}.py", outline=titles[: n * 3])
        for n in range(1, 4)
    ]
    lines = list_in(ask_with(*files, listed=330))
    assert lines == [
        "#1 file 1.py 1-2, 40 tokens",
        "  1-10 def run_1(); 11-20 def run_11(); 21-30 def run_21()",
        "#2 file 2.py 1-2, 40 tokens",
        f"  {'; '.join(titles[:6])}",
        "#3 file 3.py 1-2, 40 tokens",
    ]


def test_a_long_outline_leaves_room_for_those_of_other_files() -> None:
    titles = tuple(f"{n}-{n + 9} def run_{n}()" for n in range(1, 100, 10))
    long = piece(1, "file 1.py", "file", path="1.py", outline=titles)
    short = piece(2, "file 2.py", "file", path="2.py", outline=titles[:3])
    assert list_in(ask_with(long, short, listed=330)) == [
        "#1 file 1.py 1-2, 40 tokens",
        "#2 file 2.py 1-2, 40 tokens",
        f"  {'; '.join(titles[:3])}",
    ]


def test_what_is_not_worth_its_tags_is_not_listed() -> None:
    file = piece(1, "file a.py", "file", path="a.py", lines=("value = 1", "value = 2"))
    refused = piece(2, "edit a.py", "call", lines=("    value = 2", "value = 1"), remark="failed")
    other = piece(3, "edit a.py", "call", lines=("value = 3",), remark="failed")
    brief = [
        piece(4, "todo", "call", tokens=10),
        piece(5, 'you were given "(Go on.)"', "said", tokens=10),
        piece(6, "edit path=a.py", tokens=28, remark="failed"),
    ]
    result = piece(7, "$ id", tokens=5)
    assert list_in(ask_with(file, refused, other, *brief, result)) == [
        "#1 file a.py 1-2, 40 tokens",
        "#7 $ id 1-2, 5 tokens",
        "#3 edit a.py, 40 tokens, failed",
    ]


def test_what_stays_is_told_with_its_text() -> None:
    talk = a_talk()
    talk.tool("bash", {"command": "pytest -q"}, "3 passed in 1 s")
    for number in range(60):
        talk.reply(f"answer {number} of the writer " + "as it should be " * 90)
    text = ask_text(ask_of(talk, 10_000))
    assert re.search(r"newest test results: \d+ tokens: - `pytest -q` -> 3 passed", text)


def test_a_long_piece_says_how_much_fifty_lines_take() -> None:
    long = piece(1, "$ ls", lines=("x",) * 120, tokens=240)
    assert long.line == "#1 $ ls 1-120, 240 tokens (100 per 50 lines)"


@given(
    st.lists(
        st.tuples(st.sampled_from(["file", "result", "reply"]), st.text("ab /", max_size=90)),
        max_size=40,
    ),
    st.integers(0, 400),
)
def test_the_list_keeps_within_its_budget_and_counts_the_rest(
    made: list[tuple[Kind, str]], listed: int
) -> None:
    pieces = [
        piece(n, label, kind, path=f"{label}.py" if kind == "file" else "", series=label[:1])
        for n, (kind, label) in enumerate(made, 1)
    ]
    *lines, last = list_in(ask_with(*pieces, listed=listed))
    shown = "\n".join((*lines, last))
    if missing := re.fullmatch(r"\((\d+) others are not listed\.\)", last):
        shown = "\n".join(lines)
    assert COUNTER.count_text(shown) <= max(listed, COUNTER.count_text("(none)"))
    numbers = re.findall(r"#(\d+)", shown)
    assert len(numbers) == len(set(numbers)) == len(pieces) - (int(missing[1]) if missing else 0)


def a_talk() -> Talk:
    talk = Talk()
    talk.user("Mend the parser of a.py.")
    talk.user("Here is what the log says: " + "a line of the log with words. " * 900)
    talk.tool("read", {"path": "a.py"}, numbered([f"value_{n} = {n}" for n in range(60)]))
    for number in range(60):
        talk.reply(f"answer {number} of the parser " + "as it should be " * 90)
        talk.user(f"question {number}?")
    return talk


def ask_of(
    talk: Talk,
    target: int,
    *,
    settings: CompactionSettings | None = None,
    overhead: int = 0,
) -> Ask:
    request = CompactionRequest(
        path=talk.path,
        previous=None,
        model=ModelRef("scripted/one"),
        cwd=Path("/project"),
        settings=settings or CompactionSettings(),
        sizes=ContextSizes(100_000, 40_000, overhead, target),
    )
    return make_ask(request, make_draft(request, counter=COUNTER), counter=COUNTER)


@pytest.mark.parametrize(("target", "notes"), [(20_000, 4_500), (10_000, 3_000)])
def test_notes_and_texts_share_what_nothing_else_needs(target: int, notes: int) -> None:
    ask = ask_of(a_talk(), target)
    assert (ask.budget.notes, ask.budget.target) == (notes, target)
    assert ask.budget.free + sum(ask.staying.sizes.values()) == target
    assert f"share the rest: {ask.budget.free:,} tokens (about " in ask_text(ask)
    assert f"notes of at most {notes:,} tokens (about " in ask_text(ask)


def test_the_stated_limit_of_notes_is_within_what_is_left() -> None:
    ask = ask_with()
    small = replace(ask, budget=replace(ask.budget, free=418, notes=500))
    assert "share the rest: 418 tokens" in ask_text(small)
    assert "notes of at most 418 tokens" in ask_text(small)


def test_the_first_sizes_are_those_of_the_bar() -> None:
    ask = ask_with()
    assert "shrinks from about 90,000 to 20,000 tokens, and" in ask_text(ask)
    apart = replace(ask, budget=replace(ask.budget, ratio=1.16))
    sizes = "104,400 to 23,200 tokens as the provider counts them (1.16 for each token of the sizes"
    assert f"shrinks from about {sizes}" in ask_text(apart)


def test_the_setting_is_the_limit_of_the_notes() -> None:
    settings = CompactionSettings(max_summary_tokens=1_000)
    budget = ask_of(a_talk(), 20_000, settings=settings).budget
    assert (budget.notes, budget.most_notes) == (1_000, 1_000)


def test_each_part_that_stays_is_told_with_its_size() -> None:
    ask = ask_of(a_talk(), 10_000, overhead=700)
    assert "- the system prompt and the tools: 700 tokens\n" in ask_text(ask)
    assert "- the user's messages, reasons of refusals and answers to questions: " in ask_text(ask)
    assert re.search(r"- your newest messages: \d,\d+ tokens", ask_text(ask))
    assert "pinned texts" not in ask_text(ask)


def test_a_message_of_the_user_that_is_shortened_can_be_chosen_and_others_need_not() -> None:
    talk = Talk()
    talk.user("Mend the parser of a.py.")
    talk.user("Here is what the log says: " + "a line of the log with words. " * 900)
    for number in range(40):
        talk.reply(f"answer {number} of the parser " + "as it should be " * 90)
    ask = ask_of(talk, 10_000)
    assert 'afterwards: (1) "Mend the parser of a.py."; (2) "Here is what the log says' in ask_text(
        ask
    )
    assert re.search(r"\" \(shortened, 7,\d+ tokens\)\. ", ask_text(ask))
    said = [piece.label for piece in ask.pieces if piece.kind == "said"]
    assert said == ['the user said "Here is what the log says: a line of the log with …"']
