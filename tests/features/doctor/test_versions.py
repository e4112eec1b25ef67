import re

from agent_tui import __version__
from agent_tui.features.doctor import machine


def test_the_programs_own_version_and_its_packages_are_told(environment, find):
    found = find(machine.check_program(environment()))
    assert found["agent-tui"].found == __version__
    (packages,) = machine.check_packages(environment())
    assert packages.state == "ok"
    assert re.search(r"textual \d+\.\S+, litellm \d", packages.found)


def test_a_program_of_the_same_name_is_named_with_the_way_to_remove_it(
    environment, find, monkeypatch
):
    monkeypatch.setattr(machine, "foreign_program", lambda: ("Another one.", "Remove it."))
    check = find(machine.check_program(environment()))["name"]
    assert (check.state, check.found, check.advice) == ("warning", "Another one.", "Remove it.")


def test_a_package_outside_its_bounds_is_bad(environment, find, monkeypatch):
    monkeypatch.setattr(machine, "requires", lambda name: ["litellm<1.2,>=1.1", "Rich"])
    found = find(machine.check_packages(environment()))
    assert found["litellm"].state == "bad"
    assert "<1.2,>=1.1 is required" in found["litellm"].found
    assert "pip install" in found["litellm"].advice
    assert "rich" not in found


def test_a_package_that_is_gone_is_bad(environment, find, monkeypatch):
    monkeypatch.setattr(machine, "requires", lambda name: ["no-such-package>=1"])
    found = find(machine.check_packages(environment()))
    assert (found["no-such-package"].state, found["no-such-package"].found) == (
        "bad",
        "not installed",
    )
