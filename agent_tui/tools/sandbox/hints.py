"""What to tell the model of a command that failed where the wall is the likely cause: pure."""

import re
from collections.abc import Sequence
from typing import Final

_ASK: Final = "if it has to, run it again with outside: true and why, which asks the user"
_NO_NETWORK: Final = re.compile(
    r"could not resolve|name or service not known|temporary failure in name resolution"
    r"|network is unreachable|no route to host|ENOTFOUND|EAI_AGAIN|ENETUNREACH|getaddrinfo"
    r"|failed to lookup address|no address associated|nodename nor servname|dial tcp: lookup"
    r"|No matching distribution found|Tunnel connection failed: 403|CONNECT tunnel failed",
    re.IGNORECASE,
)
_GIT_CONFIG: Final = re.compile(
    r"could not (?:write|lock) config file|update of config-file failed|gpg failed to sign"
)
_NOT_WRITABLE: Final = re.compile(r"read-only file ?system|EROFS|os error 30\b", re.IGNORECASE)
_BUSY: Final = re.compile(r"device or resource busy|EBUSY", re.IGNORECASE)
_FORBIDDEN: Final = re.compile(
    r"operation not permitted|EPERM|docker\.sock|docker daemon|must be setuid root"
    r"|effective uid is not 0|system has not been booted with systemd|PTRACE_TRACEME",
    re.IGNORECASE,
)
_MISSING: Final = r"no such file or directory|ENOENT|cannot access|can't open|not found"


def wall_hint(output: str, home: str, hidden: Sequence[str] = ()) -> str:
    """One line for the model, with the way to ask; empty if the wall is not the likely cause.

    Args:
        output: What a command that failed printed.
        home: The home folder, most of which is not there.
        hidden: Names of files of the folders worked in that cannot be read.
    """
    for said, cause in (
        (_NO_NETWORK, "commands in the sandbox reach only this machine and hosts that are allowed"),
        (_GIT_CONFIG, "git's settings and signing keys cannot be used in the sandbox"),
        (_NOT_WRITABLE, "commands in the sandbox write only in the working folders and /tmp"),
        (_BUSY, "the sandbox holds this file in place, as programs outside obey it"),
        (_FORBIDDEN, "the sandbox does not let commands do this"),
    ):
        if said.search(output):
            return f"{cause}; {_ASK}"
    for line in output.splitlines():
        if any(name in line for name in hidden) and "permission denied" in line.casefold():
            return f"the sandbox hides this file, as it may hold keys; {_ASK}"
        if home in line and re.search(_MISSING, line, re.IGNORECASE):
            return f"of {home}, only programs and the working folders exist in the sandbox; {_ASK}"
    return ""


def stray_hint(names: Sequence[str], home: str) -> str:
    """What to tell the model of files that only commands in the wall will ever see."""
    shown = ", ".join(names[:5])
    return (
        f"written to a stand-in for {home} that is deleted later: {shown}; "
        "write in the working folders instead, or run it with outside: true and why"
    )
