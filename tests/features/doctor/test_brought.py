"""Checks that features bring, those of packages among them."""

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from agent_tui.features.doctor.check import run_probes
from agent_tui.features.doctor.command import all_probes
from agent_tui.features.sharing.checks import check_encryption
from tests.support.packages import documented_plugin, make_package
from tests.support.patience import PATIENCE_S

CODE = documented_plugin("Feature(")
ENTRIES = {"agent_tui.features": {"moon": "FEATURE"}}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (CODE, ("moon", "moon", "ok", "it is there")),
        (CODE.replace("yield Check(", "raise ValueError("), ("moon", "moon", "warning", "moon")),
        (
            CODE.replace('Check("moon", "moon"', 'Check("tools", "moon"'),
            ("tools", "moon", "ok", ""),
        ),
    ],
)
def test_a_check_of_a_plugin_is_a_line_below_its_heading(
    code: str, expected: tuple[str, str, str, str], tmp_path: Path, config, environment, monkeypatch
):
    make_package(tmp_path / "site", "moon-plugin", code, ENTRIES)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    config.write_text('plugins = ["moon-plugin"]')
    checks = run_probes(all_probes(environment()), PATIENCE_S)
    section, name, state, found = expected
    (check,) = [one for one in checks if one.name == name]
    assert (check.section, check.state) == (section, state)
    assert found in check.found
    headings = [one.section for one in checks]
    assert sorted(headings, key=headings.index) == headings, "each heading once"


@pytest.mark.parametrize("is_there", [True, False])
def test_doctor_says_whether_shared_sessions_can_be_encrypted(
    is_there: bool, environment, monkeypatch: pytest.MonkeyPatch
):
    if not is_there:
        monkeypatch.setattr("agent_tui.features.sharing.checks.version", _no_version)
    (check,) = check_encryption(environment())
    assert check.state == ("ok" if is_there else "info")
    assert ("[encryption]" in check.advice) is not is_there


def _no_version(name: str) -> str:
    raise PackageNotFoundError(name)
