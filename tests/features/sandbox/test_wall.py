import asyncio
import os
import signal
import socket
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.features.sandbox.mounts import read_mount_points
from agent_tui.features.sandbox.plan import Covers
from agent_tui.features.sandbox.sandbox import Sandbox
from agent_tui.features.sandbox.settings import SandboxMode
from agent_tui.safe_paths import distrust_programs_around
from tests.support.patience import PATIENCE_S
from tests.support.processes import alive, nap
from tests.support.sandbox import FixedWatch, covering, make_sandbox, needs_bwrap, run_inside

pytestmark = needs_bwrap


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "home/work"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def repository(work: Path) -> Path:
    git(work, "init", "-q", "-b", "main")
    git(work, "commit", "-qm", "first", "--allow-empty")
    return work


def git(folder: Path, *words: str) -> str:
    names = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    command = ["git", "-C", str(folder), *names, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


async def test_of_home_there_is_only_the_workspace_and_it_alone_can_be_written(
    tmp_path: Path, work: Path
):
    for name in (".ssh/id_rsa", "notes.md", "other/code", ".bashrc"):
        (tmp_path / "home" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "home" / name).write_text("canary\n")
    there = Path("/tmp", f"wall-test-{uuid.uuid4().hex}")
    command = (
        f"find ~ -mindepth 1; cat ~/.ssh/id_rsa ~/notes.md; touch here {there} ~/.tool ~/lost;"
        "echo x > ~/.bashrc;"
        "touch /x /usr/x /etc/x; ls /run; wc -c < /etc/shadow; cat /proc/[0-9]*/cmdline"
    )
    sandbox = make_sandbox(tmp_path)
    with subprocess.Popen(nap(61_986).split()) as outside:
        _, printed = await run_inside(sandbox, work, command)
        outside.kill()
    assert nap(61_986).split()[1] not in printed
    assert "canary" not in printed
    assert "other" not in printed
    assert printed.count("Read-only file system") == 3
    assert sorted(path.name for path in work.iterdir()) == ["here"]
    assert not {".tool", "lost"} & {path.name for path in (tmp_path / "home").iterdir()}
    assert (tmp_path / "home/.bashrc").read_text() == "canary\n"
    assert not there.exists()
    assert sandbox.strays() == [".bashrc", "lost"]
    assert sandbox.strays() == []
    await sandbox.close_walls()


async def test_what_lies_only_on_the_way_to_the_workspace_is_closed(tmp_path: Path):
    deep = tmp_path / "home/src/work"
    deep.mkdir(parents=True)
    code, printed = await run_inside(make_sandbox(tmp_path), deep, "touch x && touch ../lost")
    assert (code, "Permission denied" in printed) == (1, True)
    assert (deep / "x").exists()


async def test_commands_share_tmp_processes_and_network_until_the_conversation_ends(
    tmp_path: Path, work: Path
):
    sandbox = make_sandbox(tmp_path)
    keeper = await sandbox.keeper(work)
    serve = (
        "import http.server as h; s=h.HTTPServer(('127.0.0.1',0),h.SimpleHTTPRequestHandler);"
        "open('/tmp/port','w').write(str(s.server_port)); s.serve_forever()"
    )
    words = ["/usr/bin/env", "python3", "-c", serve]
    environ = sandbox.environ(work, os.environ)
    async with keeper.child_group(words, cwd=work, environ=environ):
        fetch = (
            'until [ -s /tmp/port ]; do sleep 0.02; done; python3 -c "import urllib.request as u;'
            "print(u.urlopen('http://127.0.0.1:'+open('/tmp/port').read()).status)\""
        )
        code, printed = await run_inside(sandbox, work, fetch)
    assert (code, printed) == (0, "200\n")
    await sandbox.close_walls()
    assert (await run_inside(sandbox, work, "ls /tmp/port"))[0] != 0
    await sandbox.close_walls()
    assert list((tmp_path / "walls").iterdir()) == []


async def test_a_program_that_is_installed_in_tmp_is_there(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed/x").write_text("here")
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "installed"))
    code, printed = await run_inside(make_sandbox(tmp_path), work, f"cat {tmp_path}/installed/x")
    assert (code, printed) == (0, "here")


async def test_nothing_outside_is_reached_by_network(tmp_path: Path, work: Path):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        command = f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'"
        _, printed = await run_inside(make_sandbox(tmp_path), work, command)
    assert "Connection refused" in printed


async def test_plan_mode_has_a_wall_in_which_the_folders_cannot_be_written(
    tmp_path: Path, work: Path
):
    sandbox = make_sandbox(tmp_path)
    code, printed = await run_inside(sandbox, work, "touch x; touch /tmp/y", is_read_only=True)
    assert (code, "Read-only file system" in printed) == (0, True)
    assert (await run_inside(sandbox, work, "touch x && ls /tmp/y"))[0] == 0
    assert (work / "x").exists()


