from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.errors import UsageError
from agent_tui.tools.files.images import MAX_IMAGE_BYTES, image_size, image_type, read_image
from tests.support.images import gif, jpeg, png, webp

KINDS = [
    (png(800, 600), "image/png"),
    (jpeg(800, 600), "image/jpeg"),
    (gif(800, 600), "image/gif"),
    (webp(b"VP8 ", 800, 600), "image/webp"),
    (webp(b"VP8L", 800, 600), "image/webp"),
    (webp(b"VP8X", 800, 600), "image/webp"),
]


@pytest.mark.parametrize(("data", "mime_type"), KINDS)
def test_kind_and_size_are_read_from_the_first_bytes(data: bytes, mime_type: str):
    assert image_type(data) == mime_type
    assert image_size(data) == (800, 600)


@given(st.sampled_from(KINDS), st.integers(0, 60), st.binary(max_size=40))
def test_a_damaged_header_is_no_fault(kind: tuple[bytes, str], kept: int, rest: bytes):
    width, height = image_size(kind[0][:kept] + rest)
    assert width >= 0
    assert height >= 0


def test_what_is_no_image_is_none_and_what_is_too_large_is_refused(tmp_path: Path):
    (tmp_path / "text.png").write_text("hello", encoding="utf-8")
    (tmp_path / "large.png").write_bytes(png() + bytes(MAX_IMAGE_BYTES))
    (tmp_path / "largest.png").write_bytes(png().ljust(MAX_IMAGE_BYTES, b"\0"))
    assert read_image(tmp_path / "largest.png") is not None
    assert read_image(tmp_path / "text.png") is None
    assert read_image(tmp_path) is None
    assert read_image(tmp_path / "missing.png") is None
    with pytest.raises(UsageError, match=r"large\.png is an image of 5\.0 MB; at most 5 MB"):
        read_image(tmp_path / "large.png")
