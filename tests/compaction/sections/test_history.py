"""A conversation as what was said, replied and done."""

from agent_tui.compaction.sections.history import Done, Replied, Said, read_history
from agent_tui.messages import BashExecutionMessage, ToolCall
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
