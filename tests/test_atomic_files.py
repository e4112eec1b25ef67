import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent_tui.atomic_files import remove_leftovers, replace_private_file, scratch_beside

KILLED = """
import os, signal, sys
from pathlib import Path
from agent_tui.tools.base import ToolContext
from agent_tui.tools.files.memory import FileMemory
from agent_tui.tools.files.text_files import replace_file

def replace(file, number):
    calls = 0

    def kill_at(event, arguments):
        nonlocal calls
        if event in ("open", "os.rename", "os.remove"):
            calls += 1
            if calls == number:
                os.kill(os.getpid(), signal.SIGKILL)

    context = ToolContext(file.parent, print, FileMemory(), file.parent, {}, [])
    sys.addaudithook(kill_at)
    replace_file(file, b"new", context)

# Each write in a process that has everything imported: to import it takes half a second.
for line in sys.stdin:
    child = os.fork()
    if not child:
        replace(Path(sys.argv[1]), int(line))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENT_TUI_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_whenever_a_write_is_killed_the_next_start_finds_a_whole_file_and_nothing_beside_it(
    workspace: Path, cache: Path
) -> None:
    target = workspace / "a.txt"
    left_behind, code = 0, -1
    command = [sys.executable, "-c", KILLED, str(target)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        for number in range(1, 20):
            target.write_bytes(b"old")
            print(number, file=writer.stdin, flush=True)
            code = int(writer.stdout.readline())
            left_behind += names(workspace) != ["a.txt"]
            remove_leftovers()
            assert names(workspace) == ["a.txt"]
            assert names(cache) == []
            assert target.read_bytes() in (b"old", b"new")
            if code == 0:
                break
            assert code == -signal.SIGKILL
    assert code == 0
    assert left_behind


def test_what_is_being_written_now_is_left_alone(workspace: Path) -> None:
    with scratch_beside(workspace / "a.txt") as scratch:
        scratch.write_bytes(b"half")
        command = "from agent_tui.atomic_files import remove_leftovers; remove_leftovers()"
        subprocess.run([sys.executable, "-c", command], check=True)
        assert scratch.read_bytes() == b"half"
    assert names(workspace) == []


def test_a_note_removes_no_file_but_its_own(workspace: Path, cache: Path) -> None:
    for number, name in enumerate(("a.txt", ".agent-tui-other.tmp")):
        mine = workspace / name
        mine.write_text("mine")
        note = cache / "unfinished" / f"note{number}"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_bytes(os.fsencode(mine))
    remove_leftovers()
    assert names(workspace) == [".agent-tui-other.tmp", "a.txt"]
    assert names(cache) == []


def test_without_a_cache_folder_that_can_be_written_files_are_replaced_all_the_same(
    workspace: Path, cache: Path
) -> None:
    cache.write_text("in the way")
    replace_private_file(workspace / "a.txt", "new")
    remove_leftovers()
    assert (workspace / "a.txt").read_text() == "new"
    assert names(workspace) == ["a.txt"]
