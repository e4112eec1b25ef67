import asyncio
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.tools.base import ToolContext, ToolOutput
from agent_tui.tools.command_sandbox import CommandRun, CommandSandbox, CommandStart
from agent_tui.tools.files.memory import FileMemory
from agent_tui.tools.processes.shell import ShellCommand
from agent_tui.tools.registry import default_toolbox
from agent_tui.tools.shorten import OutputLimits
from tests.support.processes import alive, nap
from tests.support.rows import each_row
from tests.support.tool_calls import KEEPER, call_tool, intent_of


async def test_output_and_exit_code_come_back(context: ToolContext, emitted: list[str]):
    output = await call_tool(context, "bash", {"command": "echo out; echo err >&2"})
    assert output.for_model == "out\nerr\n[exit code 0]"
    assert not output.is_error
    assert "".join(emitted) == "out\nerr\n"
    assert list(context.output_dir.iterdir()) == []


async def test_a_failing_command_is_an_error_with_its_code(context: ToolContext):
    output = await call_tool(context, "bash", {"command": "exit 3"})
    assert output.for_model == "(no output)\n[exit code 3]"
    assert output.is_error
    assert output.for_person.exit_code == 3


async def test_it_runs_in_the_workspace_without_input(context: ToolContext, workspace: Path):
    output = await call_tool(context, "bash", {"command": "pwd; cat; tty"})
    assert output.for_model.startswith(f"{workspace}\nnot a tty")


async def test_a_timeout_ends_the_whole_group(context: ToolContext):
    command = f"echo before; trap '' TERM; {nap(54321)} & {nap(54321)}"
    output = await call_tool(context, "bash", {"command": command, "timeout": 1})
    assert output.for_model.startswith("before\n[timeout: stopped after")
    assert output.is_error
    assert output.for_person.exit_code is None
    assert alive(nap(54321)) == []


async def test_cancelling_ends_the_whole_group(context: ToolContext):
    started = asyncio.Event()
    context.emit = lambda _text, _skipped=0: started.set()
    command = f"echo go; {nap(65432)} & {nap(65432)}"
    task = asyncio.create_task(call_tool(context, "bash", {"command": command}))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert alive(nap(65432)) == []
    assert list(context.output_dir.iterdir()) == []


@each_row("steps", range(12))
async def test_cancelling_while_it_starts_leaves_neither_process_nor_handle(
    context: ToolContext, steps: int
):
    await call_tool(context, "bash", {"command": "true"})  # opens what is opened once
    handles = len(list(Path("/proc/self/fd").iterdir()))
    marker = nap(60_000 + steps)
    running = asyncio.create_task(call_tool(context, "bash", {"command": marker}))
    for _ in range(steps):
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.sleep(0)
    assert alive(marker) == []
    assert len(list(Path("/proc/self/fd").iterdir())) == handles


async def test_a_command_goes_on_where_its_output_cannot_be_kept(context: ToolContext):
    context.output_dir.write_text("not a folder")
    output = await call_tool(context, "bash", {"command": "seq 1 100000"})
    assert output.for_model.endswith("\n100000\n[exit code 0]")
    assert output.for_person.full_output_path is None


async def test_a_process_that_the_persons_command_leaves_running_ends_with_it(
    context: ToolContext,
):
    context.leaves_jobs = False
    output = await call_tool(context, "bash", {"command": f"{nap(76543)} & echo done"})
    assert output.for_model == "done\n[exit code 0]"
    assert alive(nap(76543)) == []


async def test_long_output_is_shortened_and_kept_whole(context: ToolContext):
    output = await call_tool(context, "bash", {"command": "seq 1 100000"})
    assert output.for_person.truncated
    assert output.for_model.startswith("1\n2\n")
    assert "\n100000\n[whole output" in output.for_model
    assert len(output.for_model) < 50_500
    path = Path(output.for_person.full_output_path or "")
    assert path.read_text() == "".join(f"{n}\n" for n in range(1, 100_001))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert str(path) in output.for_model


@pytest.mark.parametrize(
    "command",
    [
        "seq -w 1 200000",
        "seq -w 1 3000",
        r"printf '00\r0\r00001\n\033[31m00002\033[0m\n'; seq -f %05.0f 3 20000",
        "seq -f %05.0f 1 1000; head -c 90000 /dev/zero | tr '\\0' x",
    ],
)
async def test_what_is_left_out_is_at_the_lines_of_the_file_that_are_named(
    context: ToolContext, command: str
):
    context.limits = OutputLimits(max_bytes=5_000)
    output = await call_tool(context, "bash", {"command": command})
    path = Path(output.for_person.full_output_path or "")
    rest = re.search(r"read it with offset=(\d+) limit=(\d+) for the rest", output.for_model)
    assert rest is not None
    first, count = int(rest[1]), int(rest[2])
    kept = path.read_bytes().decode().removesuffix("\n").split("\n")
    shown = output.for_model.split("\n")
    gap = next(n for n, line in enumerate(shown) if line.startswith("[... "))
    assert int(kept[first - 2][-5:]) == int(shown[gap - 1])
    if "x" not in command:
        assert int(kept[first - 1 + count]) == int(shown[gap + 1])
        assert shown[gap] == f"[... lines {first}-{first + count - 1} of {len(kept)} left out ...]"
    else:
        assert first - 1 + count == len(kept)


