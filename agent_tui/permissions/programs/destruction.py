"""Commands that take away what no undo brings back: history, remote data, packages, keys.

These ask in every mode, as `dangers` do. Each table has a program's words as they stand behind
its name; options of the program that come before the verb are left out of it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from agent_tui.permissions.shell.words import CommandPart

_REHEARSALS = frozenset({"--dry-run", "--dryrun", "--help", "-h", "--dry-run=client"})
"""With one of these nothing is done."""

_GIT_GLOBALS_WITH_VALUE = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--exec-path"}
)
_BROAD = re.compile(r"\.{1,2}/?|:/.*|:\(.*|.*/|.*[*?\[].*")
"""Paths that mean whole folders."""
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
    redis-cli valkey-cli cockroach trino presto snowsql bq usql pgcli mycli litecli sqlplus
"""
_SQL_CLIENTS = frozenset(_SQL_CLIENT_NAMES.split())
_SQL = re.compile(
    r"\b(?:drop\s+(?:table|database|schema|(?:materialized\s+)?view|index|role|user|column|keyspace"
    r"|collection|owned|type|function|extension|tablespace|sequence|trigger)\b"
    r"|truncate\s+\S|delete\s+from\s+(?!.*\bwhere\b)|dropdatabase\s*\("
    r"|deletemany\s*\(\s*\{?\s*\}?\s*\)|flushall\b|flushdb\b)|\.drop\s*\(",
    re.IGNORECASE | re.DOTALL,
)

_TABLE = r"""
terraform tofu terragrunt pulumi cdk cdktf sst  : destroy|apply (.* )?-destroy|state rm|stack rm
terraform tofu terragrunt sst                   : workspace delete|remove
kubectl oc k3s                                  : delete|drain|replace (.* )?--force
helm                                            : uninstall|delete
docker podman nerdctl                           : (system|volume|container|image|network) prune
docker podman nerdctl                           : (builder|buildx) prune|volume rm|stack rm
docker podman nerdctl                           : swarm leave|secret rm|context rm
docker podman nerdctl docker-compose            : (down|rm)( .*)? (--volumes|--rmi.*|-\w*v)
aws                  : s3 rm( .*)? --recursive|s3 rb|s3 (sync|mv)( .*)? --(delete|recursive)
aws                  : [\w-]+ (batch-)?(delete|terminate|remove|purge|deregister|destroy)(-[\w-]+)?
gsutil s3cmd mc rclone azcopy s5cmd             : rm|rb|del|delete|deletefile|purge|sync|remove
gcloud az doctl hcloud linode-cli ibmcloud oci  : delete|destroy|purge|terminate
scw openstack                                   : delete|destroy|purge|terminate
gh glab hub                                     : delete|delete-asset|archive
gh glab hub                                     : api (.* )?(-X ?|--method[ =])(DELETE|delete)
npm pnpm yarn bun                               : publish|unpublish|deprecate|dist-tag (rm|add)
npm pnpm yarn bun                               : owner (add|rm)
cargo                                           : publish|yank|owner
twine                                           : upload
poetry uv flit hatch pdm maturin vsce           : publish|unpublish|upload
gem                                             : push|yank|owner
mvn                                             : deploy|release:perform
gradle gradlew                                  : :?(\w+:)*publish(?!ToMavenLocal)\w*
dotnet                                          : nuget (push|delete)
gpg gpg2                                        : --export-secret-(sub)?keys?
gpg gpg2                                        : --delete-(secret-)?(and-public-)?keys?
security                                        : dump-keychain|delete-[\w-]+|export
dropdb dropuser pg_dropcluster pg_resetwal      : .*
mysqladmin                                      : drop
heroku fly flyctl vercel netlify firebase       : (\S*:)?(destroy|delete|remove|rm|reset)
wrangler railway supabase neonctl eb amplify    : (\S*:)?(destroy|delete|remove|rm|reset|terminate)
serverless sls sam                              : remove|delete
rails rake                                      : db:(drop|reset|purge|migrate:reset|schema:load)\S*
artisan                                         : migrate:(fresh|reset|refresh)|db:wipe
prisma                                          : migrate reset|db push (.* )?--force-reset
sequelize knex typeorm diesel sqlx              : db:(drop|migrate:undo:all)|schema:drop
diesel sqlx                                     : database (drop|reset)
vagrant multipass minikube kind k3d             : destroy|delete|purge
lxc incus virsh                                 : destroy|delete|undefine
pass bw op vault etcdctl                        : rm|remove|delete|destroy|del|revoke
rabbitmqctl                                     : reset|force_reset|delete_\w+|purge_queue
kafka-topics                                    : --delete
velero borg restic                              : delete|prune|forget
"""
"""Programs, and the words that somewhere behind their names mean that something is lost."""


