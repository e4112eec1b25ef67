"""Copies text to the clipboard, says truly how, and takes an image from it."""

import hashlib
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from agent_tui.atomic_files import replace_private_file
from agent_tui.safe_paths import find_program, resolve_command
from agent_tui.safe_text import strip_control_characters

_TIMEOUT_S = 2.0

Run: TypeAlias = Callable[[tuple[str, ...], str], str | None]
"""A command and its input -> what it printed, None if it failed."""
_IMAGE_TIMEOUT_S = 3.0
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
    get = fetch or _image_bytes
    for command in image_commands(environ):
        if which(command[0]) and (data := get(command)):
            return _store(folder, data)
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


def _image_bytes(command: Sequence[str]) -> bytes:
    try:
        done = subprocess.run(
            resolve_command(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_IMAGE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return b""
    is_good = done.returncode == 0 and len(done.stdout) <= _MAX_BYTES
    return done.stdout if is_good else b""


def _store(folder: Path, data: bytes) -> Path:
    path = folder / f"{hashlib.sha256(data).hexdigest()[:16]}.png"
    replace_private_file(path, data)
    others = sorted(folder.glob("*.png"), key=lambda file: file.stat().st_mtime)
    for old in others[:-_MAX_KEPT]:
        with suppress(OSError):
            old.unlink()
    return path


@dataclass(frozen=True, slots=True)
class ClipboardWay:
    """A program that takes the text on stdin, or OSC 52 where `command` is empty."""

    label: str
    command: tuple[str, ...] = ()


OSC_52 = ClipboardWay("the terminal (OSC 52)")
TMUX = ClipboardWay("the tmux buffer", ("tmux", "load-buffer", "-w", "-"))
_TMUX_PASSES_ON = ("tmux", "display-message", "-p", "#{set-clipboard} #{client_termfeatures}")


def clipboard_ways(
    environ: Mapping[str, str], which: Callable[[str], str | None]
) -> tuple[ClipboardWay, ...]:
    """All ways to be used in this terminal: tmux's buffer and a local tool, else the terminal.

    A local tool over ssh would fill the clipboard of the wrong machine.
    """
    ways: list[ClipboardWay] = []
    if environ.get("TMUX") and which("tmux"):
        ways.append(TMUX)
    commands: list[tuple[str, ...]] = [("pbcopy",)]
    if environ.get("WAYLAND_DISPLAY"):
        commands.append(("wl-copy",))
    if environ.get("DISPLAY"):
        commands += [("xclip", "-selection", "clipboard"), ("xsel", "--clipboard", "--input")]
    is_remote = environ.get("SSH_TTY") or environ.get("SSH_CONNECTION")
    for command in commands if not is_remote else ():
        if which(command[0]):
            ways.append(ClipboardWay(f"the clipboard ({command[0]})", command))
            break
    return tuple(ways) or (OSC_52,)


def copy_text(
    text: str,
    environ: Mapping[str, str],
    by_terminal: Callable[[str], None],
    which: Callable[[str], str | None] = find_program,
    run: "Run | None" = None,
) -> str:
    """Copy `text` and return a line that says how: ``Copied 120 characters to …``.

    Control characters are left out: what is pasted into a shell must not run by itself.

    Args:
        text: What is copied.
        environ: Tells which terminal this is.
        by_terminal: Sends OSC 52.
        which: Finds a program.
        run: Runs one; None to run it really.
    """
    text, run = strip_control_characters(text), run or _run
    ways = clipboard_ways(environ, which)
    done = [way for way in ways if way.command and run(way.command, text) is not None]
    count = f"{len(text):,} character{'' if len(text) == 1 else 's'}"
    if done:
        also = _beyond_tmux(run) if done == [TMUX] else ""
        return f"Copied {count} to {' and '.join(way.label for way in done)}{also}."
    if reason := _takes_no_copies(environ):
        return f"Nothing was copied: {reason}. With /mouse off, the terminal selects and copies."
    by_terminal(text)
    return f"Sent {count} to {OSC_52.label}; not every terminal accepts that."


def _beyond_tmux(run: Run) -> str:
    """What becomes of tmux's buffer outside tmux."""
    setting, _, features = (run(_TMUX_PASSES_ON, "") or "").partition(" ")
    if setting in ("on", "external") and "clipboard" in features:
        return ", which passes it on to the terminal's clipboard"
    return " only: paste with prefix ]"


def _takes_no_copies(environ: Mapping[str, str]) -> str:
    """Why OSC 52 is known to go nowhere; empty if it may work."""
    if environ.get("STY"):
        return "GNU screen blocks copying"
    if environ.get("TERM_PROGRAM") == "Apple_Terminal" or environ.get("TERM") in ("linux", "dumb"):
        return "this terminal does not let programs copy"
    return ""


def _run(command: tuple[str, ...], text: str) -> str | None:
    try:
        done = subprocess.run(
            resolve_command(command),
            input=text.encode("utf-8", "replace"),
            stdout=subprocess.PIPE if command == _TMUX_PASSES_ON else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout or b"").decode("utf-8", "replace").strip() if not done.returncode else None
