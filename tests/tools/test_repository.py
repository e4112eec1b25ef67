"""What git says of a repository, for those who continue the work in it."""

import os
import subprocess
from pathlib import Path

import pytest

from agent_tui.tools.git.command import GitSilentError
from agent_tui.tools.git.repository import MOST_COMMITS, read_repository
from tests.support.tool_calls import KEEPER

pytestmark = pytest.mark.skipif(os.name != "posix", reason="uses a POSIX shell and git")

BEGAN_S = 1_700_000_000


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {
        **{"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"},
        **{f"GIT_{who}_NAME": "Ada" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "ada@example.org" for who in ("AUTHOR", "COMMITTER")},
        "GIT_TEMPLATE_DIR": "",
    }


def sh(script: str, folder: Path, environ: dict[str, str], at_s: int = BEGAN_S + 60) -> None:
    """Run `script` as if it were `at_s` seconds since 1970."""
    dates = {f"GIT_{who}_DATE": f"{at_s} +0000" for who in ("AUTHOR", "COMMITTER")}
    folder.mkdir(exist_ok=True)
    subprocess.run(["/bin/sh", "-ec", script], cwd=folder, env={**environ, **dates}, check=True)


@pytest.fixture
def repository(tmp_path: Path, environ: dict[str, str]) -> Path:
    """A repository with one commit from before the session."""
    folder = tmp_path / "repository"
    script = "git init -q -b main; echo 1 > a.py; git add .; git commit -qm before"
    sh(script, folder, environ, BEGAN_S - 60)
    return folder


def subjects(commits: dict[str, str]) -> list[str]:
    return list(commits.values())


async def test_branch_head_commits_of_the_session_and_changes(
    repository: Path, environ: dict[str, str]
) -> None:
    sh("git switch -qc fix; echo 2 > a.py; git commit -qam one", repository, environ)
    sh("echo 3 > a.py; git commit -qam two; echo 4 > a.py; echo > new.txt", repository, environ)
    state = await read_repository(KEEPER, repository, environ, began_s=BEGAN_S)
    assert (state.branch, state.upstream) == ("fix", "")
    assert state.root == str(repository.resolve())
    assert subjects(state.commits) == ["one", "two"]
    assert state.head == list(state.commits)[-1]
    assert (state.uncommitted, state.changed) == (("a.py", "new.txt"), 2)


async def test_commits_that_an_amend_or_a_rebase_replaced_are_gone(
    repository: Path, environ: dict[str, str]
) -> None:
    sh("git commit -qm one --allow-empty; git commit -qm two --allow-empty", repository, environ)
    sh("git commit -q --amend --allow-empty -m second", repository, environ, BEGAN_S + 120)
    state = await read_repository(KEEPER, repository, environ, began_s=BEGAN_S)
    assert subjects(state.commits) == ["one", "second"]
    later = await read_repository(
        KEEPER, repository, environ, began_s=BEGAN_S + 1_000, since=state.since
    )
    assert later == state  # the session that continues began when its parent did


async def test_the_first_commit_of_a_repository_that_the_session_made_counts(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    folder = tmp_path / "new"
    sh("git init -q -b main; echo > a.py", folder, environ)
    state = await read_repository(KEEPER, folder, environ, began_s=BEGAN_S)
    assert (state.head, state.commits, state.uncommitted) == ("", {}, ("a.py",))
    sh("git add .; git commit -qm first", folder, environ)
    for since in (state.since, None):
        state = await read_repository(KEEPER, folder, environ, began_s=BEGAN_S, since=since)
        assert subjects(state.commits) == ["first"]


async def test_the_commits_of_a_clone_are_not_the_sessions(
    repository: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    sh("git clone -q repository clone", tmp_path, environ)
    sh("git commit -qm mine --allow-empty", clone, environ, BEGAN_S + 90)
    sh("git commit -qm theirs --allow-empty", repository, environ, BEGAN_S + 95)
    sh("git fetch -q", clone, environ, BEGAN_S + 100)
    state = await read_repository(KEEPER, clone, environ, began_s=BEGAN_S)
    assert subjects(state.commits) == ["mine"]
    assert (state.upstream, state.ahead, state.behind) == ("origin/main", 1, 1)


async def test_no_branch_and_a_branch_whose_upstream_is_gone(
    repository: Path, environ: dict[str, str]
) -> None:
    sh("git checkout -q --detach", repository, environ)
    assert not (await read_repository(KEEPER, repository, environ, began_s=BEGAN_S)).branch
    script = "git switch -q main; git config branch.main.remote gone; "
    sh(script + "git config branch.main.merge refs/heads/main", repository, environ)
    state = await read_repository(KEEPER, repository, environ, began_s=BEGAN_S)
    assert (state.branch, state.ahead, state.behind) == ("main", 0, 0)


async def test_odd_names_and_many_commits_are_told_as_far_as_they_can_be(
    repository: Path, environ: dict[str, str]
) -> None:
    (repository / os.fsdecode(b"odd\xff name")).touch()
    commit = "printf 'a\\013b\\302\\205c' | git commit -qF - --allow-empty;"
    sh(commit * (MOST_COMMITS + 1), repository, environ)
    state = await read_repository(KEEPER, repository, environ, began_s=BEGAN_S)
    assert len(state.commits) == MOST_COMMITS
    assert len(set(subjects(state.commits))) == 1
    assert state.model_dump_json()
    assert state.changed == 1


async def test_without_a_reflog_nothing_is_known_of_the_session(
    repository: Path, environ: dict[str, str]
) -> None:
    sh("rm -r .git/logs; git config core.logAllRefUpdates false", repository, environ)
    state = await read_repository(KEEPER, repository, environ, began_s=BEGAN_S)
    assert (state.since, state.commits) == (None, {})


async def test_a_folder_without_a_repository_is_refused(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    with pytest.raises(GitSilentError):
        await read_repository(KEEPER, tmp_path, environ, began_s=BEGAN_S)
