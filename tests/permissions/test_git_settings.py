import subprocess
from pathlib import Path

import pytest

from agent_tui.config import PermissionSettings
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.permissions.project_files import git_risk
from agent_tui.tools.base import Intent

PLAIN = """\
# made by clone
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogAllRefUpdates = true
[remote "origin"]
\turl = git@example.org:me/proj.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
\tmerge = refs/heads/main
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    (tmp_path / ".git" / "hooks" / "pre-commit.sample").touch()
    (tmp_path / ".git" / "config").write_text(PLAIN)
    return tmp_path


def test_what_git_itself_makes_is_plain(tmp_path: Path):
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    remote = ["git", "remote", "add", "origin", "https://example.org/x.git"]
    subprocess.run(remote, cwd=tmp_path, check=True)
    assert git_risk(tmp_path) == ""


def test_a_clone_is_plain_and_so_is_no_repository(repo: Path, tmp_path_factory):
    (repo / "src").mkdir()
    assert git_risk(repo / "src") == ""
    assert git_risk(tmp_path_factory.mktemp("none")) == ""


@pytest.mark.parametrize(
    "added",
    [
        "[core]\n\tfsmonitor = x\n",
        "[CORE]\n\tFSMonitor = x\n",
        "[core] fsmonitor = x\n",
        "[core]\n\thooksPath = x\n",
        "[core]\n\tworktree = /elsewhere\n",
        '[diff "x"]\n\ttextconv = x\n',
        "[diff]\n\texternal = x\n",
        '[filter "lfs"]\n\tclean = x\n',
        "[alias]\n\tstatus = !x\n",
        "[include]\n\tpath = ../config\n",
        '[includeIf "gitdir:/"]\n\tpath = ../config\n',
        "[extensions]\n\tworktreeConfig = true\n",
        '[remote "origin"]\n\tpromisor = true\n',
        '[remote "origin"]\n\tuploadpack = x\n',
        "[user]\n\tname = me \\\n[core]\n\tfsmonitor = x\n",
        '[user\n\tname = "\n',
        "[gpg]\n\tprogram = x\n",
        "\ufeff[core]\n",
        "fsmonitor = x\n",
        "[alias]\n# \u2028[user]\n\tname = !x\n",
        "[alias]\n# \r[user]\n\tname = !x\n",
    ],
)
def test_whatever_else_stands_in_the_settings_is_a_doubt(repo: Path, added: str):
    (repo / ".git" / "config").write_text(PLAIN + added)
    assert "config:" in git_risk(repo)


def test_settings_from_elsewhere_hooks_and_links_are_a_doubt(repo: Path, tmp_path_factory):
    for name in ("commondir", "config.worktree", "hooks/post-index-change"):
        (repo / ".git" / name).touch()
        assert name.rpartition("/")[2] in git_risk(repo)
        (repo / ".git" / name).unlink()
    assert git_risk(repo) == ""
    link, file = tmp_path_factory.mktemp("link"), tmp_path_factory.mktemp("file")
    (link / ".git").symlink_to(repo / ".git")
    (file / ".git").write_text(f"gitdir: {repo}/.git")
    assert "points elsewhere" in git_risk(link)
    assert "points elsewhere" in git_risk(file)
    (repo / ".git" / "config").write_bytes(b"[core]\n\xff")
    assert f"{repo / '.git' / 'config'} cannot be read" in git_risk(repo)
    (repo / ".git" / "config").write_text("#" * 1_100_000)
    assert f"{repo / '.git' / 'config'} cannot be read" in git_risk(repo)


def test_a_folder_that_is_the_inside_of_a_repository_is_a_doubt(repo: Path):
    bare = repo / "bare"
    (bare / "objects").mkdir(parents=True)
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    assert "git directory" in git_risk(bare)


@pytest.mark.parametrize("command", ["git status", "git log", "cd . && git diff --stat"])
def test_git_asks_in_a_folder_that_is_not_trusted_and_could_make_it_run_something(
    repo: Path, command: str
):
    def decision(trusted: bool) -> str:
        permissions = PermissionEngine(
            mode="ask",
            rules=PermissionSettings(),
            workspace=repo,
            project_rules_file=repo / "none",
            git_risk=(lambda _: "") if trusted else git_risk,
        )
        return permissions.judge("bash", Intent(command, "execute", command=command)).decision

    assert decision(trusted=False) == "allow"
    (repo / ".git" / "config").write_text(PLAIN + "[core]\n\tfsmonitor = touch x\n")
    assert decision(trusted=False) == "ask"
    assert decision(trusted=True) == "allow"


def test_a_repository_within_is_a_risk_whatever_gitmodules_says(tmp_path: Path):
    def git(*words: str, cwd: Path = tmp_path) -> None:
        me = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
        subprocess.run(["git", *me, *words], cwd=cwd, check=True, capture_output=True)

    inner = tmp_path / "inner"
    for place in (tmp_path, inner):
        place.mkdir(exist_ok=True)
        git("init", "-q", cwd=place)
    (inner / "a").touch()
    git("add", "a", cwd=inner)
    git("commit", "-qm", "a", cwd=inner)
    (tmp_path / "b").touch()
    git("add", "b")
    assert git_risk(tmp_path) == ""
    git("add", "inner")
    assert "submodules" in git_risk(tmp_path)


def test_an_index_in_parts_is_a_risk(repo: Path):
    (repo / ".git" / "sharedindex.0123").touch()
    assert "split index" in git_risk(repo)
