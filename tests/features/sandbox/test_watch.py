import asyncio
import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from mmap import mmap
from pathlib import Path
from typing import cast

import pytest

from agent_tui.errors import ToolError
from agent_tui.features.sandbox import project_walk, watch
from agent_tui.features.sandbox.beneath import remove_folder
from agent_tui.features.sandbox.change_judge import why_decide
from agent_tui.features.sandbox.command_run import describe_held
from agent_tui.features.sandbox.git_repository import GitRepository
from agent_tui.features.sandbox.held import HeldStore, describe_waiting
from agent_tui.features.sandbox.project_walk import ProjectWalk, WalkFindings
from agent_tui.file_locks import lock_descriptor
from agent_tui.tools.git.named_files import is_followed
from tests.support.rows import each_row
from tests.support.sandbox import needs_bwrap
from tests.support.watched_folder import WatchedFolder

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="uses git")

_TWO_BRANCHES = """
git init -q -b main .
echo one > AGENTS.md; ln -s AGENTS.md GEMINI.md; mkdir .vscode sub
echo 1 > .vscode/settings.json; echo 1 > mise.toml
echo one > a.py; git add .; git commit -qm first
git switch -qc other
echo two > AGENTS.md; echo 2 > .vscode/settings.json; echo 2 > .vscode/tasks.json
echo 2 > mise.toml
echo two > CLAUDE.md; echo two > a.py; git add .; git commit -qm second
git switch -q main
"""


@pytest.fixture
def place(tmp_path: Path) -> WatchedFolder:
    """A folder in the wall."""
    return _place(tmp_path, has_mounts=True)


@pytest.fixture
def open_place(tmp_path: Path) -> WatchedFolder:
    """A folder in a wall that cannot hold files in it."""
    return _place(tmp_path, has_mounts=False)


def _place(tmp_path: Path, *, has_mounts: bool) -> WatchedFolder:
    folders = [tmp_path / name for name in ("proj", "own", "home")]
    for folder in folders:
        folder.mkdir()
    return WatchedFolder(*folders, has_mounts=has_mounts)


async def test_what_is_new_and_obeyed_is_laid_aside_with_who_obeys_it(open_place: WatchedFolder):
    settled = await open_place.run(
        "echo export A=1 > .envrc; mkdir -p .vscode/deep sub; echo '{}' > .vscode/tasks.json;"
        "echo x > sub/AGENTS.md; ln -s /etc .idea; echo print > a.py; echo A=1 > .env"
    )
    assert open_place.held(settled) == {
        ".envrc": "the shell obeys it",
        ".idea": "an editor obeys it",
        ".vscode": "an editor obeys it",
        "sub/AGENTS.md": "an agent obeys it",
    }
    assert sorted(path.name for path in open_place.root.iterdir()) == [".env", "a.py", "sub"]
    (envrc,) = (file for file in settled.held if file.path.name == ".envrc")
    assert "+export A=1" in envrc.diff
    assert list(describe_held([envrc], lambda path: path.name)) == [
        "held back: .envrc (new): the shell obeys it; the user decides"
    ]
    assert envrc.aside.read_text() == "export A=1\n"
    assert open_place.held(await open_place.run("true")) == {}


async def test_an_empty_folder_of_a_command_stays_and_what_it_gets_later_is_held(
    open_place: WatchedFolder,
):
    assert (await open_place.run("mkdir -p .vscode .claude/skills")).held == ()
    assert (open_place.root / ".vscode").is_dir()
    settled = await open_place.run("echo 1 > .vscode/tasks.json; echo 1 > .claude/skills/a")
    assert set(open_place.held(settled)) == {".vscode/tasks.json", ".claude/skills/a"}
    assert (open_place.root / ".vscode").is_dir()


async def test_what_the_person_makes_between_commands_stays(open_place: WatchedFolder):
    await open_place.run("true")
    open_place.outside("echo mine > AGENTS.md; mkdir -p .git/hooks; echo x > .git/hooks/pre-push")
    assert await open_place.run("true") == await open_place.run("true")
    assert open_place.text("AGENTS.md") == "mine\n"
    assert open_place.text(".git/hooks/pre-push") == "x\n"


async def test_a_yes_puts_exactly_in_place_what_was_shown(open_place: WatchedFolder):
    settled = await open_place.run("mkdir .vscode; echo 1 > .vscode/tasks.json; chmod +x .vscode/*")
    (held,) = settled.held
    await open_place.watch.decide(held, True)
    assert open_place.text(".vscode/tasks.json") == "1\n"
    assert (open_place.root / ".vscode" / "tasks.json").stat().st_mode & 0o111
    assert open_place.held(await open_place.run("true")) == {}

    settled = await open_place.run("echo 1 > .envrc")
    settled.held[0].aside.write_text("2")
    with pytest.raises(ToolError, match="has changed"):
        await open_place.watch.decide(settled.held[0], True)
    assert not (open_place.root / ".envrc").exists()


async def test_what_is_held_never_leads_out_of_the_folder(
    open_place: WatchedFolder, tmp_path: Path
):
    outside = tmp_path / "outside"
    outside.mkdir()
    settled = await open_place.run("mkdir sub; echo evil > sub/AGENTS.md")
    (held,) = settled.held
    open_place.inside(f"rm -r sub; ln -s {outside} sub")
    with pytest.raises(ToolError, match="was not put in place"):
        await open_place.watch.decide(held, True)
    assert list(outside.iterdir()) == []


async def test_where_no_mount_holds_a_file_its_old_text_is_back(open_place: WatchedFolder):
    open_place.outside(
        "git init -q .; echo one > AGENTS.md; mkdir .vscode; echo 1 > .vscode/settings.json"
    )
    settled = await open_place.run(
        "echo evil >> AGENTS.md; echo 2 > .vscode/settings.json; echo 3 > .vscode/tasks.json;"
        "git config core.fsmonitor ./evil; git config branch.x.remote origin"
    )
    assert set(open_place.held(settled)) == {
        *("AGENTS.md", ".vscode/settings.json", ".vscode/tasks.json", ".git/config"),
    }
    assert open_place.text("AGENTS.md") == "one\n"
    assert open_place.text(".vscode/settings.json") == "1\n"
    assert not (open_place.root / ".vscode" / "tasks.json").exists()
    assert "fsmonitor" not in open_place.text(".git/config")
    (agents,) = (file for file in settled.held if file.path.name == "AGENTS.md")
    assert agents.before
    assert "+evil" in agents.diff


@pytest.mark.parametrize(
    ("command", "held"),
    [
        ("git remote set-url origin https://evil.example/x", ".git/config"),
        ("git remote set-url --push origin https://evil.example/x", ".git/config"),
        ("git remote add more https://evil.example/x", ".git/config"),
        ("git config branch.main.remote https://evil.example/x", ".git/config"),
        (
            "mkdir -p .git/remotes; echo URL: https://evil.example/x > .git/remotes/o",
            ".git/remotes/o",
        ),
        (
            "mkdir -p .git/branches; echo https://evil.example/x > .git/branches/o",
            ".git/branches/o",
        ),
        (
            "git checkout -q -b work; git config branch.work.remote origin; git remote remove old;"
            "git config branch.work.merge refs/heads/main; git config branch.x.remote .",
            "",
        ),
        ("git config --unset remote.origin.url; ln -s /evil.git origin", ".git/config"),
        ("git config --unset remote.origin.pushurl", ".git/config"),
        ("git config branch.main.remote evil; ln -s /evil.git evil", ".git/config"),
        ("git config remote.origin.mirror true", ".git/config"),
        (
            "sed -i 's/x.example/T/;s/mine.example$/x.example/;s/T/mine.example/' .git/config",
            ".git/config",
        ),
        ("git init -q new; git -C new remote add origin https://new.example/x", ""),
    ],
)
async def test_without_mounts_where_a_push_goes_is_held_back(
    open_place: WatchedFolder, command: str, held: str
):
    open_place.outside(
        "git init -q -b main; git commit -qm one --allow-empty; git remote add old https://x.example;"
        "git remote add origin https://mine.example; git config branch.main.remote origin;"
        "git config remote.origin.pushurl https://mine.example/x"
    )
    settled = await open_place.run(command)
    assert set(open_place.held(settled)) == ({held} if held else set())
    assert "evil" not in (open_place.root / ".git/config").read_text()
    open_place.outside("test $(git remote get-url --push origin) = https://mine.example/x")
    assert not (open_place.root / held).is_file() or held in ("", ".git/config")


@each_row(
    ("command", "held"),
    [
        ("git config remote.origin.fetch '+refs/heads/*:refs/heads/*'", ".git/config"),
        ("git config --add remote.origin.fetch '+refs/*:refs/*'", ".git/config"),
        ("git config user.email eve@evil.example", ".git/config"),
        ("git config user.signingKey evil", ".git/config"),
        ("git config core.logAllRefUpdates false", ".git/config"),
        ("git config core.bare true", ".git/config"),
        ("git config core.repositoryFormatVersion 7", ".git/config"),
        ("git config branch.main.rebase true", ".git/config"),
        ("git config branch.main.merge evil", ".git/config"),
        ("git config submodule.s.url https://evil.example", ".git/config"),
        ("git config pull.ff only", ".git/config"),
        (
            "git config extensions.worktreeConfig true;"
            "git config --worktree remote.origin.pushurl https://evil.example",
            ".git/config.worktree",
        ),
        (
            "git config extensions.worktreeConfig true; git config --worktree user.name evil",
            ".git/config.worktree",
        ),
        ("git branch -q -u origin/main; git branch other; git config branch.x.remote .", ""),
        ("git sparse-checkout set --cone --sparse-index x", ""),
        ("git config submodule.t.url ../t; git config submodule.t.active true", ""),
        ("git config --remove-section submodule.s; git config --remove-section branch.old", ""),
        ("git init -q; git status; git worktree add -q ../proj/w", ""),
    ],
)
async def test_without_mounts_git_changes_only_what_its_daily_work_does(
    tmp_path_factory: pytest.TempPathFactory, command: str, held: str
):
    place = _place(tmp_path_factory.mktemp("daily"), has_mounts=False)
    place.outside(
        "git init -q -b main; git commit -qm one --allow-empty; git remote add origin ./o;"
        "git config submodule.s.url https://mine.example; git config branch.old.rebase true;"
        "git update-ref refs/remotes/origin/main HEAD"
    )
    was = place.text(".git/config")
    settled = await place.run(command)
    assert set(place.held(settled)) == ({held} if held else set())
    assert "evil" not in place.text(".git/config") + place.text(".git/config.worktree")
    assert held != ".git/config" or place.text(".git/config") == was
    assert (await place.run("true")).held == ()


@needs_bwrap
@pytest.mark.parametrize("has_mounts", [True, False])
@pytest.mark.parametrize(
    "settings",
    [
        ("extensions.partialClone origin", "remote.origin.promisor true"),
        ("remote.origin.promisor true",),
        ("remote.origin.partialCloneFilter blob:none",),
    ],
)
async def test_no_repository_of_a_command_has_git_send_requests_by_itself(
    tmp_path: Path, has_mounts: bool, settings: tuple[str, ...]
):
    place = _place(tmp_path, has_mounts=has_mounts)
    place.outside("git init -q; git commit -qm one --allow-empty")
    sets = "".join(f"git -C s config {setting};" for setting in settings)
    settled = await place.run(
        "git init -q s; git -C s remote add origin http://127.0.0.1:9/stolen;"
        f"git -C s config core.repositoryFormatVersion 1; {sets}"
    )
    assert set(place.held(settled)) == {"s/.git/config"}
    assert "partial" not in place.text("s/.git/config").lower()
    assert "promisor" not in place.text("s/.git/config")
    assert "stolen" in place.text("s/.git/config")  # a remote does nothing by itself


@pytest.mark.parametrize(
    "command", ["rm .git/hooks/pre-push .git/config", "mv .git/hooks .git/old; : > .git/config"]
)
async def test_without_mounts_a_hook_and_settings_that_a_command_deletes_are_back(
    open_place: WatchedFolder, command: str
):
    open_place.outside(
        "git init -q; git init -q sub; git config alias.x y; echo exit 1 > .git/hooks/pre-push;"
        "chmod +x .git/hooks/pre-push; echo > .git/hooks/mine"
    )
    await open_place.run("true")
    open_place.outside("rm .git/hooks/mine")
    settled = await open_place.run(f"{command}; rm -rf sub")
    assert f"{open_place.root}/.git/hooks/pre-push was deleted" in settled.notice
    open_place.outside("test -x .git/hooks/pre-push; git config alias.x; test ! -e .git/hooks/mine")
    assert not (open_place.root / "sub").exists()
    assert (await open_place.run("true")).notice == ""


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(
            "for i in $(seq 2100); do : > .vscode/f$i; done", marks=pytest.mark.thorough, id="many"
        ),
        pytest.param("head -c 21000000 /dev/zero > .vscode/big", id="large"),
    ],
)
@pytest.mark.parametrize("is_job", [False, True])
async def test_a_folder_that_a_command_fills_is_held_and_the_known_files_are_back(
    open_place: WatchedFolder, command: str, is_job: bool
):
    open_place.outside("mkdir -p .vscode/x; echo 1 > .vscode/x/a; ln -s x/a .vscode/b")
    await open_place.watch.note()
    await open_place.watch.hold(is_over=not is_job)
    if is_job:
        open_place.inside(f"{command}; echo evil > .vscode/x/a")
        settled = await open_place.run("true")
    else:
        settled = await open_place.run(f"{command}; echo evil > .vscode/x/a")
    assert set(open_place.held(settled)) == {".vscode"}
    if is_job:
        await open_place.watch.decide(settled.held[0], False)
    for _ in range(2):
        open_place.outside("test $(find .vscode | wc -l) = 4")
        assert open_place.text(".vscode/b") == "1\n"
        assert (await open_place.run("true")).held == ()
    assert set(open_place.held(await open_place.run("echo 2 > .vscode/x/a"))) == {".vscode/x/a"}


