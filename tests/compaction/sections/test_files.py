"""Files stand as they are now, whatever was done to them since they were seen."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from agent_tui.compaction.sections.file_states import FileReader, FileState, files_for_later
from agent_tui.compaction.sections.file_views import plain_lines
from agent_tui.compaction.sections.files import FILE_SHARE, ShownFile, choose_files
from agent_tui.compaction.sections.history import read_history
from agent_tui.messages import FileTouches, JsonObject, ToolCall
from agent_tui.tokens import ExactCounter, TokenCounter
from tests.compaction.sections.scene import (
    FOLDERS,
    begun,
    called,
    file_after,
    files_after,
    numbered,
    run,
)
from tests.support.rows import each_row

LINES = [f"line {number}" for number in range(1, 41)]
WHOLE = "\n".join(LINES)
READ = ("read", {"path": "a.py"}, numbered(LINES))
Call = tuple[str, Mapping[str, Any], str]


def bash(command: str, output: str = "") -> Call:
    return "bash", {"command": command}, output


def edit(old: str, new: str, path: str = "a.py") -> Call:
    return "edit", {"path": path, "edits": [{"oldText": old, "newText": new}]}, "Edited."


@each_row(
    "call",
    [
        READ,
        ("read", {"path": "/project/a.py"}, WHOLE),
        ("Read", {"file_path": "./a.py"}, numbered(LINES).replace("\t", "→")),
        bash("cat a.py", WHOLE + "\n"),
        bash("cat a.py", WHOLE + "\n[exit code 0]"),
        bash("cat -n a.py", numbered(LINES).rstrip("\n") + "\n[exit code 0]\n[a hint]"),
        bash("cd /project && cat -n a.py", numbered(LINES)),
        bash("nl -ba a.py", numbered(LINES)),
        bash("cat a.py", f"<returncode>0</returncode>\n<output>\n{WHOLE}\n</output>"),
    ],
)
def test_a_file_that_was_read_is_known_without_the_numbers_of_its_lines(call: Call) -> None:
    file = file_after(call)
    assert (file.path, file.text) == ("a.py", WHOLE)
    assert file.is_whole
    assert not file.is_changed
    assert file.reads == 1


@pytest.mark.parametrize(
    "call",
    [
        ("read", {"path": "a.py", "offset": 11, "limit": 5}, numbered(LINES[10:15], 11)),
        ("view", {"path": "a.py", "view_range": [11, 15]}, "\n".join(LINES[10:15])),
        bash("sed -n '11,15p' a.py", "\n".join(LINES[10:15])),
        bash("cat -n a.py | sed -n '11,15p'", numbered(LINES[10:15], 11)),
    ],
)
def test_a_part_that_was_read_stands_at_its_lines(call: Call) -> None:
    file = file_after(call)
    assert file.runs == [(11, LINES[10:15])]
    assert not file.is_whole


@pytest.mark.parametrize(
    "command",
    [
        "git log -3; cat a.py",
        "ls && sed -n '11,15p' a.py",
        "wc -l a.py\nhead -n 3 a.py",
        "sed -n '1,2p' b.py; cat -n a.py",
    ],
)
def test_an_output_of_several_commands_is_no_view_of_a_file(command: str) -> None:
    assert files_after(bash(command, WHOLE)) == []


@pytest.mark.parametrize(
    "note",
    ["[lines 1-5 of 40; use offset=6 for more]", "<system>truncated</system>", "(35 more lines)"],
)
def test_a_view_that_says_it_is_cut_is_a_part(note: str) -> None:
    file = file_after(("read", {"path": "a.py"}, f"{numbered(LINES[:5])}{note}"))
    assert file.runs == [(1, LINES[:5])]
    assert not file.is_whole


def test_the_head_of_a_file_is_a_part_of_it() -> None:
    file = file_after(bash("head -n 3 a.py", "\n".join(LINES[:3])))
    assert (file.runs, file.is_whole) == ([(1, LINES[:3])], False)


def test_parts_that_touch_or_overlap_become_one_and_the_newer_one_counts() -> None:
    first: Call = ("read", {"path": "a.py", "offset": 1, "limit": 4}, numbered(LINES[:4]))
    newer: Call = (
        "read",
        {"path": "a.py", "offset": 3, "limit": 3},
        numbered(["three", "four", "five"], 3),
    )
    apart: Call = ("read", {"path": "a.py", "offset": 20, "limit": 1}, numbered(["twenty"], 20))
    assert file_after(first, newer, apart).runs == [
        (1, ["line 1", "line 2", "three", "four", "five"]),
        (20, ["twenty"]),
    ]


def test_a_part_seen_again_in_the_middle_leaves_what_is_known_around_it() -> None:
    middle: Call = (
        "read",
        {"path": "a.py", "offset": 7, "limit": 2},
        numbered(["seven", "VIII"], 7),
    )
    file = file_after(READ, middle)
    assert file.text == WHOLE.replace("line 7\nline 8\n", "seven\nVIII\n")
    assert file.is_whole
    some: Call = ("read", {"path": "a.py", "offset": 5, "limit": 6}, numbered(LINES[4:10], 5))
    assert file_after(some, middle).runs == [
        (5, ["line 5", "line 6", "seven", "VIII", "line 9", "line 10"])
    ]


def test_what_was_edited_in_one_known_part_stays_as_it_is_in_another() -> None:
    parts: list[Call] = [
        ("read", {"path": "a.py", "offset": at, "limit": 1}, numbered(["x = 1"], at))
        for at in (5, 20)
    ]
    assert file_after(*parts, edit("x = 1", "x = 3")).runs == [(5, ["x = 3"]), (20, ["x = 1"])]


def test_an_edit_that_a_later_one_took_back_has_no_place(counter: TokenCounter) -> None:
    calls = [*long_file(), edit("def function_400(value): return 0", "# gone")]
    (shown,) = choose_files([file_after(*calls)], 2_000, counter, None)
    assert "return 0" not in shown.text
    assert shown.text.count("@@ line") == 1
    assert "# gone" in shown.text


def test_lines_seen_at_another_place_stand_once_with_a_gap_before_them() -> None:
    formatted = [*LINES[:5], "", *LINES[5:]]
    part = "\n".join(f"{number}\t{formatted[number - 1]}" for number in range(20, 31))
    file = file_after(READ, ("read", {"path": "a.py", "offset": 20, "limit": 11}, part))
    assert file.runs == [(1, LINES[:18]), (20, [*LINES[18:29], *LINES[29:]])]
    assert not file.is_whole
    assert file.text == "\n".join([*LINES[:18], "[...]", *LINES[18:]])


def test_lines_seen_nearer_to_the_beginning_stand_once() -> None:
    shorter = LINES[5:]
    part = "\n".join(f"{number}\t{shorter[number - 1]}" for number in range(10, 21))
    file = file_after(READ, ("read", {"path": "a.py", "offset": 10, "limit": 11}, part))
    assert file.text.count("line 20\n") == 1
    assert file.runs[-1][0] + len(file.runs[-1][1]) == 36


def test_temporary_files_are_not_shown(counter: TokenCounter) -> None:
    script = ("write", {"path": "/tmp/probe.py", "content": WHOLE}, "Wrote.")
    files = files_after(script, READ, edit("line 3\n", "line three\n"))
    assert [file.path for file in choose_files(files, 4_000, counter)] == ["a.py"]


def test_a_file_of_which_nothing_was_seen_is_not_taken_from_the_disk(
    counter: TokenCounter,
) -> None:
    changed = file_after(bash("sed -i 's/a/b/' a.py"))
    assert choose_files([changed], 2_000, counter, lambda _path: WHOLE) == []


def test_a_file_that_was_written_stands_as_it_was_written() -> None:
    file = file_after(READ, ("write", {"path": "a.py", "content": "new\ntext\n"}, "Wrote."))
    assert file.text == "new\ntext"
    assert file.is_whole
    assert file.is_changed


@pytest.mark.parametrize(
    "command",
    [
        "cat > a.py <<'EOF'\nnew\ntext\nEOF",
        "cd /project && cat <<EOF > a.py\nnew\ntext\nEOF\npython a.py",
        "cat > '/project/a.py' << \"END\"\nnew\ntext\nEND",
    ],
)
def test_a_file_written_by_heredoc_stands_as_it_was_written(command: str) -> None:
    file = file_after(READ, bash(command))
    assert (file.text, file.is_whole, file.is_changed) == ("new\ntext", True, True)


SEVEN: JsonObject = {"old": "line 7\n", "new": "seven\nand more\n"}


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"path": "a.py", **SEVEN}, id="ours"),
        pytest.param({"path": "a.py", "edits": [SEVEN]}, id="ours as a list"),
        {"path": "a.py", "edits": [{"oldText": "line 7\n", "newText": "seven\nand more\n"}]},
        {"file_path": "a.py", "old_string": "line 7\n", "new_string": "seven\nand more\n"},
        {"path": "a.py", "old_str": "line 7\n", "new_str": "seven\nand more\n"},
    ],
)
def test_an_edit_changes_what_is_known_of_the_file(arguments: JsonObject) -> None:
    edited = file_after(READ, ("edit", arguments, "Edited."))
    assert edited.text == WHOLE.replace("line 7\n", "seven\nand more\n")
    assert edited.is_whole
    assert edited.is_changed


def test_an_edit_is_made_once_unless_it_is_for_all_places() -> None:
    twice: Call = ("read", {"path": "a.py"}, "x = 1\ny = 2\nx = 1")
    arguments: JsonObject = {"path": "a.py", "old_string": "x = 1", "new_string": "x = 3"}
    assert file_after(twice, ("edit", arguments, "")).text == "x = 3\ny = 2\nx = 1"
    theirs: JsonObject = {**arguments, "replace_all": True}
    ours: JsonObject = {"path": "a.py", "edits": [{"old": "x = 1", "new": "x = 3", "all": True}]}
    for everywhere in (theirs, ours):
        assert file_after(twice, ("edit", everywhere, "")).text == "x = 3\ny = 2\nx = 3"


def test_an_edit_moves_the_lines_after_it() -> None:
    parts: tuple[Call, Call] = (
        ("read", {"path": "a.py", "offset": 5, "limit": 2}, numbered(LINES[4:6], 5)),
        ("read", {"path": "a.py", "offset": 20, "limit": 2}, numbered(LINES[19:21], 20)),
    )
    file = file_after(*parts, edit("line 5", "five\nand\nmore"))
    assert file.runs == [(5, ["five", "and", "more", "line 6"]), (22, LINES[19:21])]


def test_lines_after_an_edit_whose_place_is_unknown_have_no_numbers() -> None:
    known = [(1, LINES[:3]), (11, LINES[10:15])]
    file = FileState("a.py", runs=[*known])
    file.edit("unseen", "one more\nline")
    assert file.runs == [known[0], (0, LINES[10:15]), (0, ["one more", "line"])]
    file = FileState("a.py", runs=[*known])
    file.edit("unseen", "line 12")  # as many lines as before: nothing moves
    assert file.runs == known


def test_an_edit_of_a_place_that_was_not_seen_is_known_by_its_new_text() -> None:
    file = file_after(edit("old", "def new():\n    pass"))
    assert file.runs == [(0, ["def new():", "    pass"])]
    assert not file.is_whole
    assert file.is_changed


def test_a_patch_edits_adds_and_deletes_files() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: a.py\n@@\n line 6\n-line 7\n+seven\n line 8\n"
        "*** Add File: b.py\n+one\n+two\n*** Delete File: c.py\n*** End Patch"
    )
    files = files_after(
        ("write", {"path": "c.py", "content": "gone"}, ""),
        READ,
        ("apply_patch", {"input": patch}, "Done."),
    )
    by_path = {file.path: file for file in files}
    assert set(by_path) == {"a.py", "b.py"}
    assert by_path["a.py"].text == WHOLE.replace("line 7\n", "seven\n")
    assert (by_path["b.py"].text, by_path["b.py"].is_whole) == ("one\ntwo", True)


def test_what_failed_changed_and_showed_nothing() -> None:
    talk = begun()
    talk.tool("read", {"path": "a.py"}, numbered(LINES))
    talk.tool("edit", {"path": "a.py", "oldText": "line 7", "newText": "x"}, "no", is_error=True)
    talk.tool("write", {"path": "a.py", "content": "x"}, "no", is_error=True)
    run(talk, "cat > a.py <<'EOF'\nx\nEOF", "no", exit_code=1)
    run(talk, "cat b.py", "cat: b.py: No such file", exit_code=1)
    (file,) = FileReader(FOLDERS).read(read_history(talk.path))
    assert (file.text, file.is_changed) == (WHOLE, False)


def test_a_command_that_changes_a_file_out_of_sight_is_named_beside_it(
    counter: TokenCounter,
) -> None:
    changed = file_after(READ, bash("sed -i 's/line 7/seven/' a.py"))
    (shown,) = choose_files([changed], 2_000, counter, None)
    assert "(perhaps older than this change: sed -i 's/line 7/seven/' a.py)" in shown.text
    assert not shown.is_whole
    again = file_after(READ, bash("sed -i 's/line 7/seven/' a.py"), READ)
    assert again.unseen == []
    assert again.is_changed


@each_row(
    "command",
    [
        "cat >> a.py <<'EOF'\nthree\nEOF",
        "echo three >> a.py",
        "echo new > a.py",
        "tee a.py <<'EOF'\nnew\nEOF",
        "cp c.py a.py",
        "mv a.py b.py",
        "rm a.py",
        "git checkout -- a.py",
        "git restore a.py",
        "perl -pi -e 's/one/1/' a.py",
        "sed -i 's/one/1/' a.py b.py",
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.py\n@@\n-one\n+1\n"
        "*** End Patch\nEOF",
    ],
)
def test_a_file_is_not_shown_as_it_was_before_a_command_changed_it(
    command: str, counter: TokenCounter
) -> None:
    written: Call = ("write", {"path": "a.py", "content": "one\ntwo\n"}, "")
    shown = choose_files(files_after(written, bash(command)), 2_000, counter, None)
    assert "### a.py (changed; whole)\none\ntwo" not in [file.text for file in shown]


@each_row(
    ("command", "is_at_head"),
    [
        ("git reset --hard", True),
        ("git stash", True),
        ("git stash pop", False),
        ("git checkout -- .", True),
        ("git checkout main", False),
        ("git restore .", True),
        ("git restore -s main~1 .", False),
        ("git restore src", True),
        ("git -c core.pager=cat pull -q", False),
    ],
)
def test_files_that_git_may_have_set_back_say_before_which_command_they_were_seen(
    command: str, is_at_head: bool
) -> None:
    counter = ExactCounter()
    read: Call = ("read", {"path": "src/b.py"}, "1\tthree\n2\tfour")
    written: Call = ("write", {"path": "src/a.py", "content": "one\ntwo\n"}, "")
    files = files_after(read, written, bash(f"cd . && {command} && echo done"))
    doubt = f"perhaps changed since, by $ {command}"
    assert {file.path: file.doubt for file in files} == {
        "src/a.py": doubt,
        "src/b.py": "" if is_at_head else doubt,
    }
    note = f"### src/a.py (changed; whole)\n({doubt})\none\ntwo"
    assert note in [file.text for file in choose_files(files, 2_000, counter, None)]
    (disk,) = choose_files(files[:1], 2_000, counter, {"src/a.py": "none\n"}.get)
    assert disk.text == "### src/a.py (changed; whole)\nnone"


def test_what_git_undid_is_no_change() -> None:
    sed = bash("sed -i 's/line 7/seven/' a.py")
    undo = bash("git checkout -- . && rm -rf copies")
    changed = edit("line 1\n", "first\n")
    for changes in ((sed,), (edit("line 9", "nine"), sed)):
        file = file_after(READ, changed, commit_of("1234567"), *changes, undo)
        assert file.text == WHOLE.replace("line 1\n", "first\n")
        assert (file.doubt, file.awaits_commit) == ("", False)


def test_what_git_shows_as_clean_awaits_no_commit() -> None:
    clean = "On branch main\nnothing to commit, working tree clean"
    assert not file_after(READ, edit("line 7", "seven"), bash("git status", clean)).awaits_commit
    kept = bash("cd /other && git status", clean)
    assert file_after(READ, edit("line 7", "seven"), kept).awaits_commit
    other = bash("git -C /other status", clean)
    assert file_after(READ, edit("line 7", "seven"), other).awaits_commit
    assert file_after(READ, edit("line 7", "seven"), bash("echo done", clean)).awaits_commit


@each_row(
    "command",
    [
        "git stash list",
        "git reset HEAD~1",
        "git restore --staged .",
        "git checkout -b next",
        "git switch -c next",
        "git clean -n",
        "git restore lib",
        "git checkout lib/a.py",
        "git -C /elsewhere reset --hard",
    ],
)
def test_files_that_git_leaves_alone_are_as_they_were_seen(command: str) -> None:
    written: Call = ("write", {"path": "src/a.py", "content": "one\ntwo\n"}, "")
    (file,) = files_after(written, bash(command))
    assert not file.doubt


def test_a_file_in_a_folder_gone_to_is_another_one() -> None:
    written: Call = ("write", {"path": "a.py", "content": "one\ntwo\n"}, "")
    files = files_after(written, bash("cd sub && cat a.py", "other"))
    assert {file.path: file.text for file in files} == {"a.py": "one\ntwo", "sub/a.py": "other"}


def test_a_file_that_a_patch_moves_stands_under_its_new_name() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@\n-line 7\n+seven\n"
        "*** End Patch"
    )
    file = file_after(READ, ("apply_patch", {"input": patch}, "Done."))
    assert (file.path, file.text) == ("b.py", WHOLE.replace("line 7", "seven"))


def test_the_file_touched_last_comes_first() -> None:
    calls: list[Call] = [("read", {"path": path}, "x = 1") for path in ("a.py", "b.py", "c.py")]
    assert [file.path for file in files_after(*calls, edit("x", "y"))] == ["a.py", "c.py", "b.py"]


def shown_paths(files: list[FileState], room: int, counter: TokenCounter) -> list[str]:
    return [file.path for file in choose_files(files, room, counter, None)]


def test_changed_files_and_named_ones_that_were_read_often_are_shown_and_no_others(
    counter: TokenCounter,
) -> None:
    files = files_after(
        ("write", {"path": "changed.py", "content": "x = 1"}, ""),
        ("read", {"path": "often.py"}, "y = 1"),
        ("read", {"path": "once.py"}, "z = 1"),
        ("read", {"path": "unnamed.py"}, "w = 1"),
        ("read", {"path": "often.py"}, "y = 1"),
        ("read", {"path": "unnamed.py"}, "w = 1"),
    )
    shown = choose_files(files, 1_000, counter, named="Now often.py and once.py.")
    assert [file.text for file in shown] == [
        "### often.py (read 2 times; whole)\ny = 1",
        "### changed.py (changed; whole)\nx = 1",
    ]
    assert all(file.is_whole for file in shown)
    others = choose_files(files, 1_000, counter, named="They often read_all() of_ten.")
    assert [file.path for file in others] == ["changed.py"]


def test_of_a_file_that_was_only_read_the_part_counts_that_the_newest_text_names(
    counter: TokenCounter,
) -> None:
    blocks = [f"def read_{n}x(rows):\n" + f"    use({n})\n" * 30 for n in range(30)]
    read: Call = ("read", {"path": "rows.py"}, numbered("\n".join(blocks).split("\n")))
    other: Call = ("write", {"path": "a.py", "content": "x = 1"}, "")
    files = files_after(read, read, other)
    assert [file.path for file in choose_files(files, 4_000, counter)] == ["a.py"]
    files = files_after(read, read, other, read)
    shown = choose_files(files, 4_000, counter, named="The fault is in `read_7x`.")[0]
    head, _, text = shown.text.partition("\n")
    assert head == "### rows.py (read 3 times; last seen places)"
    assert blocks[7].strip() in text
    assert "use(20)" not in text
    assert counter.count_text(shown.text) <= 4_000 // 2


def test_what_a_search_found_with_its_context_is_a_part_of_the_file(counter: TokenCounter) -> None:
    found = "\n".join(
        f"src/a.py{':' if n == 6 else '-'}{n}{':' if n == 6 else '-'}line {n}" for n in range(4, 9)
    )
    lone = "src/b.py:3:line 3"
    for call in (
        ("Grep", {"pattern": "line 6", "path": "src"}, f"{lone}\n--\n{found}"),
        bash("grep -rn -C2 'line 6' src | head -40", f"{lone}\n--\n{found}"),
        bash(
            "cd src && rg -n -C2 'line 6' a.py",
            found.replace("src/a.py:", "").replace("src/a.py-", ""),
        ),
    ):
        (file,) = files_after(call)
        assert (file.path, file.runs, file.reads) == ("src/a.py", [(4, LINES[3:8])], 0)
    assert files_after(bash("make | grep -C2 'line 6'", found)) == []


def test_data_that_was_only_read_takes_little(counter: TokenCounter) -> None:
    rows = "\n".join(f'{{"id": {n}, "text": "{"word " * 60}"}}' for n in range(40))
    read: Call = ("read", {"path": "rows.jsonl"}, rows)
    part: Call = ("read", {"path": "rows.jsonl", "offset": 7, "limit": 1}, rows.split("\n")[6])
    (shown,) = choose_files(files_after(read, part), 10_000, counter, named="rows in rows.jsonl")
    assert '"id": 6,' in shown.text
    assert counter.count_text(shown.text) <= 10_000 * FILE_SHARE / 4


def test_a_file_known_in_part_says_so(counter: TokenCounter) -> None:
    part: Call = ("read", {"path": "a.py", "offset": 5, "limit": 2}, numbered(LINES[4:6], 5))
    (shown,) = choose_files([file_after(part, part)], 1_000, counter, named="In a.py:")
    assert shown.text == "### a.py (read 2 times; as far as read)\nline 5\nline 6"
    assert not shown.is_whole


def test_gaps_between_known_parts_are_marked() -> None:
    parts: list[Call] = [
        ("read", {"path": "a.py", "offset": at, "limit": 1}, numbered([LINES[at - 1]], at))
        for at in (3, 9)
    ]
    assert file_after(*parts).text == "line 3\n[...]\nline 9"


def long_file() -> list[Call]:
    lines = [f"def function_{number}(value): return value + {number}" for number in range(800)]
    return [
        ("read", {"path": "a.py"}, numbered(lines)),
        edit("def function_400(value): return value + 400", "def function_400(value): return 0"),
    ]


def test_a_file_too_large_to_stand_whole_is_shown_by_its_edited_places(
    counter: TokenCounter,
) -> None:
    (shown,) = choose_files([file_after(*long_file())], 20_000, counter, None)
    lines = shown.text.split("\n")
    assert lines[0] == "### a.py (changed; edited or read places)"
    assert lines[1] == "@@ line 389"
    assert lines[2].startswith("def function_388(")
    assert "def function_400(value): return 0" in lines
    assert lines[-1].startswith("def function_412(")
    assert not shown.is_whole


def test_an_edited_function_is_shown_whole_or_with_the_line_that_it_begins_with(
    counter: TokenCounter,
) -> None:
    functions = [
        [f"def run_{n}(path: str) -> int:", *(f"    {n} + {line}" for line in range(30))]
        for n in range(60)
    ]
    text = "\n".join(line for function in functions for line in function)
    calls = [("read", {"path": "a.py"}, numbered(text.split("\n"))), edit("    7 + 20", "    8")]
    (shown,) = choose_files([file_after(*calls)], 1_600, counter, None)
    assert "\n".join([*functions[7][:21], "    8", *functions[7][22:]]) in shown.text
    (shown,) = choose_files([file_after(*calls)], 200, counter, None)
    assert "\n    8" in shown.text
    assert re.search(
        r"^@@ line 2\d\d, in def run_7\(path: str\) -> int:$", shown.text, re.MULTILINE
    )


def test_the_numbers_that_a_file_is_said_to_show_are_those_of_the_lines_shown() -> None:
    shown = shown_of_long_methods()
    assert ", in " in shown.text
    lines = methods_after_edits()
    spans = ["\n".join(lines[first - 1 : last]) for first, last in shown.spans]
    _, *parts = re.split(r"\n?^@@ line \d+[^\n]*\n", shown.text, flags=re.MULTILINE)
    assert spans == parts
    assert shown.where.startswith(f"lines {shown.spans[0][0]}-{shown.spans[0][1]}, ")


def test_long_titles_above_the_parts_of_a_file_keep_to_the_room() -> None:
    assert ExactCounter().count_text(shown_of_long_methods().text) <= 1_000


def shown_of_long_methods() -> ShownFile:
    """A file with an edit in each of its methods, in 1,000 tokens."""
    calls = [("read", {"path": "a.py"}, numbered(METHODS))]
    calls += [edit(f"    step({n}, 9)\n", f"    leap({n})\n") for n in range(30)]
    (shown,) = choose_files([file_after(*calls)], 2_000, ExactCounter())
    return shown


METHODS = [
    line
    for n in range(30)
    for line in (
        f"def run_{n}({', '.join(f'a{n}_{at}: B{at}[C{at}]' for at in range(9))}) -> None:",
        *(f"    step({n}, {at})" for at in range(20)),
    )
]


def methods_after_edits() -> list[str]:
    return [re.sub(r"step\((\d+), 9\)", r"leap(\1)", line) for line in METHODS]


def test_where_there_is_less_room_fewer_lines_are_around_the_edited_place(
    counter: TokenCounter,
) -> None:
    (shown,) = choose_files([file_after(*long_file())], 200, counter, None)
    assert counter.count_text(shown.text) <= 200
    assert "def function_400(value): return 0" in shown.text
    assert "@@ line 397" in shown.text


def test_of_many_edits_the_newest_are_shown(counter: TokenCounter) -> None:
    calls = long_file()[:1]
    for number in range(0, 800, 40):
        old = f"def function_{number}(value): return value + {number}"
        calls.append(edit(old, old.replace("return value", "return  -value")))
    (shown,) = choose_files([file_after(*calls)], 160, counter, None)
    places = [line for line in shown.text.split("\n") if "return  -value" in line]
    assert 1 < len(places) < 10
    assert places[-1].startswith("def function_760(")
    assert places == [_changed(760 - 40 * back) for back in reversed(range(len(places)))]


def _changed(number: int) -> str:
    return f"def function_{number}(value): return  -value + {number}"


def test_what_one_file_takes_leaves_room_for_others() -> None:
    counter = ExactCounter()
    new = "\n".join(f"def test_{number}(): assert {number} == {number}" for number in range(600))
    big: list[Call] = [("read", {"path": "big.py"}, WHOLE), edit("line 1\n", new, "big.py")]
    (shown,) = choose_files([file_after(*big)], 20_000, counter, None)
    assert 0.8 < counter.count_text(shown.text) / (20_000 * FILE_SHARE) <= 1
    assert "def test_0():" in shown.text


def test_a_file_whose_last_writing_stays_in_the_context_takes_a_line(
    counter: TokenCounter,
) -> None:
    calls: list[Call] = [("write", {"path": "a.py", "content": WHOLE}, "ok")]
    file = file_after(*calls)
    staying = frozenset({file.written_at})
    (shown,) = choose_files([file], 2_000, counter, verbatim=staying)
    assert shown.text == "### a.py (changed; whole in the newest messages)"
    assert shown.is_whole
    later = file_after(*calls, edit("line 3", "line three"))
    (shown,) = choose_files([later], 2_000, counter, verbatim=staying)
    assert "line three" in shown.text


def test_a_file_that_was_written_and_is_too_long_shows_its_beginning(
    counter: TokenCounter,
) -> None:
    lines = "\n".join(f"line {number}" for number in range(1, 800))
    big: Call = ("write", {"path": "big.py", "content": lines}, "")
    small: Call = ("write", {"path": "small.py", "content": "x = 1"}, "")
    beginning, last = choose_files(files_after(small, big), 300, counter)
    assert last.path == "small.py"
    assert beginning.text.startswith("### big.py (changed; the beginning)\n@@ line 1\nline 1\n")
    assert not beginning.is_whole
    assert not beginning.shows(["line 799"])
    committed = files_after(small, big, bash("git commit -qam x"))
    assert shown_paths(committed, 300, counter) == ["small.py"]
    assert shown_paths(files_after(small), 20, counter) == []


def test_all_files_together_keep_to_the_room(counter: TokenCounter) -> None:
    calls: list[Call] = [
        ("write", {"path": f"f{number}.py", "content": WHOLE}, "") for number in range(12)
    ]
    for room in (100, 500, 1_000, 5_000):
        shown = choose_files(files_after(*calls), room, counter, None)
        assert sum(counter.count_text(file.text) for file in shown) <= room
    assert len(shown) == 12


def test_the_disk_completes_a_file_that_holds_every_line_the_log_knows(
    counter: TokenCounter,
) -> None:
    part: Call = ("read", {"path": "a.py", "offset": 5, "limit": 2}, numbered(LINES[4:6], 5))
    asked: list[str] = []

    def on_disk(path: str) -> str:
        asked.append(path)
        return WHOLE + "\n"

    (shown,) = choose_files([file_after(part, part)], 1_000, counter, on_disk, named="In a.py:")
    assert shown.text == f"### a.py (read 2 times; whole)\n{WHOLE}"
    assert shown.is_whole
    assert asked == ["a.py"]


def test_a_file_that_is_gone_is_shown_as_far_as_it_was_read(counter: TokenCounter) -> None:
    part: Call = ("read", {"path": "a.py", "offset": 5, "limit": 2}, numbered(LINES[4:6], 5))
    files = [file_after(part, part)]
    (shown,) = choose_files(files, 1_000, counter, lambda _: None, named="In a.py:")
    assert shown.text.endswith("\nline 5\nline 6")


@pytest.mark.parametrize(
    "call", [READ, ("read", {"path": "a.py", "offset": 5}, numbered(LINES[4:], 5))]
)
def test_a_file_that_differs_on_the_disk_is_shown_as_it_is_there(
    call: Call, counter: TokenCounter
) -> None:
    files = [file_after(call, call)]
    (same,) = choose_files(files, 1_000, counter, lambda _: WHOLE, named="In a.py:")
    assert same.text == f"### a.py (read 2 times; whole)\n{WHOLE}"
    other = WHOLE.replace("line 6", "else")
    (changed,) = choose_files([file_after(call, call)], 1_000, counter, lambda _: other)
    note = "(changed outside since you last saw it)"
    assert changed.text == f"### a.py (read 2 times; whole)\n{note}\n{other}"
    assert changed.is_whole


def test_a_written_file_that_differs_on_the_disk_is_shown_as_it_is_there(
    counter: TokenCounter,
) -> None:
    wrote: Call = ("write", {"path": "a.py", "content": "x = 1\n"}, "ok")
    file = file_after(wrote)
    staying = frozenset({file.written_at})
    (same,) = choose_files([file], 1_000, counter, lambda _: "x = 1\n", verbatim=staying)
    assert same.text == "### a.py (changed; whole in the newest messages)"
    file = file_after(wrote)
    for _ in range(2):  # asked again, the answer is the same
        (other,) = choose_files(
            [file], 1_000, counter, lambda _: "x = 1\ny = 2\n", verbatim=staying
        )
        assert other.text == "### a.py (changed; whole)\nx = 1\ny = 2"


def test_a_command_that_changes_most_lines_leaves_the_text_on_the_disk(
    counter: TokenCounter,
) -> None:
    ticked = WHOLE.replace("line", "[x] line")
    file = file_after(READ, bash("sed -i 's/line/[x] line/' a.py"))
    (shown,) = choose_files([file], 1_000, counter, lambda _: ticked)
    assert shown.text == f"### a.py (changed; whole)\n{ticked}"


def test_files_whose_changes_are_committed_come_last(counter: TokenCounter) -> None:
    files = files_after(
        ("write", {"path": "open.py", "content": "x = 1"}, ""),
        ("write", {"path": "done.py", "content": "y = 1"}, ""),
        bash("git commit -qam done"),
        ("edit", {"path": "open.py", "old": "x", "new": "z"}, ""),
        ("read", {"path": "done.py"}, "y = 1"),
    )
    assert [file.path for file in files] == ["done.py", "open.py"]
    shown = choose_files(files, 1_000, counter, None)
    assert [file.path for file in shown] == ["open.py", "done.py"]


def test_a_later_session_knows_the_files_that_were_shown_and_goes_on_from_them(
    counter: TokenCounter,
) -> None:
    files = files_after(READ, edit("line 7", "seven"), bash("cat once.py", "x"))
    known = files_for_later(
        files, {file.path for file in choose_files(files, 2_000, counter, None)}
    )
    assert [file.path for file in known] == ["a.py"]
    (again,) = FileReader(FOLDERS, known).read(())
    assert (again.text, again.is_whole, again.is_changed, again.places) == (
        WHOLE.replace("line 7", "seven"),
        True,
        True,
        ["seven"],
    )
    (later,) = FileReader(FOLDERS, known).read(called(edit("seven", "VII")))
    assert later.text == WHOLE.replace("line 7", "VII")


def test_only_a_number_before_a_line_is_no_part_of_it() -> None:
    numbered, plain = "7\tx = 1", "retry 3: later"
    assert plain_lines(f"{numbered}\n{plain}") == [(numbered, "x = 1"), (plain, plain)]


def test_a_file_that_the_model_only_read_may_have_changed_outside(counter: TokenCounter) -> None:
    view: Call = ("read", {"path": "a.py"}, numbered(["x = 1", "y = 2"]))
    change: Call = ("edit", {"path": "a.py", "old": "x = 1", "new": "x = 2"}, "ok")
    note = "(changed outside since you last saw it)"
    (read,) = choose_files([file_after(view, view)], 1_000, counter, lambda _: "x = 9\n")
    assert note in read.text
    (edited,) = choose_files([file_after(view, change)], 1_000, counter, lambda _: "x = 9\n")
    assert note not in edited.text


@each_row(
    ("command", "note"),
    [
        ("git commit -qam x", ""),
        ("mix credo a.ex | tail -5; xxd b; while read one; do md5 $one; done", ""),
        ("sed -i 's/1/2/' b.py; python gen.py", ""),
        ("cd src && git add . && git push", ""),
        ("npm install", ""),
        ("npm install -g left-pad", ""),
        ("npm install left-pad", "perhaps older than this change: npm install left-pad"),
        ("git pull && make", "perhaps changed since, by $ git pull"),
    ],
)
def test_a_file_is_in_doubt_only_after_a_command_that_is_known_to_write_it(
    command: str, note: str
) -> None:
    view: Call = ("read", {"path": "package.json"}, numbered(["{", "}"]))
    file = next(file for file in files_after(view, bash(command)) if file.path == "package.json")
    assert file.doubt == note
    later = files_for_later([file], {"package.json"})
    assert FileReader(FOLDERS, later).read(())[0].doubt == note
    *_, seen = sorted(files_after(view, bash(command), view), key=lambda one: one.path)
    assert not seen.doubt


def commit_of(commit: str) -> Call:
    return ("bash", {"command": "git commit -qam x"}, f"[main {commit}] x")


PART: Call = ("read", {"path": "a.py", "offset": 5, "limit": 3}, numbered(LINES[4:7], 5))
SED: Call = ("bash", {"command": "sed -i s/7/x/ a.py"}, "")


@each_row(
    ("calls", "note"),
    [
        ((PART, SED), "perhaps older than this change: sed -i s/7/x/ a.py"),
        ((PART, SED, PART), ""),
        ((READ, SED, PART), "perhaps older than this change: sed -i s/7/x/ a.py"),
        (
            (
                PART,
                SED,
                ("read", {"path": "a.py", "offset": 4}, numbered(["line x", *LINES[4:9]], 4)),
            ),
            "",
        ),
        ((PART, SED, ("bash", {"command": "git reset --hard"}, "HEAD is now at 1")), ""),
        (
            (PART, SED, commit_of("1a2b3c4"), ("bash", {"command": "git reset --hard @~1"}, "")),
            "perhaps changed since, by $ git reset --hard @~1",
        ),
    ],
)
def test_a_file_is_in_doubt_until_its_lines_are_seen_or_the_change_is_thrown_away(
    calls: Sequence[Call], note: str
) -> None:
    assert file_after(*calls).doubt == note


def test_a_file_that_reads_differently_on_the_disk_is_shown(counter: TokenCounter) -> None:
    view: Call = ("read", {"path": "package.json"}, numbered(["{", "}"]))
    file = file_after(view, bash("npm install left-pad"))
    (shown,) = choose_files([file], 1_000, counter, lambda _: '{\n"left-pad": 1\n}\n')
    assert "left-pad" in shown.text
    assert choose_files([file_after(view)], 1_000, counter, lambda _: "{\n}\n") == []
    cut: Call = ("read", {"path": "a.json"}, numbered(["x" * 600 + "…", "}"]))
    assert choose_files([file_after(cut)], 1_000, counter, lambda _: "x" * 900 + "\n}\n") == []


def test_what_another_agent_adds_for_the_model_is_no_part_of_the_file() -> None:
    reminder = "\n<system-reminder>\nA long text.\n\nOf several lines.\n</system-reminder>\n"
    file = file_after(("read", {"path": "a.md"}, numbered(["one", "two"]) + reminder))
    assert file.text == "one\ntwo"
    assert file.is_whole


def test_a_file_at_work_that_was_written_whole_may_take_all_the_space(
    counter: TokenCounter,
) -> None:
    text = "\n".join(f"value_{number} = {number}" for number in range(1_200))
    size = counter.count_text(text)
    written: Call = ("write", {"path": "a.py", "content": text}, "")
    (shown,) = choose_files([file_after(written)], size + 100, counter, None)
    assert shown.is_whole
    committed = file_after(written, bash("git commit -qam done"))
    assert choose_files([committed], size + 100, counter, None) == []


def test_an_edited_file_shrinks_to_its_places_when_it_is_committed(counter: TokenCounter) -> None:
    calls: list[Call] = [
        (
            "read",
            {"path": "a.py"},
            numbered([f"value_{number} = {number}" for number in range(200)]),
        ),
        edit("value_7 = 7", "value_7 = 8"),
    ]
    (open_file,) = choose_files([file_after(*calls)], 20_000, counter, None)
    assert open_file.is_whole
    (done,) = choose_files([file_after(*calls, bash("git commit -qam x"))], 20_000, counter, None)
    assert not done.is_whole
    assert "value_7 = 8" in done.text


def test_files_that_a_program_keeps_for_itself_are_shown_only_if_they_changed(
    counter: TokenCounter,
) -> None:
    path = "/home/u/.other/results/1.txt"
    reads = [("read", {"path": path}, "one\ntwo\nthree")] * 2
    assert choose_files(files_after(*reads), 1_000, counter) == []
    wrote = ("write", {"path": path, "content": "one\ntwo"}, "Wrote it.")
    assert len(choose_files(files_after(*reads, wrote), 1_000, counter)) == 1


@pytest.mark.parametrize(
    ("path", "awaits"), [("src/a.py", True), ("/src/b.py", True), ("/home/me/.plans/x.md", False)]
)
def test_a_plan_that_a_program_keeps_for_itself_awaits_no_commit(path: str, awaits: bool) -> None:
    assert (
        file_after(("write", {"path": path, "content": "x = 1"}, "Written.")).awaits_commit
        is awaits
    )


def test_a_file_that_another_tool_changed_may_have_lines_from_before() -> None:
    talk = begun()
    talk.tool("read", {"path": "src/a.py"}, "one\ntwo\n")
    call = ToolCall(id="c", name="rename_symbol", arguments={"symbol": "one"})
    talk.reply("", call)
    talk.result(call, "renamed", files=FileTouches(edited=("src/a.py",)))
    (file,) = FileReader(FOLDERS).read(read_history(talk.path))
    assert (file.is_changed, file.unseen) == (True, ["rename_symbol one"])


def test_an_edit_that_a_program_refused_without_a_mark_changes_nothing() -> None:
    talk = begun()
    talk.tool("read", {"path": "src/a.py"}, "one\ntwo\n", is_foreign=True)
    arguments: JsonObject = {"path": "src/a.py", "old_str": "one", "new_str": "three"}
    refused = "No replacement was performed, old_str `one` is ambiguous."
    talk.tool(
        "str_replace_editor", {"command": "str_replace", **arguments}, refused, is_foreign=True
    )
    (file,) = FileReader(FOLDERS).read(read_history(talk.path))
    assert (file.is_changed, file.text) == (False, "one\ntwo")


def test_what_a_command_wrote_stands_though_it_moved_another_file() -> None:
    command = "cat <<'EOF' > fix.py\nx = 1\nEOF\npython fix.py < a.py > a.tmp && mv a.tmp a.py"
    files = {file.path: file for file in files_after(READ, bash(command))}
    assert (files["fix.py"].text, files["fix.py"].unseen) == ("x = 1", [])
    assert files["a.py"].unseen


def test_a_view_with_lines_inserted_near_its_end_loses_none_of_those_behind_it() -> None:
    before: Call = ("read", {"path": "a.py", "offset": 1, "limit": 30}, numbered(LINES[:30]))
    grown = [*LINES[5:15], "inserted", *LINES[15:18]]  # two lines came before it, and one in it
    view: Call = ("read", {"path": "a.py", "offset": 8, "limit": 14}, numbered(grown, 8))
    *_, last = file_after(before, view).runs
    assert last == (8, [*grown, *LINES[18:30]])


def test_behind_a_view_whose_last_lines_are_new_is_a_gap() -> None:
    before: Call = ("read", {"path": "a.py", "offset": 1, "limit": 30}, numbered(LINES[:30]))
    grown = [*LINES[5:15], "inserted", "and another"]
    view: Call = ("read", {"path": "a.py", "offset": 8, "limit": 12}, numbered(grown, 8))
    assert file_after(before, view).runs[-2:] == [(8, grown), (22, LINES[19:30])]


def test_what_is_read_after_a_copy_is_not_older_than_it() -> None:
    part: Call = ("read", {"path": "b.py", "offset": 3, "limit": 2}, numbered(LINES[2:4], 3))
    files = files_after(bash("cp a.py b.py"), part)
    assert [file.doubt for file in files if file.path == "b.py"] == [""]
