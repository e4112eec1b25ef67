"""Where the work stands: steps of the plan, items, branch, commits and tests, as they are last."""

from collections.abc import Sequence

from agent_tui.compaction.sections.history import read_history
from agent_tui.compaction.sections.state import (
    StateReader,
    check_lines,
    commit_lines,
    in_progress_lines,
    lines_of_done,
    pending_lines,
    repository_lines,
)
from agent_tui.messages import Job, JsonObject, ToolDetails
from agent_tui.sessions.entries import RepositoryState, WorkState
from tests.compaction.sections.scene import FOLDERS, begun, called, ran
from tests.support.rows import each_row


def state_of(*commands: tuple[str, str, int], earlier: WorkState | None = None) -> WorkState:
    return StateReader(earlier, FOLDERS).read(ran(*commands))


def as_logged(state: WorkState) -> list[str]:
    """What is told where git was not asked."""
    return commit_lines(state, ()) + repository_lines(state, (), FOLDERS)


def as_git_says(repository: RepositoryState) -> list[str]:
    state = state_of(("git commit", "[old 7654321] Dead", 0))
    lines = commit_lines(state, [repository])
    return lines + repository_lines(state, [repository], FOLDERS)


def planned(*steps: tuple[str, str]) -> JsonObject:
    return {"todos": [{"text": text, "status": status} for text, status in steps]}


def test_the_steps_of_the_newest_plan_stand_under_their_state() -> None:
    events = called(
        ("todo", planned(("old step", "pending")), "ok"),
        ("todo", planned(("read", "completed"), ("fix", "in_progress"), ("test", "pending")), "ok"),
    )
    state = StateReader().read(events)
    assert lines_of_done(state) == ["- [x] read"]
    assert in_progress_lines(state) == ["- [ ] fix (in progress)"]
    assert pending_lines(state) == ["test"]


def test_plans_of_other_programs_are_read_too() -> None:
    todos: JsonObject = {
        "todos": [{"content": "read", "status": "done"}, {"step": "fix", "status": "unheard of"}]
    }
    state = StateReader().read(called(("TodoWrite", todos, "ok")))
    assert lines_of_done(state) == ["- [x] read"]
    assert pending_lines(state) == ["fix"]


def test_the_plan_of_a_tool_that_calls_it_a_plan_is_read() -> None:
    plan: JsonObject = {
        "plan": [
            {"step": "read", "status": "completed"},
            {"step": "fix", "status": "in_progress"},
        ]
    }
    state = StateReader().read(called(("update_plan", plan, "Plan updated")))
    assert lines_of_done(state) == ["- [x] read"]
    assert in_progress_lines(state) == ["- [ ] fix (in progress)"]


def test_items_stand_by_their_last_state_with_the_title_they_were_shown_with() -> None:
    state = state_of(
        ("bd show bd-1", "[ ] bd-1 - The parser drops a token\nDepends on bd-2: Another", 0),
        ("bd update bd-1 --status in_progress", "Updated bd-1", 0),
        ("bd close bd-2", "Closed bd-2", 0),
        ("bd reopen bd-3", "Reopened bd-3: Slow start up", 0),
    )
    assert in_progress_lines(state) == ["- [ ] bd-1: The parser drops a token (in progress)"]
    assert lines_of_done(state) == ["- [x] bd-2"]
    assert pending_lines(state) == ["bd-3: Slow start up"]


def test_a_title_has_no_status_of_the_time_when_it_was_listed() -> None:
    state = state_of(
        ("bd show x-1", "○ x-1 · Mend the parser [core]   [● P1 · OPEN]", 0),
        ("bd close x-1", "Closed x-1", 0),
    )
    assert lines_of_done(state) == ["- [x] x-1: Mend the parser [core]"]


def test_a_line_of_another_output_that_names_an_item_is_no_title() -> None:
    state = state_of(
        ("bd close bd-2", "Closed bd-2", 0),
        ("git log", "1a2b3c4 bd-2 was harder than it seemed", 0),
    )
    assert lines_of_done(state) == ["- [x] bd-2"]


