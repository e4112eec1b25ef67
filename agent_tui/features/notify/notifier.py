"""Notify a user who is away: with a desktop notification if the terminal supports one."""

import asyncio
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from agent_tui.durations import format_duration
from agent_tui.events import AgentEvent, ApprovalRequested, FormOpened, TurnFinished, TurnStarted
from agent_tui.features.notify.settings import NotifySetting
from agent_tui.safe_paths import resolve_command
from agent_tui.safe_text import safe_text

LONG_TURN_S = 10.0
"""Seconds; the user is assumed to wait for a shorter turn."""

AWAY_AFTER_S = 60.0
"""Seconds without a key after which a user counts as away if the terminal reports no focus."""

MAX_CHARS = 160
_TMUX_TIMEOUT_S = 2.0

NotifyProtocol: TypeAlias = Literal["osc 9", "osc 777", "osc 99"]

_BELL = "\x07"
_END = "\x1b\\"


@dataclass(frozen=True, slots=True)
class NotifyMethod:
    """How to notify: by `protocol`, wrapped for tmux if needed, or with the bell if it is None."""

    protocol: NotifyProtocol | None = None
    through_tmux: bool = False


BELL_ONLY = NotifyMethod()


def notify_method(environ: Mapping[str, str], ask_tmux: Callable[[], str]) -> NotifyMethod:
    """The method that this terminal supports.

    Args:
        environ: The variables that terminals set about themselves.
        ask_tmux: What `_tmux_facts` returns; called inside tmux only, may block.
    """
    if environ.get("TMUX"):
        passthrough, _, names = ask_tmux().partition(" ")
        protocol = _protocol_of(names)
        if passthrough in ("on", "all", "1") and protocol is not None:
            return NotifyMethod(protocol, through_tmux=True)
        return BELL_ONLY
    if environ.get("STY"):  # GNU screen swallows what it does not know
        return BELL_ONLY
    kitty = "kitty" if environ.get("KITTY_WINDOW_ID") else ""
    names = " ".join((environ.get("TERM_PROGRAM", ""), environ.get("TERM", ""), kitty))
    return NotifyMethod(_protocol_of(names))


def _protocol_of(names: str) -> NotifyProtocol | None:
    """The protocol for the terminal's names: its program, ``TERM``, and its own answer."""
    lowered = names.lower()
    for word, protocol in _PROTOCOLS:
        if word in lowered:
            return protocol
    return None


_PROTOCOLS: tuple[tuple[str, NotifyProtocol], ...] = (
    ("ghostty", "osc 9"),
    ("wezterm", "osc 9"),
    ("iterm", "osc 9"),
    ("kitty", "osc 99"),
    ("foot", "osc 777"),
)
"""From the manual of each terminal. ``TERM`` names most of them, and ssh passes on nothing else."""


def _tmux_facts() -> str:
    """Whether tmux hands sequences on, and the outer terminal's names.

    The first word is ``off``, ``on`` or ``all``, in older ones ``0`` or ``1``. Empty where tmux
    does not answer. Blocking.
    """
    wanted = "#{allow-passthrough} #{client_termtype} #{client_termname}"
    command = ("tmux", "display-message", "-p", wanted)
    try:
        done = subprocess.run(
            resolve_command(command),
            capture_output=True,
            text=True,
            timeout=_TMUX_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def notification_sequence(method: NotifyMethod, title: str, text: str) -> str:
    """The control sequence of a notification with `title` and `text`, or of the bell."""
    title, text = _one_line(title), _one_line(text)
    match method.protocol:
        case None:
            return _BELL
        case "osc 9":
            sequence = f"\x1b]9;{title}: {text}{_END}"
        case "osc 777":
            sequence = f"\x1b]777;notify;{title.replace(';', ',')};{text.replace(';', ',')}{_END}"
        case "osc 99":
            sequence = (
                f"\x1b]99;i=agent-tui:d=0:o=unfocused;{title}{_END}"
                f"\x1b]99;i=agent-tui:p=body:o=unfocused;{text}{_END}"
            )
        case _:
            assert_never(method.protocol)
    if method.through_tmux:
        return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + _END
    return sequence


def _one_line(text: str) -> str:
    line = safe_text(text, keep_newlines=False)
    return line if len(line) <= MAX_CHARS else line[: MAX_CHARS - 1] + "…"


class Notifier:
    """Decides when to notify the user, and with what text.

    Args:
        setting: ``auto`` notifies if the terminal can, ``bell`` only rings, ``off`` is silent.
        clock: Monotonic seconds.
    """

    def __init__(self, setting: NotifySetting, clock: Callable[[], float]) -> None:
        self.setting: NotifySetting = setting
        self._clock = clock
        self._acted_at = clock()
        self._turn_began_at: float | None = None
        self._has_focus: bool | None = None
        self._method: NotifyMethod | None = None

    def person_acted(self) -> None:
        """Note that a key was pressed."""
        self._acted_at = self._clock()

    def focus_changed(self, has_focus: bool) -> None:
        """Note that the terminal gained or lost the focus."""
        self._has_focus = has_focus
        self.person_acted()

    @property
    def is_away(self) -> bool:
        """Whether the user is away, as far as is known."""
        if self._has_focus is None:
            return self._clock() - self._acted_at >= AWAY_AFTER_S
        return not self._has_focus

    async def method(self, environ: Mapping[str, str]) -> NotifyMethod:
        """How to notify in the terminal that `environ` describes; determined once."""
        if self._method is None:
            if self.setting == "bell":
                self._method = BELL_ONLY
            elif environ.get("TMUX"):
                self._method = await asyncio.to_thread(notify_method, environ, _tmux_facts)
            else:
                self._method = notify_method(environ, _tmux_facts)
        return self._method

    def text_for(self, event: AgentEvent) -> str:
        """The notification about `event` for a user who is away; empty for none."""
        match event:
            case TurnStarted():
                if self._turn_began_at is None:  # a loop has many turns and one end
                    self._turn_began_at = self._clock()
                text = ""
            case ApprovalRequested():
                text = f"Waiting for your answer: {event.request.title}"
            case FormOpened():
                text = f"Waiting for your answer: {event.title}"
            case TurnFinished():
                text = self._end(event)
            case _:
                text = ""
        return text if self.setting != "off" and self.is_away else ""

    def _end(self, event: TurnFinished) -> str:
        began_at, self._turn_began_at = self._turn_began_at, None
        if event.outcome == "error":
            return f"Stopped by an error: {event.error}"
        took_s = self._clock() - began_at if began_at is not None else 0.0
        if event.outcome == "aborted" or took_s < LONG_TURN_S:
            return ""
        return f"Finished after {format_duration(took_s)}"
