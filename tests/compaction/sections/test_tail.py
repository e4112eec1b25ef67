"""The newest messages stay as they are; what stands elsewhere takes a line."""

import json

import pytest
from pydantic import JsonValue

from agent_tui.compaction.plan import read_live
from agent_tui.compaction.sections.file_states import FileReader, FileState
from agent_tui.compaction.sections.files import ShownFile
from agent_tui.compaction.sections.history import read_history
from agent_tui.compaction.sections.tail import Tail, TailEditor
from agent_tui.compaction.tiers.units import read_units
from agent_tui.config import CompactionSettings
from agent_tui.messages import (
    AssistantMessage,
    JsonObject,
    ThinkingContent,
    ToolCall,
    ToolDetails,
)
from agent_tui.omissions import marks_in
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import Entry, MessageEntry
from agent_tui.tokens import TokenCounter
from tests.compaction.sections.scene import FOLDERS, begun, numbered
from tests.support.rows import each_row
from tests.support.talk import Talk

TEXT = numbered([f"value_{number} = {number}" for number in range(200)])
OUTPUT = "".join(f"{number:04d} compiling module {number}\n" for number in range(400))
PLENTY = 1_000_000


def editor(talk: Talk, counter: TokenCounter) -> TailEditor:
    settings = CompactionSettings()
    units = read_units(
        talk.path, carryover=None, counter=counter, settings=settings, window=100_000
    )
    return TailEditor(units.items, "batch", counter, FOLDERS)


def tail_of(
    talk: Talk,
    counter: TokenCounter,
    shown: tuple[str | ShownFile, ...] = (),
    room: int = PLENTY,
) -> Tail:
    live = read_live(talk.path, counter)
    files = [f if isinstance(f, ShownFile) else ShownFile(f, "", is_whole=True) for f in shown]
    by_path = {file.path: file for file in files}
    known = FileReader(FOLDERS).read(read_history(talk.path))
    return editor(talk, counter).lines_for_what_stands_elsewhere(live, by_path, room, known)


def seen(talk: Talk, tail: Tail) -> tuple[Entry, ...]:
    edits = [
        edit.model_copy(update={"id": f"edit{number}"})
        for number, edit in enumerate(tail.edits.values())
    ]
    return (*talk.path, *edits)


def result_id(talk: Talk, at: int = -1) -> str:
    return [entry.id for entry in talk.entries if isinstance(entry, MessageEntry)][at]


def ended(talk: Talk) -> Talk:
    talk.reply("All of that is done.")
    return talk


def test_a_view_of_a_file_that_stands_whole_gives_way_to_a_line(counter: TokenCounter) -> None:
    talk = begun()
    talk.tool("read", {"path": "/project/src/a.py"}, TEXT)
    view = result_id(talk)
    talk.tool("read", {"path": "src/b.py"}, TEXT)
    tail = tail_of(ended(talk), counter, ("src/a.py",))
    (edit,) = tail.edits.values()
    assert edit.target_id == view
    assert edit.replacement == f"(src/a.py is shown in the summary) [recall {view}]"
    assert edit.batch == "batch"


def test_so_does_the_answer_to_a_change_that_shows_the_file(counter: TokenCounter) -> None:
    talk = begun()
    talk.tool("write", {"path": "src/a.py", "content": "x = 1"}, "Updated. It is now:\n" + TEXT)
    answer = result_id(talk)
    tail = tail_of(ended(talk), counter, ("src/a.py",))
    assert tail.edits[answer].replacement == f"(src/a.py is shown in the summary) [recall {answer}]"


def test_a_failed_view_of_it_stays(counter: TokenCounter) -> None:
    talk = begun()
    talk.tool("read", {"path": "src/a.py"}, "Error: " + OUTPUT, is_error=True)
    assert tail_of(ended(talk), counter, ("src/a.py",)).edits == {}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write", {"path": "src/a.py", "content": TEXT}),
        ("edit", {"path": "src/a.py", "edits": [{"old": "x", "new": TEXT}]}),
    ],
)
def test_a_change_whose_result_stands_whole_keeps_its_call_and_loses_its_text(
    counter: TokenCounter, tool: str, arguments: JsonObject
) -> None:
    talk = begun()
    talk.tool(tool, arguments, "done")
    reply = result_id(talk, -2)
    tail = tail_of(ended(talk), counter, ("src/a.py",))
    (edit,) = tail.edits.values()
    assert edit.target_id == reply
    (call,) = [
        call
        for item in build_context(seen(talk, tail)).messages
        if isinstance(item.message, AssistantMessage)
        for call in item.message.tool_calls
    ]
    assert call.arguments["path"] == "src/a.py"
    assert set(call.arguments) == set(arguments)
    assert "value_0 " not in str(call.arguments)
    assert f"tokens left out ...] [recall {reply}]" in str(call.arguments)
    assert tail_of(talk, counter, ("src/other.py",)).edits == {}


