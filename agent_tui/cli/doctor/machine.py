"""The program's own parts, the programs it starts, the terminal and the network."""

import importlib.metadata
import os
import platform
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Final

from agent_tui import __version__
from agent_tui.cli.doctor.check import Check, Environment, ask_program, find_program, shown_path
from agent_tui.cli.tool_services import command_sandbox
from agent_tui.errors import AgentTuiError
from agent_tui.installation import (
    COMMAND,
    DISTRIBUTION,
    foreign_program,
    install_command,
    python_command,
)
from agent_tui.text_editor import editor_command
from agent_tui.tokens import vocabulary_file
from agent_tui.tools.files.ripgrep import WHEEL, ripgrep_program
from agent_tui.ui.terminal.clipboard import OSC_52, clipboard_way

_VERSIONS = "versions"
_MAIN_PACKAGES = ("textual", "rich", "litellm", "tiktoken")
_TOOLS = "tools"
_TERMINAL = "terminal"
_MIN_COLUMNS, _MIN_ROWS = 80, 24
_MAX_ESCAPE_MS = 100
_TMUX_VALUES: Final = ("version", "set-clipboard", "allow-passthrough", "escape-time")
_SWITCH: Final = {"0": "off", "1": "on"}
_UTF8_LOCALE = "export LANG=C.UTF-8 (or another UTF-8 locale)"
_NETWORK = "network"
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")


def check_program(env: Environment) -> Iterator[Check]:
    """This program, Python and the machine."""
    yield Check(_VERSIONS, COMMAND, "ok", __version__)
    problem, advice = foreign_program()
    if problem:
        yield Check(_VERSIONS, "name", "warning", problem, advice)
    python = f"{platform.python_version()} ({shown_path(Path(sys.executable), env.environ)})"
    yield Check(_VERSIONS, "Python", "ok", python)
    yield Check(
        _VERSIONS, "platform", "info", f"{platform.system()} {platform.release()}, {_cpu()}"
    )
    yield _libc_check()


def check_packages(_env: Environment) -> Iterator[Check]:
    """The packages the program stands on, against what its own metadata asks for."""
    wanted = _requirements()
    if not wanted:
        yield Check(
            _VERSIONS,
            "packages",
            "info",
            f"{DISTRIBUTION} runs from source and is not installed; requirements are unknown",
        )
    fitting = 0
    for name in (*_MAIN_PACKAGES, *sorted(wanted.keys() - {*_MAIN_PACKAGES})):
        check = _package_check(name, wanted.get(name, ""))
        if name in _MAIN_PACKAGES or check.state != "ok":
            yield check
        else:
            fitting += 1
    if fitting:
        yield Check(_VERSIONS, "others", "ok", f"{fitting} more packages, versions as required")


def check_pip(_env: Environment) -> Iterator[Check]:
    """What fetches the built-in model."""
    if version := package_version("pip"):
        yield Check(_VERSIONS, "pip", "ok", version)
        return
    found = "not installed; only agent-tui models pull needs it"
    yield Check(_VERSIONS, "pip", "info", found, f"To install it: {python_command()} -m ensurepip")


def check_counting(env: Environment) -> Iterator[Check]:
    """The vocabulary that tokens are counted with."""
    if vocabulary_file(env.environ) is not None:
        yield Check(_VERSIONS, "tokenizer", "ok", "vocabulary on disk; tokens are counted offline")
        return
    found = "vocabulary not on disk; the first count downloads it"
    advice = "Unset TIKTOKEN_CACHE_DIR, or set it to a folder with the vocabulary."
    yield Check(_VERSIONS, "tokenizer", "warning", found, advice)


def is_musl() -> bool:
    """Whether this Python was built for musl (Alpine), for which some wheels do not exist."""
    names = ("SOABI", "HOST_GNU_TYPE", "MULTIARCH")
    return any("musl" in str(sysconfig.get_config_var(name)) for name in names)


