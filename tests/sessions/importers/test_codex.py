import json
from pathlib import Path

import pytest

from agent_tui.compaction.ledger.files import Touched
from agent_tui.compaction.ledger.files import files_of as files_touched_by
from agent_tui.compaction.sections.history import Done, read_history
from agent_tui.errors import SessionError
from agent_tui.features.importers.codex import read_codex
from agent_tui.messages import ImageContent, UserMessage
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import CompactionEntry, CustomEntry, ModelChangeEntry
from agent_tui.sessions.importers.builder import ForeignSession
from agent_tui.sessions.importers.formats import detect_format, read_foreign
from agent_tui.sessions.replay.pins import pins_on
from tests.sessions.importers.codex_lines import (
    CWD,
    WHEN,
    bare,
    call,
    event,
    head,
    item,
    line,
    output,
    patch,
    patched,
    replied,
    said,
    thought,
    turn,
    write,
)
from tests.sessions.importers.entry_checks import (
    assert_branches_sound,
    calls,
    messages,
    notes,
    present_path,
    replies,
    results,
)
from tests.sessions.importers.entry_checks import said as said_in
from tests.support.context_checks import shown

ENVIRONMENT = f"<environment_context>\n  <cwd>{CWD}</cwd>\n</environment_context>"
PATCH = (
    "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** Add File: b/c.py\n+z\n*** End Patch"
)
SUMMARY_OPENING = "Another language model started to solve this problem and so on:"


def read(tmp_path: Path, *lines: dict[str, object] | str) -> ForeignSession:
    return read_codex(write(tmp_path / "rollout-x.jsonl", *lines))


def files_of(session: ForeignSession) -> list[Touched]:
    return [
        files_touched_by(event)
        for event in read_history(session.entries)
        if isinstance(event, Done)
    ]


def conversation() -> list[dict[str, object]]:
    return [
        head(),
        said("rules of the sandbox", "developer"),
        said(ENVIRONMENT),
        said("# AGENTS.md instructions for /repo/app\n\nBe brief."),
        event("user_message", message="Fix a.py."),
        turn(),
        said("Fix a.py."),
        thought("First look."),
        replied("Looking."),
        call("c1", "shell", command=["bash", "-lc", "cat a.py"], workdir=CWD),
        call("c2", "exec_command", cmd="sed -i s/x/y/ d.py", workdir="/repo/app/sub"),
        event("token_count", info=None),
        output("c1", "Exit code: 0\nWall time: 0.1 seconds\nOutput:\nx"),
        output("c2", "Chunk ID: a1\nWall time: 0.1\nProcess exited with code 2\nOutput:\nno"),
        patch("c3", PATCH),
        patched("c3", "Success. Updated the following files:\nM a.py\n"),
        replied("Done."),
        event(
            "token_count",
            info={
                "last_token_usage": {
                    "input_tokens": 900,
                    "cached_input_tokens": 600,
                    "output_tokens": 50,
                    "total_tokens": 950,
                }
            },
        ),
    ]


def test_a_conversation_is_read_with_its_folder_model_and_usage(tmp_path: Path) -> None:
    session = read(tmp_path, *conversation())
    assert session.warnings == ()
    assert (session.header.id, session.header.cwd, session.header.timestamp) == (
        "019e-77",
        CWD,
        WHEN,
    )
    assert (session.header.provider, session.header.model_id) == ("openai", "gpt-5-codex")
    assert said_in(session) == ["Fix a.py."]
    assert [(reply.thinking, reply.text, len(reply.tool_calls)) for reply in replies(session)] == [
        ("First look.", "Looking.", 2),
        ("", "", 1),
        ("", "Done.", 0),
    ]
    usage = replies(session)[-1].usage
    assert (usage.input, usage.cache_read, usage.output, usage.context_tokens) == (
        300,
        600,
        50,
        950,
    )
    assert_branches_sound(session)


def test_what_codex_told_the_model_at_the_start_is_no_part_of_the_context(tmp_path: Path) -> None:
    session = read(tmp_path, *conversation())
    aside = [entry.data for entry in session.entries if isinstance(entry, CustomEntry)]
    assert [dict(data)["role"] for data in aside if isinstance(data, dict)] == [
        "developer",
        "user",
        "user",
    ]
    assert notes(session) == []
    assert shown(build_context(session.entries))[0] == "user: Fix a.py."


