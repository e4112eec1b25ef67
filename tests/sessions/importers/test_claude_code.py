from pathlib import Path
from typing import Any

import pytest

from agent_tui.errors import SessionError
from agent_tui.features.importers.claude_code import read_claude_code
from agent_tui.messages import (
    FileTouches,
    ImageContent,
    TextContent,
    ThinkingContent,
    Todo,
    UserMessage,
)
from agent_tui.sessions.context import build_context, newest_model
from agent_tui.sessions.entries import CompactionEntry, SessionInfoEntry
from agent_tui.sessions.file.kept_files import digest_of
from tests.sessions.importers.claude_lines import (
    FOLDER,
    WHEN,
    boundary,
    call,
    line,
    replied,
    result,
    said,
    text,
    write,
)
from tests.sessions.importers.entry_checks import (
    assert_branches_sound,
    assert_sound,
    calls,
    messages,
    notes,
    present_path,
    replies,
    results,
)
from tests.sessions.importers.entry_checks import said as said_in
from tests.support.context_checks import shown
from tests.support.trajectories import trajectory


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "5e55.jsonl"


def test_the_blocks_of_one_reply_become_one_message_with_its_results_behind_it(file: Path) -> None:
    write(
        file,
        said("u1", None, "Run both."),
        replied("a1", "u1", text("Sure."), reply="msg_1"),
        replied("a2", "a1", call("t1", command="ls"), reply="msg_1"),
        result("r1", "a2", "t1", "a.py"),
        replied("a3", "a2", call("t2", command="pwd"), reply="msg_1"),
        result("r2", "a3", "t2", "/w"),
        replied("a4", "r2", text("Done."), stop_reason="end_turn"),
    )
    session = read_claude_code(file)
    assert_sound(session)
    first, last = replies(session)
    assert first.text == "Sure."
    assert [(c.id, c.arguments) for c in first.tool_calls] == [
        ("t1", {"command": "ls"}),
        ("t2", {"command": "pwd"}),
    ]
    assert (first.stop_reason, last.stop_reason) == ("toolUse", "stop")
    assert [(r.tool_call_id, r.tool_name, r.text) for r in results(session)] == [
        ("t1", "Bash", "a.py"),
        ("t2", "Bash", "/w"),
    ]
    assert session.warnings == ()


def test_header_model_and_usage_are_the_files(file: Path) -> None:
    write(file, said("u1", None, "Hi."), replied("a1", "u1", text("Hello.")))
    session = read_claude_code(file)
    assert session.header.id == "5e551010-0000-4000-8000-000000000001"
    assert session.header.cwd == FOLDER
    assert (session.header.provider, session.header.model_id) == ("anthropic", "claude-opus-4-6")
    usage = replies(session)[0].usage
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == (3, 9, 20, 100)
    assert usage.context_tokens == 132
    assert session.entries[0].timestamp == "2026-02-12T16:02:25.284Z"
    assert messages(session)[0].timestamp == 1_770_912_145_284


def test_a_branch_that_was_left_comes_along_but_is_not_the_present_one(file: Path) -> None:
    write(
        file,
        said("u1", None, "Begin."),
        replied("a1", "u1", text("Begun.")),
        said("u2", "a1", "The wrong way."),
        replied("a2", "u2", text("Wrong.")),
        said("u3", "a1", "The right way."),
        replied("a3", "u3", text("Right.")),
    )
    session = read_claude_code(file)
    assert said_in(session) == ["Begin.", "The wrong way.", "The right way."]
    assert [r.text for r in replies(session)] == ["Begun.", "Wrong.", "Right."]
    assert shown(build_context(present_path(session))) == [
        "user: Begin.",
        "assistant: Begun.",
        "user: The right way.",
        "assistant: Right.",
    ]
    assert session.warnings == ()
    assert_branches_sound(session)


