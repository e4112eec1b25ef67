"""Of the newest messages, exchanges of which nothing is needed leave no trace."""

from collections.abc import Callable

from agent_tui.compaction.plan import read_live
from agent_tui.compaction.sections.file_states import FileReader
from agent_tui.compaction.sections.files import ShownFile
from agent_tui.compaction.sections.history import read_history
from agent_tui.compaction.sections.tail import Tail, TailEditor
from agent_tui.compaction.tiers.units import read_units
from agent_tui.config import CompactionSettings
from agent_tui.messages import AssistantMessage, JsonObject, ToolCall, ToolDetails
from agent_tui.sessions.context import build_context
from agent_tui.tokens import TokenCounter
from tests.compaction.sections.scene import FOLDERS, begun, numbered
from tests.support.rows import each_row
from tests.support.talk import Talk

LINES = [f"value_{number} = {number}" for number in range(40)]


def read(talk: Talk) -> None:
    talk.tool("read", {"path": "src/a.py"}, numbered(LINES))


def edit(talk: Talk, number: int = 7) -> None:
    talk.tool("edit", {"path": "src/a.py", "old": LINES[number], "new": f"other_{number} = 1"})


def create(talk: Talk) -> None:
    talk.tool("edit", {"path": "src/b.py", "old": "", "new": "b = 1"})


def bash(command: str, output: str = "", *, exit_code: int = 0) -> Callable[[Talk], None]:
    return lambda talk: talk.tool("bash", {"command": command}, output, exit_code=exit_code)


def again(talk: Talk) -> None:
    edit(talk, 8)


def refuse(talk: Talk, text: str = "refused = 1") -> None:
    change: JsonObject = {"path": "src/a.py", "old": "", "new": text}
    talk.tool("edit", change, "No.", is_error=True, details=ToolDetails(ending="declined"))


def refuse_it(talk: Talk) -> None:
    refuse(talk, "other_7 = 1")


SHOWN = bash("cat src/a.py", "\n".join(LINES))
TESTED = bash("mix test", "made\n" * 40 + "9 passed")
FAILED = bash("mix test", "made\n" * 40 + "1 failed, 8 passed")
ACT = bash("deploy", "done")
DIFF = bash("git diff", "\n".join(f"+{line}" for line in LINES))
COMMIT = bash("git commit -qam x", "[main 1234567] x\n 1 file changed")


def left_out(talk: Talk, counter: TokenCounter) -> Tail:
    units = read_units(
        talk.path, carryover=None, counter=counter, settings=CompactionSettings(), window=100_000
    )
    editor, live = TailEditor(units.items, "batch", counter, FOLDERS), read_live(talk.path, counter)
    shown = {"src/a.py": ShownFile("src/a.py", "\n".join(LINES), is_whole=True)}
    known = FileReader(FOLDERS).read(read_history(talk.path))
    tail = editor.lines_for_what_stands_elsewhere(live, shown, 1_000_000, known)
    return editor.leave_out_spent(live, tail, 1_000_000)


def calls_left(talk: Talk, counter: TokenCounter) -> list[str]:
    """The commands and paths of the calls that the model still sees."""
    tail = left_out(talk, counter)
    for number, one in enumerate(tail.edits.values()):
        talk.entries.append(one.model_copy(update={"id": f"edit{number}"}))
    items = build_context(talk.path).messages
    assert sum(map(counter.count_message, (item.message for item in items))) == sum(tail.tokens)
    replies = [item.message for item in items if isinstance(item.message, AssistantMessage)]
    assert len([item for item in items if item.message.role == "toolResult"]) == sum(
        len(reply.tool_calls) for reply in replies
    )
    calls = [call.arguments for reply in replies for call in reply.tool_calls]
    return [
        str(arguments.get("command") or arguments.get("new") or arguments["path"])
        for arguments in calls
    ]


