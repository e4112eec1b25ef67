"""A compaction asks git where the repositories are, and records the answer in its entry."""

import os
from pathlib import Path

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.features.tour.scripted import ScriptedProvider
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import CompactionEntry, Header
from agent_tui.sessions.format.parse import ParsedSession
from agent_tui.sessions.log import SessionLog
from agent_tui.tools.git import repositories
from agent_tui.tools.git.repositories import MOST_REPOSITORIES, RepositoryReader
from tests.agent.compaction.test_making_room import WINDOW, reading, write_files
from tests.support.runtime import Stage, collect
from tests.support.talk import Talk
from tests.support.tool_calls import KEEPER
from tests.tools.test_repository import sh

pytestmark = pytest.mark.skipif(os.name != "posix", reason="uses a POSIX shell and git")

LONG_AGO_S = 1_700_000_000
ENVIRON = {
    **{"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_TEMPLATE_DIR": ""},
    **{f"GIT_{who}_NAME": "Ada" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "ada@example.org" for who in ("AUTHOR", "COMMITTER")},
}
NEW_REPOSITORY = "git init -q -b main; git commit -qm before --allow-empty"


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine makes no test fail."""
    monkeypatch.setattr(repositories, "PATIENCE_S", 100)


def environ_of(stage: Stage) -> dict[str, str]:
    return {**ENVIRON, "HOME": str(stage.folder)}


def make_repository(stage: Stage, folder: Path) -> None:
    sh(NEW_REPOSITORY, folder, environ_of(stage), LONG_AGO_S)


def compactions(runtime: AgentRuntime) -> list[CompactionEntry]:
    path = runtime.conversation.log.path_entries()
    return [entry for entry in path if isinstance(entry, CompactionEntry)]


def context_of(runtime: AgentRuntime) -> str:
    log = runtime.conversation.log
    messages = build_context(log.path_entries(), carryover=log.header.compaction).messages
    return messages[0].message.text


async def read_files(stage: Stage) -> AgentRuntime:
    write_files(stage, 9)
    runtime = stage.runtime(ScriptedProvider(reading(9)), window=WINDOW)
    await collect(runtime.submit("Read all files."))
    return runtime


async def test_an_automatic_compaction_records_what_git_says(stage: Stage) -> None:
    make_repository(stage, stage.workspace)
    runtime = await read_files(stage)
    (state,) = compactions(runtime)[-1].details.repositories
    assert state.root == str(stage.workspace.resolve())
    assert (state.branch, state.commits, state.changed) == ("main", {}, 9)
    assert f"- git: branch main, HEAD {state.head}\n- uncommitted: file1.txt" in context_of(runtime)


async def test_compact_into_a_new_session_continues_the_record(stage: Stage) -> None:
    make_repository(stage, stage.workspace)
    runtime = await read_files(stage)
    first = compactions(runtime)[-1].details.repositories[0]
    sh("git add file1.txt; git commit -qm mine", stage.workspace, environ_of(stage), LONG_AGO_S + 9)
    await collect(runtime.compact())
    (state,) = compactions(runtime)[0].details.repositories
    assert state.since == first.since
    assert list(state.commits.values()) == ["mine"]
    assert runtime.conversation.log.header.parent_session
    assert f"- [x] commit {state.head}: mine" in context_of(runtime)
    assert "as of the log" not in context_of(runtime)


async def test_git_is_not_run_in_a_folder_that_is_not_trusted(tmp_path: Path) -> None:
    stage = Stage(tmp_path, is_trusted=False)
    make_repository(stage, stage.workspace)
    (stage.workspace / "AGENTS.md").write_text("Never.")
    runtime = await read_files(stage)
    assert compactions(runtime)[-1].details.repositories == ()


def reader_of(stage: Stage) -> RepositoryReader:
    return RepositoryReader(KEEPER, stage.trust.may_run_git, environ_of(stage))


def log_of(talk: Talk) -> SessionLog:
    parsed = ParsedSession(
        header=Header(cwd=talk.cwd),
        entries=talk.path,
        warnings=(),
        has_header=True,
        ends_clean=True,
        looks_like_session=True,
    )
    return SessionLog(None, parsed.header, None, parsed, is_read_only=True)


async def test_the_newest_three_repositories_in_which_work_was_done_are_asked(
    stage: Stage,
) -> None:
    folders = [stage.folder / name for name in ("one", "two", "three", "four")]
    talk = Talk(cwd=str(stage.workspace))
    for folder in (stage.workspace, *folders):
        make_repository(stage, folder)
        stage.trust.trust_for_this_run(folder)
    talk.tool("edit", {"path": str(folders[0] / "a.py")})
    talk.tool("bash", {"command": f"git -C {folders[1]} status"})
    talk.tool("bash", {"command": f"cd {folders[2]} && git status"})
    talk.tool("write", {"path": "../four/new/b.py"})
    talk.tool("read", {"path": "../elsewhere/b.py"})
    found = await reader_of(stage).read(log_of(talk), stage.workspace)
    assert [Path(state.root).name for state in found] == ["workspace", "four", "three"]
    assert len(found) == MOST_REPOSITORIES


async def test_without_its_folder_or_an_answer_in_time_nothing_is_recorded(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(stage, stage.workspace)
    log = log_of(Talk(cwd=str(stage.workspace)))
    assert await reader_of(stage).read(log, stage.workspace)
    assert await reader_of(stage).read(log, stage.workspace / "gone") == ()
    monkeypatch.setattr(repositories, "PATIENCE_S", 0)
    assert await reader_of(stage).read(log, stage.workspace) == ()


async def test_a_damaged_repository_hides_no_other(stage: Stage) -> None:
    make_repository(stage, stage.workspace)
    (stage.workspace / ".git" / "HEAD").write_text("?")
    other = stage.folder / "other"
    make_repository(stage, other)
    stage.trust.trust_for_this_run(other)
    talk = Talk(cwd=str(stage.workspace))
    talk.tool("bash", {"command": f"cd {other} && ls"})
    (state,) = await reader_of(stage).read(log_of(talk), stage.workspace)
    assert state.root == str(other.resolve())