@pytest.mark.parametrize(
    ("told", "own"),
    [
        ("# AGENTS.md instructions\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>", "Use tabs."),
        (
            "# AGENTS.md instructions for /repo/app\n\n<INSTRUCTIONS>\nUse tabs.\n\n"
            "--- project-doc ---\n\nBe brief.\n\n</INSTRUCTIONS>",
            "Use tabs.",
        ),
        (
            "<user_instructions>\n\nUse tabs.\n\n--- project-doc ---\n\nBe brief.\n\n"
            "</user_instructions>",
            "Use tabs.",
        ),
        (
            "# AGENTS.md instructions for /repo/app\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>",
            "",
        ),
        ("<user_instructions>\n\nBe brief.\n\n</user_instructions>", ""),
    ],
)
def test_the_persons_own_instructions_stay_in_the_context(
    tmp_path: Path, told: str, own: str
) -> None:
    compacted = line("compacted", message=f"{SUMMARY_OPENING}\nAll is well.")
    session = read(tmp_path, head(), said(told), said("Fix a.py."), replied("Done."), compacted)
    pinned = [entry.text for entry in pins_on(session.entries).values()]
    assert pinned == ([f"<instructions>\n{own}\n</instructions>"] if own else [])
    assert any(own in text for text in shown(build_context(session.entries))) or not own
    assert said_in(session) == ["Fix a.py."]


def test_commands_are_told_as_a_shell_reads_them_with_their_exit_codes(tmp_path: Path) -> None:
    session = read(tmp_path, *conversation())
    assert [made.arguments["command"] for made in calls(session)[:2]] == [
        "cat a.py",
        "cd /repo/app/sub && sed -i s/x/y/ d.py",
    ]
    told = [(result.is_error, result.tool_details.exit_code) for result in results(session)]
    assert told == [(False, 0), (True, 2), (False, 0)]
    assert results(session)[2].text == "Success. Updated the following files:\nM a.py\n"


def test_the_files_of_patches_and_commands_are_known_to_the_ledger(tmp_path: Path) -> None:
    commands = [
        call("s1", "shell", command=["apply_patch", PATCH]),
        patched("s1", "Success."),
        call("s2", "shell_command", command="cat one.py && echo hi > two.py"),
        output("s2", "Exit code: 0\nWall time: 1 seconds\nOutput:\n"),
        item(
            "local_shell_call",
            call_id="s3",
            status="completed",
            action={"type": "exec", "command": ["head", "-n", "2", "of it.py"]},
        ),
        output("s3", '{"output": "", "metadata": {"exit_code": 0}}'),
        patch("s4", PATCH),
        patched("s4", "apply_patch verification failed: no such line", 1),
    ]
    session = read(tmp_path, *conversation(), *commands)
    assert files_of(session) == [
        Touched(read=("a.py",)),
        Touched(),
        Touched(modified=("a.py", "b/c.py")),
        Touched(modified=("a.py", "b/c.py")),
        Touched(read=("one.py",), modified=("two.py",)),
        Touched(read=("of it.py",)),
        Touched(),
    ]


def test_files_before_september_2025_have_bare_items(tmp_path: Path) -> None:
    path = write(
        tmp_path / "rollout-old.jsonl",
        {"id": "c3c4", "timestamp": WHEN, "instructions": None, "git": {"branch": "main"}},
        {"record_type": "state"},
        bare(said(ENVIRONMENT)),
        bare(said("Hello.")),
        bare(call("c1", "shell", command=["bash", "-lc", "ls"])),
        bare(output("c1", '{"output": "a.py", "metadata": {"exit_code": 0}}')),
        {"record_type": "state"},
        bare(replied("One file.")),
    )
    assert detect_format(path) == "codex"
    session = read_foreign(path)
    assert session.warnings == ()
    assert (session.header.id, session.header.cwd) == ("c3c4", CWD)
    assert said_in(session) == ["Hello."]
    assert [result.text for result in results(session)] == ["a.py"]
    assert replies(session)[-1].text == "One file."