def package_version(name: str) -> str:
    """The installed version of a distribution, without importing it; empty if there is none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def fits(version: str, specifier: str) -> bool:
    """Whether `version` meets a pip specifier made of plain comparisons, such as ``>=1.2,<2``."""
    return all(
        _compares(_numbers(version), operator, _numbers(bound))
        for operator, bound in re.findall(r"(>=|<=|==|!=|<|>)\s*([\w.]+)", specifier)
    )


def _compares(version: tuple[int, ...], operator: str, bound: tuple[int, ...]) -> bool:
    pairs = list(zip_longest(version, bound, fillvalue=0))
    left, right = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    match operator:
        case ">=":
            return left >= right
        case "<=":
            return left <= right
        case "<":
            return left < right
        case ">":
            return left > right
        case "==":
            return left == right
        case _:
            return left != right


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def _requirements() -> Mapping[str, str]:
    """Package -> specifier, without those of the extras; empty if we are not installed."""
    try:
        lines = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        lines = []
    plain = (line for line in lines if ";" not in line)
    found = (re.match(r"([\w.-]+)(?:\[[^]]*\])?\s*(.*)", line) for line in plain)
    return {match[1].lower(): match[2] for match in found if match}


def _package_check(name: str, specifier: str) -> Check:
    version = package_version(name)
    if not version:
        return Check(_VERSIONS, name, "bad", "not installed", _reinstall())
    if not fits(version, specifier):
        wanted = f"{version}, but {specifier} is required"
        return Check(_VERSIONS, name, "bad", wanted, _reinstall())
    return Check(_VERSIONS, name, "ok", version)


def _reinstall() -> str:
    return f"Reinstall: {install_command(again=True)}"


def _cpu() -> str:
    return f"{platform.machine()}, {os.cpu_count() or 1} cores"


def _libc_check() -> Check:
    if is_musl():
        return Check(
            _VERSIONS,
            "C library",
            "info",
            "musl: there is no llama.cpp wheel for it",
            "For local models, use a model server (Ollama, llama.cpp, ...) or a system with glibc.",
        )
    name, version = platform.libc_ver()
    return Check(
        _VERSIONS, "C library", "ok" if name else "info", f"{name} {version}".strip() or "-"
    )


def check_git(env: Environment) -> Iterator[Check]:
    """Git, without which nothing the agent changes can be compared or taken back."""
    advice = "Install git. Without it, agent-tui cannot tell which files a command changed."
    yield _version_check(env, "git", "git version ") or Check(
        _TOOLS, "git", "warning", "not found on PATH", advice
    )


def check_ripgrep(env: Environment) -> Iterator[Check]:
    """Ripgrep, with which files are searched and found: the person's own or the wheel's."""
    yield _version_check(env, "rg", "ripgrep ") or _ripgrep_of_wheel(env)


def _ripgrep_of_wheel(env: Environment) -> Check:
    program = ripgrep_program(env.environ)
    if program is None:
        return Check(_TOOLS, "rg", "bad", "not found; files cannot be searched", _reinstall())
    check = _version_of(env, "rg", str(program), "ripgrep ")
    return replace(check, found=f"{check.found} (from the package {WHEEL})")


def check_bash(env: Environment) -> Iterator[Check]:
    """The shell that runs the agent's commands."""
    yield _version_check(env, "bash", "GNU bash, version ") or Check(
        _TOOLS,
        "bash",
        "warning",
        "not found on PATH; commands run with /bin/sh",
        "Install bash. Models write commands for it.",
    )


_WALLED = "commands write only in the working folder, without network but by name"


def check_sandbox(env: Environment) -> Iterator[Check]:
    """What stands between a command and this machine."""
    settings = env.loaded.settings
    if settings.sandbox == "off":
        found = "off; commands run unconfined and permission rules are the only protection"
        yield Check(_TOOLS, "sandbox", "warning", found, "Set sandbox to auto.")
        return
    state = command_sandbox(settings, env.environ).state(env.cwd or Path("/"))
    match state.backend:
        case "bubblewrap":
            yield Check(_TOOLS, "sandbox", "ok", f"bubblewrap; {_WALLED}")
        case "landlock":
            found = f"Landlock, without bubblewrap; {_WALLED}, but cannot hide files in it"
            yield Check(_TOOLS, "sandbox", "ok", found)
        case "none":
            advice = "Install bubblewrap and allow it to use user namespaces."
            is_on = settings.sandbox == "on"
            then = "the model cannot run commands" if is_on else "commands run unconfined"
            severity = "bad" if is_on else "warning"
            yield Check(_TOOLS, "sandbox", severity, f"{state.problem}; {then}", advice)


