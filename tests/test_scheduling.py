"""What runs where, and what a run leaves out; a worker that crashes fails the test that it ran."""

from pathlib import Path

import pytest

from tests.support.left_out import short_name

pytest_plugins = ["pytester"]


def test_a_crash_fails_one_test_by_its_name(pytester: pytest.Pytester):
    root = Path(__file__).parents[1]
    pytester.makeconftest(
        f"""
        import sys
        sys.path.insert(0, {str(root)!r})
        from tests.support import scheduling

        scheduling.MANY_TESTS = 0

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


@pytest.mark.parametrize(
    ("most", "told"), [(3, {"passed": 2, "deselected": 2}), (4, {"passed": 2, "skipped": 2})]
)
def test_what_a_run_leaves_out_is_skipped_among_few_tests_and_dropped_from_many(
    most: int, told: dict[str, int], pytester: pytest.Pytester
):
    root = Path(__file__).parents[1]
    pytester.makeini("[pytest]\nmarkers =\n slow\n thorough\n interop\n real_model")
    pytester.makeconftest(
        f"""
        import sys
        sys.path.insert(0, {str(root)!r})
        from tests.support import left_out

        left_out.MANY_TESTS = {most}

        def pytest_collection_modifyitems(config, items):
            left_out.leave_out(config, items)
        """
    )
    pytester.makepyfile(
        """
        import pytest

        def test_quick(): pass

        @pytest.mark.slow
        def test_slow(): pass

        @pytest.mark.thorough
        @pytest.mark.interop
        def test_thorough(): pass
        """
    )
    long = pytester.path / "tests/safety/test_long.py"
    long.parent.mkdir(parents=True)
    long.write_text("def test_long(): pass")
    plain = ("-p", "no:cacheprovider", "-p", "no:xdist", "-v")
    ran = pytester.runpytest_subprocess(*plain, timeout=60)
    ran.assert_outcomes(**told)
    names = [line.partition(" ")[0] for line in ran.outlines if "PASSED" in line]
    assert (names[0] == "tests/safety/test_long.py::test_long") is ("deselected" in told)
    named = (*plain, "-m", "slow")
    pytester.runpytest_subprocess(*named, timeout=60).assert_outcomes(passed=1, deselected=3)


def test_a_long_text_gets_a_short_name():
    assert short_name("x" * 80) is None
    assert short_name(3) is None
    name = short_name("é\n" * 1_000) or ""
    assert name.startswith(r"'\xe9\n\xe9\n")
    assert name.endswith("...2000")
    assert len(short_name(b"[" * 600_000) or "") < 100