WRITTEN = "\n".join(f"value_{number} = {number}" for number in range(60))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write", {"path": "src/a.py", "content": WRITTEN}),
        ("bash", {"command": f"cat > src/a.py <<'EOF'\n{WRITTEN}\nEOF\npytest -q"}),
    ],
)
@pytest.mark.parametrize(
    ("now", "is_committed", "stays"),
    [
        (WRITTEN, True, False),
        (WRITTEN[:-2], True, False),
        (WRITTEN, False, True),
        ("value = 0", False, False),
    ],
)
def test_what_a_call_wrote_is_one_line_once_it_is_committed_or_written_over(
    counter: TokenCounter,
    tool: str,
    arguments: JsonObject,
    now: str,
    is_committed: bool,
    stays: bool,
) -> None:
    talk = begun()
    talk.tool(tool, arguments, "done")
    file = FileState("src/a.py", [(1, now.split("\n"))], is_changed=True, is_committed=is_committed)
    live = read_live(ended(talk).path, counter)
    maker = editor(talk, counter)
    tail = maker.lines_for_what_stands_elsewhere(live, {}, PLENTY, [file])
    shown = str(build_context(seen(talk, tail)).messages)
    assert ("value_7 = 7" in shown) is stays
    assert "src/a.py" in shown
    assert ("left out ...] [recall" in shown) is not stays
    assert not maker.lines_for_what_stands_elsewhere(live, {}, PLENTY).edits


@each_row(
    ("tool", "name", "later", "told"),
    [
        ("edit", "new", "x = 1", "dry_run = False ⏎ value_0 = 0 ⏎ value_1 = 1"),
        ("write", "content", "x = 1", "dry_run = False ⏎ value_0 = 0 ⏎ value_1 = 1"),
        ("edit", "new", WRITTEN, "dry_run = False [... "),
        ("write", "content", WRITTEN, "dry_run = False [... "),
        (
            "write",
            "content",
            f"dry_run = False\n{WRITTEN}",
            "(written later) [... ",
        ),
    ],
)
@pytest.mark.parametrize("details", [ToolDetails(ending="declined"), ToolDetails()])
def test_what_a_refused_change_would_have_written_takes_a_line(
    counter: TokenCounter,
    tool: str,
    name: str,
    later: str,
    told: str,
    details: ToolDetails,
) -> None:
    talk = begun()
    old = "\n".join(f"old_{number} = {number}" for number in range(60))
    arguments: JsonObject = {"path": "src/a.py", name: f"dry_run = False\n{WRITTEN}"}
    arguments |= {"old": old} if tool == "edit" else {}
    talk.tool(tool, arguments, "Refused.", is_error=True, details=details)
    reply = result_id(talk, -2)
    assert reply not in tail_of(talk, counter).edits
    talk.tool("write", {"path": "src/a.py", "content": later}, "Written.")
    edit = tail_of(ended(talk), counter).edits[reply]
    (call,) = [part for part in edit.replacement or () if isinstance(part, ToolCall)]
    assert str(call.arguments[name]).startswith(told)
    assert str(call.arguments[name]).endswith(f"tokens left out ...] [recall {reply}]")
    assert str(call.arguments.get("old", "[... ")).startswith("[... ")


PART = ShownFile("src/a.py", "\n".join(f"value_{n} = {n}" for n in range(60)), is_whole=False)


def test_a_view_of_lines_that_are_shown_of_a_file_gives_way(counter: TokenCounter) -> None:
    talk = begun()
    talk.tool("read", {"path": "src/a.py", "limit": 50}, "\n".join(TEXT.split("\n")[:50]))
    view = result_id(talk)
    tail = tail_of(ended(talk), counter, (PART,))
    assert tail.edits[view].replacement == f"(parts are in the summary) [recall {view}]"
    assert tail.files_to_show(read_live(talk.path, counter).entries) == {"src/a.py"}


@each_row(
    ("first", "left"),
    [(30, "lines 21-60, 81-90 are in the summary"), (120, "edited since")],
)
def test_a_view_points_to_the_lines_that_are_shown_if_any_is_its_own(
    counter: TokenCounter, first: int, left: str
) -> None:
    shown = "\n".join(f"value_{n} = {n}" for n in (*range(20, 60), *range(80, 90)))
    part = ShownFile("src/a.py", shown, is_whole=False, spans=((81, 90), (21, 60)))
    talk = begun()
    lines = [f"value_{n} = {n}" for n in range(first, first + 50)]
    talk.tool("read", {"path": "src/a.py", "offset": first, "limit": 50}, numbered(lines, first))
    view = result_id(talk)
    talk.tool("edit", {"path": "src/a.py", "old": "value_40 = 40", "new": "x = 1"}, "Edited.")
    tail = tail_of(ended(talk), counter, (part,))
    assert tail.edits[view].replacement == f"({left}) [recall {view}]"


