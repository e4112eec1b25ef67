"""Commands that take away what no undo brings back: history, remote data, packages, keys.

These ask in every mode, as `dangers` do. Whether a program's words mean that is told by
`loss_table`; git has words of its own here.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from agent_tui.permissions.programs.loss_table import KEYS_SHOWN, LOSSES
from agent_tui.permissions.shell.words import CommandPart

_REHEARSALS = frozenset({"--dry-run", "--dryrun", "--help", "--dry-run=client"})
"""With one of these nothing is done. ``-h`` often names a host."""

_GIT_GLOBALS_WITH_VALUE = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--exec-path"}
)
_BROAD = re.compile(r"\.{1,2}/?|:/.*|:\(.*|.*/|.*[*?\[].*|(?:.*/)?[^./]+")
"""Paths that mean whole folders, or may: what has no suffix."""
_CONFIG_THAT_RUNS = re.compile(
    r"alias\..*|core\.(hookspath|fsmonitor|pager|editor|sshcommand|gitproxy|askpass|attributesfile"
    r"|worktree)|(diff|merge|filter|pager|difftool|mergetool|browser|man)\..*|credential\..*"
    r"|gpg\..*|include.*|sequence\.editor|url\..*|remote\..*\.(uploadpack|receivepack|vcs|proxy)"
    r"|uploadpack\..*|init\.templatedir|submodule\..*|protocol\..*|interactive\.difffilter"
    r"|sendemail\..*|trailer\..*|log\.mailmap|mailmap\..*|http\..*|receive\..*|extensions\..*",
    re.IGNORECASE,
)
_CONFIG_LOOKS = re.compile(r"-l|--list|--get.*|list|get")
_CONFIG_ELSEWHERE = re.compile(r"--global|--system|--file(=.*)?|-f|--worktree")

_SQL_CLIENT_NAMES = """
    psql mysql mariadb sqlite3 duckdb sqlcmd cqlsh clickhouse clickhouse-client mongosh mongo
    wrangler redis-cli valkey-cli cockroach trino presto snowsql bq usql pgcli mycli litecli sqlplus
"""
SQL_CLIENTS = frozenset(_SQL_CLIENT_NAMES.split())
_SQL = re.compile(
    r"\b(?:drop\s+(?:table|database|schema|(?:materialized\s+)?view|index|role|user|column|keyspace"
    r"|collection|owned|type|function|extension|tablespace|sequence|trigger)\b"
    r"|truncate\s+\S|delete\s+from\s+(?!.*\bwhere\b)|dropdatabase\s*\("
    r"|deletemany\s*\(\s*\{?\s*\}?\s*\)|flushall\b|flushdb\b)|\.drop\s*\(",
    re.IGNORECASE | re.DOTALL,
)

_RUNNER_NAMES = """
    npx bunx bundle python python3 php ruby node npm pnpm yarn bun uv uvx pipx poetry pdm hatch
    pipenv rye dotnet composer mise
