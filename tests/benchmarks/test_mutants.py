"""What the count of surviving mutants leaves out."""

import pytest

from tests.benchmarks.mutants import is_wording


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('raise E("no such file")', 'raise E("XXno such fileXX")'),
        ('why = f"{path} is outside"', 'why = f"{path} IS OUTSIDE"'),
        ('say("one " "two")', 'say("one " "TWO")'),
    ],
)
def test_a_change_of_a_sentence_is_one_of_wording(before: str, after: str):
    assert is_wording(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('kind = "deny"', 'kind = "XXdenyXX"'),
        (r're.compile("[ \t\n]+")', r're.compile("XX[ \t\n]+XX")'),
        ('raise E("no such file")', "raise E(None)"),
        ('say("not now") if late else ""', 'say("not now") if not late else ""'),
        ('say("not now", 1)', 'say("NOT NOW", 2)'),
    ],
)
def test_a_change_of_a_key_a_pattern_or_the_code_beside_a_sentence_is_none(before: str, after: str):
    assert not is_wording(before, after)
