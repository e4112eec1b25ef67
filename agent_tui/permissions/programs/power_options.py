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
        "tar": re.compile(
            r"--(?:to-c|ch|us|rs|rm|new-|inf|abs|rem|tr|xf).*|-\w*[IFP].*|[\w.@-]+:.*"
        ),
        "ssh": re.compile(
            r"-\w*[oFJILRDAWE].*|.*(?:proxycommand|localcommand|knownhostscommand).*", re.I
        ),
        "scp": re.compile(r"-\w*[oSFJ].*|.*(?:proxycommand|localcommand).*", re.I),
        "rsync": re.compile(r"-\w*e.*|--(?:rsh|rsync-path|del|daemon|config|write).*"),
        "sed": re.compile(r"-\w*[if].*|--(?:in-p|f).*"),
        "curl": re.compile(
            r"-\w*[oOKTFcDnE].*|--(?:output|remote-name|config|upload-file|form|netrc|trace|stderr"
            r"|engine|unix|abstract|cookie-j|dump|etag|hsts|libcurl|cert|key).*"
        ),
        "wget": re.compile(r"-\w*[OPeiao].*|--(?:use-a|output|dir|exec|input|post|body|conf).*"),
        "man": re.compile(r"-\w*[PHC].*|--(?:pager|html|config).*"),
        "make": re.compile(
            r"(?:SHELL|(?:GNU)?MAKEFLAGS|MAKEFILES|MAKE|\.SHELLFLAGS)\W*=.*|.*=.*[$`].*|[^=]*!=.*"
            r"|(?:override|define)\s.*|(?:CC|CXX|LD|AR|AS|PYTHON|HOSTCC)\W?=.*[/$\s].*"
            r"|--(?:ev|fi|mak|dir|inc).*|-\w*[fCEI].*",
            re.DOTALL,
        ),
        "less": re.compile(r"\+.*|-\w*[oOkT].*|--(?:log|LOG|lesskey|tag).*"),
        **dict.fromkeys(("vi", "vim", "nvim", "view", "ex", "emacs"), _EDITOR),
        "zip": re.compile(r"-\w*TT.*|--unzip-c.*"),
        "go": re.compile(
            r"--?(?:exec|toolexec|vettool|fixtool|overlay|compiler|gccgoflags|w)(?:=.*)?|.*-extld.*"
            r"|[\w./-]+@.*",
            re.DOTALL,
        ),
        "cargo": re.compile(r"--(?:config|manifest|target-dir|out-dir|artifact-dir).*|-[CZ].*"),
        "bun": re.compile(r"--(?:preload|require|import|config|cwd|env-file|out|shell).*|-[rc].*"),
        "pnpm": re.compile(r"--(?:dir|script-s|config|shell).*|-C.*"),
        "yarn": re.compile(r"--(?:cwd|use-yarnrc|script-s).*"),
        "poetry": re.compile(r"--(?:dir|project|output).*|-[CPo].*"),
        "pyright": re.compile(r"-[pvt].*|--(?:pythonpath|project|createstub|typeshed|venv).*"),
        "npm": re.compile(
            r"--(?:script-s[\w-]*|shell|node[-_]options|prefix|global|\w*config)(?:=.*)?|-[Cg].*|git\+.*"
        ),
        "pytest": re.compile(
            r"--(?:basetemp|pastebin|rootdir|confcutdir|config-file|inifile|override-ini|pdbcls|tx"
            r"|junit-?xml|log-file|debug|html|report-log|cov-config)(?:=.*)?|-(?:p(?!no:)|c|o).*|@.*"
        ),
        "kubectl": re.compile(r"--(?:kubeconfig|server|raw|token|as)(?:=.*)?|-s.*|https?:.*"),
        "mypy": re.compile(r"--(?:pyt|conf|inst|cust|shad|junit|cache-d).*|--.*report.*|@.*"),
        "eslint": re.compile(
            r"--(?:rulesdir|resolve|config|plugin|parser|format|output).*|-[cfo].*"
        ),
        "prettier": re.compile(r"--(?:plug|conf|cache-l).*"),
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
            r"|ar\w*|cd|op\w*|clo\w*)\b|\battach\b|\bvacuum\s+into\b|load_extension|(?:read|write)file|edit\s*\(|fts3_token).*"
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
        "ruff": re.compile(r"--config.*|--output-file.*|-o.*"),
        "pylint": re.compile(r"--(?:load-pl|init-h|rc).*"),
        **dict.fromkeys(
            ("flake8", "black", "isort"), re.compile(r"--(?:append-)?(?:config|settings).*")
        ),
        "cmake": re.compile(
            r"-[PEC].*|--(?:prefix|open).*|-D.*(?:LAUNCHER|COMPILER|COMMAND|PROGRAM|TOOLCHAIN).*"
        ),
        **dict.fromkeys(
            ("gradle", "gradlew"),
            re.compile(r"-(?:I|b|c|p).*|--(?:init|build|include|settings|proj).*|-D.*jvmargs.*"),
        ),
        "mvn": re.compile(
            r"-(?:f|s|gs|t).*|--(?:file|settings|global).*|-D.*(?:exec|ext).*|[\w.-]+:[\w.-]+:.*"
        ),
        **dict.fromkeys(
            ("jest", "vitest", "mocha"),
            re.compile(
                r"--(?:config|require|setup|globalS|loader|import|reporter|env|root|runner|testR|resolver|trans"
                r"|watchP|preset|testEnv|snapshot|filter|outputF|prettierP|testS|module|dependencyE|execArgv"
                r"|pool|api|coverage\.|browser|workspace|diff|dir).*|-[cr].*"
            ),
        ),
        "tsc": re.compile(r"--?(?:out|plugins|b|decl\w*dir|gen|tsb|p).*|@.*", re.IGNORECASE),
        "ld": re.compile(r"-plugin.*|--plugin.*|@.*"),
        "strace": re.compile(r"-\w*[op].*|--(?:output|attach).*"),
        **dict.fromkeys(("gdb", "lldb"), re.compile(r"-.*")),
        **dict.fromkeys(("fd", "fdfind"), re.compile(r"-\w*[xX].*|--exec.*")),
        **dict.fromkeys(
            (
                *("parallel", "watch", "watchexec", "nodemon", "entr", "concurrently", "hyperfine"),
                *("tmux", "screen", "socat", "expect", "script"),
            ),
            re.compile(r".*", re.DOTALL),
        ),
        **dict.fromkeys(
            ("nc", "ncat", "netcat"), re.compile(r"-\w*[ecl].*|--(?:exec|sh-|listen|lua).*")
        ),
        "env": re.compile(r"-\w*S.*|--sp.*"),
        "just": re.compile(r"--(?:shell|just|work|dotenv).*|-[fd].*"),
        "pandoc": re.compile(r"--(?:lua|filter|pdf-e|extract|defaults|data-dir|out).*|-[FLdo].*"),
        **dict.fromkeys(
            ("pdflatex", "xelatex", "lualatex", "latex", "tex", "pdftex", "luatex", "latexmk"),
            re.compile(
                r"--?(?:shell-|enable-w|e$|r$|latex|pdf\w*=|xe\w*=|lua|output-d|usepretex).*"
            ),
        ),
        "nmap": re.compile(r"--(?:script|data|resume|style).*|-o.*"),
        **dict.fromkeys(
            ("ansible", "ansible-playbook"), re.compile(r"--(?:vault|conn|extra|module).*|-[MeK].*")
        ),
        "bazel": re.compile(
            r"--(?:run_u|test_w|output|override|workspace_s|bazelrc|action_e|[\w]*comp).*"
        ),
        "meson": re.compile(r"--(?:wrap|cross|native).*"),
        "ctest": re.compile(r"-[S].*|--(?:script|build-and).*"),
        "journalctl": re.compile(
            r"--(?:vac|rot|flu|relin|file|dir|root|image|update|setup).*|-D.*"
        ),
        **dict.fromkeys(
            ("pip", "pip3"),
            re.compile(
                r"--(?:index|extra-i|trusted|proxy|python|log|target|prefix|root|user|find|cert).*"
                r"|-[itf].*|(?:git|hg|svn|bzr)\+.*|https?:.*"
            ),
        ),
        "uv": re.compile(
            r"--(?:index|default-i|extra-i|with|script|python|directory|project|config-f|env-f|find-l)"
            r".*|(?:git|hg|svn|bzr)\+.*|https?:.*"
        ),
        "java": re.compile(r"-(?:javaagent|agent|XX:\+?On|Xbootclass|Xrun).*|@.*"),
        "rake": re.compile(r"-[eEprfIR].*|--(?:exec|require|rakefile|libdir|rakelib).*"),
        "helm": re.compile(r"--(?:post-|kube).*"),
        **dict.fromkeys(
            ("terraform", "tofu"),
            re.compile(r"--?(?:chdir|plugin-dir|from-module|backend-config)(?:=.*)?"),
        ),
        "tox": re.compile(r"-[xc].*|--(?:override|conf).*"),
        **dict.fromkeys(
            ("docker", "podman"), re.compile(r"--(?:ssh|host|config|context|secret).*|-H.*")
        ),
    }
)
_GIT_VERBS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "bisect": re.compile("run"),
        "submodule": re.compile("foreach"),
        "rebase": re.compile(r"-\w*x.*", re.DOTALL),
        "clone": re.compile(r"-\w*[cu].*", re.DOTALL),
        "apply": re.compile(r"--(?:uns|dir).*"),
        "archive": re.compile(r"-o.*|--(?:o|r).*"),
        "format-patch": re.compile(r"-o.*|--o.*"),
        "config": re.compile(r"(?!user\.|--)[\w-]+\..*", re.DOTALL),
    }
)
"""What else counts behind these verbs."""

