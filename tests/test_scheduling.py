"""A worker that crashes fails the test that it ran, and the others still run."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]


def test_a_crash_fails_one_test_by_its_name(pytester: pytest.Pytester):
    root = Path(__file__).parents[1]
    pytester.makeconftest(
        f"""
        import sys
        sys.path.insert(0, {str(root)!r})
        from tests.support import scheduling

        scheduling._MANY_TESTS = 0

        def pytest_xdist_make_scheduler(config, log):
            return scheduling.FileScheduling(config, log)
        """
    )
    for name in "abc":
        pytester.makepyfile(
            **{
                f"test_{name}": f"""
                import os
                import pytest

                @pytest.mark.parametrize("number", range(5))
                def test_x(number):
                    if ("{name}", number) == ("b", 2):
                        os._exit(7)
                """
            }
        )
    ran = pytester.runpytest_subprocess(
        *("-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider"), timeout=60
    )
    ran.assert_outcomes(passed=14, failed=1)
    ran.stdout.fnmatch_lines(["*crashed while running 'test_b.py::test_x?2?'*"])