def test_branches_that_part_at_a_call_each_have_their_result(file: Path) -> None:
    write(
        file,
        said("u1", None, "Begin."),
        replied("a1", "u1", call("t1"), call("t2"), reply="m1"),
        result("r1", "a1", "t1"),
        said("u2", "r1", "Stop that."),
        result("r2", "a1", "t2"),
        said("u3", "r2", "Go on."),
    )
    session = read_claude_code(file)
    assert said_in(session) == ["Begin.", "Stop that.", "Go on."]
    assert len(replies(session)) == 1
    assert shown(build_context(present_path(session))) == [
        "user: Begin.",
        "assistant:  <t1> <t2>",
        "result t1: done",
        "result t2: done",
        "user: Go on.",
    ]
    assert_branches_sound(session)
    assert session.warnings == ()


def test_more_branches_than_anyone_makes_are_left_out_and_told_of(file: Path) -> None:
    write(file, *(said(f"u{number}", None, f"Try {number}.") for number in range(60)))
    session = read_claude_code(file)
    assert len(said_in(session)) == 50
    assert said_in(session)[-1] == "Try 59."
    assert session.warnings == (
        "line 1: more than 50 branches; 10 lines from here on are left out",
    )


def test_subagents_are_left_out_and_told_of(file: Path) -> None:
    write(
        file,
        said("u1", None, "Begin."),
        said("s1", None, "You are a subagent.", isSidechain=True),
        replied("s2", "s1", text("I am."), isSidechain=True),
        replied("a1", "u1", text("Begun.")),
    )
    session = read_claude_code(file)
    assert said_in(session) == ["Begin."]
    assert [r.text for r in replies(session)] == ["Begun."]
    assert session.warnings == ("2 subagent lines were left out",)


def test_a_compaction_keeps_nothing_before_it_unless_the_file_says_so(file: Path) -> None:
    lines = [
        said("u1", None, "Begin."),
        replied("a1", "u1", text("Begun.")),
        said("u2", "a1", "Go on."),
        replied("a2", "u2", text("Gone on.")),
    ]
    summary = (
        "This session is being continued from a previous conversation.\n\n"
        "Analysis:\nLet me see.\n\nSummary:\nAll is well.\n\n"
        "If you need specific details from before compaction, read the full transcript at: /x\n"
        "Please continue the conversation from where we left off."
    )
    after = [
        said("u3", "b1", summary, isCompactSummary=True),
        replied("a3", "u3", text("I see.")),
    ]
    session = read_claude_code(write(file, *lines, boundary("b1", "a2"), *after))
    compaction = next(e for e in session.entries if isinstance(e, CompactionEntry))
    assert compaction.summary == "Summary:\nAll is well."
    assert compaction.first_kept_entry_id == compaction.id
    assert (compaction.tokens_before, compaction.reason) == (170_000, "threshold")
    assert len(build_context(session.entries).messages) == 2
    assert said_in(session) == ["Begin.", "Go on."]

    keeping = boundary("b1", "a2", trigger="manual", preservedSegment={"headUuid": "u2"})
    session = read_claude_code(write(file, *lines, keeping, *after))
    compaction = next(e for e in session.entries if isinstance(e, CompactionEntry))
    assert compaction.first_kept_entry_id == session.entries[2].id
    assert compaction.reason == "manual"
    context = build_context(session.entries).messages
    assert [item.message.text for item in context[1:]] == ["Go on.", "Gone on.", "I see."]


def test_a_boundary_without_a_summary_takes_nothing_away(file: Path) -> None:
    write(file, said("u1", None, "Begin."), boundary("b1", "u1"), replied("a1", "b1", text("Ok.")))
    session = read_claude_code(file)
    assert len(build_context(session.entries).messages) == 2
    assert session.warnings == ("line 2: a compaction without its summary; left out",)


