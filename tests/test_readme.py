"""What the README says is so."""

import re

import pytest

from tests.support.readme_figures import FIGURES, README, Figure
from tests.support.rows import each_row

MOST_LINES = 150
MOST_WORDS_OF_A_BULLET = 15


def test_it_is_short():
    assert len(README.read_text("utf-8").splitlines()) <= MOST_LINES


def test_each_reason_is_one_short_line_with_a_number():
    reasons = README.read_text("utf-8").partition("## Why agent-tui\n")[2].partition("\nLimits")[0]
    bullets = re.findall(r"^- (.+)$", reasons, re.MULTILINE)
    assert len(bullets) == 7
    assert [line for line in bullets if len(line.split()) > MOST_WORDS_OF_A_BULLET] == []
    assert [line for line in bullets if not re.search(r"\d", line)] == []


@each_row("figure", FIGURES, ids=lambda figure: figure.words)
def test_each_number_has_a_measurement(figure: Figure):
    assert figure.read(README.read_text("utf-8"))


@pytest.mark.parametrize(
    "figure",
    [figure for figure in FIGURES if figure.is_exact],
    ids=lambda figure: figure.words,
)
def test_numbers_that_are_counted_are_those_of_the_code(figure: Figure):
    assert figure.read(README.read_text("utf-8")) == figure.measure()
