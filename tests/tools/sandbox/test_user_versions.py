"""What git tracks can be changed by git in both walls, and only to what the user's commits have."""

import shutil
from pathlib import Path

import pytest

from tests.support.rows import each_row
from tests.support.sandbox import needs_bwrap
from tests.support.watched_folder import WatchedFolder

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="uses git")

_HOOK = "printf '#!/bin/sh\\n: {0}\\n' > {1}/pre-push; chmod +x {1}/pre-push"
_TRACKED = {
    "folder with a link": (
        "mkdir .claude; echo 1 > shared; ln -s ../shared .claude/x; echo 1 > .claude/a",
        "ln -sf ../file .claude/x; ln -s ../file .claude/y; echo 2 > .claude/a",
        ".claude/a",
    ),
    "folder with an ignored file": (
        "mkdir .devcontainer; echo .env > .gitignore; echo KEY=x > .devcontainer/.env;"
        "echo 1 > .devcontainer/a",
        "echo 2 > .devcontainer/a; echo 2 > .devcontainer/b",
        ".devcontainer/a",
    ),
    "hooks folder": (
        f"mkdir -p tools/hooks; {_HOOK.format(1, 'tools/hooks')};"
        "git config core.hooksPath tools/hooks",
        f"{_HOOK.format(2, 'tools/hooks')}; echo 2 > tools/hooks/lib.sh",
        "tools/hooks/pre-push",
    ),
    "hooks folder in the table": (
        f"mkdir .githooks; {_HOOK.format(1, '.githooks')}; git config core.hooksPath .githooks",
        _HOOK.format(2, ".githooks"),
        ".githooks/pre-push",
    ),
    "hooks folder of the user's settings": (
        f"git config --global core.hooksPath .hk; mkdir .hk; {_HOOK.format(1, '.hk')}",
        _HOOK.format(2, ".hk"),
        ".hk/pre-push",
    ),
    "hooks folder in a folder of the table": (
        f"mkdir -p .husky/_; {_HOOK.format(1, '.husky/_')}; git config core.hooksPath .husky/_",
        _HOOK.format(2, ".husky/_"),
        ".husky/_/pre-push",
    ),
    "folder that becomes a link": (
        "mkdir -p .claude/skills/x .agents/skills; echo 1 > .claude/skills/x/a;"
        "echo 1 > .agents/skills/a; echo 1 > .claude/a",
        "rm -r .claude/skills; ln -s ../.agents/skills .claude/skills; echo 2 > .claude/a",
        ".claude/a",
    ),
    "folder with a large file": (
        "mkdir .claude; echo 1 > .claude/a; head -c 1500000 /dev/zero > .claude/b",
        "echo 2 > .claude/a; head -c 1500001 /dev/zero > .claude/b",
        ".claude/a",
    ),
    "folder that only one branch has": (
        "mkdir -p pkg/.vscode/x; echo 1 > pkg/.vscode/x/a; echo 1 > .envrc",
        "rm -r pkg; echo 2 > .envrc",
        ".envrc",
    ),
    "included settings": (
        "printf '[alias]\\n\\ta = !true\\n' > .gitconfig; git config include.path ../.gitconfig",
        "printf '[alias]\\n\\ta = !false\\n' > .gitconfig",
        ".gitconfig",
    ),
}
"""What is on the main branch, how another one differs, and a file that has two versions."""


def _place(folder: Path, *, has_mounts: bool) -> WatchedFolder:
    folders = [folder / name for name in ("proj", "own", "home")]
    for each in folders:
        each.mkdir(parents=True)
    return WatchedFolder(*folders, has_mounts=has_mounts)


def _commit_both(place: WatchedFolder, main: str, other: str) -> None:
    place.outside(
        f"git init -q -b main; echo 1 > file; {main}; git add .; git commit -qm 1 --no-verify;"
        f"git switch -qc other; echo 2 > file; {other}; git add .; git commit -qm 2 --no-verify;"
        "git switch -q main"
    )


@needs_bwrap
@pytest.mark.parametrize("has_mounts", [True, False])
@each_row("name", _TRACKED)
async def test_git_brings_every_kind_of_followed_file_of_the_users_commits(
    tmp_path: Path, name: str, has_mounts: bool
):
    main, other, file = _TRACKED[name]
    place = _place(tmp_path / name, has_mounts=has_mounts)
    _commit_both(place, main, other)
    one = place.text(file)
    for command in (
        "git switch -q other",
        "git switch -q main && git merge -q other",
        "git switch -q --detach other~1 && git rebase -q other",
    ):
        settled = await place.run(command)
        assert place.held(settled) == {}, (command, place.printed)
        assert place.text(file) not in ("", one), (command, place.printed)
        place.outside('git diff --exit-code HEAD; test -z "$(git status --porcelain)"')


@needs_bwrap
@pytest.mark.parametrize("has_mounts", [True, False])
@each_row("name", _TRACKED)
async def test_what_a_command_writes_there_or_commits_is_held(
    tmp_path: Path, name: str, has_mounts: bool
):
    main, other, file = _TRACKED[name]
    place = _place(tmp_path / name, has_mounts=has_mounts)
    _commit_both(place, main, other)
    one = place.text(file)
    settled = await place.run(
        f"echo evil >> {file}; git add .; git commit -qm evil --no-verify; git branch evil"
    )
    assert set(place.held(settled)) == {file}, place.printed
    assert place.text(file) == one
    later = await place.run("git checkout -qf evil", code=None)
    assert set(place.held(later)) == {file}, place.printed
    assert place.text(file) == one