"""
RUNNERS = frozenset(_RUNNER_NAMES.split())
"""Programs whose next word may be one of the others: ``npx prisma migrate reset``."""
RUNNING_WORDS = frozenset({"exec", "dlx", "run", "tool", "x"})
_REMOTE_DELETE = re.compile(
    r"(?:.* )?(?:-\w*X ?|--request[ =]|--method[ =])?DELETE\b(?: .*)?", re.DOTALL | re.IGNORECASE
)
_WEB_CLIENTS = frozenset({"curl", "http", "https", "xh", "wget"})
_THIS_MACHINE = re.compile(r"(?:https?://)?(?:localhost|127\.[\d.]+|\[::1\]|:\d)(?:[:/].*)?")


def destruction_of(part: CommandPart) -> str:
    """What `part` would take away for good; empty where it is not known to."""
    return _destruction(part, [word.value or "" for word in part.arguments])


def _destruction(part: CommandPart, words: Sequence[str]) -> str:
    name = part.name.rpartition("/")[2].removesuffix(".sh").removesuffix(".exe").casefold()
    if _REHEARSALS & set(words) or words[-1:] == ["-h"]:
        return ""
    if name == "git":
        return _git_destruction(words)
    if name in SQL_CLIENTS or SQL_CLIENTS & {word.rpartition("/")[2] for word in words}:
        fed = part.piped_from.arguments if part.piped_from is not None else ()
        texts = (part.input, *(word.value or word.source for word in (*part.arguments, *fed)))
        if any(map(_SQL.search, texts)):
            return f"{name} deletes data permanently"
    if name in _WEB_CLIENTS and _REMOTE_DELETE.fullmatch(" ".join(words)):
        places = [word for word in words if re.search(r"[.:/]", word)]
        if not any(map(_THIS_MACHINE.fullmatch, places)):
            return f"{name} deletes something on another machine"
    inner = run_by(name, words)
    if inner and (told := _told(inner[0].rpartition("/")[2], inner[1:])):
        return told
    return _told(name, words)


def run_by(name: str, words: Sequence[str]) -> list[str]:
    """The command that a runner would run, by its words; empty where `name` is none.

    ``uv run python manage.py flush`` is ``manage.py flush``.
    """
    if name not in RUNNERS:
        return []
    inner = [word for word in words if not word.startswith("-")]
    while inner and (inner[0] in RUNNING_WORDS or inner[0] in RUNNERS):
        inner = inner[1:]
    return inner


def _told(name: str, words: Sequence[str]) -> str:
    text = " ".join(words)
    shown = f"{name} {' '.join(text.split())[:40]}".strip()
    if name in LOSSES and LOSSES[name].fullmatch(text):
        return f"{shown} cannot be undone"
    if name in KEYS_SHOWN and KEYS_SHOWN[name].fullmatch(text):
        return f"{shown} prints or changes keys or passwords"
    return ""


def _git_destruction(words: Sequence[str]) -> str:
    rest = list(words)
    while rest and rest[0].startswith("-"):
        has_value = rest[0] in _GIT_GLOBALS_WITH_VALUE
        if rest[0] == "-c" and len(rest) > 1 and _CONFIG_THAT_RUNS.match(rest[1]):
            return "makes git run a program"
        del rest[: 2 if has_value else 1]
    if not rest:
        return ""
    verb, others = rest[0], rest[1:]
    takes_away = _GIT_VERBS.get(verb)
    if takes_away is None or not takes_away(others):
        return ""
    if verb == "config":
        return "git config changes what git runs, or the settings of all repositories"
    shown = f"git {' '.join([verb, *others])[:40]}"
    loses = "prints passwords" if verb.startswith("credential") else "discards work or history"
    return f"{shown} {loses}"


def _flags(words: Sequence[str]) -> str:
    """All short options as letters."""
    return "".join(word[1:] for word in words if re.fullmatch(r"-[A-Za-z]+", word))


def _has(words: Sequence[str], *options: str) -> bool:
    """Whether one of the options is there: whole, with a value, or cut short as git allows."""
    names = [word.partition("=")[0] for word in words]
    return any(
        name == option or (len(name) > len("--") and name[:2] == "--" and option.startswith(name))
        for name in names
        for option in options
    )


def _clean(words: Sequence[str]) -> bool:
    """Without force git refuses, unless its settings say otherwise."""
    return "n" not in _flags(words)


def _checkout(words: Sequence[str]) -> bool:
    paths = (
        list(words[words.index("--") + 1 :])
        if "--" in words
        else [w for w in words if w == "." or w.startswith(":") or w.endswith("/")]
    )
    return bool(
        any(not path or _BROAD.fullmatch(path) for path in paths)
        or {"f", "B", "C"} & set(_flags(words))
        or _has(words, "--force", "--force-create", "--discard-changes", "--pathspec-from-file")
    )


def _restore(words: Sequence[str]) -> bool:
    is_staged_only = ("S" in _flags(words) or _has(words, "--staged")) and not (
        "W" in _flags(words) or _has(words, "--worktree")
    )
    paths = [word for word in words if not word.startswith("-")]
    return not is_staged_only and any(_BROAD.fullmatch(path) for path in paths)


def _push(words: Sequence[str]) -> bool:
    return bool(
        {"f", "d"} & set(_flags(words))
        or _has(words, "--force", "--force-with-lease", "--mirror", "--delete", "--prune")
        or any(word.startswith(("+", ":")) for word in words)
    )


def _branch(words: Sequence[str]) -> bool:
    flags = set(_flags(words))
    forced = "f" in flags or _has(words, "--force")
    return bool({"D", "M", "C"} & flags or forced)


def _config(words: Sequence[str]) -> bool:
    if any(_CONFIG_LOOKS.fullmatch(word) for word in words[:2]):
        return False
    names = [word for word in words if not word.startswith("-") and "." in word]
    if len([word for word in words if not word.startswith("-")]) < 2 and not _has(
        words, "--unset", "--unset-all", "--remove-section", "--edit", "-e", "edit"
    ):
        return False
    if any(_CONFIG_ELSEWHERE.fullmatch(word) for word in words):
        return True
    return _has(words, "--edit", "-e") or any(
        _CONFIG_THAT_RUNS.fullmatch(name) for name in names[:1]
    )


def _prints_password(words: Sequence[str]) -> bool:
    return words[:1] in (["fill"], ["get"])


_GIT_VERBS: Mapping[str, Callable[[Sequence[str]], bool]] = MappingProxyType(
    {
        "reset": lambda words: _has(words, "--hard", "--merge", "--keep"),
        "clean": _clean,
        "checkout": _checkout,
        "switch": lambda words: (
            bool({"f", "C"} & set(_flags(words)))
            or _has(words, "--force", "--discard-changes", "--force-create")
        ),
        "restore": _restore,
        "rm": lambda words: (
            ("r" in _flags(words) or any(_BROAD.fullmatch(word) for word in words))
            and ("f" in _flags(words) or _has(words, "--force"))
        ),
        "stash": lambda words: words[:1] in (["drop"], ["clear"]),
        "push": _push,
        "branch": _branch,
        "tag": lambda words: (
            bool({"d", "f"} & set(_flags(words))) or _has(words, "--delete", "--force")
        ),
        "reflog": lambda words: words[:1] in (["expire"], ["delete"]),
        "gc": lambda words: _has(words, "--prune"),
        "prune": lambda _words: True,
        "update-ref": lambda _words: True,
        "checkout-index": lambda words: "f" in _flags(words) or _has(words, "--force"),
        **dict.fromkeys(
            ("merge", "rebase", "cherry-pick", "am", "revert"),
            lambda words: _has(words, "--abort"),
        ),
        "annex": lambda words: words[:1] == ["drop"] and _has(words, "--force"),
        **dict.fromkeys(("credential", "credential-manager"), _prints_password),
        "symbolic-ref": lambda words: "-d" in words or "--delete" in words,
        "filter-branch": lambda _words: True,
        "filter-repo": lambda _words: True,
        "worktree": lambda words: (
            words[:1] == ["remove"] and ("f" in _flags(words) or _has(words, "--force"))
        ),
        "submodule": lambda words: words[:1] == ["deinit"],
        "replace": lambda _words: True,
        "notes": lambda words: words[:1] in (["remove"], ["prune"]),
        "lfs": lambda words: words[:1] == ["prune"],
        "config": _config,
        "read-tree": lambda words: "--reset" in words or "u" in _flags(words),
    }
)
