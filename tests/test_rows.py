"""A table that is one case runs all its rows, and names those that fail."""

import asyncio

import pytest

from tests.support.rows import each_row


@pytest.mark.parametrize("asynchronous", [False, True])
def test_each_row_that_fails_is_named_and_none_is_passed_over(asynchronous: bool):
    seen: list[int] = []

    def check(number: int, word: str) -> None:
        seen.append(number)
        if word == "c":
            pytest.fail("no c")
        assert word != "b"

    async def check_async(number: int, word: str) -> None:
        check(number, word)

    table = [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    whole = each_row("number, word", table)(check_async if asynchronous else check)
    with pytest.raises(ExceptionGroup, match="2 of 4 rows fail") as raised:
        asyncio.run(whole()) if asynchronous else whole()
    assert seen == [1, 2, 3, 4]
    named = [error.__notes__ for error in raised.value.exceptions]
    assert named == [["row 2, 'b'"], ["row 3, 'c'"]]


def test_a_table_without_rows_fails():
    with pytest.raises(AssertionError, match="no rows"):
        each_row("number", [])(lambda number: None)()


@each_row("number", [1, 2])
@each_row("word", ["a", "b"], ids=["first", "second"])
def test_tables_multiply_and_fixtures_stay(number: int, word: str, tmp_path_factory: object):
    assert (number, word) in {(1, "a"), (1, "b"), (2, "a"), (2, "b")}
    assert tmp_path_factory
