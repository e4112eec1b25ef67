from pathlib import Path

import pytest

from agent_tui.permissions.shell.guesses import WordGuesser


@pytest.mark.parametrize(
    ("source", "guesses"),
    [
        ("$HOME/x", {"/home/me/x"}),
        ('"${HOME}"/x', {"/home/me/x"}),
        ("$PWD/.env", {"./.env"}),
        ("$(pwd)/.env", {"./.env"}),
        ("${XDG:-$HOME/c}/x", {"/home/me/c/x"}),
        (".{a,b{c,d}}", {".a", ".bc", ".bd"}),
        ("$a", {"1", "2"}),
        ("${a}$b", {"11x", "12x", "21x", "22x"}),
        ("$unknown/x", set()),
        ("$(cat x)", set()),
        ("`cat x`", set()),
        ("$HOME" * 2_000, set()),
    ],
)
def test_a_word_is_guessed_by_what_is_set_in_sight(
    source: str, guesses: set[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("unknown", raising=False)
    guesser = WordGuesser()
    guesser.note_all((("b", "${a}x"), ("a", "1"), ("a", "'2'")))
    assert set(guesser(source)) == guesses


def test_guesses_are_bounded():
    guesser = WordGuesser()
    assert len(guesser("{a,b,c,d}" * 12)) <= 32
    guesser.note_all((("a", "$a$a"),) * 50)
    assert len(guesser("$a")) <= 8


def test_a_home_that_is_not_known_is_no_guess(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("HOME", raising=False)
    assert WordGuesser()("$HOME/x") == ()
