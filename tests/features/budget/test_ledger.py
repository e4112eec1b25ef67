"""The sum of a day: several programs, kills, midnight, a clock set back, and a damaged file."""

import json
import os
import signal
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.errors import ConfigError
from agent_tui.features.budget.ledger import DayLedger
from agent_tui.file_locks import hold_lock
from tests.support.patience import PATIENCE_S
from tests.support.rows import each_row

TODAY = date(2026, 3, 29)
"""Summer time begins on it in Europe."""

_SPENDS = """
import sys
from pathlib import Path
from agent_tui.features.budget.ledger import DayLedger

ledger = DayLedger(Path(sys.argv[1]), within_s=float(sys.argv[3]))
for _ in range(int(sys.argv[2])):
    ledger.add(0.01)
    print("added", flush=True)
"""


def ledger_on(file: Path, day: date = TODAY) -> DayLedger:
    return DayLedger(file, lambda: day, within_s=0)


def test_the_sum_is_that_of_the_local_day(tmp_path: Path):
    file = tmp_path / "data" / "day.json"
    assert ledger_on(file).add(0.5) == 0.5
    assert ledger_on(file).add(0.25) == 0.75
    assert ledger_on(file, TODAY + timedelta(days=1)).add(0) == 0
    assert ledger_on(file).add(0) == 0.75, "looking changes nothing"
    assert ledger_on(file, TODAY + timedelta(days=1)).add(0.1) == 0.1


def test_a_clock_set_back_gives_nothing_back(tmp_path: Path):
    file = tmp_path / "day.json"
    ledger_on(file).add(3)
    yesterday = ledger_on(file, TODAY - timedelta(days=1))
    assert yesterday.add(0) == 3
    assert yesterday.add(1) == 4
    assert ledger_on(file).add(0) == 0, "a wrong date in the future does not last"


def test_a_sum_of_a_day_that_is_far_ahead_is_no_sum_of_today(tmp_path: Path):
    file = tmp_path / "day.json"
    ledger_on(file, TODAY + timedelta(days=400)).add(3)
    with pytest.raises(ConfigError, match=r"2027-05-03, which has not come.*Delete the file"):
        ledger_on(file).add(0)


@given(
    costs=st.lists(
        st.tuples(st.integers(min_value=0, max_value=3), st.integers(min_value=0, max_value=100))
    )
)
def test_each_day_has_the_sum_of_its_own_costs(tmp_path_factory, costs: list[tuple[int, int]]):
    file = tmp_path_factory.mktemp("ledger") / "day.json"
    day, expected = TODAY, 0
    for days, cents in costs:
        day += timedelta(days=days)
        expected = cents if days else expected + cents
        assert round(ledger_on(file, day).add(cents / 100) * 100) == expected


@each_row(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"day": "2026-03-29"}',
        b'{"day": "2026-03-29", "usd": "1"}',
        b'{"day": "2026-03-29", "usd": true}',
        b'{"day": "2026-03-29", "usd": -1}',
        b'{"day": "2026-03-29", "usd": NaN}',
        b'{"day": "2026-03-29", "usd": Infinity}',
        b'{"day": "2026-02-30", "usd": 1}',
        b'{"usd": 1}',
    ],
)
def test_a_damaged_file_is_named_and_kept(tmp_path_factory, content: bytes):
    file = tmp_path_factory.mktemp("ledger") / "day.json"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"day\.json is damaged.* Delete the file"):
        ledger_on(file).add(0.1)
    assert file.read_bytes() == content


def test_what_cannot_be_stored_is_an_error(tmp_path: Path):
    (tmp_path / "data").write_text("a file, not a folder")
    with pytest.raises(ConfigError, match="cannot be stored"):
        ledger_on(tmp_path / "data" / "day.json").add(0.1)


def test_a_program_that_holds_the_lock_is_named(tmp_path: Path):
    with hold_lock(tmp_path / "day.json.lock", within_s=0), pytest.raises(ConfigError, match="use"):
        ledger_on(tmp_path / "day.json").add(0.1)


@pytest.mark.thorough
def test_programs_that_spend_at_once_lose_nothing_and_kills_leave_a_whole_file(tmp_path: Path):
    file = tmp_path / "day.json"

    def spend(times: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", _SPENDS, str(file), str(times), str(PATIENCE_S)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    killed = [spend(100_000) for _ in range(2)]
    added = 0
    for program in killed:
        assert program.stdout is not None
        for _ in range(20):
            program.stdout.readline()
            added += 1
        os.kill(program.pid, signal.SIGKILL)
        rest = program.communicate()[0]
        added += rest.count("added\n")
    before = json.loads(file.read_text())["usd"]
    assert added <= round(before * 100) <= added + len(killed), "killed before it said so"
    programs = [spend(25) for _ in range(3)]
    assert [program.wait() for program in programs] == [0, 0, 0]
    for program in programs:
        program.communicate()
    assert DayLedger(file).add(0) == pytest.approx(before + 0.75)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".tmp"] == ["day.json"]
