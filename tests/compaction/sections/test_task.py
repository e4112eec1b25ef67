"""The text of the task is what a tracker, a plan or a specification showed and nothing closed."""

import pytest

from agent_tui.attachments import approving_message
from agent_tui.compaction.sections.history import Said, read_history
from agent_tui.compaction.sections.task import (
    task_blocks,
    task_texts,
    tracker_orders,
)
from agent_tui.messages import JsonObject
from agent_tui.sessions.entries import TaskText
from agent_tui.sessions.outputs import run_action
from agent_tui.tokens import ExactCounter, TokenCounter
from tests.compaction.sections.scene import begun, called, numbered, ran, run
from tests.support.rows import each_row

TEXT = "The parser drops the last token of a line.\nExpected: it is kept.\nSeen: it is gone.\n"


@each_row(
    ("command", "item"),
    [
        ("gh issue view 12", "12"),
        ("gh issue view --comments 12 --repo a/b", "12"),
        ("gh pr view 5", "5"),
        ("gh issue view https://github.com/a/b/issues/12", "https://github.com/a/b/issues/12"),
        ("glab issue view 3", "3"),
        ("jira issue view ABC-12", "ABC-12"),
        ("bd show bd-12", "bd-12"),
        ("cd sub && bd show bd-a1.2", "bd-a1.2"),
        ("./tools/tracker show 16", "16"),
        ("LANG=C tk show tk-5 2>&1 | head -50", "tk-5"),
    ],
)
def test_an_item_that_a_tracker_shows_is_known_by_the_shape_of_the_command(
    command: str, item: str
) -> None:
    used = [(f"{program} close 99", "", 0) for program in ("bd", "./tools/tracker", "tk")]
    (task,) = task_texts(ran(*used, (command, TEXT, 0)))
    assert (task.item, task.text) == (item, TEXT.strip())


def shown(command: str, said: str) -> list[str]:
    talk = begun(said)
    run(talk, command, TEXT)
    return [task.item for task in task_texts(read_history(talk.path))]


@pytest.mark.parametrize(
    ("said", "items"),
    [("Work on bd-12.", ["bd-12"]), ("Work on bd-1 and bd-12.5", []), ("Work on it.", [])],
)
def test_what_an_unknown_program_shows_is_an_item_where_the_user_named_it(
    said: str, items: list[str]
) -> None:
    assert shown("bd show bd-12", said) == items


def test_an_item_that_was_named_in_an_earlier_session_is_one() -> None:
    events = ran(("bd show bd-12", TEXT, 0))
    assert [task.item for task in task_texts(events, said=["Then do bd-12."])] == ["bd-12"]


SEVERAL = f"bd-1 First\n{TEXT}\nbd-2 Second\n{TEXT}"


@pytest.mark.parametrize("command", ["bd show bd-1; bd show bd-2", "bd show bd-1 bd-2"])
def test_several_items_in_one_output_are_open_until_each_is_closed(command: str) -> None:
    shown, first = (command, SEVERAL, 0), ("bd close bd-1", "", 0)
    (both,) = task_texts(ran(("bd close bd-9", "", 0), shown))
    assert (both.item, both.text) == ("bd-1, bd-2", SEVERAL.strip())
    assert [task.item for task in task_texts(ran(shown, first))] == ["bd-2"]
    assert task_texts(ran(shown, first, ("bd close bd-2", "", 0))) == ()


@each_row(
    "command",
    [
        "git show abcdef1",
        "docker image view 12",
        "kubectl get pods",
        "npm view some-package",
        "pip show some-package",
        "gh issue list",
        "bd ready",
        "cat issue-12.txt",
    ],
)
def test_other_programs_that_show_something_are_no_trackers(command: str) -> None:
    assert task_texts(ran((command, TEXT, 0))) == ()


@pytest.mark.parametrize(
    ("tool", "arguments", "item"),
    [
        ("mcp__linear__get_issue", {"id": "LIN-5"}, "LIN-5"),
        ("jira_get_issue", {"issue_key": "ABC-12", "fields": "*all"}, "ABC-12"),
        ("mcp__github__issue_read", {"owner": "a b", "repo": "c d", "issue_number": 12}, "12"),
    ],
)
def test_an_item_that_a_tool_shows_is_known_by_its_name(
    tool: str, arguments: JsonObject, item: str
) -> None:
    assert [task.item for task in task_texts(called((tool, arguments, TEXT)))] == [item]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("mcp__linear__create_issue", {"id": "LIN-5"}),
        ("mcp__linear__get_issue", {"query": "every one of them"}),
        ("mcp__db__get_row", {"id": "LIN-5"}),
    ],
)
def test_tools_that_show_no_single_item_are_passed_over(tool: str, arguments: JsonObject) -> None:
    assert task_texts(called((tool, arguments, TEXT))) == ()


