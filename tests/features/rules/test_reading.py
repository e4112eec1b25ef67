"""Which sentences of a session are corrections."""

from agent_tui.attachments import approving_message, instructions_block
from agent_tui.features.rules.reading import read_corrections
from agent_tui.messages import AssistantMessage, ToolCall
from agent_tui.sessions.entries import MessageEntry
from tests.features.rules.said import answer, say, work


def sentences(*entries):
    return [found.sentence for found in read_corrections(entries).corrections]


def test_a_correction_follows_work():
    assert sentences(say("Write it."), work("pip install x", "bash"), say("use uv, not pip")) == [
        "use uv, not pip"
    ]


def test_what_is_said_first_or_after_mere_talk_corrects_nothing():
    assert not sentences(say("use uv, not pip"))
    assert not sentences(say("Hello."), answer("Hello."), say("use uv, not pip"))
    read = MessageEntry(
        message=AssistantMessage(
            content=(ToolCall(id="r", name="read", arguments={"path": "a.py"}),)
        )
    )
    assert not sentences(say("Look."), read, say("use uv, not pip"))


def test_calls_of_other_agents_are_work_too():
    call = ToolCall(
        id="c",
        name="str_replace_editor",
        arguments={"command": "create", "path": "/a", "file_text": "x"},
    )
    change = MessageEntry(message=AssistantMessage(content=(call,)))
    assert sentences(say("Write it."), change, say("use uv, not pip"))


def test_quotes_code_attachments_and_commands_are_not_what_the_user_said():
    for text in (
        "> use uv, not pip",
        "```\nuse uv, not pip\n```",
        f"/review\n\n{instructions_block('use uv, not pip')}",
        approving_message("use uv, not pip"),
        'Look at @a.md\n\n<file path="a.md">\nuse uv, not pip\n</file>',
    ):
        assert not sentences(say("Write it."), work("pip"), say(text)), text


def test_of_a_long_message_only_the_first_and_the_last_paragraph_are_typed():
    log = "No artifacts will be uploaded today.\n" * 100
    text = f"Never push to main directly.\n\n{log}\n\nDon't touch the changelog file."
    assert sentences(say("Write it."), work("x"), say(text)) == [
        "Never push to main directly.",
        "Don't touch the changelog file.",
    ]


def test_what_is_repeated_in_a_session_word_for_word_counts_once():
    again = (work("x"), say("use uv, not pip"))
    assert sentences(say("Write it."), *again, *again) == ["use uv, not pip"]


def test_it_is_known_what_the_model_replaced_by_what():
    entries = (
        say("Write it."),
        work("pip install x", "bash"),
        say("Take uv for pip here."),
        work("uv add x", "bash"),
    )
    (found,) = read_corrections(entries).corrections
    assert (found.dropped, found.taken_up) == ({"pip"}, {"uv"})
    assert not sentences(*entries[:3], work("pip install y", "bash"))


def test_text_that_an_edit_removes_was_not_written_by_it():
    edit = MessageEntry(
        message=AssistantMessage(
            content=(
                ToolCall(
                    id="e", name="edit", arguments={"path": "a", "old": "pip x", "new": "uv x"}
                ),
            )
        )
    )
    entries = (say("Write it."), work("pip x"), say("Take uv for pip here."), edit)
    (found,) = read_corrections(entries).corrections
    assert found.is_followed


def test_terms_are_counted_by_sentence():
    said = read_corrections((say("Use uv. Use uv, always uv."), work("x")))
    assert (said.sentences, said.counts["uv"]) == (2, 2)
