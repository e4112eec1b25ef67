"""`SECURITY.md` names the tests behind each promise, and they are there."""

import re
from pathlib import Path

from tests.support.rows import each_row

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "SECURITY.md").read_text(encoding="utf-8")
PROMISES = re.split(r"(?m)^- ", PAGE.partition("## What is promised")[2].partition("\n## ")[0])[1:]


@each_row("promise", PROMISES, ids=lambda text: text[:40])
def test_a_promise_names_the_tests_that_hold_it(promise: str):
    named = re.findall(r"(?m)^  `([\w/]+\.py)(?:::(\w+))?`$", promise)
    assert named
    for file, test in named:
        source = (TESTS / file).read_text(encoding="utf-8")
        assert not test or f"def {test}(" in source, f"{file}::{test}"


def test_there_are_promises():
    assert len(PROMISES) > 10
