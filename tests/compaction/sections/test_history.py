"""A conversation as what was said, replied and done."""

from pathlib import Path

from agent_tui.agent.prompt.mentions import attach
from agent_tui.compaction.sections.files import FileReader
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


def test_a_ledger_keeps_what_was_typed_between_pastes_and_cuts_those() -> None:
    typed = ("It fails.", "Use tabs.", "Begin.")
    text = "\n".join((typed[0], "x" * 50_000, typed[1], "y" * 50_000, typed[2]))
    recorded = Said("e1", text, typed=typed).recorded
    assert all(part in recorded for part in typed)
    assert 39_000 < len(recorded) <= MAX_RECORDED_CHARS
