"""``agent-tui why`` on real sessions: a real runtime, real files, real git."""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from agent_tui.errors import UsageError
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.features.tree.branches import Branches
from agent_tui.features.why.subcommand import run_command
from agent_tui.messages import JsonObject
from agent_tui.sessions.importers.import_session import import_session
from agent_tui.sessions.store import SessionStore
from agent_tui.tools.git.trees import WorkTrees
from agent_tui.tools.processes.keeper import ProcessKeeper
from tests.sessions.importers import claude_lines
from tests.sessions.importers.recordings import LAID_OUT
from tests.support.runtime import GOOD_SUMMARY, Stage, collect

FILE = "mean.py"


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = Stage(tmp_path)
    monkeypatch.setenv("AGENT_TUI_SESSION_DIR", str(stage.sessions))
    monkeypatch.setenv("AGENT_TUI_CONFIG_DIR", str(stage.config))
    monkeypatch.chdir(stage.workspace)
    git(stage, "init", "-q", "-b", "main")
    (stage.workspace / FILE).write_text("def mean(values):\n    return 0\n\n\nprint(mean([]))\n")
    git(stage, "add", ".")
    git(stage, "commit", "-qm", "Begin")
    return stage


@pytest.fixture
def trees() -> Iterator[WorkTrees]:
    keeper = ProcessKeeper()
    yield WorkTrees(keeper)
    keeper.close()


def git(stage: Stage, *arguments: str) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(
        ["git", *identity, *arguments], cwd=stage.workspace, check=True, capture_output=True
    )


def edit(name: str, old: str, new: str, said: str = "") -> Reply:
    return Reply(said, tool_calls=(call(f"e{old}", "edit", path=name, old=old, new=new),))


def bash(command: str) -> Reply:
    return Reply(tool_calls=(call(f"b{command}", "bash", command=command),))


def fixed_and_moved(stage: Stage, trees: WorkTrees) -> None:
    asyncio.run(fix_and_move(stage, trees))


async def fix_and_move(stage: Stage, trees: WorkTrees) -> None:
    """Two turns with a ``/compact`` between them; the file moves, and somebody adds a line."""
    replies = iter(
        [
            Reply(tool_calls=(call("r", "read", path=FILE),)),
            edit(FILE, "    return 0", "    return sum(values) / len(values)", "Zero was a stub."),
            bash("exit 3"),
            Reply("Fixed."),
            *(Reply("It divides the sum by the number of values. " * 2_000) for _ in range(3)),
            bash("mkdir src; mv mean.py src/average.py"),
            edit("src/average.py", "def mean", "def average", "The file has that name."),
            Reply("Renamed."),
        ]
    )
    runtime = stage.runtime(
        lambda request: Reply(GOOD_SUMMARY) if request.purpose == "summary" else next(replies),
        trees=trees,
    )
    await collect(runtime.submit("Make mean() return the mean."))
    for _ in range(3):
        await collect(runtime.submit("Explain it."))
    first = runtime.conversation.log.path
    await collect(runtime.compact())
    assert runtime.conversation.log.path != first
    await collect(runtime.submit("Call it average."))
    moved = stage.workspace / "src/average.py"
    moved.write_text("# by hand\n" + moved.read_text())
    await runtime.aclose()


