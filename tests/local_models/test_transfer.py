import re
from pathlib import Path
from typing import cast

import pytest
import requests
import urllib3

from agent_tui.errors import ModelFileError
from agent_tui.local_models.pull.transfer import PartFacts, PartFile, Session, Transfer
from tests.local_models.conftest import MODEL
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

    def offer(self, content: bytes = MODEL, **manners: object) -> ServedFile:
        return self.server.offer(PATH, content, **manners)

    def fetch(
        self, *, path: str = PATH, pinned_bytes: int | None = None, is_checked: bool = False
    ) -> str:
        transfer = Transfer(
            address=self.server.url + path,
            part=self.part,
            start=b"GGUF",
            pinned_bytes=pinned_bytes,
            is_checked=is_checked,
            make_room=self.room_asked.append,
            on_progress=lambda done, total: self.progress.append((done, total)),
            failures=(requests.RequestException, urllib3.exceptions.HTTPError),
            pause=self.pauses.append,
        )
        with requests.Session() as session:
            session.trust_env = False
            return transfer.fetch(cast(Session, session))

    @property
    def came(self) -> bytes:
        return self.part.path.read_bytes()


@pytest.fixture
def bench(server: FileServer, tmp_path: Path) -> Bench:
    return Bench(server, tmp_path)


def test_a_file_comes_whole_and_its_progress_is_told(bench: Bench) -> None:
    bench.offer()
    assert bench.fetch() == ""
    assert bench.came == MODEL
    assert bench.progress[0] == (0, len(MODEL))
    assert bench.progress[-1] == (len(MODEL), len(MODEL))
    assert bench.room_asked == [len(MODEL)]


@pytest.mark.parametrize("etag", ['"one"', ""])
def test_a_broken_connection_is_taken_up_where_it_broke(bench: Bench, etag: str) -> None:
    served = bench.offer(cuts=[HALF, 1000], etag=etag)
    bench.fetch(is_checked=not etag)
    assert bench.came == MODEL
    first, second, third = served.ranges
    assert first == ""
    assert int(second[6:-1]) <= HALF
    assert sum(served.bytes_sent) <= len(MODEL) + 2 * 64 * 1024  # what was read but not written
    assert int(third[6:-1]) >= int(second[6:-1])
    assert bench.room_asked[-1] < len(MODEL)


def test_without_any_mark_of_the_file_it_comes_anew(bench: Bench) -> None:
    served = bench.offer(cuts=[HALF])
    bench.fetch()
    assert bench.came == MODEL
    assert served.ranges == ["", ""]


def test_a_weak_etag_is_no_mark(bench: Bench) -> None:
    served = bench.offer(cuts=[HALF], etag='W/"one"')
    bench.fetch()
    assert served.ranges == ["", ""]


def test_a_later_transfer_goes_on_from_an_earlier_one(bench: Bench) -> None:
    served = bench.offer(etag='"one"')
    with bench.part.open(0, PartFacts('"one"', len(MODEL))) as file:
        file.write(MODEL[:HALF])
    bench.fetch()
    assert bench.came == MODEL
    assert served.ranges == [f"bytes={HALF}-"]
    assert served.bytes_sent == [len(MODEL) - HALF]


def test_a_file_that_changed_meanwhile_comes_anew(bench: Bench) -> None:
    served = bench.offer(etag='"two"')
    with bench.part.open(0, PartFacts('"one"', len(MODEL))) as file:
        file.write(b"GGUF of yesterday")
    bench.fetch()
    assert bench.came == MODEL
    assert served.bytes_sent == [len(MODEL)]


def test_a_server_that_knows_no_ranges_sends_all_again(bench: Bench) -> None:
    bench.offer(etag='"one"', knows_ranges=False, cuts=[HALF])
    bench.fetch()
    assert bench.came == MODEL


def test_a_server_that_always_breaks_at_one_place_is_given_up(bench: Bench) -> None:
    served = bench.offer(etag='"one"', knows_ranges=False, cuts=[HALF] * 100)
    with pytest.raises(ModelFileError, match="connection lost") as caught:
        bench.fetch()
    assert "ull again to continue" in caught.value.hint
    assert len(served.ranges) == 5
    assert bench.pauses == sorted(bench.pauses)


def test_a_part_that_is_whole_is_noticed(bench: Bench) -> None:
    bench.offer(etag='"one"')
    with bench.part.open(0, PartFacts('"one"', len(MODEL))) as file:
        file.write(MODEL)
    bench.fetch()
    assert bench.came == MODEL


def test_a_part_longer_than_the_file_is_thrown_away(bench: Bench) -> None:
    bench.offer(etag='"one"')
    with bench.part.open(0, PartFacts('"one"', len(MODEL))) as file:
        file.write(MODEL + b"more")
    bench.fetch()
    assert bench.came == MODEL


