import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from agent_tui.errors import ToolError
from agent_tui.tools.processes.keeper import Child, ProcessKeeper
from agent_tui.tools.processes.keeper_process import KEEPER_NAME
from tests.support.patience import PATIENCE_S
from tests.support.processes import alive, fugitives, gone, nap, nap_seconds

ENVIRON = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs subreapers")

PROGRAM = """
import asyncio, sys
from pathlib import Path
from agent_tui.tools.processes.keeper import ProcessKeeper

async def main():
    argv = ["/bin/bash", "-c", sys.argv[1]]
    environ = {"PATH": "/usr/bin:/bin"}
    async with ProcessKeeper().child_group(argv, cwd=Path("/"), environ=environ) as child:
        async for chunk in child.read_until_exit():
            pass

asyncio.run(main())
"""

LEAPING = """
import fcntl, os, sys, time
held = open(sys.argv[1], "w")
fcntl.flock(held, fcntl.LOCK_SH)
for _ in range(30):
    if os.fork() == 0:
        for _ in range(3_000):
            if os.fork():
                os._exit(0)
            os.setsid()
            time.sleep(0.002)
        os._exit(0)
"""
"""Processes that have another id and session every few milliseconds, and share a lock."""


@pytest.fixture
def keeper() -> Iterator[ProcessKeeper]:
    keeper = ProcessKeeper()
    yield keeper
    keeper.close()


async def run(
    keeper: ProcessKeeper, script: str, stdin: bytes | None = None, *, keeps_stderr: bool = True
) -> tuple[bytes, int | None]:
    argv, cwd = ["/bin/bash", "-c", script], Path("/")
    async with keeper.child_group(
        argv, cwd=cwd, environ=ENVIRON, stdin=stdin, keeps_stderr=keeps_stderr
    ) as child:
        return await everything(child), child.exit_code


async def everything(child: Child) -> bytes:
    async with aclosing(child.read_until_exit()) as chunks:
        return b"".join([chunk async for chunk in chunks])


async def until(path: Path) -> None:
    while not path.exists():
        await asyncio.sleep(0.01)


def keeper_pids() -> list[int]:
    children = psutil.process_iter(["ppid", "cmdline"])
    ours = [child for child in children if child.info["ppid"] == os.getpid()]
    names = "keeper_process", KEEPER_NAME.decode()
    return [
        child.pid for child in ours if any(name in str(child.info["cmdline"]) for name in names)
    ]


async def test_output_exit_code_and_input_pass_through(keeper: ProcessKeeper):
    assert await run(keeper, "echo out; echo err >&2; exit 3") == (b"out\nerr\n", 3)
    assert await run(keeper, "kill -TERM $$") == (b"", -signal.SIGTERM)
    assert await run(keeper, "echo out; echo err >&2", keeps_stderr=False) == (b"out\n", 0)
    content = b"\0line\n" * 100_000
    assert await run(keeper, "cat", stdin=content) == (content, 0)
    assert await run(keeper, "cat; tty") == (b"not a tty\n", 1)


def run_to_the_end(
    keeper: ProcessKeeper, script: str, timeout_s: float = PATIENCE_S, **more: Any
) -> tuple[int, bytes]:
    argv = ["/bin/bash", "-c", script]
    return keeper.run(argv, cwd=Path("/"), environ=ENVIRON, timeout_s=timeout_s, **more)


def test_a_program_is_run_to_its_end_without_an_event_loop(keeper: ProcessKeeper):
    assert run_to_the_end(keeper, "echo out; echo err >&2; exit 3") == (3, b"out\nerr\n")
    assert run_to_the_end(keeper, "kill -TERM $$") == (-signal.SIGTERM, b"")
    assert run_to_the_end(keeper, "echo out; echo err >&2", keeps_stderr=False) == (0, b"out\n")
    content = b"\0line\n" * 100_000
    assert run_to_the_end(keeper, "cat", stdin=content) == (0, content)
    with pytest.raises(ToolError, match=r"/no/such cannot be started in /: No such file"):
        keeper.run(["/no/such"], cwd=Path("/"), environ=ENVIRON, timeout_s=60.0)


@ON_LINUX
def test_what_takes_too_long_or_is_left_running_is_ended(keeper: ProcessKeeper):
    with pytest.raises(ToolError, match=r"did not end within 0\.2 seconds"):
        run_to_the_end(keeper, f"trap '' TERM; setsid {nap(71_250)} & {nap(71_250)}", 0.2)
    assert alive(nap(71_250)) == []
    assert run_to_the_end(keeper, f"setsid {nap(71_251)} & echo on") == (0, b"on\n")
    assert alive(nap(71_251)) == []


