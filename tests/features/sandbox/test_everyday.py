"""Everyday tasks in a wall made as the program makes it: none is a dead end.

What does not work inside, and is not meant to, says how it is done instead.
"""

import asyncio
import base64
import hashlib
import json
import os
import pwd
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from agent_tui.config import PermissionSettings, Settings
from agent_tui.features.sandbox.proxy import NetworkGate, Wanted
from agent_tui.features.sandbox.sandbox import Sandbox
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.tools.base import ToolContext, ToolOutput
from agent_tui.tools.registry import default_toolbox
from tests.support.network_gate import loopback_gate
from tests.support.patience import PATIENCE_S
from tests.support.registry_server import RegistryServer, npm_package_of, wheel_of
from tests.support.sandbox import has_bwrap, has_landlock, program_sandbox
from tests.support.tool_calls import KEEPER

pytestmark = pytest.mark.thorough

_OFFERS = "outside: true"


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed")


@dataclass
class Shell:
    """The model's shell."""

    sandbox: Sandbox
    context: ToolContext

    async def run(self, command: str, *, background: bool = False) -> ToolOutput:
        toolbox = default_toolbox(KEEPER, sandbox=self.sandbox)
        arguments = {"command": command, "background": background}
        call = toolbox.prepare("bash", dict(arguments), self.context)
        assert call.intent.place == "inside"
        return await call.run()

    async def does(self, command: str) -> str:
        """What `command`, which succeeds, prints."""
        output = await self.run(f"set -e\n{command}")
        assert not output.is_error, output.for_model
        return output.for_model

    async def fails(self, command: str) -> str:
        """What is told of `command`, which fails."""
        output = await self.run(command)
        assert output.is_error, output.for_model
        return output.for_model

    def allow_hosts(self, *rules: str, gate: NetworkGate) -> None:
        """Have `gate` let through what `rules` allow, and nothing else."""
        engine = PermissionEngine(
            mode="full",
            rules=PermissionSettings(allow=rules),
            workspace=self.context.cwd,
            project_rules_file=Path("/nowhere/permissions.toml"),
        )

        async def decide(wanted: Wanted) -> str:
            verdict = engine.judge_host(wanted.target.host, wanted.target.port)
            return "" if verdict.decision == "allow" else verdict.why

        gate.decide = decide
        self.sandbox.parts = replace(self.sandbox.parts, gate=gate)


