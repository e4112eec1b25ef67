"""`bash` as the model calls it: inside the wall, outside it on request, and as the person."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from agent_tui.errors import ToolError
from agent_tui.features.sandbox.made_sockets import MadeSockets
from agent_tui.features.sandbox.proxy import NetworkGate
from agent_tui.features.sandbox.sandbox import Sandbox
from agent_tui.features.sandbox.wall import WallParts
from agent_tui.messages import JsonObject
from agent_tui.tools.base import PreparedCall, ToolContext, ToolOutput
from agent_tui.tools.registry import default_toolbox
from tests.support.sandbox import make_sandbox, needs_bwrap
from tests.support.tool_calls import KEEPER


def prepared(context: ToolContext, sandbox: Sandbox, command: str, **more: object) -> PreparedCall:
    arguments: JsonObject = {"command": command, **more}  # pyright: ignore[reportAssignmentType]
    return default_toolbox(KEEPER, sandbox=sandbox).prepare("bash", arguments, context)


async def bash(context: ToolContext, sandbox: Sandbox, command: str, **more: object) -> ToolOutput:
    return await prepared(context, sandbox, command, **more).run()


def without_bwrap(folder: Path, mode: str, script: str | None = None) -> Sandbox:
    programs = folder / "bin"
    programs.mkdir()
    path = str(programs)
    if script is not None:
        path += f":{os.defpath}"
        (programs / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
        (programs / "bwrap").chmod(0o755)
    parts = WallParts(landlock_argv=lambda _plan: ("/bin/false",))
    around = {"parts": parts, "environ": {"PATH": path}}
    return make_sandbox(folder, mode, **around)  # pyright: ignore[reportArgumentType]


def test_off_tries_nothing(context: ToolContext, tmp_path: Path):
    sandbox = without_bwrap(tmp_path, "off", "touch tried")
    assert prepared(context, sandbox, "ls").intent.place == "open"
    assert (sandbox.word(context.cwd), sandbox.refusal(context.cwd)) == ("sandbox off", "")
    assert not (tmp_path / "walls").exists()


@pytest.mark.parametrize("script", [None, "echo 'bwrap: No permissions' >&2; exit 1", "kill -9 $$"])
async def test_on_without_a_working_bubblewrap_runs_nothing(
    context: ToolContext, tmp_path: Path, script: str | None
):
    sandbox = without_bwrap(tmp_path, "on", script)
    why = "No permissions" if script and "No" in script else "bubblewrap"
    with pytest.raises(ToolError, match=f'sandbox = "on".*{why}'):
        prepared(context, sandbox, "ls")
    assert sandbox.word(context.cwd) == "no sandbox"
    context.is_persons = True
    assert (await bash(context, sandbox, "echo mine")).for_model == "mine\n[exit code 0]"


async def test_who_asks_while_it_is_tried_waits_for_the_one_try(
    context: ToolContext, tmp_path: Path
):
    sandbox = without_bwrap(tmp_path, "auto", "sleep 0.1; exit 1")
    asking = (asyncio.to_thread(sandbox.state, context.cwd) for _ in range(3))
    states = await asyncio.gather(*asking)
    assert len({id(state) for state in states}) == 1


async def test_auto_without_bubblewrap_runs_as_ever_and_outside_means_nothing(
    context: ToolContext, tmp_path: Path
):
    sandbox = without_bwrap(tmp_path, "auto")
    assert prepared(context, sandbox, "ls", outside=True).intent.place == "open"
    assert (await bash(context, sandbox, "echo on")).for_model == "on\n[exit code 0]"


@needs_bwrap
async def test_a_command_runs_inside_and_is_told_how_to_ask_when_the_wall_stops_it(
    context: ToolContext, tmp_path: Path
):
    sandbox = make_sandbox(tmp_path)
    intent = prepared(context, sandbox, "touch /etc/x").intent
    assert (intent.place, intent.purpose) == ("inside", "")
    output = await bash(context, sandbox, "touch /etc/x")
    assert output.is_error
    assert "[commands in the sandbox write only in the working folders" in output.for_model
    assert "outside: true" in output.for_model
    assert sandbox.word(context.cwd) == "sandbox"


@needs_bwrap
async def test_outside_needs_a_reason_and_runs_outside(context: ToolContext, tmp_path: Path):
    sandbox, marker = make_sandbox(tmp_path), tmp_path / "marker"
    with pytest.raises(ToolError, match="outside needs why"):
        prepared(context, sandbox, "ls", outside=True, why=" ")
    asked = prepared(context, sandbox, f"touch {marker}", outside=True, why="to\nmark")
    inside = prepared(context, sandbox, f"touch {marker}")
    assert (asked.intent.place, asked.intent.purpose) == ("outside", "to mark")
    assert asked.intent.fingerprint != inside.intent.fingerprint
    await inside.run()
    assert not marker.exists()
    await asked.run()
    assert marker.exists()


@needs_bwrap
async def test_the_persons_own_commands_run_outside(context: ToolContext, tmp_path: Path):
    context.is_persons = True
    sandbox = make_sandbox(tmp_path)
    assert prepared(context, sandbox, "ls").intent.place == "open"
    (tmp_path / "home/notes").write_text("mine")
    assert (await bash(context, sandbox, "cat ../home/notes")).for_model.startswith("mine")


@needs_bwrap
async def test_a_command_that_may_not_write_runs_in_the_read_only_wall(
    context: ToolContext, tmp_path: Path
):
    context.may_write = False
    output = await bash(context, make_sandbox(tmp_path), "echo x > f; cat f")
    assert "Read-only file system" in output.for_model
    assert not (context.cwd / "f").exists()


@needs_bwrap
async def test_a_job_is_met_by_the_next_command(context: ToolContext, tmp_path: Path):
    sandbox = make_sandbox(tmp_path)
    output = await bash(context, sandbox, "sleep 600 & echo $! > pid; wait", background=True)
    assert [job.id for job in output.for_person.jobs] == ["1"]
    seen = await bash(context, sandbox, "kill -0 $(cat pid) && echo alive")
    assert seen.for_model == "alive\n[exit code 0]"
    await context.jobs.leave()
    await sandbox.close_walls()


@needs_bwrap
async def test_what_lands_in_the_stand_in_for_home_is_said_once(
    context: ToolContext, tmp_path: Path
):
    context.environ["HOME"] = str(tmp_path / "home")
    sandbox = make_sandbox(tmp_path)
    output = await bash(context, sandbox, "echo x > ~/report.md; echo x > ~/.cache-of-a-tool")
    assert "/report.md, but the sandbox has a stand-in" in output.for_model
    assert "deleted later" not in (await bash(context, sandbox, "true")).for_model


class Gate(NetworkGate):
    def __init__(self) -> None:
        super().__init__()
        self.folder: Path | None = None
        self.is_stopped = False
        self.port = 3128

    def environ(
        self, given: Mapping[str, str] = MappingProxyType({}), port: int | None = None
    ) -> dict[str, str]:
        return {"HTTPS_PROXY": f"http://127.0.0.1:{port}"} if "PATH" in given else {}

    async def serve(self, folder: Path, *, is_read_only: bool = False) -> None:
        assert not is_read_only
        self.folder = folder

    def stop(self, way: Path | MadeSockets) -> None:
        self.is_stopped = way == self.folder


@needs_bwrap
async def test_the_near_end_of_the_gate_runs_inside_before_the_first_command(
    context: ToolContext, tmp_path: Path
):
    program = context.cwd / "gate.py"
    program.write_text(
        "import pathlib, sys, time\npathlib.Path(sys.argv[1], 'there').write_text(sys.argv[2])\n"
        "print('ready', flush=True)\ntime.sleep(600)\n"
    )
    gate = Gate()
    sandbox = make_sandbox(tmp_path, parts=WallParts(gate=gate, gate_program=program))
    output = await bash(context, sandbox, "echo $HTTPS_PROXY; pgrep -fc [g]ate.py")
    assert output.for_model.startswith("http://127.0.0.1:3128\n1")
    assert gate.folder is not None
    assert (gate.folder / "there").read_text() == "3128"
    await sandbox.close_walls()
    assert gate.is_stopped
    assert not gate.folder.exists()


@needs_bwrap
async def test_a_gate_that_ends_at_once_lets_nothing_run(context: ToolContext, tmp_path: Path):
    program = context.cwd / "gate.py"
    program.write_text("")
    parts = WallParts(gate=Gate(), gate_program=program)
    with pytest.raises(ToolError, match="way to the network cannot be opened"):
        await bash(context, make_sandbox(tmp_path, parts=parts), "ls")


@needs_bwrap
async def test_variables_that_lead_outside_are_not_there_and_git_need_not_write(
    context: ToolContext, tmp_path: Path
):
    context.environ |= {"SSH_AUTH_SOCK": "/tmp/agent", "GIT_CONFIG_GLOBAL": "/x", "KEPT": "yes"}
    given = make_sandbox(tmp_path).environ(context.cwd, context.environ)
    assert not {"SSH_AUTH_SOCK", "GIT_CONFIG_GLOBAL"} & set(given)
    assert (given["KEPT"], given["GIT_CONFIG_KEY_0"]) == ("yes", "branch.autoSetupMerge")


@needs_bwrap
async def test_a_filter_of_system_calls_is_given_to_bubblewrap(
    context: ToolContext, tmp_path: Path
):
    # One instruction: every call is let through (BPF_RET, SECCOMP_RET_ALLOW).
    allow_all = bytes.fromhex("06000000") + (0x7FFF0000).to_bytes(4, "little")
    asked: list[str] = []

    def program(machine: str) -> bytes:
        asked.append(machine)
        return allow_all

    sandbox = make_sandbox(tmp_path, parts=WallParts(filter_program=program))
    output = await bash(context, sandbox, "grep Seccomp: /proc/self/status")
    assert output.for_model.startswith("Seccomp:\t2")
    assert len(asked) == 1


async def test_landlock_stands_in_where_bubblewrap_does_not_work(
    context: ToolContext, tmp_path: Path
):
    sandbox = without_bwrap(tmp_path, "auto", "exit 1")
    sandbox.parts = replace(sandbox.parts, landlock_argv=lambda _plan: ("/usr/bin/env",))
    assert sandbox.word(context.cwd) == "landlock"
    output = await bash(context, sandbox, "echo $HOME")
    assert output.for_model.startswith(f"{tmp_path}/walls/")
    await sandbox.close_walls()
