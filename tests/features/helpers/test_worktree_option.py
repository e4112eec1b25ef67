import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.cli.folders import load_trust, project_store, worktree_records
from agent_tui.sessions.entries import Header
from agent_tui.sessions.file.writer import running_session
from agent_tui.sessions.store import SessionStore
from tests.features.helpers.test_worktrees import git
from tests.support.openai_script import Call
from tests.support.openai_server import OpenAiServer, Reply
from tests.support.session_values import entry, user

MODEL = ("-m", "scripted/tour")
pytestmark = pytest.mark.thorough


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with instructions, in which the program starts, trusted by the user."""
    for name in [name for name in os.environ if name.startswith(("GIT_", "AGENT_TUI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AGENT_TUI_SANDBOX", "off")
    monkeypatch.setenv("TEST_KEY", "sk-0")
    folder = tmp_path.resolve() / "shop"
    (folder / "sub").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main", "--template=")
    (folder / "AGENTS.md").write_text("Use tabs.\n")
    (folder / "sub" / "a.txt").write_text("one\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    monkeypatch.chdir(folder)
    load_trust().decide(folder, "trusted")
    return folder


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with OpenAiServer() as server:
        yield server


def run(argv: list[str]) -> tuple[int, str, str]:
    """Run the program; returns its exit code and what it printed."""
    command = [sys.executable, "-m", "agent_tui", *argv]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def asks(server: OpenAiServer, *more: str) -> list[str]:
    """The options of a run that this server answers."""
    model = ["-m", "m", "--base-url", server.base_url, "--api-key-env", "TEST_KEY"]
    return [*model, "--permission-mode", "full", *more]


def writing(path: str) -> tuple[Reply, Reply]:
    call = Call("write", {"path": path, "content": "two\n"})
    return Reply(tool_calls=(call,)), Reply("Written.")


def shop_trees(repository: Path) -> Path:
    return repository.parent / "shop.worktrees"


def test_a_run_without_work_leaves_nothing(repository: Path) -> None:
    code, _, told = run([*MODEL, "--worktree", "fix", "-p", "/help"])
    assert code == 0
    assert f"Worktree {shop_trees(repository) / 'fix'}, branch fix, from main." in told
    assert "Removed the worktree fix with its branch: it held no unmerged work." in told
    assert not shop_trees(repository).exists()


def test_what_is_not_committed_stays_behind_and_the_user_is_told(repository: Path) -> None:
    (repository / "new.txt").write_text("mine\n")
    _, _, told = run([*MODEL, "--worktree", "fix", "-p", "/help"])
    assert f"Uncommitted changes in {repository} stay there." in told
    assert (repository / "new.txt").exists()


def test_files_are_written_in_the_worktree_which_is_kept(
    repository: Path, server: OpenAiServer
) -> None:
    server.play(*writing("new.txt"))
    code, _, told = run([*asks(server), "--worktree", "fix", "-p", "go"])
    assert code == 0
    worktree = shop_trees(repository) / "fix"
    assert (worktree / "new.txt").read_text() == "two\n"
    assert not (repository / "new.txt").exists()
    assert "The worktree fix is kept: 1 uncommitted file." in told
    assert "To continue there: agent-tui --worktree fix -c" in told
    assert "git merge" not in told
    git(worktree, "add", ".")
    git(worktree, "commit", "-qm", "two")
    _, _, told = run([*MODEL, "--worktree", "fix", "-p", "/help"])
    assert "The worktree fix is kept: 1 unmerged commit." in told
    assert "To merge it into main: git merge fix" in told
    assert "Use tabs." in json.dumps(server.chats[0].body)  # trusted as the repository is


def test_the_folder_below_the_top_is_kept_and_c_continues_there(
    repository: Path, server: OpenAiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository / "sub")
    server.play(*writing("new.txt"), Reply("Again."))
    run([*asks(server), "--worktree", "fix", "-p", "go"])
    assert (shop_trees(repository) / "fix" / "sub" / "new.txt").exists()
    assert run([*asks(server), "--worktree", "fix", "-p", "-c", "more"])[0] == 0
    assert "Written." in json.dumps(server.chats[-1].body)
    assert run([*asks(server), "-p", "-c", "more"])[0] == 2  # the repository's folder has none


def test_an_untrusted_repository_is_refused_before_git_runs(repository: Path) -> None:
    load_trust().forget(repository)
    code, _, told = run([*MODEL, "--worktree", "fix", "-p", "/help"])
    assert code == 1
    assert "the folder is not trusted" in told
    assert run([*MODEL, "--worktree", "fix", "--trust", "-p", "/help"])[0] == 0


def test_a_refusal_names_the_reason_and_creates_nothing(repository: Path) -> None:
    code, _, told = run([*MODEL, "--worktree", "main", "-p", "/help"])
    assert code == 1
    assert f"The branch main is checked out in {repository}." in told
    assert not shop_trees(repository).exists()
    assert run(["--demo", "--worktree", "fix"])[0] == 2


def test_rules_and_history_are_those_of_the_repository(
    repository: Path, server: OpenAiServer
) -> None:
    server.play(*writing("new.txt"))
    run([*asks(server), "--worktree", "fix", "-p", "go"])
    assert project_store(shop_trees(repository) / "fix") == project_store(repository)


def test_one_list_holds_the_sessions_of_all_worktrees(
    repository: Path,
    server: OpenAiServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server.play(*writing("new.txt"), Reply("Nothing."), Reply("Hello."))
    run([*asks(server), "--worktree", "kept", "-p", "write it"])
    run([*asks(server), "--worktree", "gone", "-p", "look at it"])
    run([*asks(server), "-p", "talk about it"])

    def titles() -> set[str]:
        code, out, _ = run(["sessions", "list"])
        assert code == 0
        return {line.partition("messages  ")[2] for line in out.splitlines()}

    assert titles() == {"write it (kept)", "look at it (gone)", "talk about it"}
    monkeypatch.chdir(shop_trees(repository) / "kept")
    assert titles() == {"write it", "look at it (gone)", "talk about it (shop)"}
    monkeypatch.chdir(repository.parent)
    assert titles() == {""}


def test_an_open_session_shows_what_happens_in_it(repository: Path) -> None:
    store = SessionStore(repository.parent / "home" / "data" / "sessions")
    with store.create(Header(cwd=str(repository), id="abcd")) as log:
        log.note_state("waiting")
        log.append(entry(user("ask me")))
        assert "[asks you] ask me" in run(["sessions", "list"])[1]
        log.note_state("working")
        (found,) = json.loads(run(["sessions", "list", "--json"])[1])
        assert (found["state"], found["pid"]) == ("working", os.getpid())
    assert json.loads(run(["sessions", "list", "--json"])[1])[0]["state"] is None
    assert log.path is not None
    assert running_session(log.path) is None


def test_worktrees_are_listed_and_removed_only_without_work(
    repository: Path, server: OpenAiServer
) -> None:
    server.play(*writing("new.txt"))
    run([*asks(server), "--worktree", "fix", "-p", "go"])
    (found,) = json.loads(run(["worktrees", "list", "--json"])[1])
    assert (found["name"], found["uncommittedFiles"], found["inUse"]) == ("fix", 1, "")
    code, _, told = run(["worktrees", "remove", "fix"])
    assert code == 1
    assert "is not removed: 1 uncommitted file." in told
    (shop_trees(repository) / "fix" / "new.txt").unlink()
    (repository / ".git" / "info").mkdir(exist_ok=True)
    (repository / ".git" / "info" / "exclude").write_text(".env\n")
    (shop_trees(repository) / "fix" / ".env").write_text("KEY=1\n")
    (found,) = json.loads(run(["worktrees", "list", "--json"])[1])
    assert found["ignoredFiles"] == [".env"]
    assert "is not removed: 1 ignored file (.env)." in run(["worktrees", "remove", "fix"])[2]
    (shop_trees(repository) / "fix" / ".env").unlink()
    removed = "Removed the worktree fix with its branch.\n"
    assert run(["worktrees", "remove", "fix"])[:2] == (0, removed)
    assert "There is no worktree 'fix'." in run(["worktrees", "remove", "fix"])[2]


def test_a_worktree_with_an_open_session_is_not_removed(
    repository: Path, server: OpenAiServer
) -> None:
    server.play(*writing("new.txt"))
    run([*asks(server), "--worktree", "fix", "-p", "go"])
    top = shop_trees(repository) / "fix"
    (top / "new.txt").unlink()
    store = SessionStore(repository.parent / "home" / "data" / "sessions")
    with store.create(Header(cwd=str(top / "sub"), id="abcd")) as log:
        log.append(entry(user("ask me")))
        told = run(["worktrees", "remove", "fix"])[2]
        assert f"agent-tui (pid {os.getpid()}) works in fix." in told
        told = run([*MODEL, "--worktree", "fix", "-p", "/help"])[2]
        assert "is kept: agent-tui" in told
    assert run([*MODEL, "--worktree", "fix", "-p", "/help"])[0] == 0
    assert not top.exists()


def test_the_next_start_removes_what_a_killed_program_left(
    repository: Path, server: OpenAiServer
) -> None:
    server.play(Reply("On", ending="hold"))
    argv = [sys.executable, "-m", "agent_tui", *asks(server), "--worktree", "fix", "-p", "go"]
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as program:
        assert server.wait_for_chats()
        assert run([*MODEL, "-p", "/help"])[0] == 0
        assert (shop_trees(repository) / "fix").exists()  # in use
        program.send_signal(signal.SIGKILL)
    told = run([*MODEL, "-p", "/help"])[2]
    assert "Interrupted earlier: Removed the worktree fix" in told
    assert not shop_trees(repository).exists()
    assert [found.state for found in worktree_records().all()] == ["kept"]


def test_names_of_worktrees_are_completed(repository: Path, server: OpenAiServer) -> None:
    server.play(*writing("new.txt"))
    run([*asks(server), "--worktree", "kept", "-p", "go"])
    run([*MODEL, "--worktree", "gone", "-p", "/help"])

    def completed(line: str) -> list[str]:
        """What a shell is offered at a Tab."""
        asked = (
            "import os; os.dup2(1, 8); "
            "from agent_tui.features.completion.subcommand import answer_shell; answer_shell()"
        )
        environ = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line))}
        argv = [sys.executable, "-c", asked]
        done = subprocess.run(argv, env=os.environ | environ, capture_output=True, text=True)
        return [word.split(":")[0].strip() for word in done.stdout.split("\v")]

    assert completed("agent-tui --worktree ") == ["kept", "gone"]
    assert completed("agent-tui worktrees remove ") == ["kept"]
