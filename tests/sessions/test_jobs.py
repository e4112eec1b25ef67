"""Background jobs as the entries of a session tell of them."""

from agent_tui.messages import Job, TextContent, ToolDetails, ToolResultMessage, UserMessage
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import CustomMessageEntry, Header, MessageEntry
from agent_tui.sessions.export.document import document_of
from agent_tui.sessions.replay.notes import JOBS_ENDED, end_of_jobs_entry, jobs_in, jobs_on

SERVER = Job(id="1", command="npm\n  run dev", since=1_700_000_000_000)
BUILD = Job(id="2", command="make", since=1_700_000_001_000)


def result(*jobs: Job) -> MessageEntry:
    details = ToolDetails(jobs=jobs).model_dump(mode="json", by_alias=True, exclude_defaults=True)
    message = ToolResultMessage(
        tool_call_id="c", tool_name="bash", content=(TextContent(text="x"),), details=details
    )
    return MessageEntry(id="a", message=message)


def ended(job: Job, how: str) -> Job:
    return job.model_copy(update={"ending": how})


def test_the_newest_word_of_each_job_counts():
    over = ended(BUILD, "exit code 0 after 3 s")
    path = (result(SERVER), result(BUILD), result(SERVER, over))
    assert jobs_on(path, {}) == {"1": SERVER, "2": over}
    assert jobs_on((), {"1": SERVER}) == {"1": SERVER}
    assert jobs_on((end_of_jobs_entry([over]),), {"2": BUILD}) == {"2": over}


def test_an_end_is_told_to_the_model_in_a_line_for_each_job():
    entry = end_of_jobs_entry(
        [ended(SERVER, "stopped after 4 s"), ended(BUILD, "exit code 2 after 1 s")]
    )
    (sent,) = build_context([entry.model_copy(update={"id": "b"})]).messages
    assert isinstance(sent.message, UserMessage)
    assert sent.message.text == (
        "(Job 1 (npm run dev) has ended: stopped after 4 s.)\n"
        "(Job 2 (make) has ended: exit code 2 after 1 s.)"
    )


def test_an_export_has_the_end_as_a_note():
    entry = end_of_jobs_entry([ended(BUILD, "exit code 0 after 1 s")])
    (block,) = document_of(Header(), [entry]).blocks
    assert (block.kind, block.title, block.text) == ("summary", "Note", entry.text)


def test_what_others_wrote_there_tells_of_no_job():
    odd = CustomMessageEntry(custom_type=JOBS_ENDED, content="x", details=["no job"])
    other = CustomMessageEntry(custom_type="other", content="x", details=[SERVER.model_dump()])
    assert [*jobs_in(odd), *jobs_in(other)] == []


def test_a_long_command_is_named_by_its_beginning():
    long = Job(id="1", command="echo " + "x" * 1_000)
    assert len(long.shown) == 200
    assert long.shown.endswith("x…")
