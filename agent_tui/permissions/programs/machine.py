"""Commands that change the machine itself, or what agent-tui may do on it.

`machine_danger_of` looks at the words of one command alone; which files they name is told by
`dangers`.
"""

import re
from collections.abc import Sequence

from agent_tui.permissions.shell.words import CommandPart

_ALWAYS_NAMES = """
    mkfs mke2fs mkswap wipefs fdisk sfdisk cfdisk gdisk sgdisk parted shred blkdiscard cryptsetup
    lvremove vgremove pvremove dmsetup losetup zpool zfs diskutil srm wipe
    shutdown reboot halt poweroff init telinit kexec sudo doas su pkexec run0
    mount umount swapoff chroot nsenter unshare systemctl systemd-run launchctl crontab at batch
    useradd userdel usermod passwd chpasswd visudo iptables ip6tables nft ufw sysctl modprobe insmod
    rmmod chattr setcap killall5
"""
_ALWAYS = frozenset(_ALWAYS_NAMES.split())
"""Programs that need an administrator, or act when the command has ended."""
_SETS_USER = re.compile(r"[ugoa]*[+=][rwxX]*s\w*|0?[2-7]\d{3}")
_OWN_LOOSENING = re.compile(r"full|accept-edits|--permission-mode=.*|--trust|--sandbox=?(?:off)?")
_OWN_RULES = frozenset({"config", "trust", "permissions", "mcp"})
_LOOKING_VERBS = frozenset({"path", "show", "list", "check", "-h", "--help"})

OURSELVES = frozenset({"agent-tui", "agent_tui"})


def machine_danger_of(name: str, part: CommandPart) -> str:
    """Why the program `name` with the words of `part` changes the machine; empty if it does not."""
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
    """Whether a signal goes to every process, or to what started the command."""
    values = [word.value or "" for word in part.arguments]
    if name == "kill":
        is_all = bool({"-1", "1"} & set(values[1:])) or values == ["1"]
        return is_all or any("PPID" in word.source for word in part.arguments)
    patterns = [value for value in values if not value.startswith("-")]
    takes_user = any(re.match(r"-[uUG]|--(?:user|uid|group|euid)", value) for value in values)
    return takes_user or any(not re.search(r"\w\w", pattern) for pattern in patterns)


def _is_told_otherwise(values: Sequence[str]) -> bool:
    """Whether ``agent-tui WORDS`` changes settings, trust or rules, or works under others."""
    if not values or not values[0]:
        return bool(values)
    if any(map(_OWN_LOOSENING.fullmatch, values)):
        return True
    return values[0] in _OWN_RULES and (len(values) < 2 or values[1] not in _LOOKING_VERBS)
