"""The option that chooses a model on this machine; a feature brings it, and a model to download."""

from typing import TYPE_CHECKING, Protocol, cast

from agent_tui.feature import load_object, local_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_tui.ui.options import ModelOffer


class MakeSure(Protocol):
    """Makes sure, on the terminal, that there is a model to choose."""

    def __call__(self, *, redraws: bool) -> bool:
        """Ask whether to download one if there is none; false if the user declines.

        Args:
            redraws: Whether lines may be redrawn to show the progress.

        Raises:
            UsageError: There is none and nobody can be asked, or models cannot run here.
            ModelFileError: It cannot be downloaded.
        """
        ...


def have_a_local_model(*, redraws: bool = True) -> bool:
    """See `MakeSure`; for a command line with the option."""
    option = local_option()
    return option is None or cast(MakeSure, load_object(option.ask))(redraws=redraws)


def own_offer() -> "ModelOffer | None":
    """The model to download; None if no feature brings one."""
    if (option := local_option()) is None:
        return None
    return cast("Callable[[], ModelOffer]", load_object(option.offer))()