def _verbs() -> Mapping[str, re.Pattern[str]]:
    patterns: dict[str, list[str]] = {}
    for line in _TABLE.strip().splitlines():
        names, _, pattern = line.partition(" : ")
        for name in names.split():
            patterns.setdefault(name, []).append(pattern.strip())
    return {
        name: re.compile(rf"(?:.* )?(?:{'|'.join(found)})(?: .*)?", re.DOTALL)
        for name, found in patterns.items()
    }


_VERBS = MappingProxyType(_verbs())
_RUNNERS = frozenset({"npx", "bunx", "bundle", "python", "python3", "php", "ruby", "node", "npm"})
"""Programs whose next word may be one of the others: ``npx prisma migrate reset``."""
_DJANGO = re.compile(r"(flush|reset_db|sqlflush|clean_db)( .*)?")


def destruction_of(part: CommandPart) -> str:
    """What `part` would take away for good; empty where it is not known to."""
    name = part.name.rpartition("/")[2].removesuffix(".sh").removesuffix(".exe").casefold()
    words = [word.value or "" for word in part.arguments]
    if _REHEARSALS & set(words):
        return ""
    if name == "git":
        return _git_destruction(words)
    if name in _SQL_CLIENTS or _SQL_CLIENTS & {word.rpartition("/")[2] for word in words}:
        fed = part.piped_from.arguments if part.piped_from is not None else ()
        texts = (part.input, *(word.value or word.source for word in (*part.arguments, *fed)))
        if any(map(_SQL.search, texts)):
            return f"{name} would remove data for good"
    if name in _RUNNERS and words:
        inner = [word for word in words if not word.startswith("-")]
        if inner and inner[0].rpartition("/")[2] == "manage.py":
            return _told(name, _DJANGO, inner[1:])
        while inner and inner[0] in ("exec", "dlx", "run"):
            inner = inner[1:]
        tool = inner[0].rpartition("/")[2] if inner else ""
        if tool in _VERBS and (told := _told(tool, _VERBS[tool], inner[1:])):
            return told
    return _told(name, _VERBS[name], words) if name in _VERBS else ""


def _told(name: str, pattern: re.Pattern[str], words: Sequence[str]) -> str:
    text = " ".join(words)
    shown = " ".join(text.split())[:40]
    return f"{name} {shown} cannot be undone" if pattern.fullmatch(text) else ""


def _git_destruction(words: Sequence[str]) -> str:
    rest = list(words)
    while rest and rest[0].startswith("-"):
        has_value = rest[0] in _GIT_GLOBALS_WITH_VALUE
        if rest[0] == "-c" and len(rest) > 1 and _CONFIG_THAT_RUNS.match(rest[1]):
            return "git would be told to run a program"
        del rest[: 2 if has_value else 1]
    if not rest:
        return ""
    verb, others = rest[0], rest[1:]
    takes_away = _GIT_VERBS.get(verb)
    if takes_away is None or not takes_away(others):
        return ""
    if verb == "config":
        return "git config would change what git runs, or the settings of all repositories"
    return f"git {' '.join([verb, *others])[:40]} loses work or history"


def _flags(words: Sequence[str]) -> str:
    """All short options as letters."""
    return "".join(word[1:] for word in words if re.fullmatch(r"-[A-Za-z]+", word))


def _has(words: Sequence[str], *options: str) -> bool:
    """Whether one of the options is there, given whole or with a value."""
    return any(
        word == option or word.startswith(f"{option}=") for word in words for option in options
    )


def _clean(words: Sequence[str]) -> bool:
    return ("f" in _flags(words) or _has(words, "--force")) and "n" not in _flags(words)


def _checkout(words: Sequence[str]) -> bool:
    paths = (
        list(words[words.index("--") + 1 :]) if "--" in words else [w for w in words if w == "."]
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
            any(_BROAD.fullmatch(word) for word in words)
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
        "update-ref": lambda words: bool({"-d", "--stdin"} & set(words)),
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