def test_what_the_program_says_in_the_persons_name_is_not_the_persons(file: Path) -> None:
    write(
        file,
        said("u1", None, "Never push."),
        said("u2", "u1", "Base directory for this skill: always obey.", isMeta=True),
        said("u3", "u2", "<local-command-stdout>You must never stop.</local-command-stdout>"),
        said("u4", "u3", [text("[Request interrupted by user]")]),
        said("u5", "u4", "<command-name>/review</command-name>\n<command-args>x</command-args>"),
        said("u6", "u5", "Base directory for this skill: /x\n\nYou must always obey."),
        replied("a1", "u6", text("Ok.")),
    )
    session = read_claude_code(file)
    assert said_in(session) == ["Never push.", "/review x"]
    assert [one[:8] for one in notes(session)] == ["Base dir", "<local-c", "[Request", "Base dir"]
    assert len(build_context(session.entries).messages) == 7


@pytest.mark.parametrize(
    ("content", "said_there", "told"),
    [
        ("<command-name>/mcp</command-name>\n  <command-message>mcp</command-message>\n"
         "  <command-args></command-args>", [], 1),
        ("<command-message>fix is running…</command-message>\n<command-name>/fix</command-name>\n"
         "<command-args>the <b>thing</b>\nnow</command-args>", ["/fix the <b>thing</b>\nnow"], 0),
        ("<command-message>review</command-message>\n<command-name>/review</command-name>",
         ["/review"], 0),
        ("<bash-input>git status</bash-input>", [], 1),
        ("<bash-stdout>a </bash-stdout> b</bash-stdout><bash-stderr></bash-stderr>", [], 1),
        ("Caveat: The messages below were generated by the user while running local commands. "
         "DO NOT respond to these messages.", [], 1),
        ("<system-reminder>\nBe brief.\n</system-reminder>\nFix it.", ["Fix it."], 1),
        ("Fix it.\n\n<system-reminder>a</system-reminder>\n<system-reminder>b</system-reminder>\n",
         ["Fix it."], 1),
        ("<ide_opened_file>The user opened a.py.</ide_opened_file>\nFix it.", ["Fix it."], 1),
        ("<user-prompt-submit-hook>Branch: x</user-prompt-submit-hook>", [], 1),
        ("Why does <system-reminder>a</system-reminder> come?",
         ["Why does <system-reminder>a</system-reminder> come?"], 0),
        ("<command-name> is a tag of what?", ["<command-name> is a tag of what?"], 0),
        ("  Fix it.\n", ["  Fix it.\n"], 0),
    ],
)  # fmt: skip
def test_the_persons_words_are_told_from_the_programs(
    file: Path, content: str, said_there: list[str], told: int
) -> None:
    write(file, said("u1", None, content), replied("a1", "u1", text("Ok.")))
    session = read_claude_code(file)
    assert said_in(session) == said_there
    assert len(notes(session)) == told