def test_turns_that_were_taken_back_stay_as_a_branch(tmp_path: Path) -> None:
    session = read(
        tmp_path,
        *(head(), turn(), said("one"), replied("1")),
        *(turn("gpt-5-mini"), said("two"), call("c", "shell", command=["ls"])),
        event("thread_rolled_back", num_turns=1),
        *(turn("gpt-5-mini"), said("three"), replied("3")),
    )
    assert said_in(session) == ["one", "two", "three"]
    assert shown(build_context(present_path(session))) == [
        "user: one",
        "assistant: 1",
        "user: three",
        "assistant: 3",
    ]
    assert_branches_sound(session)
    changes = [e.model_id for e in present_path(session) if isinstance(e, ModelChangeEntry)]
    assert changes == ["gpt-5-mini"]


def test_a_session_left_after_going_back_goes_on_from_there(tmp_path: Path) -> None:
    session = read(
        tmp_path,
        *(head(), said("one"), replied("1"), said("two"), replied("2")),
        event("thread_rolled_back", num_turns=1),
    )
    assert shown(build_context(present_path(session))) == ["user: one", "assistant: 1"]
    whole = read(
        tmp_path, head(), said("one"), replied("1"), event("thread_rolled_back", num_turns=9)
    )
    assert build_context(present_path(whole)).messages == ()
    assert len(messages(whole)) == 2


def test_a_compaction_keeps_what_the_person_said(tmp_path: Path) -> None:
    summary = f"{SUMMARY_OPENING}\nHalf is done."
    lines = (head(), said("one"), replied("1"), said("two"), replied("2"))
    plain = read(tmp_path, *lines, line("compacted", message=summary), said("go on"))
    context = build_context(plain.entries)
    assert "Half is done." in context.summary
    assert SUMMARY_OPENING not in context.summary
    assert context.summary.endswith("one\n\ntwo")
    assert len(context.messages) == 2
    history = [
        said(ENVIRONMENT)["payload"],
        said("<turn_aborted>The user interrupted.</turn_aborted>")["payload"],
        said("two")["payload"],
        said(summary)["payload"],
    ]
    listed = read(
        tmp_path,
        *lines,
        line("compacted", message=summary, replacement_history=history),
        said("go on"),
    )
    assert build_context(listed.entries).summary.endswith("word for word\n\ntwo")


def test_what_an_editor_puts_before_the_persons_words_is_not_theirs(tmp_path: Path) -> None:
    of_editor = "# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for Codex:\n"
    session = read(tmp_path, head(), said(f"{of_editor}Fix it.\n"), replied("Done."))
    assert said_in(session) == ["Fix it."]
    assert notes(session) == [of_editor.strip()]


def test_a_compaction_that_cannot_be_read_leaves_the_history_in_place(tmp_path: Path) -> None:
    session = read(
        tmp_path,
        *(head(), said("one"), replied("1")),
        line("compacted", message="", replacement_history=[]),
        said("two"),
    )
    assert not any(isinstance(entry, CompactionEntry) for entry in session.entries)
    assert session.warnings == (
        "line 4: a compaction with an encrypted summary; its messages are kept",
    )
    assert len(build_context(session.entries).messages) == 3


def test_plans_images_names_and_searches_are_kept(tmp_path: Path) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,QQ=="}
    plan = [{"step": "look", "status": "completed"}, {"step": "mend", "status": "odd"}]
    session = read(
        tmp_path,
        head(),
        item("message", role="user", content=[image, {"type": "input_text", "text": "See."}]),
        item("web_search_call", status="completed", action={"type": "search", "query": "pytest"}),
        call("p", "update_plan", plan=plan),
        output("p", "Plan updated"),
        call("v", "view_image", path="/x.png"),
        output("v", [image]),
        event("thread_name_updated", thread_name="Mending"),
        said("<user_shell_command>\nls\n</user_shell_command>"),
    )
    asked = messages(session)[0]
    assert isinstance(asked, UserMessage)
    assert asked.images == (ImageContent(data="QQ==", mime_type="image/png"),)
    assert replies(session)[0].text == "[Web search: pytest]"
    assert [todo.status for todo in results(session)[0].tool_details.todos or ()] == [
        "completed",
        "pending",
    ]
    assert isinstance(results(session)[1].content[0], ImageContent)
    assert len(notes(session)) == 1
    assert session.entries[-1].model_dump()["name"] == "Mending"


def test_a_fork_has_the_name_of_its_own_head(tmp_path: Path) -> None:
    session = read(tmp_path, head(id="child"), head(id="parent", cwd="/other"), said("Hi."))
    assert (session.header.id, session.header.cwd) == ("child", CWD)


