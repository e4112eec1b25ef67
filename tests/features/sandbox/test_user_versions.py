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
    "hooks folder around another folder of the table": (
        f"mkdir -p hk/.idea; echo 1 > hk/.idea/a; {_HOOK.format(1, 'hk')};"
        "git config core.hooksPath hk",
        "echo 2 > hk/.idea/a",
        "hk/.idea/a",
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
    copies = [copy for _, copy in place.watch.covers.copies]
    # A command could put a link in the place of a copy that lies in another.
    assert not any(around in copy.parents for copy in copies for around in copies)


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
    await place.refuse(settled)
    assert place.text(file) == one
    later = await place.run("git checkout -qf evil", code=None)
    assert set(place.held(later)) == {file}, place.printed
    await place.refuse(later)
    assert place.text(file) == one


_TEXTS = (
    "git init -q -b main; mkdir .idea; for v in 1 2; do for f in AGENTS.md mise.toml .idea/a; do"
    " echo $v > $f; done; git add .; git commit -qm $v; git branch v$v; done"
)
_NESTED = {
    "work tree": (
        _TEXTS,
        "git worktree add -q .worktrees/f v1",
        "cd .worktrees/f; git switch -q --detach v2",
    ),
    "work tree of the user": (
        f"{_TEXTS}; git worktree add -q .worktrees/f v1",
        "git -C .worktrees/f switch -q --detach v2",
        "git worktree remove .worktrees/f",
    ),
    "repository": (
        f"git init -q; git commit -q --allow-empty -m 1; mkdir lib; cd lib; {_TEXTS}",
        "git -C lib switch -q v1",
        "cd lib; git switch -q main; git rebase -q v1",
    ),
    "submodule": (
        f"mkdir ../m; cd ../m; {_TEXTS}; cd ../proj; git init -q -b main;"
        "git -c protocol.file.allow=always submodule --quiet add ../m libs/m; git commit -qam 1;"
        "git -C libs/m checkout -q HEAD~1; git commit -qam 2",
        "git checkout -q HEAD~1; git -C libs/m checkout -q main",
        "git checkout -q main; git -C libs/m checkout -q v1",
    ),
    "work tree of an agent": (
        f"mkdir .claude; echo 1 > .claude/a; {_TEXTS}",
        "git worktree add -q .claude/worktrees/f v1",
        "cd .claude/worktrees/f; git switch -q --detach v2; git switch -q --detach main",
        "git worktree remove .claude/worktrees/f; git worktree add -q .claude/worktrees/g v1",
    ),
    "work tree of an agent without other files": (
        _TEXTS,
        "git worktree add -q .claude/worktrees/f v1; cd .claude/worktrees/f; echo x > new.py",
        "git -C .claude/worktrees/f switch -q --detach v2",
    ),
    "work tree without a branch": (
        f"{_TEXTS}; git worktree add -q --detach w; cd w; for v in 3 4; do echo $v > AGENTS.md;"
        " git commit -qam $v; done",
        "git -C w checkout -q HEAD~1",
        "git worktree remove w",
    ),
    "repository in a work tree": (
        f"{_TEXTS}; git worktree add -q w; mkdir w/x; cd w/x; {_TEXTS}",
        "git -C w/x switch -q v1",
        "git -C w/x switch -q v2",
    ),
}
"""What the user has, and two commands."""


@needs_bwrap
@pytest.mark.parametrize("has_mounts", [True, False])
@each_row("name", _NESTED)
async def test_each_repository_knows_the_versions_of_its_files(
    tmp_path: Path, name: str, has_mounts: bool
):
    user, *commands = _NESTED[name]
    place = _place(tmp_path / name, has_mounts=has_mounts)
    place.outside(user)
    for command in commands:
        settled = await place.run(command)
        assert place.held(settled) == {}, (command, place.printed)
        place.outside(
            "for git in $(find . -name .git); do cd $(dirname $git); git diff --exit-code HEAD;"
            'test -z "$(git ls-files -d)"; cd "$OLDPWD"; done'
        )


async def test_a_repository_that_the_user_makes_between_commands_knows_its_versions(
    tmp_path: Path,
):
    place = _place(tmp_path, has_mounts=False)
    place.outside("git init -q")
    await place.run("true")
    place.outside(f"mkdir lib; cd lib; {_TEXTS}")
    assert (await place.run("git -C lib switch -q v1")).held == ()


_NO_PROOF = {
    "a repository of a command": f"mkdir new; cd new; {_TEXTS}",
    "another store": f"cd lib; rm -rf .git; {_TEXTS.replace('echo $v', 'echo 0')}",
    "a commit in the user's": "cd lib; echo 0 > AGENTS.md; git commit -qam 0; git branch 0; true",
    "a pointer": "mkdir new; cp lib/AGENTS.md new/GEMINI.md; echo gitdir: ../lib/.git > new/.git",
}


@each_row("name", _NO_PROOF)
async def test_what_a_command_commits_in_a_nested_repository_is_held(tmp_path: Path, name: str):
    place = _place(tmp_path / name, has_mounts=False)
    place.outside(f"git init -q; mkdir lib; cd lib; {_TEXTS}")
    await place.run("true")
    settled = await place.run(_NO_PROOF[name], code=None)
    assert {Path(each).name for each in place.held(settled)} & {"AGENTS.md", "GEMINI.md"}
    await place.refuse(settled)
    assert place.text("lib/AGENTS.md") == "2\n"
    assert place.text("new/AGENTS.md") == ""
    again = await place.run("cd lib; git checkout -qf HEAD", code=None)
    await place.refuse(again)
    assert place.text("lib/AGENTS.md") == "2\n", place.held(again)


async def test_what_no_checkout_writes_is_no_version_of_the_user(tmp_path: Path):
    place = _place(tmp_path, has_mounts=False)
    place.outside(
        "git init -q; git init -q .idea/p; tree=$(echo evil | git hash-object -w --stdin);"
        'm="100755 blob"; for name in pre-push hooks .git p .idea; do'
        ' tree=$(printf "%s %s\\t%s\\n" "$m" $tree $name | git mktree); m="040000 tree"; done;'
        "git branch evil $(git commit-tree -m x $tree)"
    )
    await place.run("true")
    settled = await place.run("echo evil > .idea/p/.git/hooks/pre-push")
    assert set(place.held(settled)) == {".idea/p/.git/hooks/pre-push"}


@needs_bwrap
async def test_a_work_tree_that_a_command_makes_of_a_folder_uncovers_nothing(tmp_path: Path):
    place = _place(tmp_path, has_mounts=True)
    place.outside(
        f"git init -q; mkdir -p tools/hooks sub/vim; {_HOOK.format(1, 'tools/hooks')};"
        "git config core.hooksPath tools/hooks; echo 1 > sub/vim/rc;"
        "ln -s ../proj/sub/vim ~/.vim; git add .; git commit -qm 1"
    )
    place.watch = place.watch_again()
    for folder in ("tools", "sub"):
        await place.run(
            f"git worktree add -q --detach w$$; mv w$$/.git {folder}; rm -r w$$;"
            f"echo $PWD/{folder}/.git > .git/worktrees/w$$/gitdir; git -C {folder} rev-parse HEAD"
        )
    await place.run("true")
    covered = {str(path.relative_to(place.root)) for path, _ in place.watch.covers.copies}
    assert covered == {"sub/vim", "tools/hooks"}


_COMMIT = "echo evil > AGENTS.md; git commit -qam evil; git branch evil"


@each_row("command", ["", "before", "meanwhile"])
async def test_what_a_command_commits_elsewhere_in_the_repository_is_held(
    tmp_path_factory: pytest.TempPathFactory, command: str
):
    base = tmp_path_factory.mktemp("trees")
    place = _place(base, has_mounts=False)
    place.repositories = base / "own/repositories"
    place.watch = place.watch_again()
    place.outside(f"{_TEXTS}; git worktree add -q --detach ../tree")
    other = WatchedFolder(base / "tree", base / "other", place.home, False, place.repositories)
    if command:
        await other.run("true")
    await place.watch.note()
    place.inside(_COMMIT)
    if command == "meanwhile":  # the other conversation begins a command meanwhile
        await other.run("true")
    await place.watch.hold()
    settled = await other.run("git checkout -q evil -- .")
    assert set(other.held(settled)) == {"AGENTS.md"}
    await other.refuse(settled)
    assert (await other.run("git checkout -qf v1")).held == ()
    place.outside("git branch mine evil")
    settled = await other.run("git checkout -qf mine")
    assert set(other.held(settled)) == {"AGENTS.md"}


@needs_bwrap
@pytest.mark.parametrize("has_mounts", [True, False])
async def test_what_a_command_writes_in_an_agents_work_tree_is_judged_as_anywhere(
    tmp_path: Path, has_mounts: bool
):
    place = _place(tmp_path, has_mounts=has_mounts)
    place.outside(f"mkdir -p .claude/empty; echo 1 > .claude/a; {_TEXTS}")
    tree = ".claude/worktrees/f"
    settled = await place.run(
        f"git worktree add -q {tree} v1; cd {tree}; echo 0 > AGENTS.md; mkdir .claude .vscode;"
        "echo 0 > .claude/a; echo 0 > .vscode/b; echo 1 > a.py; git init -q ../g; cd ../g;"
        "mkdir -p .git/hooks; echo 0 > .git/hooks/pre-commit; git config core.fsmonitor x"
    )
    repository = ".claude/worktrees/g/.git"
    assert set(place.held(settled)) == {
        *(f"{tree}/AGENTS.md", f"{tree}/.claude", f"{tree}/.vscode"),
        *(f"{repository}/hooks/pre-commit", f"{repository}/config"),
    }
    assert place.text(f"{tree}/a.py") == "1\n"
    assert (place.root / ".claude/empty").is_dir()
    settled = await place.run(f"echo 0 > .claude/a; echo 2 > {tree}/b.py")
    assert set(place.held(settled)) == {".claude/a"}
    settled = await place.run(f"echo 0 > .claude/new; echo 2 > {tree}/mise.local.toml")
    assert set(place.held(settled)) == {".claude/new", f"{tree}/mise.local.toml"}
    settled = await place.run("rm -rf .claude/worktrees; echo 0 > .claude/b")
    assert set(place.held(settled)) == {".claude/b"}
    assert place.text(".claude/a") == "1\n"
    settled = await place.run("mkdir .claude/worktrees; echo 0 > .claude/a; echo 0 > .claude/c")
    assert set(place.held(settled)) == {".claude/a", ".claude/c"}
    assert place.text(".claude/a") == "1\n"
    settled = await place.run("rm -r .claude/worktrees; ln -s empty .claude/worktrees")
    assert set(place.held(settled)) == {".claude/worktrees"}
    assert place.text(".claude/a") == "1\n"


@needs_bwrap
@pytest.mark.parametrize("has_mounts", [True, False])
async def test_what_is_too_large_to_compare_hides_nothing_beside_an_agents_work_trees(
    tmp_path: Path, has_mounts: bool
):
    place = _place(tmp_path, has_mounts=has_mounts)
    place.outside("git init -q; mkdir -p .claude/x/y; echo 1 > .claude/a; echo 1 > .claude/x/y/b")
    large = "head -c 21000000 /dev/zero >"
    settled = await place.run(f"mkdir -p .claude/worktrees/f; {large} .claude/large")
    held = {".claude" if has_mounts else ".claude/large"}
    assert set(place.held(settled)) == held
    assert not (place.root / ".claude/large").exists()
    place.outside("mkdir -p .claude/worktrees/f")
    assert (await place.run("true")).held == ()
    settled = await place.run(
        f"rm -r .claude/worktrees; echo 0 > .claude/b; mkdir .claude/z; {large} .claude/z/large;"
        f"{large} .claude/x/large; echo 0 > .claude/x/c"
    )
    changed = {".claude/x"} if has_mounts else {".claude/x/large", ".claude/x/c"}
    assert set(place.held(settled)) == {".claude/b", ".claude/z", *changed}
    assert place.text(".claude/a") == place.text(".claude/x/y/b") == "1\n"


@needs_bwrap
async def test_work_trees_that_others_make_meanwhile_displace_none_of_a_command(tmp_path: Path):
    place = _place(tmp_path, has_mounts=True)
    place.outside("git init -q; mkdir .claude; echo 1 > .claude/a")
    await place.run("true")
    await place.watch.note()
    place.inside("mkdir -p .claude/worktrees/f .claude/worktrees/g; echo 1 > .claude/worktrees/f/b")
    place.inside("echo 0 > .claude/worktrees/g/c")
    place.outside("mkdir -p .claude/worktrees/g; echo mine > .claude/worktrees/g/c")
    assert (await place.watch.hold()).held == ()
    assert place.text(".claude/worktrees/f/b") == "1\n"
    assert place.text(".claude/worktrees/g/c") == "mine\n"


@needs_bwrap
@pytest.mark.parametrize("has_mounts", [True, False])
async def test_a_link_where_an_agent_keeps_work_trees_is_held(tmp_path: Path, has_mounts: bool):
    place = _place(tmp_path, has_mounts=has_mounts)
    place.outside("git init -q; mkdir x .claude; echo 1 > .claude/a; echo 1 > x/b")
    settled = await place.run("ln -s ../x .claude/worktrees")
    assert set(place.held(settled)) == {".claude/worktrees"}
    assert not (place.root / ".claude/worktrees").is_symlink()
