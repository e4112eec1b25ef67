import shutil
import subprocess
from mmap import mmap
from pathlib import Path

import pytest

from agent_tui.features.sandbox.git_controls import _odd_steps
from agent_tui.features.sandbox.project_walk import ProjectWalk
from tests.support.forged_index import entry, index, rename
from tests.support.rows import each_row
from tests.support.sandbox import needs_bwrap
from tests.support.watched_folder import WatchedFolder

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="uses git")

_ELSEWHERE = "git would write elsewhere"
_MADE_AGAIN = "; git made it again from the last commit, so nothing is staged"
_ONE = "git init -q -b main; echo one > file; git add file; git commit -qm one"


@pytest.fixture
def place(tmp_path: Path) -> WatchedFolder:
    """The user's repository with one commit, in a wall that cannot hold files in it."""
    place = _place(tmp_path)
    place.outside(_ONE)
    return place


def _place(base: Path, root: str = "proj", *, has_mounts: bool = False) -> WatchedFolder:
    for name in ("own", "home", root):
        (base / name).mkdir(parents=True)
    return WatchedFolder(base / root, base / "own", base / "home", has_mounts=has_mounts)


@pytest.mark.parametrize("name", ["../../xfile", "/{base}/xfile", ".git/hooks/x", "sub/.git/x"])
async def test_an_index_with_names_out_of_the_work_tree_is_set_aside(tmp_path: Path, name: str):
    place = _place(tmp_path, "in/side/proj")
    place.outside(f"{_ONE}; git init -q sub")
    id = bytes.fromhex(_said(place, "echo evil | git hash-object -w --stdin"))
    name = name.format(base=tmp_path)
    (place.root / "forged").write_bytes(index([entry(name.encode(), id)]))
    settled = await place.run("mv forged .git/index")
    assert place.held(settled) == {".git/index": _ELSEWHERE + _MADE_AGAIN}
    assert "binary, " in settled.held[0].diff
    place.outside("git diff --cached --exit-code")
    place.outside("git checkout -q . || true; git reset -q; git checkout -q .")
    assert not list(tmp_path.rglob("x*"))
    assert (await place.run("true")).held == ()


async def test_an_index_that_others_extend_is_set_aside_for_its_names(tmp_path: Path):
    place = _place(tmp_path, "in/side/proj")
    place.outside(
        "git init -q; git config core.splitIndex true; mkdir -p aa/bb; echo evil > aa/bb/xfile;"
        "git add .; rm -r aa"
    )
    (base,) = place.root.glob(".git/sharedindex.*")
    shutil.copy(base, place.root / "copy")
    rename(place.root / "copy", b"aa/bb/xfile", b"../../xfile")
    settled = await place.run(f"mv copy .git/{base.name}")
    assert place.held(settled) == {f".git/{base.name}": _ELSEWHERE}
    place.outside("git checkout -q . || true")
    assert not list(tmp_path.rglob("xfile"))


@each_row(
    ("name", "content"),
    [
        ("ORIG_HEAD", "ref: commondir"),
        ("ORIG_HEAD", "ref:config"),
        ("ORIG_HEAD", "ref:" + " " * 5_000 + "commondir"),
        ("CHERRY_PICK_HEAD", "ref: hooks/pre-commit"),
        ("AUTO_MERGE", "ref: worktrees/w/commondir"),
        ("NOTES_MERGE_REF", "ref: info/attributes"),
        ("HEAD", "ref: refs/../commondir"),
        ("HEAD", "ref: refs/heads/.."),
        ("refs/heads/main", "ref: commondir"),
        ("refs/stash", "ref: HEAD"),
        ("refs/remotes/origin/HEAD", "ref:\tcommondir"),
        ("worktrees/w/HEAD", "ref: commondir"),
        ("worktrees/w/refs/bisect/bad", "ref: commondir"),
        ("modules/m/n/FETCH_HEAD", "ref: commondir"),
        ("MERGE_RR", "a" * 40 + "\t../../.ssh/id_ed25519\0"),
        ("MERGE_RR", "a" * 40 + "\tfile\0" + "a" * 40 + "\t.git/config\0"),
        ("worktrees/w/gitdir", "{home}/.git"),
        ("index", "x"),
        ("worktrees/w/index", "x"),
    ],
)
async def test_what_makes_git_write_elsewhere_is_set_aside(
    tmp_path_factory: pytest.TempPathFactory, name: str, content: str
):
    place = _place(tmp_path_factory.mktemp("state"))
    place.outside(
        f"{_ONE}; git worktree add -q -b w w; git init -q --bare .git/modules/m/n; echo > file;"
        "git stash -q"
    )
    path = place.root / ".git" / name
    (place.root / "new").write_text(content.format(home=place.home))
    settled = await place.run(f"mkdir -p {path.parent}; mv new {path}")
    is_index = path.name == "index"
    assert place.held(settled) == {f".git/{name}": _ELSEWHERE + _MADE_AGAIN * is_index}
    is_back = name in ("HEAD", "worktrees/w/HEAD", "ORIG_HEAD")
    assert path.exists() == (is_index or is_back)
    assert not is_back or path.read_text() != content
    place.outside("git status; git -C w status; git rev-parse w; git -C w rev-parse HEAD")
    assert (await place.run("true")).held == ()