@pytest.mark.parametrize(
    ("odd", "warning"),
    [
        (output("gone", "text"), "line 2: a result without an open tool ca"),
        (item("hologram"), "line 2: an item of unknown kind 'hologram'; left out"),
        ({"type": "future", "payload": {}}, "line 2: unknown kind 'future'; left out"),
        ("[1]", "line 2: not a JSON object; left out"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_line(
    tmp_path: Path, odd: dict[str, object] | str, warning: str
) -> None:
    session = read(tmp_path, head(), odd, said("Hi."))
    assert [text.startswith(warning) for text in session.warnings] == [True]


@pytest.mark.parametrize("kind", ["token_usage_record", "security_risk_score", "world_state"])
def test_lines_about_the_program_itself_are_passed_over_quietly(tmp_path: Path, kind: str) -> None:
    session = read(tmp_path, head(), line(kind, total=3), said("Hi."))
    assert session.warnings == ()


def test_results_that_say_so_are_errors(tmp_path: Path) -> None:
    written: list[object] = [
        {"content": "no", "success": False},
        "aborted by user after 2.0s",
        "Exit code: 124\nWall time: 9 seconds\nOutput:\n",
        "Output: Exit code: 3\n",
    ]
    lines = [said("go")]
    for number, text in enumerate(written):
        lines += [call(f"c{number}", "shell", command=["true"]), output(f"c{number}", text)]
    session = read(tmp_path, head(), *lines)
    assert [result.is_error for result in results(session)] == [True, True, True, False]


def test_refusals_and_answers_are_the_words_of_the_user(tmp_path: Path) -> None:
    asked = [{"id": "db", "question": "Which database?"}, {"id": "no", "question": "Which name?"}]
    answered = {"answers": {"db": {"answers": ["None of the above", "user_note: sqlite"]}}}
    session = read(
        tmp_path,
        head(),
        said("go"),
        call("c1", "shell", command=["make"]),
        output("c1", "exec command rejected by user"),
        call("c2", "request_user_input", questions=asked),
        output("c2", json.dumps(answered)),
    )
    refused, answer = results(session)
    assert (refused.is_error, refused.tool_details.ending) == (True, "declined")
    words = "Which database? -> None of the above, sqlite"
    assert (answer.is_error, answer.tool_details.user_words) == (False, words)


def test_a_file_without_messages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="contains no Codex messages"):
        read(tmp_path, head(), event("task_started"))


CHANGES = {
    f"{CWD}/a.py": {"type": "update", "unified_diff": "@@ -7 +7 @@\n-x\n+y", "move_path": None},
    "b/c.py": {"type": "add", "content": "z\n"},
    "d.py": {"type": "delete", "content": "gone"},
    "e.py": {"type": "update", "unified_diff": "", "move_path": "f.py"},
}
DIFF = (
    f"--- {CWD}/a.py\n+++ {CWD}/a.py\n@@ -7 +7 @@\n-x\n+y\n"
    "--- b/c.py\n+++ b/c.py\n@@ -0,0 +1,1 @@\n+z\n"
    "--- d.py\n+++ d.py\n@@ -1,1 +0,0 @@\n-gone\n\\ No newline at end of file\n"
)


@pytest.mark.parametrize("place", [1, 2], ids=["before the result", "after the result"])
@pytest.mark.parametrize("call_id", ["c1", "exec-1"], ids=["of the call", "within the call"])
def test_the_lines_that_a_patch_changed_are_known(tmp_path: Path, place: int, call_id: str) -> None:
    applied = event("patch_apply_end", call_id=call_id, success=True, changes=CHANGES)
    lines = [patch("c1", PATCH), patched("c1", "Done")]
    lines.insert(place, applied)
    (result,) = results(read(tmp_path, head(), turn(), said("Go."), *lines))
    is_known = call_id == "c1" or place == 1
    assert result.tool_details.diff == (DIFF if is_known else None)
    assert result.tool_details.exit_code == 0


def test_a_patch_that_failed_changed_nothing(tmp_path: Path) -> None:
    applied = event("patch_apply_end", call_id="c1", success=False, changes=CHANGES)
    lines = (patch("c1", PATCH), applied, patched("c1", "Failed", 1))
    (result,) = results(read(tmp_path, head(), turn(), said("Go."), *lines))
    assert result.tool_details.diff is None