@pytest.fixture(params=["bubblewrap", "landlock"])
async def shell(
    request: pytest.FixtureRequest,
    context: ToolContext,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncGenerator[Shell]:
    backend = request.param
    if not (has_bwrap() if backend == "bubblewrap" else has_landlock()):
        pytest.skip(f"{backend} does not work here")
    home = tmp_path / "home"
    context.cwd = home / "src/project"
    context.cwd.mkdir(parents=True)
    (home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
    monkeypatch.setenv("HOME", str(home))
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"AGENT_TUI_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setattr("agent_tui.features.sandbox.walls.backend_here", lambda *_: (backend, ""))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    context.environ = {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8"}
    rustup = Path(pwd.getpwuid(os.getuid()).pw_dir, ".rustup")
    if rustup.is_dir():
        context.environ["RUSTUP_HOME"] = str(rustup)
    sandbox = program_sandbox(
        Settings.model_validate({"sandbox": "on"}), context.environ, keeper=KEEPER
    )
    yield Shell(sandbox, context)
    await context.jobs.leave()
    await sandbox.close_walls()


@asynccontextmanager
async def registry(
    shell: Shell, host: str, pages: dict[str, bytes], *rules: str
) -> AsyncGenerator[RegistryServer]:
    """A registry outside, to which `rules` open the way."""
    with RegistryServer(host, pages, shell.context.cwd.parent) as server:
        shutil.move(shell.context.cwd.parent / "ca.crt", shell.context.cwd)
        gate = loopback_gate(lambda _target: server.url)
        shell.allow_hosts(*rules, gate=gate)
        yield server
        gate.close()


async def test_a_virtual_environment_is_made_and_pip_installs_from_an_allowed_index(shell: Shell):
    wheel = "demo-1.0-py3-none-any.whl"
    link = f'<a href="/{wheel}">{wheel}</a>'
    pages = {"/simple/demo/": link.encode(), f"/{wheel}": wheel_of("demo")}
    install = "PIP_CONFIG_FILE=/dev/null .venv/bin/pip install --cert ca.crt demo"
    async with registry(shell, "pypi.org", pages) as server:
        await shell.does(f"{sys.executable} -m venv .venv")
        refused = await shell.fails(f"{install} --retries 0")
        assert "No matching distribution" in refused
        assert _OFFERS not in refused
        assert server.wanted == []
        shell.allow_hosts("fetch(bundle:pypi)", gate=_gate_of(shell))
        await shell.does(install)
        assert server.wanted == ["/simple/demo/", f"/{wheel}"]
    printed = await shell.does('. .venv/bin/activate; python -c "import demo; print(demo.answer)"')
    assert printed.startswith("42")


def _gate_of(shell: Shell) -> NetworkGate:
    assert shell.sandbox.parts.gate is not None
    return shell.sandbox.parts.gate


@needs("npm", "node")
async def test_npm_ci_installs_what_is_locked(shell: Shell):
    package = npm_package_of("demo")
    where = "/demo/-/demo-1.0.0.tgz"
    digest = base64.b64encode(hashlib.sha512(package).digest()).decode()
    entry = {
        "version": "1.0.0",
        "resolved": f"https://registry.npmjs.org{where}",
        "integrity": f"sha512-{digest}",
        "bin": {"demo": "main.js"},
    }
    wanted = {"name": "project", "version": "1.0.0", "dependencies": {"demo": "1.0.0"}}
    locked = {**wanted, "lockfileVersion": 3, "packages": {"": wanted, "node_modules/demo": entry}}
    (shell.context.cwd / "package.json").write_text(json.dumps(wanted))
    (shell.context.cwd / "package-lock.json").write_text(json.dumps(locked))
    pages = {where: package}
    async with registry(shell, "registry.npmjs.org", pages, "fetch(bundle:npm)") as server:
        await shell.does("npm ci --no-audit --cafile ca.crt")
        assert server.wanted == [where]
    assert "42" in await shell.does("npx demo; npm pkg set scripts.x=demo; npm run x")


@needs("npm")
async def test_what_only_looks_for_a_newer_version_of_itself_asks_for_no_network(shell: Shell):
    await shell.does("npm init -y")
    assert _gate_of(shell).records == ()


@needs("cargo")
async def test_cargo_makes_builds_and_tests_a_package(shell: Shell):
    if "RUSTUP_HOME" not in shell.context.environ and shutil.which("rustup"):
        pytest.skip("there is no toolchain")
    printed = await shell.does("cargo new hello; cd hello; cargo build; cargo test; cargo run -q")
    assert "Hello, world!" in printed


@needs("go")
async def test_go_builds_and_tests_a_module_and_its_caches_are_no_lost_files(shell: Shell):
    printed = await shell.does(
        "go mod init example.org/sum\n"
        "cat > sum.go <<'E'\npackage main\nfunc Sum(a, b int) int { return a + b }\n"
        "func main() { println(Sum(40, 2)) }\nE\n"
        "cat > sum_test.go <<'E'\npackage main\nimport \"testing\"\n"
        "func TestSum(t *testing.T) { if Sum(1, 2) != 3 { t.Fatal() } }\nE\n"
        "go build ./...; go vet ./...; go test ./...; ./sum; mkdir -p ~/go/pkg"
    )
    assert "42" in printed
    assert "deleted later" not in printed


@needs("make")
async def test_make_builds(shell: Shell):
    assert "made" in await shell.does("printf 'all:\\n\\techo made\\n' > Makefile; make")


async def test_pytest_runs_in_several_processes(shell: Shell):
    printed = await shell.does(
        "mkdir tests; echo 'def test_a(tmp_path): (tmp_path / \"x\").touch()' > tests/test_a.py\n"
        f"{sys.executable} -m pytest -q -n 2 tests"
    )
    assert "1 passed" in printed


async def test_python_has_processes_queues_and_a_database(shell: Shell):
    (shell.context.cwd / "work.py").write_text(
        "import multiprocessing as m, sqlite3, tempfile, asyncio\n"
        "if __name__ == '__main__':\n"
        "    with m.Pool(2) as pool: print(pool.map(abs, [-1, -2]))\n"
        "    queue = m.Queue(); queue.put(3); print(queue.get())\n"
        "    base = sqlite3.connect('base.db'); base.execute('pragma journal_mode=wal')\n"
        "    base.execute('create table t(x)'); base.commit()\n"
        "    print(asyncio.run(asyncio.to_thread(lambda: tempfile.mkdtemp() != '')))\n"
    )
    assert "[1, 2]\n3\nTrue" in await shell.does(f"{sys.executable} work.py")


@needs("sqlite3")
async def test_sqlite_keeps_a_database(shell: Shell):
    await shell.does("sqlite3 base.db 'create table t(x); insert into t values(42)'")
    assert "42" in await shell.does("sqlite3 base.db 'select x from t'")


async def test_a_repository_is_made_and_worked_in(shell: Shell):
    await shell.does("git init -q -b main; echo a > a; git add .; git commit -qm one")
    printed = await shell.does(
        "git branch b; git switch -q b; echo b >> a; git stash -q; git stash pop -q\n"
        "git commit -qam two; git switch -q main; echo c > c; git add c; git commit -qm three\n"
        "git switch -q b; git rebase -q main; git worktree add -q wt -b w; git worktree remove wt\n"
        "git switch -q main; git merge -q b; git tag v1; git branch -d b; git checkout -q -b d\n"
        "git commit -q --allow-empty -m four; git commit -q --amend --allow-empty -m five\n"
        "git cherry-pick --keep-redundant-commits v1; git bisect start\n"
        "git bisect reset; git log --format=%an; git status --short"
    )
    assert printed.count("Ada") >= 3


@pytest.mark.parametrize("shell", ["bubblewrap"], indirect=True)
async def test_git_works_beside_a_tracked_file_with_keys_that_the_user_changed(shell: Shell):
    file = shell.context.cwd / ".env"
    await shell.does("git init -q -b main; echo A=1 > .env; touch a; git add .; git commit -qm one")
    await shell.does(
        "git switch -qc other; echo B=2 >> .env; git commit -qam other; git switch -q -"
    )
    file.write_text("A=key of the user\n")
    status = "git status --porcelain; git diff HEAD"
    printed = await shell.does(f"{status}; echo x >> a; git add -A; git commit -qm two; {status}")
    assert printed.startswith("(no output")
    printed = await shell.does(
        "echo x >> a; git stash -q; git stash pop -q; git commit -qam three; git reset -q --hard;"
        "git rebase -q HEAD~1; cat .env; git log --format=%s -- .env"
    )
    assert printed.startswith("A=1\none\n")
    file.write_text("A=another key\n")
    assert "key" not in await shell.does("cat .env; echo x >> a; git commit -qam four")
    await shell.does("git switch -q other; [ ! -s a ]")
    assert (await shell.does("git status --porcelain; cat .env")).startswith("A=1\nB=2\n")
    assert file.read_text() == "A=another key\n"
    printed = await shell.does("echo C=3 > other.env; cp .env copy; cat .env copy; git log -p")
    assert "key" not in printed


async def test_git_brings_and_takes_away_folders_of_editors_while_one_wall_stands(shell: Shell):
    folder = shell.context.cwd
    subprocess.run(
        "git init -q -b main; mkdir .idea; echo 1 > .idea/a; git add .; git commit -qm one;"
        "git switch -qc other; git rm -qr .idea; mkdir -p .claude p/.vscode; ln -s x .claude/l;"
        "echo 2 > p/.vscode/a; echo 2 > mise.toml; git add .; git commit -qm two;"
        "git switch -q main",
        shell=True,
        check=True,
        cwd=folder,
        env=shell.context.environ,
    )
    for branch in ("other", "main", "other", "main"):
        printed = await shell.does(f"git switch -q {branch}; git status --porcelain")
        assert printed.startswith("(no output"), printed
        status = ["git", "status", "--porcelain"]
        assert subprocess.check_output(status, cwd=folder, env=shell.context.environ) == b""
        assert (folder / "p/.vscode/a").exists() == (branch == "other")
    await shell.does("git switch -q other")
    watch = shell.sandbox.watch(folder)
    assert watch is not None
    for copy in (path for _, path in watch.covers.copies):
        await shell.fails(f"rm -r {copy} || touch {copy.parent}/x")
    assert "held back" in (await shell.run("echo evil > p/.vscode/a")).for_model
    assert (folder / "p/.vscode/a").read_text() == "2\n"


async def test_a_local_remote_is_cloned_and_pulled_from(shell: Shell):
    await shell.does("git init -q -b main first; cd first; git commit -q --allow-empty -m one")
    await shell.does("git clone -q first second; cd first; git commit -q --allow-empty -m two")
    printed = await shell.does(
        "cd second; git pull -q; git log --format=%s; git switch -q -c more; "
        "git commit -q --allow-empty -m three; git push -q origin more; git fetch -q"
    )
    assert printed.startswith("two\none")


@pytest.mark.parametrize("shell", ["bubblewrap"], indirect=True)
async def test_what_git_keeps_for_programs_outside_says_how_it_is_done(shell: Shell):
    await shell.does("git init -q -b main; git commit -q --allow-empty -m one")
    submodule = (
        "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),part;"
        "printf '[submodule \"part\"]\\n path = part\\n url = ../x\\n' > .gitmodules;"
        "git submodule update --init"
    )
    for command in ("git remote add origin ../other", "git config user.name Eve", submodule):
        told = await shell.fails(command)
        assert "cannot change git's settings, nor register submodules" in told
        assert _OFFERS in told
    installs = (
        "import pathlib, os; hook = pathlib.Path('.git/hooks/pre-commit');"
        "hook.write_text('#!/bin/sh\\n'); hook.chmod(0o755)"
    )
    assert _OFFERS in await shell.fails(f'{sys.executable} -c "{installs}"')


async def test_settings_with_keys_that_a_command_made_are_read_by_the_next(shell: Shell):
    await shell.does("printf 'KEY=abc\\n' > .env.example; cp .env.example .env")
    assert "abc" in await shell.does("cat .env; . ./.env; echo $KEY")


async def test_heredocs_temporary_files_and_caches(shell: Shell):
    await shell.does(
        "mkdir -p src ~/.cache/tool; cat > src/new.py <<'E'\nprint('new')\nE\n"
        "echo kept > ~/.cache/tool/x; echo $(mktemp) > temporary; echo y > $(mktemp -d)/y"
    )
    printed = await shell.does("python3 src/new.py; cat ~/.cache/tool/x; ls $(cat temporary)")
    assert printed.startswith("new\nkept\n/")


async def test_a_server_that_is_a_job_is_met_from_inside_and_outside(shell: Shell):
    (shell.context.cwd / "index.html").write_text("hello")
    serve = (
        "import http.server as h; s = h.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler);"
        "open('port', 'w').write(str(s.server_port)); s.serve_forever()"
    )
    output = await shell.run(f'{sys.executable} -c "{serve}"', background=True)
    assert len(output.for_person.jobs) == 1
    ask = "urllib.request.urlopen('http://localhost:' + open('port').read()).read().decode()"
    listens = "until [ -s port ]; do sleep 0.01; done"
    command = f'{listens}; {sys.executable} -c "import urllib.request; print({ask})"'
    assert (await shell.does(command)).startswith("hello")
    port = (shell.context.cwd / "port").read_text()
    proxies = urllib.request.ProxyHandler({})
    opener = urllib.request.build_opener(proxies)

    def met_outside() -> bytes:
        with opener.open(f"http://127.0.0.1:{port}/", timeout=PATIENCE_S) as answer:
            body: bytes = answer.read()
            return body

    assert await asyncio.to_thread(met_outside) == b"hello"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        pytest.param("docker ps", "does not let", marks=needs("docker")),
        pytest.param("systemctl status", "does not let", marks=needs("systemctl")),
        pytest.param("apt-get install -y jq", "does not let", marks=needs("apt-get")),
        pytest.param("strace -f true", "does not let", marks=needs("strace")),
        pytest.param("ssh -T git@example.org", "reach only this machine", marks=needs("ssh")),
        pytest.param("touch /etc/x", "write only in", marks=()),
        pytest.param("ls ~/.ssh", "only programs and the working folders", marks=()),
        pytest.param(
            "mkdir ~/Documents/notes", "notes is not shown. Start with --add-dir", marks=()
        ),
    ],
)
async def test_what_cannot_work_inside_says_how_to_ask(shell: Shell, command: str, why: str):
    told = await shell.fails(command)
    assert why in told, told
    assert _OFFERS in told


