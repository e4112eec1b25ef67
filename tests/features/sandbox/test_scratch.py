"""All tools mean the same by ``/tmp``: what commands in the sandbox have there."""

import os
import re
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.cli.command_sandbox import view_of_commands
from agent_tui.config import PermissionSettings
from agent_tui.errors import ToolError
from agent_tui.features.sandbox.folders import Scratch
from agent_tui.features.sandbox.plan import SandboxPlan
from agent_tui.features.sandbox.sandbox import Sandbox
from agent_tui.features.sandbox.wall import WallParts
from agent_tui.features.sandbox.wall_planner import Surroundings
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.tools.base import PreparedCall, ToolContext, ToolOutput
from agent_tui.tools.registry import default_toolbox
from tests.support.sandbox import make_sandbox, needs_bwrap, needs_landlock
from tests.support.tool_calls import KEEPER


def test_only_what_is_not_shared_is_elsewhere(tmp_path: Path) -> None:
    mine, work = tmp_path / "mine", tmp_path / "work"
    (mine / "sub").mkdir(parents=True)
    scratch = Scratch(mine, (work,))
    assert scratch.real(Path("/tmp/sub/x")) == mine / "sub/x"
    assert scratch.real(Path("/var/tmp/new")) == mine / "new"
    assert scratch.real(Path("/etc/hosts")) == Path("/etc/hosts")
    assert scratch.real(work / "x") == work / "x"
    assert scratch.name_inside(mine / "sub/x") == Path("/tmp/sub/x")
    assert scratch.name_inside(work / "x") == work / "x"


def test_a_link_out_of_it_is_what_it_leads_to(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "link").symlink_to("/etc/hosts")
    scratch = Scratch(mine)
    found = scratch.real(Path("/tmp/link"))
    assert found == Path("/etc/hosts").resolve()
    assert not scratch.holds(found)


def test_a_wall_is_tried_in_a_folder_that_the_next_start_removes(tmp_path: Path) -> None:
    tried: list[Path] = []

    def argv(plan: SandboxPlan) -> tuple[str, ...]:
        tried.extend((plan.scratch, plan.home_stand_in, plan.gate))
        return ("false",)

    around = Surroundings(
        tmp_path / "home", (), tmp_path / "sandbox", environ={"PATH": str(tmp_path)}
    )
    for name in ("home", "sandbox"):
        (tmp_path / name).mkdir()
    sandbox = Sandbox("auto", around, WallParts(landlock_argv=argv), keeper=KEEPER)
    assert not sandbox.state(tmp_path / "home/work").is_on
    assert tried
    assert all((tmp_path / "sandbox") in folder.parents for folder in tried)


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return make_sandbox(tmp_path)


@pytest.fixture
def outside() -> Iterator[Path]:
    """A file in the machine's ``/tmp``."""
    with tempfile.NamedTemporaryFile("w", dir="/tmp", prefix="scratch-test-") as file:
        file.write("outside\n")
        file.flush()
        yield Path(file.name)


@pytest.fixture
def unused() -> Path:
    """A path in ``/tmp`` where the machine has nothing."""
    return Path("/tmp", f"scratch-test-{uuid.uuid4().hex}")


def prepared(name: str, context: ToolContext, sandbox: Sandbox, **arguments: str) -> PreparedCall:
    return default_toolbox(KEEPER, sandbox=sandbox).prepare(name, {**arguments}, context)


async def call(name: str, context: ToolContext, sandbox: Sandbox, **arguments: str) -> ToolOutput:
    return await prepared(name, context, sandbox, **arguments).run()


@needs_bwrap
async def test_a_file_that_is_written_is_there_for_commands_and_the_other_way_round(
    context: ToolContext, sandbox: Sandbox, unused: Path
) -> None:
    script, log = f"{unused}.py", f"{unused}.log"
    written = prepared("write", context, sandbox, path=script, content="print(6 * 7)\n")
    assert written.intent.paths == (Path(script),)
    assert written.intent.title == f"create {script} (the sandbox's)"
    output = await written.run()
    assert "deleted when the conversation ends" in output.for_model
    assert output.for_person.files.written == (script,)
    assert not Path(script).exists()
    printed = await call("bash", context, sandbox, command=f"python3 {script} | tee {log}")
    assert "42" in printed.for_model
    read = await call("read", context, sandbox, path=log)
    assert "42" in read.for_model
    assert read.for_person.files.read == (log,)
    found = await call("grep", context, sandbox, pattern="4.", path="/tmp")
    assert log in found.for_model
    scratch = sandbox.scratch(context.cwd)
    assert scratch is not None
    assert os.fspath(scratch.folder) not in found.for_model
    assert Path(script).name in (await call("ls", context, sandbox, path="/tmp")).for_model
    await call("edit", context, sandbox, path=script, old="6", new="5")
    assert "35" in (await call("bash", context, sandbox, command=f"python3 {script}")).for_model
    await sandbox.close_walls()