@pytest.mark.parametrize(
    ("path", "said", "is_task"),
    [
        ("docs/spec-v2.md", "Build what spec-v2.md says.", True),
        ("todo.txt", "Please work through `todo.txt`", True),
        ("README.md", "Build what spec-v2.md says.", False),
        ("src/plan.py", "Mend plan.py.", False),
    ],
)
def test_a_document_that_the_user_named_is_a_task(path: str, said: str, is_task: bool) -> None:
    talk = begun(said)
    talk.tool("read", {"path": path}, numbered(TEXT.split("\n")))
    found = [(task.item, task.text) for task in task_texts(read_history(talk.path))]
    assert found == ([(path, TEXT.strip())] if is_task else [])


def test_an_item_that_could_not_be_shown_or_says_nothing_is_no_task() -> None:
    assert task_texts(ran(("gh issue view 12", TEXT, 1), ("gh issue view 13", "none", 0))) == ()


def test_what_is_closed_is_no_task_until_it_is_shown_again() -> None:
    shown, closed = ("gh issue view 12", TEXT, 0), ("make && gh issue close 12", "", 0)
    assert task_texts(ran(shown, closed)) == ()
    assert [task.item for task in task_texts(ran(shown, closed, shown))] == ["12"]


def test_closing_another_item_or_one_that_begins_the_same_leaves_it() -> None:
    events = ran(("gh issue view 12", TEXT, 0), ("gh issue close 1 123", "", 0))
    assert [task.item for task in task_texts(events)] == ["12"]


def test_the_newest_text_of_an_item_counts_and_goes_last() -> None:
    newer = f"{TEXT}A comment: only on Windows."
    events = ran(
        ("gh issue view 12", TEXT, 0), ("gh issue view 13", TEXT, 0), ("gh issue view 12", newer, 0)
    )
    assert [(task.item, task.text) for task in task_texts(events)] == [
        ("13", TEXT.strip()),
        ("12", newer.strip()),
    ]


def test_what_a_parent_session_handed_on_stays_until_it_is_closed() -> None:
    earlier = (TaskText(item="12", text="old " * 20), TaskText(item="bd-3", text="more " * 20))
    assert task_texts((), earlier) == earlier
    assert task_texts(ran(("gh issue close 12", "", 0)), earlier) == earlier[1:]


def changes(command: str) -> list[tuple[tuple[str, ...], str]]:
    orders = tracker_orders(run_action("bash", command))
    return [(order.items, order.state) for order in orders if order.state]


@each_row(
    ("command", "items", "state"),
    [
        ("gh issue close 12", ("12",), "done"),
        ("bd close bd-12 bd-13", ("bd-12", "bd-13"), "done"),
        ("bd update bd-12 --status=closed", ("bd-12",), "done"),
        ("bd update bd-12 --status in_progress", ("bd-12",), "in progress"),
        ("gh issue reopen 12", ("12",), "open"),
        ("jira issue move ABC-12 Done", ("ABC-12",), "done"),
        ('jira issue move ABC-12 "In Progress"', ("ABC-12",), "in progress"),
        ("bd close bd-12 2>&1", ("bd-12",), "done"),
        ("bd close bd-12 --reason 'as bd-7 and 2 others' 2>&1 | tail -3", ("bd-12",), "done"),
        ("bd update bd-12 --claim", ("bd-12",), "in progress"),
        ("git add -A && ./issues close 16", ("16",), "done"),
    ],
)
def test_a_command_that_changes_the_state_of_items_names_both(
    command: str, items: tuple[str, ...], state: str
) -> None:
    assert changes(command) == [(items, state)]


@pytest.mark.parametrize(
    "command", ["docker start 12", "npm update some-package", "systemctl start some-unit", "ls 12"]
)
def test_other_programs_change_the_state_of_no_item(command: str) -> None:
    assert changes(command) == []


def test_fifty_thousand_blanks_hide_no_item_and_take_no_time() -> None:
    lines, spaces, tabs = (blank * 50_000 for blank in "\n \t")
    command = f"ls{tabs}{lines}gh issue{spaces}close 12{lines}"
    assert changes(command) == [(("12",), "done")]


def test_a_word_in_a_note_is_no_state() -> None:
    shown = ("bd close bd-1 && bd show bd-12", TEXT, 0)
    noted = ("bd update bd-12 --notes 'it is done soon'", "", 0)
    assert [task.item for task in task_texts(ran(shown, noted))] == ["bd-12"]


def test_an_item_that_a_tool_closes_is_no_task() -> None:
    shown = ("mcp__linear__get_issue", {"id": "LIN-5"}, TEXT)
    tool = "mcp__linear__update_issue"
    closing = (tool, {"id": "LIN-5", "state": "Done"}, "ok")
    begun = (tool, {"id": "LIN-5", "state": "Started"}, "ok")
    assert task_texts(called(shown, closing)) == ()
    assert [task.item for task in task_texts(called(shown, begun))] == ["LIN-5"]


