import os
import struct
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.errors import ModelFileError
from agent_tui.features.local import gguf as gguf_fields
from agent_tui.features.local.gguf import FieldReader, read_gguf
from tests.support.gguf_files import CHAT_FIELDS, Tensor, gguf_bytes, text

WHOLE = gguf_bytes()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "model.gguf"


def written(place: Path, content: bytes) -> Path:
    place.write_bytes(content)
    return place


def test_a_file_tells_what_it_is(place: Path) -> None:
    info = read_gguf(written(place, WHOLE))
    assert (info.name, info.architecture, info.licence) == ("Tiny Test", "llama", "mit")
    assert (info.window, info.quantisation) == (2048, "Q4_1")
    assert (info.use, info.has_chat_template, info.knows_tools) == ("chat", True, False)
    assert info.size_bytes == info.expected_bytes == len(WHOLE)
    assert info.is_complete


@pytest.mark.parametrize(
    ("template", "knows_tools"),
    [("{% if tools %}x{% endif %}", True), ("{{ toolset }}", False), ("", False)],
)
def test_a_template_that_names_tools_knows_tools(
    place: Path, template: str, knows_tools: bool
) -> None:
    fields = {**CHAT_FIELDS, "tokenizer.chat_template": template}
    info = read_gguf(written(place, gguf_bytes(fields)))
    assert info.knows_tools is knows_tools
    assert info.has_chat_template is bool(template)


def test_a_template_for_tool_use_alone_counts(place: Path) -> None:
    fields = {**CHAT_FIELDS, "tokenizer.chat_template.tool_use": "x"}
    assert read_gguf(written(place, gguf_bytes(fields))).knows_tools


@pytest.mark.parametrize(
    ("changes", "use"),
    [
        ({"general.architecture": "clip"}, "projector"),
        ({"general.type": "mmproj"}, "projector"),
        ({"general.type": "adapter"}, "adapter"),
        ({"general.architecture": "nomic-bert"}, "embedding"),
        ({"llama.pooling_type": 3}, "embedding"),
        ({"llama.pooling_type": 0}, "chat"),
        ({"general.type": "model"}, "chat"),
    ],
)
def test_files_that_cannot_be_talked_to_are_told_apart(
    place: Path, changes: dict[str, str | int], use: str
) -> None:
    assert read_gguf(written(place, gguf_bytes({**CHAT_FIELDS, **changes}))).use == use


def test_a_file_without_tensors_is_a_vocabulary(place: Path) -> None:
    assert read_gguf(written(place, gguf_bytes(tensors=()))).use == "vocabulary"


@pytest.mark.parametrize("missing", [1, 64, 127])
def test_a_file_cut_in_its_data_is_not_complete(place: Path, missing: int) -> None:
    assert not read_gguf(written(place, WHOLE[:-missing])).is_complete


def test_the_last_tensor_of_several_decides_what_is_whole(place: Path) -> None:
    tensors = (Tensor("a", (32,), 2, 64), Tensor("b", (2, 2), 0, 0))
    content = gguf_bytes(tensors=tensors, data_bytes=64 + 18)
    assert read_gguf(written(place, content)).is_complete
    assert not read_gguf(written(place, content[:-1])).is_complete


def test_a_tensor_of_an_unknown_type_has_at_least_a_byte(place: Path) -> None:
    content = gguf_bytes(tensors=(Tensor(kind=9999, offset=100),), data_bytes=101)
    assert read_gguf(written(place, content)).is_complete
    assert not read_gguf(written(place, content[:-1])).is_complete


def number(value: int, size: int = 8) -> bytes:
    return value.to_bytes(size, "little")


