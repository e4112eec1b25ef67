"""Options with which everyday programs run other programs or write files, to be named in rules."""

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from agent_tui.permissions.programs.git import git_only_reads
from agent_tui.permissions.rules import Rule
from agent_tui.permissions.shell.scripts import awk_only_prints, sed_only_prints
from agent_tui.permissions.shell.words import CommandPart

_GIT = (
    r"--(?:config-env|exec-path|out\w*|ex(?:e\w*|t[-\w]*)?|textc\w*|op[-\w]*|up[-\w]*|rece[-\w]*"
    r"|conf\w*|tem\w*|git-dir|work-tree)(?:=.*)?|-c.*|-O.*|ext::.*"
)
_EDITOR = re.compile(r"[-+].+", re.DOTALL)
_POWERS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "git": re.compile(_GIT, re.DOTALL),
        "rg": re.compile(r"--(?:pre|hostname-bin|search-zip)(?:=.*)?|-\w*z\w*"),
        "find": re.compile(r"-(?:delete|fprint\w*|fls)"),
        "sort": re.compile(r"-\w*o.*|--o.*|--comp.*"),
        "tar": re.compile(r"--(?:to-c|ch|us|rs|rm|new-|inf).*|-\w*[IF].*|[\w.@-]+:.*"),
        "ssh": re.compile(r"-\w*[oFJ].*|.*(?:proxycommand|localcommand|knownhostscommand).*", re.I),
        "scp": re.compile(r"-\w*[oSFJ].*|.*(?:proxycommand|localcommand).*", re.I),
        "rsync": re.compile(r"-\w*e.*|--(?:rsh|rsync-path|del).*"),
        "sed": re.compile(r"-\w*[if].*|--(?:in-p|f).*"),
        "curl": re.compile(r"-\w*[oOKTF].*|--(?:output|remote-name|config|upload-file|form).*"),
        "wget": re.compile(r"-\w*[OPeiao].*|--(?:use-a|output|dir|exec|input|post|body|conf).*"),
        "man": re.compile(r"-\w*[PHC].*|--(?:pager|html|config).*"),
        "make": re.compile(r"(?:SHELL|MAKEFLAGS|\.SHELLFLAGS)\W?=.*|--eval.*|-\w*[fC].*"),
        "less": re.compile(r"\+.*|-\w*[oOkT].*|--(?:log|LOG|lesskey|tag).*"),
        **dict.fromkeys(("vi", "vim", "nvim", "view", "ex", "emacs"), _EDITOR),
        "zip": re.compile(r"-\w*TT.*|--unzip-c.*"),
        "go": re.compile(
            r"--?(?:exec|toolexec|vettool|fixtool|overlay)(?:=.*)?|.*-extld.*", re.DOTALL
        ),
        "cargo": re.compile(r"--config(?:=.*)?"),
        "npm": re.compile(r"--(?:script-shell|node-options|prefix|\w*config)(?:=.*)?|-C.*"),
        "pytest": re.compile(r"--basetemp(?:=.*)?"),
        "kubectl": re.compile(r"--(?:kubeconfig|server|raw)(?:=.*)?|-s.*"),
        "gh": re.compile(r"alias|ext(?:ensions?)?"),
        "mypy": re.compile(r"--(?:python-e|config|install|custom|shadow).*"),
        "eslint": re.compile(
            r"--(?:rulesdir|resolve|config|plugin|parser|format|output).*|-[cfo].*"
        ),
        "prettier": re.compile(r"--(?:plugin|config).*"),
        "split": re.compile(r"--fi.*"),
        **dict.fromkeys(
            ("gcc", "g++", "cc", "c++", "clang", "clang++", "gfortran"),
            re.compile(r"-(?:wrapper|fplugin|fpass-plugin|B|Xclang|load).*|--?specs.*|@.*"),
        ),
        "javac": re.compile(r"--?(?:processor|Xplugin|J).*|@.*"),
        "rustc": re.compile(r".*linker.*|@.*|-Z.*|--extern.*", re.DOTALL),
        "tcpdump": re.compile(r"-\w*[zw].*|--z.*"),
        "sqlite3": re.compile(
            r".*(?:\.\s*(?:sh\w*|sys\w*|load|out\w*|once|im\w*|sav\w*|back\w*|ex\w*|www|log|read"
            r"|ar\w*|cd|op\w*|clo\w*)\b|load_extension|(?:read|write)file|edit\s*\(|fts3_token).*"
            r"|-(?:init|cmd|A).*",
            re.DOTALL | re.IGNORECASE,
        ),
        "psql": re.compile(
            r".*(?:\\|\bprogram\b|pg_(?:read|ls|exec)|lo_(?:im|ex)port).*|-\w*[foLv].*"
            r"|--(?:file|out|log|set|variable).*",
            re.DOTALL | re.IGNORECASE,
        ),
        **dict.fromkeys(
            ("mysql", "mariadb"),
            re.compile(
                r".*(?:\\|\b(?:system|source|outfile|dumpfile|load_file|infile)\b).*"
                r"|--(?:defaults|plugin|tee|pager|init).*",
                re.DOTALL | re.IGNORECASE,
            ),
        ),
        "ruff": re.compile(r"--config.*"),
        "pylint": re.compile(r"--(?:load-pl|init-h|rc).*"),
        **dict.fromkeys(
            ("flake8", "black", "isort"), re.compile(r"--(?:append-)?(?:config|settings).*")
        ),
        "cmake": re.compile(r"-[PEC].*|-D.*(?:LAUNCHER|COMPILER|COMMAND|PROGRAM|TOOLCHAIN).*"),
        **dict.fromkeys(
            ("gradle", "gradlew"), re.compile(r"-(?:I|b|c|p).*|--(?:init|build|settings|proj).*")
        ),
        "mvn": re.compile(r"-(?:f|s|gs|t).*|--(?:file|settings|global).*|-D.*exec.*"),
        **dict.fromkeys(
            ("jest", "vitest", "mocha"),
            re.compile(r"--(?:config|require|setup|globalS|loader|import|reporter|env).*|-[cr].*"),
        ),
        "tsc": re.compile(r"--(?:out|plugins|build).*|-p.*|--project.*"),
        "ld": re.compile(r"-plugin.*|--plugin.*|@.*"),
        "strace": re.compile(r"-\w*o.*|--output.*"),
    }
)
_GIT_VERBS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "bisect": re.compile("run"),
        "submodule": re.compile("foreach"),
        "rebase": re.compile(r"-\w*x.*", re.DOTALL),
        "clone": re.compile(r"-\w*[cu].*", re.DOTALL),
        "archive": re.compile(r"-o.*|--(?:o|r).*"),
        "format-patch": re.compile(r"-o.*|--o.*"),
        "config": re.compile(r"(?!user\.|--)[\w-]+\..*", re.DOTALL),
    }
)
"""What else counts behind these verbs."""

