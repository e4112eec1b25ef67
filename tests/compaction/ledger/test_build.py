from collections.abc import Sequence

from agent_tui.compaction.ledger.build import (
    MAX_USER_MESSAGES_CHARS,
    build_ledger,
    earlier_ledger,
    entries_to_record,
)
from agent_tui.compaction.sections.history import MAX_RECORDED_CHARS
from agent_tui.messages import (
    BashExecutionMessage,
    FileTouches,
    JsonObject,
    Todo,
    ToolCall,
    ToolDetails,
    UserMessage,
)
from agent_tui.sessions.entries import Carryover, CompactionDetails, Entry, Ledger
from tests.support.rows import each_row
from tests.support.talk import Talk


def ledger(
    entries: Sequence[Entry], previous: Ledger | None = None, cwd: str = "/project"
) -> Ledger:
    return build_ledger(entries, folders=(cwd,), previous=previous)


def touch(talk: Talk, *, is_error: bool = False, **touches: tuple[str, ...]) -> None:
    call = ToolCall(id=f"c{len(talk.entries)}", name="tool")
    talk.reply("", call)
    talk.result(call, files=FileTouches(**touches), is_error=is_error)


def test_modified_is_edited_and_written_and_read_is_the_rest():
    talk = Talk()
    touch(talk, read=("/project/a.py", "/project/b.py", "/project/c.py"))
    touch(talk, edited=("/project/b.py",))
    touch(talk, written=("/project/new.py",))
    made = ledger(talk.path)
    assert made.read_files == ("c.py", "a.py")
    assert made.modified_files == ("new.py", "b.py")


def test_a_file_read_again_after_its_edit_stays_modified():
    talk = Talk()
    touch(talk, edited=("/project/b.py",))
    touch(talk, read=("/project/b.py",))
    assert ledger(talk.path).read_files == ()


def test_failed_edits_are_not_listed():
    talk = Talk()
    touch(talk, edited=("/project/a.py",), is_error=True)
    call = ToolCall(id="x", name="edit", arguments={"path": "b.py"})
    talk.reply("", call)
    talk.result(call, "text not found", is_error=True, is_foreign=True)
    assert ledger(talk.path).modified_files == ()


def test_calls_of_other_programs_are_known_by_name_and_path():
    talk = Talk()
    for name, argument, path in [
        ("read", "path", "a.py"),
        ("Write", "file_path", "/project/b.py"),
        ("edit", "path", "@src/../c.py"),
        ("bash", "command", "d.py"),
    ]:
        call = ToolCall(id=name, name=name, arguments={argument: path})
        talk.reply("", call)
        talk.result(call, is_foreign=True)
    made = ledger(talk.path)
    assert made.read_files == ("a.py",)
    assert made.modified_files == ("c.py", "b.py")


def test_what_our_own_tool_reports_counts_more_than_its_name():
    talk = Talk()
    call = ToolCall(id="r", name="read", arguments={"path": "a.py"})
    talk.reply("", call)
    talk.result(call, files=FileTouches())
    assert ledger(talk.path).read_files == ()


def test_nothing_is_kept_of_a_command_that_the_person_ran_outside_the_conversation():
    talk = Talk()
    talk.message(
        lambda ms: BashExecutionMessage(
            command="deploy --token hidden_word > secret.txt",
            output="Error: hidden_word denied",
            exit_code=1,
            exclude_from_context=True,
            files=FileTouches(written=("/project/secret.txt",)),
            timestamp=ms,
        )
    )
    assert ledger(talk.path) == Ledger()


def test_a_reused_call_id_belongs_to_the_newest_call():
    talk = Talk()
    for path in ("a.py", "b.py"):
        call = ToolCall(id="same", name="edit", arguments={"path": path})
        talk.reply("", call)
        talk.result(call, is_foreign=True)
    assert ledger(talk.path).modified_files == ("b.py", "a.py")


def test_carried_files_are_never_dropped():
    talk = Talk()
    touch(talk, edited=("/project/new.py",))
    previous = Ledger(read_files=("r1", "new.py"), modified_files=("m1", "/project/m2"))
    made = ledger(talk.path, previous)
    assert made.modified_files == ("new.py", "m1", "m2")
    assert made.read_files == ("r1",)