async def test_a_folder_that_was_always_too_large_stays(open_place: WatchedFolder):
    open_place.outside("mkdir .vscode; echo 1 > .vscode/a; head -c 21000000 /dev/zero > .vscode/b")
    assert (await open_place.run("echo 2 > .vscode/a")).held == ()
    assert open_place.text(".vscode/a") == "2\n"


_LINKS = """
git init -q; mkdir scripts shared .vscode docs; echo mine > scripts/pc.sh; echo {} > shared/t.json
echo a > docs/a.md; ln -s ../../scripts/pc.sh .git/hooks/pre-commit
ln -s ../shared/t.json .vscode/tasks.json; ln -s env/local.envrc .envrc; ln -s conf .zed
ln -s docs/a.md AGENTS.md; ln -s . .idea; echo x > x
"""


@needs_bwrap
@pytest.mark.parametrize("has_mounts", [True, False])
async def test_the_target_of_the_persons_link_is_followed_like_a_file(
    tmp_path: Path, has_mounts: bool
):
    place = _place(tmp_path, has_mounts=has_mounts)
    place.outside(_LINKS)
    assert (await place.run("echo y > x")).held == ()
    settled = await place.run(
        "for file in scripts/pc.sh shared/t.json docs/a.md; do echo evil > $file; done;"
        "mkdir env conf; echo evil > env/local.envrc; echo evil > conf/tasks.json; echo z > x",
        code=None,
    )
    held = {"scripts/pc.sh": "git", "shared/t.json": "an editor", "conf": "an editor"}
    held |= {"env/local.envrc": "the shell", "docs/a.md": "an agent"}
    assert place.held(settled) == {path: f"{who} obeys it" for path, who in held.items()}
    assert place.text(".git/hooks/pre-commit") == "mine\n"
    assert [place.text(name) for name in (".vscode/tasks.json", "AGENTS.md")] == ["{}\n", "a\n"]
    assert not (place.root / ".zed").exists()
    assert (await place.run("true")).held == ()


async def test_the_target_of_a_commands_link_stays(open_place: WatchedFolder):
    open_place.outside("mkdir src .vscode; echo 1 > src/a")
    settled = await open_place.run("ln -s src .idea; ln -s ../src .vscode/x; echo 2 > src/a")
    assert set(open_place.held(settled)) == {".idea", ".vscode/x"}
    assert open_place.text("src/a") == "2\n"


@needs_bwrap
async def test_the_target_of_a_link_that_git_brings_is_judged(place: WatchedFolder):
    place.outside(
        "git init -q -b main; git commit -q --allow-empty -m 1; git switch -qc other; mkdir docs;"
        "echo 1 > docs/a; ln -s docs/a AGENTS.md; git add .; git commit -qm 2; git switch -q main"
    )
    settled = await place.run("git switch -q other; echo evil > docs/a")
    assert set(place.held(settled)) == {"docs/a"}
    assert (
        await place.run("git restore docs/a; git switch -q main; git switch -q other")
    ).held == ()
    assert place.text("AGENTS.md") == "1\n"


async def test_what_our_own_tools_write_while_a_job_runs_stays(open_place: WatchedFolder):
    open_place.outside("echo one > AGENTS.md")
    await open_place.watch.note()
    open_place.outside("echo two > AGENTS.md; echo 1 > .envrc")
    await open_place.watch.accept({open_place.root / "AGENTS.md": b"two\n"})
    settled = await open_place.watch.hold()
    assert set(open_place.held(settled)) == {".envrc"}
    assert open_place.text("AGENTS.md") == "two\n"


async def test_two_commands_at_once_hold_a_file_once(open_place: WatchedFolder):
    watch = open_place.watch
    await watch.note()
    await watch.note()
    open_place.inside("echo 1 > .envrc")
    first = await watch.hold()
    open_place.inside("echo 2 > .mcp.json")
    second = await watch.hold()
    assert [set(open_place.held(each)) for each in (first, second)] == [{".envrc"}, {".mcp.json"}]


async def test_two_programs_at_once_hold_what_either_made(open_place: WatchedFolder):
    other = open_place.watch_again()
    await open_place.watch.note()
    open_place.inside("echo 1 > .envrc")
    await other.note()  # not taken for the person's: a command of the first one runs
    settled = [*(await other.hold()).held, *(await open_place.watch.hold()).held]
    assert [file.path.name for file in settled] == [".envrc"]
    assert not (open_place.root / ".envrc").exists()


async def test_what_a_conversation_in_a_folder_around_sees_meanwhile_is_no_known_version(
    open_place: WatchedFolder,
):
    base = open_place.root
    for name in ("sub", "../proj-2"):
        (base / name).mkdir()
    (base / "sub/AGENTS.md").write_text("mine\n")
    own, home = open_place.own, open_place.home
    around, inside, apart = (
        WatchedFolder(root, own / name, home, has_mounts=False, repositories=own / "repositories")
        for root, name in ((base, "a"), (base / "sub", "b"), (base.with_name("proj-2"), "c"))
    )
    for place in (around, inside, apart):
        await place.run("true")
    await inside.watch.note()
    inside.inside("echo evil > AGENTS.md")
    apart.outside("echo mine > AGENTS.md")
    assert (await apart.run("true")).held == ()
    (asked,) = (await around.run("true")).held
    assert (asked.path, asked.is_in_place) == (base / "sub/AGENTS.md", True)
    assert len((await inside.watch.hold()).held) == 1
    assert (await around.run("true")).held == ()
    settled = await around.run("echo evil > sub/AGENTS.md")
    assert set(around.held(settled)) == {"sub/AGENTS.md"}
    assert inside.text("AGENTS.md") == "mine\n"
    await inside.watch.close()
    assert apart.text("AGENTS.md") == "mine\n"


async def test_what_the_first_look_of_a_conversation_in_a_folder_around_sees_is_no_known_version(
    open_place: WatchedFolder,
):
    base, own, home = open_place.root, open_place.own, open_place.home
    (base / "sub").mkdir()
    around, inside = (
        WatchedFolder(root, own / name, home, has_mounts=False, repositories=own / "repositories")
        for root, name in ((base, "a"), (base / "sub", "b"))
    )
    await inside.watch.note()
    evil = "echo evil > AGENTS.md; mkdir -p .vscode; echo evil > .vscode/a"
    inside.inside(evil)
    assert (await around.run("true")).held == ()
    await around.watch.note()
    assert len((await inside.watch.hold()).held) == 2
    assert (await around.watch.hold()).held == ()
    settled = await around.run(f"cd sub; {evil}")
    assert set(around.held(settled)) == {"sub/AGENTS.md", "sub/.vscode"}
    around.outside("echo mine > sub/AGENTS.md")
    assert (await around.run("true")).held == ()
    assert (await around.run("rm sub/AGENTS.md; echo mine > sub/AGENTS.md")).held == ()
    await inside.watch.close()


@pytest.mark.parametrize("is_repository", [False, True])
@pytest.mark.parametrize(
    "folder", [".claude", ".claude/skills/x", ".cursor/rules", ".github/hooks", ".husky"]
)
async def test_in_a_folder_that_programs_follow_each_change_is_held(
    open_place: WatchedFolder, folder: str, is_repository: bool
):
    root = open_place.root / folder
    root.mkdir(parents=True)
    open_place.outside(f"git init -q; cd {folder}; mkdir x; echo 1 > a; echo 1 > x/b")
    if is_repository:  # such as a skill that was cloned
        open_place.outside(f"cd {folder}; git init -q; git add a; git commit -qm 1")
    place = WatchedFolder(root, open_place.own, open_place.home, has_mounts=False)
    first = await place.run("true")
    assert "obeys" in first.notice
    assert first.held == ()
    settled = await place.run("echo 0 > a; echo 0 > x/b; echo 0 > c; mkdir d; echo 0 > d/e")
    assert set(place.held(settled)) == {"a", "x/b", "c", "d"}
    place.outside("echo 2 > a; echo 2 > f")
    assert (await place.run("true")).held == ()
    await place.watch.close()


@pytest.mark.parametrize(
    "folder", [".claude/worktrees/x", ".claude/plugins/tree", "claude", ".claude/worktrees"]
)
async def test_a_work_tree_in_a_folder_that_programs_follow_is_like_any(
    open_place: WatchedFolder, folder: str
):
    (open_place.root / folder).mkdir(parents=True)
    open_place.outside(
        "git init -q; git commit -qm 1 --allow-empty; git worktree add -q .claude/plugins/tree"
    )
    place = WatchedFolder(
        open_place.root / folder, open_place.own, open_place.home, has_mounts=False
    )
    settled = await place.run("echo 0 > a; mkdir b; echo 0 > b/c")
    assert (settled.held, settled.notice) == ((), "")
    await place.watch.close()


async def test_two_programs_that_begin_at_once_hold_nothing_of_the_persons(
    open_place: WatchedFolder, monkeypatch: pytest.MonkeyPatch
):
    await open_place.run("true")
    open_place.outside("mkdir .vscode; echo '{}' > .vscode/settings.json; echo x > AGENTS.md")
    other, look = open_place.watch_again(), ProjectWalk.look
    looks, other_has_begun = threading.Event(), threading.Event()

    def look_slowly(walk: ProjectWalk) -> WalkFindings:
        if not looks.is_set():
            looks.set()
            other_has_begun.wait(0.3)
        return look(walk)

    async def begin_other() -> None:
        await asyncio.to_thread(looks.wait)
        await other.note()
        other_has_begun.set()

    monkeypatch.setattr(ProjectWalk, "look", look_slowly)
    await asyncio.gather(open_place.watch.note(), begin_other())
    assert [*(await other.hold()).held, *(await open_place.watch.hold()).held] == []
    assert (open_place.root / "AGENTS.md").exists()


async def test_what_a_job_writes_through_a_mapping_is_held(open_place: WatchedFolder):
    open_place.outside("git init -q; printf '%99s' '# mine' > AGENTS.md")
    await open_place.watch.note()
    await open_place.watch.hold(is_over=False)
    path = open_place.root / "AGENTS.md"
    with path.open("r+b") as file, mmap(file.fileno(), 0) as text:
        text[0] = text[0]
        await open_place.run("true")
        text[:] = b"x" * 99  # changes no time of the file
        assert set(open_place.held(await open_place.run("true"))) == {"AGENTS.md"}
    await open_place.watch.end_job()


async def test_a_job_is_watched_until_its_end(open_place: WatchedFolder):
    await open_place.watch.note()
    assert (await open_place.watch.hold(is_over=False)).held == ()
    open_place.inside("echo 1 > .envrc")
    settled = await open_place.run("true")
    assert set(open_place.held(settled)) == {".envrc"}
    await open_place.watch.decide(settled.held[0], False)
    assert not (open_place.root / ".envrc").exists()
    open_place.inside("echo 1 > .envrc")
    await open_place.watch.end_job()
    assert set(open_place.held(await open_place.run("true"))) == {".envrc"}


async def _begin_job(place: WatchedFolder, command: str = "true") -> None:
    await place.watch.note()
    place.inside(command)
    assert (await place.watch.hold(is_over=False)).held == ()