async def test_git_works_but_what_it_obeys_stays(tmp_path: Path, repository: Path):
    git(repository, "update-ref", "refs/remotes/origin/feature", "HEAD")
    git(repository, "remote", "add", "origin", "/nowhere")
    (tmp_path / "home/.gitconfig").write_text("[user]\n\tname = Ada\n\temail = a@example.org\n")
    sandbox = make_sandbox(tmp_path)
    everyday = (
        "set -e; git switch -qc feature origin/feature; echo x > f; git add f; git commit -qm two;"
        "echo y > f; git stash -q; git stash pop -q; git commit -qam three; git rebase -q main;"
        "git worktree add -q trees/a -b a; git worktree remove trees/a; git gc -q;"
        "git log --format=%an"
    )
    code, printed = await run_inside(sandbox, repository, everyday)
    assert (code, printed.splitlines()) == (0, ["Ada", "Ada", "A"])
    before = (repository / ".git/config").read_text()
    hostile = (
        "echo x > .git/hooks/post-commit; echo x >> .git/config; mv .git/hooks .git/other;"
        "git config core.pager evil; mv .git aside; rm -rf .git/hooks"
    )
    _, printed = await run_inside(sandbox, repository, hostile)
    assert printed.count("busy") >= 3
    assert (repository / ".git/config").read_text() == before
    assert not (repository / ".git/hooks/post-commit").exists()
    assert not (repository / "aside").exists()


@pytest.mark.parametrize("is_read_only", [False, True])
async def test_of_the_repositorys_settings_commands_see_no_tokens(
    tmp_path: Path, repository: Path, *, is_read_only: bool
):
    git(repository, "worktree", "add", "-q", "../tree", "-b", "other")
    git(repository, "remote", "add", "origin", "https://ada:decoy@git.example/ada/token-service")
    git(repository, "config", "branch.main.remote", "origin")
    git(repository, "config", "branch.add-password-reset.remote", "origin")
    git(repository, "config", "http.https://git.example/.extraheader", "Authorization: decoy")
    config = (repository / ".git/config").read_text()
    for name in ("config.bak", "credentials", "remotes/old", "branches/old"):
        (repository / ".git" / name).parent.mkdir(exist_ok=True)
        (repository / ".git" / name).write_text("URL: https://ada:decoy@git.example/ada\n")
    command = "git -C {} config -l | grep -E '^(remote|branch|http)'; cd {}/.git; cat c* */old"
    sandbox = make_sandbox(tmp_path, added=(repository.parent / "tree",))
    shown = ["remote.origin.url=https://git.example/ada/token-service"]
    shown += [
        "remote.origin.fetch=+refs/heads/*:refs/remotes/origin/*",
        "branch.main.remote=origin",
        "branch.add-password-reset.remote=origin",
    ]
    for key in ("decoy", "decoy-that-the-user-changed"):
        for folder in (".", "../tree"):
            asked = command.format(folder, repository)
            printed = (await run_inside(sandbox, repository, asked, is_read_only=is_read_only))[1]
            assert printed.splitlines()[:4] == shown
            assert "decoy" not in printed
        assert config == (repository / ".git/config").read_text()
        git(repository, "config", "http.https://git.example/.extraheader", f"Authorization: {key}")
        config = (repository / ".git/config").read_text()
    said = await run_inside(sandbox, repository, "git config x.y z; git status --porcelain")
    assert "x" not in git(repository, "config", "--name-only", "-l").split()
    assert "fatal" not in said[1]
    await sandbox.close_walls()


async def test_a_linked_worktree_commits_to_its_repository(tmp_path: Path, repository: Path):
    git(repository, "worktree", "add", "-q", str(tmp_path / "home/tree"))
    git(repository, "worktree", "add", "-q", str(tmp_path / "home/other"))
    command = (
        "git -c user.name=A -c user.email=a commit -qm inside --allow-empty && git worktree prune;"
        "echo 'gitdir: /evil' > .git; ls ~/work ~/other"
    )
    tree = tmp_path / "home/tree"
    _, printed = await run_inside(make_sandbox(tmp_path), tree, command)
    assert "inside" in git(tree, "log", "--format=%s")
    assert len(git(repository, "worktree", "list").splitlines()) == 3
    assert "evil" not in (tree / ".git").read_text()
    assert "Read-only file system" in printed


async def test_the_rest_of_a_monorepo_is_not_taken_for_deleted(tmp_path: Path, repository: Path):
    for name in ("a/x", "b/y"):
        (repository / name).parent.mkdir()
        (repository / name).write_text("")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "both")
    command = (
        "echo z > x && git -c user.name=A -c user.email=a commit -qam part && git status --short;"
        "touch ../b/new"
    )
    _, printed = await run_inside(make_sandbox(tmp_path), repository / "a", command)
    assert printed.startswith("touch: cannot touch '../b/new': Read-only")
    assert git(repository, "show", "--stat", "--format=").splitlines()[0].strip().startswith("a/x")