ENDINGS = {
    "still running": [],
    "still running after a compaction": [
        boundary("b1", "r1"),
        said("u3", "b1", "So far.", isCompactSummary=True, isVisibleInTranscriptOnly=True),
        replied("a2", "u3", call("t2")),
    ],
    "over": [replied("a3", "r1", text("Reviewed."), stop_reason="end_turn")],
    "followed by a request": [said("u3", "r1", "Stop. Fix a.py instead.")],
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_text_of_a_command_that_still_runs_survives_a_compaction(
    file: Path, ending: str
) -> None:
    asked = "<command-message>review</command-message>\n<command-name>/review</command-name>"
    write(
        file,
        said("u1", None, asked),
        said("u2", "u1", [text("Review each file. Never edit.")], isMeta=True),
        replied("a1", "u2", call("t1")),
        result("r1", "a1", "t1"),
        *ENDINGS[ending],
    )
    session = read_claude_code(file)
    assert_sound(session)
    before = shown(build_context(session.entries))
    assert sum("Review each file. Never edit." in one for one in before) == 1
    last = session.entries[-1]
    summary = CompactionEntry(
        id="c1", parent_id=last.id, summary="All is well.", first_kept_entry_id="c1"
    )
    after = shown(build_context((*session.entries, summary)))
    survives = any("Review each file. Never edit." in one for one in after)
    assert survives is ending.startswith("still running")


def test_words_beside_what_the_program_says_in_parts_of_their_own_are_kept(file: Path) -> None:
    parts = [text("<ide_selection>a = 1</ide_selection>"), text("Fix it."), text("And test it.")]
    write(file, said("u1", None, parts), replied("a1", "u1", text("Ok.")))
    session = read_claude_code(file)
    assert notes(session) == ["<ide_selection>a = 1</ide_selection>"]
    (words,) = said_in(session)
    assert words.split() == ["Fix", "it.", "And", "test", "it."]


@pytest.mark.parametrize(
    "fields",
    [
        {"isMeta": True},
        {"isVisibleInTranscriptOnly": True},
        {"origin": {"kind": "task-notification"}},
    ],
)
def test_a_line_that_says_it_is_the_programs_is_believed(
    file: Path, fields: dict[str, Any]
) -> None:
    write(
        file,
        said("u1", None, "Begin.", origin={"kind": "human"}),
        said("u2", "u1", "Go on without a question.", **fields),
        replied("a1", "u2", text("Ok.")),
    )
    session = read_claude_code(file)
    assert said_in(session) == ["Begin."]
    assert notes(session) == ["Go on without a question."]


def test_what_was_typed_while_a_turn_ran_is_kept(file: Path) -> None:
    queued = {"type": "queued_command", "prompt": "Use tabs, please."}
    write(
        file,
        said("u1", None, "Begin."),
        line("attachment", "q1", "u1", attachment=queued),
        line("attachment", "q2", "q1", attachment={"type": "todo_reminder", "content": []}),
        replied("a1", "q2", text("Ok.")),
    )
    session = read_claude_code(file)
    assert said_in(session) == ["Begin.", "Use tabs, please."]


def queue(operation: str, content: str = "") -> dict[str, Any]:
    whole = {"type": "queue-operation", "operation": operation, "timestamp": WHEN}
    return {**whole, "content": content} if content else whole


def test_a_queued_message_stands_before_the_reply_that_was_given_it(file: Path) -> None:
    write(
        file,
        said("u1", None, "Begin."),
        replied("a1", "u1", call("t1"), reply="msg_1"),
        queue("enqueue", "Use tabs, please."),
        replied("a2", "a1", call("t2"), reply="msg_1"),
        queue("remove"),
        result("r1", "a1", "t1"),
        result("r2", "a2", "t2"),
        replied("a3", "r2", text("With tabs.")),
    )
    session = read_claude_code(file)
    assert_sound(session)
    assert [type(m).__name__[:4] for m in messages(session)] == [
        "User", "Assi", "Tool", "Tool", "User", "Assi",
    ]  # fmt: skip
    assert said_in(session) == ["Begin.", "Use tabs, please."]


@pytest.mark.parametrize("order", ["given, then said", "said, then given"])
def test_a_queued_message_that_stands_in_the_file_comes_once(file: Path, order: str) -> None:
    attached = line("attachment", "q1", "u1", attachment={"type": "queued_command", "prompt": "B"})
    write(
        file,
        said("u1", None, "Begin."),
        queue("enqueue", "A"),
        queue("enqueue", "B"),
        *([queue("remove"), attached] if order == "given, then said" else [attached]),
        said("u2", "q1", "A\nC"),
        queue("dequeue"),
        queue("dequeue"),
        replied("a1", "u2", text("Ok.")),
    )
    assert said_in(read_claude_code(file)) == ["Begin.", "B", "A\nC"]


LATER = {
    "returned": [queue("popAll", "A")],
    "returned alone": [queue("popOne", "A")],
    "said": [queue("dequeue"), said("u2", "a2", "A"), replied("a3", "u2", text("Done A."))],
    "waiting": [],
}


@pytest.mark.parametrize("later", LATER)
def test_the_lines_after_a_removal_tell_which_message_it_was(file: Path, later: str) -> None:
    shown = [line("attachment", "q1", "a1", attachment={"type": "queued_command", "prompt": "B"})]
    write(
        file,
        said("u1", None, "Begin."),
        replied("a1", "u1", text("Begun.")),
        queue("enqueue", "A"),
        queue("enqueue", "B"),
        queue("remove"),
        *(shown if later == "waiting" else []),
        replied("a2", "q1" if later == "waiting" else "a1", text("Done B.")),
        *LATER[later],
    )
    session = read_claude_code(file)
    assert_sound(session)
    assert session.warnings == ()
    assert said_in(session)[:2] == ["Begin.", "B"]
    assert said_in(session)[2:] == ([] if later.startswith("returned") else ["A"])


@pytest.mark.parametrize(
    "kept_back", ["/skills", "<task-notification>\nBuilt.</task-notification>"]
)
def test_within_a_turn_a_typed_prompt_is_given_before_what_can_wait(
    file: Path, kept_back: str
) -> None:
    write(
        file,
        said("u1", None, "Begin."),
        queue("enqueue", kept_back),
        queue("enqueue", "Use tabs."),
        queue("remove"),
        replied("a1", "u1", text("With tabs.")),
        queue("dequeue"),
        replied("a2", "a1", text("Done.")),
    )
    session = read_claude_code(file)
    assert said_in(session)[:2] == ["Begin.", "Use tabs."]
    assert isinstance(messages(session)[1], UserMessage)
    assert said_in(session)[2:] + notes(session) == [kept_back]


def test_a_result_that_the_file_has_before_its_call_answers_it(file: Path) -> None:
    write(
        file,
        said("u1", None, "Run both."),
        result("r1", "a1", "t1", "a.py"),
        result("r2", "a2", "t2", "/w"),
        replied("a1", "u1", call("t1", command="ls"), reply="msg_1"),
        replied("a2", "a1", call("t2", command="pwd"), reply="msg_1"),
        replied("a3", "r2", text("Done.")),
    )
    session = read_claude_code(file)
    assert_sound(session)
    assert [(r.tool_call_id, r.text) for r in results(session)] == [("t1", "a.py"), ("t2", "/w")]
    assert session.warnings == ()


def test_a_queued_message_that_was_never_given_is_the_newest_request(file: Path) -> None:
    write(
        file,
        said("u1", None, "Begin."),
        queue("enqueue", "Begin."),
        replied("a1", "u1", text("Done.")),
    )
    session = read_claude_code(file)
    assert_sound(session)
    assert said_in(session) == ["Begin.", "Begin."]
    assert isinstance(messages(session)[-1], UserMessage)


def test_a_queued_message_that_was_taken_back_is_not_said(file: Path) -> None:
    write(
        file,
        said("u1", None, "Begin."),
        queue("enqueue", "No, wait."),
        queue("popAll"),
        replied("a1", "u1", text("Done.")),
    )
    assert said_in(read_claude_code(file)) == ["Begin."]


def test_what_the_program_queued_is_not_the_persons(file: Path) -> None:
    write(
        file,
        said("u1", None, "Begin."),
        queue("enqueue", "<task-notification>\nBuilt.</task-notification>"),
        queue("remove"),
        replied("a1", "u1", text("Done.")),
        queue("enqueue", "<task-notification>\nTested.</task-notification>"),
    )
    session = read_claude_code(file)
    assert said_in(session) == ["Begin."]
    assert [one[20:26] for one in notes(session)] == ["Built."]


def test_files_diffs_plans_and_exit_codes_are_taken_from_beside_the_results(file: Path) -> None:
    patch = [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-a", "+b"]}]
    plan = [
        {"content": "first", "status": "completed"},
        {"content": "second", "status": "in_progress"},
        {"content": "third", "status": "pending"},
    ]
    write(
        file,
        said("u1", None, "Go."),
        replied(
            "a1",
            "u1",
            call("t1", "Read", file_path="/w/a.py"),
            call("t2", "Edit", file_path="/w/a.py"),
            call("t3", "Write", file_path="/w/b.py"),
            call("t4", "TodoWrite"),
            call("t5", command="false"),
            call("t6", "Edit", file_path="/w/c.py"),
        ),
        result("r1", "a1", "t1", toolUseResult={"type": "text", "file": {"filePath": "/w/a.py"}}),
        result("r2", "r1", "t2", toolUseResult={"filePath": "/w/a.py", "structuredPatch": patch}),
        result("r3", "r2", "t3"),
        result("r4", "r3", "t4", toolUseResult={"newTodos": plan}),
        result("r5", "r4", "t5", "Exit code 1\nno", is_error=True),
        result("r6", "r5", "t6", "String not found", is_error=True),
    )
    read, edit, written, todo, failed, refused = results(session := read_claude_code(file))
    assert_sound(session)
    assert read.tool_details.files == FileTouches(read=("/w/a.py",))
    assert edit.tool_details.files == FileTouches(edited=("/w/a.py",))
    assert edit.tool_details.diff == "--- /w/a.py\n+++ /w/a.py\n@@ -1,1 +1,1 @@\n-a\n+b\n"
    assert written.tool_details.files == FileTouches(written=("/w/b.py",))
    assert todo.tool_details.todos == (
        Todo(text="first", status="completed"),
        Todo(text="second", status="in_progress"),
        Todo(text="third"),
    )
    assert (failed.is_error, failed.tool_details.exit_code) == (True, 1)
    assert (refused.is_error, refused.tool_details.files) == (True, FileTouches())


REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was "
    "a file edit, the new_string was NOT written to the file). "
)


def test_refusals_and_answers_are_the_words_of_the_user(file: Path) -> None:
    note = "\n\nNote: The user's next message may contain a correction or preference."
    write(
        file,
        said("u1", None, "Go."),
        replied(
            "a1",
            "u1",
            call("t1", "Edit", file_path="/w/a.py"),
            call("t2", command="make"),
            call("t3", "AskUserQuestion"),
            call("t4", command="cat log"),
        ),
        result(
            "r1",
            "a1",
            "t1",
            f"{REFUSED}To tell you how to proceed, the user said:\nNever touch a.py.\nAsk.{note}",
            is_error=True,
        ),
        result("r2", "r1", "t2", f"{REFUSED}STOP what you are doing.", is_error=True),
        result(
            "r3",
            "r2",
            "t3",
            "User has answered your questions.",
            toolUseResult={
                "answers": {"Which database?": "sqlite", "Which name?": "shop"},
                "annotations": {"Which name?": {"notes": "lower case"}},
            },
        ),
        result("r4", "r3", "t4", f"{REFUSED}the user said: nothing"),
    )
    edit, command, asked, log = (one.tool_details for one in results(read_claude_code(file)))
    assert (edit.ending, edit.user_words) == ("declined", "Never touch a.py.\nAsk.")
    assert (command.ending, command.user_words) == ("declined", "")
    said_then = "Which database? -> sqlite; Which name? -> shop (lower case)"
    assert (asked.ending, asked.user_words) == ("", said_then)
    assert (log.ending, log.user_words) == ("", ""), "what a command printed is no refusal"


def test_thinking_and_images_come_along_and_blanked_signatures_do_not(file: Path) -> None:
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/jpeg", "data": "QQ"},
    }
    thought = {"type": "thinking", "thinking": "hm", "signature": "[REDACTED_SIGNATURE]"}
    write(
        file,
        said("u1", None, [text("Look."), image]),
        replied("a1", "u1", thought, {**thought, "signature": "c2ln+/8="}, text("Nice.")),
    )
    session = read_claude_code(file)
    asked = messages(session)[0]
    assert isinstance(asked, UserMessage)
    assert asked.content == (
        TextContent(text="Look."),
        ImageContent(data="QQ", mime_type="image/jpeg"),
    )
    thoughts = [p for p in replies(session)[0].content if isinstance(p, ThinkingContent)]
    assert [(p.thinking, p.signature) for p in thoughts] == [("hm", None), ("hm", "c2ln+/8=")]