async def test_what_may_be_the_persons_while_only_a_job_runs_is_asked_about_and_stays(
    open_place: WatchedFolder,
):
    open_place.outside("git init -q; echo one > AGENTS.md")
    await _begin_job(open_place)
    open_place.outside(
        "echo mine >> AGENTS.md; mkdir .vscode; echo 1 > .vscode/tasks.json;"
        "git config alias.x '!true'; echo x > .git/hooks/pre-push"
    )
    settled = await open_place.run("true")
    assert set(open_place.held(settled)) == {
        *("AGENTS.md", ".vscode", ".git/config", ".git/hooks/pre-push"),
    }
    assert all(held.is_in_place for held in settled.held)
    (agents,) = (held for held in settled.held if held.path.name == "AGENTS.md")
    assert "+mine" in agents.diff
    (line,) = describe_held([agents], lambda path: path.name)
    assert line.startswith("not held back, as the user may have written it: AGENTS.md (changed): ")
    for held in settled.held:
        assert await open_place.watch.decide(held, True) == held
    assert open_place.text("AGENTS.md") == "one\nmine\n"
    assert open_place.text(".vscode/tasks.json") == "1\n"
    assert open_place.text(".git/hooks/pre-push") == "x\n"
    assert "alias" in open_place.text(".git/config")
    assert (await open_place.run("true")).held == ()
    await open_place.watch.end_job()
    assert (await open_place.run("true")).held == ()


async def test_a_no_takes_back_what_was_left_in_place(open_place: WatchedFolder):
    open_place.outside("git init -q; echo one > AGENTS.md; git config user.name Ada")
    await _begin_job(open_place)
    open_place.inside(
        "echo evil > AGENTS.md; mkdir .vscode; echo 1 > .vscode/tasks.json;"
        "git config core.fsmonitor ./evil; ln -s /etc .idea"
    )
    await open_place.watch.end_job()
    settled = await open_place.run("true")
    assert set(open_place.held(settled)) == {"AGENTS.md", ".vscode", ".git/config", ".idea"}
    for held in settled.held:
        moved = await open_place.watch.decide(held, False)
        assert moved.aside.is_relative_to(open_place.own)
    assert open_place.text("AGENTS.md") == "one\n"
    assert not (open_place.root / ".vscode").exists()
    assert not (open_place.root / ".idea").is_symlink()
    assert "evil" not in open_place.text(".git/config")
    assert "Ada" in open_place.text(".git/config")
    # What was refused is no version that was in place before.
    assert set(open_place.held(await open_place.run("echo evil > AGENTS.md"))) == {"AGENTS.md"}


async def test_a_command_takes_no_part_in_what_the_person_is_asked_about(
    open_place: WatchedFolder,
):
    open_place.outside("echo one > AGENTS.md")
    await _begin_job(open_place)
    open_place.outside("echo mine >> AGENTS.md")
    settled = await open_place.run("echo evil >> AGENTS.md")
    mine, evil = sorted(settled.held, key=lambda held: not held.is_in_place)
    assert "+mine" in mine.diff
    assert not evil.is_in_place
    (line,) = describe_held(settled.held, lambda path: path.name)
    assert line.startswith(
        "held back: AGENTS.md (changed; what is there now stays, as the user may"
    )
    assert open_place.text("AGENTS.md") == "one\nmine\n"
    await open_place.watch.decide(mine, True)
    assert open_place.text("AGENTS.md") == "one\nmine\n"


async def test_a_question_about_what_has_changed_since_is_asked_again(open_place: WatchedFolder):
    await _begin_job(open_place)
    open_place.outside("echo 1 > .envrc")
    (held,) = (await open_place.run("true")).held
    open_place.outside("echo 2 > .envrc")
    with pytest.raises(ToolError, match="has changed since"):
        await open_place.watch.decide(held, True)
    (again,) = (await open_place.run("true")).held
    assert "+2" in again.diff
    open_place.inside("echo 3 > .envrc")
    assert (await open_place.watch.decide(again, False)).aside.read_text() == "3\n"
    assert not (open_place.root / ".envrc").exists()


async def test_a_question_that_nobody_answered_is_asked_by_the_next_program(
    open_place: WatchedFolder,
):
    open_place.outside("echo one > AGENTS.md")
    await _begin_job(open_place)
    open_place.inside("echo evil > AGENTS.md")
    await open_place.watch.close()
    open_place.watch = open_place.watch_again()
    (held,) = (await open_place.run("true")).held
    assert held.is_in_place
    await open_place.watch.decide(held, False)
    assert open_place.text("AGENTS.md") == "one\n"
    assert await open_place.watch_again().recover() == ()


async def test_a_name_of_any_bytes_is_remembered(open_place: WatchedFolder):
    open_place.outside(
        'd=$(printf \'a\\377\'); mkdir "$d" ü; echo 1 > "$d/AGENTS.md"; echo 1 > ü/.envrc'
    )
    await _begin_job(open_place)
    open_place.outside("d=$(printf 'a\\377'); echo 2 >> \"$d/AGENTS.md\"; echo 2 >> ü/.envrc")
    await open_place.watch.close()
    open_place.watch = open_place.watch_again()
    held = (await open_place.run("true")).held
    assert len(held) == 2
    for each in held:
        await open_place.watch.decide(each, False)
        assert each.path.read_text() == "1\n"


async def test_what_the_person_takes_back_themselves_is_not_asked_about(open_place: WatchedFolder):
    open_place.outside("echo one > AGENTS.md")
    await _begin_job(open_place)
    open_place.outside("echo mine >> AGENTS.md; echo 1 > .envrc")
    await open_place.watch.end_job()
    open_place.outside("echo one > AGENTS.md; rm .envrc")
    assert (await open_place.run("true")).held == ()


@needs_bwrap
async def test_what_only_the_person_can_have_changed_is_never_held(place: WatchedFolder):
    place.outside(
        "git init -q; echo 1 > mise.toml; mkdir .vscode; echo 1 > .vscode/settings.json;"
        "git config user.name Ada"
    )
    await place.watch.note()
    place.outside(
        "echo 2 > mise.toml; echo 2 > .vscode/settings.json; echo 2 > .vscode/new;"
        "echo x > .git/hooks/pre-push; printf '[alias]\\n\\tx = !true\\n' >> .git/config"
    )
    assert (await place.watch.hold(is_over=False)).held == ()
    place.outside("echo 3 > mise.toml; echo y > .git/hooks/pre-push")
    assert (await place.run("true")).held == ()
    assert place.text("mise.toml") == "3\n"
    assert place.text(".git/hooks/pre-push") == "y\n"
    assert "alias" in place.text(".git/config")


@needs_bwrap
async def test_a_covered_file_that_the_person_replaced_during_a_command_is_asked_about(
    place: WatchedFolder,
):
    place.outside("git init -q; echo 1 > mise.toml; mkdir .vscode; echo 1 > .vscode/a")
    await place.watch.note()
    place.outside(
        "echo 2 > new; mv new mise.toml; mv .vscode old; mkdir .vscode; echo 2 > .vscode/a;"
        "git config alias.x '!true'"
    )
    settled = await place.watch.hold()
    assert set(place.held(settled)) == {"mise.toml", ".vscode/a", ".git/config"}
    assert all(held.is_in_place for held in settled.held)
    assert place.text("mise.toml") == "2\n"


@needs_bwrap
async def test_a_file_that_was_once_replaced_is_never_again_the_covered_one(place: WatchedFolder):
    place.outside("echo 1 > mise.toml")
    await place.watch.note()
    await place.watch.hold(is_over=False)
    place.outside("mv mise.toml old; echo 2 > mise.toml")
    (held,) = (await place.run("true")).held
    await place.watch.decide(held, may_stay=False)
    assert place.text("mise.toml") == "1\n"
    place.outside("mv old mise.toml; echo evil >> mise.toml")  # as if its inode had been reused
    assert set(place.held(await place.run("true"))) == {"mise.toml"}


async def test_a_working_folder_that_is_replaced_during_a_command_is_the_persons(
    place: WatchedFolder,
):
    place.outside("git init -q; echo 1 > AGENTS.md; echo 1 > mise.toml")
    await place.run("true")
    await place.watch.note()
    other, script = place.root.with_name("other"), "mkdir .vscode; echo 1 > .vscode/a"
    place.root.rename(other)
    place.root.mkdir()
    place.outside(f"{script}; echo 2 > AGENTS.md; git init -q; git config alias.x '!true'")
    settled = await place.watch.hold()
    assert settled.notice.startswith(f"{place.root} was moved or replaced while a command ran.")
    assert settled.held
    assert all(held.is_in_place for held in settled.held)
    assert place.text("AGENTS.md") == "2\n"
    assert (await place.run("true")).notice == ""
    settled = await place.run("echo evil >> mise.toml")
    assert not next(each for each in settled.held if each.path.name == "mise.toml").is_in_place


@pytest.mark.parametrize("way", ["mv a x; mkdir -p a/b", "rm -r a; mkdir -p a/b"])
@pytest.mark.parametrize("is_root_around", [True, False])
async def test_a_working_folder_whose_parent_a_command_replaces_is_not_the_users(
    tmp_path: Path, is_root_around: bool, way: str
):
    for name in ("around/a/b", "own", "home"):
        (tmp_path / name).mkdir(parents=True)
    place = WatchedFolder(tmp_path / "around/a/b", tmp_path / "own", tmp_path / "home", False)
    if is_root_around:
        place.added = (tmp_path / "around",)
    else:
        place.unchecked = (f"{tmp_path / 'around'}/",)
    place.watch = place.watch_again()
    place.outside("git init -q; echo 1 > AGENTS.md")
    await place.run("true")
    script = "echo 0 > AGENTS.md; echo 0 > .envrc; git init -q; git config alias.x '!true'"
    settled = await place.run(f"cd ../..; {way}; cd a/b; {script}")
    assert f"{place.root} was moved or replaced while a command ran." in settled.notice
    ours = {held.path: held for held in settled.held if held.path.is_relative_to(place.root)}
    assert {path.name for path in ours} == {"AGENTS.md", ".envrc", "config"}
    assert not any(held.is_in_place for held in ours.values())
    assert place.text("AGENTS.md") == "1\n"
    assert not (place.root / ".envrc").exists()
    assert (await place.run("true")).notice == ""


async def test_what_a_command_did_in_a_folder_that_is_away_is_judged_when_it_is_back(
    place: WatchedFolder,
):
    place.outside("git init -q; echo 1 > AGENTS.md")
    await place.run("true")
    await place.watch.note()
    other = place.root.rename(place.root.with_name("other"))
    (other / "AGENTS.md").write_text("evil\n")
    (other / ".exrc").write_text("evil\n")
    settled = await place.watch.hold()
    assert settled.notice.startswith(f"{place.root} was moved")
    assert settled.held == ()
    other.rename(place.root)
    await place.watch.note()
    held = place.held(await place.watch.hold())
    assert set(held) == {"AGENTS.md", ".exrc"}
    assert place.text("AGENTS.md") == "1\n"


@needs_bwrap
async def test_a_second_name_of_a_covered_file_leads_nowhere(place: WatchedFolder):
    place.outside(
        "echo 1 > mise.toml; ln mise.toml other; mkdir .vscode; echo 1 > .vscode/a; ln .vscode/a b"
    )
    settled = await place.run("echo evil >> other; echo evil >> b; rm other b")
    assert set(place.held(settled)) == {"mise.toml", ".vscode/a"}
    assert place.text("mise.toml") == place.text(".vscode/a") == "1\n"


@needs_bwrap
async def test_a_job_keeps_its_way_into_a_folder_that_is_covered_later(place: WatchedFolder):
    await _begin_job(place)
    place.outside("mkdir .vscode; echo 1 > .vscode/a")
    (held,) = (await place.run("true")).held
    await place.watch.decide(held, True)
    assert (await place.run("true")).held == ()
    place.outside("echo evil > .vscode/a")  # as a job does that stands in the folder
    assert set(place.held(await place.run("true"))) == {".vscode/a"}


@needs_bwrap
async def test_what_another_program_covers_is_not_known(place: WatchedFolder):
    place.outside("echo 1 > mise.toml")
    await place.run("true")
    await place.watch_again().note()
    await place.watch.note()
    place.outside("echo 2 > mise.toml")  # as a command of the other program might
    assert set(place.held(await place.watch.hold())) == {"mise.toml"}


async def test_a_command_that_is_not_over_yet_keeps_the_steps_of_its_rebase(
    open_place: WatchedFolder,
):
    open_place.outside("git init -q; git commit -q --allow-empty -m one")
    await open_place.watch.note()
    open_place.inside("mkdir .git/rebase-merge; echo 'exec x' > .git/rebase-merge/git-rebase-todo")
    (held,) = (await open_place.watch.hold(is_over=False)).held
    assert held.is_in_place
    assert open_place.text(".git/rebase-merge/git-rebase-todo") == "exec x\n"
    await open_place.watch.end_job()


_TODO = ".git/rebase-merge/git-rebase-todo"


