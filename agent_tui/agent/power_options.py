"""Options with which everyday programs run other programs or write files, to be named in rules."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from agent_tui.agent.rules import Rule
from agent_tui.agent.shell_words import CommandPart

_GIT = (
    r"-c.*|--(?:config-env|exec-path|output|ext-diff|textconv|open-files-in-pager|upload-pack"
    r"|receive-pack|exec|config|git-dir|work-tree|template)(?:=.*)?|-O.*|ext::.*"
)
_POWERS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "git": re.compile(_GIT),
        "rg": re.compile(r"--(?:pre|hostname-bin|search-zip)(?:=.*)?|-\w*z\w*"),
        "find": re.compile(r"-(?:delete|fprint\w*|fls)"),
        "sort": re.compile(r"-\w*o.*|--o.*|--comp.*"),
        "tar": re.compile(r"--(?:to-c|ch|use|rsh|new-vol|info-s).*|-\w*[IF].*"),
        "ssh": re.compile(r"-\w*[oFJ].*|.*(?:proxycommand|localcommand|knownhostscommand).*", re.I),
        "scp": re.compile(r"-\w*[oSFJ].*|.*(?:proxycommand|localcommand).*", re.I),
        "rsync": re.compile(r"-\w*e.*|--(?:rsh|rsync-path|del).*"),
        "sed": re.compile(r"-\w*[if].*|--(?:in-p|f).*"),
        "awk": re.compile(r"-\w*[fil].*|.*(?:system|getline|\|).*", re.DOTALL),
        "curl": re.compile(r"-\w*[oOKTF].*|--(?:output|remote-name|config|upload-file|form).*"),
        "man": re.compile(r"-\w*[PHC].*|--(?:pager|html|config).*"),
        "make": re.compile(r"(?:SHELL|MAKEFLAGS|\.SHELLFLAGS)\W?=.*|--eval.*|-\w*[fC].*"),
    }
)


def goes_beyond(rule: Rule, part: CommandPart) -> bool:
    """Whether `part` uses a power that an allow rule ending in ``*`` does not name.

    ``git log *`` allows any look at the log, not ``git log --output=FILE``. A rule for everything
    (``*``) means everything.
    """
    powers = _POWERS.get(part.name.rpartition("/")[2])
    if powers is None or not rule.pattern.endswith("*") or rule.pattern == "*":
        return False
    named = rule.pattern.split()
    values = [word.value or "" for word in part.arguments]
    verb = next((i for i, value in enumerate(values) if not value.startswith("-")), len(values))
    for index, value in enumerate(values):
        if value in named or not powers.fullmatch(value):
            continue
        # Behind its verb, git's -c names a commit or a compression.
        if part.name == "git" and index > verb and re.fullmatch(r"-c.*", value):
            continue
        return True
    return False