def test_a_later_state_takes_the_place_of_an_earlier_one() -> None:
    state = state_of(
        ("bd update bd-1 --status in_progress", "", 0),
        ("bd close bd-1", "", 0),
    )
    assert in_progress_lines(state) == []
    assert lines_of_done(state) == ["- [x] bd-1"]


def test_a_tracker_that_failed_changed_nothing() -> None:
    assert state_of(("bd close bd-1", "Error: no such item", 1)).items == {}


def test_the_title_of_a_longer_id_is_not_taken() -> None:
    state = state_of(
        ("bd update bd-1 --status open", "", 0),
        ("bd list", "bd-12 Not this one here\nbd-1.2 Nor this one here", 0),
    )
    assert pending_lines(state) == ["bd-1"]


def test_commits_and_branches_of_the_log_say_that_git_was_not_asked() -> None:
    state = state_of(
        ("git commit -m 'Keep the token'", "[fix/parser 1a2b3c4] Keep the token\n 1 file", 0),
        ("git commit -m 'Keep all'", "[fix/parser (root-commit) 2b3c4d5] Keep all", 0),
    )
    assert as_logged(state) == [
        "- [x] commit 1a2b3c4, as of the log: Keep the token",
        "- [x] commit 2b3c4d5, as of the log: Keep all",
        "- branch, as of the log: fix/parser",
    ]


def test_a_commit_on_no_branch_names_none() -> None:
    state = state_of(("git commit", "[detached HEAD 1a2b3c4] Keep the token", 0))
    assert as_logged(state) == ["- [x] commit 1a2b3c4, as of the log: Keep the token"]


def test_a_commit_that_an_amend_replaced_is_not_told() -> None:
    state = state_of(
        ("git commit -m one", "[main 1111111] One", 0),
        ("git commit -m two", "[main 2222222] Two", 0),
        ("git commit --amend --no-edit", "[main 3333333] Two", 0),
        ("git commit --amend", "error: nothing", 1),
        ("git commit --amend -m 2", "[main 4444444] Second", 0),
    )
    assert list(state.commits.items()) == [("1111111", "One"), ("4444444", "Second")]


def test_commits_before_a_rebase_say_so_once_and_later_ones_do_not() -> None:
    state = state_of(
        ("git commit -m one", "[main 1111111] One", 0),
        ("git fetch && git rebase origin/main", "Successfully rebased", 0),
        ("git commit -m two", "[main 3333333] Two", 0),
    )
    assert list(state.commits.values()) == ["One (before a later rebase)", "Two"]
    pulled = state_of(("git pull --rebase", "Successfully rebased", 0), earlier=state)
    assert as_logged(pulled)[:2] == [
        "- [x] commit 1111111, as of the log: One (before a later rebase)",
        "- [x] commit 3333333, as of the log: Two (before a later rebase)",
    ]


@each_row(
    ("steps", "is_marked"),
    [
        ((("git rebase main", "Successfully rebased and updated refs/heads/fix."),), True),
        ((("git rebase main", "Current branch fix is up to date."),), False),
        (
            (
                ("git checkout -b next", "Switched to a new branch 'next'"),
                ("git rebase fix", "Successfully rebased and updated refs/heads/next."),
            ),
            False,
        ),
        (
            (
                ("git checkout next", "Switched to branch 'next'"),
                ("git pull --rebase", "Successfully rebased"),
            ),
            False,
        ),
        (
            (
                ("git rebase main", "Successfully rebased and updated refs/heads/fix."),
                ("git log --oneline main", "2222222 Merge\n1111111 One"),
            ),
            False,
        ),
        (
            (
                ("git rebase main", "Successfully rebased and updated refs/heads/fix."),
                ("git merge-base HEAD main", "1111111" + "0" * 33),
            ),
            False,
        ),
        (
            (
                ("git rebase main", "Successfully rebased and updated refs/heads/fix."),
                ("git branch --contains 1111111", "* fix\n  main"),
            ),
            False,
        ),
        (
            (
                ("git rebase main", "Successfully rebased and updated refs/heads/fix."),
                ("git reflog", "1111111 HEAD@{3}: commit: One"),
                ("git branch --contains 1111111", ""),
                ("git show 1111111", "commit 1111111" + "0" * 33),
            ),
            True,
        ),
    ],
)
def test_only_what_the_log_shows_to_be_rewritten_is_marked(
    steps: Sequence[tuple[str, str]], is_marked: bool
) -> None:
    made = ("git commit -m one", "[fix 1111111] One", 0)
    state = state_of(made, *((command, text, 0) for command, text in steps))
    assert state.commits == {"1111111": f"One{' (before a later rebase)' * is_marked}"}