def test_threads_may_run_programs_at_once(keeper: ProcessKeeper):
    others = keeper_pids()
    with ThreadPoolExecutor(8) as threads:
        scripts = [f"echo {number}" for number in range(40)]
        ended = list(threads.map(lambda script: run_to_the_end(keeper, script), scripts))
    assert ended == [(0, b"%d\n" % number) for number in range(40)]
    assert len(set(keeper_pids()) - set(others)) == 1


async def test_arguments_and_variables_arrive_byte_by_byte(keeper: ProcessKeeper):
    odd = "ä\udcff\n'$x"
    argv, environ = ["/usr/bin/printenv", odd], {odd: odd}
    async with keeper.child_group(argv, cwd=Path("/"), environ=environ) as child:
        assert await everything(child) == os.fsencode(odd) + b"\n"


@pytest.mark.parametrize(
    ("argv", "cwd", "why"),
    [
        (["/no/such"], "/", "No such file"),
        (["true"], "/no/such", "No such file"),
        (["/etc/passwd"], "/", "Permission denied"),
        (["a\0b"], "/", "null byte"),
    ],
)
async def test_what_cannot_be_started_is_said(keeper: ProcessKeeper, argv, cwd, why):
    with pytest.raises(ToolError, match=why):
        async with keeper.child_group(argv, cwd=Path(cwd), environ=ENVIRON):
            pass
    assert await run(keeper, "echo on") == (b"on\n", 0)


async def test_signals_are_not_ignored_by_commands(keeper: ProcessKeeper):
    output, _ = await run(keeper, "trap; grep Sig[BI] /proc/self/status")
    assert output.split() == [b"SigBlk:", b"0" * 16, b"SigIgn:", b"0" * 16]


async def test_commands_can_run_side_by_side(keeper: ProcessKeeper, tmp_path: Path):
    first = f"touch {tmp_path}/1; until [ -e {tmp_path}/2 ]; do sleep 0.01; done; echo first"
    second = f"until [ -e {tmp_path}/1 ]; do sleep 0.01; done; touch {tmp_path}/2; echo second"
    assert await asyncio.gather(run(keeper, first), run(keeper, second)) == [
        (b"first\n", 0),
        (b"second\n", 0),
    ]


@ON_LINUX
async def test_cancelling_ends_even_what_has_left_the_group(keeper: ProcessKeeper, tmp_path: Path):
    running = asyncio.create_task(run(keeper, fugitives(nap_seconds(71_231), f"{tmp_path}/ready")))
    await until(tmp_path / "ready")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert alive(nap(71_231)) == []
    assert await run(keeper, "echo on") == (b"on\n", 0)


@ON_LINUX
async def test_what_forks_and_leaves_its_session_again_and_again_is_ended(
    keeper: ProcessKeeper, tmp_path: Path
):
    script = f"exec {sys.executable} -c '{LEAPING}' {tmp_path}/held"
    assert await run(keeper, script) == (b"", 0)
    with (tmp_path / "held").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if a process is left


async def test_processes_that_end_by_themselves_may_tidy_up(keeper: ProcessKeeper, tmp_path: Path):
    trap = f"trap 'touch {tmp_path}/tidy; exit' TERM; touch {tmp_path}/ready"
    server = f"({trap}; while :; do sleep 0.01; done)"
    await run(keeper, f"{server} & until [ -e {tmp_path}/ready ]; do sleep 0.01; done")
    assert (tmp_path / "tidy").exists()


@ON_LINUX
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_outlives_a_program_that_is_killed(tmp_path: Path, number: signal.Signals):
    seconds = nap_seconds(71_200 + number.value)
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, fugitives(seconds, f"{tmp_path}/r")])
    while not (tmp_path / "r").exists():
        assert program.poll() is None
        time.sleep(0.01)
    program.send_signal(number)
    program.wait()
    assert gone(f"sleep {seconds}")


@ON_LINUX
@pytest.mark.parametrize(
    "one", ["{nap} &", "setsid {nap} &", "(trap '' TERM; exec {nap}) &", "(setsid {nap} &) &"]
)
async def test_a_command_that_becomes_too_many_processes_is_killed_with_all_of_them(one: str):
    keeper = ProcessKeeper(most_processes=20)
    one = one.format(nap=nap(71_240))
    script = f"for i in $(seq 50); do {one} done; wait; {nap(71_240)}"  # bounded, whatever happens
    argv = ["/bin/bash", "-c", script]
    async with keeper.child_group(argv, cwd=Path("/"), environ=ENVIRON) as child:
        await everything(child)
        async with aclosing(child.read_until_gone()) as rest:
            async for _ in rest:
                pass
        assert child.exit_code == -signal.SIGKILL
        assert 20 < child.excess <= 110
        assert alive(nap(71_240)) == []
    keeper.close()


