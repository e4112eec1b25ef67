"""``agent-tui why`` on files that were moved or copied without a record."""

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import cast

import pytest

from agent_tui.features.tour.scripted import Reply, call
from agent_tui.features.why.subcommand import run_command
from agent_tui.messages import JsonObject
from agent_tui.tools.git.trees import WorkTrees
from agent_tui.tools.processes.keeper import ProcessKeeper
from tests.support.runtime import Stage, collect

WRITTEN = "import csv\n\n\ndef total(rows):\n    return sum(float(row['amount']) for row in rows)\n"
MOVED = "def total(rows):"


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = Stage(tmp_path)
    monkeypatch.setenv("AGENT_TUI_SESSION_DIR", str(stage.sessions))
    monkeypatch.setenv("AGENT_TUI_CONFIG_DIR", str(stage.config))
    monkeypatch.chdir(stage.workspace)
    return stage


def git(stage: Stage, *arguments: str) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(
        ["git", *identity, *arguments], cwd=stage.workspace, check=True, capture_output=True
    )


def say(stage: Stage, request: str, *calls: tuple[str, JsonObject]) -> None:
    """One session with one request and these calls; commands' changes are recorded."""
    script = [
        Reply(tool_calls=(call(f"c{n}", name, **given),)) for n, (name, given) in enumerate(calls)
    ]
    keeper = ProcessKeeper()

    async def run() -> None:
        runtime = stage.runtime([*script, Reply("Done.")], trees=WorkTrees(keeper))
        await collect(runtime.submit(request))
        await runtime.aclose()

    try:
        asyncio.run(run())
    finally:
        keeper.close()


def write(path: str, content: str = WRITTEN) -> tuple[str, JsonObject]:
    return "write", {"path": path, "content": content}


def edit(path: str, old: str, new: str) -> tuple[str, JsonObject]:
    return "edit", {"path": path, "old": old, "new": new}


def bash(command: str) -> tuple[str, JsonObject]:
    return "bash", {"command": command}


