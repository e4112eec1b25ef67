"""What ``agent-tui doctor`` checks for models on this machine."""

import platform
import signal
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from agent_tui.commands.core.checks import Check, CheckContext, ask_program
from agent_tui.installation import install_command

_SERVER_PACKAGE = "xllamacpp"
_IMPORT_WITHIN_S = 2.5


def check_local_model(context: CheckContext) -> Iterator[Check]:
    """Report the model of ``--local``, if there is one or the settings name one."""
    if ref := context.catalog.local.default():
        yield Check("with --local", "ok", ref.name)


def check_server_package(context: CheckContext) -> Iterator[Check]:
    """Check the package that serves local models by importing it in a separate process.

    A wheel built for another processor kills the process that imports it.
    """
    try:
        package = f"{_SERVER_PACKAGE} {version(_SERVER_PACKAGE)}"
    except PackageNotFoundError:
        advice = f"To run local models: {install_command('local')}"
        if sys.platform == "linux" and platform.libc_ver()[0] != "glibc":
            advice = "There is no wheel for musl: use a model server such as Ollama instead."
        yield Check("llama.cpp", "info", "not installed (optional)", advice)
        return
    argv = (sys.executable, "-P", "-c", f"import {_SERVER_PACKAGE}")
    answer = ask_program(context, *argv, timeout_s=_IMPORT_WITHIN_S)
    if answer is not None and answer.returncode == 0:
        yield Check("llama.cpp", "ok", package)
        return
    advice = f"Other models work without it. Reinstall: {install_command('local', again=True)}"
    if answer is None:
        why = f"took longer than {_IMPORT_WITHIN_S:g} s to import"
        yield Check("llama.cpp", "warning", f"{package} {why}", advice)
        return
    why = answer.stdout.strip().rpartition("\n")[2]
    if answer.returncode < 0:
        why = f"crashes with {signal.Signals(-answer.returncode).name}"
    yield Check("llama.cpp", "bad", f"{package} cannot be imported: {why}", advice)
