"""A keeper inside a wall is not trusted: what runs there may have taken its place."""

import asyncio
import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.features.sandbox import wall
from agent_tui.tools.processes.keeper import Confinement, ProcessKeeper
from tests.support.processes import gone, nap
from tests.support.rows import each_row
from tests.support.sandbox import needs_bwrap

_IMPOSTOR = """
import json, os, socket, sys, time
control = socket.socket(fileno=0)
_, handles, _, _ = socket.recv_fds(control, 1, 4)
lifeline = socket.socket(fileno=handles[0])
lifeline.makefile("rb").readline()
lifeline.sendall(json.loads(sys.argv[1]).encode("latin-1"))
for handle in handles[1:]:
    os.close(handle)
time.sleep(float(sys.argv[2]))
"""


def impostor(answer: str, stays_s: float = 0) -> ProcessKeeper:
    """A keeper whose process answers each order with `answer`."""
    words = (sys.executable, "-I", "-S", "-c", _IMPOSTOR, json.dumps(answer), str(stays_s))
    return ProcessKeeper(confinement=Confinement(words, ProcessKeeper()))


async def exit_code(keeper: ProcessKeeper) -> int | None:
    async with keeper.child_group(["x"], cwd=Path("/"), environ={}) as child:
        async for _ in child.read_until_gone():
            pass
        return child.exit_code


@each_row(
    "answer",
    [
        "",
        "\n",
        "no json\n",
        "[]\n",
        '{"exit_code": 0}\n',
        '{"pid": "1"}\n',
        '{"pid": 1' + " " * 100_000,
        "[" * 100_000 + "\n",
        "\xff\xfe\n",
    ],
)
async def test_what_no_keeper_says_is_an_error_for_the_model(answer: str):
    with pytest.raises(ToolError, match="has ended"):
        await exit_code(impostor(answer))


async def test_a_wall_that_is_being_killed_gets_no_further_command():
    lingers = _IMPOSTOR + "lifeline.close(); time.sleep(600)"
    words = (sys.executable, "-I", "-S", "-c", f"import signal; signal.signal(15, 1)\n{lingers}")
    outside = ProcessKeeper()
    keeper = ProcessKeeper(confinement=Confinement((*words, '"no answer\\n"', "0"), outside))
    with pytest.raises(ToolError, match="has ended"):
        await exit_code(keeper)
    assert keeper.is_over  # though nothing can have ended within the time that SIGTERM leaves
    keeper.close()


async def test_a_reason_is_not_longer_than_reasons_are():
    with pytest.raises(ToolError) as caught:
        await exit_code(impostor(json.dumps({"error": "x" * 10_000}) + "\n"))
    assert len(str(caught.value)) < 1_000


@each_row(
    ("told", "code"),
    [
        ('{"exit_code": 3}\n', 3),
        ('{"exit_code": 3}\n{"exit_code": 4}\n{"excess": 9}\n{"excess": 8}\n', 3),
        ('{"exit_code": 99999999999}\n', -signal.SIGKILL),
        ('{"exit_code": "3"}\n', -signal.SIGKILL),
        ('{"excess": -1}\n', -signal.SIGKILL),
        ('{"pid": 1}\n' * 5_000, -signal.SIGKILL),
        ("", -signal.SIGKILL),
    ],
)
async def test_an_ending_is_believed_once_and_only_as_a_number_it_can_be(told: str, code: int):
    assert await exit_code(impostor('{"pid": 1}\n' + told, stays_s=0.1)) == code


_PROGRAM = """
import asyncio, sys
from pathlib import Path
from tests.support.sandbox import make_sandbox, run_inside
folder = Path(sys.argv[1])
asyncio.run(run_inside(make_sandbox(folder), folder / "work", sys.argv[2]))
"""


@needs_bwrap
def test_kill_9_of_the_program_ends_all_that_is_inside(tmp_path: Path):
    (tmp_path / "work").mkdir()
    command = f"trap '' TERM HUP; setsid {nap(61_988)} & touch started; {nap(61_988)}"
    program = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(tmp_path), command], cwd=Path(__file__).parents[3]
    )
    while not (tmp_path / "work/started").exists():
        assert program.poll() is None
    os.kill(program.pid, signal.SIGKILL)
    program.wait()
    assert gone(nap(61_988))


async def test_the_limit_on_processes_is_that_of_each_command_not_of_the_wall():
    words = ["/bin/sh", "-c", "for i in 1 2 3 4 5 6; do sleep 0.5 & done; wait; echo on"]
    outside = ProcessKeeper(most_processes=2)
    keeper = ProcessKeeper(confinement=Confinement((), outside))
    async with keeper.child_group(words, cwd=Path("/"), environ={"PATH": os.defpath}) as child:
        assert b"".join([chunk async for chunk in child.read_until_gone()]) == b"on\n"
    keeper.close()
    assert keeper.is_over


async def test_a_cancelled_start_is_a_cancelled_call():
    for _ in range(5):
        keeper = impostor('{"pid": 1}\n', stays_s=0.2)
        call = asyncio.create_task(exit_code(keeper))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


def test_the_first_process_is_read_however_many_files_are_open():
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 1_300:
        pytest.skip("so many files cannot be opened here")
    reading, writing = os.pipe()
    high = fcntl.fcntl(reading, fcntl.F_DUPFD_CLOEXEC, 1_200)
    os.close(reading)
    os.write(writing, b'{"child-pid": 12}\n')
    os.close(writing)
    assert wall._first_process(high) == 12  # pyright: ignore[reportPrivateUsage]
