import io
import json
import os
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent_tui.errors import UsageError
from agent_tui.features.clean import command, removal
from agent_tui.features.clean.command import run_command
from agent_tui.features.clean.inventory import StoredItem, Usage
from agent_tui.features.clean.old_sessions import days_of, old_sessions
from agent_tui.features.clean.removal import remove, running_programs, user_of
from agent_tui.file_locks import FileLock
from agent_tui.sessions.entries import Header
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from tests.features.clean.test_inventory import write
from tests.support.session_values import conversation

_DAY_S = 86_400


@pytest.fixture(autouse=True)
def _no_other_runs(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(command, "running_programs", list)


@pytest.fixture
def at_terminal(monkeypatch: pytest.MonkeyPatch):
    def answer(text: str) -> None:
        terminal = io.StringIO(f"{text}\n")
        terminal.isatty = lambda: True
        monkeypatch.setattr(sys, "stdin", terminal)

    return answer


def begin(home: Path, name: str, age_days: float = 0, parent: Path | None = None) -> SessionLog:
    store = SessionStore(home / "data/sessions", "none")
    above = str(parent) if parent else None
    log = store.create(Header(id=name, cwd="/w", parent_session=above))
    log.append_many(conversation())
    assert log.path is not None
    then = datetime.now(UTC).timestamp() - age_days * _DAY_S
    os.utime(log.path, (then, then))
    return log


def sessions(home: Path) -> set[str]:
    return {found.id for found in SessionStore(home / "data/sessions", "none").list()}


def test_without_a_kind_nothing_is_removed_and_the_promise_is_said(home: Path, capsys):
    file = write(home / "cache/outputs/a")
    with begin(home, "one"):
        pass
    assert run_command([]) == 0
    said = capsys.readouterr().out
    assert file.exists()
    assert "Sessions are never deleted automatically." in said
    assert f"copy {home / 'data'}" in said
    assert str(home / "cache/outputs") in said


def test_a_kind_is_removed_and_the_others_stay(home: Path, capsys):
    gone = [write(home / "cache/outputs/a"), write(home / "cache/packages/b/c")]
    stays = [write(home / "data/trust.json"), write(home / "data/sessions/p/s.jsonl")]
    assert run_command(["caches", "--yes", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["removed"] == [str(home / "cache/outputs"), str(home / "cache/packages")]
    assert said["kept"] == []
    assert not any(file.exists() for file in gone)
    assert all(file.exists() for file in stays)
    assert run_command(["caches", "--yes"]) == 0


def test_one_cache_can_be_removed(home: Path):
    gone, stays = write(home / "cache/packages/b/c"), write(home / "cache/outputs/a")
    assert run_command(["caches/packages", "--yes"]) == 0
    assert (gone.exists(), stays.exists()) == (False, True)


@pytest.mark.parametrize(("answer", "stays"), [("", True), ("n", True), ("y", False)])
def test_the_user_is_asked(home: Path, at_terminal, answer: str, stays: bool):
    file = write(home / "data/trust.json")
    at_terminal(answer)
    assert run_command(["trust"]) == int(stays)
    assert file.exists() == stays


def test_without_a_terminal_nothing_is_removed_unless_it_is_sure(home: Path, monkeypatch):
    file = write(home / "data/trust.json")
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(UsageError, match="Nothing removed"):
        run_command(["trust"])
    assert file.exists()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["sessions", "--yes"], "one by one"),
        (["caches", "--older-than", "9d", "--yes"], "one by one"),
        (["settings", "--yes"], "does not remove settings"),
        (["data", "--yes"], "does not remove data"),
        (["nonsense", "--yes"], "no kind 'nonsense'"),
        ([".", "--yes"], "no kind"),
    ],
)
def test_what_clean_does_not_remove_is_refused(home: Path, argv: list[str], said: str):
    files = [write(home / "config/config.toml"), write(home / "data/mine"), write(home / "cache/a")]
    with pytest.raises(UsageError, match=said):
        run_command(argv)
    assert all(file.exists() for file in files)


@pytest.mark.parametrize("kind", ["settings", "git", "git/refs", "git/worktrees", "caches"])
def test_of_a_kind_of_which_nothing_is_there_nothing_is_removed(kind: str, capsys):
    assert run_command([kind, "--yes"]) == 0
    assert "Nothing to remove." in capsys.readouterr().err