def hide(sandbox: Sandbox, work: Path, *paths: Path) -> None:
    watch = sandbox.watch(work)
    assert isinstance(watch, FixedWatch)
    watch.covers = Covers(hidden=paths)


async def test_a_hidden_file_stays_hidden_when_an_editor_replaces_it(tmp_path: Path, work: Path):
    secret = work / ".env"
    secret.write_text("canary")
    sandbox = make_sandbox(tmp_path, parts=covering(hidden=(secret,)))
    assert "canary" not in (await run_inside(sandbox, work, "cat .env"))[1]
    assert sandbox.view(work).hidden == [".env"]
    (work / "saved").write_text("canary again")
    (work / "saved").replace(secret)
    code, printed = await run_inside(sandbox, work, "cat .env")
    assert (code, "canary" in printed, "Permission denied" in printed) == (1, False, True)


@pytest.mark.parametrize(
    "replace",
    [
        "sed -i s/canary/canary-2/ .env; git config alias.x y",  # a new file is moved there
        "mv .env old; echo canary-2 > .env; cp .git/config n; rm .git/config; mv n .git/config",
    ],
)
async def test_what_the_user_replaces_while_a_job_runs_is_covered_again(
    tmp_path: Path, repository: Path, replace: str
):
    secret, settings = repository / ".env", repository / ".git/config"
    secret.write_text("canary")
    parts = covering(hidden=(secret,), read_only=(settings,))
    sandbox = make_sandbox(tmp_path, parts=parts)
    tries = "cat .env; echo '[x]' >> .git/config"
    job = asyncio.create_task(
        run_inside(sandbox, repository, f"touch on; until test -e go; do sleep .1; done; {tries}")
    )
    while not (repository / "on").exists():
        await asyncio.sleep(0.01)
    subprocess.run(["bash", "-ec", replace], cwd=repository, check=True)
    (wall,) = sandbox._walls.values()
    async with asyncio.timeout(PATIENCE_S):
        while not {secret, settings} <= read_mount_points(wall.pid):
            await asyncio.sleep(0.01)
    (repository / "go").touch()
    _, printed = await job
    assert "canary" not in printed
    assert printed.count("Read-only") == 1
    assert "[x]" not in settings.read_text()
    await sandbox.close_walls()
    assert wall.covering is not None
    assert wall.covering.cancelling() or wall.covering.done()


async def test_what_cannot_be_covered_again_keeps_no_other_file_uncovered(
    tmp_path: Path, repository: Path
):
    secret, other = repository / ".env", repository / "mise.toml"
    secret.write_text("canary")
    other.write_text("")
    sandbox = make_sandbox(tmp_path, parts=covering(hidden=(secret,), read_only=(other,)))
    waits = "touch on; until test -e go; do sleep .1; done; cat .env"
    job = asyncio.create_task(run_inside(sandbox, repository, waits))
    while not (repository / "on").exists():
        await asyncio.sleep(0.01)
    (wall,) = sandbox._walls.values()
    other.unlink()
    other.symlink_to("nowhere")
    other.with_name("nowhere").touch()
    async with asyncio.timeout(PATIENCE_S):
        while other not in wall.uncovered and other not in read_mount_points(wall.pid):
            await asyncio.sleep(0.01)
    secret.rename(repository / "old")
    secret.write_text("canary 2")
    async with asyncio.timeout(PATIENCE_S):
        while secret not in read_mount_points(wall.pid):
            await asyncio.sleep(0.01)
    (repository / "go").touch()
    assert "canary" not in (await job)[1]
    await sandbox.close_walls()


async def test_what_comes_to_be_hidden_is_and_what_may_be_shown_is_shown(
    tmp_path: Path, work: Path
):
    sandbox = make_sandbox(tmp_path, parts=covering())
    await run_inside(sandbox, work, "mkdir keys; echo canary | tee .env > keys/k")
    hide(sandbox, work, work / ".env", work / "keys")
    assert "canary" not in (await run_inside(sandbox, work, "cat .env keys/k"))[1]
    hide(sandbox, work, work / "keys")
    assert (await run_inside(sandbox, work, "cat .env; ls keys"))[1] == "canary\n"


async def test_a_repository_that_a_command_makes_is_covered_for_the_next(
    tmp_path: Path, work: Path
):
    sandbox = make_sandbox(tmp_path)
    await run_inside(sandbox, work, "git init -q")
    _, printed = await run_inside(sandbox, work, "echo x > .git/hooks/post-commit; mv .git g")
    assert printed.count("Read-only") + printed.count("busy") == 2
    assert not (work / ".git/hooks/post-commit").exists()


