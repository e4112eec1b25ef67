"""Windows of text files: the right lines, with little memory however large the file is."""

import codecs
import tracemalloc
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.agent.prompt.mentions import attach
from agent_tui.messages import JsonObject
from agent_tui.sessions.file.kept_files import digest_of
from agent_tui.tools.base import ToolContext
from agent_tui.tools.files.text_files import Window, read_window, take_window
from tests.support.tool_calls import call_tool

_TEXTS = st.text(alphabet=st.sampled_from("abé\n\n\r"), max_size=60)


@given(st.lists(_TEXTS, max_size=6), st.integers(1, 30), st.integers(1, 30))
def test_the_lines_are_those_of_the_whole_text_in_whatever_pieces_it_comes(
    pieces: list[str], first: int, count: int
):
    text = "".join(pieces).replace("\r\n", "\n")
    lines = text.removesuffix("\n").split("\n") if text else []
    found = take_window(pieces, Window(first, count, 10_000, 1_000))
    assert found.total_lines == len(lines)
    assert found.lines == lines[first - 1 : first - 1 + count]


def test_a_line_is_cut_and_what_exceeds_the_bytes_is_not_kept():
    found = take_window(["x" * 30, "x" * 70 + "\n", "y\n" * 1_000], Window(1, 900, 50, 10))
    assert found.lines[0] == f"{'x' * 10}… [+90 characters]"
    assert found.total_lines == 1_001
    assert sum(len(line) + 1 for line in found.lines) < 60


@pytest.mark.parametrize(
    ("encoding", "bom"),
    [
        ("utf-8", b""),
        ("utf-8", codecs.BOM_UTF8),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-32-be", codecs.BOM_UTF32_BE),
        ("cp1252", b""),
    ],
)
def test_characters_between_two_chunks_are_read_whole(encoding: str, bom: bytes):
    text = "Größe und Höhe des Gerätes für später\r\n" * 20_000
    content = bom + text.encode(encoding)
    found = read_window(BytesIO(content), Window(19_999, 5, 1_000, 1_000))
    assert found is not None
    assert found[0].lines == ["Größe und Höhe des Gerätes für später"] * 2
    assert found[0].total_lines == 20_000
    assert found[1] == digest_of(content)


def test_a_binary_file_has_no_lines():
    assert read_window(BytesIO(b"\0" * 10_000), Window(1, 9, 100, 100)) is None


SIZE = 16_000_000


@pytest.fixture(scope="module")
def many_lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("large") / "lines.log"
    file.write_bytes(b"a line of 32 bytes, like others\n" * (SIZE // 32))
    return file


@pytest.fixture(scope="module")
def one_line(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("large") / "one.json"
    file.write_bytes(b"x" * SIZE)
    return file


@pytest.fixture
def peak_bytes() -> Callable[[], int]:
    tracemalloc.start()

    def peak() -> int:
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    return peak


async def test_reading_part_of_a_large_file_takes_little_memory(
    context: ToolContext, many_lines: Path, peak_bytes: Callable[[], int]
):
    output = await call_tool(context, "read", {"path": str(many_lines), "offset": 400_000})
    assert peak_bytes() < SIZE // 4
    assert output.for_model.startswith("400000\ta line of 32")
    assert context.files.find_unchanged() == (many_lines,)


async def test_reading_a_large_file_of_one_line_takes_little_memory(
    context: ToolContext, one_line: Path, peak_bytes: Callable[[], int]
):
    output = await call_tool(context, "read", {"path": str(one_line)})
    assert peak_bytes() < SIZE // 4
    assert output.for_model == f"1\t{'x' * 2_000}… [+{SIZE - 2_000} characters]"


@pytest.mark.parametrize("mention", ["{}:3-5", "{}:1-9999999", "{}"])
def test_mentioning_a_large_file_takes_little_memory(
    mention: str, many_lines: Path, one_line: Path, tmp_path: Path, peak_bytes: Callable[[], int]
):
    for file in (many_lines, one_line):
        attached = attach(f"look at @{mention.format(file)}", tmp_path)
        assert len(attached.text) < 60_000
    assert peak_bytes() < SIZE // 4


async def test_editing_a_large_file_takes_a_few_times_its_size(
    context: ToolContext, many_lines: Path, peak_bytes: Callable[[], int]
):
    file = context.cwd / "copy.log"
    file.write_bytes(many_lines.read_bytes() + b"the last line\n")
    arguments: JsonObject = {
        "path": str(file),
        "edits": [{"old": "the last line", "new": "the very last line"}],
    }
    output = await call_tool(context, "edit", arguments)
    assert peak_bytes() < 8 * SIZE
    assert output.for_person.diff is not None
    assert "@@ -499998,4 +499998,4 @@" in output.for_person.diff
