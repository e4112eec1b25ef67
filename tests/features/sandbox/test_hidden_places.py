"""Homes, temporary folders, shares, other disks: hidden as a whole but for what commands need."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest

from agent_tui.features.sandbox.home import HomeView, find_hidden
from agent_tui.features.sandbox.plan import Backend
from agent_tui.features.sandbox.sandbox import Sandbox
from agent_tui.tools.base import ToolContext
from agent_tui.tools.registry import default_toolbox
from tests.support.sandbox import make_sandbox, needs_bwrap, needs_landlock, run_inside
from tests.support.tool_calls import KEEPER
from tests.support.users import User, system_folders

pytestmark = pytest.mark.parametrize(
    "backend",
    [
        pytest.param("bubblewrap", marks=needs_bwrap),
        pytest.param("landlock", marks=needs_landlock),
    ],
)


@pytest.fixture
def place() -> Iterator[Path]:
    """A hidden place, which is not in ``/tmp`` if that is possible."""
    with system_folders(User("self", os.getuid(), ())) as folders:
        made = folders[0] / "srv"
        made.mkdir()
        yield made


@pytest.fixture
async def sandbox(
    place: Path, tmp_path: Path, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Sandbox]:
    """In the working folder ``mono/app`` of the place, which has more."""
    program(place / "tools/v1/bin/tool", "echo tool")
    (place / "tools/now").symlink_to("v1")
    program(place / "venv/bin/python", "echo venv")
    (place / "mono/app").mkdir(parents=True)
    for name in ("mono/core", "other"):
        (place / name).mkdir(parents=True)
        (place / name / "deploy.key").write_text("decoy")
    path = f"{place}/tools/now/bin:{place}/venv/bin"
    programs = os.defpath if backend == "bubblewrap" else str(without_bwrap(tmp_path))
    environ = {"PATH": f"{path}:{programs}", "VIRTUAL_ENV": str(place / "venv")}
    made = make_sandbox(tmp_path, environ=environ, hidden_places=(place,))
    assert made.state(place / "mono/app").backend == backend
    yield made
    await made.close_walls()


def program(file: Path, script: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


def without_bwrap(folder: Path) -> Path:
    (folder / "bin").mkdir()
    for name in ("git", "true", "bash"):
        (folder / "bin" / name).symlink_to(shutil.which(name) or "")
    return folder / "bin"


async def test_only_working_folders_and_programs_exist(sandbox: Sandbox, place: Path):
    work = place / "mono/app"
    command = (
        f"{place}/tools/now/bin/tool; {place}/venv/bin/python; echo x > made; cat made;"
        f"cat {place}/other/deploy.key {place}/mono/core/deploy.key; ls {place}/other"
    )
    code, printed = await run_inside(sandbox, work, command)
    assert code != 0
    assert printed.splitlines()[:3] == ["tool", "venv", "x"]
    assert "decoy" not in printed
    assert (work / "made").read_text() == "x\n"
    assert sandbox.shows(work, place / "venv/bin/python")
    assert not sandbox.shows(work, place / "other/deploy.key")
    assert not sandbox.shows(work, place)


async def test_what_a_home_folder_has_is_hidden_on_another_disk_too(
    place: Path, tmp_path: Path, backend: Backend
):
    work = tmp_path / "home/work"
    work.mkdir(parents=True)
    for name in ("config", "data", "cache"):
        (place / name / "x").mkdir(parents=True)
        (place / name / "x/key").write_text("decoy")
    program(place / "data/tool/bin/tool", "echo tool")
    programs = os.defpath if backend == "bubblewrap" else str(without_bwrap(tmp_path))
    environ = {
        "PATH": f"{place}/data/tool/bin:{programs}",
        "XDG_CONFIG_HOME": f"{place}/config",
        "XDG_DATA_HOME": f"{place}/data",
        "XDG_CACHE_HOME": f"{place}/cache",
        "XDG_STATE_HOME": "relative",
    }
    sandbox = make_sandbox(tmp_path, environ=environ, hidden_places=())
    assert sandbox.state(work).backend == backend
    command = f"{place}/data/tool/bin/tool; cat {place}/*/x/key {place}/config/x/key; true"
    assert (await run_inside(sandbox, work, command))[1].splitlines()[0] == "tool"
    assert "decoy" not in (await run_inside(sandbox, work, command))[1]
    assert not sandbox.shows(work, place / "config/x/key")
    assert not any(name in sandbox.environ(work, environ) for name in environ if "XDG" in name)
    await sandbox.close_walls()


@pytest.mark.parametrize("at", ["home", "elsewhere"])
async def test_caches_and_keys_of_tools_are_hidden_wherever_variables_say_that_they_are(
    place: Path, tmp_path: Path, backend: Backend, at: str
):
    top = place if at == "elsewhere" else tmp_path / "home/.local/share"
    work, cargo = tmp_path / "home/work", top / "cargo"
    program(cargo / "bin/tool", "echo tool")
    for folder in (cargo, top / "go/src", work / ".npm"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "credentials.toml").write_text("decoy")
    (cargo / "config.toml").write_text("[net]\n")
    programs = os.defpath if backend == "bubblewrap" else str(without_bwrap(tmp_path))
    environ = {
        "PATH": f"{cargo}/bin:{programs}",
        "CARGO_HOME": str(cargo),
        "GOPATH": f"{top}/go:{top}/none",
        "npm_config_cache": f"{work}/.npm",
        "PIP_CACHE_DIR": f"{tmp_path}/home/.cache/pip/more",
        "UV_CACHE_DIR": "relative",
        "GOCACHE": str(tmp_path),
    }
    caches = ((tmp_path / "home/.cache/pip", tmp_path / "pip"),)
    sandbox = make_sandbox(tmp_path, environ=environ, hidden_places=(), caches=caches)
    assert sandbox.state(work).backend == backend
    shown = f"touch {work}/.npm/x; {cargo}/bin/tool; cat ~/.cargo/config.toml; cat"
    _, printed = await run_inside(sandbox, work, f"{shown} {top}/*/*.toml {top}/*/*/*.toml")
    assert printed.startswith("tool\n[net]\n")
    assert "decoy" not in printed
    assert (work / ".npm/x").exists()
    inside = sandbox.environ(work, environ)
    kept = {"PIP_CACHE_DIR"} if backend == "bubblewrap" else set[str]()
    assert inside.keys() & environ.keys() == {"PATH", "npm_config_cache", *kept}
    await sandbox.close_walls()


async def test_a_variable_that_names_the_usual_place_of_a_cache_changes_nothing(
    tmp_path: Path, backend: Backend
):
    work, cache = tmp_path / "home/work", tmp_path / "home/.npm"
    for folder in (work, cache):
        folder.mkdir(parents=True)
    (cache / "users").touch()
    programs = os.defpath if backend == "bubblewrap" else str(without_bwrap(tmp_path))
    environ = {"PATH": programs, "npm_config_cache": str(cache), "HOME": str(tmp_path / "home")}
    caches = ((cache, tmp_path / "own"),)
    sandbox = make_sandbox(tmp_path, environ=environ, hidden_places=(), caches=caches)
    assert sandbox.state(work).backend == backend
    await run_inside(sandbox, work, "touch ~/.npm/x")
    named = sandbox.environ(work, environ).get("npm_config_cache", "~/.npm")
    assert (await run_inside(sandbox, work, f"touch {named}/y; ls {named}"))[1] == "x\ny\n"
    assert sorted(path.name for path in cache.iterdir()) == ["users"]
    await sandbox.close_walls()


async def test_what_a_variable_names_and_only_its_owner_can_read_is_hidden(
    place: Path, tmp_path: Path, backend: Backend
):
    work = place / "work"
    work.mkdir()
    (place / "docker").mkdir(mode=0o700)
    program(place / "java/bin/java", "echo java")
    (place / "java").chmod(0o700)
    for name, mode in (("docker/x", 0o644), ("kube", 0o600), ("ca.pem", 0o644), ("work/z", 0o600)):
        (place / name).write_text(f"{name}\n")
        (place / name).chmod(mode)
    programs = os.defpath if backend == "bubblewrap" else str(without_bwrap(tmp_path))
    environ = {
        "PATH": f"{place}/java/bin:{programs}",
        "DOCKER_CONFIG": f"{place}/docker",
        "KUBECONFIG": f"{place}/none:{place}/kube",
        "CURL_CA_BUNDLE": f"{place}/ca.pem",
        "KEYFILE": f"{work}/z",
        "JAVA_HOME": f"{place}/java",
    }
    found = find_hidden(environ)
    assert {place / "docker", place / "kube", work / "z"} <= set(found)
    assert (Path("/var/mail") in found) == Path("/var/mail").is_dir()
    assert not {place / "java", place / "java/bin"} & set(found)
    assert (place / "ca.pem" in found) == any(not p.stat().st_mode & 0o77 for p in place.parents)
    sandbox = make_sandbox(tmp_path, environ=environ, hidden_places=())
    _, printed = await run_inside(sandbox, work, f"cat z {place}/docker/x {place}/kube")
    assert printed.startswith("work/z\n")
    assert "docker/x\n" not in printed
    assert "kube\n" not in printed
    await sandbox.close_walls()


async def test_of_a_disk_with_programs_only_what_they_need_is_shown(
    place: Path, tmp_path: Path, backend: Backend
):
    program(place / "bin/tool", f"cat {place}/lib/text")
    for name in ("lib", "libs/more", "share"):
        (place / name).mkdir(parents=True)
        (place / name / "text").write_text(f"{name}\n")
    programs = os.defpath if backend == "bubblewrap" else str(without_bwrap(tmp_path))
    environ = {"PATH": f"{place}/bin:{programs}", "LD_LIBRARY_PATH": f"{place}/libs/more:{place}"}
    sandbox = make_sandbox(tmp_path, environ=environ, hidden_places=(place,))
    (tmp_path / "work").mkdir()
    command = f"{place}/bin/tool; cat {place}/libs/more/text {place}/share/text"
    _, printed = await run_inside(sandbox, tmp_path / "work", command)
    assert printed.splitlines()[:2] == ["lib", "libs/more"]
    assert printed.splitlines()[2:] != ["share"]
    await sandbox.close_walls()


async def test_what_is_written_there_is_not_lost_without_a_word(
    sandbox: Sandbox, place: Path, backend: Backend
):
    if backend == "bubblewrap" and Path("/tmp") in place.parents:
        pytest.skip("no other folder of the system can be written, and /tmp has a stand-in")
    code, printed = await run_inside(sandbox, place / "mono/app", f"echo x > {place}/lost")
    assert code != 0
    assert "Read-only" in printed or "denied" in printed
    assert not (place / "lost").exists()


async def test_a_place_that_is_worked_in_is_shown(place: Path, tmp_path: Path, backend: Backend):
    (place / "x").write_text("here")
    (place / "disk").mkdir()
    path = os.defpath if backend == "bubblewrap" else str(without_bwrap(tmp_path))
    sandbox = make_sandbox(tmp_path, environ={"PATH": path}, hidden_places=(place, place / "disk"))
    assert (await run_inside(sandbox, place, "cat x; echo y > y; touch disk/z"))[1] == "here"
    assert (place / "disk/z").exists()
    assert (place / "y").exists()
    await sandbox.close_walls()


async def test_a_command_that_fails_there_is_told_how_to_show_it(
    sandbox: Sandbox, place: Path, context: ToolContext
):
    work = place / "mono/app"
    context = replace(context, cwd=work, environ={"PATH": os.defpath, "HOME": str(sandbox.home)})
    (sandbox.home / "notes").mkdir()

    async def says(command: str) -> str:
        toolbox = default_toolbox(KEEPER, sandbox=sandbox)
        return (await toolbox.prepare("bash", {"command": command}, context).run()).for_model

    core = place / "mono/core"
    line = f"[{core} is not shown. Start with --add-dir {core} to show it.]"
    assert line in await says(f"cat {core}/deploy.key")
    assert line in await says(f"cat {core}/deploy.key 2>&1")
    whole = f"[{place} is not shown. Start with --add-dir {place} to show it.]"
    assert whole in await says(f"ls -d {place}/.; cat {place}; false")
    assert f"of {sandbox.home}, only programs" in await says("ls ~")
    assert "of " not in await says("ls ~")
    assert "is not shown" in await says("ls ~/notes 2>&1 | tail -1")
    assert "is not shown" not in await says("cat /nowhere/x; ls .")
    for command in ("cat /proc/1/maps", "ls /proc/2/fd", "ls /dev/mem", "head -c1 /dev/kmsg"):
        said = await says(f"echo printed; {command}; false")
        assert said.startswith("printed\n")
        assert "internal error" not in said
        assert "is not shown" not in said


async def test_what_is_mounted_below_home_is_shown(
    tmp_path: Path, backend: Backend, context: ToolContext
):
    if backend == "landlock":
        pytest.skip("it protects nothing in folders that can be written")
    work, git = tmp_path / "work", tmp_path / "home/gits/x.git"
    work.mkdir()
    sandbox = make_sandbox(tmp_path)
    assert not sandbox.shows(work, git)
    git.parent.mkdir()
    git_init = ["git", "init", "-q", f"--separate-git-dir={git}", str(work)]
    subprocess.run(git_init, check=True)
    context = replace(context, cwd=work, environ={"PATH": os.defpath, "HOME": str(sandbox.home)})
    toolbox = default_toolbox(KEEPER, sandbox=sandbox)
    command = f"cat {git}/config && echo x >> {git}/config"
    said = (await toolbox.prepare("bash", {"command": command}, context).run()).for_model
    assert said.startswith("[core]")
    assert "is not shown" not in said
    assert "commands in the sandbox write only in the working folders" in said
    await sandbox.close_walls()


@pytest.mark.thorough
async def test_relative_paths_and_each_of_several_are_named(
    sandbox: Sandbox, place: Path, context: ToolContext
):
    work, core = place / "mono/app", place / "mono/core"
    context = replace(context, cwd=work, environ={"PATH": os.defpath, "HOME": str(sandbox.home)})

    async def says(command: str) -> str:
        toolbox = default_toolbox(KEEPER, sandbox=sandbox)
        return (await toolbox.prepare("bash", {"command": command}, context).run()).for_model

    line = f"[{core} is not shown. Start with --add-dir {core} to show it.]"
    for command in (
        "git -C ../core log",
        "cd ../core && ls",
        "git init -q . && git remote add up ../core && git fetch -q up",
    ):
        assert line in await says(command), command
    said = await says("cat ../core/deploy.key ../../other/deploy.key ../none/x")
    assert said.count("is not shown") == 2
    assert f"[{place}/other is not shown." in said
    said = await says(f"cat {sandbox.home}/.bashrc")
    assert "the read tool shows a file there with permission" in said


def test_nothing_that_others_may_change_is_shown(tmp_path: Path, backend: Backend):
    if backend == "landlock":
        pytest.skip("it is the same for all")
    view = HomeView(frozenset((tmp_path,)))
    for name, mode in (("mine", 0o755), ("group", 0o775), ("everybody", 0o777)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
        view.add(tmp_path / name)
    (tmp_path / "everybody/mine").mkdir()
    view.add(tmp_path / "everybody/mine")
    view.add(tmp_path)
    assert sorted(path.name for path in view.readable) == ["group", "mine"]


@needs_bwrap
async def test_an_environment_in_tmp_is_the_same_for_commands_and_file_tools(
    tmp_path: Path, backend: Backend, context: ToolContext
):
    if backend == "landlock":
        pytest.skip("it has no stand-in for /tmp")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        work, environment = Path(folder, "work"), Path(folder, "env")
        work.mkdir()
        program(environment / "bin/python", "echo of the environment")
        (environment / "bin/link").symlink_to("python")
        Path(folder, "current").symlink_to("env")
        path = f"{folder}/current/bin:{os.defpath}"
        sandbox = make_sandbox(tmp_path, environ={"PATH": path})
        words = f"{folder}/current/bin/link; {environment}/bin/python; ls {folder}"
        _, printed = await run_inside(sandbox, work, words)
        scratch = sandbox.scratch(work)
        assert scratch is not None
        assert scratch.real(environment / "bin/python") == environment / "bin/python"
        assert printed.splitlines() == [*["of the environment"] * 2, "current", "env", "work"]
        await sandbox.close_walls()


async def test_settings_with_tokens_among_toolchains_are_hidden(
    place: Path, tmp_path: Path, backend: Backend
):
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    token = "https://ada:decoy@pypi.example/simple"
    node, tools = ".nvm/versions/node", ".local/share"
    secret = {
        f"{home}/{node}/v20/etc/npmrc": "//npm.example/:_authToken=decoy",
        f"{home}/{tools}/pipx/venvs/x/pipx_metadata.json": f'{{"pip_args": ["-i", "{token}"]}}',
        f"{home}/{tools}/virtualenvs/x/pip.conf": f"[global]\nindex-url = {token}",
        f"{home}/.asdf/installs/nodejs/22/.netrc": "machine x login ada password decoy",
        f"{place}/conda/.condarc": "channels: [https://conda.example/t/decoy/team]",
        f"{place}/conda/conda-meta/state": '{"env_vars": {"API_KEY": "decoy"}}',
        f"{place}/conda/etc/conda/activate.d/env_vars.sh": "export API_KEY=decoy",
        f"{home}/.sdkman/candidates/maven/4/conf/settings.xml": "<password>decoy</password>",
        f"{place}/venv/pip.conf": f"[global]\nindex-url = {token}",
        f"{place}/venv/bin/postactivate": "export API_TOKEN=decoy",
        f"{home}/.virtualenvs/postactivate": "export API_TOKEN=decoy",
    }
    plain = {
        f"{home}/{node}/v22/etc/npmrc": "registry=https://registry.npmmirror.com",
        f"{home}/.sdkman/candidates/maven/3/conf/settings.xml": "<!-- <password>x</password> -->",
        f"{place}/conda/ssl/cacert.pem": "-----BEGIN CERTIFICATE-----",
        f"{place}/conda/conda-meta/history": "==> 2024-01-31 <==",
    }
    for name, text in (secret | plain).items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(f"{text}\n")
    programs = os.defpath if backend == "bubblewrap" else str(without_bwrap(tmp_path))
    environ = {
        "PATH": f"{place}/conda/bin:{place}/venv/bin:{programs}",
        "CONDA_PREFIX": f"{place}/conda",
        "VIRTUAL_ENV": f"{place}/venv",
    }
    for name in ("conda", "venv"):
        program(place / name / "bin/python", "echo")
    sandbox = make_sandbox(tmp_path, environ=environ, hidden_places=(place,))
    assert sandbox.state(work).backend == backend
    try:
        for _ in range(2):  # the second command gets a plan that was updated
            readable = f"cat {' '.join(plain)}; cat {' '.join(secret)} 2>/dev/null; true"
            printed = (await run_inside(sandbox, work, readable))[1]
            assert printed.splitlines() == list(plain.values())
    finally:
        await sandbox.close_walls()


@pytest.mark.thorough
async def test_file_tools_see_no_place_of_programs_that_commands_do_not_see(
    tmp_path: Path, backend: Backend
):
    work = tmp_path / "work"
    work.mkdir()
    programs = os.defpath if backend == "bubblewrap" else str(without_bwrap(tmp_path))
    sandbox = make_sandbox(tmp_path, environ={"PATH": programs})
    assert sandbox.state(work).backend == backend
    own_process = Path("/proc", str(os.getpid()))
    with NamedTemporaryFile(dir="/dev/shm") as file:
        memory = Path(file.name)
        for path in (memory, own_process, Path("/run"), Path("/proc/cpuinfo"), Path("/dev/null")):
            words = (
                f"ls {path} >/dev/null 2>&1"
                if path != own_process
                else f"grep -q python {path}/cmdline"
            )
            code, _ = await run_inside(sandbox, work, words)
            is_same = code == 0 and not (path == Path("/run") and backend == "bubblewrap")
            assert sandbox.shows(work, path) is is_same, path
    assert sandbox.shows(work, tmp_path / "x")
    assert not sandbox.shows(work, Path("/run/lock/x"))
    await sandbox.close_walls()