def check_editor(env: Environment) -> Iterator[Check]:
    """The editor of Ctrl+G."""
    variable = next((name for name in ("VISUAL", "EDITOR") if env.environ.get(name)), "")
    try:
        program = editor_command(env.environ)[0]
    except AgentTuiError as error:
        yield Check(_TOOLS, "editor", "warning", error.message, error.hint)
        return
    why = f"from ${variable}" if variable else "$VISUAL and $EDITOR are not set"
    if find_program(program, env.environ):
        yield Check(_TOOLS, "editor", "ok", f"{program} ({why})")
        return
    found = f"{program} not found ({why})"
    yield Check(
        _TOOLS, "editor", "warning", found, "Set it to an installed editor: export EDITOR=..."
    )


def _version_check(env: Environment, program: str, before_version: str) -> Check | None:
    """A line with the program's version; None where there is no such program."""
    path = find_program(program, env.environ)
    if path is None:
        return None
    return _version_of(env, program, path, before_version)


def _version_of(env: Environment, program: str, path: str, before_version: str) -> Check:
    answer = ask_program((path, "--version"), env.keyless_environ)
    if answer is None or answer.exit_code != 0:
        found = f"{path} --version failed"
        return Check(_TOOLS, program, "warning", found, f"Reinstall {program}.")
    return Check(_TOOLS, program, "ok", answer.first_line.removeprefix(before_version))


def check_terminal(env: Environment) -> Iterator[Check]:
    """Whether the standard streams are a terminal the screen can use, and how large."""
    facts, term = env.terminal, env.environ.get("TERM", "")
    streams = {"input": facts.reads_from_terminal, "output": facts.writes_to_terminal}
    elsewhere = [name for name, is_terminal in streams.items() if not is_terminal]
    if elsewhere:
        found = f"standard {' and '.join(elsewhere)}: not a terminal"
        yield Check(_TERMINAL, "streams", "info", f"{found}; the screen needs one, -p does not")
    if term in ("", "dumb"):
        found = f"{term or 'not set'}: the screen cannot run in this terminal"
        advice = "Use agent-tui --plain, or in a real terminal: export TERM=xterm-256color"
        yield Check(_TERMINAL, "TERM", "info" if elsewhere else "bad", found, advice)
    else:
        yield Check(_TERMINAL, "TERM", "ok", term)
    yield _size_check(facts.columns, facts.rows)


def check_looks(env: Environment) -> Iterator[Check]:
    """Colours, characters, the mouse, and variables that change how the screen is drawn."""
    environ = env.environ
    yield _colour_check(environ)
    if speaks_utf8(environ):
        yield Check(_TERMINAL, "characters", "ok", "UTF-8")
    else:
        chosen = _locale(environ) or "no locale set"
        found = f"{chosen}: not UTF-8; symbols and frames may look wrong"
        yield Check(_TERMINAL, "characters", "warning", found, _UTF8_LOCALE)
    has_mouse = env.loaded.settings.mouse
    found = "on: select text to copy it" if has_mouse else "off (mouse = false)"
    yield Check(_TERMINAL, "mouse", "ok" if has_mouse else "info", found)
    if textual := sorted(name for name in environ if name.startswith("TEXTUAL")):
        yield Check(_TERMINAL, "Textual", "info", f"{', '.join(textual)} set")


