"""One test for a whole table: a case for each of its rows would cost memory in every worker."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest

_Test = Callable[..., Any]


def each_row(
    names: str | Sequence[str],
    rows: Iterable[Any],
    *,
    ids: Iterable[str] | Callable[[Any], object] | None = None,
) -> Callable[[_Test], _Test]:
    """Run a test with each row of a table, as one case.

    It takes what `pytest.mark.parametrize` takes. All rows get the same fixtures: it is for tests
    that change none.

    Args:
        names: The arguments that a row gives, with commas between them or as a sequence.
        rows: A value for each row, or as many values as there are names.
        ids: A name for each row, or what makes one of its first value. Otherwise a row is named
            by its values.

    Returns:
        A decorator. Where rows fail, the test raises all their errors as one group, each with the
        name of its row.
    """
    words = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    table = [(row,) if len(words) == 1 else tuple(row) for row in rows]
    labels = None if ids is None or callable(ids) else list(ids)

    def name_row(number: int) -> str:
        if labels is not None:
            return labels[number]
        return str(ids(table[number][0])) if callable(ids) else ", ".join(map(repr, table[number]))

    def decorate(test: _Test) -> _Test:
        if inspect.iscoroutinefunction(test):

            @wraps(test)
            async def run_async(**fixtures: Any) -> None:
                failures = _Failures(name_row)
                for number, row in enumerate(table):
                    with failures.collect(number):
                        await test(**fixtures, **dict(zip(words, row, strict=True)))
                failures.raise_all(len(table))

            return _drop_arguments(run_async, words)

        @wraps(test)
        def run(**fixtures: Any) -> None:
            failures = _Failures(name_row)
            for number, row in enumerate(table):
                with failures.collect(number):
                    test(**fixtures, **dict(zip(words, row, strict=True)))
            failures.raise_all(len(table))

        return _drop_arguments(run, words)

    return decorate


class _Failures:
    def __init__(self, name_row: Callable[[int], str]) -> None:
        self._name_row = name_row
        self._errors: list[Exception] = []

    @contextmanager
    def collect(self, number: int) -> Iterator[None]:
        try:
            yield
        except pytest.fail.Exception as failed:  # pytest's own, which is no Exception
            self._keep(AssertionError(str(failed)), number)
        except Exception as error:  # noqa: BLE001 - it is raised again with the others
            self._keep(error, number)

    def raise_all(self, rows: int) -> None:
        assert rows, "the table has no rows"
        if self._errors:
            raise ExceptionGroup(f"{len(self._errors)} of {rows} rows fail", self._errors)

    def _keep(self, error: Exception, number: int) -> None:
        error.add_note(f"row {self._name_row(number)[:500]}")
        self._errors.append(error)


def _drop_arguments(test: _Test, words: Sequence[str]) -> _Test:
    signature = inspect.signature(test)
    kept = [one for name, one in signature.parameters.items() if name not in words]
    test.__signature__ = signature.replace(parameters=kept)  # pyright: ignore[reportFunctionMemberAccess]
    return test
