"""What failed, what was done about it, and what is open: until the same succeeds on the target."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.compaction.sections.failures import (
    FailureReader,
    failures_that_fit,
    has_failed,
    open_errors,
)
from agent_tui.compaction.sections.file_states import FileReader
from agent_tui.compaction.sections.history import Done, HistoryEvent, read_history
from agent_tui.messages import FileTouches, Job, JsonObject, ToolDetails
from agent_tui.sessions.entries import Failure
from agent_tui.tokens import TokenCounter
from tests.compaction.sections.scene import FOLDERS, begun, ran, run
from tests.support.rows import each_row
from tests.support.talk import Talk

BAD = "collected 3 items\nE   ValueError: bad number\n1 failed, 2 passed"


def test_a_failure_is_told_with_its_command_and_its_message() -> None:
    (error,) = open_errors(ran(("cd /project && pytest a.py", BAD, 1)))
    assert error == "$ pytest a.py => E ValueError: bad number | 1 failed, 2 passed"


@pytest.mark.parametrize(
    ("failed", "later"),
    [
        ("pytest tests/a.py::test_x", "pytest tests/a.py"),
        ("pytest tests/a.py", "pytest tests"),
        ("go test ./pkg", "go test ./..."),
        ("go test ./pkg/sub", "go test ./pkg/..."),
        ("make && pytest", "make && pytest"),
    ],
)
def test_a_later_success_on_what_holds_the_target_closes_it(failed: str, later: str) -> None:
    assert open_errors(ran((failed, BAD, 1), (later, "ok", 0))) == ()


@each_row(
    ("failed", "later"),
    [
        ("go test ./pkg/...", "go test ./other/..."),
        ("make test", "make"),
        ("npm run test", "npm run build"),
        ("make && pytest", "make"),
        ("pytest tests", "pytest tests/a.py"),
        ("pytest tests/ab.py", "pytest tests/a"),
        ("pytest tests/a.py", "pytest --ignore tests"),
        ("pytest tests/a.py", "pytest --deselect tests"),
        ("pytest tests/a.py", "pytest -k tests"),
        ("pytest tests/a.py", "pytest -q --ignore tests"),
        ("ruff check src/a.py", "ruff check --exclude src"),
    ],
)
def test_a_later_success_of_another_task_or_part_leaves_it_open(failed: str, later: str) -> None:
    assert len(open_errors(ran((failed, BAD, 1), (later, "ok", 0)))) == 1


@pytest.mark.parametrize("later", ["pytest a.py", "uv run pytest a.py -q | tail", "pytest"])
def test_a_later_success_on_the_same_target_or_on_all_closes_it(later: str) -> None:
    assert open_errors(ran(("pytest a.py", BAD, 1), (later, "3 passed", 0))) == ()


@pytest.mark.parametrize("later", ["pytest b.py", "ruff check a.py", "pytest -k one", "ls a.py"])
def test_another_success_leaves_it_open(later: str) -> None:
    assert len(open_errors(ran(("pytest a.py", BAD, 1), (later, "fine", 0)))) == 1


def test_the_success_of_a_narrower_run_leaves_the_failure_of_all_open() -> None:
    assert len(open_errors(ran(("pytest", BAD, 1), ("pytest a.py", "3 passed", 0)))) == 1


def test_a_failure_after_the_success_is_open_again() -> None:
    events = ran(("pytest", BAD, 1), ("pytest", "3 passed", 0), ("pytest", BAD, 1))
    assert len(open_errors(events)) == 1


def test_the_same_run_that_fails_again_is_told_once_with_its_newest_message() -> None:
    events = ran(
        ("pytest a.py", BAD, 1),
        ("make", "error: no rule", 2),
        ("pytest -q a.py", "E KeyError: x", 1),
    )
    assert open_errors(events) == (
        "$ make => error: no rule",
        "$ pytest -q a.py => E KeyError: x",
    )


def test_a_search_without_a_hit_is_an_answer_and_no_error() -> None:
    assert open_errors(ran(("grep -rn name src", "", 1), ("cat b.py", "b.py: not there", 1))) == ()


def test_a_look_that_shows_an_error_counts() -> None:
    assert len(open_errors(ran(("git diff", "fatal Error: bad object", 128)))) == 1


def test_a_look_at_a_text_about_errors_that_ends_otherwise_is_none() -> None:
    shown = (
        "It raises a TransformError if it cannot.\nhead: cannot open 'x' for reading\n[exit code 1]"
    )
    assert open_errors(ran(("sed -n 1,9p docs.rst; head x", shown, 1))) == ()


def test_an_exit_code_alone_is_an_error_only_where_the_output_speaks_of_one() -> None:
    talk = begun()
    talk.tool("bash", {"command": "make a"}, "all is well", exit_code=1)
    talk.tool("bash", {"command": "make b"}, "error: it broke", exit_code=1)
    assert open_errors(read_history(talk.path)) == ("$ make b => error: it broke",)


def test_the_exit_code_of_a_filter_after_tests_that_passed_is_no_failure() -> None:
    talk = begun()
    warned = "CacheWarning: cache could not write: [Errno 30] Read-only file system"
    command = "pytest -q 2>&1 | tail -9; git log | grep Version"
    run(talk, command, f"lib/a.py:475: {warned}\n25 passed, 1 warning in 3.87s", 1)
    assert failures(talk) == ()
    run(talk, command, "error: no disk\nFAILED a.py::test_a\n1 failed, 24 passed in 3.87s", 1)
    assert len(failures(talk)) == 1


def test_what_the_person_refused_or_stopped_is_no_error() -> None:
    assert open_errors(ran(("pytest", "Aborted.", 130), ("make", "The person said no.", 1))) == ()


def test_a_failed_edit_is_closed_by_one_of_the_same_file() -> None:
    talk = begun()
    arguments: JsonObject = {"path": "src/a.py", "old": "x", "new": "y"}
    talk.tool("edit", arguments, "Error: `old` is not in the file.", is_error=True)
    failed = read_history(talk.path)
    assert open_errors(failed) == ("edit src/a.py => Error: `old` is not in the file.",)
    talk.tool("edit", {**arguments, "path": "src/b.py"}, "Edited.")
    assert open_errors(read_history(talk.path)) == open_errors(failed)
    talk.tool("edit", arguments, "Edited.")
    assert open_errors(read_history(talk.path)) == ()


def test_what_a_parent_session_handed_on_is_closed_in_the_same_way() -> None:
    earlier = (
        "$ pytest a.py => E KeyError: x",
        "edit src/a.py => no such text",
        "$ make => error: x",
    )
    assert open_errors((), earlier) == earlier
    talk = begun()
    run(talk, "pytest -q a.py", "1 passed")
    talk.tool("edit", {"path": "src/a.py"}, "Edited.")
    assert open_errors(read_history(talk.path), earlier) == ("$ make => error: x",)


def test_only_the_newest_dozen_is_kept() -> None:
    errors = open_errors(ran(*((f"pytest t{number}.py", BAD, 1) for number in range(20))))
    assert [error.split()[2] for error in errors] == [f"t{number}.py" for number in range(8, 20)]


def failures(talk: Talk, *earlier: Failure) -> tuple[Failure, ...]:
    events = read_history(talk.path)
    return FailureReader(FOLDERS, earlier).read(events, FileReader(FOLDERS).read(events))


def told(talk: Talk, counter: TokenCounter, notes: str = "", room: int = 2_000) -> list[str]:
    return failures_that_fit(
        failures(talk), notes=notes, elsewhere="", room_tokens=room, counter=counter
    )


def change(talk: Talk, path: str, old: str, new: str) -> None:
    files = FileTouches(edited=(path,))
    talk.tool("edit", {"path": path, "old": old, "new": new}, f"Edited {path}.", files=files)


def mended() -> Talk:
    """A test that failed twice, each time with another error, until an edit made it pass."""
    talk = begun()
    run(talk, "pytest a.py", "E   KeyError: 'x'\n1 failed", 1)
    talk.reply("The key is missing.")
    change(talk, "/project/src/a.py", "d['x']", "d.get('x')")
    run(talk, "pytest a.py", "E   TypeError: None\n1 failed", 1)
    run(talk, "cat src/a.py", "d.get('x')")
    change(talk, "/project/src/a.py", "d.get('x')", "d.get('x', 0)")
    run(talk, "pip install six", "ok")
    run(talk, "pytest a.py", "1 passed")
    change(talk, "/project/src/b.py", "1", "2")
    return talk


def test_what_failed_is_told_with_its_lines_and_what_was_done_until_it_passed(
    counter: TokenCounter,
) -> None:
    first, second = failures(mended())
    assert told(mended(), counter) == [
        f"- $ pytest a.py: passed later [recall {second.entry_id}]",
        "  E   TypeError: None",
        "  until then: edit a.py: `d.get('x')` -> `d.get('x', 0)`; $ pip install six",
        f"- $ pytest a.py: failed in another way later [recall {first.entry_id}]",
        "  E   KeyError: 'x'",
        "  tried: edit a.py: `d['x']` -> `d.get('x')`",
    ]


NEXT = "/project/src/a.py"


@each_row(
    ("after", "left"),
    [
        ((), "edit a.py: `x = 1` -> `x = 2 ⏎ y = 3`"),
        ((("x = 2\ny = 3", "x = 1\ny = 3"),), "edit a.py: nothing -> `y = 3`"),
        ((("x = 2\ny = 3", "x = 9"),), None),
        ((("x = 2\ny = 3", "x = 1"),), None),
        (("git checkout src/a.py",), None),
        (("git stash",), None),
        (("git commit -am x", "git reset --hard"), "edit a.py: `x = 1` -> `x = 2 ⏎ y = 3`"),
        (("git commit -am x", "git reset --hard HEAD~1"), None),
        (("git commit -am x", "git pull --rebase"), "edit a.py: `x = 1` -> `x = 2 ⏎ y = 3`"),
        (("git checkout src/b.py",), "edit a.py: `x = 1` -> `x = 2 ⏎ y = 3`"),
    ],
)
def test_what_cured_a_failure_is_told_as_far_as_it_still_stands(
    after: Sequence[Any], left: str | None
) -> None:
    talk = begun()
    run(talk, "pytest a.py", BAD, 1)
    change(talk, NEXT, "x = 1", "x = 2\ny = 3")
    talk.tool("edit", {"path": NEXT, "old": "z", "new": "w"}, "No.", is_error=True)
    run(talk, "pytest a.py", "1 passed")
    for step in after:
        if isinstance(step, str):
            run(talk, step, "[main 1234567] x" if "commit" in step else "done")
        else:
            change(talk, NEXT, *step)
    first = failures(talk)[0]
    assert (first.ending, first.steps) == ("passed", (left,) if left else ())


def test_a_command_whose_change_git_threw_away_cured_nothing() -> None:
    talk = begun()
    run(talk, "pytest a.py", BAD, 1)
    run(talk, "sed -i s/1/2/ src/a.py")
    run(talk, "pytest a.py", "1 passed")
    assert failures(talk)[0].steps == ("$ sed -i s/1/2/ src/a.py",)
    run(talk, "git restore .")
    assert failures(talk)[0].steps == ()


def test_the_same_failure_again_is_told_once_with_its_count(counter: TokenCounter) -> None:
    talk = begun()
    for number in range(3):
        run(talk, "make", "error: no rule", 2)
        change(talk, "Makefile", f"{number}", f"{number + 1}")
    assert told(talk, counter)[0].startswith("- $ make failed 3 times: open [recall ")


def test_a_failure_is_not_open_once_a_file_that_it_names_has_changed(counter: TokenCounter) -> None:
    talk = begun()
    run(talk, "pytest tests", "tests/test_a.py:3: in f\nE   KeyError: 'x'", 1)
    change(talk, "/project/src/other.py", "1", "2")
    assert len(open_errors(read_history(talk.path), folders=FOLDERS)) == 1
    change(talk, "/project/tests/test_a.py", "1", "2")
    assert open_errors(read_history(talk.path), folders=FOLDERS) == ()
    assert "not tried again since test_a.py changed" in told(talk, counter)[0]
    run(talk, "pytest tests", "tests/test_a.py:4: in g\nE   KeyError: 'y'", 1)
    assert len(open_errors(read_history(talk.path), folders=FOLDERS)) == 1


def test_a_failure_stays_open_whatever_else_changes(counter: TokenCounter) -> None:
    talk = begun()
    run(talk, "git -C /project gc --dry-run", "error: unknown option `dry-run'", 129)
    change(talk, "/project/hooks/pre-push", "1", "2")
    run(talk, "tsc", "copies/a.ts(1,2): error TS2305: no member 'x'", 1)
    change(talk, "/project/copies/a.ts", "1", "2")
    assert "not tried again since a.ts changed" in "\n".join(told(talk, counter))
    run(talk, "rm -rf copies")
    assert {one.ending for one in failures(talk)} == {"open"}
    assert not any(one.since for one in failures(talk))


def test_tests_that_a_pipe_lets_end_well_failed_if_their_count_says_so() -> None:
    events = ran(("pytest a.py | tail -3", "E   KeyError: 'x'\n2 failed, 1 passed", 0))
    assert open_errors(events) == (
        "$ pytest a.py | tail -3 => E KeyError: 'x' | 2 failed, 1 passed",
    )
    assert open_errors(ran(("pytest | tail -1", "0 failed, 3 passed", 0))) == ()


@each_row(
    ("failed", "later", "clause"),
    [
        (
            "lint run -D ./a",
            "git diff > x && lint run ./a",
            "passed later with other options: `lint run ./a`",
        ),
        ("lint run ./a", "make && lint run ./a 2>&1 | head", "passed later"),
        ("pytest a.py", "uv run pytest a.py", "passed later as `uv run pytest a.py`"),
        ("pytest -k one a.py", "pytest a.py", "passed later with other options: `pytest a.py`"),
        ("go test ./a", "go test ./... && go vet ./a", "passed later within `go test ./...`"),
        ("pytest tests/a.py", "pytest tests", "passed later within `pytest tests`"),
        ("x.sh x.sh", "x.sh x.sh -v", "passed later with other options: `x.sh x.sh -v`"),
        ("go test ./a", "mise run test", "not run again, but `mise run test` passed since"),
        ("make check", "cargo check", "not run again, but `cargo check` passed since"),
    ],
)
def test_only_the_same_program_on_the_target_passed_later(
    counter: TokenCounter, failed: str, later: str, clause: str
) -> None:
    talk = begun()
    run(talk, failed, "Error: unknown flag: -D", 3)
    run(talk, later, "0 issues.")
    assert f"$ {failed}: {clause} [recall" in told(talk, counter)[0]


def test_what_an_earlier_version_passed_on_passed_later(counter: TokenCounter) -> None:
    for later in ("", "$ make -j"):
        old = Failure(label="$ make", lines=("error: x",), ending="passed", later=later)
        found = failures(begun(), old)
        lines = failures_that_fit(found, notes="", elsewhere="", room_tokens=99, counter=counter)
        assert lines[0] == "- $ make: passed later"


def test_a_success_that_a_filter_hides_ends_no_other_failure(counter: TokenCounter) -> None:
    talk = begun()
    run(talk, "git fsck --full | head -3", "error: 082c: invalid sha1 pointer in cache-tree", 1)
    run(talk, "git fsck --full | grep -c 'broken link'", "0")
    assert "git fsck --full | head -3: open" in told(talk, counter)[0]
    run(talk, "git fsck --full | tail -1", "done")
    assert "git fsck --full | head -3: passed later [" in told(talk, counter)[0]


def test_failed_tests_that_pass_in_a_narrower_run_are_told_so(counter: TokenCounter) -> None:
    talk = begun()
    failed = "FAILED tests/a/test_x.py::test_y[a b] - KeyError\n14 failed, 20 passed"
    run(talk, "git log | head; pytest -q | tail -8", failed)
    assert ": open [" in told(talk, counter)[0]
    run(talk, "pytest -q tests/b tests/c | tail -5; ls", "9 passed")
    assert ": open [" in told(talk, counter)[0]
    run(talk, "pytest -q tests/b tests/a | tail -5; git status --short", "29 passed\n M a.py")
    assert (
        ": the tests named here passed later as `pytest -q tests/b tests/a"
        in (told(talk, counter)[0])
    )
    run(talk, "pytest -q | tail -1", "34 passed")
    assert ": passed later" in told(talk, counter)[0]


def test_a_failure_of_a_file_that_the_session_made_and_removed_is_dropped() -> None:
    talk = begun()
    change(talk, "/project/src/a.ts", "1", "2")
    run(talk, "tsc", "src/a.ts(1,2): error TS2305: no member 'x'", 1)
    run(talk, "lint src", "src/b.ts:1:2: error: src/a.ts exports nothing", 1)
    run(talk, "rm src/a.ts")
    assert [one.label for one in failures(talk)] == ["$ lint src"]


LOCKED = """\
Rebasing (3/4) error: Unable to create '/project/.git/index.lock': File exists.

