"""Commands that destroy more than a project: these ask in every mode."""

import re
from collections.abc import Sequence
from pathlib import Path

from agent_tui.agent.protected_paths import PathGuard
from agent_tui.agent.shell_words import CommandPart, Word

_ALWAYS_NAMES = """
    mkfs mke2fs mkswap wipefs fdisk sfdisk gdisk parted shred shutdown reboot halt poweroff init
    hwclock timedatectl sudo doas su pkexec visudo passwd useradd userdel usermod insmod rmmod
    modprobe mount umount iptables nft systemctl launchctl crontab at diskutil format
"""
_ALWAYS = frozenset(_ALWAYS_NAMES.split())
_RECURSIVE = frozenset({"rm", "chmod", "chown", "chgrp", "srm", "rimraf", "trash"})
_CALLS_ITSELF = re.compile(r"([\w:]+)\s*\(\)\s*\{.*(?<!\w)\1\s*[|&]", re.DOTALL)
_MOVERS = frozenset({"mv", "rsync", "ln"})


def danger_of(part: CommandPart, bases: Sequence[Path], guard: PathGuard) -> str:
    """Why `part` could do great harm; empty if it is not known to.

    Args:
        part: One part of a command.
        bases: Folders it may run in.
        guard: Knows the workspace.
    """
    if not part.words:
        is_bomb = _CALLS_ITSELF.search(part.source) is not None
        return "it defines a command that starts itself over and over" if is_bomb else ""
    name = part.name.rpartition("/")[2].casefold()
    if name in _ALWAYS or name.startswith("mkfs."):
        return f"{name} changes the system itself"
    if name == "date" and _sets_clock(part):
        return "date would set the clock"
    if name in ("kill", "killall", "pkill") and any(w.value == "-1" for w in part.arguments[1:]):
        return "it would end every process"
    if name == "dd" and any((w.value or "").startswith("of=/dev/") for w in part.arguments):
        return "dd would write to a device"
    if name == "find" and any(w.value == "-delete" for w in part.arguments):
        return _broad_delete(_find_roots(part), bases, guard, "find -delete")
    if name in _RECURSIVE and _is_recursive(part):
        return _broad_delete(_targets(part), bases, guard, f"{name} of whole folders")
    if name in _MOVERS:
        return _broad_delete(_targets(part)[:-1], bases, guard, name, may_leave=True)
    return ""


def device_danger(target: Path) -> str:
    """Why redirecting to `target` could do great harm."""
    text = str(target)
    harmless = re.fullmatch(r"/dev/(null|zero|stdin|stdout|stderr|tty|fd/\d+)", text)
    return f"{text} is a device" if text.startswith("/dev/") and not harmless else ""


def _broad_delete(
    targets: Sequence[Word],
    bases: Sequence[Path],
    guard: PathGuard,
    action: str,
    *,
    may_leave: bool = False,
) -> str:
    """Why acting on `targets` is too much: unknown, the whole workspace, or far outside it."""
    for word in targets:
        if word.value is None:
            if not may_leave:
                return f"{action}: {word.source} is only known when it runs"
            continue
        for base in bases:
            path = _resolved(base, word)
            if path is None:
                return f"{action}: {word.source} cannot be resolved"
            holds_workspace = guard.workspace.is_relative_to(path)
            is_top = len(path.parts) <= 2 or path == guard.home
            is_outside = not may_leave and not guard.may_write_freely(path)
            if holds_workspace or is_top or is_outside:
                return f"{action}: {path} is {'outside' if is_outside else 'all of'} the workspace"
    return ""


def _resolved(base: Path, word: Word) -> Path | None:
    """The folder a word stands for; for a pattern, the folder its matches are in."""
    text = word.value or ""
    if word.is_pattern:
        fixed = re.split(r"[*?\[]", text)[0]
        is_whole_folder = re.fullmatch(r"(?:.*/)?\.?\*", text) is not None
        text = fixed.rpartition("/")[0] + "/" if "/" in fixed else "."
        if not is_whole_folder:
            text = f"{text}/some-match"
    try:
        path = Path(text).expanduser() if word.has_tilde else Path(text)
        return (base / path).resolve()
    except (OSError, RuntimeError, ValueError):
        return None


def _targets(part: CommandPart) -> list[Word]:
    targets: list[Word] = []
    options_end = False
    for word in part.arguments:
        if word.value == "--" and not options_end:
            options_end = True
        elif options_end or word.value is None or not word.value.startswith("-"):
            targets.append(word)
    return targets


def _find_roots(part: CommandPart) -> list[Word]:
    """Where find starts; if its tests narrow it down, matches inside the roots are meant."""
    roots: list[Word] = []
    for word in part.arguments:
        if word.value is not None and word.value.startswith(("-", "(", "!")):
            break
        roots.append(word)
    is_narrow = any(
        (w.value or "").lstrip("-") in ("name", "iname", "path", "empty") for w in part.arguments
    )
    if not is_narrow:
        return roots or [Word(".", ".")]
    return [
        Word(
            root.source,
            None if root.value is None else f"{root.value}/match",
            False,
            root.has_tilde,
        )
        for root in roots or [Word(".", ".")]
    ]


def _is_recursive(part: CommandPart) -> bool:
    for word in part.arguments:
        value = word.value
        if value is None:
            if not word.source.startswith(('"', "$")):
                return True
        elif value in ("--recursive", "--no-preserve-root") or re.fullmatch(
            r"-[A-Za-z]*[rR][A-Za-z]*", value
        ):
            return True
    return False


def _sets_clock(part: CommandPart) -> bool:
    return any(
        re.fullmatch(r"-[a-zA-Z]*s.*|--set.*|\d{8,}.*", word.value or "") for word in part.arguments
    )