_GIT_RUNNERS = frozenset(
    {
        *("filter-branch", "difftool", "mergetool", "hook", "daemon", "instaweb", "web--browse"),
        *("credential-store", "credential-cache"),
        *("send-email", "credential", "for-each-repo", "maintenance", "shell", "p4", "svn", "help"),
        *("upload-pack", "receive-pack", "http-backend", "remote-ext", "remote-fd", "cvsserver"),
    }
)
"""Verbs that run other programs, serve the network or print passwords: a rule names them."""

_VERBS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **dict.fromkeys(
            ("npm", "pnpm", "yarn", "bun"),
            frozenset({"exec", "explore", "edit", "x", "dlx", "config", "global"}),
        ),
        **dict.fromkeys(("pip", "pip3"), frozenset({"config"})),
        "kubectl": frozenset(
            {
                *("exec", "run", "debug", "attach", "edit", "proxy", "port-forward", "cp"),
                *("config", "plugin"),
            }
        ),
        **dict.fromkeys(("docker", "podman"), frozenset({"exec", "run"})),
        "gh": frozenset(
            {*("alias", "ext", "extension", "extensions", "config", "codespace", "cs", "browse")}
        ),
        "bundle": frozenset({"exec", "open", "console", "config"}),
        "composer": frozenset({"exec", "global", "config"}),
        "uv": frozenset({"run", "tool", "self", "python"}),
        **dict.fromkeys(
            ("poetry", "pdm", "hatch", "pipenv", "rye"),
            frozenset({"run", "shell", "self", "config", "source"}),
        ),
        "tox": frozenset({"exec", "devenv"}),
        "dotnet": frozenset({"exec", "tool"}),
        "bazel": frozenset({"run"}),
        "meson": frozenset({"devenv"}),
        "mix": frozenset({"run", "eval", "cmd", "do", "escript.install", "archive.install"}),
        "helm": frozenset({"plugin"}),
        **dict.fromkeys(("terraform", "tofu"), frozenset({"console", "import", "login"})),
    }
)
"""Verbs that run whatever follows, or change what later verbs do: a rule names them."""

