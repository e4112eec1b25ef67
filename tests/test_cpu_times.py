"""Tests that take long leave the default run and come back only when they are clearly quick."""

import json
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.cpu_times import LIST, choose_listed, read_listed

pytest_plugins = ["pytester"]


@pytest.mark.parametrize(
    ("seconds", "is_listed", "leaves_out"),
    [(0.2, False, True), (0.07, False, False), (0.07, True, True), (0.01, True, False)],
)
def test_the_list_changes_only_where_a_time_is_far_from_it(
    seconds: float, is_listed: bool, leaves_out: bool
):
    test = "tests/ui/test_a.py::test_b[c]"
    measured = {test: seconds, "tests/ui/test_a.py::test_quick": 0.01}
    chosen = choose_listed(measured, {test: 0.5} if is_listed else {})
    assert list(chosen) == ([test] if leaves_out else [])


def test_each_folder_keeps_its_cheapest_test_and_what_is_about_safety_stays():
    measured = {
        "tests/a/test_x.py::test_1": 3.0,
        "tests/a/test_y.py::test_2": 2.0,
        "tests/a/b/test_z.py::test_3": 9.0,
        "tests/safety/test_s.py::test_4": 9.0,
    }
    assert choose_listed(measured, {}) == {"tests/a/test_x.py::test_1": 3.0}


def test_time_of_fixtures_and_children_counts(pytester: pytest.Pytester, tmp_path: Path):
    pytester.makepyfile(
        test_a="""
        import subprocess, sys
        import pytest

        BUSY = "import time\\nwhile time.process_time() < 0.5: pass"

        @pytest.fixture
        def busy():
            subprocess.run([sys.executable, "-c", BUSY], check=True)

        def test_busy(busy): pass
        def test_idle(): pass
        """
    )
    root = Path(__file__).parents[1]
    pytester.makeconftest(
        f"""
        import sys
        from pathlib import Path
        sys.path.insert(0, {str(root)!r})
        from tests.support.cpu_times import CpuTimes

        def pytest_configure(config):
            config.pluginmanager.register(CpuTimes(Path({str(tmp_path / "times")!r})))
        """
    )
    pytester.runpytest_subprocess("-p", "no:xdist", "-p", "no:cacheprovider").assert_outcomes(
        passed=2
    )
    taken = json.loads((tmp_path / "times").read_text())
    assert taken["test_a.py::test_busy"] > 0.4
    assert taken["test_a.py::test_idle"] < taken["test_a.py::test_busy"]


def test_the_list_names_tests_that_are_there():
    root = LIST.parent.parent
    functions = {test.partition("[")[0] for test in read_listed()}
    by_file: defaultdict[str, set[str]] = defaultdict(set)
    for file, _, function in (name.partition("::") for name in functions):
        by_file[file].add(function.rpartition("::")[2])
    texts = {file: (root / file).read_text("utf-8") for file in by_file if (root / file).exists()}
    gone = [
        f"{file}::{name}"
        for file, names in sorted(by_file.items())
        for name in sorted(names)
        if f"def {name}(" not in texts.get(file, "")
    ]
    assert gone == []