def test_sessions_that_another_folder_replaces_are_kept_and_moved_as_the_list_says(
    home: Path, tmp_path: Path, capsys
):
    with begin(home, "old", 200):
        pass
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    assert run_command(["--session-dir", str(elsewhere), "--json"]) == 0
    used, found = json.loads(capsys.readouterr().out)
    assert (used["path"], found["path"]) == (str(elsewhere), str(home / "data/sessions"))
    assert (found["kind"], found["files"]) == ("sessions", 1)
    assert "your conversations; cannot be made again" in found["loss"]
    program, subcommand, *argv = shlex.split(found["removal"])
    assert (program, subcommand) == ("agent-tui", "clean")
    assert run_command([*argv, "--yes"]) == 0
    assert sessions(home) == set()
    assert len(list((home / "data/sessions/trash").rglob("*.jsonl"))) == 1


def test_sessions_that_are_a_link_are_measured_and_named_for_the_backup(
    home: Path, tmp_path: Path, capsys
):
    write(tmp_path / "disk/p/s.jsonl", "z" * 100_000)
    (home / "data").mkdir(parents=True)
    (home / "data/sessions").symlink_to(tmp_path / "disk")
    assert run_command([]) == 0
    said = capsys.readouterr().out
    assert f"copy {home / 'data'} and {tmp_path / 'disk'}." in said
    assert run_command(["--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["sizeBytes"] >= 100_000


def test_old_sessions_go_to_the_trash_after_a_question_about_the_newest(
    home: Path, at_terminal, capsys
):
    for name, age in (("old1", 200), ("old2", 100), ("new", 5)):
        with begin(home, name, age):
            pass
    at_terminal("n")
    assert run_command(["sessions", "--older-than", "90d"]) == 1
    said = capsys.readouterr().err
    newest = (datetime.now().astimezone() - timedelta(days=100)).strftime("%Y-%m-%d")
    assert "2 sessions of all folders, not continued for 90 days." in said
    assert f"The newest, of {newest}: " in said
    assert sessions(home) == {"old1", "old2", "new"}
    at_terminal("y")
    assert run_command(["sessions", "--older-than", "90d"]) == 0
    assert "Moved 2 sessions to the trash." in capsys.readouterr().out
    assert sessions(home) == {"new"}
    assert len(list((home / "data/sessions/trash").rglob("*.jsonl"))) == 2
    assert run_command(["trash", "--yes"]) == 0
    assert not (home / "data/sessions/trash").exists()
    assert sessions(home) == {"new"}


def test_an_old_session_stays_while_one_that_continues_it_is_new_or_open(home: Path):
    with begin(home, "first", 200) as first, begin(home, "alone", 200):
        pass
    with begin(home, "child", 5, first.path):
        pass
    with begin(home, "continued", 5) as continued:
        pass
    with begin(home, "left", 200, continued.path):
        pass
    held = begin(home, "held", 300)
    store = SessionStore(home / "data/sessions", "none")
    running = store.running()
    assert list(running) == [held.path]
    old = old_sessions(store.list(), 90, datetime.now(UTC), running)
    assert [found.id for found in old] == ["alone"]
    held.close()


@pytest.mark.parametrize("text", ["", "0d", "-1d", "90m", "1.5d", "d"])
def test_what_is_no_number_of_days_is_refused(text: str):
    assert (days_of("90d"), days_of(" 7 ")) == (90, 7)
    with pytest.raises(ValueError, match="number of days"):
        days_of(text)


def test_while_a_session_is_open_only_the_trash_goes(home: Path, capsys):
    file, deleted = write(home / "cache/outputs/a"), write(home / "data/sessions/trash/p/a.jsonl")
    with begin(home, "open"):
        assert run_command(["caches", "trash", "--yes"]) == 1
        assert f"agent-tui is running (pid {os.getpid()})" in capsys.readouterr().err
    assert (file.exists(), deleted.exists()) == (True, False)


def test_a_run_without_a_session_counts_too(home: Path, monkeypatch, capsys):
    file = write(home / "cache/outputs/a")
    monkeypatch.setattr(command, "running_programs", lambda: [4321])
    assert run_command(["caches", "--yes"]) == 1
    assert "agent-tui is running (pid 4321)" in capsys.readouterr().err
    assert file.exists()


def test_what_is_used_since_the_question_stays(home: Path, monkeypatch, at_terminal, capsys):
    file = write(home / "cache/outputs/a")
    runs = iter(([], [4321]))
    monkeypatch.setattr(command, "running_programs", lambda: next(runs))
    at_terminal("y")
    assert run_command(["caches"]) == 1
    assert "(pid 4321)" in capsys.readouterr().err
    assert file.exists()


def test_a_held_lock_keeps_its_folder(home: Path, capsys):
    lock = FileLock(write(home / "cache/sharing/x.lock", ""))
    try:
        assert run_command(["caches/sharing", "--yes"]) == 1
        assert f"(pid {os.getpid()}) uses it" in capsys.readouterr().err
    finally:
        lock.release()
    assert run_command(["caches/sharing", "--yes"]) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only there the kernel tells it")
def test_what_a_process_has_open_or_works_in_is_in_use(tmp_path: Path):
    file = write(tmp_path / "f/a")
    code = "import sys; file = open(sys.argv[1]); print(1, flush=True); sys.stdin.read()"
    for argv, place in (([str(file)], tmp_path), ([os.devnull], file.parent)):
        with subprocess.Popen(
            [sys.executable, "-c", code, *argv],
            cwd=place,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            assert user_of(file.parent) == f"a program (pid {process.pid})"
            process.communicate(b"")
        assert user_of(file.parent) == ""


@pytest.mark.skipif(sys.platform != "linux", reason="only there the kernel tells it")
def test_other_runs_are_those_with_the_same_folders(tmp_path: Path, monkeypatch):
    program = write(tmp_path / "bin/agent-tui", "print(1, flush=True); input()")
    for folder, is_ours in ((os.environ["AGENT_TUI_HOME"], True), (str(tmp_path), False)):
        with subprocess.Popen(
            [sys.executable, program],
            env={**os.environ, "AGENT_TUI_HOME": folder},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            assert (process.pid in running_programs()) == is_ours
            process.communicate(b"\n")
    assert os.getpid() not in running_programs()


@pytest.fixture
def begin_process(tmp_path: Path, monkeypatch):
    """Puts a process into a ``/proc`` of the test."""
    monkeypatch.setattr(removal, "_PROCESSES", tmp_path / "proc")
    (tmp_path / "work").mkdir()

    def begin(pid: int, words: str, **variables: str) -> None:
        folder = tmp_path / "proc" / str(pid)
        write(folder / "cmdline", "".join(f"{word}\0" for word in words.split()))
        write(folder / "environ", "".join(f"{n}={v}\0" for n, v in variables.items()))
        (folder / "cwd").symlink_to(tmp_path / "work")

    return begin


@pytest.mark.parametrize(
    ("words", "is_run"),
    [
        ("/usr/bin/agent-tui", True),
        ("python3 /usr/bin/agent-tui -c", True),
        ("python3 -sP /usr/bin/agent-tui", True),
        ("/opt/bin/python3.12 /opt/bin/agent-tui-cli", True),
        ("pypy3 -m agent_tui clean", True),
        ("python3 -I -m agent_tui", True),
        ("python3", False),
        ("python3 -m http.server", False),
        ("python3 -c agent_tui", False),
        ("man agent-tui", False),
        ("vim agent-tui", False),
        ("xargs agent-tui clean", False),
        ("/usr/bin/time agent-tui clean", False),
        ("", False),
    ],
)
def test_a_run_is_known_by_the_program_that_its_process_runs(
    home: Path, begin_process, words: str, is_run: bool
):
    begin_process(4321, words, AGENT_TUI_HOME=str(home))
    assert running_programs() == [4321] * is_run


def test_a_run_counts_if_its_data_cache_or_log_folder_is_ours(
    home: Path, tmp_path: Path, monkeypatch, begin_process
):
    other = str(tmp_path / "other")
    own = str(home)
    runs = {
        1: {"AGENT_TUI_HOME": own, "XDG_CONFIG_HOME": other, "AGENT_TUI_SESSION_DIR": other},
        2: {"AGENT_TUI_DATA_DIR": f"{own}/data", "HOME": other},
        3: {"AGENT_TUI_HOME": other, "AGENT_TUI_CACHE_DIR": "../own/cache"},
        4: {"AGENT_TUI_HOME": other},
        5: {"HOME": other, "AGENT_TUI_CONFIG_DIR": f"{own}/config"},
    }
    for pid, variables in runs.items():
        begin_process(pid, "agent-tui", **variables)
    before = dict(os.environ)
    assert sorted(running_programs()) == [1, 2, 3]
    assert dict(os.environ) == before
    monkeypatch.delenv("AGENT_TUI_HOME")
    monkeypatch.setenv("HOME", other)
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert sorted(running_programs()) == [2, 5]


def test_a_run_whose_variables_cannot_be_read_does_not_count(
    tmp_path: Path, monkeypatch, begin_process
):
    for name in ("HOME", "AGENT_TUI_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    begin_process(4321, "agent-tui")
    (tmp_path / "proc/4321/environ").unlink()
    assert running_programs() == []


def test_a_folder_with_another_file_system_in_it_stays(home: Path, monkeypatch, capsys):
    file = write(home / "cache/outputs/a")
    usage = Usage(has_mounts=True)
    item = StoredItem("caches/outputs", str(file.parent), file.parent, usage, "")
    monkeypatch.setattr(command, "list_stored", lambda _: [item])
    assert run_command(["caches", "--yes"]) == 1
    assert "another file system is mounted in it" in capsys.readouterr().err
    assert file.exists()


def test_links_are_removed_and_what_they_lead_to_stays(home: Path, tmp_path: Path):
    outside = write(tmp_path / "project/mine")
    (home / "cache/outputs").mkdir(parents=True)
    (home / "cache/outputs/link").symlink_to(outside.parent)
    (home / "cache/demo").symlink_to(outside.parent)
    assert run_command(["caches", "--yes"]) == 0
    assert not (home / "cache/demo").is_symlink()
    assert not (home / "cache/outputs").exists()
    assert outside.read_text() == "x"


def test_a_cache_folder_that_is_a_link_is_cleaned_where_it_lies(home: Path, tmp_path: Path):
    kept, gone = write(tmp_path / "disk/mine"), write(tmp_path / "disk/outputs/a")
    home.mkdir()
    (home / "cache").symlink_to(tmp_path / "disk")
    assert run_command(["caches", "--yes"]) == 0
    assert (kept.exists(), gone.exists()) == (True, False)


def test_closed_folders_of_package_managers_are_removed(tmp_path: Path):
    file = write(tmp_path / "packages/go/mod/a.go")
    file.parent.chmod(0o555)
    remove(tmp_path / "packages")
    assert not (tmp_path / "packages").exists()


def test_what_cannot_be_removed_is_said(home: Path, monkeypatch, capsys):
    write(home / "cache/outputs/a")

    def fail(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(command, "remove", fail)
    assert run_command(["caches", "--yes", "--json"]) == 1
    (kept,) = json.loads(capsys.readouterr().out)["kept"]
    assert kept["why"] == "some of it stays: Permission denied"


def test_the_list_as_json_says_all(home: Path, capsys):
    write(home / "data/trust.json")
    assert run_command(["--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["path"]) == ("trust", str(home / "data/trust.json"))
    assert (found["files"], found["removal"]) == (1, "")
    assert datetime.fromisoformat(found["lastUse"]).tzinfo == UTC


def test_a_copy_of_the_data_folder_is_a_backup(home: Path, tmp_path: Path):
    with begin(home, "first") as first:
        pass
    with begin(home, "child", 0, first.path):
        pass
    subprocess.run(["cp", "-a", home / "data", tmp_path / "backup"], check=True)
    subprocess.run(["rm", "-r", home], check=True)
    home.mkdir()
    subprocess.run(["cp", "-a", tmp_path / "backup", home / "data"], check=True)
    assert sessions(home) == {"first", "child"}
    with SessionStore(home / "data/sessions").open("first", tmp_path) as log:
        assert log.warnings == ()