def test_lines_of_a_view_that_were_edited_since_are_not_shown_again(counter: TokenCounter) -> None:
    talk = begun()
    talk.tool("read", {"path": "src/a.py"}, TEXT)
    view = result_id(talk)
    edit: JsonObject = {
        "path": "src/a.py",
        "old": "value_7 = 7\nvalue_8 = 8",
        "new": "one = 1\nvalue_8 = 8",
    }
    talk.tool("edit", edit, "Edited src/a.py.")
    text = str(tail_of(ended(talk), counter).edits[view].replacement)
    assert "value_6 = 6\n(lines edited since)\n" in text
    assert "value_8 = 8" in text
    assert text.endswith(f"[recall {view}]")


def test_lines_among_several_results_that_were_edited_since_say_so(counter: TokenCounter) -> None:
    talk = begun()
    talk.tool("read", {"path": "src/a.py"}, TEXT)
    output = "the build is fine\nvalue_6 = 6\nvalue_7 = 7\nvalue_8 = 8"
    talk.tool("bash", {"command": "make all; sed -n 6,8p src/a.py"}, output)
    ran = result_id(talk)
    edit: JsonObject = {"path": "src/a.py", "old": "value_7 = 7", "new": "one = 1"}
    talk.tool("edit", edit, "Edited src/a.py.")
    text = str(tail_of(ended(talk), counter).edits[ran].replacement)
    assert text.startswith("the build is fine\nvalue_6 = 6\n(lines edited since)\nvalue_8 = 8")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {"path": "src/a.py", "limit": 50}),
        ("bash", {"command": "sed -n '1,50p' src/a.py"}),
    ],
)
def test_a_view_from_before_a_change_gives_way_to_what_is_shown_of_the_file(
    counter: TokenCounter, tool: str, arguments: JsonObject
) -> None:
    lines = [f"value_{n} = {n}" for n in range(30)]
    lines[7] = "one = 1"
    file = ShownFile("src/a.py", "\n".join(lines), is_whole=False)
    talk = begun()
    text = TEXT if tool == "read" else "\n".join(f"value_{n} = {n}" for n in range(200))
    talk.tool(tool, arguments, "\n".join(text.split("\n")[:50]))
    view = result_id(talk)
    edit: JsonObject = {"path": "src/a.py", "old": "value_7 = 7", "new": "one = 1"}
    talk.tool("edit", edit, "Edited src/a.py.")
    left = str(tail_of(ended(talk), counter, (file,)).edits[view].replacement)
    assert left == f"(parts are in the summary) [recall {view}]"


def test_a_view_of_more_lines_than_are_shown_keeps_the_others(counter: TokenCounter) -> None:
    talk = begun()
    talk.tool("read", {"path": "src/a.py"}, TEXT)
    view = result_id(talk)
    text = str(tail_of(ended(talk), counter, (PART,)).edits[view].replacement)
    assert "value_59 " not in text
    assert "value_60 " in text
    assert text.count(f"[recall {view}]") == 1


def test_what_a_search_quotes_of_a_shown_file_stands_once(counter: TokenCounter) -> None:
    talk = begun()
    shown = PART.text.split("\n")[-20:]
    quoted = [
        f"src/a.py{':' if n % 3 else '-'}{n}{':' if n % 3 else '-'}{line}"
        for n, line in enumerate(shown, 9)
    ]
    talk.tool("grep", {"pattern": "value"}, "\n".join(["src/b.py:1:other", *quoted]))
    found = result_id(talk)
    left = str(tail_of(ended(talk), counter, (PART,)).edits[found].replacement)
    assert left.startswith("src/b.py:1:other\n(lines shown in src/a.py above)")


def test_an_answer_that_repeats_its_call_takes_a_line_in_the_newest_exchange_too(
    counter: TokenCounter,
) -> None:
    talk = begun()
    content = "\n".join(f"value_{number} = {number}" for number in range(200))
    talk.tool("write", {"path": "src/a.py", "content": content}, "Updated:\n" + TEXT.rstrip("\n"))
    (edit,) = tail_of(talk, counter).edits.values()
    assert edit.target_id == result_id(talk)
    assert edit.replacement == f"Updated:\n(as written above) [recall {result_id(talk)}]"


def test_a_passage_that_comes_again_later_stands_once(counter: TokenCounter) -> None:
    talk = begun()
    talk.tool("bash", {"command": "make a"}, "first\n" + OUTPUT)
    older = result_id(talk)
    talk.tool("bash", {"command": "make b"}, "second\n" + OUTPUT)
    (edit,) = tail_of(ended(talk), counter).edits.values()
    line = f"(lines shown in $ make b below) [recall {older}]"
    assert (edit.target_id, edit.replacement) == (older, f"first\n{line}")


def test_of_the_message_of_a_commit_its_subject_stays(counter: TokenCounter) -> None:
    message = "\n".join(["One thing", *(f"Line {n} of what was changed." for n in range(20))])
    command = f"git commit -F - <<'END'\n{message}\nEND\nmake"
    for has_failed in (False, True):
        talk = begun()
        talk.tool("bash", {"command": command}, "[main 1234567] One thing", is_error=has_failed)
        edits = tail_of(ended(talk), counter).edits
        assert bool(edits) is not has_failed
        for edit in edits.values():
            (part,) = [part for part in edit.replacement or () if isinstance(part, ToolCall)]
            left = str(part.arguments["command"])
            assert left.startswith("git commit -F - <<'END'\nOne thing\n[... ")
            assert left.endswith(f"[recall {edit.target_id}]\nEND\nmake")
            assert marks_in(left)  # the tools refuse it