@pytest.mark.parametrize(
    ("command", "file", "left"),
    [
        (
            f"printf 'exec ./x\npick abc\n  x y\n# exec z\n' > {_TODO}",
            _TODO,
            "pick abc\n# exec z\n",
        ),
        (f"echo exec ./x >> {_TODO}", _TODO, "exec ./mine\npick abc one\n"),
        ("echo x/e > .git/rebase-merge/strategy", ".git/rebase-merge/strategy", ""),
        (
            "echo ' --ours; touch x' > .git/rebase-merge/strategy_opts",
            ".git/rebase-merge/strategy_opts",
            "",
        ),
        (
            "echo '-S; touch x' > .git/rebase-merge/gpg_sign_opt",
            ".git/rebase-merge/gpg_sign_opt",
            "",
        ),
        (
            "mkdir .git/sequencer; printf '[options]\n\tstrategy = x/e\n' > .git/sequencer/opts",
            ".git/sequencer/opts",
            "[options]\n",
        ),
        ("echo \"'a'; x\" > .git/BISECT_NAMES", ".git/BISECT_NAMES", ""),
        (
            f"(yes '# long' | head -c 1100000; echo exec x) > {_TODO}",
            _TODO,
            "exec ./mine\npick abc one\n",
        ),
    ],
)
async def test_what_a_command_leaves_in_unfinished_work_runs_nothing_later(
    open_place: WatchedFolder, command: str, file: str, left: str
):
    open_place.outside(
        "git init -q; mkdir .git/rebase-merge;"
        f"if [ {file} = {_TODO} ]; then printf 'exec ./mine\npick abc one\n' > {_TODO}; fi"
    )
    (held,) = (await open_place.run(command)).held
    assert held.who.startswith("git would run")
    assert str(held.path.relative_to(open_place.root)) == file
    assert open_place.text(file) == left
    assert (await open_place.run("true")).held == ()
    if held.files:
        await open_place.watch.decide(held, True)
        assert len(open_place.text(file)) > len(left)


async def test_options_of_a_rebase_as_git_writes_them_stay(open_place: WatchedFolder):
    open_place.outside("git init -q; git commit -q --allow-empty -m 1")
    begin = "GIT_SEQUENCE_EDITOR='echo break >' git rebase -q -i --root -S0xA1"
    command = f"{begin} -s ort -Xours -Xfind-renames=50% -Xsubtree=a/b; cat .git/rebase-merge/*opt*"
    settled = await open_place.run(command)
    assert all(text in open_place.printed for text in ("--find-renames=50%", "-S0xA1"))
    assert settled.held == ()


@pytest.mark.parametrize(
    ("link", "names"),
    [
        (".git/rebase-merge", ("git-rebase-todo",)),
        (".git/modules", ("m/HEAD", "m/config")),
        (".git/info", ("attributes",)),
    ],
)
async def test_a_link_in_a_git_folder_to_what_would_run_is_set_aside(
    open_place: WatchedFolder, link: str, names: tuple[str, ...]
):
    open_place.outside("git init -q; rm -rf .git/info")
    makes = "; ".join(
        f"mkdir -p $(dirname evil/{name}); printf '[core]\\n fsmonitor=x\\nexec x\\n* filter=x\\n'"
        f" > evil/{name}"
        for name in names
    )
    settled = await open_place.run(f"{makes}; ln -s ../evil {link}")
    assert set(open_place.held(settled)) == {link}
    assert not (open_place.root / link).is_symlink()
    assert (await open_place.run("true")).held == ()


@pytest.mark.parametrize("name", ["logs/HEAD", "COMMIT_EDITMSG", "FETCH_HEAD", "index", "logs"])
async def test_git_writes_through_no_link_that_a_command_leaves(
    open_place: WatchedFolder, name: str
):
    open_place.outside("git init -q; git commit -q --allow-empty -m one")
    mine = open_place.home / "mine"
    await open_place.run("true")
    settled = await open_place.run(f"rm -rf .git/{name}; ln -s {mine} .git/{name}")
    (who,) = open_place.held(settled).values()
    assert who.startswith("git would write elsewhere")
    assert ("nothing is staged" in who) == (name == "index")
    open_place.outside("git commit -q --allow-empty -m two; git fetch -q . HEAD; git switch -qc b")
    assert not mine.exists()
    assert (await open_place.run("true")).held == ()


async def test_git_follows_no_link_and_waits_for_no_pipe_anywhere_in_its_folders(
    open_place: WatchedFolder,
):
    open_place.outside(
        "git init -q sub; git init -q; git commit -q --allow-empty -m one; git worktree add -q w;"
        "mv sub/.git .git/modules; mkdir .git/x; mv .git/modules .git/x/m; mv .git/x .git/modules;"
        "ln -s HEAD .git/mine; git init -q --bare b.git"
    )
    links = {
        *(".git/worktrees/w/COMMIT_EDITMSG", ".git/modules/m/logs", ".git/lfs/a/b", ".git/HEAD.x"),
        *(".git/objects/info/commit-graph", "b.git/packed-refs"),
    }
    makes = "; ".join(f"mkdir -p {Path(each).parent}; ln -s /x {each}" for each in sorted(links))
    settled = await open_place.run(f"{makes}; mkfifo .git/MERGE_MSG")
    assert set(open_place.held(settled)) == {*links, ".git/MERGE_MSG"}
    assert (open_place.root / ".git/mine").is_symlink()


_PIPED = (
    *(".git/HEAD", ".git/ORIG_HEAD", ".git/FETCH_HEAD", ".git/packed-refs", ".git/description"),
    *(".git/shallow", ".git/COMMIT_EDITMSG", ".git/info/exclude", ".git/info/sparse-checkout"),
    *(".git/info/grafts", ".git/modules/m/info/exclude", ".git/worktrees/w/ORIG_HEAD"),
    *(".gitignore", ".gitattributes", ".gitmodules", ".mailmap"),
)
"""What git reads by itself and cannot make again."""


async def test_a_pipe_in_place_of_what_git_reads_is_set_aside_and_the_content_is_back(
    open_place: WatchedFolder,
):
    open_place.outside(
        "git init -q; git commit -q --allow-empty -m one; git worktree add -q w;"
        "git pack-refs --all; git init -q sub; mkdir .git/modules; mv sub/.git .git/modules/m;"
        "git rev-parse HEAD > .git/ORIG_HEAD;"
        "cp .git/ORIG_HEAD .git/worktrees/w; cp .git/ORIG_HEAD .git/shallow;"
        "cp .git/ORIG_HEAD .git/info/grafts; : > .git/FETCH_HEAD; echo mine > .gitignore;"
        "touch .gitattributes .gitmodules .mailmap .git/info/sparse-checkout"
    )
    before = {name: (open_place.root / name).read_bytes() for name in _PIPED}
    await open_place.run("true")
    makes = "; ".join(f"rm -f {name}; mkfifo {name}" for name in _PIPED)
    held = open_place.held(await open_place.run(f"{makes}; mkdir -p d node_modules/x; exit 0"))
    assert held == dict.fromkeys(_PIPED, "git would wait for it")
    assert {name: (open_place.root / name).read_bytes() for name in _PIPED} == before
    assert (await open_place.run("true")).held == ()


@pytest.mark.parametrize("folder", ["d", "node_modules/x/y", "new/deep"])
async def test_a_pipe_that_git_status_would_read_is_set_aside_in_any_folder(
    open_place: WatchedFolder, folder: str
):
    open_place.outside("git init -q; mkdir d; mkfifo .gitattributes")  # theirs stays
    await open_place.run("true")
    settled = await open_place.run(
        f"mkdir -p {folder}; cd {folder}; mkfifo .gitignore other; mkdir .mailmap"
    )
    assert open_place.held(settled) == {f"{folder}/.gitignore": "git would wait for it"}
    assert (open_place.root / ".gitattributes").is_fifo()
    open_place.outside(f"rm .gitattributes; timeout 5 git status -u; test -p {folder}/other")


async def test_other_parents_of_a_commit_by_a_command_are_held_back(open_place: WatchedFolder):
    commit = "git commit -q --allow-empty -m"
    open_place.outside(
        f"git init -q; {commit} one; {commit} two; {commit} three; git init -q b; cd b; {commit} x;"
        "git rev-parse HEAD > .git/info/grafts"
    )
    await open_place.run("true")
    theirs = (open_place.root / "b/.git/info/grafts").read_bytes()
    settled = await open_place.run(
        'echo "$(git rev-parse HEAD) $(git rev-parse HEAD~2)" > .git/info/grafts;'
        "git rev-parse HEAD > .git/shallow; cd b; git rev-parse HEAD~0^{tree} >> .git/info/grafts"
    )
    names = (".git/info/grafts", ".git/shallow", "b/.git/info/grafts")
    assert open_place.held(settled) == dict.fromkeys(names, "git would show another history")
    open_place.outside("test $(git rev-list --count HEAD) = 3")
    assert (open_place.root / "b/.git/info/grafts").read_bytes() == theirs


async def test_a_shallow_clone_by_a_command_stays_and_is_fetched_further(
    open_place: WatchedFolder,
):
    commit = "git commit -q --allow-empty -m"
    open_place.outside(f"git init -q; {commit} one; {commit} two; {commit} three")
    await open_place.run("true")
    clone = "git -c protocol.file.allow=always clone -q --depth 1 file://$PWD c"
    assert (await open_place.run(clone)).held == ()
    assert (await open_place.run("cd c; git fetch -q --depth 2")).held == ()
    open_place.outside("cd c; test $(git rev-list --count HEAD) = 2; git fetch -q --unshallow")
    assert (await open_place.run("true")).held == ()


async def test_links_of_a_work_tree_in_a_bare_repository_stay(open_place: WatchedFolder):
    open_place.outside(
        "git init -q --bare .; git worktree add -q --orphan -b main main 2> /dev/null ||"
        "git worktree add -q --detach main $(git commit-tree -m x $(git mktree < /dev/null))"
    )
    assert (await open_place.run("ln -s x main/y")).held == ()


async def test_the_rest_of_a_rebase_behind_a_link_runs_nothing(open_place: WatchedFolder):
    open_place.outside("git init -q; mkdir .git/rebase-merge; echo pick abc one > " + _TODO)
    settled = await open_place.run("mv .git/rebase-merge rm; ln -s ../rm .git/rebase-merge")
    assert set(open_place.held(settled)) == {".git/rebase-merge"}
    await open_place.run("echo exec ./x > rm/git-rebase-todo")
    assert open_place.text(_TODO) == ""


async def test_what_a_question_cannot_show_is_named(open_place: WatchedFolder):
    await _begin_job(open_place)
    open_place.outside("mkdir .vscode; echo 1 > .vscode/a; mkfifo .vscode/b")
    (held,) = (await open_place.run("true")).held
    assert held.diff.endswith("Not shown: b\n")


async def test_a_rebase_that_a_command_leaves_half_done_can_be_continued(
    open_place: WatchedFolder,
):
    commit = "git commit -qm"
    open_place.outside(
        f"git init -q -b main; echo 1 > a; git add a; {commit} 1; git switch -qc b; echo 2 > a;"
        f"{commit} 2 a; echo x > c; git add c; {commit} 3; git switch -q main; echo 3 > a;"
        f"{commit} 4 a; git switch -q b"
    )
    settled = await open_place.run("git rebase -q main -x 'touch ran'", code=None)
    assert {held.path.name for held in settled.held} == {"git-rebase-todo"}
    open_place.outside("echo 4 > a; git add a; GIT_EDITOR=true git rebase --continue")
    assert not (open_place.root / "ran").exists()
    open_place.outside("test $(git log --format=%s | wc -l) = 4")


async def test_unfinished_work_that_runs_nothing_stays(open_place: WatchedFolder):
    commit = "git commit -qm"
    open_place.outside(
        f"git init -q -b main; echo 1 > a; git add a; {commit} 1; git switch -qc b; echo 2 > a;"
        f"{commit} 2 a; echo 5 > a; {commit} 3 a; git switch -q main; echo 3 > a; {commit} 4 a"
    )
    for command in (
        "git cherry-pick --strategy=ort -Xpatience b~1 b",
        "git cherry-pick --abort; git bisect start -- a 'b c'",
        "git bisect reset; git switch -q b; git rebase -q -X ours --strategy ort -i main",
        "git rebase --abort; git rebase -q --apply main",
        "git rebase --abort; git merge -q main",
    ):
        settled = await open_place.run(command, code=None)
        assert settled.held == (), open_place.printed


