import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui import __version__
from agent_tui.commands.core.checks import Check, CheckState
from agent_tui.features.doctor.command import as_json, as_text, fit_to_show, is_healthy

words = st.lists(st.text("abc xyz", max_size=9), max_size=30).map(" ".join)
states = st.sampled_from(CheckState.__args__)
checks = st.lists(
    st.builds(
        Check,
        section=st.sampled_from(["one", "two"]),
        name=st.text("abc", min_size=1, max_size=15),
        state=states,
        found=words,
        advice=words.map(lambda text: f"Do {text}"),
    )
).map(lambda found: sorted(found, key=lambda check: check.section))

MIXED = (
    Check("git", "ok", "2.44", "", "tools"),
    Check("rg", "info", "not found", "", "tools"),
    Check("bash", "warning", "not found", "Install bash.", "tools"),
    Check("default", "bad", "none", "Choose one.", "model"),
)


@given(checks, st.integers(0, 200))
def test_no_line_is_wider_than_the_screen(found, columns):
    width = min(columns, 100) if columns >= 40 else 80
    for line in as_text(found, columns=columns).splitlines():
        assert len(line) <= width


@given(checks)
def test_all_that_was_found_and_advised_is_printed(found):
    printed = " ".join(as_text(found, columns=80).split())
    for check in found:
        assert " ".join(f"-> {check.advice}".split()) in printed
        assert " ".join(f"{check.name} {check.found}".split()) in printed


@given(checks)
def test_the_json_holds_every_check(found):
    report = json.loads(json.dumps(as_json(found)))
    assert set(report) == {"version", "ok", "checks"}
    assert report["version"] == __version__
    assert report["ok"] == all(check.state != "bad" for check in found)
    assert [Check(**check) for check in report["checks"]] == found


def test_each_state_has_its_mark():
    for line in ("  ✓ git", "  · rg", "  ! bash", "  ✗ default"):
        assert line in as_text(MIXED)


def test_colour_is_only_where_it_was_asked_for():
    assert "\x1b" not in as_text(MIXED)
    assert "\x1b[31m✗\x1b[0m" in as_text(MIXED, is_coloured=True)


def test_the_end_names_what_is_wrong():
    assert as_text(MIXED).endswith("Problems: model/default.\nWarnings: tools/bash.\n")
    assert as_text(MIXED[:2]).endswith("No problems found.\n")


@pytest.mark.parametrize(("count", "healthy"), [(3, True), (4, False)])
def test_only_what_is_bad_makes_it_unhealthy(count, healthy):
    assert is_healthy(MIXED[:count]) == healthy


def test_nothing_secret_or_steering_is_left_in_any_text():
    odd = "\x1b]52;c;cm0=\x07\x1b[31ma\nb sk-0123456789abcdef \u202e http://me:hunter2@host/ \udcff"
    (shown,) = fit_to_show([Check(odd, "bad", odd, odd)], ["plain-secret"])
    for text in (shown.name, shown.found, shown.advice):
        assert text.startswith("a b [key removed]")
        assert "http://host/" in text
        text.encode("utf-8")
        assert not {"\x1b", "\n", "\x07", "\u202e"} & set(text)


def test_a_secret_is_removed_whatever_stands_in_the_middle_of_it():
    secret = "two  words\x1b[1mbold"
    for text in (secret, f"x{secret}y"):
        (shown,) = fit_to_show([Check("n", "ok", text)], [secret])
        assert "words" not in shown.found
