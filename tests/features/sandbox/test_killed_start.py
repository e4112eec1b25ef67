"""The program is killed while a sandbox starts: nothing that it started outlives it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent_tui.features.sandbox import landlock_launcher, mounts_process
from tests.support.sandbox import needs_bwrap, needs_landlock

_ROOT = Path(__file__).parents[3]

_STAND_IN = """#!{python} -IS
import fcntl, os, signal, subprocess, sys, time
from pathlib import Path

folder, words = Path({folder!r}), [*{real!r}, *sys.argv[1:]]
with (folder / "starts").open("a+") as starts:
    starts.write("x")
    starts.seek(0)
    number = len(starts.read())

def reach():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (folder / "reached").write_text("here")
    while not (folder / "killed").exists():
        time.sleep(0.01)

if number == {number}:
    {stop}
os.execv(words[0], words)
"""
"""Takes the place of a program that sets up a wall, until the program is killed at one point."""

_STOPS = {
    "and it hangs": "reach(); time.sleep(600)",
    "and it then begins": "reach()",
    "and it leaves orphans": (
        "subprocess.Popen(['/bin/sleep', '600'], start_new_session=True);"
        "subprocess.run(['/bin/sh', '-c', '/usr/bin/setsid /bin/sleep 600 &'])\n"
        "    reach(); os._exit(0)"
    ),
}
_BWRAP_STOPS = {
    **_STOPS,
    # It then waits to report its child, which waits to be let go.
    "when it has forked": (
        "end, full = os.pipe(); fcntl.fcntl(full, fcntl.F_SETPIPE_SZ, 4096)\n"
        "    os.write(full, bytes(4096))\n"
        "    told = os.open(folder / 'reached', os.O_WRONLY | os.O_CREAT)\n"
        "    for handle in (end, full, told): os.set_inheritable(handle, True)\n"
        "    place = words.index('--')\n"
        "    words[place:place] = ['--info-fd', str(told), '--json-status-fd', str(full)]"
    ),
}


_STARTS = pytest.mark.parametrize(
    "number", [pytest.param(1, id="probe"), pytest.param(2, id="wall")]
)


def outlivers(folder: Path, moment: str) -> list[str]:
    """See `tests.support.killed_start`."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.killed_start", str(folder), moment],
        cwd=_ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def put_stand_in(place: Path, real: list[str], number: int, stop: str) -> None:
    """Put a stand-in for `real` at `place`; its start of that number stops."""
    place.parent.mkdir()
    folder = str(place.parents[1])
    words = {"python": sys.executable, "folder": folder, "real": real, "number": number}
    place.write_text(_STAND_IN.format(stop=stop, **words))
    place.chmod(0o755)


@needs_bwrap
@_STARTS
@pytest.mark.parametrize("stop", _BWRAP_STOPS)
def test_bubblewrap_ends_with_a_program_that_is_killed(tmp_path: Path, stop: str, number: int):
    put_stand_in(tmp_path / "bin/bwrap", [str(shutil.which("bwrap"))], number, _BWRAP_STOPS[stop])
    assert outlivers(tmp_path, "file") == []


@needs_landlock
@_STARTS
@pytest.mark.parametrize("stop", _STOPS)
def test_the_landlock_launcher_ends_with_a_program_that_is_killed(
    tmp_path: Path, stop: str, number: int
):
    launcher = landlock_launcher.__file__
    real = [sys.executable, "-I", "-S", launcher]
    put_stand_in(tmp_path / "bin" / Path(launcher).name, real, number, _STOPS[stop])
    assert outlivers(tmp_path, "file") == []


@needs_bwrap
@pytest.mark.parametrize("stop", _STOPS)
def test_what_adds_mounts_ends_with_a_program_that_is_killed(tmp_path: Path, stop: str):
    helper = mounts_process.__file__
    real = [sys.executable, "-I", "-S", helper]
    put_stand_in(tmp_path / "bin" / Path(helper).name, real, 1, _STOPS[stop])
    assert outlivers(tmp_path, "file") == []


@needs_bwrap
@pytest.mark.parametrize(
    "moment",
    ["1:250", *(pytest.param(f"{n}:70", marks=pytest.mark.thorough) for n in (7, 42))],
)
def test_nothing_outlives_a_program_that_is_killed_at_any_call(tmp_path: Path, moment: str):
    assert outlivers(tmp_path, moment) == []