_GIT_RUNNERS = frozenset(
    {
        *("filter-branch", "difftool", "mergetool", "hook", "daemon", "instaweb", "web--browse"),
        *("send-email", "credential", "for-each-repo", "maintenance", "shell", "p4", "svn", "help"),
        *("upload-pack", "receive-pack", "http-backend", "remote-ext", "remote-fd", "cvsserver"),
    }
)
"""Verbs that run other programs, serve the network or print passwords: a rule names them."""

_SCRIPTS: Mapping[str, Callable[[Sequence[str]], bool]] = MappingProxyType(
    {
        "sed": sed_only_prints,
        **dict.fromkeys(("awk", "gawk", "mawk", "nawk", "original-awk"), awk_only_prints),
    }
)


def exceeds_rule(rule: Rule, part: CommandPart) -> bool:
    """Whether `part` uses a power that an allow rule ending in ``*`` does not name.

    ``git log *`` allows any look at the log, not ``git log --output=FILE``. A rule for everything
    (``*``) means everything.
    """
    if not rule.pattern.endswith("*") or rule.pattern == "*":
        return False
    name = part.name.rpartition("/")[2]
    named = rule.pattern.split()
    values = [word.value or "" for word in part.arguments]
    if name == "tar" and values and not values[0].startswith("-"):
        values[0] = f"-{values[0]}"  # tar xf: options in the old style
    if name == "git" and _git_exceeds_rule(named, values):
        return True
    if (only_prints := _SCRIPTS.get(name)) is not None:
        powers = _POWERS.get(name)
        options = [v for v in values if v.startswith("-") and v in named]
        if powers is None or not any(powers.fullmatch(v) for v in values if v not in options):
            return not only_prints([v for v in values if v not in options])
    powers = _POWERS.get(name)
    return powers is not None and any(
        powers.fullmatch(value)
        for index, value in enumerate(values)
        # Behind its verb, git's -c names a commit or a compression.
        if value not in named
        and not (name == "git" and value[:2] == "-c" and index > _verb(values))
    )


def _git_exceeds_rule(named: Sequence[str], values: Sequence[str]) -> bool:
    at = _verb(values)
    verb, others = "".join(values[at : at + 1]), values[at + 1 :]
    if verb in _GIT_RUNNERS and verb not in named:
        return True
    powers = _GIT_VERBS.get(verb)
    if powers is None or git_only_reads(values):
        return False
    return any(powers.fullmatch(other) for other in others if other not in named)


def _verb(values: Sequence[str]) -> int:
    """Where git's verb is; behind the end if there is none."""
    at = 0
    while at < len(values) and values[at].startswith("-"):
        at += 2 if values[at] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace") else 1
    return min(at, len(values))