START = b"GGUF" + number(3, 4) + number(1) + number(1)
HUGE = number(2**63)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "empty"),
        (b"GG", "not a GGUF"),
        (b"<!doctype html><html></html>", "not a GGUF"),
        (b"GGUF", "ends in the middle"),
        (b"GGUF" + number(1, 4) + number(0), "version 1"),
        (b"GGUF" + number(4, 4) + number(0) * 2, "version 4"),
        (b"GGUF" + (3).to_bytes(4, "big") + number(0) * 2, "big-endian"),
        (b"GGUF" + number(3, 4) + HUGE + number(1), "entries"),
        (b"GGUF" + number(3, 4) + number(1) + HUGE, "entries"),
        (START + HUGE + b"name", "has 9,223,372,036,854,775,808 bytes"),
        (START + text("general.name") + number(8, 4) + HUGE, "has 9,223"),
        (START + text("x") + number(8, 4) + HUGE, "ends in the middle"),
        (START + text("x") + number(9, 4) + number(8, 4) + HUGE, "ends in the middle"),
        (START + text("x") + number(9, 4) + number(4, 4) + HUGE, "ends in the middle"),
        (START + text("x") + number(9, 4) + number(9, 4) + number(1), "list of lists"),
        (START + text("x") + number(13, 4) + number(1), "unknown type 13"),
        (START + text("x") + number(9, 4) + number(77, 4) + number(1), "unknown type 77"),
        (START + text("x") + number(0, 4) + b"\1" + text("t") + number(5, 4), "5 dimensions"),
    ],
)
def test_a_hostile_file_is_refused_with_a_reason(
    place: Path, content: bytes, complaint: str
) -> None:
    with pytest.raises(ModelFileError, match=complaint) as caught:
        read_gguf(written(place, content))
    assert str(place) in caught.value.message
    assert caught.value.hint


def test_an_alignment_of_zero_is_refused(place: Path) -> None:
    content = gguf_bytes({**CHAT_FIELDS, "general.alignment": 0})
    with pytest.raises(ModelFileError, match="alignment is 0"):
        read_gguf(written(place, content))


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.gguf"
    os.mkfifo(pipe)
    for path, complaint in (
        (pipe, "Is a named pipe, not a regular file"),
        (tmp_path, "folder"),
        (tmp_path / "none.gguf", "does not exist"),
        (Path("a\0b"), "not a path"),
    ):
        with pytest.raises(ModelFileError, match=complaint):
            read_gguf(path)


def test_a_description_larger_than_any_known_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf_fields, "MAX_HEADER_BYTES", 100)
    with pytest.raises(ModelFileError, match="larger than 100 bytes"):
        read_gguf(written(place, WHOLE))


def test_texts_that_are_not_utf8_are_read_with_marks(place: Path) -> None:
    content = WHOLE.replace(b"Tiny Test", b"Tiny\xff\xfe\x80!!")
    assert read_gguf(written(place, content)).name.startswith("Tiny\N{REPLACEMENT CHARACTER}")


@given(cut=st.integers(0, len(WHOLE)))
def test_a_file_cut_anywhere_is_refused_or_not_complete(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    place = tmp_path_factory.getbasetemp() / f"cut-{threading.get_ident()}.gguf"
    place.write_bytes(WHOLE[:cut])
    try:
        info = read_gguf(place)
    except ModelFileError:
        return
    assert info.is_complete is (cut == len(WHOLE))


@given(
    flips=st.lists(
        st.tuples(st.integers(4, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=12
    ),
    words=st.lists(
        st.tuples(
            st.integers(8, len(WHOLE) - 9),
            st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1]),
        ),
        max_size=3,
    ),
)
def test_damage_anywhere_is_an_error_we_know_or_an_answer(
    tmp_path_factory: pytest.TempPathFactory,
    flips: list[tuple[int, int]],
    words: list[tuple[int, int]],
) -> None:
    content = bytearray(WHOLE)
    for position, byte in flips:
        content[position] = byte
    for position, word in words:
        struct.pack_into("<Q", content, position, word)
    place = tmp_path_factory.getbasetemp() / f"flip-{threading.get_ident()}.gguf"
    place.write_bytes(content)
    try:
        info = read_gguf(place)
    except ModelFileError:
        return
    assert info.window is None or info.window > 0


class CountingFile:
    """A file of zeros of any size that counts what is read of it."""

    def __init__(self, start: bytes) -> None:
        self.start = start
        self.position = 0
        self.bytes_read = 0

    def seek(self, position: int) -> None:
        self.position = position

    def read(self, count: int) -> bytes:
        self.bytes_read += count
        piece = self.start[self.position : self.position + count]
        self.position += count
        return piece.ljust(count, b"\0")


def test_long_lists_are_passed_over_and_not_read() -> None:
    count = 10_000_000
    file = CountingFile(struct.pack("<IIQ", 9, 4, count))
    reader = FieldReader(file, 2**40, "it")  # pyright: ignore[reportArgumentType]
    assert reader.value(is_wanted=True) is None
    assert reader.position == 16 + 4 * count
    assert file.bytes_read <= 64 * 1024