def asked(capsys: pytest.CaptureFixture[str], place: str) -> JsonObject:
    assert run_command([place, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def the_change(answer: JsonObject) -> JsonObject:
    (change,) = cast(list[JsonObject], answer["changes"])
    return change


def test_a_line_is_explained_through_a_compaction_and_a_move(
    stage: Stage, trees: WorkTrees, capsys: pytest.CaptureFixture[str]
):
    fixed_and_moved(stage, trees)
    answer = asked(capsys, "src/average.py:3")
    assert answer["text"] == "    return sum(values) / len(values)"
    assert (answer["status"], answer["commit"]) == ("recorded", None)
    change = the_change(answer)
    assert change["asked"] == "Make mean() return the mean."
    assert (change["reason"], change["reasonKind"]) == ("Zero was a stub.", "text")
    assert (change["maker"], change["tool"]) == ("call", "edit")
    assert change["path"] == str(stage.workspace / FILE)
    assert change["replaced"] == ["    return 0"]
    assert change["wrote"] == ["    return sum(values) / len(values)"]
    ran = {"command": "exit 3", "printed": [], "exitCode": 3, "isError": True}
    assert change["nextCommand"] == ran

    renamed = the_change(asked(capsys, "src/average.py:2"))
    assert (renamed["asked"], renamed["nextCommand"]) == ("Call it average.", None)
    assert renamed["session"] != change["session"]


def test_lines_of_nobody_recorded_say_so(
    stage: Stage, trees: WorkTrees, capsys: pytest.CaptureFixture[str]
):
    fixed_and_moved(stage, trees)
    assert asked(capsys, "src/average.py:1")["status"] == "unrecorded"
    earlier = asked(capsys, "src/average.py:6")
    assert (earlier["status"], earlier["commit"]) == ("earlier", None)
    git(stage, "add", "-A")
    git(stage, "commit", "-qm", "Move it")
    outside = asked(capsys, "src/average.py:1")
    assert (outside["status"], outside["changes"]) == ("unrecorded", [])
    commit = cast(JsonObject, outside["commit"])
    assert (commit["author"], commit["summary"]) == ("Ada", "Move it")


def test_an_undone_change_leaves_the_answer_of_the_line_it_restores(
    stage: Stage, trees: WorkTrees, capsys: pytest.CaptureFixture[str]
):
    read = Reply(tool_calls=(call("r", "read", path=FILE),))
    script = [
        read,
        edit(FILE, "return 0", "return 1"),
        Reply("1"),
        edit(FILE, "1", "2"),
        Reply("2"),
    ]

    async def change_twice_and_undo() -> None:
        runtime = stage.runtime(script, trees=trees)
        await collect(runtime.submit("Return 1."))
        await collect(runtime.submit("Return 2."))
        assert (stage.workspace / FILE).read_text().split("\n")[1] == "    return 2"
        second = next(e.id for e in runtime.conversation.log.entries if "Return 2." in str(e))
        place = await Branches(runtime).place_of(second)
        await runtime.files.carry_out(await runtime.files.plan_for(place))

    asyncio.run(change_twice_and_undo())
    assert the_change(asked(capsys, f"{FILE}:2"))["asked"] == "Return 1."


def test_it_prints_a_short_answer(
    stage: Stage, trees: WorkTrees, capsys: pytest.CaptureFixture[str]
):
    fixed_and_moved(stage, trees)
    assert run_command(["src/average.py:3"]) == 0
    first, empty, session, *rest = capsys.readouterr().out.splitlines()
    assert (first, empty) == ("src/average.py:3: return sum(values) / len(values)", "")
    assert ", session " in session
    assert rest == [
        "  You asked: Make mean() return the mean.",
        "  The model: Zero was a stub.",
        "  Changed by edit (in mean.py)",
        "    -     return 0",
        "    +     return sum(values) / len(values)",
        "  Next command: exit 3 (exit 3)",
    ]


def test_of_a_long_change_the_part_around_the_line_is_shown_with_command_and_commit(
    stage: Stage, trees: WorkTrees, capsys: pytest.CaptureFixture[str]
):
    new = "\n".join(f"    step({number})" for number in range(40))
    printing = "printf '\\n1 failed\\n\\n3 passed\\n'\n(exit 4)"
    ran = Reply(tool_calls=(call("b", "bash", command=printing),))
    runtime = stage.runtime([edit(FILE, "    return 0", new), ran, Reply()], trees=trees)
    asyncio.run(collect(runtime.submit("Forty steps.")))
    git(stage, "commit", "-qam", "Steps")
    assert run_command([f"{FILE}:32"]) == 0
    rows = capsys.readouterr().out.splitlines()
    del rows[: rows.index("  Changed by edit") + 1]
    assert rows[:2] == ["    -     return 0", "    + ... 24 more lines"]
    assert rows[2:14] == [f"    +     step({number})" for number in range(24, 36)]
    assert rows[14:18] == [
        "    + ... 4 more lines",
        "  Next command: printf '\\n1 failed\\n\\n3 passed\\n' … (exit 4) (exit 4)",
        "    1 failed",
        "    3 passed",
    ]
    assert rows[18].startswith("git blame: ")
    assert rows[18].endswith(" Ada: Steps")


@pytest.mark.parametrize(
    "place", ["mean.py", "mean.py:0", "mean.py:9", "none.py:1", ".:1", "", "mean.py:2-1"]
)
def test_a_place_that_is_none_is_an_error_that_says_what_to_give(stage: Stage, place: str):
    with pytest.raises(UsageError) as refused:
        run_command([place])
    assert refused.value.advice


def test_a_file_that_no_session_changed_is_not_known(
    stage: Stage, capsys: pytest.CaptureFixture[str]
):
    answer = asked(capsys, f"{FILE}:1")
    assert (answer["status"], answer["changes"]) == ("unknown", [])
    assert cast(JsonObject, answer["commit"])["summary"] == "Begin"


def test_lines_of_an_imported_session_are_exact_by_what_it_says_of_the_file(
    stage: Stage, capsys: pytest.CaptureFixture[str]
):
    path = str(stage.workspace / FILE)
    before = (stage.workspace / FILE).read_text()
    edit = claude_lines.call("t1", "Edit", file_path=path, old_string="\n\n", new_string="\n")
    hunk = {
        "oldStart": 3,
        "oldLines": 3,
        "newStart": 3,
        "newLines": 3,
        "lines": [" ", "-", "+# Try it.", " print(mean([]))"],
    }
    noted = {"filePath": path, "originalFile": before, "structuredPatch": [hunk]}
    lines = [
        claude_lines.said("u1", None, "Explain the call."),
        claude_lines.replied("a1", "u1", edit),
        claude_lines.result("r1", "a1", "t1", toolUseResult=noted),
    ]
    for line in lines:
        line["cwd"] = str(stage.workspace)
    file = stage.folder / "theirs.jsonl"
    claude_lines.write(file, *lines)
    import_session(SessionStore(stage.sessions, "none"), file, cwd=stage.workspace)
    (stage.workspace / FILE).write_text(
        "def mean(values):\n    return 0\n\n# Try it.\nprint(mean([]))\n"
    )
    change = the_change(asked(capsys, f"{FILE}:4"))
    assert change["asked"] == "Explain the call."
    assert (change["replaced"], change["wrote"]) == ([""], ["# Try it."])
    assert asked(capsys, f"{FILE}:5")["status"] == "earlier"


def test_several_lines_are_a_list_and_have_their_keys_removed(
    stage: Stage, trees: WorkTrees, capsys: pytest.CaptureFixture[str]
):
    key = "sk-ant-api03-0123456789abcdefghij"
    read = Reply(tool_calls=(call("r", "read", path=FILE),))
    script = [read, edit(FILE, "return 0", f"return '{key}'", f"Use {key}."), Reply("Done.")]
    asyncio.run(collect(stage.runtime(script, trees=trees).submit(f"Return {key} now.")))
    assert run_command([f"{FILE}:1-2", "--json"]) == 0
    printed = capsys.readouterr().out
    assert key not in printed
    answers = cast(list[JsonObject], json.loads(printed))
    assert [answer["status"] for answer in answers] == ["earlier", "recorded"]
    assert the_change(answers[1])["asked"] == "Return [key removed] now."
    assert run_command([f"{FILE}:1-2"]) == 0
    shown = capsys.readouterr().out
    assert key not in shown
    said, blamed = shown.splitlines()[1:3]
    assert said.startswith("No session made this line: it was there before the first recorded")
    assert blamed.startswith("git blame: ")
    assert "\n\nmean.py:2: return '[key removed]'\n\n" in shown


def test_what_commands_changed_is_theirs(
    stage: Stage, trees: WorkTrees, capsys: pytest.CaptureFixture[str]
):
    """With ``sed``, a program that writes the file again, and ``git checkout``."""
    write_again = (
        "python3 - <<'E'\np = 'mean.py'\ns = open(p).read() + '# end\\n'\nopen(p, 'w').write(s)\nE"
    )
    checkout = "git checkout -q -- mean.py"
    script = [
        bash("sed -i 's/return 0/return 1/' mean.py"),
        bash(write_again),
        Reply("Changed."),
        bash(checkout),
        Reply("As it was."),
    ]

    async def run(text: str) -> None:
        await collect(runtime.submit(text))

    runtime = stage.runtime(script, trees=trees)
    asyncio.run(run("Return 1 and end the file."))
    changed = the_change(asked(capsys, f"{FILE}:2"))
    assert (changed["maker"], changed["replaced"]) == ("command", ["    return 0"])
    assert the_change(asked(capsys, f"{FILE}:6"))["command"] == write_again
    asyncio.run(run("Take it back."))
    restored = the_change(asked(capsys, f"{FILE}:2"))
    assert (restored["command"], restored["asked"]) == (checkout, "Take it back.")
    assert asked(capsys, f"{FILE}:1")["status"] == "earlier"


def test_a_change_without_its_contents_is_not_said_to_come_from_outside(
    stage: Stage, capsys: pytest.CaptureFixture[str]
):
    script = [bash("sed -i 's/return 0/return 1/' mean.py"), edit(FILE, "[]", "[1]"), Reply("Ok.")]
    asyncio.run(collect(stage.runtime(script).submit("Return 1.")))
    answer = asked(capsys, f"{FILE}:2")
    assert answer["status"] == "unknown"
    assert str(the_change(answer)["command"]).startswith("sed ")
    (stage.workspace / FILE).write_text((stage.workspace / FILE).read_text() + "# more\n")
    outside = asked(capsys, f"{FILE}:6")
    assert outside["status"] == "unrecorded"
    assert str(outside["message"]).endswith(", or by a command without a record.")


@pytest.mark.parametrize(
    "name",
    ["gemini", "gemini_document", "opencode", "opencode_storage", "kimi_code", "kimi_cli"],
)
def test_lines_that_an_imported_session_of_another_agent_wrote_are_explained(
    stage: Stage, capsys: pytest.CaptureFixture[str], name: str
):
    whom = {"opencode": "all", "opencode_storage": "you"}.get(name, "world")
    stage.workspace.joinpath("greet.py").write_text(
        f'def greet(name):\n    return "good day " + name\n\n\nprint(greet("{whom}"))\n'
    )
    stage.workspace.joinpath("notes.txt").write_text("one\ntwo\nthree\n")
    theirs = LAID_OUT[name](stage.folder / "home", str(stage.workspace))
    import_session(SessionStore(stage.sessions, "none"), theirs, cwd=stage.workspace)
    edited = the_change(asked(capsys, "greet.py:2"))
    assert str(edited["asked"]).strip('"\n') == "Please follow plan alpha"
    assert edited["reason"] == "Now the change."
    assert edited["replaced"] == ['    return "hello " + name']
    assert edited["wrote"] == ['    return "good day " + name']
    written = the_change(asked(capsys, "notes.txt:2"))
    assert (written["replaced"], written["wrote"]) == ([], ["one", "two", "three"])
    untouched = asked(capsys, "greet.py:1")
    is_kept = name in ("gemini", "opencode_storage", "kimi_code")
    assert (untouched["status"], untouched["changes"]) == (
        "earlier" if is_kept else "ambiguous",
        [],
    )