_KILLED = """
import asyncio, os, sys
from pathlib import Path
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.features.sandbox.watch import ObeyedWatch

async def main():
    root, own = Path(sys.argv[1]), Path(sys.argv[2])
    watch = ObeyedWatch([root], own, keeper=ProcessKeeper(), environ=dict(os.environ))
    await watch.note()
    (root / ".envrc").write_text("1")
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


@pytest.mark.thorough
async def test_a_program_that_is_killed_leaves_its_mark(open_place: WatchedFolder):
    words = [sys.executable, "-c", _KILLED, str(open_place.root), str(open_place.own)]
    assert subprocess.run(words).returncode == -9
    assert [file.path.name for file in await open_place.watch.recover()] == [".envrc"]
    assert await open_place.watch_again().recover() == ()


async def test_a_program_that_was_stopped_at_its_start_is_named(
    open_place: WatchedFolder, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("agent_tui.features.sandbox.running_commands._TURN_WITHIN_S", 0.05)
    await open_place.run("true")
    turn = open_place.own / "turn"
    assert turn.read_text() == str(os.getpid())
    with turn.open("w") as file:
        file.write("4242")
        file.flush()
        lock_descriptor(file.fileno())
        with pytest.raises(ToolError, match=r"another agent-tui \(pid 4242\) is starting a"):
            await open_place.watch.note()
    assert (await open_place.run("true")).held == ()


async def test_after_a_kill_the_next_program_compares(open_place: WatchedFolder):
    open_place.outside("echo one > AGENTS.md")
    await open_place.watch.note()
    open_place.inside("echo 1 > .envrc; echo evil > AGENTS.md")
    # As a killed program leaves it: busy, and its lock is held by nobody.
    (state,) = (open_place.own / "running").glob("*.state")
    state.rename(state.with_name("killed.state"))

    open_place.watch = open_place.watch_again()
    held = await open_place.watch.recover()
    assert {file.path.name for file in held} == {".envrc", "AGENTS.md"}
    assert open_place.text("AGENTS.md") == "one\n"
    assert set(open_place.held(await open_place.run("true"))) == {".envrc", "AGENTS.md"}
    assert await open_place.watch_again().recover() == ()


@needs_bwrap
@pytest.mark.parametrize("has_mounts", [True, False])
@pytest.mark.parametrize(
    "command",
    [
        "git checkout -q other",
        "git switch -q other",
        "git merge -q other",
        "git cherry-pick other",
        "git reset -q --hard other",
    ],
)
async def test_what_git_brings_of_the_person_s_commits_comes_right(
    tmp_path: Path, command: str, has_mounts: bool
):
    place = _place(tmp_path, has_mounts=has_mounts)
    place.outside(_TWO_BRANCHES)
    settled = await place.run(command)
    assert settled.held == ()
    assert place.text("AGENTS.md") == place.text("CLAUDE.md") == "two\n", place.printed
    assert place.text("mise.toml") == "2\n"
    assert place.text(".vscode/settings.json") == place.text(".vscode/tasks.json") == "2\n"
    place.outside('git diff --exit-code HEAD; test -z "$(git status --porcelain)"')

    settled = await place.run("git checkout -q other~1 && git checkout -q other")
    assert settled.held == ()


@needs_bwrap
async def test_what_a_command_commits_itself_is_held(place: WatchedFolder):
    place.outside(_TWO_BRANCHES)
    settled = await place.run(
        "echo evil > AGENTS.md; echo evil > .vscode/tasks.json;"
        "blob=$(echo evil | git hash-object -w --stdin);"
        "git update-index --cacheinfo 100644,$blob,mise.toml;"
        "git add AGENTS.md .vscode; git commit -qm evil; git update-ref refs/remotes/origin/x HEAD"
    )
    assert set(place.held(settled)) == {"AGENTS.md", ".vscode/tasks.json"}
    await place.refuse(settled)
    assert place.text("AGENTS.md") == "one\n"
    assert place.text("mise.toml") == "1\n"
    assert not (place.root / ".vscode" / "tasks.json").exists()
    # Nor does a later command get it through.
    later = await place.run("git checkout -qf HEAD", code=None)
    assert set(place.held(later)) == {"AGENTS.md", ".vscode/tasks.json", "mise.toml"}
    await place.refuse(later)
    assert place.text("mise.toml") == "1\n"


@needs_bwrap
async def test_the_person_s_own_pull_makes_versions_known(place: WatchedFolder):
    place.outside(_TWO_BRANCHES)
    await place.run("true")
    place.outside(
        "git switch -q other; echo three > AGENTS.md; git commit -qam three; git switch -q main"
    )
    assert (await place.run("git merge -q other", code=None)).held == ()
    assert place.text("AGENTS.md") == "three\n"


@needs_bwrap
async def test_a_stash_that_cannot_remove_a_followed_file_is_popped_again(place: WatchedFolder):
    place.outside(
        "git init -q; git commit -q --allow-empty -m one;"
        "mkdir .vscode; echo mine > .vscode/a.json; echo mine > mise.toml; echo mine > new"
    )
    settled = await place.run("git stash -u", code=1)
    assert "failed to remove mise.toml" in place.printed
    assert "failed to remove .vscode" in place.printed
    assert settled.held == ()
    assert (await place.run("git stash pop", code=1)).held == ()
    files = (".vscode/a.json", "mise.toml", "new")
    assert [place.text(name) for name in files] == ["mine\n"] * len(files)


@needs_bwrap
async def test_rebase_and_stash_work_inside(place: WatchedFolder):
    place.outside(_TWO_BRANCHES)
    place.outside("echo main > m.py; git add m.py; git commit -qm m; rm -f x")
    settled = await place.run("git rebase -q other")
    assert settled.held == (), place.printed
    assert place.text("AGENTS.md") == "two\n"
    assert place.text("mise.toml") == "2\n"
    place.outside("echo mine >> AGENTS.md; echo 3 > mise.toml")
    settled = await place.run("git stash -q && git stash pop -q")
    assert settled.held == ()
    assert place.text("AGENTS.md") == "two\nmine\n"
    assert place.text("mise.toml") == "3\n"
    # Not in the second of the command's stash, from which it could have been made.
    place.outside("GIT_AUTHOR_DATE=2030-01-01T00:00:00 git stash -q")
    await place.run("true")
    # The person stashed it: it was in place before.
    assert (await place.run("git stash pop -q")).held == ()


@pytest.mark.parametrize("users", ["rm -r .vscode AGENTS.md", "echo 2 | tee .vscode/a AGENTS.md"])
async def test_what_the_person_deleted_or_changed_is_not_for_commands_to_bring_back(
    open_place: WatchedFolder, users: str
):
    open_place.outside("mkdir .vscode; echo 1 > .vscode/a; echo 1 > AGENTS.md")
    await open_place.run("rm .vscode/a")
    await open_place.run("true")
    assert (await open_place.run("echo 1 > .vscode/a")).held == ()  # commands may take that back
    open_place.outside(users)
    await open_place.run("true")
    settled = await open_place.run("mkdir -p .vscode; echo 1 | tee .vscode/a AGENTS.md")
    assert {Path(each).parts[0] for each in open_place.held(settled)} == {".vscode", "AGENTS.md"}


@needs_bwrap
async def test_an_editor_outside_sees_nothing_of_a_copy_that_commands_change(place: WatchedFolder):
    place.outside("mkdir .vscode; echo 1 > .vscode/settings.json")
    await place.watch.note()
    place.inside("echo evil > .vscode/settings.json; cat .vscode/settings.json")
    assert place.printed == "evil\n"
    assert place.text(".vscode/settings.json") == "1\n"
    assert set(place.held(await place.watch.hold())) == {".vscode/settings.json"}
    await place.run("cat .vscode/settings.json")
    assert place.printed == "1\n"


@needs_bwrap
async def test_what_the_person_does_to_a_folder_meanwhile_stays(place: WatchedFolder):
    place.outside("mkdir .vscode; echo 1 > .vscode/settings.json; echo 1 > .vscode/x")
    await place.watch.note()
    place.outside("echo 2 > .vscode/settings.json; echo 2 > .vscode/new; echo 2 > .vscode/x")
    place.inside("cat .vscode/settings.json; echo 3 > .vscode/x")
    assert set(place.held(await place.watch.hold())) == {".vscode/x"}
    assert place.printed == "1\n"
    assert [place.text(f".vscode/{name}") for name in ("settings.json", "new", "x")] == ["2\n"] * 3
    await place.run("cat .vscode/new")
    assert place.printed == "2\n"


@needs_bwrap
async def test_what_is_mounted_cannot_be_changed_inside(place: WatchedFolder):
    place.outside("git init -q .; echo 1 > mise.toml; mkdir -p lib; git init -q lib/x")
    await place.run(
        "echo x >> mise.toml; echo x > .git/hooks/post-checkout; echo x >> .git/config;"
        "echo x >> lib/x/.git/config; mv .git gone; mv lib gone; true"
    )
    assert place.printed.count("Read-only") + place.printed.count("busy") == 6, place.printed
    assert place.text("mise.toml") == "1\n"


@pytest.mark.parametrize(
    "command",
    [
        "git init -q",
        "git init -q sub && cd sub && echo x > a && git add a && git commit -qm a",
        "git init -q a && (cd a && git commit -q --allow-empty -m x) && git clone -q a b",
        "git init -q a && (cd a && git commit -q --allow-empty -m x && git worktree add -q w)"
        " && cd a && git worktree remove w",
        "git init -q --bare x.git",
        "git init -q . && git commit -q --allow-empty -m x && git init -q m && cd m &&"
        " git commit -q --allow-empty -m x && cd .. && git -c protocol.file.allow=always"
        " submodule --quiet add ./m n && git worktree add -q w",
    ],
)
async def test_new_repositories_stay(open_place: WatchedFolder, command: str):
    assert open_place.held(await open_place.run(command)) == {}
    open_place.outside(
        "for git in $(find . -name HEAD -not -path '*/logs/*' -not -path '*/refs/*'); do"
        " git -C $(dirname $git) rev-parse --git-dir; done"
    )


@pytest.mark.parametrize(
    ("command", "held"),
    [
        ("git init -q s; echo x > s/.git/hooks/post-checkout", {"s/.git/hooks/post-checkout"}),
        ("git init -q s; git -C s config core.fsmonitor ./x", {"s/.git/config"}),
        ("git init -q s; git -C s config alias.x '!sh'", {"s/.git/config"}),
        ("git init -q s; mv s/.git evil; echo 'gitdir: /usr' > s/.git", {"s/.git"}),
        (
            "git init -q e; git -C e config core.pager x; mkdir s; echo gitdir: ../e/.git > s/.git",
            {"e/.git/config"},
        ),
        ("git init -q s; mv s/.git o; ln -s ../o s/.git", {"s/.git"}),
        ("git init -q s; echo ../../e > s/.git/commondir", {"s/.git/commondir"}),
        (
            "git init -q s; mkdir -p s/.git/info; echo '* filter=x' > s/.git/info/attributes",
            {"s/.git/info/attributes"},
        ),
        ("git init -q --bare x; git -C x config core.sshCommand x", {"x/config"}),
        ("mkdir -p .git/hooks; echo x > .git/hooks/pre-commit", {".git/hooks/pre-commit"}),
        *(
            (
                f"git init -q s; printf '#%{size}s\\n[core]\\nfsmonitor = ./x\\n' >> s/.git/config",
                {"s/.git/config"},
            )
            for size in (70_000, 1_100_000)
        ),
    ],
)
async def test_what_would_run_in_a_new_repository_is_held(
    open_place: WatchedFolder, command: str, held: set[str]
):
    assert set(open_place.held(await open_place.run(command))) == held
    assert open_place.held(await open_place.run("true")) == {}


@each_row(
    ("file", "change"),
    [
        (".git/hooks/pre-commit", "cp large new; mv new {}"),
        ("mise.toml", "printf y | dd of={} conv=notrunc"),
        (".git/hooks/pre-commit", "chmod 0 {}"),
    ],
)
async def test_a_file_too_large_to_compare_is_the_same_only_while_nothing_changes_it(
    tmp_path_factory: pytest.TempPathFactory, file: str, change: str
):
    place = _place(tmp_path_factory.mktemp("place"), has_mounts=False)
    place.outside(f"git init -q; mkdir -p .git/hooks; truncate -s 21M large; cp large {file}")
    assert place.held(await place.run("true")) == {}
    assert set(place.held(await place.run(change.format(file)))) == {file}


@pytest.mark.parametrize("split", ["false", "true"])
async def test_a_repository_that_an_index_names_is_found_wherever_it_lies(
    open_place: WatchedFolder, split: str
):
    open_place.outside(f"git init -q; git config core.splitIndex {split}; echo > a; git add a")
    await open_place.run("true")
    add = "git update-index --add --cacheinfo 160000,$(git -C s rev-parse HEAD),s"
    commit = "git commit -q --allow-empty -m x"
    settled = await open_place.run(
        "mkdir -p node_modules/a; cd node_modules/a; git init -q b; cd b; git init -q s;"
        f"(cd s; {commit}; git config core.fsmonitor ./x); {add}; {commit}; cd ../../..;"
        f"{add.replace('-C s', '-C node_modules/a/b').replace(',s', ',node_modules/a/b')}"
    )
    assert set(open_place.held(settled)) == {"node_modules/a/b/s/.git/config"}
    assert open_place.held(await open_place.run("true")) == {}


@pytest.mark.parametrize(
    ("command", "config"),
    [
        ("mkdir modules; cd modules; git init -q n; cd n", "modules/n/.git/config"),
        (
            "git init -q; mkdir -p .git/modules s; cd s;"
            "git init -q --separate-git-dir ../.git/modules/s",
            ".git/modules/s/config",
        ),
    ],
)
async def test_no_repository_of_a_command_writes_to_a_folder_elsewhere(
    open_place: WatchedFolder, command: str, config: str
):
    elsewhere = open_place.home / "elsewhere"
    elsewhere.mkdir()
    for value in (elsewhere, f'"{elsewhere}"', f"{elsewhere}#/../{'../' * 9}{open_place.root}/s"):
        settled = await open_place.run(
            f"{command}; printf '[core]\n\tworktree = %s\n' '{value}'"
            " >> $(git rev-parse --git-dir)/config"
        )
        assert set(open_place.held(settled)) == {config}
        assert "worktree" not in open_place.text(config)
        open_place.outside("rm -rf s modules .git")
        await open_place.run("true")


@needs_bwrap
@pytest.mark.parametrize("has_mounts", [True, False])
async def test_the_hooks_folder_that_the_persons_settings_name_is_theirs(
    tmp_path: Path, has_mounts: bool
):
    place = _place(tmp_path, has_mounts=has_mounts)
    place.outside(
        "git config --global core.hooksPath .hk; git init -q; git init -q mine; mkdir mine/.hk;"
        "echo mine > mine/.hk/pre-push; echo x > file"
    )
    makes = "git init -q new; mkdir .hk new/.hk; echo x > .hk/pre-commit; echo x > new/.hk/pre-push"
    settled = await place.run(f"{makes}; echo evil > mine/.hk/pre-push; rm file", code=None)
    held = {".hk", "new/.hk", "mine/.hk/pre-push"}
    assert place.held(settled) == dict.fromkeys(held, "git obeys it")
    assert place.text("mine/.hk/pre-push") == "mine\n"
    assert (await place.run("true")).held == ()


@each_row(
    ("settings", "folder"),
    [
        ("git config include.path ../more; git config -f more core.hooksPath .hk", ".hk"),
        (
            "git config include.path ../more; git config -f more include.path ../proj/mine/in;"
            "git config -f mine/in core.hooksPath hk",
            "hk",
        ),
        (
            "printf '[include] path = \"../more\" # mine\\n' >> .git/config;"
            "git config -f more core.hooksPath .hk",
            ".hk",
        ),
        (
            "git config extensions.worktreeConfig true; git config --worktree core.hooksPath .hk",
            ".hk",
        ),
        ("git config core.hooksPath $PWD/mine/hk", "mine/hk"),
        ("git config core.hooksPath .git/other", ".git/other"),
        ("git config --global core.hooksPath $PWD/mine/hk", "mine/hk"),
        ("git config --global core.hooksPath '~/link'; ln -s ../proj/mine ../home/link", "mine"),
        ("git config --global core.hooksPath '~/../proj/mine/hk'", "mine/hk"),
    ],
)
async def test_hooks_are_held_wherever_the_persons_settings_lead(
    tmp_path_factory: pytest.TempPathFactory, settings: str, folder: str
):
    place = _place(tmp_path_factory.mktemp("hooks"), has_mounts=False)
    place.outside(f"git init -q; mkdir mine; {settings}; mkdir -p {folder}; echo mine > {folder}/a")
    settled = await place.run(
        f"echo evil > {folder}/a; echo evil > {folder}/b; mkdir {folder}/c; echo x > mine/x.txt"
    )
    others = {"mine/x.txt"} if folder == "mine" else set[str]()
    held = {f"{folder}/a", f"{folder}/b"} | others
    assert set(place.held(settled)) == held
    assert place.text(f"{folder}/a") == "mine\n"
    assert (await place.run("true")).held == ()


@each_row(
    ("settings", "program", "is_held"),
    [
        ("git config filter.nb.clean 'python3 tools/clean.py %f'", "tools/clean.py", True),
        ("git config --global filter.nb.process tools/clean.py", "tools/clean.py", True),
        ("git config filter.nb.clean 'node tools/clean'", "tools/clean.js", True),
        ("git config filter.nb.clean 'python3 tools/clean'", "tools/clean.js", False),
        ("git config core.fsmonitor 'node -r./tools/x main.js'", "tools/x/index.js", True),
        ("git config core.sshCommand 'ssh -F ./config'", "config", True),
        ("git config alias.x '!PATH=./tools make'", "tools/make", True),
        ("""git config core.pager "LESSOPEN='|./tools/x %s' less" """, "tools/x", True),
        ("git config --global core.fsmonitor $PWD/tools/clean.py", "tools/clean.py", True),
        (
            "git config include.path ../more; git config -f more gpg.program tools/clean.py",
            "tools/clean.py",
            True,
        ),
        (
            """git config --global alias.x '!sh -c "python3 tools/clean.py $1" -'""",
            "tools/clean.py",
            True,
        ),
        ("git config --global filter.nb.clean 'python3 -m nbstripout'", "nbstripout.py", True),
        ("git config filter.nb.clean '\"/usr/bin/python3\" -mtools.nb'", "tools/nb.py", True),
        ("git config filter.nb.clean 'python3 -m tools.nb'", "tools/nb/__main__.py", True),
        ("git config --global filter.nb.clean 'python3 -m nb'", "nb.pyc", True),
        ("git config --global filter.nb.clean 'python3 -m nb'", "nb.so", True),
        ("git config --global filter.nb.clean 'python3 -m nb'", "nb.abi3.so", True),
        ("git config filter.nb.clean 'python3 -m nb'", "nb.cpython-39-x86_64-linux-gnu.so", True),
        ("git config filter.nb.clean 'python3 -m nb'", "__pycache__/nb.cpython-314.pyc", True),
        ("git config filter.nb.clean 'python3 -m nb'", "__pycache__/nb.pypy310.opt-1.pyc", True),
        ("git config filter.nb.clean 'python3 -m nb'", "nb/__pycache__/__init__.x.pyc", True),
        ("git config filter.nb.clean 'python3 -m nb'", "nb/__main__.pyc", True),
        ("git config filter.nb.clean 'python3 -m tools.nb'", "tools/__init__.pyc", True),
        ("git config filter.nb.clean 'python3 -m nb'", "__pycache__/nbx.cpython-311.pyc", False),
        ("git config filter.nb.clean 'python3 nb.py'", "__pycache__/nb.cpython-311.pyc", False),
        ("git config filter.nb.clean 'PYTHONPATH=tools python3 -m nb'", "tools/nb.py", True),
        (
            """git config filter.nb.clean 'python3 "$SRC/proj/tools/clean.py"'""",
            "tools/clean.py",
            True,
        ),
        ("git config filter.nb.clean '${SRC:-/src}/other/clean.py'", "clean.py", False),
        (
            """git config filter.nb.clean '"$(git rev-parse --show-toplevel)/tools/c"'""",
            "tools/c",
            True,
        ),
        ("git config filter.nb.clean '`git rev-parse --show-toplevel`/tools/c'", "tools/c", True),
        ("git config filter.nb.clean 'cd tools && python3 c.py'", "tools/c.py", True),
        ("git config filter.nb.clean 'python3 c4'", "c4", True),
        ("git config alias.x '!python3 tools/pk'", "tools/pk/__main__.py", True),
        ("""git config alias.x '!sh "tools/x y.sh"'""", "tools/x y.sh", True),
        ("""git config alias.x "!sh 'tools/c" """, "tools/c", True),
        ("git config --global alias.x 'log tools/clean.py'", "tools/clean.py", False),
        ("git config user.name tools/clean.py", "tools/clean.py", False),
    ],
)
@pytest.mark.parametrize("is_new", [False, True])
async def test_programs_of_the_project_that_the_persons_settings_have_git_run_are_held(
    tmp_path_factory: pytest.TempPathFactory,
    settings: str,
    program: str,
    is_held: bool,
    is_new: bool,
):
    place = _place(tmp_path_factory.mktemp("programs"), has_mounts=False)
    path, other = place.root / program, place.root / "a.py"
    place.outside(f"git init -q; mkdir tools '{path.parent}' -p; {settings}; echo > a.py")
    if not is_new:
        path.write_text("mine\n")
    assert (is_followed(path, place.home), is_followed(other, place.home)) == (is_held, False)
    settled = await place.run(f"echo evil | tee a.py > '{program}'")
    assert place.held(settled) == ({program: "git obeys it"} if is_held else {})
    assert path.exists() == (not (is_new and is_held))
    if not is_new:
        assert path.read_text() == ("mine\n" if is_held else "evil\n")


async def test_what_nobody_decided_on_is_asked_about_in_the_next_session(
    open_place: WatchedFolder,
):
    place, store = open_place, open_place.own / "held"
    settled = await place.run("mkdir a; echo x > a/.mcp.json; echo y > .pdbrc; echo z > .envrc")
    refused, *others = sorted(settled.held, key=lambda held: held.path)
    await place.watch.decide(refused, False)
    other = place.watch_again()
    await other.note()
    assert (await other.hold()).held == ()  # its program still asks
    assert describe_waiting(store) == ""
    await place.watch.close()
    assert all(str(held.aside) in describe_waiting(store) for held in others)
    assert str(refused.aside) not in describe_waiting(store)
    place.watch = place.watch_again()
    again = (await place.run("true")).held
    assert {(held.path, held.who, held.diff) for held in again} == {
        (held.path, held.who, held.diff) for held in others
    }
    for held in again:
        await place.watch.decide(held, held.path.name == ".mcp.json")
    assert place.text("a/.mcp.json") == "x\n"
    await place.watch.close()
    assert describe_waiting(store) == ""
    place.watch = place.watch_again()
    assert (await place.run("true")).held == ()


async def test_a_file_of_versions_is_held_only_if_it_names_a_folder(place: WatchedFolder):
    place.outside("git init -q; echo 3.11 > .python-version; echo 20 > .nvmrc")
    settled = await place.run("echo 3.12 > .python-version; rm .nvmrc; echo 1.2 > .go-version")
    assert place.held(settled) == {}
    settled = await place.run("echo path:x | tee .python-version .nvmrc; ln -s a .ruby-version")
    held = {".python-version", ".nvmrc", ".ruby-version"}
    assert place.held(settled) == dict.fromkeys(held, "mise and asdf obeys it")
    assert place.text(".python-version") == "3.12\n"
    assert (place.text(".go-version"), (place.root / ".nvmrc").exists()) == ("1.2\n", False)


async def test_folders_named_like_other_words_of_a_command_do_not_hide_its_program(tmp_path: Path):
    place = _place(tmp_path, has_mounts=False)
    place.outside(
        "git init -q; mkdir tools; echo mine > tools/t.sh; git config alias.x "
        """'!f() { cd "$(git rev-parse --show-toplevel)/tools" && ./t.sh; }; f'"""
    )
    settled = await place.run("mkdir f '()' '{' cd '$' '('; echo evil > tools/t.sh")
    assert place.held(settled) == {"tools/t.sh": "git obeys it"}


@each_row(
    "named",
    ["$PWD/tools/x", "$PWD/tools/x --flag", "!~/../proj/tools/x", r"'\$HOME/../proj/tools/x'"],
)
async def test_programs_that_git_runs_anywhere_are_held_in_a_folder_that_is_no_repository(
    tmp_path_factory: pytest.TempPathFactory, named: str
):
    place = _place(tmp_path_factory.mktemp("programs"), has_mounts=False)
    place.outside(f'mkdir tools; echo > tools/x; git config --global core.fsmonitor "{named}"')
    assert is_followed(place.root / "tools/x", place.home)
    settled = await place.run("echo evil | tee tools/x > a.py")
    assert place.held(settled) == {"tools/x": "git obeys it"}


_HK = "mkdir -p hk conf; echo mine > hk/pre-push; echo {} > conf/a"
_EVIL_HOOKS = "echo evil > hk/pre-commit; echo evil > hk/pre-push"


@each_row(
    ("settings", "command", "held", "restored"),
    [
        (
            f"{_HK}; git config core.hooksPath hk",
            f"git config --unset core.hooksPath; {_EVIL_HOOKS}",
            {".git/config", "hk/pre-commit", "hk/pre-push"},
            "hk/pre-push",
        ),
        (
            f"{_HK}; git config core.hooksPath hk",
            f"mv .git/config .git/c2; {_EVIL_HOOKS}",
            {"hk/pre-commit", "hk/pre-push"},
            "hk/pre-push",
        ),
        (
            f"{_HK}; git config -f team core.hooksPath hk; git config include.path ../team",
            f": > team; {_EVIL_HOOKS}",
            {"team", "hk/pre-commit", "hk/pre-push"},
            "hk/pre-push",
        ),
        (
            f"{_HK}; git config -f team core.hooksPath hk; git config include.path ../team",
            f"git config --unset include.path; : > team; {_EVIL_HOOKS}",
            {".git/config", "team", "hk/pre-commit", "hk/pre-push"},
            "hk/pre-push",
        ),
        (
            f"{_HK}; git config --global core.hooksPath hk",
            f"echo '[broken' >> .git/config; {_EVIL_HOOKS}",
            {".git/config", "hk/pre-commit", "hk/pre-push"},
            "hk/pre-push",
        ),
        (
            f"{_HK}; ln -s ../../hk/pre-push .git/hooks/pre-push",
            "rm .git/hooks/pre-push; echo evil >> hk/pre-push",
            {"hk/pre-push"},
            "hk/pre-push",
        ),
        (
            "mkdir docs; echo mine > docs/ai.md; ln -s docs/ai.md CLAUDE.md",
            "rm CLAUDE.md; echo x > CLAUDE.md; echo evil > docs/ai.md",
            {"CLAUDE.md", "docs/ai.md"},
            "docs/ai.md",
        ),
        (
            "mkdir docs; echo mine > docs/other.md; ln -s docs/ai.md CLAUDE.md",
            "rm CLAUDE.md; echo x > CLAUDE.md; ln -s docs/ai.md GEMINI.md; echo evil > docs/ai.md",
            {"CLAUDE.md", "GEMINI.md", "docs/ai.md"},
            "docs/other.md",
        ),
        (
            "mkdir -p ai/claude; echo mine > ai/claude/settings.json; ln -s ai/claude .claude",
            "rm .claude; echo x > .claude; echo evil > ai/claude/settings.json",
            {".claude", "ai/claude/settings.json"},
            "ai/claude/settings.json",
        ),
        (
            "mkdir -p ai/claude; echo mine > ai/claude/settings.json; ln -s ai/claude .claude",
            "rm .claude; mkdir .claude; echo x > .claude/x; echo evil > ai/claude/settings.json",
            {".claude", "ai/claude/settings.json"},
            ".claude/settings.json",
        ),
    ],
)
async def test_what_a_restored_file_leads_to_is_judged_as_well(
    tmp_path_factory: pytest.TempPathFactory,
    settings: str,
    command: str,
    held: set[str],
    restored: str,
):
    place = _place(tmp_path_factory.mktemp("leads"), has_mounts=False)
    place.outside(f"git init -q; {settings}")
    settled = await place.run(command)
    assert sorted(place.held(settled)) == sorted(held)
    assert len(settled.held) == len(held)
    assert place.text(restored) == "mine\n"
    assert not (place.root / "hk" / "pre-commit").exists()
    assert (await place.run("true")).held == ()


async def test_what_leads_to_a_hook_of_a_job_is_refused_and_the_hook_is_asked_about(
    open_place: WatchedFolder,
):
    open_place.outside(f"git init -q; {_HK}; git config core.hooksPath hk")
    await open_place.watch.note()
    await open_place.watch.hold(is_over=False)
    open_place.inside(f"git config --unset core.hooksPath; {_EVIL_HOOKS}")
    settled = await open_place.run("true")
    assert set(open_place.held(settled)) == {".git/config"}
    await open_place.watch.end_job()
    await open_place.refuse(settled)
    settled = await open_place.run("true")
    assert set(open_place.held(settled)) == {"hk/pre-commit", "hk/pre-push"}
    await open_place.refuse(settled)
    assert open_place.text("hk/pre-commit") == ""
    assert open_place.text("hk/pre-push") == "mine\n"
    assert (await open_place.run("true")).held == ()


async def test_what_git_finds_in_a_new_repository_with_odd_settings_is_judged(
    open_place: WatchedFolder,
):
    open_place.outside("git config --global core.hooksPath hk")
    settled = await open_place.run(
        "git init -q r; mkdir r/hk; echo evil > r/hk/pre-commit; echo '[broken' >> r/.git/config"
    )
    assert "r/hk" in open_place.held(settled)
    assert (await open_place.run("true")).held == ()


async def test_the_users_hooks_folder_stays_known_while_git_cannot_read_the_settings(
    open_place: WatchedFolder,
):
    open_place.outside(
        "git config --global core.hooksPath other; git config --global includeIf.gitdir:r/.path "
        "'~/inc'; git config -f ~/inc core.hooksPath hk; git init -q r; mkdir r/hk;"
        "echo mine > r/hk/pre-push"
    )
    await open_place.watch.note()
    await open_place.watch.hold(is_over=False)
    open_place.inside("echo evil > r/hk/pre-commit; echo '[broken' >> r/.git/config")
    await open_place.watch.end_job()
    settled = await open_place.run("true")
    assert set(open_place.held(settled)) == {"r/.git/config", "r/hk/pre-commit"}
    assert all(held.is_in_place for held in settled.held)


@needs_bwrap
async def test_what_a_link_leads_to_that_git_brings_is_judged(place: WatchedFolder):
    place.outside(
        "git init -q -b main; mkdir .vscode conf; echo 1 > .vscode/a; echo mine > conf/b;"
        "git add .; git commit -qm a; git switch -qc other; ln -s ../conf/b .vscode/b; git add .;"
        "git commit -qm b; git switch -q main"
    )
    settled = await place.run("git switch -q other; echo evil > conf/b")
    assert [str(path) for path in settled.brought] == [str(place.root / ".vscode" / "b")]
    assert set(place.held(settled)) == {"conf/b"}


async def test_a_long_chain_of_restored_files_is_judged_to_its_end(open_place: WatchedFolder):
    """Each settings file leads to the next one, and all of them are emptied."""
    names = [f"s{number}" for number in range(8)]
    steps = [f"git config -f {name} include.path {after}" for name, after in pairwise(names)]
    open_place.outside(
        f"git init -q; mkdir hk; {'; '.join(steps)}; git config -f s7 core.hooksPath hk;"
        "git config include.path ../s0; echo mine > hk/pre-push"
    )
    settled = await open_place.run(
        f"for f in {' '.join(names)}; do : > $f; done; echo evil > hk/pre-push"
    )
    assert sorted(file.path.name for file in settled.held) == sorted((*names, "pre-push"))
    assert open_place.text("hk/pre-push") == "mine\n"


_CONDITION = "git config --global 'includeIf.gitdir:{root}/r/.path'"


@each_row(
    ("settings", "command", "held"),
    [
        (
            f"{_CONDITION} '~/work'; git config -f ~/work core.hooksPath hk",
            "echo evil > r/hk/pre-commit; echo x > s/hk/a",
            {"r/hk/pre-commit"},
        ),
        (
            f"{_CONDITION} '~/work'; git config -f ~/work core.hooksPath hk",
            "git init -q r/new; mkdir -p r/new/hk n; echo evil > r/new/hk/x; echo x > n/a",
            {"r/new/hk"},
        ),
        (
            f"{_CONDITION} $PWD/more; git config -f more user.name Ada",
            "git config -f more core.fsmonitor ./x; git init -q r/new",
            {"more"},
        ),
        (
            "git config --global include.path $PWD/more; echo > more",
            "git config -f more core.fsmonitor ./x",
            {"more"},
        ),
        (
            "git config --global include.path $PWD/missing",
            "git config -f missing core.fsmonitor ./x",
            {"missing"},
        ),
        (
            "git config -f ~/more include.path ../proj/more; echo > more;"
            "git config --global include.path more",
            "git config -f more user.name Eve",
            {"more"},
        ),
        (
            "git config --global init.templateDir $PWD/t; mkdir -p t/hooks; echo > t/hooks/a",
            "echo evil > t/hooks/pre-commit; echo x > t/hooks/a",
            {"t/hooks/a", "t/hooks/pre-commit"},
        ),
        ("git config --global user.name Ada", "echo x > r/hk/pre-commit", set[str]()),
    ],
)
async def test_what_the_users_settings_include_and_name_is_theirs(
    tmp_path_factory: pytest.TempPathFactory, settings: str, command: str, held: set[str]
):
    place = _place(tmp_path_factory.mktemp("users"), has_mounts=False)
    place.outside("git init -q r; git init -q s; mkdir r/hk s/hk; echo doc > r/hk/README")
    place.outside(settings.format(root=place.root))
    settled = await place.run(command)
    assert set(place.held(settled)) == held
    place.outside("git -C r status; git init -q r/more; git -C r commit -q --allow-empty -m x")
    assert (await place.run("true")).held == ()


@pytest.mark.parametrize(
    "condition", ["gitdir:r/", "onbranch:work", "hasconfig:remote.*.url:https://mine.example/**"]
)
async def test_git_says_for_which_repositories_the_users_hooks_folder_counts(
    open_place: WatchedFolder, condition: str
):
    open_place.outside(
        "git init -q r; git init -q s; mkdir r/hk s/hk; git -C r checkout -q -b work;"
        "git -C s checkout -q -b other; git -C r remote add origin https://mine.example/x;"
        f"git config -f ~/inc core.hooksPath hk; git config --global 'includeIf.{condition}.path' "
        "'~/inc'"
    )
    asked = ["git", "config", "core.hooksPath"]
    known = subprocess.run(asked, cwd=open_place.root / "r", env=open_place.environ)
    if known.returncode:
        pytest.skip("this git does not know the condition")
    settled = await open_place.run("echo evil > r/hk/pre-commit; echo x > s/hk/a")
    assert set(open_place.held(settled)) == {"r/hk/pre-commit"}


async def test_a_hooks_folder_that_the_user_names_later_counts_from_then_on(
    open_place: WatchedFolder,
):
    open_place.outside("git init -q; mkdir hk; echo doc > hk/README")
    assert (await open_place.run("echo x > hk/a")).held == ()
    open_place.outside("git config --global core.hooksPath hk")
    assert set(open_place.held(await open_place.run("echo evil > hk/b"))) == {"hk/b"}
    open_place.outside("git config --global --unset core.hooksPath")
    assert (await open_place.run("echo x > hk/c")).held == ()


@each_row(
    ("settings", "top"),
    [
        ("git config core.hooksPath .", ""),
        ("git config core.hooksPath $PWD", ""),
        ("git config --global core.hooksPath .", ""),
        ("git -C sub config core.hooksPath ..", ""),
        ("git -C sub config core.hooksPath .", "sub/"),
        ("git config --global core.hooksPath ..", ""),
    ],
)
@pytest.mark.parametrize("has_mounts", [True, False])
@needs_bwrap
async def test_a_hooks_folder_around_the_repository_has_hooks_by_their_names(
    tmp_path_factory: pytest.TempPathFactory, settings: str, top: str, has_mounts: bool
):
    place = _place(tmp_path_factory.mktemp("around"), has_mounts=has_mounts)
    place.outside(
        f"git init -q; git init -q sub; {settings}; echo mine > {top}pre-push; echo > {top}a-b.txt"
    )
    settled = await place.run(
        f"echo evil > {top}pre-commit; echo evil > {top}update; echo x > {top}a-b.txt;"
        f"mkdir {top}src; echo x > {top}src/post-merge; echo x > {top}Makefile"
    )
    assert set(place.held(settled)) == {f"{top}pre-commit", f"{top}update"}
    settled = await place.run(f"echo evil > {top}pre-push", code=None)
    assert set(place.held(settled)) == (set() if has_mounts else {f"{top}pre-push"})
    assert place.text(f"{top}pre-push") == "mine\n"
    assert (await place.run("true")).held == ()


async def test_a_repository_whose_settings_were_held_still_works(open_place: WatchedFolder):
    settled = await open_place.run(
        "git init -q s; git -C s config core.fsmonitor ./x; git -C s config user.name Eve"
    )
    open_place.outside("cd s; git status --porcelain; test $(git config user.name) = Eve")
    assert "fsmonitor" not in open_place.text("s/.git/config")
    (held,) = settled.held
    assert "+\tfsmonitor = ./x" in held.diff
    await open_place.watch.decide(held, True)
    open_place.outside("cd s; test $(git config core.fsmonitor) = ./x")


@each_row(
    ("name", "harmful"),
    {
        ".git/config": "[core]\n\tfsmonitor = /bin/x\n",
        ".git/info/attributes": "* filter=x\n",
        ".git/HEAD": "no branch\n",
        ".git/packed-refs": f"{'1' * 40} refs/replace/{'2' * 40}\n",
        ".git/BISECT_START": "--exec=./x\n",
    }.items(),
)
async def test_what_a_job_flips_while_it_is_judged_is_judged_as_it_was_found(
    open_place: WatchedFolder, name: str, harmful: str, monkeypatch: pytest.MonkeyPatch
):
    open_place.outside("git init -q")
    path = open_place.root / name
    plain = path.read_text() if path.exists() else ""
    kept = plain if name == ".git/config" else ""

    def flip(*found: object) -> str:
        path.write_text(plain)
        try:
            return cast("Callable[..., str]", why_decide)(*found)
        finally:
            path.write_text(kept + harmful)

    monkeypatch.setattr(watch, "why_decide", flip)
    settled = await open_place.run(f"printf %s '{kept}{harmful}' > {name}")
    assert [held.path for held in settled.held] == [path]


async def test_a_restored_file_keeps_its_group_and_mode(open_place: WatchedFolder):
    groups = [12_345] if os.geteuid() == 0 else [g for g in os.getgroups() if g != os.getegid()]
    if not groups:
        pytest.skip("who runs this is in one group")
    open_place.outside("git init -q; chmod 664 .git/config")
    config = open_place.root / ".git/config"
    os.chown(config, -1, groups[0])
    settled = await open_place.run("printf '[core]\\n fsmonitor = x\\n' >> .git/config")
    assert len(settled.held) == 1
    assert "fsmonitor" not in config.read_text()
    status = config.stat()
    assert (status.st_gid, status.st_mode & 0o777) == (groups[0], 0o664)


async def test_a_yes_takes_nothing_back_that_the_person_did_meanwhile(open_place: WatchedFolder):
    open_place.outside("echo one > AGENTS.md")
    (held,) = (await open_place.run("echo evil > AGENTS.md")).held
    open_place.outside("echo mine > AGENTS.md")
    with pytest.raises(ToolError, match="has changed since"):
        await open_place.watch.decide(held, True)
    assert open_place.text("AGENTS.md") == "mine\n"


def test_a_walk_finds_what_outside_programs_follow(tmp_path: Path):
    for name in (".vscode/x", ".git/hooks/x", ".git/config", "sub/.claude/y", "sub/.git/config"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "node_modules" / "a" / ".vscode").mkdir(parents=True)
    (tmp_path / "CLAUDE.md").symlink_to("sub/.claude/y")
    found = ProjectWalk([tmp_path]).look()
    covers = [path for entry in found.gits for path in GitRepository(entry).covers]
    assert {str(path.relative_to(tmp_path)) for path in (*found.obeyed, *covers)} == {
        *(".vscode", ".git/hooks", ".git/config", "sub/.claude", "sub/.git/config"),
        "CLAUDE.md",
    }


_LONG = """python3 - <<'END'
import os
for _ in range({}):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
os.system("git init -q && git config core.fsmonitor x; echo > .envrc")
END
"""


@each_row("depth", [15, 20, 25])
async def test_a_path_too_long_for_looking_is_held_and_keeps_nothing_else_in_place(
    tmp_path_factory: pytest.TempPathFactory, depth: int
):
    place = _place(tmp_path_factory.mktemp("long"), has_mounts=False)
    place.outside("git init -q; git commit -qm one --allow-empty")
    settled = await place.run(
        f"echo > .envrc; mkdir .vscode; echo > .vscode/x; {_LONG.format(depth)}"
    )
    held = {name.rpartition("/")[2][:10]: who for name, who in place.held(settled).items()}
    assert held == {
        ".envrc": "the shell obeys it",
        ".vscode": "an editor obeys it",
        "d" * 10: "its path is too long to look into it",
    }
    place.outside("test -z $(find . -name .envrc -o -path './.git' -prune -o -name .git -print)")
    assert (await place.run("true")).held == ()


_DEEP = """python3 - <<'END'
import os
os.chdir("{}")
for _ in range(1_200):
    os.mkdir("d")
    os.chdir("d")