@each_row(
    ("name", "content"),
    [
        ("HEAD", "ref: refs/heads/a..b/c"),
        ("HEAD", "ref: refs/heads/main   \n"),
        ("refs/remotes/origin/HEAD", "ref: refs/remotes/origin/main\n"),
        ("COMMIT_EDITMSG", "ref: config"),
        ("MERGE_MSG", "ref: config"),
        ("logs/HEAD", "ref: config"),
        ("logs/refs/heads/HEAD", "ref: config"),
        ("FETCH_HEAD", ""),
        ("MERGE_RR", ""),
        ("MERGE_RR", "a" * 40 + "\ta/b\0" + "b" * 40 + ".1\tüc d\0"),
        ("lfs/objects/index", "x"),
        ("annex/objects/HEAD", "ref: config"),
        ("logs/refs/heads/x_HEAD", "ref: config"),
        ("index.lock", ""),
        ("worktrees/w/gitdir", "../../../w/.git\n"),
        ("worktrees/w/gitdir", "/missing/w/.git\n"),
        ("worktrees/w/gitdir", "../../hooks/.git\n"),
        ("description", "ref: config"),
    ],
)
async def test_what_git_and_other_programs_keep_stays(
    tmp_path_factory: pytest.TempPathFactory, name: str, content: str
):
    place = _place(tmp_path_factory.mktemp("state"))
    place.outside(f"{_ONE}; git worktree add -q -b w w")
    path = place.root / ".git" / name
    (place.root / "new").write_text(content)
    assert (await place.run(f"mkdir -p {path.parent}; mv new {path}")).held == ()
    assert path.read_text() == content


@each_row(
    ("name", "who"),
    [
        (".dir-locals.el", "an editor"),
        ("info/.dir-locals.el", "an editor"),
        ("rebase-merge/.dir-locals.el", "an editor"),
        ("worktrees/w/.dir-locals.el", "an editor"),
        ("modules/.dir-locals.el", "an editor"),
        ("lfs/.vscode", "an editor"),
        ("lfs/.envrc", "the shell"),
    ],
)
async def test_what_programs_follow_in_a_git_folder_is_held(
    tmp_path_factory: pytest.TempPathFactory, name: str, who: str
):
    place = _place(tmp_path_factory.mktemp("followed"))
    place.outside(f"{_ONE}; git worktree add -q -b w w")
    path = place.root / ".git" / name
    settled = await place.run(f"mkdir -p {path.parent}; mkdir new; echo > new/a; mv new {path}")
    is_held = name.endswith(".vscode")
    assert place.held(settled).keys() == ({f".git/{name}"} if is_held else set())
    settled = await place.run(f"rm -rf {path}; echo > {path}")
    assert place.held(settled) == {f".git/{name}": f"{who} obeys it"}
    place.outside(f"echo mine > {path}")
    await place.run("true")
    settled = await place.run(f"echo evil > {path}")
    assert place.held(settled) == {f".git/{name}": f"{who} obeys it"}
    assert path.read_text() == "mine\n"