@each_row(
    ("command", "left"),
    [
        ("git reset --hard HEAD~1 && git log --oneline -2", ["1111111"]),
        ("git reset HEAD^", ["1111111"]),
        ("git reset --soft HEAD~2", []),
        ("git reset --hard HEAD~9", []),
        ("git reset HEAD a.py", ["1111111", "3333333"]),
        ("git reset --hard", ["1111111", "3333333"]),
        ("git show HEAD~1", ["1111111", "3333333"]),
    ],
)
def test_commits_that_a_reset_undid_are_not_done(command: str, left: list[str]) -> None:
    state = state_of(
        ("git commit -m one", "[main 1111111] One", 0),
        ("git commit -m two", "[main 2222222] Two", 0),
        ("git commit --amend -m three", "[main 3333333] Three", 0),
        (command, "", 0),
    )
    assert list(state.commits) == left


def test_only_the_newest_five_commits_are_told() -> None:
    state = state_of(*(("git commit", f"[main 1a2b3c{n}] Step {n}", 0) for n in range(9)))
    assert [text[-1] for text in state.commits.values()] == list("45678")


def test_the_branch_is_the_one_switched_to_last() -> None:
    state = state_of(
        ("git status", "On branch main\nnothing to commit", 0),
        ("git checkout -b fix", "Switched to a new branch 'fix'", 0),
    )
    assert as_logged(state) == ["- branch, as of the log: fix"]
    back = state_of(("git switch main", "Switched to branch 'main'", 0), earlier=state)
    assert as_logged(back) == ["- branch, as of the log: main"]


def test_each_repository_has_its_own_branch() -> None:
    state = state_of(
        ("cd /project/web && git status", "On branch main", 0),
        ("cd /other && git status", "On branch dev", 0),
        ("git switch fix", "Switched to branch 'fix'", 0),
    )
    assert as_logged(state) == [
        "- branch, as of the log: fix",
        "- branch in /other, as of the log: dev",
    ]


def test_what_git_says_of_a_repository_is_told_in_its_words() -> None:
    state = RepositoryState(
        root="/project",
        branch="fix",
        head="1a2b3c4d5e",
        upstream="origin/fix",
        ahead=2,
        uncommitted=("a.py", "new.txt"),
        changed=2,
        commits={"0a2b3c4d5e": "One", "1a2b3c4d5e": "Two"},
    )
    assert as_git_says(state) == [
        "- [x] commit 0a2b3c4d5e: One",
        "- [x] commit 1a2b3c4d5e: Two",
        "- git: branch fix, HEAD 1a2b3c4d5e, 2 ahead and 0 behind origin/fix as last fetched",
        "- uncommitted: a.py, new.txt",
    ]


def test_a_repository_elsewhere_is_named_and_long_lists_are_cut() -> None:
    state = RepositoryState(
        root="/other",
        head="1a2b3c4d5e",
        upstream="origin/main",
        uncommitted=tuple(f"{n}.py" for n in range(20)),
        changed=300,
        commits={f"{n:010x}": f"Step {n}" for n in range(15)},
    )
    lines = as_git_says(state)
    assert lines[0] == "- [x] commit 0000000005: Step 5"
    assert lines[-2:] == [
        "- git in /other: no branch, HEAD 1a2b3c4d5e, level with origin/main as last fetched",
        f"- uncommitted: {', '.join(f'{n}.py' for n in range(12))} and 288 more",
    ]