def test_lists_of_other_programs_compactions_are_taken_in():
    talk = Talk()
    talk.user("hi")
    details = CompactionDetails(read_files=("/project/a",), modified_files=("/elsewhere/b",))
    talk.compaction("s", details=details)
    known = earlier_ledger(talk.path, None)
    made = ledger(talk.path, known)
    assert made.read_files == ("a",)
    assert made.modified_files == ("/elsewhere/b",)


def test_without_a_compaction_the_headers_state_is_known():
    carried = Carryover(read_files=("a",), ledger=Ledger(pinned=("never x",)))
    known = earlier_ledger((), carried)
    assert known is not None
    assert known.read_files == ("a",)
    assert known.pinned == ("never x",)
    assert earlier_ledger((), None) is None


def test_user_messages_are_newest_first_and_shortened_in_the_middle():
    talk = Talk()
    talk.user("first")
    talk.user("begin " + "x" * 90_000 + " end")
    made = ledger(talk.path)
    assert made.user_messages[1] == "first"
    assert made.user_messages[0].startswith("begin ")
    assert made.user_messages[0].endswith(" end")
    assert len(made.user_messages[0]) <= MAX_RECORDED_CHARS


def test_user_messages_are_bounded_and_the_first_request_stays():
    talk = Talk()
    for number in range(200):
        talk.user(f"{number} " + "y" * 10_000)
    made = ledger(talk.path)
    assert made.user_messages[0].startswith("199 ")
    assert made.user_messages[-1].startswith("0 ")
    assert made.user_messages[-2].startswith("182 ")
    assert sum(map(len, made.user_messages)) <= MAX_USER_MESSAGES_CHARS


def test_pastes_push_no_short_message_out_of_the_ledger():
    talk = Talk()
    for text in ("Build it.", "Use sqlite.", *(f"{n} " + "y" * 30_000 for n in range(9)), "Go."):
        talk.user(text)
    made = ledger(talk.path)
    assert made.user_messages[0] == "Go."
    assert made.user_messages[-2:] == ("Use sqlite.", "Build it.")
    assert [text[:2] for text in made.user_messages[1:-2]] == [f"{n} " for n in range(8, 2, -1)]


def test_an_error_is_listed_with_its_command_until_the_command_succeeds():
    talk = Talk()
    output = "collected 3\nE   AssertionError: 1 != 2\n1 failed\n"
    talk.tool("bash", {"command": "pytest -q"}, output, is_error=True, exit_code=1)
    talk.tool("edit", {"path": "a.py", "old": "x"}, "Error: text not found", is_error=True)
    made = ledger(talk.path)
    assert made.errors == (
        "edit a.py => Error: text not found",
        "$ pytest -q => E AssertionError: 1 != 2 | 1 failed",
    )
    talk.tool("bash", {"command": "pytest -q"}, "3 passed")
    assert ledger(talk.path).errors == ("edit a.py => Error: text not found",)


def test_a_carried_error_is_closed_by_a_later_success():
    talk = Talk()
    talk.tool("bash", {"command": "make"}, "built")
    previous = Ledger(errors=("$ make => error: x", "$ other => error: y"))
    assert ledger(talk.path, previous).errors == ("$ other => error: y",)


@each_row(
    "output",
    [
        "Command aborted",
        "(no output)\n\nCommand exited with code 1",
        "[exit code 1]",
        "",
        "The user declined this call.",
        "The person does not approve the plan yet.",
    ],
)
def test_interruptions_and_bare_exit_codes_are_no_errors(output: str):
    talk = Talk()
    talk.tool("bash", {"command": "grep x y"}, output, is_error=True)
    assert ledger(talk.path).errors == ()


def test_open_todos_come_from_the_newest_plan():
    talk = Talk()
    call = ToolCall(id="t", name="todo")
    talk.reply("", call)
    talk.result(call, todos=[Todo(text="old")])
    talk.reply("", call)
    talk.result(
        call,
        todos=[
            Todo(text="done", status="completed"),
            Todo(text="now", status="in_progress"),
            Todo(text="later"),
        ],
    )
    assert ledger(talk.path).open_todos == ("now (in progress)", "later")
    assert ledger((), Ledger(open_todos=("carried",))).open_todos == ("carried",)