@each_row(
    ("steps", "left"),
    [
        ((read,), ["src/a.py"]),
        ((read, read, SHOWN), ["src/a.py", "cat src/a.py"]),
        ((edit, again), ["other_8 = 1"]),
        ((edit, create, again), ["b = 1", "other_8 = 1"]),
        ((refuse, edit, again, again), ["refused = 1", "other_7 = 1", "other_8 = 1"]),
        ((refuse_it, edit, again, again), ["other_7 = 1", "other_8 = 1"]),
        ((edit, create, COMMIT, again), ["git commit -qam x", "other_8 = 1"]),
        ((edit, COMMIT), ["other_7 = 1", "git commit -qam x"]),
        ((TESTED, TESTED), ["mix test"]),
        ((TESTED, edit, TESTED), ["other_7 = 1", "mix test"]),
        ((TESTED, COMMIT, FAILED), ["git commit -qam x", "mix test"]),
        ((FAILED, COMMIT, TESTED), ["mix test", "git commit -qam x", "mix test"]),
        ((DIFF, COMMIT, DIFF), ["git commit -qam x", "git diff"]),
        ((ACT, COMMIT, ACT), ["git commit -qam x", "deploy"]),
        ((ACT, COMMIT), ["deploy", "git commit -qam x"]),
        ((ACT, ACT), ["deploy", "deploy"]),
    ],
)
def test_what_is_spent_goes_with_its_call(
    counter: TokenCounter, steps: tuple[Callable[[Talk], None], ...], left: list[str]
) -> None:
    talk = begun()
    for step in steps:
        step(talk)
    talk.reply("All of that is done.")
    assert calls_left(talk, counter) == left


@each_row(
    ("text", "stays"),
    [("", False), ("Now the file:", False), ("It is the cache.", True), ("1.\n2:", True)],
)
def test_a_reply_that_says_something_stays_with_its_calls(
    counter: TokenCounter, text: str, stays: bool
) -> None:
    talk = begun()
    look = ToolCall(id="a", name="read", arguments={"path": "src/a.py"})
    talk.reply("First the file:")
    talk.reply(text, look)
    talk.result(look, numbered(LINES))
    read(talk)
    talk.reply("Done.")
    assert len(calls_left(talk, counter)) == 1 + stays
    texts = [item.message.text for item in build_context(talk.path).messages]
    assert ("First the file:" in texts) is stays


def test_what_went_stays_away_in_the_next_compaction(counter: TokenCounter) -> None:
    talk = begun()
    read(talk)
    read(talk)
    talk.reply("Read.")
    assert calls_left(talk, counter) == ["src/a.py"]
    assert not left_out(talk, counter).edits
    talk.tool("bash", {"command": "deploy"}, "up")
    talk.reply("Deployed.")
    assert calls_left(talk, counter) == ["src/a.py", "deploy"]


def test_what_was_shown_before_the_newest_commit_takes_a_line(counter: TokenCounter) -> None:
    talk = begun()
    bash("grep -rn part src", "\n".join(f"src/a.py:{n}:part_{n}" for n in range(60)))(talk)
    bash("ls src", "a.py")(talk)
    talk.tool("read", {"path": "src/c.py"}, numbered([f"other_{n} = {n}" for n in range(40)]))
    talk.reply("Done.")
    *_, edit = left_out(talk, counter).edits.values()
    assert str(edit.replacement).startswith("src/a.py:\n0:part_0\n1:part_1\n")
    COMMIT(talk)
    talk.reply("Committed.")
    found, read_file = (str(edit.replacement) for edit in left_out(talk, counter).edits.values())
    assert {read_file.partition(" [")[0], found.partition(" [")[0]} == {
        "40 lines",
        "60 lines; src/a.py:0:part_0",
    }


@each_row(
    ("steps", "is_short"),
    [((FAILED, TESTED), True), ((FAILED, FAILED), False), ((FAILED, ACT), False)],
)
def test_a_failure_that_is_over_takes_a_line(
    counter: TokenCounter, steps: tuple[Callable[[Talk], None], ...], is_short: bool
) -> None:
    talk = begun()
    for step in steps:
        step(talk)
    talk.reply("Done.")
    shown = [str(edit.replacement) for edit in left_out(talk, counter).edits.values()]
    assert any("passed later" in one and "1 failed" in one for one in shown) is is_short


def test_of_a_long_command_the_first_line_stays_once_its_work_is_committed(
    counter: TokenCounter,
) -> None:
    talk = begun()
    bash("cd src\n" + "sed -i s/a/b/ a.py\n" * 40)(talk)
    talk.reply("Replaced.")
    assert not left_out(talk, counter).edits
    COMMIT(talk)
    talk.reply("Done.")
    (edit,) = left_out(talk, counter).edits.values()
    (call,) = [part for part in edit.replacement or () if isinstance(part, ToolCall)]
    assert str(call.arguments["command"]).startswith("cd src\n[... ")
