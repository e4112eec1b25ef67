"""The image on the clipboard, by the programs that can get it there."""

import hashlib
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from agent_tui.atomic_files import replace_private_file
from agent_tui.program_lookup import find_program, found_command

_TIMEOUT_S = 3.0
_MAX_BYTES = 50_000_000
_MAX_KEPT = 20

Fetch: TypeAlias = Callable[[Sequence[str]], bytes]
"""A command -> what it prints; nothing if it fails."""


def clipboard_image(
    folder: Path,
    environ: Mapping[str, str],
    which: Callable[[str], str | None] = find_program,
    fetch: "Fetch | None" = None,
) -> Path | None:
    """A file below `folder` with the image that is on the clipboard; None if there is none.

    Over ssh the programs would look at the clipboard of the wrong machine. Blocking.

    Raises:
        OSError: The image cannot be kept.
    """
    get = fetch or _output
    for command in image_commands(environ):
        if which(command[0]) and (data := get(command)):
            return _kept(folder, data)
    return None


def image_commands(environ: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """The commands that print the clipboard's image, as far as this machine may have them."""
    if environ.get("SSH_TTY") or environ.get("SSH_CONNECTION"):
        return ()
    commands: list[tuple[str, ...]] = [("pngpaste", "-")]
    if environ.get("WAYLAND_DISPLAY"):
        commands.append(("wl-paste", "--no-newline", "--type", "image/png"))
    if environ.get("DISPLAY"):
        commands.append(("xclip", "-selection", "clipboard", "-t", "image/png", "-o"))
    return tuple(commands)


def _output(command: Sequence[str]) -> bytes:
    try:
        done = subprocess.run(
            found_command(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return b""
    is_good = done.returncode == 0 and len(done.stdout) <= _MAX_BYTES
    return done.stdout if is_good else b""


def _kept(folder: Path, data: bytes) -> Path:
    path = folder / f"{hashlib.sha256(data).hexdigest()[:16]}.png"
    replace_private_file(path, data)
    others = sorted(folder.glob("*.png"), key=lambda file: file.stat().st_mtime)
    for old in others[:-_MAX_KEPT]:
        with suppress(OSError):
            old.unlink()
    return path