def test_building_it_again_over_what_it_was_built_from_changes_nothing():
    talk = Talk()
    talk.user("never push. please fix it")
    touch(talk, read=("/project/a",), edited=("/project/b",))
    talk.tool("bash", {"command": "make"}, "error: no rule", is_error=True)
    once = ledger(talk.path)
    assert ledger(talk.path, once) == once


def test_after_a_compaction_only_what_its_ledger_may_not_know_is_read_again():
    talk = Talk()
    talk.user("always use tabs")
    kept = talk.user("never push")
    recorded = ledger(talk.path)
    details = CompactionDetails(ledger=recorded)
    newest = talk.compaction("s", first_kept=kept.id, details=details)
    later = talk.user("don't touch the lock file")
    rest = entries_to_record(talk.path)
    assert rest == (kept, newest, later)
    whole, continued = ledger(talk.path), ledger(rest, earlier_ledger(talk.path, None))
    assert continued == whole


def test_a_compaction_without_a_ledger_has_everything_read():
    talk = Talk()
    talk.user("never push")
    talk.compaction("s")
    assert entries_to_record(talk.path) == talk.path


def test_files_that_a_command_removed_are_listed_no_more():
    talk = Talk()
    talk.tool("write", {"path": "src/old/a.py", "content": "x"}, "Wrote.")
    talk.tool("write", {"path": "src/b.py", "content": "x"}, "Wrote.")
    talk.tool("read", {"path": "notes.txt"}, "x")
    talk.tool("bash", {"command": "git rm -r src/old && rm notes.txt && mv src/b.py src/c.py"}, "")
    made = ledger(talk.path)
    assert (made.read_files, made.modified_files) == ((), ("src/c.py",))
    talk.tool("bash", {"command": "rm src/c.py"}, "rm: denied", is_error=True)
    assert ledger(talk.path).modified_files == ("src/c.py",)


def test_a_file_that_is_written_anew_after_it_was_removed_is_listed():
    talk = Talk()
    talk.tool("bash", {"command": "rm -f a.py; cat > a.py <<'EOF'\nx\nEOF"}, "")
    assert ledger(talk.path).modified_files == ("a.py",)
    talk.tool("bash", {"command": "cat > b.py <<'EOF'\nx\nEOF\npython b.py; rm b.py"}, "")
    assert ledger(talk.path).modified_files == ("a.py",)


def test_rules_come_from_what_was_typed_and_not_from_pastes() -> None:
    talk = Talk()
    typed = ("See the guide.", "Always use tabs in SQL files.")
    pasted = "You must never delete the migrations. " + "It is slow. " * 2_000
    text = f"{typed[0]}\n{pasted}\n{typed[1]}\n{pasted}"
    talk.message(lambda ms: UserMessage(content=text, typed=typed, timestamp=ms))
    assert ledger(talk.path).pinned == (typed[1],)


def refuse(talk: Talk, path: str, words: str) -> None:
    details = ToolDetails(ending="declined", user_words=words)
    call: JsonObject = {"path": path, "old": "a", "new": "b"}
    talk.tool("edit", call, "Refused.", is_error=True, details=details)


@each_row(
    ("first", "later", "pinned"),
    [
        ("I would prefer a map here.", ("a.py", "just define it in place"), False),
        ("I would prefer a map here.", ("b.py", "just define it in place"), True),
        ("I would prefer a map here.", None, True),
        ("I would prefer a map here.", ("a.py", "I would prefer a map here."), True),
        ("Never use a map here.", ("a.py", "just define it in place"), True),
    ],
)
def test_a_preference_about_a_change_is_no_rule_once_more_is_said_about_its_file(
    first: str, later: tuple[str, str] | None, pinned: bool
) -> None:
    talk = Talk()
    talk.user("Please fix it.")
    refuse(talk, "a.py", first)
    earlier = ledger(talk.path)
    assert any(first in rule for rule in earlier.pinned)
    if later is not None:
        refuse(talk, *later)
    for previous in (None, earlier):
        assert any(first in rule for rule in ledger(talk.path, previous).pinned) is pinned
