"""How long a push and a pull take, and how much travels: between two clones on this machine.

python -m tests.benchmarks.sharing --sessions 100 --kilobytes 300
"""

import argparse
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import agent_tui
from agent_tui.sessions.entries import Entry, Header
from tests.support.session_values import entry, reply, result, user
from tests.support.shared_clones import Clone, SharingProgram, make_clones, sharing_program


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--kilobytes", type=int, default=300, help="size of each session")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sharing_program() as program:
        measure(Path(folder), program, arguments.sessions, arguments.kilobytes * 1_000)


def measure(folder: Path, program: SharingProgram, count: int, size: int) -> None:
    remote, ada, bo = make_clones(folder)
    texts = [path.read_text() for path in Path(agent_tui.__file__).parent.rglob("*.py")]
    chance = random.Random(1)
    ids = [begin(ada, texts, chance, size) for _ in range(count)]
    total = sum(path.stat().st_size for path in ada.home.rglob("*.jsonl"))
    print(f"{count} sessions, {total / 1e6:.1f} MB")
    run(program, ada, "share", "--private", "--yes")
    with timed("first push", remote):
        run(program, ada, "push", "--all")
    with timed("push of nothing", remote):
        run(program, ada, "push")
    with timed("first pull", remote):
        run(program, bo, "pull")
    with timed("pull of nothing", remote):
        run(program, bo, "pull")
    for session_id in ids:
        ada.append(session_id, *turn(ada, texts, chance))
    with timed("push of a turn in each", remote):
        run(program, ada, "push")
    with timed("pull of a turn in each", remote):
        run(program, bo, "pull")
    ada.append(ids[0], *turn(ada, texts, chance))
    with timed("push of a turn in one", remote):
        run(program, ada, "push")
    with timed("pull of a turn in one", remote):
        run(program, bo, "pull")


def begin(clone: Clone, texts: list[str], chance: random.Random, size: int) -> str:
    header = Header(cwd=str(clone.root))
    with clone.store.create(header) as log:
        while log.path is None or not log.path.exists() or log.path.stat().st_size < size:
            log.append_many(turn(clone, texts, chance))
    return header.id


def turn(clone: Clone, texts: list[str], chance: random.Random) -> list[Entry]:
    text = chance.choice(texts)
    start = chance.randrange(max(len(text) - 4_000, 1))
    output = text[start : start + chance.randint(200, 4_000)]
    call = f"call_{chance.randrange(1 << 60):x}"
    return [
        entry(user(f"Look at {clone.root}/src and fix what is wrong there.")),
        entry(reply("I read it first.", (call, "read"))),
        entry(result(call, output)),
        entry(reply("It is fixed.")),
    ]


def run(program: SharingProgram, clone: Clone, *argv: str) -> None:
    code, printed = program.run(clone, *argv)
    assert code == 0, printed


@contextmanager
def timed(what: str, remote: Path) -> Iterator[None]:
    before, began = stored_bytes(remote), time.perf_counter()
    yield
    took = time.perf_counter() - began
    print(f"{what:<24} {took:6.2f} s  remote + {(stored_bytes(remote) - before) / 1e3:9,.1f} kB")


def stored_bytes(repository: Path) -> int:
    listed = subprocess.run(
        ("du", "-sb", str(repository / "objects")), check=True, capture_output=True, text=True
    )
    return int(listed.stdout.split()[0])


if __name__ == "__main__":
    main()
