from pathlib import Path

import pytest

from agent_tui.errors import ModelFileError
from agent_tui.features.local.download import Download, PartFacts, PartFile, open_client
from tests.features.local.conftest import MODEL
from tests.support.file_server import FileServer, ServedFile

PATH = "/m.gguf"
HALF = len(MODEL) // 2


class Bench:
    """A server with one file, and everything a transfer of it reported."""

    def __init__(self, server: FileServer, folder: Path) -> None:
        self.server = server
        self.part = PartFile(folder, "m")
        self.progress: list[tuple[int, int | None]] = []
        self.room_asked: list[int] = []
        self.pauses: list[float] = []
        self.is_full = False

    def offer(self, content: bytes = MODEL, **manners: object) -> ServedFile:
        return self.server.offer(PATH, content, **manners)

    async def fetch(self, *, path: str = PATH, is_checked: bool = False) -> str:
        async def pause(seconds: float) -> None:
            self.pauses.append(seconds)

        download = Download(
            address=self.server.url + path,
            part=self.part,
            is_checked=is_checked,
            make_room=self.make_room,
            on_progress=lambda done, total: self.progress.append((done, total)),
            pause=pause,
        )
        async with open_client() as client:
            return await download.fetch(client)

    def make_room(self, missing: int) -> None:
        self.room_asked.append(missing)
        if self.is_full:
            raise ModelFileError(f"{missing} bytes are too many.")

    @property
    def came(self) -> bytes:
        return self.part.path.read_bytes()


@pytest.fixture
def bench(server: FileServer, tmp_path: Path) -> Bench:
    return Bench(server, tmp_path)


async def test_a_file_comes_whole_and_its_progress_is_told(bench: Bench) -> None:
    bench.offer()
    assert await bench.fetch() == ""
    assert bench.came == MODEL
    assert bench.progress[0] == (0, len(MODEL))
    assert bench.progress[-1] == (len(MODEL), len(MODEL))
    assert bench.room_asked == [len(MODEL)]


@pytest.mark.parametrize("etag", ['"one"', ""])
async def test_a_broken_connection_is_taken_up_where_it_broke(bench: Bench, etag: str) -> None:
    served = bench.offer(cuts=[HALF, 1000], etag=etag)
    await bench.fetch(is_checked=not etag)
    assert bench.came == MODEL
    first, second, third = served.ranges
    assert first == ""
    assert int(second[6:-1]) <= HALF
    assert sum(served.bytes_sent) <= len(MODEL) + 2 * 64 * 1024  # what was read but not written
    assert int(third[6:-1]) >= int(second[6:-1])
    assert bench.room_asked[-1] < len(MODEL)


async def test_without_any_mark_of_the_file_it_comes_anew(bench: Bench) -> None:
    served = bench.offer(cuts=[HALF])
    await bench.fetch()
    assert bench.came == MODEL
    assert served.ranges == ["", ""]


async def test_a_weak_etag_is_no_mark(bench: Bench) -> None:
    served = bench.offer(cuts=[HALF], etag='W/"one"')
    await bench.fetch()
    assert served.ranges == ["", ""]


async def test_a_later_transfer_goes_on_from_an_earlier_one(bench: Bench) -> None:
    served = bench.offer(etag='"one"')
    with bench.part.open(0, PartFacts('"one"', len(MODEL))) as file:
        file.write(MODEL[:HALF])
    await bench.fetch()
    assert bench.came == MODEL
    assert served.ranges == [f"bytes={HALF}-"]
    assert served.bytes_sent == [len(MODEL) - HALF]


async def test_a_file_that_changed_meanwhile_comes_anew(bench: Bench) -> None:
    served = bench.offer(etag='"two"')
    with bench.part.open(0, PartFacts('"one"', len(MODEL))) as file:
        file.write(b"GGUF of yesterday")
    await bench.fetch()
    assert bench.came == MODEL
    assert served.bytes_sent == [len(MODEL)]


async def test_a_server_that_knows_no_ranges_sends_all_again(bench: Bench) -> None:
    bench.offer(etag='"one"', knows_ranges=False, cuts=[HALF])
    await bench.fetch()
    assert bench.came == MODEL


async def test_a_server_that_always_breaks_at_one_place_is_given_up(bench: Bench) -> None:
    served = bench.offer(etag='"one"', knows_ranges=False, cuts=[HALF] * 100)
    with pytest.raises(ModelFileError, match="connection lost") as caught:
        await bench.fetch()
    assert "ull again to continue" in caught.value.hint
    assert len(served.ranges) == 5
    assert bench.pauses == sorted(bench.pauses)