@pytest.mark.parametrize("shell", ["landlock"], indirect=True)
async def test_without_a_tmp_of_its_own_a_command_is_told_where_its_temporary_folder_is(
    shell: Shell,
):
    assert "$TMPDIR" in await shell.fails("echo x > /tmp/x")


@needs("git")
async def test_an_agents_work_trees_come_and_go_beside_its_settings(shell: Shell):
    (shell.context.cwd / ".claude").mkdir()
    (shell.context.cwd / ".claude/settings.json").write_text("{}\n")
    (shell.context.cwd / ".claude/skills").mkdir()
    (shell.context.cwd / ".claude/skills/a.md").write_text("a\n")
    subprocess.run(["git", "init", "-q"], cwd=shell.context.cwd, check=True)
    who = "-c user.name=Ada -c user.email=ada@example.org"
    script = f"git add .; git {who} commit -qm one; echo 2 > a; git add a; git {who} commit -qm two"
    subprocess.run(["bash", "-ec", script], cwd=shell.context.cwd, check=True)
    tree = ".claude/worktrees/fix"
    for command in (
        f"git worktree add -q {tree} -b fix; cat {tree}/.claude/settings.json",
        f'cd {tree}; git switch -q --detach HEAD~1; echo 1 > new; test -z "$(git ls-files -m)"',
        f"git worktree remove --force {tree}; git worktree add -q {tree}2 -b fix2",
        f"test -f {tree}2/a; git status --porcelain | grep -q '^?? .claude/worktrees/$'",
    ):
        output = await shell.run(f"set -e; {command}")
        assert not output.is_error, output.for_model
        assert not output.held
    assert (shell.context.cwd / f"{tree}2/a").is_file()
    output = await shell.run("echo evil > .claude/skills/a.md; echo evil > .claude/new")
    assert {held.path.name for held in output.held} == {"a.md", "new"}
    assert (shell.context.cwd / ".claude/skills/a.md").read_text() == "a\n"


