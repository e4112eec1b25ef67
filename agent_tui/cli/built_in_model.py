"""The small model that ``--local`` offers to fetch, for the screen and for ``-p``."""

import sys
from collections.abc import Callable
from pathlib import Path

from agent_tui.cli.models.pull import fetch, fetching_environment
from agent_tui.errors import UsageError
from agent_tui.local_models.library import ModelLibrary
from agent_tui.local_models.model import OFFERS, Offer, PullProgress, size_text
from agent_tui.local_models.runtime import can_run_models, install_command
from agent_tui.providers.base import ModelRef

_NO_RUNTIME = "The program that runs models on this machine is not installed."


class BuiltInModel:
    """The first offer, pulled into `library`."""

    offer: Offer = OFFERS[0]

    def __init__(self, library: ModelLibrary) -> None:
        self._library = library

    @property
    def problem(self) -> str:
        """Why no model can run here, and the command that mends it; empty if one can."""
        return "" if can_run_models() else f"{_NO_RUNTIME} Leave and run:\n{install_command()}"

    @property
    def folder(self) -> Path:
        """Where the file is put."""
        return self._library.files_dir

    async def pull(self, on_progress: Callable[[PullProgress], None]) -> ModelRef:
        """Fetch the model.

        Raises:
            ModelFileError: it could not be fetched.
        """
        from agent_tui.local_models.pull.client import pull

        model = await pull(
            self._library,
            self.offer.name,
            on_progress=on_progress,
            environ=fetching_environment(),
        )
        return ModelRef(f"local/{model.name}")


def have_a_local_model(library: ModelLibrary, *, redraws: bool = True) -> bool:
    """Offer to fetch the built-in model where there is none; false if the person declined.

    Without `redraws` no line is written over to show how far it is.

    Raises:
        UsageError: there is none and nobody to ask, or models cannot run here.
        ModelFileError: it could not be fetched.
    """
    if not can_run_models():
        raise UsageError(_NO_RUNTIME, f"Run: {install_command()}")
    if any(model.is_there for model in library.models()):
        return True
    offer = OFFERS[0]
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "There is no model on this machine yet.",
            f"agent-tui models pull {offer.name} fetches {offer.title} "
            f"({size_text(offer.download_bytes)}, {offer.licence}).",
        )
    return (
        fetch(library, offer.name, name="", sha256="", is_sure=False, redraws=redraws) is not None
    )
