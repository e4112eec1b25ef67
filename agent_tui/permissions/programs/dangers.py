"""Commands that destroy more than a project or change the machine, and those that lose work.

Without a sandbox, the first ask in every mode. In one, only the second matter: it must let commands
write in the folder, and work there may be lost.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from agent_tui.permissions.programs.destruction import destruction_of, find_loss, git_loss
from agent_tui.permissions.programs.read_only import find_roots_start
from agent_tui.permissions.programs.written_files import written_words
from agent_tui.permissions.protected_paths import ProtectedPaths, is_inside_git
from agent_tui.permissions.shell.parts import split_command
from agent_tui.permissions.shell.words import CommandPart, Word
from agent_tui.safe_paths import follow_links

_ALWAYS_NAMES = """
    mkfs mke2fs mkswap wipefs fdisk sfdisk cfdisk gdisk sgdisk parted shred blkdiscard cryptsetup
    lvremove vgremove pvremove dmsetup losetup zpool zfs diskutil srm wipe
    shutdown reboot halt poweroff init telinit kexec sudo doas su pkexec run0
    mount umount swapoff chroot nsenter unshare systemctl systemd-run launchctl crontab at batch
    useradd userdel usermod passwd chpasswd visudo iptables ip6tables nft ufw sysctl modprobe insmod
    rmmod chattr setcap killall5
"""
_ALWAYS = frozenset(_ALWAYS_NAMES.split())
"""Programs that need an administrator, or act after the command has ended."""

_SETS_USER = re.compile(r"[ugoa]*[+=][rwxX]*s\w*|0?[2-7]\d{3}")
_OWN_LOOSENING = re.compile(r"full|accept-edits|--permission-mode=.*|--trust|--sandbox=?(?:off)?")
_OWN_RULES = frozenset({"config", "trust", "permissions", "mcp"})
_LOOKING_VERBS = frozenset({"path", "show", "list", "check", "-h", "--help"})
OURSELVES = frozenset({"agent-tui", "agent_tui"})
_RECURSIVE = frozenset({"rm", "chmod", "chown", "chgrp", "setfacl"})
"""Programs that act on whole folders if an option says so."""

_TAKES_FOLDERS = frozenset({"rimraf", "trash"})
"""Programs that always act on whole folders."""

_RECURSIVE_OPTION = re.compile(r"--recursive|--no-preserve-root|-[A-Za-z]*[rR][A-Za-z]*")
_PLAIN_VARIABLE = re.compile(
    r"\$(?:[A-Za-z_]\w*|[$!?#]|\{[A-Za-z_]\w*(?:[-:+=?%#^,][^{}`(]*|/[^{}`(-]*)?\})"
)
"""A variable that adds no text of its own, unlike ``${x/a/-rf}``."""

_CALLS_ITSELF = re.compile(r"([\w:]+)\s*\(\)\s*\{.*(?<!\w)\1\s*[|&]", re.DOTALL)
_MOVERS = frozenset({"mv", "ln"})
_REPLACES = frozenset({*_MOVERS, *_RECURSIVE, "rmdir", "unlink", "install", "mknod"})
"""Programs that remove, replace or change what they are given, instead of writing into it."""

_HARMLESS_DEVICE = re.compile(r"/dev/(null|zero|stdin|stdout|stderr|tty|fd/\d+)")
_OWN_VERB_NAMES = """
    git npm npx pnpm yarn pip pip3 cargo go docker podman kubectl gh aws make apt apt-get brew
    uv poetry rails rake bundle gem terraform helm dotnet mvn gradle
