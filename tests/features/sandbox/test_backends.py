import pytest

from agent_tui.features.sandbox.backends import backend_here


def unasked() -> str:
    raise AssertionError("it is not to be tried")


def works() -> str:
    return ""


def test_bubblewrap_is_used_where_it_works():
    assert backend_here("linux", "x86_64", works, unasked) == ("bubblewrap", "")


def test_landlock_is_used_where_it_does_not():
    assert backend_here("linux", "aarch64", lambda: "no bwrap", works) == ("landlock", "")


def test_where_neither_works_both_reasons_are_told():
    found = backend_here("linux", "x86_64", lambda: "no bwrap", lambda: "no Landlock")
    assert found == ("none", "no bwrap; no Landlock")


@pytest.mark.parametrize(
    ("system", "machine", "why"),
    [("darwin", "arm64", "only on Linux"), ("linux", "riscv64", "x86_64 and aarch64")],
)
def test_elsewhere_nothing_is_tried(system: str, machine: str, why: str):
    backend, problem = backend_here(system, machine, unasked, unasked)
    assert backend == "none"
    assert why in problem