def test_lines_refer_only_to_a_call_that_still_has_them(counter: TokenCounter) -> None:
    message = "\n".join(["One thing", *(f"Line {n} of what was changed." for n in range(20))])
    talk = begun()
    talk.tool("bash", {"command": "make notes"}, message)
    talk.tool("bash", {"command": f"git commit -F - <<'END'\n{message}\nEND"}, "[main 1234567] x")
    left = [str(edit.replacement) for edit in tail_of(ended(talk), counter).edits.values()]
    assert left
    assert not any("lines shown" in text for text in left)  # the call is shorter, too


DIFF = "diff --git a/a.py b/a.py\n" + "".join(f"+value_{n} = {n}\n" for n in range(40))


@each_row(
    ("command", "output", "is_old"),
    [
        ("git diff", DIFF, True),
        ("git diff a.py | head -50", DIFF, True),
        ("git status", "On branch main\n" + "  modified: a.py\n" * 20, True),
        ("git diff main", DIFF, False),
        ("git diff HEAD~2 a.py", DIFF, False),
        ("git log -p", DIFF, False),
        ("make && git diff", DIFF, False),
    ],
)
def test_what_was_not_committed_then_is_of_no_use_after_a_commit(
    counter: TokenCounter, command: str, output: str, is_old: bool
) -> None:
    talk = begun()
    talk.tool("bash", {"command": command}, output)
    shown = result_id(talk)
    assert not tail_of(ended(talk), counter).edits
    talk.tool("bash", {"command": "git commit -qam x"}, "[main 1234567] x")
    edits = tail_of(ended(talk), counter).edits
    line = (
        "(committed since)"
        if is_old
        else f"{len(output.splitlines())} lines; {DIFF.splitlines()[0]}"
    )
    assert [edit.replacement for edit in edits.values()] == [f"{line} [recall {shown}]"]


@each_row(
    ("output", "left"),
    [
        ("compiling\n" * 40 + "12 tests, 0 failures", "12 tests, 0 failures"),
        ("compiling\n" * 40 + "12 tests, 3 failures", None),
    ],
)
def test_of_a_check_that_passed_the_result_stays(
    counter: TokenCounter, output: str, left: str | None
) -> None:
    talk = begun()
    talk.tool("bash", {"command": "mix test"}, output)
    ran = result_id(talk)
    assert not tail_of(talk, counter).edits  # the newest exchange stays as it is
    edits = tail_of(ended(talk), counter).edits.values()
    assert [edit.replacement for edit in edits] == ([f"{left} [recall {ran}]"] if left else [])


@each_row(
    ("command", "output", "left"),
    [
        (
            "pytest -q | tail -4; pytest -q --doctest-modules a.py; git status --short",
            ".... [ 95%]\n....\n908 passed in 12s\n..   [100%]\n2 passed in 0.1s\n M a.py\n?? b.py",
            "908 passed in 12s\n2 passed in 0.1s\n M a.py\n?? b.py",
        ),
        ("grep -rn old_name .; pytest -q", "....  [100%]\n395 passed", "395 passed"),
        ("mkdir -p out && pytest -q", "a line\n395 passed", "395 passed"),
        ("grep -n pytest a.toml b.ini; pip list | grep pytest", "a.toml:4:pytest\nb.ini:1", None),
    ],
)
def test_each_of_several_results_of_a_command_stays(
    counter: TokenCounter, command: str, output: str, left: str | None
) -> None:
    talk = begun()
    talk.tool("bash", {"command": command}, f"{output}\n" + "  \n" * 60)
    ran = result_id(talk)
    edits = [edit.replacement for edit in tail_of(ended(talk), counter).edits.values()]
    shown = "".join(map(str, edits)) or output
    assert shown.removesuffix(f"[recall {ran}]").strip() == (left or output)


def test_of_the_plans_that_calls_wrote_none_is_shown_beside_the_newest_state(
    counter: TokenCounter,
) -> None:
    talk = begun()
    for number in range(3):
        steps: list[JsonValue] = [
            {"text": f"step {n} of the long plan", "status": "pending"} for n in range(9)
        ]
        talk.tool("todo", {"todos": [*steps, {"text": f"{number}", "status": "done"}]}, "Updated.")
    tail = tail_of(ended(talk), counter)
    text = str([item.message for item in build_context(seen(talk, tail)).messages])
    assert "step 8 of the long plan" not in text
    assert text.count("tokens left out") == 3