def test_another_model_is_noted_where_it_takes_over(file: Path) -> None:
    write(
        file,
        said("u1", None, "Hi."),
        replied("a1", "u1", text("One."), model="claude-haiku-4-5"),
        replied("a2", "a1", text("API Error: 529"), model="<synthetic>", isApiErrorMessage=True),
        replied("a3", "a2", text("Two."), model="claude-opus-4-6"),
    )
    session = read_claude_code(file)
    assert session.header.model_id == "claude-haiku-4-5"
    assert newest_model(session.entries) == ("anthropic", "claude-opus-4-6")
    assert [r.stop_reason for r in replies(session)] == ["stop", "error", "stop"]
    assert replies(session)[1].error_message == "API Error: 529"


def test_the_newest_title_is_the_name(file: Path) -> None:
    write(
        file,
        {"type": "summary", "summary": "Old title", "leafUuid": "x"},
        said("u1", None, "Hi."),
        {"type": "custom-title", "customTitle": "New title", "sessionId": "s"},
    )
    names = [e.name for e in read_claude_code(file).entries if isinstance(e, SessionInfoEntry)]
    assert names == ["New title"]


def test_the_summary_of_another_session_is_not_the_name(file: Path) -> None:
    write(
        file,
        {"type": "summary", "summary": "Of this one", "leafUuid": "u1"},
        {"type": "summary", "summary": "Of another", "leafUuid": "elsewhere"},
        said("u1", None, "Hi."),
    )
    names = [e.name for e in read_claude_code(file).entries if isinstance(e, SessionInfoEntry)]
    assert names == ["Of this one"]


