"""Copying to the clipboard by the ways that really work here, and saying truly which they were."""

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from agent_tui.program_lookup import find_program, found_command
from agent_tui.safe_text import strip_control_characters

_TIMEOUT_S = 2.0

Run: TypeAlias = Callable[[tuple[str, ...], str], str | None]
"""A command and its input -> what it printed, None if it failed."""


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
        run: Runs one; None is really.
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
            found_command(command),
            input=text.encode("utf-8", "replace"),
            stdout=subprocess.PIPE if command == _TMUX_PASSES_ON else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout or b"").decode("utf-8", "replace").strip() if not done.returncode else None