@each_row(
    ("name", "held"),
    [
        ("lazygit.yml", "lazygit.yml"),
        ("glab-cli/config.yml", "glab-cli/config.yml"),
        ("sl/config", "sl/config"),
        ("a/b/hook.PY", "a/b/hook.PY"),
        (".graphite_repo_config", ".graphite_repo_config"),
        ("modules/m/n/lazygit.yml", "modules/m/n/lazygit.yml"),
        ("worktrees/w/x.toml", "worktrees/w/x.toml"),
        ("annex/ssh.config", "annex/ssh.config"),
        ("git-crypt/keys/default", "git-crypt/keys/default"),
        ("annex/creds/1", "annex/creds/1"),
        ("hooks.yml", "hooks.yml"),
        ("lfs/objects/ab/cd", ""),
        ("annex/objects/ab/cd", ""),
        ("annex/objects/ab/cd.py", ""),
        ("annex/journal/abc.log", ""),
        ("annex/tmp/x.json", ""),
        ("annex/index", ""),
        ("branchless/db.sqlite3", ""),
        ("tags", ""),
        ("COMMIT_EDITMSG", ""),
        (".COMMIT_EDITMSG.swp", ""),
        ("index.lock", ""),
        ("gc.log", ""),
        ("fast_import_crash_4711", ""),
        ("subtree-cache/4711/notree/" + "a" * 40, ""),
    ],
)
async def test_what_is_not_gits_in_a_git_folder_belongs_to_a_program_that_may_follow_it(
    tmp_path_factory: pytest.TempPathFactory, name: str, held: str
):
    place = _place(tmp_path_factory.mktemp("layout"))
    place.outside(
        f"{_ONE}; git worktree add -q -b w w; git init -q --bare .git/modules/m/n;"
        "mkdir .git/trees; git worktree add -q -b x .git/trees/x"
    )
    path = place.root / ".git" / name
    settled = await place.run(
        f"mkdir -p {path.parent}; echo evil > {path}; echo > .git/trees/x/lazygit.yml"
    )
    who = "the program that keeps it in git's folder obeys it"
    assert place.held(settled) == ({f".git/{held}": who} if held else {})
    if held:
        place.outside(f"mkdir -p {path.parent}; echo mine > {path}")
        await place.run("true")
        settled = await place.run(f"echo evil > {path}")
        assert place.held(settled) == {f".git/{name}": who}
        assert path.read_text() == "mine\n"


async def test_no_work_tree_that_a_command_makes_hides_settings_in_a_git_folder(
    place: WatchedFolder,
):
    settled = await place.run("git init -q .git/glab-cli; echo x > .git/glab-cli/config.yml")
    assert ".git/glab-cli" in place.held(settled)
    assert not (place.root / ".git/glab-cli").exists()


@pytest.mark.parametrize("command", ["mkdir .git/safe", "mkdir .git/safe; echo > .git/safe/x"])
async def test_a_folder_that_has_shells_run_programs_of_the_project_is_held(
    place: WatchedFolder, command: str
):
    place.outside("mkdir bin; printf '#!/bin/sh\\necho evil\\n' > bin/true; chmod +x bin/true")
    assert set(place.held(await place.run(f"{command}; mkdir .git/empty"))) == {".git/safe"}
    place.outside('test -z "$(PATH=.git/safe/../../bin:$PATH bash -c "command true; true")"')
    place.outside("mkdir .git/safe")
    assert (await place.run("true")).held == ()
    assert (place.root / ".git/safe").is_dir()


async def test_a_file_of_another_program_in_a_git_folder_is_followed_once_it_can_run(
    place: WatchedFolder,
):
    place.outside("mkdir .git/x; echo > .git/x/data; echo mine > .git/x/run; chmod +x .git/x/run")
    settled = await place.run("echo > .git/x/more; echo evil > .git/x/data; echo evil > .git/x/run")
    assert set(place.held(settled)) == {".git/x/run"}
    settled = await place.run("chmod +x .git/x/data; cp .git/x/data .git/new")
    assert set(place.held(settled)) == {".git/x/data", ".git/new"}
    assert place.text(".git/x/run") == "mine\n"


