import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.processes.shell import ShellCommand, ShellOrder, ShellResult
from agent_tui.tools.shorten import OutputLimits
from tests.support.patience import PATIENCE_S
from tests.support.processes import nap

EVERYTHING = OutputLimits(max_bytes=100_000_000)


@pytest.fixture
def keeper() -> Iterator[ProcessKeeper]:
    keeper = ProcessKeeper()
    yield keeper
    keeper.close()


async def run(keeper: ProcessKeeper, folder: Path, command: str) -> ShellResult:
    environ = {"PATH": "/usr/bin:/bin"}
    order = ShellOrder(command, cwd=folder, environ=environ, output_dir=folder / "outputs")
    running = ShellCommand(keeper, order, lambda _text, _skipped=0: None)
    await running.wait(PATIENCE_S)
    return running.result(EVERYTHING)


async def test_of_a_huge_output_only_beginning_and_end_are_held_in_memory(
    keeper: ProcessKeeper, tmp_path: Path
) -> None:
    result = await run(keeper, tmp_path, "seq -w 1 300000")
    head, gap, tail = result.text.partition("\n[... ")
    number, _, end = tail.partition(" bytes left out ...]\n")
    assert gap
    assert result.is_cut
    assert head.startswith("000001\n000002\n")
    assert end.endswith("\n299999\n300000")
    # The end is 400,000 bytes or a little more: the pieces it came in are not cut.
    assert 400_000 <= len(end) + 1 < 400_000 + 70_000
    assert len(head) + int(number) + len(end) + 1 == 7 * 300_000
    assert result.full_output_path is not None
    assert result.full_output_path.stat().st_size == 7 * 300_000


async def test_a_command_that_became_too_many_processes_says_so(tmp_path: Path) -> None:
    keeper = ProcessKeeper(most_processes=20)
    command = f"echo begun; for i in $(seq 50); do {nap(71_300)} & done; wait"
    result = await run(keeper, tmp_path, command)
    keeper.close()
    assert result.text == "begun"
    assert re.fullmatch(
        r"killed: it had \d\d processes, more than max_processes allows", result.ending
    )


async def test_an_output_that_fits_into_memory_is_whole(
    keeper: ProcessKeeper, tmp_path: Path
) -> None:
    result = await run(keeper, tmp_path, "seq -w 1 60000")
    assert "left out" not in result.text
    assert result.text == "\n".join(f"{number:05}" for number in range(1, 60_001))
    assert result.full_output_path is None
