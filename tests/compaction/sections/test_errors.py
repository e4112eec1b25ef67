"""An error is open until the same program succeeds on the same target, or on more."""

import pytest

from agent_tui.compaction.sections.commands import open_errors
from agent_tui.compaction.sections.history import read_history
from agent_tui.messages import JsonObject
from tests.compaction.sections.scene import begun, ran, run

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


@pytest.mark.parametrize(
    ("failed", "later"),
    [
        ("go test ./pkg/...", "go test ./other/..."),
        ("make test", "make"),
        ("npm run test", "npm run build"),
        ("make && pytest", "make"),
        ("pytest tests", "pytest tests/a.py"),
        ("pytest tests/ab.py", "pytest tests/a"),
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
