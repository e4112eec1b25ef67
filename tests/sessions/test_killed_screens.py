"""The screen is killed while it streams, runs tools, compacts, imports, migrates and lists."""

import fcntl
import json
import os
import random
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TypeAlias

import pytest

from agent_tui.sessions.entries import Header
from agent_tui.sessions.store import SessionStore
from tests.support.kill_checks import check, check_nothing_is_left
from tests.support.killed_program import OLD_FILES, foreign_file, old_file
from tests.support.killed_screen import ScreenOrder, ask
from tests.support.session_values import entry, reply, result, user

MODEL = ("-m", "scripted/tour", "--permission-mode", "full")


def talk(store: SessionStore, cwd: str) -> list[str]:
    return ["--demo", "--permission-mode", "full", "go"]


def compact(store: SessionStore, cwd: str) -> list[str]:
    with store.create(Header(cwd=cwd, id="long")) as log:
        for turn in range(20):
            call = f"c{turn}"
            log.append_many(
                [
                    entry(user(f"prompt {turn}")),
                    entry(reply("Reading.", (call, "read"))),
                    entry(result(call, "x" * 2_000)),
                    entry(reply("Done.")),
                ]
            )
    return [*MODEL, "-r", "long", "/compact"]


def migrate(store: SessionStore, cwd: str) -> list[str]:
    path = store.root / OLD_FILES / "0_v1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(old_file(1, 50, cwd))
    return [*MODEL, "-r", str(path), "go"]


def take_over(store: SessionStore, cwd: str) -> list[str]:
    foreign = store.root.parent / "foreign"
    store.root.mkdir(parents=True)
    foreign.write_bytes(foreign_file("foreign", 60, cwd))
    return [*MODEL, "-r", str(foreign), "go"]


def index(store: SessionStore, cwd: str) -> list[str]:
    for number in range(20):
        with store.create(Header(cwd=cwd, id=f"indexed-{number}")) as log:
            log.append_many([entry(user("needle " * 50 * number)), entry(reply("Done."))])
    return [*MODEL, "-r"]


Scene: TypeAlias = Callable[[SessionStore, str], list[str]]
"""Makes what is there before, and gives the arguments of the program."""

SCENES: tuple[Scene, ...] = (talk, compact, migrate, take_over, index)


class KilledScreens:
    """Has the screen shown and killed; see `tests.support.killed_screen`."""

    def __init__(self, orders: IO[bytes], answers: IO[bytes]) -> None:
        self._orders = orders
        self._answers = answers

    def run(self, folder: Path, argv: list[str], seed: int, moment: int) -> int:
        """Show it until it is dead with all it started; how many moments it lived."""
        with terminal() as name:
            self._orders.write(ask(ScreenOrder(str(folder), name, argv, seed, moment)))
            self._orders.flush()
            return json.loads(self._answers.readline())["moments"]


@contextmanager
def terminal() -> Iterator[str]:
    """The name of a terminal whose output nobody looks at."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))

    def read() -> None:
        with suppress(OSError):  # nobody has it open any more
            while os.read(master, 65_536):
                pass

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield os.ttyname(slave)
    finally:
        os.close(slave)
        reader.join()
        os.close(master)


@pytest.fixture
def screens() -> Iterator[KilledScreens]:
    command = [sys.executable, "-m", "tests.support.killed_screen"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        yield KilledScreens(program.stdin, program.stdout)
        program.stdin.close()


def kill_at(screens: KilledScreens, folder: Path, scene: Scene, moment: int) -> int:
    """Kill `scene` at `moment` (0: at its end), and check what is left; how far it came."""
    sessions = folder / "data" / "sessions"
    (folder / "work").mkdir(parents=True)
    argv = scene(SessionStore(sessions, "none"), str(folder / "work"))
    came_to = screens.run(folder, argv, moment, moment)
    told = folder / "told"
    facts = [json.loads(line) for line in told.read_bytes().splitlines()] if told.exists() else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENT_TUI_HOME", str(folder))
        check(sessions, facts)
        check_nothing_is_left(sessions)
    return came_to


def sweep(screens: KilledScreens, folder: Path, kills: int) -> None:
    for scene in SCENES:
        here = folder / scene.__name__
        moments = kill_at(screens, here / "whole", scene, 0)
        assert moments > 10, scene.__name__
        chance = random.Random(scene.__name__)
        for number in range(kills):
            kill_at(screens, here / str(number), scene, chance.randint(1, moments))


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="needs subreapers")
def test_nothing_is_lost_and_nothing_left_where_the_screen_is_killed(
    tmp_path: Path, screens: KilledScreens
) -> None:
    sweep(screens, tmp_path, 3)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs subreapers")
@pytest.mark.timeout(1_800)
def test_nothing_is_lost_by_hundreds_of_kills_of_the_screen(
    tmp_path: Path, screens: KilledScreens
) -> None:
    sweep(screens, tmp_path, 40)