@needs("git")
async def test_no_command_prints_a_token_of_gits_settings(shell: Shell):
    script = "git init -q; git remote add o https://ada:s3cret-t0ken@git.example/x"
    subprocess.run(["bash", "-ec", script], cwd=shell.context.cwd, check=True)
    for command in (
        "git remote -v",
        "git config -l",
        "grep url .git/config",
        "git remote get-url o",
    ):
        printed = await shell.does(command)
        assert "s3cret-t0ken" not in printed
        assert "git.example/x" in printed


@needs("git")
async def test_a_switch_in_a_part_of_a_repository_says_what_git_could_not_change(shell: Shell):
    top = shell.context.cwd
    script = (
        "git init -q -b main; mkdir a b; echo 1 > a/f; echo 1 > b/f; git add .; git commit -qm 1;"
        "git switch -qc other; echo 2 > a/f; echo 2 > b/f; git commit -qam 2; git switch -q main"
    )
    environ = {**shell.context.environ, "HOME": str(shell.sandbox.home)}
    subprocess.run(["bash", "-ec", script], cwd=top, env=environ, check=True)
    shell.context.cwd = top / "a"
    printed = (await shell.run("git switch -q other")).for_model
    assert f"start with --add-dir {top}" in printed
    assert (top / "b/f").read_text() == "1\n"


@needs("git")
async def test_a_folder_without_a_repository_is_none_because_of_no_mount(shell: Shell):
    printed = await shell.fails("git status")
    assert "or any of the parent directories" in printed
    assert _OFFERS not in printed
