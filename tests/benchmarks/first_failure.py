"""A pytest plugin: the process ends with the first failed test, whatever threads still wait."""

import os

import pytest


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """End with exit code 1; `contained_pytest` ends what the test started."""
    if report.failed:
        os._exit(1)
