"""The package that runs models on this machine: whether it is there, and how to have it."""

import importlib.util
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

_PACKAGE: Final = "xllamacpp"
_EXTRA: Final = '"agent-tui[local]"'


def can_run_models() -> bool:
    """Whether the extra ``local`` is installed."""
    return importlib.util.find_spec(_PACKAGE) is not None


def install_command() -> str:
    """What installs the extra ``local`` beside this program, as it can be typed here.

    An environment made by uv has no pip.
    """
    if importlib.util.find_spec("pip") is None:
        return f"uv pip install {_EXTRA} --python {shlex.quote(sys.executable)}"
    return f"{python_command()} -m pip install {_EXTRA}"


def python_command() -> str:
    """``python`` where that is the one that runs this program, else its path."""
    found = shutil.which("python")
    is_ours = found is not None and Path(found).parent == Path(sys.executable).parent
    return "python" if is_ours else shlex.quote(sys.executable)