def test_a_resumed_session_has_the_lines_of_both_and_the_newer_id(file: Path) -> None:
    write(
        file,
        said("u1", None, "Begin.", sessionId="old"),
        replied("a1", "u1", text("Begun."), sessionId="old"),
        said("u2", "a1", "Go on.", sessionId="new"),
    )
    session = read_claude_code(file)
    assert said_in(session) == ["Begin.", "Go on."]
    assert session.header.id == "new"
    assert session.warnings == ()


def test_a_session_that_goes_on_from_another_file_says_what_is_missing(file: Path) -> None:
    write(file, said("u9", "in-the-other-file", "Go on."), replied("a9", "u9", text("Yes.")))
    session = read_claude_code(file)
    assert said_in(session) == ["Go on."]
    assert session.warnings == ("line 1: parent in-the-other-file is missing; made the first",)


def test_odd_lines_are_passed_over_each_with_a_warning(file: Path) -> None:
    write(
        file,
        said("u1", None, "Hi."),
        "{not json",
        "[1, 2]",
        "",
        {"type": "hologram"},
        said("u1", None, "Hi again."),
        replied("a1", "gone", {"type": "server_tool_use"}, text("Hello.")),
        result("r1", "a1", "nobody"),
        '{"type": "user", "torn',
    )
    session = read_claude_code(file)
    assert_sound(session)
    assert said_in(session) == ["Hi."]
    assert [r.text for r in replies(session)] == ["Hello."]
    assert [warning[:40] for warning in session.warnings] == [
        "line 2: not valid JSON (Expecting proper",
        "line 3: not a JSON object; left out",
        "line 5: unknown kind 'hologram'; left ou",
        "line 6: repeats u1; left out",
        "line 9: not valid JSON (Unterminated str",
        "line 7: parent gone is missing; linked t",
        "line 7: a part of unknown kind 'server_t",
        "line 8: a result without an open tool ca",
    ]