def asked(capsys: pytest.CaptureFixture[str], place: str) -> JsonObject:
    assert run_command([place, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def requests(answer: JsonObject) -> list[object]:
    return [change["asked"] for change in cast(list[JsonObject], answer["changes"])]


def expect(
    capsys: pytest.CaptureFixture[str], place: str, status: str, *wanted: str, proof: str = ""
) -> JsonObject:
    answer = asked(capsys, place)
    moves = cast(list[JsonObject], answer["moves"])
    assert (answer["status"], requests(answer)) == (status, list(wanted)), answer["message"]
    assert [move["proof"] for move in moves] == ([proof] if proof else [])
    return answer


def test_a_file_moved_by_mv_keeps_its_answers(stage: Stage, capsys: pytest.CaptureFixture[str]):
    say(stage, "Sum it.", write("tally.py"))
    shutil.move("tally.py", "total.py")
    expect(capsys, "total.py:4", "recorded", "Sum it.", proof="same")
    assert run_command(["total.py:4"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[1] == "total.py comes from tally.py, without a record: the content is the same."


def test_so_does_one_edited_by_hand_and_by_the_model_after_the_move(
    stage: Stage, capsys: pytest.CaptureFixture[str]
):
    say(stage, "Sum it.", write("tally.py"))
    shutil.move("tally.py", "total.py")
    Path("total.py").write_text("# by hand\n" + WRITTEN)
    say(stage, "Call them lines.", edit("total.py", "import csv", "import tsv"))
    expect(capsys, "total.py:5", "recorded", "Sum it.", proof="similar")
    expect(capsys, "total.py:2", "recorded", "Call them lines.")
    by_hand = expect(capsys, "total.py:1", "unrecorded")
    assert "after" not in str(by_hand["message"])


def test_of_a_moved_folder(stage: Stage, capsys: pytest.CaptureFixture[str]):
    say(stage, "Sum it.", write("src/tally.py"), write("src/other.py", WRITTEN * 2))
    shutil.move("src", "lib")
    expect(capsys, "lib/tally.py:4", "recorded", "Sum it.", proof="same")


def test_a_chain_of_moves_with_and_without_a_record(
    stage: Stage, capsys: pytest.CaptureFixture[str]
):
    git(stage, "init", "-q")
    say(stage, "Sum it.", write("a.py"))
    shutil.move("a.py", "b.py")
    say(stage, "Move it.", bash("mv b.py c.py"))
    shutil.move("c.py", "d.py")
    answer = asked(capsys, "d.py:4")
    assert (answer["status"], requests(answer)) == ("recorded", ["Sum it."])
    moves = cast(list[JsonObject], answer["moves"])
    assert [Path(str(move["from"])).name for move in moves] == ["c.py", "a.py"]


@pytest.mark.parametrize("is_committed", [True, False])
def test_git_decides_when_the_content_does_not(
    stage: Stage, capsys: pytest.CaptureFixture[str], is_committed: bool
):
    git(stage, "init", "-q")
    say(stage, "Sum it.", write("a.py"), write("b.py"))
    git(stage, "add", ".")
    git(stage, "commit", "-qm", "Begin")
    git(stage, "mv", "b.py", "d [1].py")
    if is_committed:
        git(stage, "commit", "-qam", "Move it")
    Path("a.py").unlink()
    answer = expect(capsys, "d [1].py:4", "recorded", "Sum it.", proof="git")
    (move,) = cast(list[JsonObject], answer["moves"])
    assert move["from"] == str(stage.workspace / "b.py")


def test_of_several_files_that_it_may_have_been_none_is_chosen(
    stage: Stage, capsys: pytest.CaptureFixture[str]
):
    say(stage, "Sum it.", write("a.py"))
    say(stage, "Again.", write("b.py"))
    shutil.move("a.py", "c.py")
    Path("b.py").unlink()
    answer = expect(capsys, "c.py:4", "unknown")
    assert "a.py or b.py" in str(answer["message"])


def test_a_copy_has_the_answers_of_the_file_that_it_was(
    stage: Stage, capsys: pytest.CaptureFixture[str]
):
    say(stage, "Sum it.", write("a.py"))
    shutil.copy("a.py", "b.py")
    say(stage, "Rename it.", edit("a.py", "total", "sum_of"))
    expect(capsys, "b.py:4", "recorded", "Sum it.", proof="same")
    expect(capsys, "a.py:4", "recorded", "Rename it.")
    Path("b.py").write_text(WRITTEN + "# by hand\n")
    expect(capsys, "b.py:5", "unknown")


def test_a_file_that_was_there_before_is_no_copy(stage: Stage, capsys: pytest.CaptureFixture[str]):
    Path("old.py").write_text(WRITTEN)
    os.utime("old.py", (1, 1))
    say(stage, "Copy it.", ("read", {"path": "old.py"}), write("new.py"))
    expect(capsys, "old.py:4", "unknown")
    say(stage, "Change it.", edit("old.py", "import csv", "import tsv"))
    answer = asked(capsys, "old.py:4")
    assert answer["status"] == "ambiguous"


def test_short_equal_files_are_no_copies(stage: Stage, capsys: pytest.CaptureFixture[str]):
    say(stage, "Begin.", write("a/__init__.py", '"""Code."""\n'))
    Path("b").mkdir()
    Path("b/__init__.py").write_text('"""Code."""\n')
    expect(capsys, "b/__init__.py:1", "unknown")


def test_what_was_there_before_the_first_change_is_said_only_of_what_a_session_saw(
    stage: Stage, capsys: pytest.CaptureFixture[str]
):
    Path("a.py").write_text(WRITTEN)
    say(stage, "Change it.", edit("a.py", "import csv", "import tsv"))
    expect(capsys, "a.py:4", "earlier")
    shutil.move("a.py", "b.py")
    expect(capsys, "b.py:4", "earlier", proof="same")
    expect(capsys, "b.py:1", "recorded", "Change it.", proof="same")
    Path("c.py").write_text("nothing like it\n")
    expect(capsys, "c.py:1", "unknown")


def test_a_command_that_moves_and_changes_a_file_keeps_its_answers(
    stage: Stage, capsys: pytest.CaptureFixture[str]
):
    git(stage, "init", "-q")
    say(stage, "Sum it.", write("a.py"))
    say(stage, "Move it.", bash("mv a.py b.py && sed -i s/csv/tsv/ b.py"))
    expect(capsys, "b.py:4", "recorded", "Sum it.")
    expect(capsys, "b.py:1", "recorded", "Move it.")


def test_only_the_case_of_a_name_changes(stage: Stage, capsys: pytest.CaptureFixture[str]):
    say(stage, "Sum it.", write("Tally.py"))
    shutil.move("Tally.py", "tally.py")
    expect(capsys, "tally.py:4", "recorded", "Sum it.", proof="same")


def test_a_file_that_left_and_came_back_has_its_answers(
    stage: Stage, capsys: pytest.CaptureFixture[str]
):
    say(stage, "Sum it.", write("a.py"))
    shutil.move("a.py", stage.folder / "a.py")
    say(stage, "Look.", bash("ls"))
    shutil.move(stage.folder / "a.py", "b.py")
    expect(capsys, "b.py:4", "recorded", "Sum it.", proof="same")


def test_the_commit_is_that_of_the_file_before_an_uncommitted_move(
    stage: Stage, capsys: pytest.CaptureFixture[str]
):
    git(stage, "init", "-q")
    say(stage, "Sum it.", write("a.py"))
    git(stage, "add", ".")
    git(stage, "commit", "-qm", "Begin")
    Path("src").mkdir()
    shutil.move("a.py", "src/b.py")
    answer = expect(capsys, "src/b.py:4", "recorded", "Sum it.", proof="same")
    assert cast(JsonObject, answer["commit"])["summary"] == "Begin"


def test_a_file_that_was_committed_before_is_neither_moved_nor_copied(
    stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2020-01-01T00:00:00Z")
    git(stage, "init", "-q")
    Path("a.py").write_text(WRITTEN)
    git(stage, "add", ".")
    git(stage, "commit", "-qm", "Begin")
    say(stage, "Copy it.", write("b.py"), edit("a.py", "csv", "tsv"))
    expect(capsys, "a.py:4", "earlier")
    Path("b.py").unlink()
    expect(capsys, "a.py:4", "earlier")
    shutil.move("a.py", "c.py")
    expect(capsys, "c.py:4", "earlier", proof="same")
