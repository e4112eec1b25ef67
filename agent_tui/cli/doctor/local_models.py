"""Models on this machine: their files, the extra that serves them, disk and memory for them."""

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from agent_tui.cli.doctor.check import Check
from agent_tui.cli.doctor.programs import ask_program
from agent_tui.cli.doctor.surroundings import Surroundings
from agent_tui.cli.doctor.versions import is_musl, package_version
from agent_tui.cli.doctor.wording import shown_path
from agent_tui.local_models.model import OFFERS, LocalModel
from agent_tui.local_models.runtime import install_command
from agent_tui.local_models.sizes import size_text

_SECTION = "local models"
_SERVER_PACKAGE = "xllamacpp"
_IMPORT_WITHIN_S = 2.5
_MEMORY_BESIDE_BYTES = 300_000_000
"""The server itself and the memory of an 8,192-token window: a 98 MB model takes 380 MB in all."""


def check_server_package(around: Surroundings) -> Iterator[Check]:
    """The package that serves local models, imported in a process of its own.

    A wheel built for another processor ends the process that imports it.
    """
    version = package_version(_SERVER_PACKAGE)
    if not version:
        advice = f"To talk to models on this machine: {install_command()}"
        if is_musl():
            advice = "There is no wheel for musl: use a model server such as Ollama instead."
        yield Check(_SECTION, "extra local", "info", "not installed (it is optional)", advice)
        return
    argv = (sys.executable, "-P", "-c", f"import {_SERVER_PACKAGE}")
    answer = ask_program(argv, around.keyless_environ, _IMPORT_WITHIN_S)
    if answer is not None and answer.exit_code == 0:
        yield Check(_SECTION, "extra local", "ok", f"{_SERVER_PACKAGE} {version}")
        return
    if answer is None:
        why, state = f"took longer than {_IMPORT_WITHIN_S:g} s to import", "warning"
    elif answer.exit_code < 0:
        why, state = f"ended with {_signal_name(-answer.exit_code)} when imported", "bad"
    else:
        why, state = f"cannot be imported: {answer.last_line}", "bad"
    again = f"{install_command()} --force-reinstall"
    advice = f"Install it again: {again}. Other models work without it."
    yield Check(_SECTION, "extra local", state, f"{_SERVER_PACKAGE} {version} {why}", advice)


def check_library(around: Surroundings) -> Iterator[Check]:
    """Every model that is known, and whether its file is there and whole."""
    shelf = around.library.shelf()
    for problem in shelf.problems:
        advice = "A model whose description is gone can be added or pulled again."
        yield Check(_SECTION, "library", "bad", problem, advice)
    if not shelf.models:
        offer = OFFERS[0]
        advice = f"agent-tui models pull {offer.name} ({size_text(offer.download_bytes)})"
        yield Check(_SECTION, "library", "info", "no models yet", f"To have one: {advice}")
        return
    for model in shelf.models:
        yield _model_check(around, model)


def check_room(around: Surroundings) -> Iterator[Check]:
    """Disk space to pull a model, memory to run the largest there is."""
    offer = OFFERS[0]
    needed = offer.download_bytes + offer.size_bytes
    free = shutil.disk_usage(_nearest_folder(around.folders.models)).free
    found = f"{size_text(free)} free"
    if free >= needed:
        yield Check(_SECTION, "disk", "ok", found)
    else:
        advice = f"Make room: pulling {offer.name} takes {size_text(needed)} for a moment."
        yield Check(_SECTION, "disk", "warning", found, advice)
    yield from _memory_checks(around)


def _model_check(around: Surroundings, model: LocalModel) -> Check:
    path = shown_path(model.path, around.environ)
    try:
        size = model.path.stat().st_size
    except OSError as error:
        advice = f"Put it back, or forget it: agent-tui models remove {model.name}"
        if model.name in {offer.name for offer in OFFERS}:
            advice = f"Fetch it again: agent-tui models pull {model.name}"
        return Check(_SECTION, model.name, "warning", f"{path}: {error.strerror}", advice)
    if model.is_ours and size != model.size_bytes:
        found = f"{path} has {size:,} of {model.size_bytes:,} bytes"
        advice = f"agent-tui models remove {model.name}, then pull it again."
        return Check(_SECTION, model.name, "bad", found, advice)
    window = f", window {model.trained_window:,} tokens" if model.trained_window else ""
    return Check(_SECTION, model.name, "ok", f"{size_text(model.size_bytes)}{window}, {path}")


def _memory_checks(around: Surroundings) -> Iterator[Check]:
    free = available_memory()
    if free is None:
        return
    models = [model for model in around.library.models() if model.is_there]
    wanted = max((model.size_bytes for model in models), default=OFFERS[0].size_bytes)
    needed = wanted + _MEMORY_BESIDE_BYTES
    found = f"{size_text(free)} free"
    if free >= needed:
        yield Check(_SECTION, "memory", "ok", found)
        return
    found += f", the largest model takes about {size_text(needed)}"
    advice = "Close other programs, use a smaller model, or set [local] context lower."
    yield Check(_SECTION, "memory", "warning", found, advice)


def available_memory(
    proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")
) -> int | None:
    """Bytes of memory that can be had now, of the machine and of the container; None: unknown."""
    amounts = [
        amount for amount in (_of_machine(proc), _of_container(cgroup)) if amount is not None
    ]
    return min(amounts, default=None)


def _of_machine(proc: Path) -> int | None:
    try:
        lines = (proc / "meminfo").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        lines = []
    for line in lines:
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    try:  # macOS: all there is, the nearest that can be asked for without a program
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def _of_container(cgroup: Path) -> int | None:
    try:
        limit = (cgroup / "memory.max").read_text(encoding="ascii").strip()
        used = (cgroup / "memory.current").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return max(int(limit) - int(used), 0) if limit.isdigit() and used.isdigit() else None


def _nearest_folder(path: Path) -> Path:
    return next((folder for folder in (path, *path.parents) if folder.is_dir()), Path(os.sep))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