_GOALS = frozenset({"make", "just"})
"""Programs that take several things to do."""

_CHECKER_NAMES = """
    pytest ruff mypy pyright tsc eslint prettier jest vitest black isort
"""
CHECKERS = frozenset(_CHECKER_NAMES.split())
"""Programs whose name alone is offered as a rule; their options count behind a runner, too."""

_SCRIPTS: Mapping[str, Callable[[Sequence[str]], bool]] = MappingProxyType(
    {
        "sed": sed_only_prints,
        **dict.fromkeys(("awk", "gawk", "mawk", "nawk", "original-awk"), awk_only_prints),
    }
)


def is_open(rule: Rule) -> bool:
    """Whether `rule` leaves words to whoever writes the command; one for everything means it."""
    return rule.pattern.endswith("*") and rule.pattern != "*"


def names_word(rule: Rule, word: str) -> bool:
    """Whether one of the rule's own words stands for `word`, a ``*`` in it for a part of a name."""
    return any(
        re.fullmatch(re.escape(named).replace(r"\*", "[^/]*"), word) is not None
        and word.count("..") == named.count("..")
        for named in rule.pattern.split()
        if named != "*"
    )


def exceeds_rule(rule: Rule, part: CommandPart) -> bool:
    """Whether `part` uses a power that an allow rule ending in ``*`` does not name.

    ``git log *`` allows any look at the log, not ``git log --output=FILE``. A rule for everything
    (``*``) means everything.
    """
    if not is_open(rule):
        return False
    name = part.name.rpartition("/")[2]
    named = rule.pattern.split()
    values = [word.value or "" for word in part.arguments]
    if name == "tar" and values and not values[0].startswith("-"):
        values[0] = f"-{values[0]}"  # tar xf: options in the old style
    if name == "git" and _git_exceeds_rule(named, values):
        return True
    if _VERBS.get(name, frozenset()) & set(_first_words(values)) - set(named):
        return True
    if (only_prints := _SCRIPTS.get(name)) is not None:
        powers = _POWERS.get(name)
        options = [v for v in values if v.startswith("-") and v in named]
        if powers is None or not any(powers.fullmatch(v) for v in values if v not in options):
            return not only_prints([v for v in values if v not in options])
    if name in _GOALS and _has_other_goals(named, values):
        return True
    if inner := _started_by(named, part):
        return exceeds_rule(*inner)
    powers = _POWERS.get(name)
    return powers is not None and any(
        powers.fullmatch(value)
        for index, value in enumerate(values)
        # Behind its verb, git's -c names a commit or a compression.
        if value not in named
        and not (name == "git" and value[:2] == "-c" and index > _verb(values))
    )


def _has_other_goals(named: Sequence[str], values: Sequence[str]) -> bool:
    """Whether a build does more than what the rule names; one that names nothing means all."""
    names_goal = len(named) > 2 and named[1][:1] != "-"
    goals = (v for v in values if v[:1] != "-" and "=" not in v and not v.isdigit())
    return names_goal and any(goal not in named for goal in goals)


def _started_by(named: Sequence[str], part: CommandPart) -> tuple[Rule, CommandPart] | None:
    """The rule and part of the program that a runner starts: ``uv run pytest *``."""
    for at, word in enumerate(named[1:-1], 1):
        if word.rpartition("/")[2] in CHECKERS and len(part.words) > at:
            rule = Rule("allow", "bash", " ".join(named[at:]))
            return rule, CommandPart(part.source, part.words[at:])
    return None


def _first_words(values: Sequence[str]) -> list[str]:
    """The first word that is no option, and the next where that may be an option's value."""
    at = [index for index, value in enumerate(values) if not value.startswith("-")][:2]
    is_value = bool(at) and at[0] > 0 and "=" not in values[at[0] - 1]
    return [values[index] for index in (at if is_value else at[:1])]


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