"""
_OWN_VERBS = frozenset(_OWN_VERB_NAMES.split())
"""Programs whose words are subcommands, or commands for another machine or container."""

_HIDDEN = frozenset({"rm", "dd", "shred", "find", "mkfs", *OURSELVES})
_MAX_HIDDEN_WORDS = 12
_MOST_HIDDEN = 200
_BEFORE_COMMAND = "|!"
"""How programs tell a command from other values: git an alias, ``less`` a filter."""

_NAME = re.compile(r"-*[A-Za-z][\w.-]*=|[A-Z][a-z]+[A-Z]\w*[ \t]+(?=\S)")
"""The name before a value. Before a blank, only one written like those of ssh is no word."""
_HISTORY_VERBS = frozenset(
    {"stash", "branch", "reflog", "gc", "prune", "filter-branch", "filter-repo", "worktree"}
)
"""Git verbs that lose what no file of the work tree holds."""

_FILE_VERBS = frozenset(
    {
        *("reset", "clean", "checkout", "switch", "restore", "rm", "checkout-index", "read-tree"),
        *("merge", "rebase", "cherry-pick", "am", "revert"),
    }
)
"""Git verbs that lose changes to files."""

_OTHER_SYSTEMS = frozenset({"hg", "svn", "jj"})
_ELSEWHERE = ("--git-dir", "--work-tree", "--recurse-submodules")


def danger_of(
    part: CommandPart, bases: Sequence[Path], guard: ProtectedPaths, *, reads_only: bool = False
) -> str:
    """Why `part` could do great harm; empty if no harm is known.

    Args:
        part: One part of a command.
        bases: Folders it may run in.
        guard: Knows the workspace.
        reads_only: Whether `part` is known to change nothing.
    """
    if reads_only:
        return ""
    if not part.words and _CALLS_ITSELF.search(part.source) is not None:
        return "defines a function that starts itself over and over"
    if part.words and (danger := _plain_danger(part, bases, guard)):
        return danger
    for inner in find_hidden_commands(part):
        name = inner.program
        if name in _HIDDEN and (danger := _plain_danger(inner, bases, guard)):
            return danger
        if lost := destruction_of(inner):
            return lost
    return ""


def find_hidden_commands(part: CommandPart) -> tuple[CommandPart, ...]:
    """Commands that what a program is given may hold.

    That is in ``LESSOPEN='|rm x' less f``, ``make SHELL='rm x'``, and in the words of a program
    that may run them: ``ssh HOST rm x``, ``-c 'rm x'``, ``-o ProxyCommand='rm x'``. A variable may
    hold a command with variables: ``LESSOPEN='|env A="rm x" y' less f``.
    """
    found = list(_hidden_in(part))
    for inner in found:
        found += _held_by_variables(inner) if len(found) < _MOST_HIDDEN else ()
    return tuple(found)


def _hidden_in(part: CommandPart) -> Iterator[CommandPart]:
    name = part.program
    words = () if name in _OWN_VERBS else part.words[: _MAX_HIDDEN_WORDS + 1]
    for index in range(1, len(words)):
        if words[index].value and not (words[index].value or "").startswith("-"):
            yield CommandPart(part.source, words[index:], wrapper=name)
    texts = [word.value for word in words[1:] if word.value and re.search(r"\s", word.value)]
    texts += [value for word in words[1:] for value in _values_in(word.value or "")]
    yield from (inner for text in texts for inner in _commands_of(text))
    yield from _held_by_variables(part)


def _held_by_variables(part: CommandPart) -> Iterator[CommandPart]:
    """The commands in the values of the variables that `part` sets."""
    for word in part.assigned[:_MAX_HIDDEN_WORDS]:
        yield from _commands_of(word.value or "")


def _commands_of(text: str) -> Iterator[CommandPart]:
    commands = split_command(text.lstrip(_BEFORE_COMMAND)).commands
    return (inner for inner in commands if inner.words)


def _values_in(word: str) -> Iterator[str]:
    """What a word gives an option or a setting in it: ``--rsh=x``, ``-oName=x``, ``'Name x'``."""
    while _NAME.match(word):
        word = _NAME.sub("", word, count=1)
        yield word


def _plain_danger(part: CommandPart, bases: Sequence[Path], guard: ProtectedPaths) -> str:
    name = part.program.casefold()
    if changed := machine_danger_of(name, part):
        return changed
    if lost := destruction_of(part):
        return lost
    danger = _folder_danger(name, part, bases, guard)
    return _system_change(name, part, bases, guard) if danger is None else danger


def _folder_danger(
    name: str, part: CommandPart, bases: Sequence[Path], guard: ProtectedPaths
) -> str | None:
    """Why removing, changing or moving whole folders is dangerous; empty if it is allowed.

    None if the command does none of these, and for a harmless move, whose written files decide.
    """
    if (change := folder_change(name, part)) is not None:
        return _broad_delete(change.targets, bases, guard, change.action)
    if name in _RECURSIVE and (_is_recursive(part) or _is_fed_by_search(part)):
        action = f"recursive {name}" if _is_recursive(part) else f"{name} of everything found"
        return _broad_delete(_targets(part), bases, guard, action)
    if name in _MOVERS:
        return _broad_delete(_targets(part)[:-1], bases, guard, name, may_leave=True) or None
    return None


@dataclass(frozen=True, slots=True)
class FolderChange:
    """A command that removes whole folders, and the words that name them."""

    action: str
    targets: tuple[Word, ...]

    def paths(self, bases: Sequence[Path]) -> Iterator[Path]:
        """The paths it would remove if run in `bases`; an unknown variable counts as empty."""
        for word in self.targets:
            bare = re.sub(r"[\"']", "", _PLAIN_VARIABLE.sub("", word.source))
            text = bare if word.value is None else word.value
            is_pattern = word.is_pattern or (word.value is None and "*" in text)
            known = replace(word, value=text, is_pattern=is_pattern)
            for base in bases if text else ():
                if (path := _resolve_folder(base, known)) is not None:
                    yield path


def folder_change(name: str, part: CommandPart) -> FolderChange | None:
    """How `part` removes whole folders; None if it is not known to."""
    values = [word.value or "" for word in part.arguments]
    if name == "find" and "-delete" in values:
        return FolderChange("find -delete", tuple(find_roots(part)))
    if name in _TAKES_FOLDERS or (name == "rm" and _is_recursive(part)):
        return FolderChange(f"recursive {name}", tuple(_targets(part)))
    if name == "rsync" and any(value.startswith("--del") for value in values):
        return FolderChange("rsync --delete", tuple(_targets(part)[-1:]))
    return None


def _is_fed_by_search(part: CommandPart) -> bool:
    """Whether find or xargs supplies its targets, so their number is unknown."""
    wrapper = part.wrapper.rpartition("/")[2].casefold()
    return wrapper in ("find", "fd", "fdfind", "xargs", "parallel")


def _system_change(
    name: str, part: CommandPart, bases: Sequence[Path], guard: ProtectedPaths
) -> str:
    """Why it would change a protected file, a system file or a device; empty if it would not."""
    for word in written_words(name, part):
        if name not in _REPLACES and _HARMLESS_DEVICE.fullmatch(word.value or ""):
            continue
        for base in bases:
            path = _resolve_folder(base, word) if word.value is not None else None
            if path is None:
                continue
            if danger := device_danger(path) or guard.why_changing_asks(path):
                return danger
            if name in ("rm", "unlink", "truncate") and not guard.may_write_freely(path):
                return f"{name} outside the folder: {path}"
    return ""


def device_danger(target: Path) -> str:
    """Why redirecting to `target` could do great harm; empty if it could not."""
    text = str(target)
    harmless = _HARMLESS_DEVICE.fullmatch(text)
    return f"{text} is a device" if text.startswith("/dev/") and not harmless else ""


def _broad_delete(
    targets: Sequence[Word],
    bases: Sequence[Path],
    guard: ProtectedPaths,
    action: str,
    *,
    may_leave: bool = False,
) -> str:
    """Why `targets` are too broad: unknown, the whole workspace, or far outside it; else empty."""
    for word in targets:
        if word.value is None:
            if not may_leave:
                return f"{action}: {word.source} is known only at run time"
            continue
        for base in bases:
            path = _resolve_folder(base, word)
            if path is None:
                return f"{action}: cannot resolve {word.source}"
            holds_workspace = any(root.is_relative_to(path) for root in guard.roots)
            is_top = len(path.parts) <= 2 or path == guard.home
            is_outside = not may_leave and not guard.may_write_freely(path)
            if holds_workspace or is_top or is_outside:
                where = f"outside the folder: {path}" if is_outside else f"on all of {path}"
                return f"{action} {where}"
    return ""


def _resolve_folder(base: Path, word: Word) -> Path | None:
    """The folder a word names; for a pattern, the folder its matches are in.

    None if unknown: a pattern followed by ``..`` leads to the parent of any match.
    """
    text = word.value or ""
    if word.is_pattern:
        fixed = re.split(r"[*?\[]", text)[0]
        if ".." in text[len(fixed) :].split("/"):
            return None
        is_whole_folder = re.fullmatch(r"(?:.*/)?\.?\*", text) is not None
        text = fixed.rpartition("/")[0] + "/" if "/" in fixed else "."
        if not is_whole_folder:
            text = f"{text}/some-match"
    try:
        path = Path(text).expanduser() if word.has_tilde else Path(text)
        return Path(follow_links(str(base / path)))
    except (OSError, RuntimeError):
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


def find_roots(part: CommandPart) -> list[Word]:
    """Where find starts; if its tests narrow the search, the matches inside those folders."""
    roots: list[Word] = []
    values = [word.value or "" for word in part.arguments]
    for word in part.arguments[find_roots_start(values) :]:
        if word.value is not None and word.value.startswith(("-", "(", "!")):
            break
        roots.append(word)
    if "-files0-from" in values:
        roots.append(Word("-files0-from", None))
    is_narrow = "-empty" in values or any(
        test in ("-name", "-iname", "-path", "-ipath") and re.search(r"\w", pattern)
        for test, pattern in pairwise(values)
    )
    if not is_narrow or {"!", "-not", "-o", "-or"} & set(values):
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
    """Whether an option makes it recursive; a word known only at run time counts as a file name."""
    return any(_RECURSIVE_OPTION.fullmatch(word.value or "") for word in part.arguments)


def machine_danger_of(name: str, part: CommandPart) -> str:
    """Why program `name` with the words of `part` changes the machine; empty if it does not."""
    values = [word.value or "" for word in part.arguments]
    if name in _ALWAYS or name.startswith("mkfs."):
        is_looking = values in (["--version"], ["--help"]) or (name == "mount" and not values)
        return "" if is_looking else f"{name} changes the system"
    if name in ("kill", "pkill", "killall") and _ends_too_much(name, part):
        return f"{name} ends every process, or agent-tui"
    if name == "dd" and any(value.startswith("of=/dev/") for value in values):
        return "dd writes to a device"
    if name == "chmod" and any(map(_SETS_USER.fullmatch, values)):
        return "chmod lets others run a file as its owner"
    if name in OURSELVES and _is_told_otherwise(values):
        return "changes what the model may do without asking"
    return ""


def _ends_too_much(name: str, part: CommandPart) -> bool:
    """Whether a signal would end all processes, or the process that started the command."""
    values = [word.value or "" for word in part.arguments]
    if name == "kill":
        is_all = bool({"-1", "1"} & set(values[1:])) or values == ["1"]
        return is_all or any("PPID" in word.source for word in part.arguments)
    patterns = [value for value in values if not value.startswith("-")]
    takes_user = any(re.match(r"-[uUG]|--(?:user|uid|group|euid)", value) for value in values)
    return takes_user or any(not re.search(r"\w\w", pattern) for pattern in patterns)


def _is_told_otherwise(values: Sequence[str]) -> bool:
    """Whether ``agent-tui WORDS`` changes settings, trust or rules, or overrides them for a run."""
    if not values or not values[0]:
        return bool(values)
    if any(map(_OWN_LOOSENING.fullmatch, values)):
        return True
    return values[0] in _OWN_RULES and (len(values) < 2 or values[1] not in _LOOKING_VERBS)


@dataclass(frozen=True, slots=True)
class WorkLoss:
    """What a command would lose. `is_kept`: undo keeps such files and can restore them."""

    what: str
    is_kept: bool = False


def work_loss(part: CommandPart, bases: Sequence[Path], guard: ProtectedPaths) -> WorkLoss | None:
    """The work that `part` would lose in the folders it may run in; None if none.

    Args:
        part: One part of a command.
        bases: Folders it may run in.
        guard: Knows the working folders.
    """
    name = part.program.casefold()
    words = [word.value or "" for word in part.arguments]
    if name == "git":
        return _loss_by_git(words, bases, guard)
    if name in _OTHER_SYSTEMS:
        lost = find_loss(name, words)
        return WorkLoss(lost) if lost else None
    change = folder_change(name, part)
    return _loss_by_removal(change, bases, guard) if change is not None else None


def _loss_by_git(
    words: Sequence[str], bases: Sequence[Path], guard: ProtectedPaths
) -> WorkLoss | None:
    verb, others = git_loss(words)
    if verb in _HISTORY_VERBS:
        return WorkLoss(_describe_loss(verb, others))
    if verb not in _FILE_VERBS:
        return None
    letters = "".join(word for word in others if word[:1] == "-" and word[:2] != "--")
    takes_ignored = verb == "clean" and bool({"x", "X", "e"} & set(letters))
    takes_repositories = verb == "clean" and (
        letters.count("f") + sum(word.startswith("--f") for word in others) > 1
    )
    is_elsewhere = any(word.startswith(_ELSEWHERE) for word in words) or any(
        guard.why_git_asks(base) or not base.is_relative_to(guard.workspace) for base in bases
    )
    is_kept = not (takes_ignored or takes_repositories or is_elsewhere)
    return WorkLoss(_describe_loss(verb, others), is_kept)


def _describe_loss(verb: str, others: Sequence[str]) -> str:
    what = "history" if verb in _HISTORY_VERBS - {"stash"} else "uncommitted work"
    return f"git {' '.join([verb, *others])[:60]} discards {what}"


def _loss_by_removal(
    change: FolderChange, bases: Sequence[Path], guard: ProtectedPaths
) -> WorkLoss | None:
    for path in change.paths(bases):
        if any(root.is_relative_to(path) for root in guard.roots):
            return WorkLoss(f"{change.action} removes all of {path}")
        if guard.is_inside(path) and is_inside_git(path):
            return WorkLoss(f"{change.action} removes {path}")
    return None