def test_a_server_that_answers_another_range_is_not_believed(bench: Bench) -> None:
    bench.offer(etag='"one"', headers={"Content-Range": f"bytes 7-{len(MODEL) - 1}/{len(MODEL)}"})
    with bench.part.open(0, PartFacts('"one"', len(MODEL))) as file:
        file.write(MODEL[:HALF])
    bench.fetch()
    assert bench.came == MODEL


@pytest.mark.parametrize("status", [500, 502, 503, 429])
def test_a_passing_fault_is_tried_again(bench: Bench, status: int) -> None:
    bench.offer(statuses=[status, status])
    bench.fetch()
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
def test_a_refusal_is_final(bench: Bench, status: int, words: str) -> None:
    served = bench.offer(statuses=[status] * 9)
    with pytest.raises(ModelFileError, match=words) as caught:
        bench.fetch()
    assert caught.value.hint
    assert len(served.ranges) == 1


def test_no_server_is_a_clear_error(tmp_path: Path) -> None:
    with FileServer() as gone:
        bench = Bench(gone, tmp_path)
    with pytest.raises(ModelFileError, match="Cannot download"):
        bench.fetch()


def test_a_redirect_is_followed_and_names_the_hash(bench: Bench) -> None:
    bench.offer(etag='"cdn"')
    digest = "0A" * 32
    bench.server.offer("/link", b"", redirect_to=PATH, headers={"X-Linked-Etag": f'"{digest}"'})
    assert bench.fetch(path="/link") == digest.lower()
    assert bench.came == MODEL


def test_another_hash_behind_the_link_begins_anew(bench: Bench) -> None:
    served = bench.offer(etag='"cdn"')
    bench.server.offer("/link", b"", redirect_to=PATH, headers={"X-Linked-Etag": "a" * 64})
    with bench.part.open(0, PartFacts('"cdn"', len(MODEL), "b" * 64)) as file:
        file.write(MODEL[:HALF])
    assert bench.fetch(path="/link") == "a" * 64
    assert bench.came == MODEL
    assert served.ranges == [f"bytes={HALF}-", ""]


def test_a_circle_of_redirects_ends(bench: Bench) -> None:
    served = bench.offer(redirect_to=PATH)
    with pytest.raises(ModelFileError, match="redirects too often"):
        bench.fetch()
    assert len(served.ranges) == 10


def test_a_redirect_to_plain_http_elsewhere_is_refused(bench: Bench) -> None:
    bench.offer(redirect_to="http://models.example/m.gguf")
    with pytest.raises(ModelFileError, match="redirects to"):
        bench.fetch()


def test_a_web_page_is_refused_at_its_first_bytes(bench: Bench) -> None:
    bench.offer(b"<!doctype html>" + MODEL)
    with pytest.raises(ModelFileError, match="not a model file"):
        bench.fetch()
    assert bench.part.size() == 0


@pytest.mark.parametrize("tells_length", [True, False])
def test_more_than_the_pinned_size_is_refused(bench: Bench, tells_length: bool) -> None:
    bench.offer(tells_length=tells_length)
    with pytest.raises(ModelFileError, match="not the expected file"):
        bench.fetch(pinned_bytes=HALF)
    assert bench.part.size() == 0


def test_a_file_of_unknown_length_comes_too(bench: Bench) -> None:
    bench.offer(tells_length=False)
    bench.fetch()
    assert bench.came == MODEL
    assert bench.progress[-1] == (len(MODEL), None)


def test_no_room_stops_before_the_first_byte(bench: Bench) -> None:
    bench.offer()

    def full(missing: int) -> None:
        raise ModelFileError(f"{missing} bytes are too many.")

    transfer = Transfer(
        address=bench.server.url + PATH,
        part=bench.part,
        start=b"GGUF",
        pinned_bytes=None,
        is_checked=False,
        make_room=full,
        on_progress=lambda done, total: None,
    )
    with requests.Session() as session, pytest.raises(ModelFileError, match=f"{len(MODEL)} bytes"):
        transfer.fetch(cast(Session, session))
    assert bench.part.size() == 0


def test_the_note_of_a_part_that_cannot_be_read_is_as_none(tmp_path: Path) -> None:
    part = PartFile(tmp_path, "m")
    (tmp_path / "m.part.json").write_text('{"total_bytes": "many"}')
    assert part.facts() == PartFacts()


def test_a_failure_is_told_in_words_for_people(bench: Bench) -> None:
    transfer = Transfer(
        address="http://127.0.0.1:9/m.gguf",
        part=bench.part,
        start=b"GGUF",
        pinned_bytes=None,
        is_checked=False,
        make_room=lambda missing: None,
        on_progress=lambda done, total: None,
        failures=(requests.RequestException,),
        pause=bench.pauses.append,
    )
    with requests.Session() as session:
        session.trust_env = False
        with pytest.raises(ModelFileError) as raised:
            transfer.fetch(cast(Session, session))
    assert re.fullmatch(
        r"Cannot download http://127\.0\.0\.1:9/m\.gguf: "
        r"Failed to establish a new connection: \[Errno \d+\] Connection refused\.",
        raised.value.message,
    )
    assert bench.pauses