def test_a_repository_without_commits_or_changes_says_so() -> None:
    assert as_git_says(RepositoryState(root="/project", branch="main")) == [
        "- git: branch main, no commit yet",
        "- uncommitted: nothing",
    ]


def test_the_result_of_the_newest_tests_stands_with_its_command() -> None:
    state = state_of(
        ("pytest -q", "..F\n1 failed, 2 passed in 0.10s", 1),
        ("cd /project && pytest -q", "...\n=== 3 passed in 0.10s ===", 0),
    )
    assert check_lines(state) == ["- `pytest -q` -> 3 passed in 0.10s"]


def test_of_tests_that_failed_the_exit_code_is_told() -> None:
    assert check_lines(state_of(("npm test", "Tests: 1 failed, 4 passed", 1))) == [
        "- `npm test` -> exit 1 Tests: 1 failed, 4 passed"
    ]
    assert check_lines(state_of(("go test ./...", "", 0))) == ["- `go test ./...` -> exit 0"]


def test_tests_that_failed_without_an_exit_code_are_told_as_failed() -> None:
    talk = begun()
    talk.tool("bash", {"command": "pytest"}, "2 failed", is_error=True, is_foreign=True)
    state = StateReader().read(read_history(talk.path))
    assert check_lines(state) == ["- `pytest` -> failed 2 failed"]


def test_only_the_newest_sixty_items_are_kept() -> None:
    state = state_of(*((f"bd close bd-{n}", "", 0) for n in range(70)))
    assert list(state.items) == [f"bd-{n}" for n in range(10, 70)]


def test_the_three_checks_run_last_are_told() -> None:
    state = state_of(
        ("pytest a.py", "1 passed", 0),
        ("cargo test", "test result: ok.", 0),
        ("tox", "OK", 0),
        ("mise run lint 2>&1 | tail", "0 issues.\n[lint] $ run ./...", 0),
        ('git commit -m "make sure that they test it"', "[main 1234567] Test", 0),
    )
    assert check_lines(state) == [
        "- `mise run lint 2>&1 | tail` -> 0 issues.",
        "- `tox` -> OK",
        "- `cargo test` -> test result: ok.",
    ]


def test_a_newer_run_of_the_same_check_takes_the_place_of_the_last() -> None:
    state = state_of(
        ("npm run check", "error TS2339: x", 2),
        ("cd /project && npm run check 2>&1 | tail -3", "Checked 238 files.", 0),
    )
    assert check_lines(state) == ["- `npm run check 2>&1 | tail -3` -> exit 0"]
    piped = called(("bash", {"command": "npm run check | tail -3"}, "Checked 238 files."))
    again = StateReader(state, FOLDERS).read(piped)
    assert check_lines(again) == ["- `npm run check | tail -3` -> Checked 238 files."]


@each_row(
    "output",
    ["> app@1.0.0 check\n> tsc --noEmit\n", "[check] $ tsc --noEmit", "$ tsc --noEmit", ""],
)
def test_the_command_that_a_task_runner_repeats_is_no_result(output: str) -> None:
    talk = begun()
    talk.tool("bash", {"command": "npm run check | tail -3"}, output, is_foreign=True)
    state = StateReader().read(read_history(talk.path))
    assert check_lines(state) == ["- `npm run check | tail -3` -> passed without a message"]


def test_a_failed_check_is_not_told_once_a_command_with_more_in_it_passed() -> None:
    failed = ("npm run lint", "1 issues", 1)
    assert check_lines(state_of(failed, ("npm run lint && npm test", "9 passed", 0))) == [
        "- `npm run lint && npm test` -> 9 passed"
    ]
    assert check_lines(state_of(failed, ("npm run lint && npm test", "1 failed", 1))) == [
        "- `npm run lint && npm test` -> exit 1 1 failed",
        "- `npm run lint` -> exit 1 1 issues",
    ]