def check_clipboard(env: Environment) -> Iterator[Check]:
    """The way a copy takes from here."""
    environ = env.environ
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        yield Check(_TERMINAL, "ssh", "info", "remote machine; copies go through the terminal")
    way = clipboard_way(environ, lambda program: find_program(program, environ))
    if way != OSC_52:
        yield Check(_TERMINAL, "clipboard", "ok", f"copies go to {way.label}")
        return
    found = f"copies go to {way.label}, which some terminals do not support"
    advice = ""
    if environ.get("WAYLAND_DISPLAY"):
        advice = "For reliable copying, install wl-clipboard."
    elif environ.get("DISPLAY"):
        advice = "For reliable copying, install xclip or xsel."
    yield Check(_TERMINAL, "clipboard", "info", found, advice)


def check_multiplexer(env: Environment) -> Iterator[Check]:
    """The settings of tmux that matter here, or GNU screen."""
    if env.environ.get("STY"):
        found = "GNU screen: fewer colours, and copies may not reach the clipboard"
        yield Check(_TERMINAL, "screen", "info", found)
    if not env.environ.get("TMUX"):
        return
    path = find_program("tmux", env.environ)
    values = _tmux_settings(path, env.keyless_environ) if path else {}
    if not values:
        advice = "Check that the tmux server is running: tmux ls"
        yield Check(_TERMINAL, "tmux", "warning", "no answer", advice)
        return
    shown = ", ".join(f"{name} {value}" for name, value in values.items() if name != "version")
    yield Check(_TERMINAL, "tmux", "ok", f"{values['version']}, {shown}")
    yield from _tmux_advice(values)


def speaks_utf8(environ: Mapping[str, str]) -> bool:
    """Whether the locale says that this terminal shows UTF-8."""
    return "utf8" in _locale(environ).lower().replace("-", "")


def _locale(environ: Mapping[str, str]) -> str:
    names = ("LC_ALL", "LC_CTYPE", "LANG")
    return next((environ[name] for name in names if environ.get(name)), "")


def _size_check(columns: int, rows: int) -> Check:
    if not columns or not rows:
        return Check(_TERMINAL, "size", "info", "unknown")
    found = f"{columns} columns, {rows} rows"
    if columns >= _MIN_COLUMNS and rows >= _MIN_ROWS:
        return Check(_TERMINAL, "size", "ok", found)
    advice = f"Enlarge the window to at least {_MIN_COLUMNS} by {_MIN_ROWS}."
    return Check(_TERMINAL, "size", "warning", found, advice)


def _colour_check(environ: Mapping[str, str]) -> Check:
    if "NO_COLOR" in environ:
        return Check(_TERMINAL, "colours", "info", "none: NO_COLOR is set")
    term = environ.get("TERM", "")
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit") or "direct" in term:
        return Check(_TERMINAL, "colours", "ok", "16 million")
    found = "256" if "256color" in term else "16"
    advice = "If your terminal supports more: export COLORTERM=truecolor"
    return Check(_TERMINAL, "colours", "info", found, advice)


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
        advice = "To copy to the clipboard: tmux set -s set-clipboard external"
        yield Check(_TERMINAL, "tmux clipboard", "warning", found, advice)
    delay = values.get("escape-time", "")
    if delay.isdigit() and int(delay) > _MAX_ESCAPE_MS:
        found = f"escape-time is {delay} ms: Esc reacts late"
        advice = "tmux set -s escape-time 10 (add it to ~/.tmux.conf too)"
        yield Check(_TERMINAL, "tmux keys", "warning", found, advice)


def check_network(env: Environment) -> Iterator[Check]:
    """Proxies and certificates by name; providers are not called."""
    yield Check(_NETWORK, "providers", "info", "not checked; keys are tried only when used")
    names = (spelling for name in _PROXIES for spelling in (name, name.lower()))
    if proxies := [name for name in names if env.environ.get(name)]:
        yield Check(_NETWORK, "proxy", "info", f"{', '.join(proxies)} set")
    for name in _CERTIFICATES:
        place = env.environ.get(name)
        if place and not Path(place).exists():
            found = f"{name} points to a missing file or folder; no provider can be reached"
            yield Check(_NETWORK, name, "bad", found, f"Fix it, or: unset {name}")