def test_of_what_git_prints_for_a_commit_the_files_and_what_a_hook_printed_go(
    counter: TokenCounter,
) -> None:
    talk = begun()
    made = "[main 0a1b2c3] Add the lexer\n 2 files changed, 9 insertions(+)"
    files = "".join(f" create mode 100644 src/part_{number}.py\n" for number in range(20))
    talk.tool("bash", {"command": "git commit -m 'Add the lexer'"}, f"{OUTPUT}{made}\n{files}")
    committed = result_id(talk)
    talk.tool("bash", {"command": "make"}, OUTPUT)
    (edit, *_) = reversed([*tail_of(ended(talk), counter).edits.values()])
    assert edit.replacement == f"{made} [recall {committed}]"


def test_blanks_at_the_ends_of_lines_go(counter: TokenCounter) -> None:
    blanks = " \t" * 20
    for command, goes in (("psql -c 'select 1'", True), ("cat a.md", False)):
        talk = begun()
        talk.tool("bash", {"command": command}, "\n".join(f"row {n}{blanks}" for n in range(9)))
        edits = tail_of(talk, counter).edits  # in the newest exchange, too
        assert bool(edits) is goes
        assert not any(blanks in str(edit.replacement) for edit in edits.values())


def test_what_was_only_shown_goes_if_the_same_command_shows_it_again(
    counter: TokenCounter,
) -> None:
    for command, goes in (("ls -la src", True), ("make", False)):
        talk = begun()
        for number in range(2):
            lines = "".join(f"{number}{n} file_{n}.py\n" for n in range(40))
            talk.tool("bash", {"command": command}, lines)
        edits = [str(edit.replacement) for edit in tail_of(ended(talk), counter).edits.values()]
        assert ("the same command ran again later, in " in "".join(edits)) is goes
        assert len(edits) == goes


def test_an_output_that_was_cut_still_stands_for_its_repeats(counter: TokenCounter) -> None:
    talk = begun()
    report = "\n".join(f"checked part {n} of it" for n in range(12))
    for seconds in (1, 2):
        talk.tool("bash", {"command": "check"}, f"{'x=1; ' * 900}\n{report}\nin {seconds} s")
    first, second = (str(one.replacement) for one in tail_of(ended(talk), counter).edits.values())
    first, second = sorted((first, second), key=len)
    assert first.split("\n")[:2] == ["(lines shown in $ check below)", "in 1 s"]
    assert report in second


def test_a_long_line_that_a_command_printed_keeps_its_two_ends(counter: TokenCounter) -> None:
    talk = begun()
    talk.tool("bash", {"command": "tsx -e 1"}, f"before\n{'x=1;' * 1_000}\nError: no such module")
    output = result_id(talk)
    assert not tail_of(talk, counter).edits  # the newest exchange stays as it is
    (edit,) = tail_of(ended(talk), counter).edits.values()
    assert edit.target_id == output
    before, long, *after = str(edit.replacement).split("\n")
    assert (before, after) == ("before", ["Error: no such module", f"[recall {output}]"])
    assert 200 < len(long) <= 240


def test_the_text_that_an_edit_replaced_goes_unless_it_failed(counter: TokenCounter) -> None:
    for is_error in (False, True):
        talk = begun()
        arguments: JsonObject = {"path": "src/a.py", "old_string": TEXT, "new_string": "x = 1"}
        talk.tool("edit", arguments, "done", is_error=is_error)
        edits = tail_of(ended(talk), counter).edits
        assert bool(edits) is not is_error
        assert not any("value_0 " in str(edit.replacement) for edit in edits.values())


def test_a_command_keeps_its_other_lines_where_the_file_it_wrote_is_shown(
    counter: TokenCounter,
) -> None:
    talk = begun()
    command = f"cat <<'EOF' > src/a.py\n{PART.text}\nEOF\npython src/a.py"
    talk.tool("bash", {"command": command}, "fine")
    (edit,) = tail_of(ended(talk), counter, (PART,)).edits.values()
    assert isinstance(edit.replacement, tuple)
    (call,) = edit.replacement
    assert isinstance(call, ToolCall)
    kept = str(call.arguments["command"])
    assert kept.startswith("cat <<'EOF' > src/a.py\n[... ")
    assert kept.endswith("\nEOF\npython src/a.py")
    assert "value_0 " not in kept


def test_an_older_view_gives_way_to_the_newer_one(counter: TokenCounter) -> None:
    talk = begun()
    talk.tool("read", {"path": "src/a.py"}, TEXT)
    older = result_id(talk)
    talk.tool("read", {"path": "src/a.py"}, TEXT)
    tail = tail_of(ended(talk), counter)
    assert list(tail.edits) == [older]
    assert f"read again later, in {result_id(talk, -2)}" in str(tail.edits[older].replacement)


def test_the_newest_exchange_stays_as_it_is(counter: TokenCounter) -> None:
    talk = begun()
    talk.tool("read", {"path": "src/a.py"}, TEXT)
    assert tail_of(talk, counter, ("src/a.py",)).edits == {}


