"""The small model that a user without a model can download."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_tui import paths
from agent_tui.commands.core.short_words import size_text
from agent_tui.features.local.fetch import BuiltInModel, have_a_local_model
from agent_tui.features.local.library import ModelLibrary
from agent_tui.providers.base import LOCAL, ModelRef

if TYPE_CHECKING:
    from textual.screen import Screen

    from agent_tui.features.local.pull_screen import Pullable
    from agent_tui.ui.options import ModelOffer


def have_a_model(*, redraws: bool) -> bool:
    """See `MakeSure`."""
    return have_a_local_model(ModelLibrary(paths.models_dir()), redraws=redraws)


def make_offer() -> "ModelOffer":
    """Make the offer of the built-in model."""
    return offer_of(BuiltInModel(ModelLibrary(paths.models_dir())))


def offer_of(local: "Pullable") -> "ModelOffer":
    """What the screen offers of `local`."""
    from agent_tui.ui.options import ModelOffer  # with Textual: not in a script

    def make_screen(clock: Callable[[], float]) -> "Screen[ModelRef]":
        from agent_tui.features.local.pull_screen import PullScreen

        return PullScreen(local, clock)

    offer = local.offer
    return ModelOffer(
        model=ModelRef(f"{LOCAL}/{offer.name}"),
        choice=f"Get {offer.title.partition(' (')[0]}",  # how it is quantised comes later
        details=(
            f"{size_text(offer.download_bytes)}, {offer.licence}, no key",
            offer.summary,
        ),
        can_run=lambda: not local.problem,
        make_screen=make_screen,
    )
