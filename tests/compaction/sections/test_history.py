"""A conversation as what was said, replied and done."""

from pathlib import Path

import pytest

from agent_tui.agent.prompt.mentions import attach
from agent_tui.compaction.sections.file_states import FileReader
from agent_tui.compaction.sections.history import (
    MAX_RECORDED_CHARS,
    Done,
    Replied,
    Said,
    read_history,
)
from agent_tui.compaction.sections.task import task_texts
from agent_tui.messages import BashExecutionMessage, ToolCall
from tests.compaction.sections.scene import FOLDERS, begun
from tests.support.rows import each_row
from tests.support.talk import Talk


def test_messages_are_told_apart_by_what_they_are() -> None:
    talk = Talk()
    said = talk.user(" Fix it. ")
    call = ToolCall(id="c", name="read", arguments={"path": "a.py"})
    replied = talk.reply("I look.", call)
    done = talk.result(call, "x = 1")
    own = talk.bash("make", "built")
    events = read_history(talk.path)
    assert events[:2] == (Said(said.id, "Fix it."), Replied(replied.id, "I look."))
    assert [(event.entry_id, event.output.text) for event in events if isinstance(event, Done)] == [
        (done.id, "x = 1"),
        (own.id, "built"),
    ]


def test_the_output_of_a_command_in_a_fenced_block_is_no_message_of_the_persons() -> None:
    talk = Talk()
    talk.user("Fix it.")
    talk.reply("I look.\n\n```bash\ncat a.py\n```")
    talk.user("<returncode>0</returncode>\n<output>\nx = 1\n</output>")
    *_, last = read_history(talk.path)
    assert isinstance(last, Done)
    assert last.output.action.command == "cat a.py"


def test_a_message_typed_while_a_tool_ran_comes_after_its_result() -> None:
    talk = Talk()
    call = ToolCall(id="c", name="bash", arguments={"command": "make"})
    talk.reply("", call)
    typed = talk.user("use make -j")
    result = talk.result(call, "built")
    assert [event.entry_id for event in read_history(talk.path)][1:] == [result.id, typed.id]


def test_what_the_model_is_not_to_know_of_and_empty_messages_are_left_out() -> None:
    talk = Talk()
    talk.user("  ")
    talk.message(
        lambda ms: BashExecutionMessage(
            command="cat secrets",
            output="hidden",
            exit_code=0,
            exclude_from_context=True,
            timestamp=ms,
        )
    )
    assert read_history(talk.path) == ()


def test_of_a_message_with_files_the_words_and_the_files_are_apart(tmp_path: Path) -> None:
    (tmp_path / "spec.md").write_text("Build a parser.\n" * 20)
    (tmp_path / "a.py").write_text("x = 1\ny = 2\n")
    talk = begun("Hello.")
    talk.user(attach("Do @spec.md, begin in @a.py:2-2", tmp_path).text)
    said, spec, part = read_history(talk.path)[-3:]
    assert said == Said(said.entry_id, "Do @spec.md, begin in @a.py:2-2")
    assert isinstance(spec, Done)
    assert isinstance(part, Done)
    (task,) = task_texts([said, spec, part])
    assert (task.item, task.text) == ("spec.md", "\n".join(["Build a parser."] * 20))
    whole, lines = FileReader(FOLDERS).read([spec, part])[::-1]
    assert (whole.path, whole.is_whole) == ("spec.md", True)
    assert (lines.path, lines.runs) == ("a.py", [(2, ["y = 2"])])


OFFER = """There are three ways:

1. **Rebuild** the index,
   which takes a minute
2) Disable gc

### 3. Do nothing
It may come back."""


def told_after(*texts: str) -> list[str]:
    """What a user is recorded to have said, who speaks in turn with the model."""
    talk = Talk()
    for number, text in enumerate(texts):
        talk.reply(text) if number % 2 else talk.user(text)
    return [event.told for event in read_history(talk.path) if isinstance(event, Said)]


@pytest.mark.parametrize(
    ("answer", "items"),
    [
        ("let's do 1", "1. **Rebuild** the index, which takes a minute"),
        ("1. this has happened twice", "1. **Rebuild** the index, which takes a minute"),
        ("2 and 3 please", "2. Disable gc 3. Do nothing It may come back."),
        ("on 2: why?", "2. Disable gc"),
    ],
)
def test_numbered_proposals_stay_with_the_answers_that_name_them(answer: str, items: str) -> None:
    assert told_after("Why?", OFFER, answer)[1] == f"{answer} [in answer to: {items}]"


@each_row(
    "answer", ["do it", "take v2.1", "at 12:30", "issue #2", "4", "10% of 1.5", "1 " + "word " * 40]
)
def test_an_answer_that_names_no_proposal_has_none(answer: str) -> None:
    assert told_after("Why?", OFFER, answer.strip())[1] == answer.strip()


def test_a_number_names_no_proposal_of_an_earlier_reply() -> None:
    other = "it's in worktree 2"
    assert told_after("Why?", OFFER, "do 1", "Done, the index is fine.", other)[2] == other


def test_the_proposals_that_an_answer_names_stand_in_place_of_the_question() -> None:
    (_, answer) = told_after("Why?", f"{OFFER}\n\nWhich one?", "2")
    assert answer == "2 [in answer to: 2. Disable gc]"


LISTS = """Which way?

1. Rebuild
2. Disable

{between}

1. Pushed
2. Closed

{end}"""


@each_row(
    ("between", "end", "item"),
    [
        ("Which of these do you want? Meanwhile I did:", "", "2. Disable"),
        ("Meanwhile I did:", "Which of these do I undo?", "2. Closed"),
        ("Meanwhile I did:", "", "2. Disable"),
        ("What do I do next?", "", "2. Closed"),
    ],
)
def test_of_two_lists_the_one_next_to_the_question_has_the_proposals(
    between: str, end: str, item: str
) -> None:
    offer = LISTS.format(between=between, end=end)
    assert told_after("Why?", offer, "do 2")[1] == f"do 2 [in answer to: {item}]"


@each_row(
    ("reply", "asked"),
    [
        ("Fixed:\n- a typo\n- a test\n\nReady to merge?", "Ready to merge?"),
        ("Fixed:\n3. a typo\n4. a test\nReady to merge. Next one?", "Ready to merge. Next one?"),
        ("I fixed it.\n\n- Push it?\n- Or wait?", "- Push it? - Or wait?"),
        ("Shall I push?\nIt takes a minute.", "Shall I push? It takes a minute."),
        ("Is it so? " + "It is fine. " * 40, ""),
    ],
)
def test_a_short_answer_has_the_question_without_the_list_before_it(reply: str, asked: str) -> None:
    told = told_after("Begin.", reply, "go on then")[1]
    assert told == (f"go on then [in answer to: {asked}]" if asked else "go on then")


def test_a_ledger_keeps_what_was_typed_between_pastes_and_cuts_those() -> None:
    typed = ("It fails.", "Use tabs.", "Begin.")
    text = "\n".join((typed[0], "x" * 50_000, typed[1], "y" * 50_000, typed[2]))
    recorded = Said("e1", text, typed=typed).recorded
    assert all(part in recorded for part in typed)
    assert 39_000 < len(recorded) <= MAX_RECORDED_CHARS


def test_a_message_that_asks_answers_no_question() -> None:
    ready = "All is well.\n\nReady to merge?"
    for said in ("why is gc on?", "Is it so? Tell me more."):
        assert told_after("Begin.", ready, said)[1] == said
    assert told_after("Begin.", ready, "yes. And then?")[1].startswith("yes. And then? [in answer")
