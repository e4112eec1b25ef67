import asyncio
import socket
import subprocess
from pathlib import Path

import pytest

from agent_tui.config import SandboxMode
from agent_tui.errors import ToolError
from agent_tui.tools.base import Intent, ToolContext, ToolOutput
from agent_tui.tools.processes.sandbox import (
    Sandbox,
    SandboxPlan,
    bwrap_argv,
    plan_for,
    refusal_hint,
)
from agent_tui.tools.registry import default_toolbox
from tests.support.processes import alive, nap
from tests.support.tool_calls import KEEPER

WORKSPACE, SCRATCH = Path("/home/ada/proj"), Path("/home/ada/.cache/tmp-1")


def box(mode: SandboxMode, folder: Path, path: str = "/usr/bin:/bin") -> Sandbox:
    return Sandbox(
        mode,
        home=folder / "home",
        own_folders=(folder / "workspace/own",),
        scratch_parent=folder / "cache",
        environ={"PATH": path},
    )


def _works() -> bool:
    try:
        tried = subprocess.run(
            ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"],
            capture_output=True,
        )
    except OSError:
        return False
    return tried.returncode == 0


needs_bwrap = pytest.mark.skipif(not _works(), reason="bubblewrap does not work here")


@pytest.fixture
def boxed(tmp_path: Path, context: ToolContext) -> ToolContext:
    """A context whose home holds keys, and its workspace settings of ours and notes."""
    for name in ("home/.ssh/id_rsa", "home/.netrc", "workspace/own/secret", "workspace/notes"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("canary\n")
    context.environ["HOME"] = str(tmp_path / "home")
    return context


def prepared(context: ToolContext, sandbox: Sandbox, command: str):
    toolbox = default_toolbox(KEEPER, sandbox=sandbox)
    return toolbox.prepare("bash", {"command": command}, context)


async def bash(context: ToolContext, sandbox: Sandbox, command: str) -> ToolOutput:
    return await prepared(context, sandbox, command).run()


def intent(context: ToolContext, sandbox: Sandbox) -> Intent:
    return prepared(context, sandbox, "ls").intent


def position(words: tuple[str, ...], *run: str) -> int:
    return next(at for at in range(len(words)) if words[at : at + len(run)] == run)


def test_the_workspace_is_laid_over_the_read_only_system_and_keys_over_that():
    plan = SandboxPlan(
        workspace=WORKSPACE,
        scratch=SCRATCH,
        hidden_folders=(Path("/home/ada"), Path("/home/ada/proj/.ssh"), Path("/run")),
        hidden_files=(Path("/home/ada/proj/.netrc"),),
        read_only=(WORKSPACE / ".git/hooks",),
    )
    words = bwrap_argv("/usr/bin/bwrap", plan)
    work, hooks = str(WORKSPACE), str(WORKSPACE / ".git/hooks")
    places = [
        position(words, "--ro-bind", "/", "/"),
        position(words, "--bind", str(SCRATCH), "/tmp"),
        position(words, "--tmpfs", "/home/ada"),
        position(words, "--bind", work, work),
        position(words, "--tmpfs", "/home/ada/proj/.ssh"),
        position(words, "--ro-bind", "/dev/null", "/home/ada/proj/.netrc"),
        position(words, "--ro-bind", hooks, hooks),
        position(words, "--chdir", work, "--"),
    ]
    assert places == sorted(places)
    assert {"--unshare-all", "--die-with-parent", "--new-session"} <= set(words)
    assert words[-1] == "--"
    assert words.count("--tmpfs") == 3


def test_the_plan_follows_links_and_leaves_out_what_is_not_there(tmp_path: Path):
    home, work = tmp_path / "home", tmp_path / "work"
    (tmp_path / "elsewhere").mkdir()
    (work / ".git/hooks").mkdir(parents=True)
    home.mkdir()
    (home / ".ssh").symlink_to(tmp_path / "elsewhere")
    (home / ".netrc").write_text("")
    (tmp_path / "link").symlink_to(work)
    plan = plan_for(tmp_path / "link", home, (work, tmp_path / "none"), tmp_path)
    assert plan.workspace == work
    assert tmp_path / "elsewhere" in plan.hidden_folders
    assert not {work, home / ".aws", tmp_path / "none"} & set(plan.hidden_folders)
    assert [file for file in plan.hidden_files if file.is_relative_to(tmp_path)] == [
        home / ".netrc"
    ]
    assert plan.read_only == (work / ".git/hooks",)


def test_an_added_folder_is_written_but_for_what_git_obeys_in_it(tmp_path: Path):
    home, work, added = (tmp_path / name for name in ("home", "work", "home/secret/added"))
    for folder in (work, added / ".git/hooks"):
        folder.mkdir(parents=True)
    plan = plan_for(work, home, (home / "secret",), tmp_path, (added,))
    words = bwrap_argv("/usr/bin/bwrap", plan)
    hooks = str(added / ".git/hooks")
    places = [
        position(words, "--tmpfs", str(home / "secret")),
        position(words, "--bind", str(added), str(added)),
        position(words, "--ro-bind", hooks, hooks),
        position(words, "--chdir", str(work), "--"),
    ]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("curl: (6) Could not resolve host: example.org", "no network"),
        ("npm ERR! getaddrinfo EAI_AGAIN registry", "no network"),
        ("touch: cannot touch '/x': Read-only file system", "only in"),
        ("AssertionError", ""),
        ("", ""),
    ],
)
def test_a_failure_is_explained_only_where_the_sandbox_is_the_likely_cause(output: str, said: str):
    assert said in refusal_hint(output)
    assert bool(said) == bool(refusal_hint(output))


