import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from agent_tui import __version__
from agent_tui.cli.doctor import machine

numbers = st.lists(st.integers(0, 12), min_size=1, max_size=4).map(
    lambda parts: ".".join(map(str, parts))
)
comparisons = st.tuples(st.sampled_from([">=", "<=", "<", ">", "==", "!="]), numbers).map("".join)


@given(numbers, st.lists(comparisons, max_size=3).map(",".join))
def test_versions_are_compared_as_pip_compares_them(version, specifier):
    assert machine.fits(version, specifier) == SpecifierSet(specifier).contains(version)


def test_the_programs_own_version_and_its_packages_are_told(environment, find):
    found = find(machine.check_program(environment()))
    assert found["agent-tui"].found == __version__
    packages = find(machine.check_packages(environment()))
    for name in ("textual", "rich", "litellm", "tiktoken"):
        assert packages[name].state == "ok"
        assert packages[name].found[0].isdigit()


def test_a_program_of_the_same_name_is_named_with_the_way_to_remove_it(
    environment, find, monkeypatch
):
    monkeypatch.setattr(machine, "foreign_program", lambda: ("Another one.", "Remove it."))
    check = find(machine.check_program(environment()))["name"]
    assert (check.state, check.found, check.advice) == ("warning", "Another one.", "Remove it.")


def test_a_package_outside_its_bounds_is_bad(environment, find, monkeypatch):
    monkeypatch.setattr("importlib.metadata.requires", lambda name: ["litellm<1.2,>=1.1", "Rich"])
    found = find(machine.check_packages(environment()))
    assert found["litellm"].state == "bad"
    assert "<1.2,>=1.1 is required" in found["litellm"].found
    assert "pip install" in found["litellm"].advice
    assert found["rich"].state == "ok"


def test_a_package_that_is_gone_is_bad(environment, find, monkeypatch):
    monkeypatch.setattr("importlib.metadata.requires", lambda name: ["no-such-package>=1"])
    found = find(machine.check_packages(environment()))
    assert (found["no-such-package"].state, found["no-such-package"].found) == (
        "bad",
        "not installed",
    )


def test_the_vocabulary_is_found_in_litellms_wheel(environment, find):
    assert find(machine.check_counting(environment()))["tokenizer"].state == "ok"


@pytest.mark.parametrize("folder", ["", "/nowhere"])
def test_a_vocabulary_that_would_be_fetched_is_said(environment, find, monkeypatch, folder):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", folder)
    found = find(machine.check_counting(environment()))["tokenizer"]
    assert found.state == "warning"
    assert "TIKTOKEN_CACHE_DIR" in found.advice


def test_musl_is_known_by_how_python_was_built(environment, find, monkeypatch):
    assert not machine.is_musl()
    monkeypatch.setattr("sysconfig.get_config_var", lambda name: "cpython-311-x86_64-linux-musl")
    found = find(machine.check_program(environment()))["C library"]
    assert "no llama.cpp wheel" in found.found
    assert "Ollama" in found.advice