Another git process seems to be running in this repository, e.g.
an editor opened by 'git commit'. Please make sure all processes
are terminated then try again.

hint: Could not execute the todo command"""


def test_a_file_in_the_way_that_was_removed_settles_the_failure(counter: TokenCounter) -> None:
    talk = begun()
    run(talk, "git fetch && git rebase origin/main", LOCKED, 1)
    run(talk, "rm -f .git/index.lock && git rebase --continue", "Successfully rebased")
    (failure,) = failures(talk)
    assert told(talk, counter) == [
        "- $ git fetch && git rebase origin/main: index.lock was removed since "
        f"[recall {failure.entry_id}]",
        *(f"  {line}" for line in LOCKED.split("\n") if line),
        "  tried: $ rm -f .git/index.lock && git rebase --continue",
    ]
    notes = "- `git rebase`: Unable to create '/project/.git/index.lock': File exists"
    assert f"  {LOCKED.split(chr(10))[2]}" in brief(talk, counter, notes)


SKIPPED = """\
warning: skipped previously applied commit d4616fe
warning: skipped previously applied commit 1aea860
hint: use --reapply-cherry-picks to include skipped commits
Successfully rebased and updated refs/heads/fix."""


def test_of_refused_edits_and_warnings_only_the_newest_are_tracked() -> None:
    talk = begun()
    for number in range(80):
        run(talk, f"lint run ./a{number}", "warning: wet paint")
        details = ToolDetails(ending="declined")
        call: JsonObject = {"path": f"a{number}.py", "old": "a", "new": "b"}
        talk.tool("edit", call, "Refused.", is_error=True, details=details)
    found = FailureReader(FOLDERS).read(read_history(talk.path))
    assert len(found) == 60
    assert [one.label for one in found[-2:]] == ["$ lint run ./a79", "edit a79.py"]


def test_the_warnings_of_a_success_are_told_until_it_runs_without(counter: TokenCounter) -> None:
    talk = begun()
    run(talk, "git fetch origin main && git rebase origin/main", SKIPPED)
    (found,) = failures(talk)
    warned = [
        f"- $ git fetch origin main && git rebase origin/main: passed, but warned "
        f"[recall {found.entry_id}]",
        *(f"  {line}" for line in SKIPPED.split("\n")[:2]),
    ]
    assert told(talk, counter) == warned == brief(talk, counter)
    assert open_errors(read_history(talk.path)) == ()
    run(talk, "pytest", "warning: no tests to run\n1 passed")
    run(talk, "cat notes", "warning: wet paint")
    assert told(talk, counter) == warned
    run(talk, "git fetch origin main && git rebase origin/main", "Successfully rebased")
    assert told(talk, counter) == []


def test_a_failure_whose_files_are_committed_since_is_settled(counter: TokenCounter) -> None:
    talk = begun()
    run(talk, "lint run a.py", "a.py:1:2: permission denied: x", 126)
    change(talk, "/project/a.py", "1", "2")
    assert "not tried again since a.py changed" in told(talk, counter)[0]
    run(talk, "git commit -am x", "[main 1234567] x\n 1 file changed")
    assert "were changed and committed since" in told(talk, counter)[0]
    change(talk, "/project/a.py", "2", "3")
    assert "not tried again since a.py changed" in told(talk, counter)[0]


def test_what_is_over_has_only_the_lines_that_name_the_error(counter: TokenCounter) -> None:
    talk = begun()
    error = "Checked 236 files.\nsrc/a.ts(4,9): error TS2304: no name 'join'\nnpm notice: lifecycle"
    run(talk, "npm run check", error, 1)
    talk.reply("I need to add it.")
    assert len(told(talk, counter)) > 2
    run(talk, "npm run check", "ok")
    assert told(talk, counter)[1:] == ["  src/a.ts(4,9): error TS2304: no name 'join'"]


def test_an_exit_code_without_an_error_is_an_answer() -> None:
    assert open_errors(ran(("gh pr checks 1", "lint\tpass\t1m\nbot\tpending\t0", 8))) == ()
    failed, pending = (
        ("gh pr checks 1", "error: no connection", 1),
        ("gh pr checks 1", "pending", 8),
    )
    assert len(open_errors(ran(failed, pending))) == 1


def test_a_place_in_a_file_beside_an_exit_code_is_an_error() -> None:
    assert len(open_errors(ran(("ruff check", "a.py:1:1: F401 `os` is unused", 1)))) == 1
    assert open_errors(ran(("rg os", "a.py:1:import os", 1))) == ()


def test_refusals_are_told_and_the_users_words_stand_among_the_users_messages(
    counter: TokenCounter,
) -> None:
    talk = begun()
    refused = ToolDetails(refusal="a rule")
    talk.tool("bash", {"command": "cat x"}, "Denied by a rule.", is_error=True, details=refused)
    declined = ToolDetails(ending="declined")
    talk.tool("bash", {"command": "rm -r y"}, "The user declined.", is_error=True, details=declined)
    words = ToolDetails(ending="declined", user_words="Never do that.")
    talk.tool("bash", {"command": "rm -r z"}, "The user declined.", is_error=True, details=words)
    stopped = ToolDetails(ending="cancelled")
    talk.tool("bash", {"command": "sleep 9"}, "error: stopped", is_error=True, details=stopped)
    first, second = failures(talk)
    assert told(talk, counter) == [
        f"- $ rm -r y: refused by the user [recall {second.entry_id}]",
        f"- $ cat x: refused [recall {first.entry_id}]",
        "  Denied by a rule.",
    ]
    assert open_errors(read_history(talk.path)) == ()


@pytest.mark.parametrize("words", ["", "Should it not be the default?"])
def test_a_refused_change_says_what_only_it_would_have_written(
    counter: TokenCounter, words: str
) -> None:
    talk = begun()
    refused = ToolDetails(ending="declined", user_words=words)
    text = "-n, --dry-run\ndry_run = False\nprint(1)"
    write: JsonObject = {"path": "/project/a.py", "content": text}
    edit: JsonObject = {"path": "/project/b.py", "old": "x = 1", "new": "x = 1\nyy = 2"}
    talk.tool("write", write, "No.", is_error=True, details=refused)
    talk.tool("edit", edit, "No.", is_error=True, details=refused)
    first, second = (one.entry_id for one in failures(talk))
    only = "-n, --dry-run ⏎ dry_run = False"
    assert told(talk, counter) == [
        f"- edit b.py: refused by the user [recall {second}]",
        "  would have written: yy = 2",
        f"- write a.py: refused by the user [recall {first}]",
        f"  would have written: {only} ⏎ print(1)",
    ]
    talk.tool("write", {**write, "content": "--apply\nprint(1)"}, "Written.")
    talk.tool("edit", edit, "Edited.")
    assert [one.lines for one in failures(talk)] == [
        (f"would have written: {only}",),
        ("written later",),
    ]


def test_what_the_notes_name_is_not_told_again(counter: TokenCounter) -> None:
    talk = begun()
    message = "E   ValueError: the token at the end of the line is missing"
    run(talk, "pytest a.py", message, 1)
    run(talk, "make all", "error: no rule to make target 'all' in this folder", 2)
    notes = f"- `pytest` fails with `{message[4:]}`: not fixed"
    assert [line for line in told(talk, counter, notes) if line.startswith("- ")] == [
        line for line in told(talk, counter) if line.startswith("- $ make")
    ]


@each_row(
    ("command", "error", "notes", "is_named"),
    [
        ("pytest a.py", "E   KeyError: 'port'", "- a.py: `KeyError` on the port, mended", True),
        ("pytest a.py", "E   KeyError: 'port'", "- `pytest a.py` passes", False),
        ("pytest a.py", "E   KeyError: 'port'", "- KeyError\n- `pytest a.py` passes", False),
        ("pytest tests", "FAILED t/a.py::test_b - assert 1 == 2", "- test_b in tests fails", False),
        ("pytest tests", "FAILED t/a.py::test_b - assert 1 == 2", "- FAILED test_b in tests", True),
        ("pytest tests", "FAILED t/a.py::test_b - assert 1 == 2", "- tests: test_c fails", False),
        ("pytest", "FAILED t/a.py::test_b\n14 failed, 1 passed", "- the 14 failures: cured", True),
        ("pytest", "FAILED t/a.py::test_b\n14 failed, 1 passed", "- 12 failed before", False),
        (
            "npm run check",
            "src/a.ts(5,3): error TS2339: no 'tokensAfter'",
            "- check: TS2339",
            False,
        ),
        ("npm run check", "src/a.ts(5,3): error TS2339: no 'tokensAfter'", "- tokensAfter", False),
        (
            "npm run check",
            "src/a.ts(5,3): error TS2339: no 'tokensAfter'",
            "- the error TS2339 on `tokensAfter`: field removed",
            True,
        ),
        (
            "npm run check",
            "packages/coding-agent/src/core/agent-session.ts(5,3): error: cannot find 'join'",
            "- check: `packages/coding-agent/src/core/agent-session.ts` is done",
            False,
        ),
        ("npm run check", "src/a.ts(5,3): error TS2339: no 'tokensAfter'", "- check, a.ts", False),
        ("make all", "lib/a.c:12: error: expected a bracket", "- a bracket was expected", False),
        ("make all", "lib/a.c:12: error: expected a bracket", "- all: bracket expected", True),
        ("npm run lint", "a.js:5: unused\n1 issues:\nerror: failed", "- lint: 0 issues", False),
        ("git push", "fatal: the remote has other work", "- push: the remote has other work", True),
        (
            "deploy",
            "error: not permitted: the plan is open: you can only read. Describe what you would do",
            "- changes: `not permitted: the plan is open: you can only read.`",
            True,
        ),
        (
            "deploy",
            "error: not permitted: the plan is open: you can only read. Describe what you would do",
            "- while the plan is open: you can only read, it says",
            True,
        ),
        (
            "deploy",
            "CacheWarning: cache could not write path /a/b: [Errno 30] Read-only file system",
            "- `CacheWarning ... Read-only file system` came from the plan",
            True,
        ),
        ("deploy", "error: the disk that holds all parts is full", "- `the parts` are full", False),
        (
            "python -m pytest tests/unit/test_parser.py -q -x --lf",
            "E   TypeError: None is not a number",
            "- `python -m pytest tests/unit/test_parser.py -q -x --lf` failed on a missing key",
            False,
        ),
    ],
)
def test_notes_name_a_failure_in_their_own_words(
    command: str, error: str, notes: str, is_named: bool, counter: TokenCounter
) -> None:
    talk = begun()
    run(talk, command, error, 1)
    assert (told(talk, counter, f"## Errors and fixes\n{notes}") == []) is is_named


def test_text_for_people_that_was_written_last_cured_no_failure(counter: TokenCounter) -> None:
    talk = begun()
    run(talk, "pytest", "usage: unknown option", 2)
    change(talk, "main.py", "a = 1", "option = 1")
    for path in ("README.md", "CHANGELOG"):
        change(talk, path, "Old", f"In {path}: an option")
    run(talk, "pytest", "3 passed", 0)
    steps = [line for line in told(talk, counter) if "until then" in line]
    assert steps == ["  until then: edit main.py: `a = 1` -> `option = 1`"]


def test_open_and_repeated_failures_of_commands_have_priority(counter: TokenCounter) -> None:
    talk = begun()
    run(talk, "make", "error: one of the rules is missing", 2)
    for number in range(9):
        run(talk, f"pytest t{number}.py", f"E   KeyError: {number}", 1)
        run(talk, f"pytest t{number}.py", "1 passed")
    lines = [line for line in told(talk, counter, room=110) if line.startswith("- ")]
    assert 2 < len(lines) < 9
    assert "t8.py" in lines[0]
    assert "make" in lines[-1]


_COMMANDS = ("pytest a.py", "pytest", "make", "npm run check | tail -2", "git push")
_OUTPUTS = (("1 passed", 0), ("E   KeyError: 'x'\n1 failed", 1), ("E   TypeError\n2 failed", 1))
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(_COMMANDS), st.sampled_from(_OUTPUTS)),
        st.tuples(st.just("edit"), st.sampled_from(["a.py", "b.py"])),
        st.tuples(st.just("reply"), st.sampled_from(["I see.", "It is the key."])),
    ),
    max_size=14,
)


def talk_of(steps: Sequence[tuple[str, Any]]) -> Talk:
    talk = begun()
    for what, value in steps:
        match what:
            case "edit":
                change(talk, f"/project/{value}", "1", "2")
            case "reply":
                talk.reply(value)
            case command:
                run(talk, command, *value)
    return talk


@given(steps=_STEPS, room=st.integers(0, 400))
def test_each_failure_is_told_once_within_the_room_and_open_ones_never_passed_later(
    counter: TokenCounter, steps: Sequence[tuple[str, Any]], room: int
) -> None:
    talk = talk_of(steps)
    found = failures(talk)
    failed = [event for event in read_history(talk.path) if is_failure(event)]
    assert sum(one.times for one in found) == len(failed)
    lines = told(talk, counter, room=room)
    assert counter.count_text("\n".join(lines)) <= room
    assert len([line for line in lines if line.startswith("- ")]) <= len(found)
    for one in (one for one in found if one.ending == "open"):
        ids = [entry.id for entry in talk.entries]
        after = read_history(talk.path[ids.index(one.entry_id) + 1 :])
        runs = [event.output for event in after if isinstance(event, Done)]
        same = [o for o in runs if one.label == f"$ {o.action.command}"]
        assert not [output for output in same if not has_failed(output)]


def is_failure(event: HistoryEvent) -> bool:
    return isinstance(event, Done) and has_failed(event.output)


@given(steps=_STEPS, share=st.floats(0, 1))
def test_a_session_that_continues_knows_the_same_failures(
    steps: Sequence[tuple[str, Any]], share: float
) -> None:
    whole = talk_of(steps)
    before = talk_of(steps[: int(len(steps) * share)])
    rest = read_history(whole.path[len(before.path) :])
    again = FailureReader(FOLDERS, failures(before)).read(rest)
    assert [(one.label, one.lines, one.times, one.ending) for one in again] == [
        (one.label, one.lines, one.times, one.ending) for one in failures(whole)
    ]


def test_failures_that_a_parent_session_passed_on_continue() -> None:
    path = mended().path
    whole = failures(mended())
    results = (at for at, entry in enumerate(path) if "toolResult" in entry.model_dump_json())
    for cut in (at + 1 for at in results):
        passed_on = FailureReader(FOLDERS).read(read_history(path[:cut]))
        again = FailureReader(FOLDERS, passed_on).read(read_history(path[cut:]))
        assert [(one.label, one.lines, one.ending) for one in again] == [
            (one.label, one.lines, one.ending) for one in whole
        ]


def test_a_command_that_the_user_refused_keeps_its_lines() -> None:
    command = "git commit -m \"$(cat <<'EOF'\nA subject\n\n" + "A line.\n" * 9 + 'EOF\n)"'
    talk = begun()
    words = ToolDetails(ending="declined", user_words="Not yet.")
    talk.tool("bash", {"command": command}, "Refused.", is_error=True, details=words)
    (failure,) = FailureReader(FOLDERS).read(read_history(talk.path))
    assert failure.ending == "declined"
    lines = [line for line in command.split("\n") if line]
    assert failure.lines == (*lines[:4], "[...]", *lines[-4:])


def test_a_failed_call_names_its_file_in_the_working_folder() -> None:
    talk = begun()
    talk.tool("edit", {"path": "/project/src/a.py"}, "error: text not found", is_error=True)
    (failure,) = FailureReader(FOLDERS).read(read_history(talk.path))
    assert failure.label == "edit src/a.py"
    talk.tool("edit", {"path": "src/a.py", "old": "a", "new": "b"}, "Edited.")
    (failure,) = FailureReader(FOLDERS).read(read_history(talk.path))
    assert failure.ending == "passed"


def brief(talk: Talk, counter: TokenCounter, notes: str = "", room: int = 2_000) -> list[str]:
    return failures_that_fit(
        failures(talk), notes=notes, elsewhere="", room_tokens=room, counter=counter, is_brief=True
    )


MISSING = "src/a.ts(5,3): error TS2663: Cannot find name 'settings'."


@each_row(
    ("command", "output", "has_error"),
    [
        ("npx tsc --noEmit 2>&1 | head -80", MISSING, True),
        ("npx tsc --noEmit 2>&1 | head -80", "src/a.ts: 5 files, no error", False),
        ("npx tsc --noEmit", MISSING, False),
        ("mix test | tail", "** (BadMapError) expected a map, got:", True),
        ("mix test | tail", "ValueError: logged on purpose\n3 tests, 0 failures", False),
        ("gcc a.c 2>&1 | tail", "a.c:3:1: warning: unused", False),
        ("gcc a.c 2>&1; echo done", "a.c:3:1: fatal error: b.h: No such file\ndone", True),
        ("cat build.log | head", MISSING, False),
    ],
)
def test_the_form_of_the_lines_tells_a_failure_whose_exit_code_is_hidden(
    command: str, output: str, has_error: bool
) -> None:
    assert bool(open_errors(ran((command, output, 0)))) is has_error


def test_a_brief_failure_has_its_message_and_what_cured_it(counter: TokenCounter) -> None:
    talk = begun()
    noise = "> tsc --noEmit\n\nChecked 3 files.\n"
    end = "\nnpm error location /project"
    run(talk, "npm run check", f"{noise}../{MISSING}\n{MISSING}{end}", 2)
    talk.reply("I see.")
    for number in range(4):
        change(talk, f"/project/src/{number}.ts", "1", "2")
    run(talk, "grep -n settings docs/README.md", "3: use this.settings")
    change(talk, "/project/src/a.ts", "x = settings", "x = this.settings")
    change(talk, "/project/src/b.ts", "1", "2")
    run(talk, "npm run check", "ok")
    (failure,) = failures(talk)
    assert brief(talk, counter) == [
        f"- $ npm run check: passed later [recall {failure.entry_id}]",
        f"  ../{MISSING}",
        "  until then: edit a.ts: `x = settings` -> `x = this.settings` (after reading README.md); "
        "edit b.ts: `1` -> `2`",
    ]


def test_beside_notes_that_name_it_only_what_was_tried_is_told(counter: TokenCounter) -> None:
    first, _ = (line for line in told(mended(), counter) if line.startswith("- "))
    notes = "- pytest: `TypeError: None` on a missing key"
    assert first not in brief(mended(), counter, notes), "it passed, and the notes tell it"
    talk = begun()
    run(talk, "make", "error: no rule for grist_mill", 2)
    change(talk, "/project/Makefile", "all:", "grist_mill:")
    assert brief(talk, counter, "- make: no rule for grist_mill")[2:] == [
        "  tried: edit Makefile: `all:` -> `grist_mill:`",
    ]
    talk = begun()
    run(talk, "make", "error: no rule for the target", 2)
    assert brief(talk, counter, "- make: no rule for the target") == []


def test_a_failed_edit_that_passed_is_no_lesson(counter: TokenCounter) -> None:
    talk = begun()
    talk.tool("edit", {"path": "/project/a.py"}, "error: text not found", is_error=True)
    change(talk, "/project/a.py", "1", "2")
    assert len(told(talk, counter)) == 1
    assert brief(talk, counter) == []


def test_a_message_is_told_once(counter: TokenCounter) -> None:
    talk = begun()
    for line in ("error: no rule for all", "error: no rule for all\nerror: no rule for b"):
        run(talk, "make", line, 2)
    lines = brief(talk, counter)
    assert len([line for line in lines if line.strip() == "error: no rule for all"]) == 1


def test_the_same_message_at_another_line_is_the_same_failure(counter: TokenCounter) -> None:
    talk = begun()
    run(talk, "npx tsc", "src/a.ts(5,3): error TS2304: Cannot find name 'join'.", 2)
    change(talk, "/project/src/a.ts", "join(x)", "path.join(x)")
    run(talk, "npx tsc", "src/a.ts(9,3): error TS2304: Cannot find name 'join'.", 2)
    (failure,) = failures(talk)
    assert (failure.times, failure.ending) == (2, "open")
    assert brief(talk, counter)[1:] == [
        "  src/a.ts(9,3): error TS2304: Cannot find name 'join'.",
        "  tried: edit a.ts: `join(x)` -> `path.join(x)`",
    ]


def test_a_read_that_the_tool_cut_is_no_failure() -> None:
    talk = begun()
    end = "[Showing lines 1-1603 of 2377 (50.0KB limit). Use offset=1604 to continue]"
    details = ToolDetails.model_validate({"truncated": True})
    for _ in range(3):
        talk.tool("read", {"path": "/project/a.ts"}, f"import x\n\n{end}", details=details)
    assert failures(talk) == ()


def test_a_command_that_became_a_job_passes_or_fails_when_the_job_ends() -> None:
    talk = begun()
    run(talk, "pytest", "E   KeyError: 'x'\n1 failed", 1)
    moved = Job(id="1", command="pytest", since=1)
    text = "(no output)\n[moved to the background: job 1]"
    talk.tool("bash", {"command": "pytest"}, text, details=ToolDetails(jobs=(moved,)))
    assert [one.ending for one in failures(talk)] == ["open"]
    ended = moved.model_copy(update={"ending": "exit code 0 after 9 s"})
    details = ToolDetails(summary=ended.ending, exit_code=0, jobs=(ended,))
    talk.tool("job", {"id": "1"}, f"4 passed\n[job 1: {ended.ending}]", details=details)
    assert [one.ending for one in failures(talk)] == ["passed"]


def test_a_message_below_its_place_is_told_with_it(counter: TokenCounter) -> None:
    talk = begun()
    text = (
        "Total errors: 2\nlib/a.ex:58:13:pattern_match\nThe pattern can never match.\n\nType:\n:e"
    )
    run(talk, "mix dialyzer", text, 2)
    assert brief(talk, counter)[1] == (
        "  lib/a.ex:58:13:pattern_match The pattern can never match."
    )
    talk = begun()
    run(talk, "npm run lint", "src/a.ts:16:22 lint/unused ━━━━━━\n\n! Imports are unused.", 1)
    assert brief(talk, counter)[1] == "  src/a.ts:16:22 lint/unused ! Imports are unused."


def test_a_refusal_without_lines_stays_if_it_is_brief(counter: TokenCounter) -> None:
    talk = begun()
    declined = ToolDetails(ending="declined")
    talk.tool("bash", {"command": "rm -r y"}, "The user declined.", is_error=True, details=declined)
    (failure,) = failures(talk)
    line = f"- $ rm -r y: refused by the user [recall {failure.entry_id}]"
    assert brief(talk, counter) == [line]


def test_what_was_tried_about_an_open_failure_is_passed_on(counter: TokenCounter) -> None:
    talk = begun()
    run(talk, "npx tsc", MISSING, 2)
    change(talk, "/project/src/b.ts", "1", "2")
    change(talk, "/project/src/a.ts", "x = settings", "x = this.settings")
    earlier = failures(talk)
    (again,) = failures(begun(), *earlier)
    assert again.steps == ("edit a.ts: `x = settings` -> `x = this.settings`",)