def test_off_tries_nothing(tmp_path: Path):
    sandbox = box("off", tmp_path, path="")
    assert (sandbox.word(tmp_path), sandbox.refusal(tmp_path)) == ("", "")
    assert sandbox.prefix(tmp_path) == ()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("script", [None, "echo 'bwrap: No permissions' >&2; exit 1", "kill -9 $$"])
async def test_on_without_a_working_bubblewrap_runs_nothing(
    context: ToolContext, tmp_path: Path, script: str | None
):
    if script is not None:
        program = tmp_path / "bin/bwrap"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    sandbox = box("on", tmp_path, path=str(tmp_path / "bin"))
    why = "No permissions" if script and "No" in script else "bubblewrap"
    with pytest.raises(ToolError, match=f'sandbox = "on".*{why}'):
        intent(context, sandbox)
    assert sandbox.word(context.cwd) == "no sandbox"
    context.is_persons = True
    assert (await bash(context, sandbox, "echo mine")).for_model == "mine\n[exit code 0]"


async def test_auto_without_bubblewrap_runs_as_ever(context: ToolContext, tmp_path: Path):
    sandbox = box("auto", tmp_path, path=str(tmp_path))
    assert intent(context, sandbox).note == ""
    assert (await bash(context, sandbox, "echo on")).for_model == "on\n[exit code 0]"


def test_a_workspace_that_holds_the_home_folder_is_not_called_sandboxed(tmp_path: Path):
    (tmp_path / "bwrap").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "bwrap").chmod(0o755)
    (tmp_path / "home/proj").mkdir(parents=True)
    sandbox = box("auto", tmp_path, path=f"{tmp_path}:/bin")
    assert "home folder" in sandbox.state(tmp_path).problem
    assert "home folder" in sandbox.state(tmp_path / "home").problem
    assert sandbox.state(tmp_path / "home/proj").is_on


@needs_bwrap
async def test_inside_only_the_workspace_and_a_tmp_of_its_own_are_written(
    boxed: ToolContext, tmp_path: Path
):
    sandbox = box("on", tmp_path)
    command = "touch here /tmp/there; ls /tmp; cat notes; touch /x /usr/x /etc/x"
    output = await bash(boxed, sandbox, command)
    assert "there\n" in output.for_model
    assert "canary" in output.for_model
    assert output.for_model.count("Read-only file system") == 3
    assert "[the sandbox lets commands write only" in output.for_model
    assert (boxed.cwd / "here").exists()
    assert not Path("/tmp/there").exists()
    assert (await bash(boxed, sandbox, "ls /tmp/there")).for_model.startswith("/tmp/there\n")
    scratch = list((tmp_path / "cache").iterdir())
    del sandbox
    assert len(scratch) == 1
    assert not scratch[0].exists()


