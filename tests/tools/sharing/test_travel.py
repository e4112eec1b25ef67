"""Sessions of two clones that both write, push, pull and are killed: nothing is lost."""

import random
from pathlib import Path

import pytest

from tests.support.shared_clones import Travel, holds_decoys, sharing_program


def travel(folder: Path, seed: int, *, sessions: int, rounds: int) -> Travel:
    """A history of two clones, checked at its end."""
    with sharing_program() as program:
        history = Travel(folder, program, random.Random(seed))
        history.begin(sessions)
        for _ in range(rounds):
            clone = history.chance.choice(history.clones)
            history.write(clone)
            history.move(clone, may_die=True)
        history.settle()
        history.check()
        return history


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.thorough)])
def test_both_clones_have_the_same_entries_whatever_ended_the_program(
    tmp_path: Path, seed: int
) -> None:
    history = travel(tmp_path, seed, sessions=3, rounds=6)
    own = [any(holds_decoys(clone, one) for one in history.sessions) for clone in history.clones]
    assert own == [True, True], "the originals keep what was removed on the way"


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_a_hundred_sessions_of_two_clones_survive_many_kills(tmp_path: Path) -> None:
    history = travel(tmp_path, 100, sessions=100, rounds=60)
    assert history.kills > 10