def test_the_items_of_a_list_are_told_by_the_titles_with_which_they_were_made() -> None:
    talk = begun()
    for number, subject in enumerate(("Grind the corn", "Sieve the flour"), 1):
        made = f"Task #{number} created successfully: {subject}"
        talk.tool("TaskCreate", {"subject": subject, "description": "As it should be."}, made)
    talk.tool("TaskUpdate", {"taskId": "1", "status": "in_progress"}, "Updated task #1 status")
    state = StateReader().read(read_history(talk.path))
    assert in_progress_lines(state) == ["- [ ] 1: Grind the corn (in progress)"]
    assert pending_lines(state) == ["2: Sieve the flour"]
    talk.tool("TaskUpdate", {"taskId": "1", "status": "completed"}, "Updated task #1 status")
    assert lines_of_done(StateReader().read(read_history(talk.path))) == ["- [x] 1: Grind the corn"]


def test_a_run_that_the_user_interrupted_has_no_result() -> None:
    talk = begun()
    details = ToolDetails(exit_code=137, ending="cancelled")
    talk.tool("bash", {"command": "go test"}, "ok pkg 0.4s", is_error=True, details=details)
    talk.tool("bash", {"command": "npm test"}, "ok 1\n\nCommand aborted", is_error=True)
    assert check_lines(StateReader().read(read_history(talk.path))) == []


@each_row(
    ("ending", "exit_code", "text", "result"),
    [
        ("", None, "....", ""),
        (
            "exit code 0 after 15 s",
            0,
            "....\n908 passed, 2 skipped in 12.03s",
            "908 passed, 2 skipped in 12.03s",
        ),
        ("exit code 1 after 15 s", 1, "1 failed", "exit 1 1 failed"),
        ("exit code 0 after 15 s", 0, "all is well", "exit 0"),
        ("stopped after 9 s", None, "tests/a.py ....", "stopped after 9 s; tests/a.py ...."),
    ],
)
def test_a_command_that_became_a_job_has_the_result_of_the_job(
    ending: str, exit_code: int | None, text: str, result: str
) -> None:
    talk = begun()
    job = Job(id="1", command="pytest -q", since=1)
    moved = "(no output)\n[moved to the background: job 1]"
    talk.tool("bash", {"command": "pytest -q"}, moved, details=ToolDetails(jobs=(job,)))
    job = job.model_copy(update={"ending": ending})
    details = ToolDetails(summary=ending or "running", exit_code=exit_code, jobs=(job,))
    shown = f"{text}\n[job 1: {ending or 'running for 3 s'}]"
    talk.tool("job", {"id": "1"}, shown, details=details)
    lines = [f"- `pytest -q` -> {result}"] if result else []
    assert check_lines(StateReader().read(read_history(talk.path))) == lines


def test_numbers_in_other_commands_are_no_test_results() -> None:
    assert check_lines(state_of(("cat log.txt", "12 passed", 0))) == []


def test_a_later_session_goes_on_from_the_state_handed_on() -> None:
    first = state_of(
        ("bd update bd-1 --status in_progress", "bd-1: Keep the token", 0),
        ("git commit", "[main 1a2b3c4] Step", 0),
        ("pytest", "1 failed", 1),
    )
    assert StateReader(first).read(()) == first
    later = state_of(("bd close bd-1", "", 0), ("pytest", "2 passed", 0), earlier=first)
    assert lines_of_done(later) == ["- [x] bd-1: Keep the token"]
    assert check_lines(later) == ["- `pytest` -> 2 passed"]
    assert later.commits == {"1a2b3c4": "Step"}
    assert later.branches == {"": "main"}


