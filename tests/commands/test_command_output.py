"""What is shown of a command: how it ended, how much it printed, a few lines of it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.commands.command_output import (
    LEAST_FOLDED,
    OutputExcerpt,
    beginning,
    command_output,
    excerpt,
    excerpt_lines,
    result_text,
)
from agent_tui.messages import Job, TextContent, ToolDetails, ToolResultMessage
from agent_tui.tools.processes.output import CommandOutput
from agent_tui.tools.processes.shell import ShellResult, extract_printed
from agent_tui.tools.shorten import OutputLimits


def result(text: str, details: ToolDetails, name: str = "bash") -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id="c1",
        tool_name=name,
        content=(TextContent(text=text),),
        is_error=bool(details.exit_code),
        details=details.model_dump(mode="json", by_alias=True, exclude_defaults=True),
    )


@pytest.mark.parametrize("hint", ["", "the sandbox refused it"])
@pytest.mark.parametrize("kept_at", [None, "/outputs/bash-1.log"])
@pytest.mark.parametrize("remark", ["", "\n[PostToolUse hook]\nlint: ok"])
@pytest.mark.parametrize("text", ["", "one", "one\n[exit code 1]\n\ntwo"])
def test_what_was_printed_is_told_from_what_the_model_is_told_of_it(
    tmp_path, text: str, remark: str, kept_at: str | None, hint: str
):
    path = None if kept_at is None else tmp_path / kept_at
    made = ShellResult(text, 1, path is not None, path, 0.0)
    for_model = made.for_model(made.ending, (hint,) if hint else ()) + remark
    added = [f"[{hint}]"] * bool(hint) + [remark.strip()] * bool(remark)
    wanted = "\n".join(filter(None, [text, *added]))
    assert extract_printed(for_model, made.ending) == wanted


def test_how_it_ended_and_how_much_it_printed():
    def told(details: ToolDetails, text: str = "x\n[whatever]", name: str = "bash") -> str:
        printed = command_output(result(text, details, name))
        return "" if printed is None else printed.result

    well = ToolDetails(summary="exit code 0", exit_code=0, printed_lines=4_312)
    assert told(well) == "4,312 lines"
    assert told(well.model_copy(update={"printed_lines": 0})) == "no output"
    failed = ToolDetails(summary="exit code 1", exit_code=1, printed_lines=1)
    assert told(failed) == "exit 1 · 1 line"
    late = ToolDetails(summary="timeout: stopped after 120 s", printed_lines=3)
    assert told(late) == "timeout: stopped after 120 s · 3 lines"
    job = Job(id="7", command="make")
    ending = "runs in the background: job 7"
    assert told(ToolDetails(summary=ending, jobs=(job,), printed_lines=2)) == ending
    assert told(ToolDetails(summary="42 lines"), name="read") == ""


def test_what_a_job_printed_is_shown_without_how_the_model_is_told_of_its_state():
    details = ToolDetails(summary="runs", jobs=(Job(id="7", command="x"),), printed_lines=1)
    printed = command_output(result("served\n[job 7: running for 3 s]", details, "job"))
    assert printed is not None
    assert printed.text == "served"


def test_lines_of_a_session_without_a_count_are_counted_by_the_mark_in_the_text():
    text = "1\n2\n[... 4308 lines, 20000 bytes left out ...]\n4311\n4312\n[exit code 0]"
    printed = command_output(result(text, ToolDetails(summary="exit code 0", exit_code=0)))
    assert printed is not None
    assert (printed.lines, printed.result) == (4_312, "4,312 lines")
    refused = result("Not permitted: a rule denies it.\n[see /permissions]", ToolDetails())
    assert command_output(refused) is None


@given(st.lists(st.binary(max_size=6), max_size=8))
def test_lines_are_counted_however_they_come(pieces: list[bytes]):
    output = CommandOutput(Path("/nowhere/at/all"), ())
    output._may_keep = False
    for piece in pieces:
        output.add(piece)
    printed = b"".join(pieces).rstrip(b"\r\n")
    assert output.unread_lines == (printed.count(b"\n") + 1 if printed else 0)
    output.take(OutputLimits())
    assert output.unread_lines <= 1  # a character of which a part has come


@given(
    st.lists(st.text("ab: error\x1b", max_size=9), max_size=30),
    st.integers(0, 60),
    st.integers(1, 8),
    st.booleans(),
)
def test_what_is_shown_and_what_is_counted_is_all(
    lines: list[str], more: int, most: int, has_failed: bool
):
    output = "\n".join(lines).rstrip()
    held = output.count("\n") + 1 if output else 0
    found = excerpt("\n".join(lines), lines=held + more, most=most, has_failed=has_failed)
    shown = len(found.first) + len(found.last)
    assert shown + found.hidden == held + more
    assert shown <= 2 * most
    assert found.hidden == 0 or found.hidden >= min(LEAST_FOLDED, most) or more
    assert "\x1b" not in "".join(excerpt_lines(found))


def test_an_output_that_is_shown_whole_has_no_gap():
    assert excerpt("a\nb\n\n") == OutputExcerpt((), 0, ("a", "b"))
    assert excerpt("\n".join("abcdef")).hidden == 0
    assert excerpt("") == OutputExcerpt((), 0, ())


def test_of_a_search_the_first_lines_are_shown():
    found = beginning("\n".join("abcdefghijkl") + "\n")
    assert found == OutputExcerpt(("a", "b", "c", "d", "e"), 7, ())
    assert beginning("\n".join("abcdefghi")).hidden == 0
    assert beginning("\n") == OutputExcerpt((), 0, ())


def test_the_user_reads_what_they_said_of_a_call_that_they_declined():
    declined = ToolDetails(ending="declined")
    told = "The user declined this call."
    assert result_text(result(told, declined)) == "You declined this."
    said = result(f"{told} They say: not there", declined)
    assert result_text(said) == "You declined this. You said: not there"
    assert result_text(result("Not found.", ToolDetails())) == "Not found."
