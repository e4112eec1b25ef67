"""Git calls that look at files: what the repository names does not run, all else is as in git."""

import ast
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

import agent_tui
from agent_tui.tools.git.command import GitRefusedError, GitSilentError, git_argv
from agent_tui.tools.git.private_folder import (
    ask_about_files,
    change_files,
    change_index,
    stage_files,
)
from agent_tui.tools.git.settings import write_setting
from agent_tui.tools.git.status import read_work_tree
from tests.support.renamed_filters import RenamedFilters
from tests.support.tool_calls import KEEPER

_WHO = {
    f"GIT_{who}_{what}": "t@example.org"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(tmp_path)}


@pytest.fixture
def root(tmp_path: Path, environ: dict[str, str]) -> Path:
    return _repository(tmp_path.resolve() / "top", environ)


def _repository(folder: Path, environ: Mapping[str, str], *options: str) -> Path:
    folder.mkdir()
    _git(environ, folder, "init", "-q", "-b", "main", "--template=", *options)
    (folder / "a").write_text("one\n")
    (folder / "sub").mkdir()
    (folder / "sub/b").write_text("one\n")
    _git(environ, folder, "add", ".")
    _git(environ, folder, "commit", "-qm", "first")
    return folder


def _git(environ: Mapping[str, str], folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**environ, **_WHO}, check=True, stdout=subprocess.PIPE
    )
    return done.stdout.decode().strip()


@pytest.mark.parametrize(
    "words",
    [
        "status --porcelain",
        "add -A",
        "commit -m x",
        "reset -q -- a",
        "stash",
        "checkout main",
        "checkout-index -a",
        "switch main",
        "restore a",
        "merge main",
        "apply x",
        "hash-object -w --path=a --stdin",
        "update-index --refresh",
        "cat-file --filters HEAD:a",
        "cat-file --textconv HEAD:a",
        "diff",
        "diff HEAD",
        "diff-index HEAD",
        "diff-files",
        "blame a",
        "ls-files -m",
        "ls-files --deleted",
        "read-tree -m -u HEAD",
        "read-tree --reset HEAD",
        "worktree add ../x",
        "worktree remove ../x",
        "-c core.abbrev=7 status",
        "--literal-pathspecs status",
        "a-command-that-is-not-known",
    ],
)
def test_a_command_that_looks_at_files_is_refused_outside_a_private_folder(words: str):
    with pytest.raises(ValueError, match="private_folder"):
        git_argv(*words.split())
    assert git_argv(*words.split(), is_in_private_folder=True)


def test_only_private_folders_are_said_to_be_private():
    package = Path(agent_tui.__file__).parent
    saying = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.keyword) and node.arg == "is_in_private_folder"
    }
    assert saying == {"tools/git/private_folder.py"}


async def test_a_filter_that_is_renamed_between_calls_does_not_run(
    root: Path, environ: dict[str, str], tmp_path: Path
):
    filters = RenamedFilters(root, tmp_path / "bin")
    environ["PATH"] = filters.search_path
    (root / "a").write_text("two\n")
    tree = await read_work_tree(KEEPER, root, environ)
    assert set(tree.dirty) == {"a"}
    await stage_files(KEEPER, root, environ, ["a"], runs_filters=True)
    words = ("cat-file", "--filters", "--batch")
    await ask_about_files(KEEPER, root, environ, *words, runs_filters=True, stdin=b"HEAD:a a\n")
    (root / "sub/b").write_text("two\n")  # differs from the index, at which a commit looks
    settings = ("user.name=A", "user.email=a")
    await change_index(KEEPER, root, environ, "commit", "-qm", "x", settings=settings)
    await change_index(KEEPER, root, environ, "reset", "-q", "--", "a")
    assert not filters.have_run
    assert filters.calls >= 8
    assert _git(environ, root, "show", "HEAD:a") == "two"


async def test_no_git_is_started_in_a_submodule(
    root: Path, environ: dict[str, str], tmp_path: Path
):
    inner = _repository(root / "inner", environ)
    _git(environ, root, "-c", "advice.addEmbeddedRepo=false", "add", "inner")
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\necho >> '{tmp_path}/mark'\ncat\n")
    evil.chmod(0o755)
    _git(environ, inner, "config", "filter.x.clean", str(evil))
    (inner / ".git/info").mkdir()
    (inner / ".git/info/attributes").write_text("* filter=x\n")
    (inner / "a").write_text("two\n")
    await read_work_tree(KEEPER, root, environ)
    await stage_files(KEEPER, root, environ, ["inner", "a"], runs_filters=True)
    assert not (tmp_path / "mark").exists()