def task(item: str, words: int) -> TaskText:
    text = "\n".join(f"line {number} of {item} says it all" for number in range(words // 7))
    return TaskText(item=item, text=text, entry_id=f"id-{item}")


def test_the_newest_text_comes_first_under_its_item(counter: TokenCounter) -> None:
    old, new = task("12", 70), task("13", 70)
    in_order = [
        f"### 13 (as it was shown then)\n{new.text}",
        f"### 12 (as it was shown then)\n{old.text}",
    ]
    assert task_blocks([old, new], 1_000, counter) == in_order


def test_a_text_that_does_not_fit_ends_early_and_says_where_the_rest_is(
    counter: TokenCounter,
) -> None:
    (text,) = task_blocks([task("12", 2_000)], 300, counter)
    assert 200 < counter.count_text(text) <= 300
    assert text.startswith("### 12 (as it was shown then)\nline 0 of 12")
    assert text.endswith("it all\n[... the rest is left out ...] [recall id-12]")


def test_of_a_plan_that_does_not_fit_what_is_open_comes_first(counter: TokenCounter) -> None:
    filler = "It says what it is for, at some length. " * 12
    plan = "\n".join(
        [
            *("# Plan", filler),
            *("## One", filler, "- [x] first", "- [X] second"),
            *("## Two", "```sh", "# no heading", "```", "- [x] third", "- [ ] fourth"),
            *("## Notes", filler, filler),
            *("## Three", "- [ ] fifth"),
        ]
    )
    document = TaskText(item="plan.md", text=plan, entry_id="id")
    (text,) = task_blocks([document], counter.count_text(plan) // 2, counter)
    lines = text.split("\n")
    assert lines[lines.index("## One (done)") + 1] == "## Two"
    assert "# no heading\n```\n- [x] third\n- [ ] fourth" in text
    assert "\n[...]\n## Three\n- [ ] fifth" in text
    assert "first" not in text
    assert lines[0] == "### plan.md"
    assert lines[-1].startswith("[... the rest is left out ...]")


def test_a_finished_part_keeps_its_heading_however_much_room_is_left(counter: TokenCounter) -> None:
    plan = TaskText(item="plan.md", text="# Plan\n## One\n- [x] first\n## Two\n- [ ] second")
    assert task_blocks([plan], 1_000, counter) == [
        "### plan.md\n# Plan\n## One (done)\n## Two\n- [ ] second"
    ]


def test_a_text_of_one_long_line_is_cut_inside_it(counter: TokenCounter) -> None:
    line = TaskText(item="12", text="the body of an issue on one line " * 300, entry_id="id")
    (text,) = task_blocks([line], 300, counter)
    assert 200 < counter.count_text(text) <= 300


def test_a_text_for_which_there_is_no_room_is_left_out(counter: TokenCounter) -> None:
    old, new = task("12", 700), task("13", 70)
    text = f"### 13 (as it was shown then)\n{new.text}"
    assert task_blocks([old, new], counter.count_text(text) + 10, counter) == [text]
    assert task_blocks([old], 0, counter) == []


def test_all_texts_together_keep_to_the_room(counter: TokenCounter) -> None:
    for room in range(100, 1_500, 200):
        lines = task_blocks([task(str(n), 70 + 100 * n) for n in range(6)], room, counter)
        assert sum(counter.count_text(line) for line in lines) <= room


def test_a_plan_that_was_handed_over_is_a_task_until_the_next_one() -> None:
    plans = [f"Step {number}: keep the old path because others call it. " * 3 for number in (1, 2)]
    calls = [("ExitPlanMode", {"plan": plan}, "Approved.") for plan in plans]
    (newest,) = task_texts(called(*calls))
    assert newest.text == plans[1].strip()
    assert (
        task_texts(called(("plant", {"plan": 3}, "x" * 200), ("x", {"plan": plans[0]}, ""))) == ()
    )


def test_an_approved_plan_stands_where_the_person_said_it_and_only_there():
    handed_over = called(("plan", {"plan": TEXT}, "The user approved the plan."))
    assert [task.text for task in task_texts(handed_over)] == [TEXT.strip()]
    approved = Said("u1", approving_message(TEXT.replace("a", "o")))
    assert task_texts((*handed_over, approved)) == ()
    assert len(task_texts((*handed_over, Said("u1", "Go on.")))) == 1


def test_a_plan_is_done_with_the_item_it_was_made_for() -> None:
    claimed = {"command": "bd update bd-1 --status in_progress"}
    planned = (("bash", claimed, "ok"), ("plan", {"plan": TEXT}, "Approved."))
    (plan,) = task_texts(called(*planned))
    assert plan.item == "the plan that was handed over for bd-1"
    closing = called(("bash", {"command": "bd close bd-1"}, "ok"))
    other = called(("bash", {"command": "bd close bd-2"}, "ok"))
    assert task_texts(closing, [plan]) == ()
    assert task_texts(other, [plan]) == (plan,)
    (later,) = task_texts(called(planned[1]), [plan], begun=["bd-7"])
    assert later.item == "the plan that was handed over for bd-7"


def test_a_text_with_many_blank_lines_is_cut_in_linear_time() -> None:
    task = TaskText(item="plan.md", text=f"# A\n- [x] one\n{chr(10) * 200_000}# B\n- [ ] two")
    (lines,) = task_blocks([task], 100, ExactCounter())
    assert "- [ ] two" in lines