@needs_bwrap
async def test_hooks_write_what_they_keep_in_a_git_folder(tmp_path: Path):
    place = _place(tmp_path, has_mounts=True)
    hook = ".git/hooks/post-commit"
    place.outside(
        f"{_ONE}; mkdir .git/x; cd .git; echo 0 > tags; echo 0 > x/state.yml; echo 0 > x/db; cd ..;"
        f"printf '#!/bin/sh\ncd .git; echo 1 > 1.tags; mv 1.tags tags; echo 1 > x/db\n"
        f"echo a: 1 > x/1; mv x/1 x/state.yml' > {hook}; chmod +x {hook}"
    )
    settled = await place.run("git commit -q --allow-empty -m two")
    assert set(place.held(settled)) == {".git/x/state.yml"}
    assert [place.text(f".git/{name}") for name in ("tags", "x/db")] == ["1\n", "1\n"]


def test_keys_in_a_git_folder_are_found(tmp_path: Path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    keys = [tmp_path / ".git" / name for name in ("git-crypt/keys/default", "annex/creds/1")]
    for key in keys:
        key.parent.mkdir(parents=True)
        key.write_text("x")
    assert ProjectWalk([tmp_path]).look().secrets == keys


async def test_names_of_branches_submodules_and_work_trees_are_no_followed_files(
    place: WatchedFolder,
):
    place.outside("git init -q --bare ../m; mkdir .claude; echo > .claude/a; git add .claude")
    settled = await place.run(
        "git branch AGENTS.md; git branch x/mise.toml; git checkout -q AGENTS.md;"
        "git tag crush.json; git init -q .git/modules/.claude/skills;"
        "git worktree add -q --detach mise.toml"
    )
    assert settled.held == ()
    place.outside("git rev-parse AGENTS.md crush.json; git -C mise.toml status")


@pytest.mark.parametrize("tree", ["", "worktrees/w/"])
@pytest.mark.parametrize(
    "command", ["rm {0}", "rm {0}; mkdir -p {0}/x", "echo main > {0}", ": > {0}"]
)
async def test_git_finds_the_repository_again_that_a_command_left_without_a_head(
    place: WatchedFolder, tree: str, command: str
):
    place.outside("git worktree add -q -b w w; git switch -qc other")
    await place.run("git switch -qc newest")
    head = f".git/{tree}HEAD"
    before = place.text(head)
    settled = await place.run(command.format(head))
    assert place.text(head) == before
    if command == "rm {0}":
        assert settled.notice.startswith(f"{place.root / head} was deleted by a command")
    else:
        assert place.held(settled) == {head: "git would find no repository"}
    place.outside("test $(git symbolic-ref HEAD) = refs/heads/newest; git -C w status")
    assert (await place.run("git worktree remove w")).held == ()
    place.outside("test ! -e .git/worktrees/w")


_TREES = (
    "git worktree add -q -b w w; git init -q ../s; git -C ../s commit -q --allow-empty -m s;"
    "git -c protocol.file.allow=always submodule --quiet add ../s s; git commit -qm s; echo > w/x;"
    "git init -q --separate-git-dir .git/l l; rm l/.git; ln -s ../.git/l l/.git"
)


@pytest.mark.parametrize("has_mounts", [False, pytest.param(True, marks=needs_bwrap)])
@pytest.mark.parametrize("tree", ["s", "w", "l"])
@pytest.mark.parametrize(
    ("commands", "is_replaced"),
    [
        (["rm .git; git init -q; git remote add o https://evil.example"], True),
        (["rm .git; git init -q --separate-git-dir ../o"], True),
        (["rm .git; echo gitdir: ../o > .git"], True),
        (["rm .git; ln -s ../o .git"], True),
        (["rm .git; mkdir .git"], True),
        (["rm .git", "git init -q; git remote add o https://evil.example || true"], False),
    ],
    ids=["folder", "apart", "file", "link", "empty", "twice"],
)
async def test_no_command_puts_another_repository_in_the_place_of_a_work_trees(
    place: WatchedFolder, has_mounts: bool, tree: str, commands: list[str], is_replaced: bool
):
    place.outside(f"{_TREES}; mkdir o; echo > s/x; echo > l/x")
    place.has_mounts = has_mounts
    place.watch = place.watch_again()
    entry = place.root / tree / ".git"
    before = entry.read_text() if entry.is_file() else str(entry.readlink())
    for command in commands:
        settled = await place.run(f"cd {tree}; {command}", code=None)
        held = place.held(settled)
        is_mounted = has_mounts and tree == "s"
        assert (f"{tree}/.git" in held) == (is_replaced and not is_mounted)
        assert (entry.read_text() if entry.is_file() else str(entry.readlink())) == before
        place.outside("! git -C s remote -v | grep evil; ! git -C w remote -v | grep evil")
    assert (await place.run("true")).held == ()


async def test_work_trees_are_removed_and_moved_without_a_question(place: WatchedFolder):
    place.outside(f"{_TREES}; git worktree add -q -b v v")
    for command in (
        "git worktree move w w2; mkdir w",
        "git worktree remove --force w2; git init -q w2",
        "rm -r v; git worktree prune; git worktree add -q v",
        "git submodule --quiet deinit -f s",
        "git -c protocol.file.allow=always submodule --quiet update --init s",
        "git rm -qf s; git commit -qm gone",
        "rm -r l",
    ):
        settled = await place.run(command)
        assert place.held(settled) == {}, (command, place.printed)
        assert "is back" not in settled.notice, command
    place.outside("test ! -e w/.git; test ! -e s; test ! -e l; test -d w2/.git; git -C v status")


async def test_git_writes_into_no_file_through_a_second_name(place: WatchedFolder):
    config = place.text(".git/config")
    (place.root / "template").write_text("[core]\n\tfsmonitor = ./evil\n")
    place.outside("git config commit.template template; git config commit.cleanup verbatim")
    config = place.text(".git/config")
    await place.run("true")
    settled = await place.run("ln -f .git/config .git/COMMIT_EDITMSG")
    assert (settled.held, place.text(".git/COMMIT_EDITMSG")) == ((), config)
    place.outside("git commit -q --allow-empty -F template")
    assert place.text(".git/config") == config
    assert (await place.run("true")).held == ()


async def test_what_a_command_copies_with_second_names_stays_and_is_apart(place: WatchedFolder):
    place.outside("git branch other; git tag -am t t; mkdir -p .git/lfs; echo > .git/lfs/index")
    assert (await place.run("cp -al . ../copy; mv ../copy copy")).held == ()
    for top in (place.root, place.root / "copy"):
        git = top / ".git"
        files = [each for each in git.rglob("*") if each.is_file()]
        theirs = {each for each in files if {"objects", "lfs", "config"} & set(each.parts)}
        assert {each for each in files if each.lstat().st_nlink == 2} <= theirs
        assert all(each.lstat().st_nlink == 2 for each in theirs if each.name != "config")
    place.outside("git fsck; cd copy; git fsck; git commit -q --allow-empty -m two")


async def test_a_copy_of_the_users_with_second_names_is_not_taken_apart(place: WatchedFolder):
    place.outside("echo > .git/COMMIT_EDITMSG; cp -al . ../copy")
    files = [each for each in (place.root / ".git").rglob("*") if each.is_file()]
    inodes = {each: each.lstat().st_ino for each in files}
    settled = await place.run("echo two > file; git commit -qam two; git branch x")
    assert settled.held == ()
    replaced = {"index", "main", "HEAD", "file"}  # git makes these anew
    changed = {each.name for each in files if each.lstat().st_ino != inodes[each]}
    assert changed <= replaced
    await place.run("ln -f .git/config .git/COMMIT_EDITMSG")
    assert not (place.root / ".git/COMMIT_EDITMSG").samefile(place.root / ".git/config")


async def test_no_written_index_of_many_bytes_is_lost_for_a_second_name(place: WatchedFolder):
    place.outside("seq 20000 | sed 's,^,file-,' | xargs touch; git add .")
    assert (place.root / ".git/index").stat().st_size > 1_000_000
    assert (await place.run("ln .git/index second")).held == ()
    assert (place.root / ".git/index").lstat().st_nlink == 1
    place.outside('test -z "$(git status --porcelain | grep -v second | grep -v ^A)"')


@each_row(
    ("name", "content"),
    [
        ("rebase-merge/msgnum", "$(touch ran)"),
        ("rebase-merge/end", "$(touch ran)"),
        ("rebase-apply/next", "$(touch ran)"),
        ("rebase-apply/last", "1$(touch ran)"),
        ("rebase-apply/apply-opt", "'--build-fake-ancestor=/x'"),
        ("rebase-apply/apply-opt", "'-C2' '--include=a' '--unsafe-paths'"),
        ("rebase-apply/apply-opt", "'-C2' --reject"),
        ("rebase-merge/author-script", "GIT_AUTHOR_DATE='@1'; touch ran"),
        ("rebase-apply/author-script", "GIT_EDITOR='touch ran'"),
        ("BISECT_START", "--force"),
    ],
)
async def test_unfinished_work_has_only_what_git_notes_in_it(
    tmp_path_factory: pytest.TempPathFactory, name: str, content: str
):
    place = _place(tmp_path_factory.mktemp("unfinished"))
    place.outside(_ONE)
    (place.root / "new").write_text(content)
    folder = (place.root / ".git" / name).parent
    settled = await place.run(f"mkdir -p {folder}; mv new .git/{name}")
    assert place.held(settled) == {f".git/{name}": f"git would run {content}"}


def test_the_author_that_git_notes_is_no_program():
    noted = (
        b"GIT_AUTHOR_NAME='O'\\''Brien $x'\nGIT_AUTHOR_EMAIL='a@b'\nGIT_AUTHOR_DATE='@1 +0000'\n"
    )
    assert _odd_steps(noted, Path(".git/rebase-merge/author-script"), None) == []


async def test_what_is_written_to_a_mapped_reference_is_found(place: WatchedFolder):
    await place.run("true")
    head = place.root / ".git/ORIG_HEAD"
    await place.run("printf 'ref: refs/heads/x' > .git/ORIG_HEAD")
    await place.watch.note()
    await place.watch.hold(is_over=False)
    with head.open("r+b") as file, mmap(file.fileno(), 0) as mapped:
        mapped[:4] = b"ref:"
        assert (await place.run("true")).held == ()
        mapped[5:17] = b"commondir".ljust(12)
        await place.watch.end_job()
    assert place.held(await place.run("true")) == {".git/ORIG_HEAD": _ELSEWHERE}  # or the user's


def _said(place: WatchedFolder, script: str) -> str:
    words = ["bash", "-ec", script]
    return subprocess.check_output(words, cwd=place.root, env=place.environ, text=True).strip()


@pytest.mark.parametrize("is_linked", [False, True])
async def test_a_repository_in_the_git_folder_that_an_index_names_runs_nothing(
    tmp_path: Path, is_linked: bool
):
    top = _place(tmp_path, "top")
    top.outside(f"{_ONE}; mkdir sub; git worktree add -q ../linked; git init -q .git/evil")
    root = tmp_path / "linked" if is_linked else top.root / "sub"
    place = WatchedFolder(root, top.own, top.home, has_mounts=False)
    (root / "forged").write_bytes(index([entry(b".git/evil", bytes(20), mode=0o160000)]))
    git = top.root / ".git"
    settled = await place.run(
        f"mv forged {git}/index; cd {git}/evil;"
        f"git commit -q --allow-empty -m x; git config core.fsmonitor 'touch {tmp_path}/ran'"
    )
    held = {file.path for file in settled.held}
    assert held == {git / "index", git / "evil/.git/config"}
    top.outside("git status; git reset -q; git status")
    assert not (tmp_path / "ran").exists()


_EVERYDAY = """
mkdir .git/rr-cache; echo two > file; git commit -qam two; git tag -a t -m t
git switch -qc other HEAD~1; echo other > file; git commit -qam other; git switch -q main
git merge other || { echo both > file; git commit -qam merged; }
git reset -q --hard HEAD~1; git merge other || git merge --abort
git stash list; echo x >> file; git stash -q; git stash pop -q; git checkout -q file
git switch -qc third HEAD~1; echo three > new; git add new; git commit -qm three; git rebase -q main
git cherry-pick other || git cherry-pick --abort; git revert --no-edit HEAD; git switch -q main
git rebase other || git rebase --quit; git reset -q --hard; git switch -qf main
git rebase --apply other || git rebase --abort; git format-patch -q -1 --stdout other > p
git am -q -C2 -p1 --whitespace=fix --include='f*' --reject --directory="it's" p
git am --abort; git am -q --ignore-whitespace p; git am --show-current-patch; git am --abort
git bisect start HEAD HEAD~1; git bisect reset
git worktree add -q ../tree -b tree 2> /dev/null || git worktree add -q tree -b tree
git worktree move tree moved 2> /dev/null; git worktree list; git worktree remove --force moved
git notes add -m n; git reflog expire --all
git symbolic-ref refs/remotes/o/HEAD refs/heads/main
git -c protocol.file.allow=always submodule --quiet add ./sub s; git commit -qm s
git update-index --split-index; git status; git update-index --no-split-index
git update-index --index-version 4; git update-index --untracked-cache; git status; git repack -qad
git sparse-checkout set --cone --sparse-index d; git sparse-checkout disable; git pack-refs --all
git gc -q; git clone -q . clone; git -C clone pull -q; git fetch -q clone
git commit-graph write; git multi-pack-index write; git fsck; git maintenance run --quiet
git branch 'a$b'; git update-ref refs/x/y HEAD; git replace HEAD HEAD~1; git replace -d HEAD
git init -q --object-format=sha256 new; cd new; echo > a; git add a; git commit -qm a
"""


@needs_bwrap
@pytest.mark.parametrize("has_mounts", [True, False])
async def test_no_everyday_work_with_git_asks_anything(tmp_path: Path, has_mounts: bool):
    place = _place(tmp_path)
    place.has_mounts = has_mounts
    place.watch = place.watch_again()
    place.outside(f"{_ONE}; mkdir d; echo > d/e; git add d; git commit -qm d; git init -q sub")
    place.outside("cd sub; git commit -q --allow-empty -m sub")
    for line in _EVERYDAY.strip().splitlines():
        assert (await place.run(line, code=None)).held == (), (line, place.printed)
    place.outside("git fsck; git status; cd new; git fsck")


@pytest.mark.parametrize("has_mounts", [False, pytest.param(True, marks=needs_bwrap)])
async def test_an_empty_folder_of_a_command_does_not_stay_in_a_git_folder(
    tmp_path: Path, has_mounts: bool
):
    place = _place(tmp_path, has_mounts=has_mounts)
    place.outside("git init -q; mkdir .git/modules")
    settled = await place.run(
        "cd .git; mkdir -p rebase-merge worktrees/zz modules/q/r; ln -s / modules/q/r/x;"
        " echo exec evil > rebase-merge/git-rebase-todo; echo /etc > worktrees/zz/gitdir"
    )
    assert len(settled.held) == 3
    left = {path.name for path in (place.root / ".git").iterdir()}
    assert left.isdisjoint({"rebase-merge", "worktrees"})
    assert list((place.root / ".git/modules").iterdir()) == []
    place.outside("mkdir .git/worktrees")
    assert len((await place.run("mkdir .git/worktrees/a; ln -s / .git/worktrees/a/x")).held) == 1
    assert list((place.root / ".git/worktrees").iterdir()) == []


async def test_an_empty_folder_stays_if_nobody_knows_who_made_it(tmp_path: Path):
    place = _place(tmp_path)
    place.outside("git init -q; rm -r .git/hooks; mkdir .git/hooks")
    await place.watch.note()
    place.inside("echo evil > .git/hooks/pre-push; chmod +x .git/hooks/pre-push")
    place.watch = place.watch_again()  # the program was killed
    assert len(await place.watch.recover()) == 1
    assert list((place.root / ".git/hooks").iterdir()) == []
