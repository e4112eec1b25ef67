"""Sessions of two clones that both write, push, pull and are killed: nothing is lost."""

import random
from pathlib import Path

import pytest

from tests.support.shared_clones import EVIL, Travel, holds_decoys, sharing_program


def travel(folder: Path, seed: int, *, sessions: int, rounds: int, has_eve: bool = False) -> Travel:
    """A history of two clones, checked at its end."""
    with sharing_program() as program:
        history = Travel(folder, program, random.Random(seed))
        history.begin(sessions)
        if has_eve:
            history.invite_eve()
        for _ in range(rounds):
            if history.eve is not None:
                history.eve.interfere()
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


@pytest.mark.parametrize("seed", [0, pytest.param(11, marks=pytest.mark.thorough)])
def test_somebody_who_pushes_anything_changes_nothing_that_was_written_here(
    tmp_path: Path, seed: int
) -> None:
    history = travel(tmp_path, seed, sessions=3, rounds=5, has_eve=True)
    assert history.eve is not None
    assert history.eve.count > 5
    arrived = [item for one in history.sessions for item in history.clones[0].open(one).entries]
    assert any(item.id.startswith(EVIL) for item in arrived)


@pytest.mark.thorough
def test_a_hundred_sessions_of_two_clones_survive_many_kills(tmp_path: Path) -> None:
    history = travel(tmp_path, 100, sessions=100, rounds=60)
    assert history.kills > 10