async def test_filters_of_the_user_run_where_content_is_stored_but_not_those_of_the_repository(
    root: Path, environ: dict[str, str]
):
    _git(environ, root, "config", "--global", "filter.up.clean", "tr a-z A-Z")
    (root / ".git/info").mkdir()
    (root / ".git/info/attributes").write_text("a filter=up\n")
    (root / "a").write_text("two\n")
    await stage_files(KEEPER, root, environ, ["a"], runs_filters=True)
    assert _git(environ, root, "show", ":a") == "TWO"
    _git(environ, root, "config", "filter.up.clean", "tr a-z A-Z")  # as the user's: that one runs
    (root / "a").write_text("three\n")
    await stage_files(KEEPER, root, environ, ["a"], runs_filters=True)
    _git(environ, root, "config", "filter.up.clean", "cat")
    (root / "a").write_text("four\n")
    with pytest.raises(GitRefusedError, match="clean filter 'up' failed: agent-tui runs only"):
        await stage_files(KEEPER, root, environ, ["a"], runs_filters=True)
    assert _git(environ, root, "show", ":a") == "THREE"


async def test_what_git_lfs_stores_is_where_git_lfs_finds_it(root: Path, environ: dict[str, str]):
    where = "git config lfs.storage; cat > /dev/null"
    _git(environ, root, "config", "--global", "filter.where.clean", where)
    (root / ".git/info").mkdir()
    (root / ".git/info/attributes").write_text("a filter=where\n")
    (root / "a").write_text("two\n")
    await stage_files(KEEPER, root, environ, ["a"], runs_filters=True)
    assert _git(environ, root, "show", ":a") == str(root / ".git/lfs")


@pytest.mark.parametrize("kind", ["plain", "linked", "sha256", "split", "sparse", "detached"])
async def test_a_repository_of_any_kind_is_read_and_written_as_by_git(
    root: Path, environ: dict[str, str], tmp_path: Path, kind: str
):
    match kind:
        case "linked":
            other = root.parent / "linked"
            _git(environ, root, "worktree", "add", "-q", "-b", "side", str(other))
            root = other
        case "sha256":
            root = _repository(root.parent / "other", environ, "--object-format=sha256")
        case "split":
            _git(environ, root, "config", "core.splitIndex", "true")
            _git(environ, root, "update-index", "--split-index")
        case "sparse":
            _git(environ, root, "sparse-checkout", "set", "--no-cone", "/*", "!/sub/")
        case "detached":
            _git(environ, root, "checkout", "-q", "--detach")
        case _:
            _git(environ, root, "remote", "add", "origin", "x")
            _git(environ, root, "update-ref", "refs/remotes/origin/main", "HEAD")
            _git(environ, root, "branch", "-q", "-u", "origin/main")
    status = ("status", "--porcelain=v2", "--branch", "--no-ahead-behind")
    (root / "a").write_text("two\n")
    (root / "new").write_text("new\n")
    said = await ask_about_files(KEEPER, root, environ, *status)
    assert said.decode().strip() == _git(environ, root, *status)
    await stage_files(KEEPER, root, environ, ["a", "new"], runs_filters=True)
    assert _git(environ, root, "diff", "--cached", "--name-status") == "M\ta\nA\tnew"
    settings = ("user.name=A", "user.email=a")
    await change_index(KEEPER, root, environ, "commit", "-qm", "x", settings=settings)
    assert _git(environ, root, "log", "-1", "--format=%s", "--name-only").split() == [
        "x",
        "a",
        "new",
    ]
    assert _git(environ, root, "status", "--porcelain") == ""
    await change_files(KEEPER, root, environ, "read-tree", "--reset", "-u", "HEAD~1")
    assert (root / "a").read_text() == "one\n"
    assert (root / "sub").exists() == (kind != "sparse")
    assert not (root / "new").exists()


async def test_a_file_below_a_link_that_took_the_place_of_its_folder_is_removed(
    root: Path, environ: dict[str, str]
):
    (root / "sub/b").unlink()
    (root / "sub").rmdir()
    (root / "sub").symlink_to(root.parent)
    await stage_files(KEEPER, root, environ, ["sub", "sub/b"], runs_filters=True)
    here = _git(environ, root, "ls-files", "-s")
    _git(environ, root, "add", "-A")
    assert here == _git(environ, root, "ls-files", "-s")


async def test_where_git_does_not_work_it_is_not_led_past_its_refusal(
    root: Path, environ: dict[str, str]
):
    (root / ".git/config").write_text("[core]\n\trepositoryformatversion = 1\n[extensions]\nnew=1")
    with pytest.raises(GitSilentError):
        await read_work_tree(KEEPER, root, environ)


@pytest.mark.parametrize(
    ("key", "value"),
    [("core.eol", "lf"), ('branch.a"b\\c.d.merge', "refs/x"), ("filter..clean", ' "a"\\\n\t;#')],
)
def test_git_reads_a_written_setting_as_it_was(
    tmp_path: Path, environ: dict[str, str], key: str, value: str
):
    file = tmp_path / "config"
    file.write_text(write_setting(key, value))
    printed = subprocess.check_output(
        ["git", "config", "-z", "--list", "--file", file], env=environ, cwd=tmp_path
    )
    assert printed.decode() == f"{key}\n{value}\0"