async def test_what_is_kept_on_disk_is_bounded(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("agent_tui.tools.processes.output.MAX_KEPT_BYTES", 600_000)
    command = "head -c 2000000 /dev/zero | tr '\\0' x; echo; echo end"
    output = await call_tool(context, "bash", {"command": command})
    assert output.for_model.rstrip().split("\n")[-3] == "end"
    path = Path(output.for_person.full_output_path or "")
    assert path.stat().st_size == 600_000


async def test_bytes_that_are_no_text_and_terminal_codes_do_no_harm(context: ToolContext):
    command = r"printf 'a\0b\377c\033[31mred\033[0m\r\nold\rnew\n'"
    output = await call_tool(context, "bash", {"command": command})
    assert output.for_model == "ab\ufffdcred\nnew\n[exit code 0]"


async def test_a_character_cut_between_reads_is_shown_whole(
    context: ToolContext, emitted: list[str]
):
    command = r"printf '\303'; sleep 0.2; printf '\244'"
    await call_tool(context, "bash", {"command": command})
    assert "".join(emitted) == "ä"


async def test_variables_that_steer_a_shell_are_not_passed_on(
    context: ToolContext, workspace: Path
):
    (workspace / "evil.sh").write_text("echo EVIL\n")
    context.environ["BASH_ENV"] = str(workspace / "evil.sh")
    context.environ["BASH_FUNC_ls%%"] = "() { echo EVIL; }"
    context.environ["CDPATH"] = "/"
    output = await call_tool(context, "bash", {"command": "ls; echo $PAGER"})
    assert output.for_model == "evil.sh\ncat\n[exit code 0]"


async def test_git_status_runs_no_program_of_the_repository(context: ToolContext, workspace: Path):
    monitor = workspace / "monitor.sh"
    monitor.write_text("#!/bin/sh\ntouch ran\n")
    monitor.chmod(0o755)
    command = f"git init -q && git config core.fsmonitor {monitor} && git status -s"
    output = await call_tool(context, "bash", {"command": command})
    assert "monitor.sh" in output.for_model
    assert not (workspace / "ran").exists()


async def test_a_signal_is_named(context: ToolContext):
    output = await call_tool(context, "bash", {"command": "kill -9 $$"})
    assert "[killed by signal 9]" in output.for_model


async def test_a_missing_workspace_is_said(context: ToolContext, workspace: Path):
    workspace.rmdir()
    with pytest.raises(ToolError, match="cannot be started in"):
        await call_tool(context, "bash", {"command": "ls"})


async def test_no_file_handle_is_left_open(context: ToolContext):
    await call_tool(context, "bash", {"command": "true"})
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        await call_tool(context, "bash", {"command": "true"})
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_the_intent_shows_the_exact_command(context: ToolContext, workspace: Path):
    intent = intent_of(context, "bash", {"command": "a\n  b"})
    assert (intent.access, intent.command, intent.body) == ("execute", "a\n  b", "a\n  b")
    assert intent.body_kind == "command"
    other = intent_of(context, "bash", {"command": "a\n b"})
    assert intent.fingerprint != other.fingerprint
    with pytest.raises(ToolError, match="NUL"):
        intent_of(context, "bash", {"command": "ls\0rm"})


async def test_all_lines_that_were_printed_are_counted_whatever_the_model_gets(
    context: ToolContext, emitted: list[str]
):
    skipped: list[int] = []

    def emit(text: str, skipped_lines: int = 0, /) -> None:
        emitted.append(text)
        skipped.append(skipped_lines)

    context.emit = emit
    output = await call_tool(context, "bash", {"command": "seq 1 100000"})
    assert output.for_person.printed_lines == 100_000
    assert sum(skipped) + "".join(emitted).count("\n") == 100_000


@dataclass(slots=True)
class _FaultyRun(CommandRun):
    """A run that fails at a step after the command, with `error`."""

    step: str
    error: Exception

    async def hints(self, output: str, *, is_error: bool) -> Sequence[str]:
        if self.step == "hints":
            raise self.error
        return ("a hint",)

    async def finish(self, output: ToolOutput, command: ShellCommand) -> ToolOutput:
        if self.step == "finish":
            raise self.error
        return output


@dataclass(frozen=True, slots=True)
class _FaultySandbox(CommandSandbox):
    step: str
    error: Exception

    def is_on(self, cwd: Path) -> bool:
        return True

    def run(self, command: str, context: ToolContext, how: CommandStart) -> CommandRun:
        return _FaultyRun(how, self.step, self.error)


@each_row(
    "step, error, said",
    [
        ("hints", ValueError("x"), "internal error (ValueError)"),
        ("finish", ValueError("x"), "internal error (ValueError)"),
        ("finish", ToolError("The folder is full."), "[The folder is full.]"),
        ("files", OSError("x"), "internal error (OSError)"),
    ],
)
async def test_the_output_of_a_command_that_has_run_is_never_lost(
    context: ToolContext, step: str, error: Exception, said: str, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_of: object) -> None:
        raise error

    if step == "files":
        monkeypatch.setattr(FileMemory, "note_command", fail)
    toolbox = default_toolbox(KEEPER, sandbox=_FaultySandbox(step, error))
    output = await toolbox.prepare("bash", {"command": "echo printed"}, context).run()
    assert output.for_model.startswith("printed\n")
    assert said in output.for_model
    assert output.fault is (None if isinstance(error, ToolError) else error)
    assert output.is_error is (step == "finish")