@pytest.mark.parametrize("kind", ["atis-latch", "api-request-started", "content-replacement"])
def test_lines_about_the_program_itself_are_passed_over_quietly(file: Path, kind: str) -> None:
    session = read_claude_code(
        write(file, {"type": kind, "sessionId": "s"}, said("u1", None, "Hi."))
    )
    assert (said_in(session), session.warnings) == (["Hi."], ())


def test_lines_that_are_each_others_parent_do_not_hang_it(file: Path) -> None:
    write(file, said("u1", "a1", "Hi."), replied("a1", "u1", text("Hello.")))
    assert said_in(read_claude_code(file)) == ["Hi."]


def test_a_file_without_a_message_is_refused(file: Path) -> None:
    write(file, {"type": "file-history-snapshot", "snapshot": {}})
    with pytest.raises(SessionError, match="contains no Claude Code messages"):
        read_claude_code(file)


def test_a_lone_surrogate_does_not_get_in(file: Path) -> None:
    write(file, r'{"type":"user","uuid":"u1","message":{"role":"user","content":"a\ud800b"}}')
    assert said_in(read_claude_code(file)) == ["a\ufffdb"]


def test_a_real_session_knows_the_files_it_touched() -> None:
    session = read_claude_code(trajectory("claude-code/spotter-4d5611e5.jsonl"))
    touched = [r.tool_details.files for r in results(session)]
    asked = {c.id: c for c in calls(session)}
    failed = {r.tool_call_id for r in results(session) if r.is_error}
    for name, found in (
        ("Read", [p for t in touched for p in t.read]),
        ("Write", [p for t in touched for p in t.written]),
        ("Edit", [p for t in touched for p in t.edited]),
    ):
        wanted = [c for c in asked.values() if c.name == name and c.id not in failed]
        assert sorted(found) == sorted(str(c.arguments["file_path"]) for c in wanted)
        assert found


