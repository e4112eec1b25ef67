"""The package that runs models on this machine: whether it is there."""

import importlib.util
from typing import Final

_PACKAGE: Final = "xllamacpp"


def can_run_models() -> bool:
    """Whether the extra ``local`` is installed."""
    return importlib.util.find_spec(_PACKAGE) is not None