def test_all_results_of_the_newest_reply_stay(counter: TokenCounter) -> None:
    talk = begun()
    calls = [ToolCall(id=name, name="read", arguments={"path": f"src/{name}.py"}) for name in "abc"]
    talk.reply("", *calls)
    for call in calls:
        talk.result(call, TEXT)
    assert tail_of(talk, counter, ("src/a.py", "src/b.py", "src/c.py")).edits == {}
    assert len(tail_of(ended(talk), counter, ("src/a.py", "src/b.py", "src/c.py")).edits) == 3


@pytest.mark.parametrize("thought", ["I wonder. " * 100, "Hm.", ""], ids=("long", "short", "no"))
def test_thinking_goes_from_all_but_the_newest_reply(counter: TokenCounter, thought: str) -> None:
    talk = begun()
    thoughts = ThinkingContent(thinking=thought, signature="c2lnbmVk" * 40)
    for name in ("a", "b"):
        call = ToolCall(id=name, name="bash", arguments={"command": f"make {name}"})
        talk.message(
            lambda ms, call=call: AssistantMessage(
                content=(thoughts, call),
                provider="p",
                model="m",
                stop_reason="toolUse",
                timestamp=ms,
            )
        )
        talk.result(call, "built")
    tail = tail_of(talk, counter)
    assert list(tail.edits) == [result_id(talk, -4)]
    assert "c2lnbmVk" not in str(tail.edits[result_id(talk, -4)].replacement)
    live = read_live(talk.path, counter)
    assert result_id(talk, -4) in editor(talk, counter).entries_as_written(live, tail, 0)


def test_sizes_are_those_of_the_context_with_the_edits(counter: TokenCounter) -> None:
    talk = begun()
    talk.tool("read", {"path": "src/a.py"}, TEXT)
    talk.tool("write", {"path": "src/b.py", "content": TEXT}, "done")
    ended(talk)
    tail = tail_of(talk, counter, ("src/a.py", "src/b.py"))
    assert len(tail.edits) == 2
    after = build_context(seen(talk, tail)).messages
    assert sum(tail.tokens) == counter.count_messages(item.message for item in after)
    assert sum(tail.tokens) < sum(read_live(talk.path, counter).tokens) // 4


def test_only_what_fits_is_looked_at(counter: TokenCounter) -> None:
    talk = begun()
    for number in range(6):
        talk.tool("read", {"path": "src/a.py"}, TEXT)
        talk.tool("bash", {"command": f"make {number}"}, OUTPUT.replace("c", str(number)))
    ended(talk)
    all_of_it = tail_of(talk, counter, ("src/a.py",))
    some = tail_of(talk, counter, ("src/a.py",), room=8_000)
    assert len(all_of_it.edits) == 6
    assert 0 < len(some.edits) < 6
    assert all(all_of_it.edits[entry_id].replacement for entry_id in some.edits)


def filled(talk: Talk, counter: TokenCounter, room: int) -> Tail | None:
    """The whole of `talk` but its last message, shortened to fit `room`; None if it does not."""
    live = read_live(talk.path, counter)
    plain, last = Tail(live.tokens, {}), len(live.entries) - 1
    tail = editor(talk, counter).fill(live, plain, 0, last, room)
    return tail if sum(tail.tokens[:last]) <= room else None


def test_a_step_that_is_too_long_keeps_the_ends_of_its_outputs(counter: TokenCounter) -> None:
    talk = begun()
    talk.tool("bash", {"command": "make"}, OUTPUT)
    tail = filled(ended(talk), counter, 800)
    assert tail is not None
    (edit,) = tail.edits.values()
    text = str(edit.replacement)
    assert text.startswith("0000 compiling")
    assert text.rstrip().endswith("compiling module 399")
    assert f"[recall {edit.target_id}]" in text
    assert sum(tail.tokens[:-1]) <= 800


def test_of_several_outputs_only_those_over_their_share_are_cut(counter: TokenCounter) -> None:
    talk = begun()
    calls = [ToolCall(id=name, name="bash", arguments={"command": name}) for name in "ab"]
    talk.reply("", *calls)
    short = talk.result(calls[0], OUTPUT[:1_000])
    long = talk.result(calls[1], OUTPUT)
    tail = filled(ended(talk), counter, 1_500)
    assert tail is not None
    assert list(tail.edits) == [long.id]
    assert 200 < counter.count_text(OUTPUT[:1_000]) < 700
    assert short.id not in tail.edits


def test_long_arguments_become_a_line_first_and_none_is_cut_inside(counter: TokenCounter) -> None:
    talk = begun()
    talk.tool("write", {"path": "src/a.py", "content": TEXT}, "done")
    tail = filled(ended(talk), counter, 400)
    assert tail is not None
    (edit,) = tail.edits.values()
    assert edit.target_id == result_id(talk, 1)
    assert "value_0 " not in str(edit.replacement)


def test_where_that_is_not_enough_the_step_does_not_stay(counter: TokenCounter) -> None:
    talk = begun()
    talk.tool("bash", {"command": "make"}, OUTPUT)
    assert filled(ended(talk), counter, 60) is None


