"""Commands that change the machine itself, or what other programs may do on it.

`machine_danger_of` looks at the words of one command alone; which files they name is told by
`dangers`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from agent_tui.permissions.shell.words import CommandPart

_ALWAYS_NAMES = """
    mkfs mke2fs mkswap wipefs fdisk sfdisk cfdisk gdisk sgdisk parted shred blkdiscard cryptsetup
    shutdown reboot halt poweroff init telinit kexec hwclock timedatectl sudo doas su pkexec run0
    visudo vipw passwd chpasswd chsh useradd userdel usermod groupadd groupdel groupmod insmod
    rmmod modprobe mount umount swapoff losetup dmsetup lvremove vgremove pvremove zpool zfs
    iptables ip6tables nft ufw firewall-cmd sysctl systemctl service initctl launchctl crontab at
    chroot nsenter unshare setcap chattr diskutil format nvram csrutil efibootmgr grub-install
    dpkg-reconfigure update-alternatives srm wipe batch systemd-run rc-service killall5 ldconfig
    flashrom hostnamectl nmcli
"""
_ALWAYS = frozenset(_ALWAYS_NAMES.split())
_CHANGES_NETWORK: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "ip": re.compile(r"(?:.* )?(?:add|del|delete|set|flush|replace|change|exec)(?: .*)?"),
        "ifconfig": re.compile(r"\S+ .+"),
        "route": re.compile(r"(?:.* )?(?:add|del|delete|flush|change)(?: .*)?"),
        "hostname": re.compile(r"[^-].*|-[Fb].*|--(?:file|boot).*"),
    }
)
_SETS_USER = re.compile(r"[ugoa]*[+=][rwxX]*s\w*|0?[2-7]\d{3}")
_SETS_CLOCK = re.compile(r"-[a-zA-Z]*s.*|--set.*|\d{8,}.*")
_PS_LETTERS = "aglrtTwxhjsuvXncSf"
_SHOWS_ENVIRONMENT = re.compile(rf"[{_PS_LETTERS}]*e[{_PS_LETTERS}e]*")
"""Letters of ps without a dash, ``e`` among them."""
_WHOLE_HOST = re.compile(
    r"--privileged(=.*)?|--(pid|net|network|userns|ipc|uts)=host|(-v|--volume=)?/(etc|root|home)?/?:.*"
    r"|(--mount=)?.*\b(src|source)=/(etc|root|home)?/?(,.*)?|.*docker\.sock.*"
)
_REMOVES = re.compile(
    r"remove|purge|autoremove|erase|full-upgrade|dist-upgrade|del|rm|-[PReErC]\w*"
    r"|--(remove|purge|erase)"
)
_WITHOUT_QUESTIONS = re.compile(
    r"--(?:dangerously-.*|yolo|yes-always|full-auto|allow-all-tools|approval-mode=yolo)"
    r"|bypassPermissions|danger-full-access"
)
_OWN_LOOSENING = re.compile(r"full|accept-edits|--permission-mode=.*|--trust")
_OWN_RULES = frozenset({"config", "trust", "permissions", "mcp"})
_LOOKING_VERBS = frozenset({"path", "show", "list", "check", "-h", "--help"})

OURSELVES = frozenset({"agent-tui", "agent_tui"})


def machine_danger_of(name: str, part: CommandPart) -> str:
    """Why the program `name` with the words of `part` changes the machine; empty if it does not."""
    values = [word.value or "" for word in part.arguments]
    if name in _ALWAYS or name.startswith("mkfs."):
        is_looking = values in (["--version"], ["--help"]) or (name == "mount" and not values)
        return "" if is_looking else f"{name} changes the system"
    if name in ("kill", "pkill", "killall", "fuser") and _ends_too_much(name, part):
        return f"{name} ends every process, or agent-tui"
    harms, why = _CHECKS.get(name, (None, ""))
    return why if harms is not None and harms(values) else ""


def _any(pattern: re.Pattern[str]) -> Callable[[Sequence[str]], bool]:
    return lambda values: any(map(pattern.fullmatch, values))


def _whole(pattern: re.Pattern[str]) -> Callable[[Sequence[str]], bool]:
    return lambda values: pattern.fullmatch(" ".join(values)) is not None


def _ends_too_much(name: str, part: CommandPart) -> bool:
    """Whether a signal goes to every process, or to what started the command."""
    values = [word.value or "" for word in part.arguments]
    if name == "kill":
        is_all = bool({"-1", "1"} & set(values[1:])) or values == ["1"]
        return is_all or any("PPID" in word.source for word in part.arguments)
    if name == "fuser":
        return any(re.match(r"-\w*k", value) for value in values) and bool({"/", "."} & set(values))
    patterns = [value for value in values if not value.startswith("-")]
    takes_user = any(re.match(r"-[uUG]|--(?:user|uid|group|euid)", value) for value in values)
    return takes_user or any(not re.search(r"\w\w", pattern) for pattern in patterns)


def _keeps_paths(values: Sequence[str]) -> bool:
    """Whether tar takes the absolute paths of an archive as they are."""
    options = [v for v in values if v.startswith("-")] + [f"-{v}" for v in values[:1]]
    letters = "".join(o for o in options if re.fullmatch(r"-\w+", o))
    is_unpacking = "x" in letters or any("--extract".startswith(o) for o in options if len(o) > 4)
    return is_unpacking and ("P" in letters or any(o.startswith("--abs") for o in options))


def _writes_device(values: Sequence[str]) -> bool:
    return any(value.startswith("of=/dev/") for value in values)


def _is_told_otherwise(values: Sequence[str]) -> bool:
    """Whether ``agent-tui WORDS`` changes settings, trust or rules, or works under others."""
    if not values or not values[0]:
        return bool(values)
    if any(map(_OWN_LOOSENING.fullmatch, values)):
        return True
    return values[0] in _OWN_RULES and (len(values) < 2 or values[1] not in _LOOKING_VERBS)


_CHECKS: Mapping[str, tuple[Callable[[Sequence[str]], bool], str]] = MappingProxyType(
    {
        "date": (_any(_SETS_CLOCK), "date sets the clock"),
        "chmod": (_any(_SETS_USER), "chmod lets others run a file as its owner"),
        "dd": (_writes_device, "dd writes to a device"),
        "ps": (_any(_SHOWS_ENVIRONMENT), "ps shows the environment of programs, with keys"),
        **dict.fromkeys(("tar", "bsdtar"), (_keeps_paths, "tar writes to any path in the archive")),
        **{
            name: (_whole(pattern), f"{name} changes the system")
            for name, pattern in _CHANGES_NETWORK.items()
        },
        **{
            name: (_any(_WHOLE_HOST), f"{name} gets access to the whole machine")
            for name in ("docker", "podman", "nerdctl")
        },
        **{
            name: (_any(_REMOVES), f"{name} removes parts of the system")
            for name in (
                *("apt", "apt-get", "aptitude", "dpkg", "yum", "dnf", "rpm", "zypper"),
                *("pacman", "apk", "emerge"),
            )
        },
        **{
            name: (_any(_WITHOUT_QUESTIONS), f"{name} acts without asking")
            for name in ("claude", "codex", "gemini", "opencode", "aider", "goose", "amp")
        },
        **dict.fromkeys(
            OURSELVES,
            (_is_told_otherwise, "changes what the model may do without asking"),
        ),
    }
)
