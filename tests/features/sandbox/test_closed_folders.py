"""Folders that their owner has closed, where the wall cannot hide them from commands."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.features.sandbox.beneath import reopen
from tests.support.watched_folder import WatchedFolder

pytestmark = pytest.mark.skipif(os.geteuid() == 0, reason="root may enter all folders")

_TASKS = "drop/.vscode/tasks.json"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[WatchedFolder]:
    """A folder in a wall that cannot hide what is in it."""
    folders = [tmp_path / name for name in ("proj", "own", "home")]
    for folder in folders:
        folder.mkdir()
    place = WatchedFolder(*folders, has_mounts=False)
    yield place
    reopen(place.root)  # else pytest cannot remove it


def _mode(place: WatchedFolder, name: str = "drop") -> int:
    return (place.root / name).stat().st_mode & 0o777


@pytest.mark.parametrize("mode", [0o000, 0o311, 0o600])
@pytest.mark.parametrize("closed", ["drop", "drop/.vscode"])
async def test_what_a_command_changes_in_one_is_held_back(
    place: WatchedFolder, mode: int, closed: str
):
    place.outside(f"mkdir -p drop/.vscode; echo mine > {_TASKS}; chmod {mode:o} {closed}")
    settled = await place.run(
        f"chmod 755 {closed}; echo evil > {_TASKS}; echo evil > drop/mise.toml;"
        f" chmod {mode:o} {closed}"
    )
    assert place.held(settled) == {_TASKS: "an editor obeys it", "drop/mise.toml": "mise obeys it"}
    assert _mode(place, closed) == mode
    (place.root / closed).chmod(0o755)
    assert place.text(_TASKS) == "mine\n"
    assert not (place.root / "drop/mise.toml").exists()


async def test_what_a_command_writes_by_a_name_in_one_is_held_back(place: WatchedFolder):
    place.outside(f"mkdir -p drop/.vscode; echo mine > {_TASKS}; chmod 311 drop")
    settled = await place.run(f"echo evil > {_TASKS}")
    assert place.held(settled) == {_TASKS: "an editor obeys it"}
    assert _mode(place) == 0o311
    assert place.text(_TASKS) == "mine\n"


async def test_its_mode_is_that_of_the_last_who_set_it(place: WatchedFolder):
    place.outside("mkdir -p drop/sub; chmod 0 drop/sub drop")
    await place.run("true")
    assert _mode(place) == 0
    await place.run("chmod 755 drop")
    assert (_mode(place), _mode(place, "drop/sub")) == (0o755, 0)
    place.outside("chmod 300 drop")
    await place.run("true")
    assert _mode(place) == 0o300


async def test_a_read_only_folder_is_so_again_when_a_file_in_it_is_restored(place: WatchedFolder):
    place.outside(f"mkdir -p drop/.vscode; echo mine > {_TASKS}; chmod 555 drop/.vscode drop")
    closed = "chmod 555 drop/.vscode drop"
    settled = await place.run(f"chmod -R u+w drop; echo evil > {_TASKS}; {closed}")
    assert place.held(settled) == {_TASKS: "an editor obeys it"}
    assert place.text(_TASKS) == "mine\n"
    await place.run("chmod u+w drop; mv drop/.vscode x; chmod -R u+w x; rm -r x; chmod 555 drop")
    assert place.text(_TASKS) == "mine\n"
    assert _mode(place) == 0o555


async def test_what_the_user_allows_in_one_is_put_in_place(place: WatchedFolder):
    place.outside(f"mkdir -p drop/.vscode; echo mine > {_TASKS}; chmod 311 drop")
    (held,) = (await place.run(f"echo new > {_TASKS}")).held
    await place.watch.decide(held, True)
    assert _mode(place) == 0o311
    assert place.text(_TASKS) == "new\n"
    assert not (await place.run("true")).held
