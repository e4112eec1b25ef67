import asyncio
import os
import shutil
import socket
from collections.abc import AsyncGenerator
from pathlib import Path

import psutil
import pytest

from agent_tui.features.sandbox.landlock_launcher import INODE
from agent_tui.features.sandbox.made_sockets import MadeSockets, inode_of_peer
from agent_tui.features.sandbox.sandbox import Sandbox
from agent_tui.features.sandbox.wall import WallParts
from tests.support.network_gate import ASK_PROXY, loopback_gate
from tests.support.patience import PATIENCE_S
from tests.support.sandbox import make_sandbox, needs_landlock, run_inside


@pytest.mark.parametrize(("family", "host"), [(2, "127.0.0.1"), (10, "::ffff:127.0.0.1")])
def test_the_kernel_says_which_socket_is_at_the_other_end(family: int, host: str):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(family) as near:
        near.connect((host, server.getsockname()[1]))
        far, peer = server.accept()
        with far:
            assert inode_of_peer(peer, far.getsockname()) == os.fstat(near.fileno()).st_ino
            assert inode_of_peer(("127.0.0.2", peer[1]), far.getsockname()) == 0


def test_sockets_are_known_as_soon_as_they_are_noted_in_pieces_too():
    made = MadeSockets()
    notes = INODE.pack(7) + INODE.pack(8)
    os.write(made.notes, notes[:11])
    assert (made.has(7), made.has(8)) == (True, False)
    os.write(made.notes, notes[11:])
    assert made.has(8)
    made.close_notes()
    assert not made.has(9)
    made.close()


_ASK = f"bash {ASK_PROXY.name} http://a.test/page"


def landlock_sandbox(folder: Path) -> Sandbox:
    """A sandbox with a gate that refuses all hosts, and without bubblewrap."""
    (folder / "work").mkdir(parents=True)
    shutil.copy(ASK_PROXY, folder / "work")
    parts = WallParts(gate=loopback_gate(), gate_program=Path("/not/started"))
    return make_sandbox(folder, parts=parts, environ={"PATH": str(folder)})


@pytest.fixture
async def walls(tmp_path: Path) -> AsyncGenerator[list[tuple[Sandbox, Path]], None]:
    """Two sandboxes in folders of their own."""
    made = [(landlock_sandbox(folder := tmp_path / name), folder / "work") for name in "ab"]
    yield made
    for sandbox, _ in made:
        await sandbox.close_walls()


@needs_landlock
async def test_the_gate_on_the_machines_loopback_serves_only_its_own_wall(
    walls: list[tuple[Sandbox, Path]],
):
    for sandbox, folder in walls:
        _, printed = await run_inside(sandbox, folder, _ASK)
        assert printed.startswith("HTTP/1.1 403")
    (one, work), (other, elsewhere) = walls
    proxy = one.environ(work, {})["http_proxy"]
    assert proxy != other.environ(elsewhere, {})["http_proxy"]
    _, printed = await run_inside(other, elsewhere, f"http_proxy={proxy}; {_ASK}")
    assert "403" not in printed
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.rpartition(":")[2]))
    assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
    writer.close()


@needs_landlock
async def test_what_listens_outside_for_a_wall_goes_with_it_and_opens_no_name_that_it_can_change(
    walls: list[tuple[Sandbox, Path]],
):
    (one, work), _ = walls
    await one.keeper(work)
    port = int(one.environ(work, {})["http_proxy"].rpartition(":")[2])
    children = psutil.Process().children(recursive=True)
    assert not any("gate_process" in " ".join(child.cmdline()) for child in children)
    await one.close_walls()
    with pytest.raises(OSError, match="onnect"):
        await asyncio.open_connection("127.0.0.1", port)