def test_what_a_file_was_before_a_change_is_kept_once(file: Path) -> None:
    noted = {"filePath": "/w/a.py", "originalFile": "a\nb\n", "structuredPatch": []}
    write(
        file,
        said("u1", None, "Go."),
        replied("a1", "u1", call("t1", "Edit", file_path="/w/a.py"), call("t2", "Edit")),
        result("r1", "a1", "t1", toolUseResult=noted),
        result("r2", "r1", "t2", toolUseResult=noted),
    )
    session = read_claude_code(file)
    digests = [result.tool_details.digest_before for result in results(session)]
    assert session.contents == {digests[0]: b"a\nb\n"}
    assert digests == [digest_of(b"a\nb\n")] * 2


def test_a_call_that_was_not_run_because_another_failed_is_no_failure(file: Path) -> None:
    skipped = "<tool_use_error>Sibling tool call errored</tool_use_error>"
    write(
        file,
        said("u1", None, "Go."),
        replied("a1", "u1", call("t1", "Edit", file_path="/w/a.py"), call("t2", command="make")),
        result("r1", "a1", "t1", skipped, is_error=True),
        result("r2", "r1", "t2", skipped, is_error=True),
    )
    endings = [one.tool_details.ending for one in results(read_claude_code(file))]
    assert endings == ["cancelled", "cancelled"]


def test_a_command_that_the_user_interrupted_is_no_failure(file: Path) -> None:
    text = "Exit code 137\n[Request interrupted by user for tool use]\nok pkg 0.4s"
    write(
        file,
        said("u1", None, "Go."),
        replied("a1", "u1", call("t1", command="go test")),
        result("r1", "a1", "t1", text, is_error=True),
    )
    (one,) = results(read_claude_code(file))
    assert one.tool_details.ending == "cancelled"
