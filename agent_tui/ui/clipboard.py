"""Copying to the clipboard by the way that really works here, and saying which it was."""

import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agent_tui.safe_text import strip_control_characters

_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class ClipboardWay:
    """A program that takes the text on stdin, or OSC 52 where `command` is empty."""

    label: str
    command: tuple[str, ...] = ()


OSC_52 = ClipboardWay("the terminal (OSC 52)")


def clipboard_way(environ: Mapping[str, str], which: Callable[[str], str | None]) -> ClipboardWay:
    """The way for this terminal: tmux's buffer, a local tool, else the terminal itself.

    A local tool over ssh would fill the clipboard of the wrong machine.
    """
    if environ.get("TMUX") and which("tmux"):
        return ClipboardWay("the tmux buffer", ("tmux", "load-buffer", "-w", "-"))
    if environ.get("SSH_TTY") or environ.get("SSH_CONNECTION"):
        return OSC_52
    commands: list[tuple[str, ...]] = [("pbcopy",)]
    if environ.get("WAYLAND_DISPLAY"):
        commands.append(("wl-copy",))
    if environ.get("DISPLAY"):
        commands += [("xclip", "-selection", "clipboard"), ("xsel", "--clipboard", "--input")]
    for command in commands:
        if which(command[0]):
            return ClipboardWay(f"the clipboard ({command[0]})", command)
    return OSC_52


def copy_text(text: str, environ: Mapping[str, str], by_terminal: Callable[[str], None]) -> str:
    """Copy `text` and return a line that says how: ``Copied 120 characters to …``.

    Control characters are left out: what is pasted into a shell must not run by itself.
    """
    text = strip_control_characters(text)
    way = clipboard_way(environ, shutil.which)
    if way.command and not _run(way.command, text):
        way = OSC_52
    if not way.command:
        by_terminal(text)
    return f"Copied {len(text):,} characters to {way.label}."


def _run(command: tuple[str, ...], text: str) -> bool:
    try:
        done = subprocess.run(
            command,
            input=text.encode("utf-8", "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