@ON_LINUX
async def test_a_command_of_as_many_processes_as_allowed_goes_on():
    keeper = ProcessKeeper(most_processes=20)
    script = "for i in $(seq 19); do sleep 0.3 & done; wait; sleep 0.2; echo on"
    argv = ["/bin/bash", "-c", script]
    async with keeper.child_group(argv, cwd=Path("/"), environ=ENVIRON) as child:
        assert (await everything(child), child.exit_code, child.excess) == (b"on\n", 0, 0)
    keeper.close()


@ON_LINUX
async def test_a_command_that_kills_its_guardian_is_ended(keeper: ProcessKeeper):
    script = f"setsid {nap(71_233)} & setsid {nap(71_233)} & kill -9 $PPID; {nap(71_233)}"
    with suppress(ToolError):  # it was gone before it could say that the command runs
        assert (await run(keeper, script))[1] == -signal.SIGKILL
    assert await asyncio.to_thread(gone, nap(71_233))
    assert await run(keeper, "echo on") == (b"on\n", 0)


async def test_a_command_cannot_ask_its_guardian_to_leave(keeper: ProcessKeeper):
    script = "for s in TERM INT HUP QUIT; do kill -$s $PPID; done; echo still here"
    assert await run(keeper, script) == (b"still here\n", 0)


async def test_the_keeper_does_not_get_the_keys_of_the_terminal(keeper: ProcessKeeper):
    others = keeper_pids()
    await run(keeper, "true")
    (own,) = set(keeper_pids()) - set(others)
    assert os.getsid(own) != os.getsid(0)  # ctrl+c at a terminal goes to one session


async def test_a_keeper_that_was_killed_is_started_again(keeper: ProcessKeeper):
    others = keeper_pids()
    await run(keeper, "true")
    (first,) = set(keeper_pids()) - set(others)
    assert (await run(keeper, f"kill -9 {first}; {nap(71_234)}"))[1] == -signal.SIGTERM
    assert await asyncio.to_thread(gone, nap(71_234))
    while keeper_pids() == others or first in keeper_pids():
        with suppress(ToolError):  # the last guardian of the first one may be leaving
            assert await run(keeper, "echo on") == (b"on\n", 0)


@ON_LINUX
async def test_keepers_and_guardians_are_not_killed_by_the_name_of_the_program(
    keeper: ProcessKeeper,
):
    shown, _ = await run(keeper, "ps -o args= -p $PPID; ps -o args= -p $(ps -o ppid= -p $PPID)")
    assert shown.split() == [KEEPER_NAME] * 2


@ON_LINUX
async def test_nothing_is_left_when_the_keeper_is_closed(keeper: ProcessKeeper):
    before = set(psutil.Process().children(recursive=True))
    await run(keeper, "true")
    own = set(psutil.Process().children(recursive=True)) - before
    assert own
    keeper.close()
    assert not [process for process in own if process.is_running()]


async def test_keys_are_not_in_the_environment_of_the_keeper(
    keeper: ProcessKeeper, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CANARY_KEY", "canary")
    output, _ = await run(keeper, "cat /proc/$PPID/environ; env")
    assert b"canary" not in output


async def test_memory_stays_flat_whatever_is_printed(keeper: ProcessKeeper):
    """A command that prints faster than it is read is held up by its pipe."""
    process = psutil.Process()
    before = process.memory_info().rss

    async def take(bytes_wanted: int) -> None:
        argv = ["/usr/bin/yes"]
        async with (
            keeper.child_group(argv, cwd=Path("/"), environ=ENVIRON) as child,
            aclosing(child.read_until_exit()) as chunks,
        ):
            async for chunk in chunks:
                bytes_wanted -= len(chunk)
                if bytes_wanted < 0:
                    return

    await take(100_000_000)
    assert process.memory_info().rss - before < 30_000_000


@pytest.mark.parametrize("is_vital", [False, True])
async def test_a_keeper_is_in_use_while_a_command_runs_or_fails(
    keeper: ProcessKeeper, is_vital: bool
):
    words = ["/bin/true"]
    async with keeper.child_group(words, cwd=Path("/"), environ=ENVIRON, is_vital=is_vital):
        assert keeper.is_in_use == (not is_vital)
    assert not keeper.is_in_use
    with pytest.raises(ToolError):
        async with keeper.child_group(["/nowhere"], cwd=Path("/"), environ=ENVIRON):
            pass
    assert not keeper.is_in_use


async def test_no_file_that_a_command_is_given_takes_the_place_of_another(
    keeper: ProcessKeeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("agent_tui.tools.processes.keeper.FIRST_FILE", 8)  # in use there
    with (tmp_path / "a").open("w") as file:
        files = [file.fileno()] * 20
        started = keeper.child_group(("/bin/true",), cwd=tmp_path, environ=ENVIRON, files=files)
        with pytest.raises(ToolError, match="Too many open files"):
            await started.__aenter__()