async def test_a_part_that_is_whole_is_noticed(bench: Bench) -> None:
    bench.offer(etag='"one"')
    with bench.part.open(0, PartFacts('"one"', len(MODEL))) as file:
        file.write(MODEL)
    await bench.fetch()
    assert bench.came == MODEL


async def test_a_part_longer_than_the_file_is_thrown_away(bench: Bench) -> None:
    bench.offer(etag='"one"')
    with bench.part.open(0, PartFacts('"one"', len(MODEL))) as file:
        file.write(MODEL + b"more")
    await bench.fetch()
    assert bench.came == MODEL


async def test_a_server_that_answers_another_range_is_not_believed(bench: Bench) -> None:
    bench.offer(etag='"one"', headers={"Content-Range": f"bytes 7-{len(MODEL) - 1}/{len(MODEL)}"})
    with bench.part.open(0, PartFacts('"one"', len(MODEL))) as file:
        file.write(MODEL[:HALF])
    await bench.fetch()
    assert bench.came == MODEL


@pytest.mark.parametrize("status", [500, 502, 503, 429])
async def test_a_passing_fault_is_tried_again(bench: Bench, status: int) -> None:
    bench.offer(statuses=[status, status])
    await bench.fetch()
    assert bench.came == MODEL
    assert len(bench.pauses) == 2


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "requires a login"),
        (403, "requires a login"),
        (404, "does not exist"),
        (400, "HTTP 400"),
    ],
)
async def test_a_refusal_is_final(bench: Bench, status: int, words: str) -> None:
    served = bench.offer(statuses=[status] * 9)
    with pytest.raises(ModelFileError, match=words) as caught:
        await bench.fetch()
    assert caught.value.hint
    assert len(served.ranges) == 1


async def test_no_server_is_a_clear_error(tmp_path: Path) -> None:
    with FileServer() as gone:
        bench = Bench(gone, tmp_path)
    with pytest.raises(ModelFileError, match=r"/m\.gguf: All connection .* failed\."):
        await bench.fetch()


async def test_a_redirect_is_followed_and_names_the_hash(bench: Bench) -> None:
    bench.offer(etag='"cdn"')
    digest = "0A" * 32
    bench.server.offer("/link", b"", redirect_to=PATH, headers={"X-Linked-Etag": f'"{digest}"'})
    assert await bench.fetch(path="/link") == digest.lower()
    assert bench.came == MODEL


async def test_another_hash_behind_the_link_begins_anew(bench: Bench) -> None:
    served = bench.offer(etag='"cdn"')
    bench.server.offer("/link", b"", redirect_to=PATH, headers={"X-Linked-Etag": "a" * 64})
    with bench.part.open(0, PartFacts('"cdn"', len(MODEL), "b" * 64)) as file:
        file.write(MODEL[:HALF])
    assert await bench.fetch(path="/link") == "a" * 64
    assert bench.came == MODEL
    assert served.ranges == [f"bytes={HALF}-", ""]


async def test_a_circle_of_redirects_ends(bench: Bench) -> None:
    served = bench.offer(redirect_to=PATH)
    with pytest.raises(ModelFileError, match="redirects too often"):
        await bench.fetch()
    assert len(served.ranges) == 10


async def test_a_redirect_to_plain_http_elsewhere_is_refused(bench: Bench) -> None:
    bench.offer(redirect_to="http://models.example/m.gguf")
    with pytest.raises(ModelFileError, match="redirects to"):
        await bench.fetch()


async def test_a_web_page_is_refused_at_its_first_bytes(bench: Bench) -> None:
    bench.offer(b"<!doctype html>" + MODEL)
    with pytest.raises(ModelFileError, match="not a model file"):
        await bench.fetch()
    assert bench.part.size() == 0


async def test_a_file_of_unknown_length_comes_too(bench: Bench) -> None:
    bench.offer(tells_length=False)
    await bench.fetch()
    assert bench.came == MODEL
    assert bench.progress[-1] == (len(MODEL), None)


async def test_no_room_stops_before_the_first_byte(bench: Bench) -> None:
    bench.offer()
    bench.is_full = True
    with pytest.raises(ModelFileError, match=f"{len(MODEL)} bytes"):
        await bench.fetch()
    assert bench.part.size() == 0


def test_the_note_of_a_part_that_cannot_be_read_is_as_none(tmp_path: Path) -> None:
    part = PartFile(tmp_path, "m")
    (tmp_path / "m.part.json").write_text('{"total_bytes": "many"}')
    assert part.facts() == PartFacts()


@pytest.mark.parametrize(
    ("variable", "value"), [("ALL_PROXY", "foo://x"), ("SSL_CERT_FILE", "/nowhere/certs.pem")]
)
def test_an_environment_that_cannot_be_used_is_named(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ModelFileError, match="the proxy or the certificates of the environment"):
        open_client()
