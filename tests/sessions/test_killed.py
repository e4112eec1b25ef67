"""What a session file holds after its writer was killed at any moment."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, get_args

import pytest

from tests.support.kill_checks import check, check_nothing_is_left
from tests.support.killed_program import Doing, Order, ask

KINDS: tuple[Doing, ...] = get_args(Doing)
KILLS = 1_000
"""Of the longest test here; the README names it."""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the programs note what they are writing."""
    monkeypatch.setenv("AGENT_TUI_CACHE_DIR", str(tmp_path / "cache"))


class KilledProgram:
    """Gives orders to the program and kills it; see `tests.support.killed_program`."""

    def __init__(self, orders: IO[bytes], answers: IO[bytes]) -> None:
        self._orders = orders
        self._answers = answers

    def run(self, order: Order, kill_after: int) -> list[dict[str, object]]:
        """What it said is done before it died; killed after `kill_after` facts, or by itself."""
        self._orders.write(ask(order))
        self._orders.flush()
        facts: list[dict[str, object]] = []
        while "pid" not in (answer := self._answer()):
            facts.append(answer)  # the child may be quicker than what its parent says of it
        pid = answer["pid"]
        assert isinstance(pid, int)
        while True:
            if kill_after and len(facts) >= kill_after:
                os.kill(pid, signal.SIGKILL)
                kill_after = 0
            fact = self._answer()
            if "dead" in fact:
                assert fact["dead"], facts[-1:]
                return facts
            facts.append(fact)

    def _answer(self) -> dict[str, object]:
        return json.loads(self._answers.readline())


@contextmanager
def killed_program() -> Iterator[KilledProgram]:
    command = [sys.executable, "-m", "tests.support.killed_program"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        yield KilledProgram(program.stdin, program.stdout)
        program.stdin.close()


def order_for(folder: Path, seed: int) -> tuple[Order, int]:
    """A third each: at any moment, at a line of the code, in the middle of a write."""
    chance = random.Random(seed)
    doing = KINDS[seed % len(KINDS)]
    match chance.randrange(3):
        case 0:
            return Order(str(folder), doing, seed), chance.randint(1, 16)
        case 1:
            return Order(str(folder), doing, seed, line=int(4 ** chance.uniform(0, 6))), 0
        case _:
            return Order(str(folder), doing, seed, write=chance.randint(1, 16)), 0


def kill_all(folder: Path, seeds: range) -> None:
    with killed_program() as program:
        for seed in seeds:
            here = folder / str(seed)
            order, kill_after = order_for(here, seed)
            facts = program.run(order, kill_after)
            check(here, facts)
            check_nothing_is_left(here)
            shutil.rmtree(here, ignore_errors=True)


def test_nothing_acknowledged_is_lost_by_a_kill(tmp_path: Path) -> None:
    kill_all(tmp_path, range(30))


@pytest.mark.thorough
def test_nothing_acknowledged_is_lost_by_two_hundred_kills(tmp_path: Path) -> None:
    kill_all(tmp_path, range(30, 230))


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_by_a_thousand_kills(tmp_path: Path) -> None:
    kill_all(tmp_path, range(KILLS, 2 * KILLS))