def test_a_session_in_which_nothing_was_done_has_no_state() -> None:
    state = state_of(("ls", "a.py", 0))
    assert state == WorkState()
    assert not (
        lines_of_done(state) + in_progress_lines(state) + pending_lines(state) + check_lines(state)
    )


def test_what_runs_in_the_background_is_told_with_when_it_began() -> None:
    server = Job(id="3", command="npm  run dev", since=1_700_000_000_000)
    state = WorkState(jobs={"3": server})
    assert check_lines(state) == [
        "- background job 3 running since 2023-11-14 22:13 UTC: `npm run dev`",
    ]


@each_row(
    "log",
    [
        "4444444 (HEAD -> main) Two\n3333333 One",
        "* 4444444 Two\n* 3333333 One\n* 0000000 Root",
        "commit 4444444\nAuthor: A <a@b.c>\nDate:   today\n\n    Two\n\n    A body.\n\n"
        "commit 3333333\nMerge: 1 2\nAuthor: A <a@b.c>\n\n    One\n",
    ],
)
def test_commits_that_a_later_log_shows_under_other_hashes_have_those(log: str) -> None:
    state = state_of(
        ("git commit -m one", "[main 1111111] One", 0),
        ("git commit -m two", "[main 2222222] Two", 0),
        ("git log", log, 0),
    )
    assert state.commits == {"3333333": "One", "4444444": "Two"}


def test_a_commit_that_a_rebase_moved_has_its_hash_in_the_next_log() -> None:
    state = state_of(
        ("git commit -m one", "[main 1111111] One", 0),
        ("git rebase origin/main", "Successfully rebased", 0),
        ("git log --oneline", "3333333 One", 0),
    )
    assert state.commits == {"3333333": "One"}


@each_row(
    "log",
    [
        "2222222 Same\n1111111 Same",
        "22222229999 Same\n3333333 Same\n1111111 Same",  # an older one, of others
        "1111111 HEAD@{0}: commit (amend): Same\n3333333 HEAD@{1}: commit: Same",
        "4444444 Other\n5555555 Same as before",
    ],
)
def test_a_commit_that_a_log_shows_under_its_hash_keeps_it(log: str) -> None:
    state = state_of(
        ("git commit -m one", "[main 1111111] Same", 0),
        ("git commit -m two", "[main 2222222] Same", 0),
        ("git log -g --oneline", log, 0),
    )
    assert list(state.commits) == ["1111111", "2222222"]


def test_what_was_in_progress_before_a_commit_says_so() -> None:
    talk = begun()
    talk.tool("todo", dict(planned(("fix", "in_progress"))), "ok")
    talk.tool("bash", {"command": "bd update bd-1 --status in_progress"}, "ok")
    talk.tool("bash", {"command": "git commit -m one"}, "[main 1111111] One")
    state = StateReader().read(read_history(talk.path))
    old = "(in progress before the last commit)"
    assert in_progress_lines(state) == [f"- [ ] fix {old}", f"- [ ] bd-1 {old}"]
    talk.tool("todo", dict(planned(("fix", "in_progress"))), "ok")
    state = StateReader().read(read_history(talk.path))
    assert "- [ ] fix (in progress)" in in_progress_lines(state)


def test_a_list_of_the_tracker_says_what_its_items_have_become() -> None:
    talk = begun()
    for number in (1, 2):
        made = f"Task #{number} created successfully"
        talk.tool("TaskCreate", {"subject": f"Grind {number} ears"}, made)
    talk.tool("TaskUpdate", {"taskId": "1", "status": "in_progress"}, "Updated task #1 status")
    talk.tool(
        "TaskList", {}, "#1 [completed] Grind 1 ears\n#2 [in_progress] Grind 2 ears\n#9 [x] a"
    )
    state = StateReader().read(read_history(talk.path))
    assert lines_of_done(state) == ["- [x] 1: Grind 1 ears"]
    assert in_progress_lines(state) == ["- [ ] 2: Grind 2 ears (in progress)"]