@needs_bwrap
async def test_inside_there_are_no_keys_no_processes_and_no_network(
    boxed: ToolContext, tmp_path: Path
):
    sandbox = box("on", tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        script = (
            f"cat ~/.ssh/* ~/.netrc own/*; ls own; ls /run; ls -d /proc/[0-9]*;"
            f"exec 3<>/dev/tcp/127.0.0.1/{port}"
        )
        output = await bash(boxed, sandbox, script)
    assert "canary" not in output.for_model
    assert "own/*" in output.for_model
    assert "Connection refused" in output.for_model
    assert len([line for line in output.for_model.split("\n") if line.startswith("/proc/")]) < 5


@needs_bwrap
async def test_inside_git_can_commit_but_not_change_what_runs_later(
    boxed: ToolContext, tmp_path: Path
):
    subprocess.run(["git", "init", "-q", str(boxed.cwd)], check=True)
    command = (
        "git -c user.name=A -c user.email=a commit -qm x --allow-empty && echo committed;"
        "echo x > .git/hooks/post-commit; echo x >> .git/config; mv .git/hooks .git/other;"
        "git config core.pager evil"
    )
    output = await bash(boxed, box("on", tmp_path), command)
    assert output.for_model.startswith("committed\n")
    assert not (boxed.cwd / ".git/hooks/post-commit").exists()
    assert "evil" not in (boxed.cwd / ".git/config").read_text()


@needs_bwrap
async def test_inside_no_folder_around_what_git_runs_can_be_exchanged(
    boxed: ToolContext, tmp_path: Path
):
    subprocess.run(["git", "init", "-q", str(boxed.cwd)], check=True)
    command = (
        "mv .git aside; mkdir -p .git/hooks && echo marker > .git/hooks/pre-commit;"
        "git -c user.name=A -c user.email=a commit -qm x --allow-empty && git branch b && git gc -q"
        " && echo worked"
    )
    output = await bash(boxed, box("on", tmp_path), command)
    assert "Device or resource busy" in output.for_model
    assert "worked\n" in output.for_model
    assert not (boxed.cwd / "aside").exists()
    assert not (boxed.cwd / ".git/hooks/pre-commit").exists()


@needs_bwrap
async def test_inside_nothing_of_the_machine_can_be_set_and_its_secrets_are_not_there(
    boxed: ToolContext, tmp_path: Path
):
    same = "cat /proc/sys/kernel/panic > /proc/sys/kernel/panic"
    command = f"({same}) && echo was set; cat /etc/shadow | wc -c; ls -A /etc/ssh /etc/ssl/private"
    output = await bash(boxed, box("on", tmp_path), command)
    assert "Read-only file system" in output.for_model
    assert "was set" not in output.for_model
    assert "\n0\n" in output.for_model
    assert not {"ssh_host_rsa_key", "ssl-cert-snakeoil.key"} & set(output.for_model.split())


@needs_bwrap
async def test_the_person_is_told_and_their_own_commands_are_not_boxed(
    boxed: ToolContext, tmp_path: Path
):
    sandbox = box("auto", tmp_path)
    assert intent(boxed, sandbox).place == "inside"
    assert sandbox.word(boxed.cwd) == "sandbox"
    boxed.is_persons = True
    assert intent(boxed, sandbox).place == "open"
    assert (await bash(boxed, sandbox, "cat ~/.netrc")).for_model.startswith("canary")


@needs_bwrap
async def test_a_sandboxed_command_is_ended_with_all_it_started(boxed: ToolContext, tmp_path: Path):
    started = asyncio.Event()
    boxed.emit = lambda _text, _skipped=0: started.set()
    command = f"setsid {nap(61_987)} & echo go; trap '' TERM; {nap(61_987)}"
    running = asyncio.create_task(bash(boxed, box("on", tmp_path), command))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert alive(nap(61_987)) == []


@needs_bwrap
def test_a_cache_that_cannot_be_written_does_not_turn_the_sandbox_off(tmp_path: Path):
    (tmp_path / "cache").write_text("")
    (tmp_path / "workspace").mkdir()
    assert box("auto", tmp_path).state(tmp_path / "workspace").is_on
