from io import BytesIO
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from agent_tui.errors import UsageError
from agent_tui.tools.files.images import (
    MAX_IMAGE_BYTES,
    MAX_IMAGE_SIDE,
    fit_image,
    image_size,
    image_type,
    read_image,
)
from tests.support.images import gif, jpeg, png, webp
from tests.support.rows import each_row

KINDS = [
    (png(800, 600), "image/png"),
    (jpeg(800, 600), "image/jpeg"),
    (gif(800, 600), "image/gif"),
    (webp(b"VP8 ", 800, 600), "image/webp"),
    (webp(b"VP8L", 800, 600), "image/webp"),
    (webp(b"VP8X", 800, 600), "image/webp"),
]


@each_row(("data", "mime_type"), KINDS)
def test_kind_and_size_are_read_from_the_first_bytes(data: bytes, mime_type: str):
    assert image_type(data) == mime_type
    assert image_size(data) == (800, 600)


@given(st.sampled_from(KINDS), st.integers(0, 60), st.binary(max_size=40))
def test_a_damaged_header_is_no_fault(kind: tuple[bytes, str], kept: int, rest: bytes):
    width, height = image_size(kind[0][:kept] + rest)
    assert width >= 0
    assert height >= 0


def test_what_is_no_image_is_none(tmp_path: Path):
    (tmp_path / "text.png").write_text("hello", encoding="utf-8")
    assert read_image(tmp_path / "text.png") is None
    assert read_image(tmp_path) is None
    assert read_image(tmp_path / "missing.png") is None


def test_what_providers_take_stays_as_it_is():
    largest = png(MAX_IMAGE_SIDE, 3).ljust(MAX_IMAGE_BYTES, b"\0")
    assert fit_image(largest) is largest


@pytest.mark.parametrize(
    ("form", "size", "scaled"),
    [("PNG", (3_000, 1_500), (2_000, 1_000)), ("JPEG", (100, 4_000), (50, 2_000))],
)
def test_a_side_that_is_too_long_is_scaled_with_the_other(
    form: str, size: tuple[int, int], scaled: tuple[int, int]
):
    written = BytesIO()
    Image.new("RGB", size, "teal").save(written, form)
    fitted = fit_image(written.getvalue())
    assert image_size(fitted) == scaled
    assert image_type(fitted) == f"image/{form.lower()}"


def test_too_many_bytes_become_a_jpeg_that_fits(tmp_path: Path):
    noise = Image.frombytes("RGB", (1_500, 1_500), Random(1).randbytes(3 * 1_500 * 1_500))
    noise.save(tmp_path / "noise.png")
    image = read_image(tmp_path / "noise.png")
    assert image is not None
    assert (image.mime_type, image.width) == ("image/jpeg", 1_500)
    assert len(image.data) < 5_000_000


def test_an_image_lies_as_its_camera_held_it():
    written = BytesIO()
    turned = Image.Exif()
    turned[0x0112] = 6  # by a quarter
    Image.new("RGB", (4_000, 1_000)).save(written, "JPEG", exif=turned)
    assert image_size(fit_image(written.getvalue())) == (500, 2_000)


@pytest.mark.parametrize("size", [(9_000, 9_000), (60_000, 60_000)])
def test_what_cannot_be_made_smaller_is_refused(tmp_path: Path, size: tuple[int, int]):
    (tmp_path / "a.jpg").write_bytes(jpeg(*size))
    with pytest.raises(UsageError, match=r"a\.jpg is an image of 0\.0 MB that cannot be reduced"):
        read_image(tmp_path / "a.jpg")
