"""A helper reviews changes, and its findings become comments."""

from dataclasses import replace
from pathlib import Path

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.events import Notice, TurnFinished
from agent_tui.features.review.changes import FileChange, file_change
from agent_tui.features.review.comments import ReviewState, read_state
from agent_tui.features.review.helper import read_findings, review_by_helper, review_task
from agent_tui.features.review.sources import Review, ReviewLoader
from agent_tui.features.review.view import count_words
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.tools.processes.keeper import ProcessKeeper
from tests.support.runtime import Stage, collect

LINES = "".join(f"line {n}\n" for n in range(1, 21))


def change(name: str, after: str = LINES) -> FileChange:
    return file_change(name, Path("/w") / name, b"", after.encode())


def found(answer: str, *names: str) -> list[tuple[str, int, int, str]]:
    changes = [change(name) for name in names]
    found = read_findings(answer, changes)
    return [(one.name, one.first, one.last, one.text) for one in found]


def test_findings_are_read_however_they_are_listed():
    answer = (
        "I looked at it.\n\n"
        "src/a.py:3: It fails\nwithout a file.\n"
        "- `b.py:4-6`: Twice.\n"
        "2. ./src/a.py:9 Never called.\n"
        "other.py:1: not among the changes\n\n"
        "(Everything it read is stored.)\n"
    )
    assert found(answer, "src/a.py", "b.py") == [
        ("src/a.py", 3, 3, "It fails\nwithout a file."),
        ("b.py", 4, 6, "Twice."),
        ("src/a.py", 9, 9, "Never called."),
        ("other.py", 1, 1, "not among the changes"),
    ]
    assert found("No findings.", "a.py") == []
    assert found("a.py:1: x") == []


def test_findings_are_read_with_marks_columns_and_words():
    answer = (
        "**n.txt:21**: Bold.\n"
        "- **n.txt:21: All bold**\n"
        "n.txt line 22: A word.\n"
        "`n.txt`, lines 3-4: Both.\n"
        "n.txt:20:5: `f` has a column\n"
        "and at 10:30 it ends.\n"
        "[n.txt:2](n.txt#L2): no place\n"
    )
    assert found(answer, "n.txt")[:5] == [
        ("n.txt", 21, 21, "Bold."),
        ("n.txt", 21, 21, "All bold"),
        ("n.txt", 22, 22, "A word."),
        ("n.txt", 3, 4, "Both."),
        ("n.txt", 20, 20, "`f` has a column\nand at 10:30 it ends.\n[n.txt:2](n.txt#L2): no place"),
    ]


def test_a_name_with_signs_of_a_pattern_is_a_name():
    assert found("a+(b).py:1: Why?", "a+(b).py") == [("a+(b).py", 1, 1, "Why?")]


def test_the_task_has_the_diffs_that_fit():
    review = Review(
        "",
        "in this session",
        (change("a.py"), change("b.py", "x\n" * 30_000)),
        ReviewState(),
        left_out="Not shown: sub.",
    )
    task = review_task(review, 50_000)
    assert "+line 20\n" in task
    assert "\n--- b.py\n(Its diff is left out because of its size: read the file.)" in task
    assert len(task) < 25_000
    assert task.endswith("Not shown: sub.")


def review_with(review: Review, runtime: AgentRuntime) -> Review:
    return replace(review, state=read_state(runtime.conversation.log.entries))


async def test_the_line_names_the_diff_that_has_the_findings(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = stage.runtime([Reply("a.py:1: Hm.\n")])
    review = Review("HEAD~2", "since HEAD~2", (change("a.py"),), ReviewState())
    events = await collect(runtime.carry_out(lambda emit: review_by_helper(runtime, review, emit)))
    told = [event.text for event in events if isinstance(event, Notice)]
    assert told[-1].endswith(" /diff HEAD~2 shows them: a keeps, d drops.")
    await runtime.aclose()


async def test_findings_become_comments_and_the_cost_is_told(tmp_path: Path):
    stage = Stage(tmp_path)
    edit = call("w", "write", path="a.py", content=LINES)
    runtime = stage.runtime(
        [
            Reply(tool_calls=(edit,)),
            Reply("Done."),
            Reply("a.py:2: It is wrong.\na.py:99: No line.\nb.py:1: Old.\n"),
        ],
        mode="full",
    )
    await collect(runtime.submit("go"))
    keeper = ProcessKeeper()
    review = await ReviewLoader(runtime, keeper).load("")
    keeper.close()
    events = await collect(runtime.carry_out(lambda emit: review_by_helper(runtime, review, emit)))
    comment, *others = read_state(runtime.conversation.log.entries).comments.values()
    assert (comment.place, comment.text, comment.by, comment.state) == (
        "a.py:2",
        "It is wrong.",
        "helper",
        "found",
    )
    assert [(one.place, one.text) for one in others] == [
        ("a.py", "Line 99: No line."),
        ("b.py", "Line 1: Old."),
    ]
    told = [event.text for event in events if isinstance(event, Notice)]
    assert told[-1].startswith("The helper has 3 findings (1 step, ")
    assert told[-1].endswith(" /diff shows them: a keeps, d drops.")
    assert "3 findings undecided" in count_words(review_with(review, runtime))
    assert events[-1] == TurnFinished("done")
    await runtime.aclose()