def test_what_the_person_said_is_never_shortened(counter: TokenCounter) -> None:
    talk = begun("Please read this: " + OUTPUT)
    talk.reply("I have read it.")
    talk.user("And now?")
    assert tail_of(ended(talk), counter).edits == {}
    assert filled(talk, counter, 300) is None


def test_what_must_stay_whole_is_not_cut_and_a_plan_is_no_text_that_a_call_wrote(
    counter: TokenCounter,
) -> None:
    talk = begun()
    talk.tool("bash", {"command": "bd show bd-1"}, OUTPUT)
    live = read_live(talk.path, counter)
    plain, last = Tail(live.tokens, {}), len(live.entries)
    whole = frozenset({result_id(talk)})
    ended(talk)
    filled_tail = editor(talk, counter).fill(live, plain, 0, last, 800, whole)
    assert sum(filled_tail.tokens[:last]) > 800
    plan = begun()
    plan.tool("plan", {"plan": TEXT}, "ok")
    assert filled(ended(plan), counter, 400) is None


def test_what_was_shortened_does_not_stay_unchanged(counter: TokenCounter) -> None:
    talk = begun()
    talk.tool("read", {"path": "src/a.py"}, TEXT)
    view = result_id(talk)
    tail = tail_of(ended(talk), counter, ("src/a.py",))
    live = read_live(talk.path, counter)
    everything = {entry.id for entry in live.entries}
    assert editor(talk, counter).entries_as_written(live, tail, 0) == everything - {view}
    later = Talk(entries=list(seen(talk, tail)))
    assert editor(later, counter).entries_as_written(
        live, Tail(tail.tokens, {}), 0
    ) == everything - {view}


def test_a_step_that_is_too_long_is_shortened_from_what_is_left_of_it(
    counter: TokenCounter,
) -> None:
    talk = begun()
    old = "\n".join(f"old_{number} = {number}" for number in range(30))
    new = "\n".join(f"new_{number} = {number}" for number in range(120))
    talk.tool("edit", {"path": "src/a.py", "old_string": old, "new_string": new}, "done")
    live = read_live(ended(talk).path, counter)
    maker = editor(talk, counter)
    tail = maker.lines_for_what_stands_elsewhere(live, {}, PLENTY)
    filled_tail = maker.fill(live, tail, 0, len(live.entries) - 1, 400)
    text = str(filled_tail.edits[result_id(talk, 1)].replacement)
    assert "old_7" not in text
    assert "new_7" not in text


def test_a_failed_command_that_writes_a_file_stays_a_command(counter: TokenCounter) -> None:
    talk = begun()
    command = f"cat > src/a.py <<'EOF'\n{WRITTEN}\nEOF\npytest -q"
    talk.tool("bash", {"command": command}, "1 failed", is_error=True)
    talk.tool("write", {"path": "src/a.py", "content": "value = 0"}, "done")
    for shown in ((), ("src/a.py",)):
        tail = tail_of(ended(talk), counter, shown)
        calls = str(build_context(seen(talk, tail)).messages)
        assert "cat > src/a.py <<" in calls
        assert "pytest -q" in calls


@pytest.mark.parametrize("shown", [(), ("src/a.py",)])
def test_text_that_was_refused_stays_until_its_file_is_shown_or_changed(
    counter: TokenCounter, shown: tuple[str, ...]
) -> None:
    talk = begun()
    talk.tool("write", {"path": "src/a.py", "content": WRITTEN}, "refused", is_error=True)
    assert (result_id(talk, 1) in tail_of(ended(talk), counter, shown).edits) is bool(shown)
    talk.tool("write", {"path": "src/a.py", "content": "value = 0"}, "done")
    assert result_id(talk, 1) in tail_of(ended(talk), counter, shown).edits


def test_a_view_gives_way_to_the_parts_that_a_model_chose_after_it_saw_it(
    counter: TokenCounter,
) -> None:
    talk = begun()
    talk.tool("read", {"path": "a.py"}, TEXT)
    first = result_id(talk)
    talk.tool("read", {"path": "b.py"}, OUTPUT)
    second = result_id(talk)
    ended(talk)
    talk.user("Go on.")
    text = "value_1 = 1\nvalue_2 = 2"
    parts = {path: ShownFile(path, text, is_whole=False) for path in ("a.py", "b.py")}
    live = read_live(talk.path, counter)
    known = FileReader(FOLDERS).read(read_history(talk.path))
    tail = editor(talk, counter).lines_for_what_stands_elsewhere(
        live, parts, PLENTY, known, {path: {first} for path in parts}
    )
    mark = f"(the summary shows what is needed of a.py) [recall {first}]"
    assert tail.edits[first].replacement == mark
    assert tail.files[first] == {"a.py"}
    assert second not in tail.edits
    assert first not in tail_of(talk, counter, (parts["a.py"],)).edits


ISSUE = "\n".join(f"{number}. The parser drops item {number}.\n" for number in range(40))


