"""Which tests are left out of the default run: those that took much CPU time when last measured.

    python -m pytest -m "thorough or not thorough" --cpu-times FILE
    python -m tests.support.cpu_times FILE

The first command measures each test; the second brings `tests/cpu_times.json` up to date.
"""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest

LIST = Path(__file__).parent.parent / "cpu_times.json"
_ENTERS_S, _LEAVES_S = 0.1, 0.05
"""A test enters the list above the first, and leaves it below the second: between them it stays."""
ALWAYS_RUN = ("tests/safety/", "tests/features/sandbox/test_layouts.py")
"""What stays in every run, however long it takes."""
_KEY = "cpu_s"


class CpuTimes:
    """A plugin that measures each test, its fixtures and child processes included.

    Args:
        file: Gets the seconds of each test, by its id.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._began = 0.0
        self._taken: dict[str, float] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Begin before the fixtures."""
        self._began = _used_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Send the time with the last report of a test: that is how a worker can send it."""
        report = yield
        if call.when == "teardown":
            report.user_properties.append((_KEY, _used_s() - self._began))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the time of a test that was run."""
        if report.when == "teardown":
            seconds = dict(report.user_properties)[_KEY]
            self._taken[report.nodeid.partition("@")[0]] = float(str(seconds))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the file, in the process that has all reports."""
        if not hasattr(session.config, "workerinput"):
            self._file.write_text(json.dumps(self._taken, indent=0))


def read_listed() -> Mapping[str, float]:
    """The tests that are left out of the default run, with their CPU seconds."""
    return json.loads(LIST.read_text())


def choose_listed(measured: Mapping[str, float], listed: Mapping[str, float]) -> dict[str, float]:
    """The tests to leave out of the default run. Each folder keeps its cheapest test.

    Args:
        measured: The CPU seconds of all tests.
        listed: Those left out so far.
    """
    chosen = {
        test: round(seconds, 1)
        for test, seconds in measured.items()
        if seconds > (_LEAVES_S if test in listed else _ENTERS_S)
        and not test.startswith(ALWAYS_RUN)
    }
    folders: dict[Path, list[str]] = defaultdict(list)
    for test in measured:
        folders[Path(test.partition("::")[0]).parent].append(test)
    for tests in folders.values():
        if all(test in chosen for test in tests):
            del chosen[min(tests, key=lambda test: (measured[test], test))]
    return dict(sorted(chosen.items()))


def _used_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    taken = json.loads(Path(sys.argv[1]).read_text())
    LIST.write_text(json.dumps(choose_listed(taken, read_listed()), indent=0) + "\n")