@needs_bwrap
async def test_a_file_that_only_the_machine_has_is_read_and_not_changed(
    context: ToolContext, sandbox: Sandbox, outside: Path, unused: Path
) -> None:
    read = prepared("read", context, sandbox, path=str(outside))
    assert read.intent.title == f"read {outside}"
    assert "outside" in (await read.run()).for_model
    with pytest.raises(ToolError, match="exists outside only"):
        await call("edit", context, sandbox, path=str(outside), old="outside", new="changed")
    (context.cwd / "link").symlink_to(outside)
    for path in (str(outside), "link"):
        await call("write", context, sandbox, path=path, content="mine\n")
    assert outside.read_text() == "outside\n"
    assert "mine" in (await call("read", context, sandbox, path=str(outside))).for_model
    assert "mine" in (await call("bash", context, sandbox, command=f"cat {outside}")).for_model
    patch = f"*** Begin Patch\n*** Delete File: {outside}\n*** End Patch"
    await call("apply_patch", context, sandbox, patch=patch)
    assert outside.read_text() == "outside\n"
    missed = await call("bash", context, sandbox, command=f"cat {outside} {unused}")
    assert f"{outside} exists outside only" in missed.for_model
    assert f"{unused} exists" not in missed.for_model
    await sandbox.close_walls()


@needs_bwrap
async def test_a_link_that_a_command_makes_leads_no_tool_past_the_question(
    context: ToolContext, sandbox: Sandbox, tmp_path: Path, unused: Path
) -> None:
    link, folder = f"{unused}-link", f"{unused}-dir"
    secret = tmp_path / "secret"
    secret.write_text("canary")
    await call("bash", context, sandbox, command=f"ln -s {secret} {link}")
    asked = prepared("read", context, sandbox, path=link)
    assert asked.intent.paths == (secret,)
    waiting = prepared("write", context, sandbox, path=f"{folder}/x", content="mine\n")
    await call("bash", context, sandbox, command=f"ln -s {tmp_path} {folder}")
    with pytest.raises(ToolError):
        await waiting.run()
    assert not (tmp_path / "x").exists()
    await sandbox.close_walls()


with_each_wall = pytest.mark.parametrize(
    "backend",
    [
        pytest.param("bubblewrap", marks=needs_bwrap),
        pytest.param("landlock", marks=needs_landlock),
    ],
)


def judged(
    context: ToolContext, folder: Path, backend: str
) -> tuple[Sandbox, PermissionEngine, str]:
    """A sandbox, an engine that judges file tools beside it, and the sandbox's own /tmp."""
    programs = os.defpath if backend == "bubblewrap" else str(folder)
    sandbox = make_sandbox(folder, environ={"PATH": programs})
    engine = PermissionEngine(
        mode="accept-edits",
        rules=PermissionSettings(),
        workspace=context.cwd,
        project_rules_file=folder / "permissions.toml",
    )
    engine.work_in((), view_of_commands(sandbox, context.cwd))
    inside, *_ = map(str, sandbox.temporary_folders(context.cwd) or ())
    return sandbox, engine, inside


@with_each_wall
async def test_a_file_tool_writes_unasked_only_the_temporary_files_of_commands(
    context: ToolContext, tmp_path: Path, outside: Path, backend: str
) -> None:
    sandbox, engine, inside = judged(context, tmp_path, backend)
    name = f"{outside.name}-new"
    for mode in ("accept-edits", "full"):
        engine.mode = mode
        for place in (inside, "/tmp", "/var/tmp"):
            made = prepared("write", context, sandbox, path=f"{place}/{name}", content="x\n")
            outcome = "deny" if mode == "full" else "ask"
            expected = "allow" if place == inside or backend == "bubblewrap" else outcome
            assert engine.judge("write", made.intent).decision == expected, (mode, place)
            if expected == "allow":
                await made.run()
        if backend == "landlock":
            await call("read", context, sandbox, path=str(outside))
            changed = prepared("write", context, sandbox, path=str(outside), content="x\n")
            assert "outside the folder" in engine.judge("write", changed.intent).why
    assert not any(Path(place, name).exists() for place in ("/tmp", "/var/tmp"))
    await sandbox.close_walls()


@with_each_wall
async def test_file_tools_read_unasked_what_commands_have_and_files_in_tmp(
    context: ToolContext, tmp_path: Path, outside: Path, backend: str
) -> None:
    sandbox, engine, inside = judged(context, tmp_path, backend)
    await call("write", context, sandbox, path=f"{inside}/mine", content="x\n")
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="scratch-test-") as hidden:
        file = Path(hidden, "notes")
        file.write_text("outside\n")
        found = {
            path: engine.judge(name, prepared(name, context, sandbox, path=path, **more).intent)
            for name, path, more in (
                ("read", f"{inside}/mine", {}),
                ("read", str(outside), {}),
                ("read", str(file), {}),
                ("ls", hidden, {}),
                ("grep", f"{hidden}/", {"pattern": "x"}),
            )
        }
        decided = [verdict.decision for verdict in found.values()]
        assert decided == ["allow", "allow", "ask", "ask", "ask"]
        assert engine.search_filter(Path("/var"))(file)
    await sandbox.close_walls()


@needs_bwrap
async def test_at_the_end_it_is_gone(context: ToolContext, sandbox: Sandbox, unused: Path) -> None:
    await call("write", context, sandbox, path=str(unused), content="x\n")
    await sandbox.close_walls()
    with pytest.raises(ToolError, match=re.escape(f"no file {unused}")):
        await call("read", context, sandbox, path=str(unused))
    await sandbox.close_walls()


async def test_without_a_wall_tmp_is_the_machines(context: ToolContext, outside: Path) -> None:
    box = default_toolbox(KEEPER)
    assert "outside" in (await box.prepare("read", {"path": str(outside)}, context).run()).for_model
    await box.prepare("write", {"path": str(outside), "content": "x\n"}, context).run()
    assert outside.read_text() == "x\n"