END
"""


@needs_bwrap
async def test_no_folder_of_a_command_in_a_copy_stops_the_next_command(place: WatchedFolder):
    place.outside("git init -q; mkdir .vscode; echo 1 > .vscode/settings.json")
    await place.run("mkdir -p .vscode/a; touch .vscode/a/b .vscode/new; chmod 0 .vscode/a")
    await place.run(f"{_DEEP.format('.vscode')} touch .vscode/new")
    await place.run("test $(ls .vscode) = settings.json")


async def test_a_folder_of_any_depth_is_held(open_place: WatchedFolder):
    settled = await open_place.run(f"mkdir .vscode; {_DEEP.format('.vscode')} touch .vscode/x")
    assert set(open_place.held(settled)) == {".vscode"}
    assert (await open_place.run("true")).held == ()
    for held in settled.held:  # deeper than pytest can remove
        remove_folder(held.aside)


async def test_what_cannot_be_set_aside_is_judged_again_by_the_next_program(
    open_place: WatchedFolder, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_words: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patched:
        patched.setattr(HeldStore, "set_aside", fail)
        with pytest.raises(ToolError, match="no space"):
            await open_place.run("echo > .envrc")
        await open_place.watch.close()
    for expected in ([".envrc"], []):
        open_place.watch = open_place.watch_again()
        held = await open_place.watch.recover()
        assert [file.path.name for file in held] == expected
        await open_place.watch.close()


async def test_what_another_job_moves_between_the_look_and_the_step_is_looked_at_again(
    open_place: WatchedFolder, monkeypatch: pytest.MonkeyPatch
):
    move, was = HeldStore.set_aside, open_place.root / "was"

    def move_late(store: HeldStore, path: Path, *words: object) -> object:
        if not was.exists():
            path.parent.rename(was)
            path.parent.symlink_to(open_place.root.parent)
            try:
                return move(store, path, *words)  # pyright: ignore[reportArgumentType]
            finally:
                path.parent.unlink()
                was.rename(path.parent)
                was.touch()
        return move(store, path, *words)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(HeldStore, "set_aside", move_late)
    assert set(open_place.held(await open_place.run("mkdir a; echo > a/.envrc"))) == {"a/.envrc"}
    assert not (open_place.root / "a/.envrc").exists()


async def test_what_cannot_be_set_aside_keeps_nothing_else_in_place(
    open_place: WatchedFolder, monkeypatch: pytest.MonkeyPatch
):
    move = HeldStore.set_aside

    def fail(store: HeldStore, path: Path, *words: object) -> object:
        if path.name == ".envrc":
            raise OSError(errno.ENOSPC, "no space")
        return move(store, path, *words)  # pyright: ignore[reportArgumentType]

    with monkeypatch.context() as patched:
        patched.setattr(HeldStore, "set_aside", fail)
        with pytest.raises(ToolError, match="no space"):
            await open_place.run("echo > .envrc; mkdir .vscode; echo > .vscode/x")
    assert not (open_place.root / ".vscode").exists()
    assert set(open_place.held(await open_place.run("true"))) == {".envrc", ".vscode"}


async def test_what_hooks_run_from_folders_beside_them_is_held(open_place: WatchedFolder):
    place = open_place
    place.outside("git init -q; mkdir -p .git/hooks/a.d/b scripts; echo 1 > .git/hooks/a.d/b/one")
    place.outside("ln -s ../../scripts .git/hooks/link.d; echo 1 > scripts/one")
    settled = await place.run(
        "cd .git/hooks; echo 2 | tee a.d/b/one > a.d/two; mkdir c.d; echo 2 > c.d/x;"
        "echo 2 > ../../scripts/one"
    )
    assert set(place.held(settled)) == {
        *(".git/hooks/a.d/b/one", ".git/hooks/a.d/two", ".git/hooks/c.d/x", "scripts/one"),
    }
    assert place.text(".git/hooks/a.d/b/one") == place.text("scripts/one") == "1\n"


async def test_no_commit_of_a_command_has_the_users_git_run_what_is_in_a_package(
    open_place: WatchedFolder,
):
    open_place.outside("git init -q -b main; git commit -qm one --allow-empty; mkdir node_modules")
    settled = await open_place.run(
        "git init -q node_modules/a/b; cd node_modules/a/b; git commit -qm x --allow-empty;"
        "git config core.fsmonitor 'touch ran; false'; id=$(git rev-parse HEAD); cd ../../..;"
        "export GIT_INDEX_FILE=.git/index.other;"
        "git update-index --add --cacheinfo 160000,$id,node_modules/a/b;"
        "git branch more $(git commit-tree -p HEAD -m more $(git write-tree))"
    )
    assert set(open_place.held(settled)) == {"node_modules/a/b/.git/config"}
    open_place.outside("git switch -q more; git status; test -z $(find . -name ran)")


async def test_the_limit_of_folders_is_told_once(
    open_place: WatchedFolder, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(project_walk, "MOST_FOLDERS", 3)
    open_place.outside("mkdir -p a/deep b/deep c/deep; touch a/deep/.env")
    first, second = await open_place.run("true"), await open_place.run("true")
    assert "start in a subfolder" in first.notice
    assert second.notice == ""
    settled = await open_place.run("git init -q new; git -C new config core.fsmonitor ./x")
    assert set(open_place.held(settled)) == {"new/.git/config"}


_WAY = "it leads to where commands write unchecked"


async def test_a_link_into_a_folder_that_builds_fill_is_held(open_place: WatchedFolder):
    settled = await open_place.run(
        "mkdir -p node_modules/x app; echo evil > node_modules/x/AGENTS.md;"
        "ln -s node_modules/x docs; ln -s ../node_modules/y app/later;"
        "ln -s ../node_modules app/node_modules; ln -s node_modules/x/AGENTS.md file; ln -s app a2"
    )
    assert open_place.held(settled) == {"docs": _WAY, "app/later": _WAY}
    assert not (open_place.root / "docs").is_symlink()
    assert (open_place.root / "app/node_modules").is_symlink()


async def test_a_link_is_looked_at_again_when_what_it_leads_to_changes(
    open_place: WatchedFolder, tmp_path: Path
):
    place = open_place
    place.unchecked = (f"{tmp_path / 'cache'}/",)
    place.outside("mkdir -p ../cache/x sub far/sub; ln -s far a; ln -s a/sub b")
    place.watch = place.watch_again()
    await place.run("sleep 0.1")
    assert (await place.run("true")).held == ()
    settled = await place.run(f"rm -r far/sub; ln -s {tmp_path}/cache/x far/sub")
    assert place.held(settled) == {"far/sub": _WAY}
    assert (place.root / "b").is_symlink()
    (place.root / "node_modules").mkdir()
    assert (await place.run("mkdir far/sub; ln -s ../a/sub node_modules/y")).held == ()
    settled = await place.run("ln -s node_modules/y c")
    assert settled.held == ()
    settled = await place.run(f"ln -sfn {tmp_path}/cache/x node_modules/y")
    assert place.held(settled) == {"c": _WAY}


async def test_a_link_that_the_users_commits_have_is_let_through(open_place: WatchedFolder):
    open_place.outside(
        "git init -q; git commit -q --allow-empty -m 1; ln -s node_modules/x public;"
        "git add .; git commit -qm 2; git switch -qc old HEAD^"
    )
    assert (await open_place.run("git switch -q -")).held == ()
    assert (open_place.root / "public").is_symlink()


_ELSEWHERE = "git would read objects elsewhere"


async def test_other_folders_with_objects_that_a_command_names_are_held_back(
    open_place: WatchedFolder,
):
    other = open_place.home / "other"
    open_place.outside(
        "git init -q; git commit -q --allow-empty -m one; git worktree add -q w;"
        f"git clone -q --bare . .git/modules/m; git init -q {other};"
        "echo $PWD/mine > .git/modules/m/objects/info/alternates"
    )
    await open_place.run("true")
    settled = await open_place.run(
        "mkdir -p alt/info; mkfifo alt/info/alternates;"
        "echo ../../alt > .git/objects/info/alternates;"
        f"echo {other}/.git/objects >> .git/modules/m/objects/info/alternates;"
        "git init -q new; cd new; printf '# x\\n\\n../../alt' > .git/objects/info/alternates;"
        "echo http://x.example > .git/objects/info/http-alternates; git init -q ../link;"
        f"cd ../link; ln -s {other} far; echo ../../far/.git/objects > .git/objects/info/alternates"
    )
    info = "objects/info"
    names = (
        *(f".git/{info}/alternates", f".git/modules/m/{info}/alternates"),
        *(f"new/.git/{info}/alternates", f"new/.git/{info}/http-alternates"),
        f"link/.git/{info}/alternates",
    )
    held = open_place.held(settled)
    assert held.pop("link/far") == "git would write elsewhere"
    assert held == dict.fromkeys(names, _ELSEWHERE)
    assert open_place.text(f".git/modules/m/{info}/alternates") == f"{open_place.root}/mine\n"
    open_place.outside(
        "timeout 9 git status; cd w; timeout 9 git log; cd ../new; timeout 9 git status"
    )


@pytest.mark.thorough
async def test_a_clone_that_shares_objects_with_the_project_stays_until_these_are_elsewhere(
    open_place: WatchedFolder,
):
    other = open_place.home / "other"
    open_place.outside(f"git init -q; git commit -q --allow-empty -m one; git init -q {other}")
    await open_place.run("true")
    settled = await open_place.run(
        "git clone -q --shared . a; git clone -q --reference a a b; mkdir c;"
        "git clone -q --shared b c/d; git -C c/d log"
    )
    assert settled.held == ()
    settled = await open_place.run(f"mv a old; mkdir a; ln -s {other}/.git a/.git")
    assert open_place.held(settled)["a/.git"] == "git would look elsewhere"
    await open_place.refuse(settled)
    settled = await open_place.run(f"rm -rf b; ln -s {other} b")
    assert open_place.held(settled) == {"b": "git would write elsewhere"}
    settled = await open_place.run("cd old/.git/objects/info; rm alternates; mkfifo alternates")
    name = "old/.git/objects/info/alternates"
    assert open_place.held(settled)[name] == "git would wait for it"
