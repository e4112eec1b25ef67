"""The terminal: what the screen will find there, and how copying works in it."""

from collections.abc import Iterator, Mapping
from typing import Final

from agent_tui.cli.doctor.check import Check
from agent_tui.cli.doctor.programs import ask_program, find_program
from agent_tui.cli.doctor.surroundings import Surroundings
from agent_tui.ui.clipboard import OSC_52, clipboard_way

_SECTION = "terminal"
_MIN_COLUMNS, _MIN_ROWS = 80, 24
_MAX_ESCAPE_MS = 100
_TMUX_VALUES: Final = ("version", "set-clipboard", "allow-passthrough", "escape-time")
_SWITCH: Final = {"0": "off", "1": "on"}
_UTF8_LOCALE = "export LANG=C.UTF-8 (or another locale that ends in UTF-8)."


def check_terminal(around: Surroundings) -> Iterator[Check]:
    """Whether the standard streams are a terminal the screen can use, and how large."""
    facts, term = around.terminal, around.environ.get("TERM", "")
    streams = {"input": facts.reads_from_terminal, "output": facts.writes_to_terminal}
    elsewhere = [name for name, is_terminal in streams.items() if not is_terminal]
    if elsewhere:
        found = f"standard {' and '.join(elsewhere)}: not a terminal"
        yield Check(_SECTION, "streams", "info", f"{found}; the screen needs one, -p does not")
    if term in ("", "dumb"):
        found = f"{term or 'not set'}: such a terminal cannot show the screen"
        advice = "Use agent-tui --plain, or in a real terminal: export TERM=xterm-256color"
        yield Check(_SECTION, "TERM", "info" if elsewhere else "bad", found, advice)
    else:
        yield Check(_SECTION, "TERM", "ok", term)
    yield _size_check(facts.columns, facts.rows)


def check_looks(around: Surroundings) -> Iterator[Check]:
    """Colours, characters, the mouse, and variables that change how the screen is drawn."""
    environ = around.environ
    yield _colour_check(environ)
    if speaks_utf8(environ):
        yield Check(_SECTION, "characters", "ok", "UTF-8")
    else:
        chosen = _locale(environ) or "no locale is set"
        found = f"{chosen}: not UTF-8, so marks and frames may come out wrong"
        yield Check(_SECTION, "characters", "warning", found, _UTF8_LOCALE)
    has_mouse = around.loaded.settings.mouse
    found = "ours: select to copy" if has_mouse else "the terminal's (mouse = false)"
    yield Check(_SECTION, "mouse", "ok" if has_mouse else "info", found)
    if textual := sorted(name for name in environ if name.startswith("TEXTUAL")):
        yield Check(_SECTION, "Textual", "info", f"{', '.join(textual)} set")


def check_clipboard(around: Surroundings) -> Iterator[Check]:
    """The way a copy takes from here."""
    environ = around.environ
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        yield Check(_SECTION, "ssh", "info", "this is a remote machine: copies go by the terminal")
    way = clipboard_way(environ, lambda program: find_program(program, environ))
    if way != OSC_52:
        yield Check(_SECTION, "clipboard", "ok", f"copies go to {way.label}")
        return
    found = f"copies go to {way.label}, which not every terminal takes"
    advice = ""
    if environ.get("WAYLAND_DISPLAY"):
        advice = "For a sure way install wl-clipboard."
    elif environ.get("DISPLAY"):
        advice = "For a sure way install xclip or xsel."
    yield Check(_SECTION, "clipboard", "info", found, advice)


def check_multiplexer(around: Surroundings) -> Iterator[Check]:
    """The settings of tmux that matter here, or GNU screen."""
    if around.environ.get("STY"):
        found = "GNU screen: colours are reduced, and copies may not reach the clipboard"
        yield Check(_SECTION, "screen", "info", found)
    if not around.environ.get("TMUX"):
        return
    path = find_program("tmux", around.environ)
    values = _tmux_settings(path, around.keyless_environ) if path else {}
    if not values:
        advice = "Look whether the tmux server still runs: tmux ls"
        yield Check(_SECTION, "tmux", "warning", "does not answer", advice)
        return
    shown = ", ".join(f"{name} {value}" for name, value in values.items() if name != "version")
    yield Check(_SECTION, "tmux", "ok", f"{values['version']}, {shown}")
    yield from _tmux_advice(values)


def speaks_utf8(environ: Mapping[str, str]) -> bool:
    """Whether the locale says that this terminal shows UTF-8."""
    return "utf8" in _locale(environ).lower().replace("-", "")


def _locale(environ: Mapping[str, str]) -> str:
    names = ("LC_ALL", "LC_CTYPE", "LANG")
    return next((environ[name] for name in names if environ.get(name)), "")


def _size_check(columns: int, rows: int) -> Check:
    if not columns or not rows:
        return Check(_SECTION, "size", "info", "not known here")
    found = f"{columns} columns, {rows} rows"
    if columns >= _MIN_COLUMNS and rows >= _MIN_ROWS:
        return Check(_SECTION, "size", "ok", found)
    advice = f"Make the window larger: the screen is made for {_MIN_COLUMNS} by {_MIN_ROWS} and up."
    return Check(_SECTION, "size", "warning", found, advice)


def _colour_check(environ: Mapping[str, str]) -> Check:
    if "NO_COLOR" in environ:
        return Check(_SECTION, "colours", "info", "none: NO_COLOR is set")
    term = environ.get("TERM", "")
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit") or "direct" in term:
        return Check(_SECTION, "colours", "ok", "16 million")
    found = "256" if "256color" in term else "16"
    advice = "If your terminal shows more: export COLORTERM=truecolor"
    return Check(_SECTION, "colours", "info", found, advice)


def _tmux_settings(path: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The version and options of tmux; empty if it does not answer."""
    wanted = "|".join(f"#{{{name}}}" for name in _TMUX_VALUES)
    answer = ask_program((path, "display-message", "-p", wanted), environ)
    values = answer.first_line.split("|") if answer is not None and not answer.exit_code else []
    if len(values) != len(_TMUX_VALUES):
        return {}
    named = zip(_TMUX_VALUES, values, strict=True)
    return {name: _SWITCH.get(value, value) for name, value in named if value}


def _tmux_advice(values: Mapping[str, str]) -> Iterator[Check]:
    if values.get("set-clipboard") == "off":
        found = "set-clipboard is off: copies stay in tmux"
        advice = "To let them out: tmux set -s set-clipboard external"
        yield Check(_SECTION, "tmux clipboard", "warning", found, advice)
    delay = values.get("escape-time", "")
    if delay.isdigit() and int(delay) > _MAX_ESCAPE_MS:
        found = f"escape-time is {delay} ms: Esc acts late"
        advice = "tmux set -s escape-time 10 (and the same line in ~/.tmux.conf)"
        yield Check(_SECTION, "tmux keys", "warning", found, advice)