async def test_what_cannot_be_covered_stops_the_command(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch
):
    sandbox = make_sandbox(tmp_path, parts=covering())
    await run_inside(sandbox, work, "touch .env")
    hide(sandbox, work, work / ".env")
    monkeypatch.setattr(sys, "executable", "/bin/true")
    said = r"\.env cannot be covered\. Nothing was run\. Move \S*/\.env out"
    with pytest.raises(ToolError, match=said):
        await run_inside(sandbox, work, "cat .env")


async def test_a_wall_that_is_brought_down_is_said_and_stood_up_again(tmp_path: Path, work: Path):
    sandbox = make_sandbox(tmp_path)
    keeper = await sandbox.keeper(work)
    assert (await run_inside(sandbox, work, "kill -9 1; kill -STOP 1; echo on"))[1] == "on\n"
    (wall,) = sandbox._walls.values()
    os.kill(wall.pid, signal.SIGKILL)
    while not keeper.is_over:
        await asyncio.sleep(0.01)
    with pytest.raises(ToolError, match="sandbox of this conversation has ended"):
        async with keeper.child_group(["/bin/sh"], cwd=work, environ={}):
            pass
    assert (await run_inside(sandbox, work, "echo up; ls /home /root"))[1].startswith("up\n")


@pytest.mark.parametrize("begun", ["true", "echo '{\"child-pid\": 1}' >&100"])
async def test_a_wall_that_cannot_stand_runs_nothing(tmp_path: Path, work: Path, begun: str):
    sandbox = make_sandbox(tmp_path)
    assert sandbox.state(work).backend == "bubblewrap"
    program = tmp_path / "bin/bwrap"
    program.parent.mkdir()
    program.write_text(f"#!/bin/bash\n{begun}\necho 'bwrap: No permissions' >&2; exit 1\n")
    program.chmod(0o755)
    broken = make_sandbox(tmp_path, environ={"PATH": f"{program.parent}:{os.defpath}"})
    broken._states = sandbox._states  # it worked when it was tried
    with pytest.raises(ToolError, match=r"cannot be set up: bwrap: No permissions\. Nothing was"):
        await broken.keeper(work)


async def test_a_command_is_ended_with_all_it_started(tmp_path: Path, work: Path):
    sandbox = make_sandbox(tmp_path)
    command = f"setsid {nap(61_987)} & echo $! > started; trap '' TERM; {nap(61_987)}"
    running = asyncio.create_task(run_inside(sandbox, work, command))
    while not (work / "started").exists():
        await asyncio.sleep(0.02)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert alive(nap(61_987)) == []


async def test_a_cache_that_is_a_link_is_written_where_it_leads(tmp_path: Path, work: Path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "home/.npm").symlink_to(tmp_path / "disk")
    named = [tmp_path / "home" / name for name in (".npm", ".cache/pip")]
    sandbox = make_sandbox(tmp_path, caches=tuple((place, place) for place in named))
    code, _ = await run_inside(sandbox, work, "touch ~/.npm/x && mkdir -p ~/.cache/pip")
    assert (code, (tmp_path / "disk/x").exists()) == (0, True)
    assert not (tmp_path / "home/.cache/pip").exists()


def test_a_cache_of_ours_that_cannot_be_written_does_not_turn_the_sandbox_off(
    tmp_path: Path, work: Path
):
    (tmp_path / "walls").write_text("")
    assert make_sandbox(tmp_path).state(work).backend == "bubblewrap"


def test_a_workspace_that_holds_the_home_folder_is_not_called_sandboxed(tmp_path: Path, work: Path):
    thens: dict[SandboxMode, str] = {"auto": "Commands run unconfined", "on": "The model cannot"}
    for mode, then in thens.items():
        sandbox = make_sandbox(tmp_path, mode)
        assert "home folder" in sandbox.state(tmp_path).problem
        assert "home folder" in sandbox.state(tmp_path / "home").problem
        assert then in sandbox.notice(tmp_path)
        assert sandbox.notice(work) == ""
        assert sandbox.state(work).is_on


async def test_programs_in_the_home_folder_run_though_a_session_is_in_it(tmp_path: Path):
    work, tool = tmp_path / "home/work", tmp_path / "home/tools/bin/tool"
    for folder in (work, tool.parent):
        folder.mkdir(parents=True)
    tool.write_text("#!/bin/sh\necho of the tool\n")
    tool.chmod(0o755)
    path = f"{tool.parent}:{os.defpath}"
    sandbox = make_sandbox(tmp_path, environ={"PATH": path})
    distrust_programs_around(tmp_path / "home", tmp_path / "home")
    assert not sandbox.state(tmp_path / "home").is_on
    assert (await run_inside(sandbox, work, str(tool)))[1] == "of the tool\n"
    await sandbox.close_walls()