def test_a_text_that_a_later_call_has_stands_there_alone(counter: TokenCounter) -> None:
    talk = begun()
    talk.tool("create_issue", {"title": "One", "body": ISSUE}, "Wrong team.", is_error=True)
    refused = result_id(talk, -2)
    reply = {"id": "7", "title": "One", "body": ISSUE, "url": "https://tracker.example/7"}
    talk.tool("create_issue", {"title": "Two", "body": ISSUE}, json.dumps(reply))
    created = result_id(talk)
    tail = tail_of(ended(talk), counter)
    assert tail.edits.keys() == {refused, created}
    (call,) = [one for one in tail.edits[refused].replacement or () if isinstance(one, ToolCall)]
    line = f"(as in create_issue Two {ISSUE[:20]}"
    assert str(call.arguments["body"]).startswith(line[:22])
    assert str(call.arguments["body"]).endswith(f"below) [recall {refused}]")
    assert call.arguments["title"] == "One"
    left = str(tail.edits[created].replacement)
    assert left == f"title: One\nbody: (as written above)\n[recall {created}]"


def test_a_new_text_of_an_edit_that_is_nearly_all_shown_takes_a_line(counter: TokenCounter) -> None:
    talk = begun()
    new = f"{WRITTEN}\nlast = 1"
    talk.tool("edit", {"path": "src/a.py", "old": "x", "new": new}, "done")
    shown = ShownFile("src/a.py", WRITTEN, is_whole=False)
    live = read_live(ended(talk).path, counter)
    tail = editor(talk, counter).lines_for_what_stands_elsewhere(live, {"src/a.py": shown}, PLENTY)
    (edit,) = tail.edits.values()
    assert "(nearly as in src/a.py above) [recall" in str(edit.replacement)
    assert tail.files_to_show(live.entries) == {"src/a.py"}


def test_results_from_before_a_commit_come_back_if_there_is_space_small_ones_first(
    counter: TokenCounter,
) -> None:
    talk = begun()
    sizes = {"long": 60, "short": 20, "same": 20}
    for name, count in sizes.items():
        text = "".join(f"{'short' if name == 'same' else name} {n}\n" for n in range(9 * count))
        talk.tool("bash", {"command": f"tracker show {name}"}, text)
    ids = [result_id(talk, at) for at in (2, 4, 6)]
    talk.tool("bash", {"command": "git commit -qam x"}, "[main 1234567] x\n 1 file changed")
    live, maker = read_live(ended(talk).path, counter), editor(talk, counter)
    tail = tail_of(talk, counter)
    assert all("lines; " in str(tail.edits[id].replacement) for id in ids)
    tokens = [live.tokens[at] for at in (2, 4, 6)]
    back = maker.restore(live, tail, 0, sum(tokens[1:]), PLENTY)
    assert back.edits.keys() & ids == {ids[0], ids[1]}
    assert back.edits[ids[1]].replacement == (
        f"(lines shown in $ tracker show same below) [recall {ids[1]}]"
    )
    assert back.tokens[6] == live.tokens[6]
    assert maker.restore(live, tail, 0, tokens[1] // 2, PLENTY) == tail
    assert maker.restore(live, tail, 0, PLENTY, tokens[0] // 2).edits.keys() & ids == set(ids[:2])
    assert not maker.restore(live, tail, 0, PLENTY, PLENTY).edits.keys() & {ids[0], ids[2]}


LICENCE = [f"# Line {number} of a licence that all files have." for number in range(12)]


@pytest.mark.parametrize("calls", [("read", "read"), ("bash", "read"), ("bash", "bash")])
def test_a_file_keeps_lines_that_another_file_has_too(
    calls: tuple[str, str], counter: TokenCounter
) -> None:
    talk = begun()
    for tool, name in zip(calls, "ab", strict=True):
        text = "\n".join([*LICENCE, *(f"{name}_{number} = {number}" for number in range(40))])
        command = f"cat src/{name}.py; sed -n 1,20p src/{name}{name}.py"
        shown = numbered(text.split("\n")) if tool == "read" else text
        arguments: JsonObject = {"command": command}
        if tool == "read":
            arguments = {"path": f"src/{name}.py"}
        talk.tool(tool, arguments, shown)
    other = ShownFile("src/c.py", "\n".join(LICENCE), is_whole=False)
    assert not tail_of(ended(talk), counter, (other,)).edits


def test_of_the_same_file_they_are_named_by_their_numbers(counter: TokenCounter) -> None:
    talk = begun()
    own = [f"a_{number} = {number}" for number in range(40)]
    talk.tool("read", {"path": "src/a.py"}, numbered([*LICENCE, *own]))
    view = result_id(talk)
    talk.tool("bash", {"command": "head -n 12 src/a.py; wc -l src/b.py"}, "\n".join(LICENCE))
    left = str(tail_of(ended(talk), counter).edits[view].replacement)
    assert left.startswith("(lines 1-12 shown in $ head -n 12 src/a.py; wc -l src/b.py below)\n")
