"""Reads, matches and stores permission rules such as ``allow bash(git commit *)``."""

import re
import shlex
import shutil
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast

from agent_tui.atomic_files import replace_private_file
from agent_tui.errors import ConfigError
from agent_tui.permissions.registries import BUNDLES, bundle_of
from agent_tui.permissions.shell.parts import split_command
from agent_tui.permissions.shell.words import CommandPart, Word
from agent_tui.regular_files import read_regular_file
from agent_tui.safe_paths import follow_links, is_link
from agent_tui.tool_names import REMOTE_PREFIX, is_remote
from agent_tui.tools.base import Access

Decision: TypeAlias = Literal["allow", "ask", "deny"]
_DECISIONS: Final[tuple[Decision, ...]] = ("deny", "ask", "allow")
Match: TypeAlias = Literal["yes", "maybe", "no"]
"""``maybe``: known only at run time (variables, substitutions)."""

_RULE = re.compile(r"(?P<tool>mcp__[\w-]*\*|[A-Za-z][\w-]*)(?:\((?P<pattern>.*)\))?", re.DOTALL)
FETCH: Final = "fetch"
"""The tool whose rules name hosts."""

INSIDE_RULE: Final = "bash(inside)"
"""Lets commands write inside the sandbox unasked; without a sandbox it allows nothing."""
_INSIDE_WORDS: Final = "commands may write here"

_DOMAIN: Final = "domain:"
_BUNDLE: Final = "bundle:"
_HOSTS = re.compile(rf"\*|{_DOMAIN}(?:\*\.)?[^\s*/@]+|{_BUNDLE}\S+")
_NAMED_PORT = re.compile(r"(?P<host>[^:\s]+|\[[^\]]+\]):(?P<port>\d{1,5})")
_WEB_PORTS: Final = frozenset((80, 443))
_KNOWN_BUNDLES: Final = f"Bundles: {', '.join(BUNDLES)}."
_ACCESS_TOOLS: dict[str, Access] = {"read": "read", "write": "write", "bash": "execute"}
"""A rule with one of these names applies to every tool with that access."""

_TOOL_NAMES = """
    apply_patch ask_user bash compact delegate edit explore fetch find grep job ls other_tool plan
    read recall scope skill todo web_search why write
"""
PLUGIN_TOOL: Final = "tool"
"""The prefix for a plugin's tool: ``tool(weather)``."""

RULED_TOOLS: Final = frozenset((*_TOOL_NAMES.split(), PLUGIN_TOOL))
"""The tools that rules may name, besides those of MCP servers."""

_OTHERS_TOOLS: Final[Mapping[str, str]] = {
    **{name.capitalize(): name for name in ("bash", "read", "write", "grep")},
    **dict.fromkeys(("Edit", "MultiEdit", "NotebookEdit"), "write"),
    **{"Glob": "find", "LS": "ls", "Shell": "bash", "shell": "bash"},
    **{"WebFetch": "fetch", "WebSearch": "web_search"},
}
"""The names that other agents give tools in their rules."""

_OTHERS_PREFIX: Final = ":*"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `pattern` is a command, a path glob, or ``*`` for everything.

    Commands match word by word: a last word ``*`` matches any further words, a ``*`` within a word
    anything but a slash. Text that is not one simple command, or begins with ``=``, matches exactly
    this command. Paths are relative to the workspace, absolute or ``~/``; ``**`` crosses folders.
    Tools of MCP servers are named in full, or with a ``*`` at the end as in ``mcp__server__*``;
    ``mcp__server`` means all of its tools. `source` says where it was written: a file,
    ``settings``, ``session``; `since_ns` is when the user made it in this session, else 0. Hosts of
    `fetch` are ``domain:docs.python.org``, ``domain:*.python.org`` for all subdomains, or
    ``bundle:pypi`` for the hosts of a bundle. They allow the web's ports, and another port only if
    they name it: ``domain:example.org:8443``. Queries match as a whole: ``web_search(python *)``.
    ``bash(inside)`` names no command; see `INSIDE_RULE`.
    """

    decision: Decision
    tool: str
    pattern: str
    source: str = field(default="", compare=False)
    since_ns: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{self.tool}({self.pattern})"

    @property
    def is_inside(self) -> bool:
        """Whether this is the rule for everything that runs inside the sandbox."""
        return str(self) == INSIDE_RULE

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs that a command rule names, also behind variables and other commands."""
        return _programs_in(self.pattern.removeprefix("=").removesuffix(_OTHERS_PREFIX))

    @property
    def specificity(self) -> int:
        """How specific the pattern is; the more specific of two rules wins."""
        if self.tool == FETCH and self.pattern.startswith(_BUNDLE):
            return 1
        return len(self.pattern.replace("*", ""))

    def is_for(self, tool_name: str, access: Access) -> bool:
        """Whether the rule applies to calls of this tool."""
        if self.is_inside:
            return False
        if self.tool == tool_name or _ACCESS_TOOLS.get(self.tool) == access:
            return True
        if access != "outside":
            return False
        if self.tool == PLUGIN_TOOL:
            return not is_remote(tool_name) and self.pattern in ("*", tool_name)
        if not self.tool.startswith(REMOTE_PREFIX):
            return False
        begin = self.tool[:-1] if self.tool.endswith("*") else f"{self.tool}__"
        return tool_name.startswith(begin)

    def matches_host(self, host: str, port: int = 443) -> bool:
        """Whether the rule names `host`; deny and ask rules include its subdomains.

        An allow rule covers the web's ports, or the port it names.
        """
        if self.pattern == "*":
            return True
        if self.pattern.startswith(_BUNDLE):
            is_in = BUNDLES[self.pattern.removeprefix(_BUNDLE)].has(host)
            return is_in and (port in _WEB_PORTS or self.decision != "allow")
        name, named_port = _host_and_port(self.pattern.removeprefix(_DOMAIN).casefold())
        is_port = port == named_port if named_port else port in _WEB_PORTS
        if not (is_port or (self.decision != "allow" and not named_port)):
            return False
        is_below = host.endswith(name[1:] if name.startswith("*.") else f".{name}")
        return host == name or (is_below and (name.startswith("*.") or self.decision != "allow"))

    def matches_text(self, text: str) -> bool:
        """Whether the rule names `text`, whatever its case and spaces: ``*`` is any text."""
        pattern = re.escape(" ".join(self.pattern.split())).replace(r"\*", ".*")
        return re.fullmatch(pattern, " ".join(text.split()), re.I) is not None

    def matches_path(self, path: Path, workspace: Path) -> bool:
        """Whether the rule names `path` (resolved)."""
        if self.pattern == "*":
            return True
        pattern = self.pattern
        if pattern.startswith("~/"):
            pattern = f"{Path.home()}{pattern[1:]}"
        if pattern.startswith("/"):
            return _path_regex(pattern).fullmatch(str(path)) is not None
        if not path.is_relative_to(workspace):
            return False
        relative = path.relative_to(workspace).as_posix()
        return _path_regex(pattern.removeprefix("./")).fullmatch(relative) is not None

    def strict_path_matcher(self, workspace: Path) -> Callable[[Path], bool]:
        """A function that tells if a deny or ask rule matches a path; ignores case.

        Follows the links in the rule once; create a new function for each call that is judged.
        """
        pattern = self.pattern if self.pattern != "*" else "/**"
        if pattern.startswith("~/"):
            pattern = f"{Path.home()}{pattern[1:]}"
        fixed = re.split(r"[*?]", pattern)[0].rpartition("/")[0]
        rest = pattern[len(fixed) :].lstrip("/") if fixed else pattern
        real = follow_links(str(workspace / fixed))
        meant = _path_regex(f"{real.rstrip('/')}/{rest}".casefold())
        whole = _path_regex(follow_links(str(workspace / pattern)).casefold())

        def denies(path: Path) -> bool:
            shown = str(path).casefold()
            return (meant.fullmatch(shown) or whole.fullmatch(shown)) is not None

        return denies

    def matches_whole(self, command: str) -> bool:
        """Whether the rule names exactly this command, with all its parts."""
        return self.pattern.removeprefix("=").strip() == command.strip() and (
            self.pattern.startswith("=") or not _is_simple(self.pattern) or "*" not in self.pattern
        )

    def matches_part(
        self, part: CommandPart, *, ignore_prefix: bool = False, names: tuple[str, ...] = ()
    ) -> Match:
        """Whether the rule covers one part of a command.

        Args:
            part: The part, with any ``A=1`` before it.
            ignore_prefix: For deny and ask: see through ``A=1``, the folder and case of the
                program's name, options before git's subcommand, and file patterns.
            names: Further names of the program, looked at with `ignore_prefix`.
        """
        if self.pattern == "*":
            return "yes"
        if self.pattern.startswith("=") or not part.words:
            return "no"
        seen = [[*part.assignments, *map(_word_text, part.words)]]
        if ignore_prefix:
            seen = _disguises(part, names)
        found = {
            _match_words(wanted, words)
            for pattern in self._readings
            if (wanted := _pattern_words(pattern)) is not None
            for words in seen
        }
        return "yes" if "yes" in found else "maybe" if "maybe" in found else "no"

    @property
    def _readings(self) -> tuple[str, ...]:
        """The pattern's forms: other agents write ``pytest:*`` for ``pytest *``."""
        if self.pattern.endswith(_OTHERS_PREFIX):
            return (self.pattern, f"{self.pattern.removesuffix(_OTHERS_PREFIX)} *")
        return (self.pattern,)


def parse_rule(text: str, decision: Decision, source: str = "") -> Rule:
    """Parse ``tool(pattern)``, or ``tool`` for every call of it.

    Raises:
        ConfigError: The text has another form.
    """
    found = _RULE.fullmatch(text.strip())
    if found is None or found["pattern"] == "":
        raise ConfigError(
            f"{text!r} is not a rule.", "Write it like bash(git status) or write(docs/**)."
        )
    pattern = (found["pattern"] or "*").strip()
    tool = _OTHERS_TOOLS.get(found["tool"], found["tool"])
    if tool != found["tool"] and tool in ("read", "write"):
        pattern = re.sub(r"^(?:\./|/(?=/))", "", pattern)
    if not (tool in RULED_TOOLS or tool.startswith(REMOTE_PREFIX)):
        raise ConfigError(
            f"{text!r} never applies: there is no tool {tool}.",
            f"Tools: {', '.join(sorted(RULED_TOOLS - {PLUGIN_TOOL}))}, {REMOTE_PREFIX}SERVER__TOOL "
            f"of an MCP server, and {PLUGIN_TOOL}(NAME) of a plugin.",
        )
    is_pattern = tool == "bash" and "*" in pattern and pattern != "*" and pattern[:1] != "="
    if is_pattern and not _is_simple(pattern):
        raise ConfigError(
            f"{text!r} would almost never apply: a rule with * must name one command.",
            "Write one rule for each part, or bash(= ...) for exactly this text.",
        )
    if tool == FETCH and not _HOSTS.fullmatch(pattern):
        raise ConfigError(
            f"{text!r} names no host.",
            "Write it like fetch(domain:docs.python.org) or fetch(bundle:pypi).",
        )
    bundle = pattern.removeprefix(_BUNDLE)
    if tool == FETCH and bundle != pattern and bundle not in BUNDLES:
        raise ConfigError(f"{text!r} names no bundle of hosts.", _KNOWN_BUNDLES)
    rule = Rule(decision, tool, pattern, source)
    if rule.is_inside and decision != "allow":
        raise ConfigError(
            f"{INSIDE_RULE} can only allow.", "Choose permission_mode ask, where commands ask."
        )
    return rule


def read_stored_rules(path: Path) -> dict[Decision, list[str]]:
    """The rules in the file as text, by decision.

    Raises:
        OSError, ValueError: The file cannot be read, or is not TOML.
    """
    return _stored_rules(read_regular_file(path).decode("utf-8"))


def change_rules_file(path: Path, change: Callable[[Decision, list[str]], list[str]]) -> None:
    """Replace the rules of each decision with the result of `change`; comments stay.

    Raises:
        OSError, ValueError: The file cannot be read or written, or is not TOML.
    """
    import tomlkit  # 30 ms that only changing a rule needs

    text = read_regular_file(path).decode("utf-8") if path.exists() else ""
    before = _stored_rules(text)
    after: dict[Decision, list[str]] = {each: change(each, before[each]) for each in before}
    if after != before:
        document = tomlkit.parse(text)
        for decision, texts in after.items():
            if texts != before[decision]:
                document[decision] = texts
        replace_private_file(path, tomlkit.dumps(document))


def _stored_rules(text: str) -> dict[Decision, list[str]]:
    stored = tomllib.loads(text)
    return {decision: _rule_texts(stored.get(decision, [])) for decision in _DECISIONS}


def _rule_texts(stored: object) -> list[str]:
    """A list of rules as TOML gave it; a single one counts as a list."""
    listed = cast(list[object], stored) if isinstance(stored, list) else [stored]
    return [str(text) for text in listed]


def outside_rule(tool_name: str, rules: Sequence[Rule]) -> Rule | None:
    """The rule that decides about another program's tool: deny first, then the longest.

    A pattern in brackets has no meaning for such tools, so an allow rule with one allows nothing.
    """
    holding = [
        rule
        for rule in rules
        if rule.is_for(tool_name, "outside")
        and (rule.pattern == "*" or rule.tool == PLUGIN_TOOL or rule.decision != "allow")
    ]
    return max(
        holding,
        key=lambda rule: (rule.decision == "deny", len(str(rule)), rule.decision == "ask"),
        default=None,
    )


def host_rule(host: str, rules: Sequence[Rule], port: int = 443) -> Rule | None:
    """The rule that decides about connecting to `host`: see `strongest_rule`."""
    return strongest_rule(r for r in rules if r.tool == FETCH and r.matches_host(host, port))


def strongest_rule(rules: Iterable[Rule]) -> Rule | None:
    """The rule of several that decides: deny first, then the most specific; among equals ask."""
    return max(
        rules,
        key=lambda rule: (rule.decision == "deny", rule.specificity, rule.decision == "ask"),
        default=None,
    )


def rule_for_host(host: str, port: int = 443, *, may_be_bundle: bool = False) -> str:
    """The rule that allows connecting to `host` again, as text.

    Args:
        host: In small letters.
        port: Named in the rule unless it is one of the web's.
        may_be_bundle: Whether the rule may allow all hosts of the bundle that contains it.
    """
    if port not in _WEB_PORTS:
        return f"{FETCH}({_DOMAIN}{f'[{host}]' if ':' in host else host}:{port})"
    bundle = bundle_of(host) if may_be_bundle else None
    return f"{FETCH}({_DOMAIN}{host})" if bundle is None else f"{FETCH}({_BUNDLE}{bundle.name})"


def rules_for_names(names: str, source: str) -> tuple[Rule, ...]:
    """The rules that allow the comma-separated `names`: bundles, domains, ``domain:port``.

    Raises:
        ConfigError: A name is neither a bundle nor a domain.
    """
    rules: list[Rule] = []
    for name in filter(None, (name.strip() for name in names.split(","))):
        if name not in BUNDLES and not re.search(r"[.:]", name):
            raise ConfigError(f"{name!r} is neither a bundle nor a domain.", _KNOWN_BUNDLES)
        kind = _BUNDLE if name in BUNDLES else _DOMAIN
        rules.append(parse_rule(f"{FETCH}({kind}{name})", "allow", source))
    return tuple(rules)


def _host_and_port(named: str) -> tuple[str, int]:
    """The host and the port that a rule names; port 0 if it names none."""
    found = _NAMED_PORT.fullmatch(named)
    if found is None:
        return named.strip("[]"), 0
    return found["host"].strip("[]"), int(found["port"])


OFFERED_GIT_VERBS: Final = frozenset({"add", "commit"})
"""Verbs that are offered with any words after them."""


def rule_for_command(command: str) -> str:
    """The rule that allows `command` again, as text: the narrowest useful one.

    ``git add`` and ``git commit`` are allowed with any arguments, as their messages differ each
    time; other commands only exactly as they are.
    """
    parts = split_command(command)
    if len(parts.commands) == 1 and not parts.redirections:
        part = parts.commands[0]
        verb = part.words[1].value if len(part.words) > 1 else None
        is_plain = part.kind == "command" and not part.assignments
        if is_plain and part.name == "git" and verb in OFFERED_GIT_VERBS:
            return f"bash(git {verb} *)"
    text = command.strip()
    is_literal = _is_simple(text) and not re.search(r"[*?\[]", text)
    return f"bash({text})" if is_literal else f"bash(= {text})"


def describe_grants(rules: Sequence[str]) -> str:
    """What `rules` allow, for the user; commands are shown without the tool's name."""
    shown = (
        _INSIDE_WORDS
        if rule == INSIDE_RULE
        else ("exactly this command" if rule.startswith("bash(= ") else rule)
        for rule in rules
    )
    return " · ".join(re.sub(r"\Abash\((.*)\)\Z", r"\1", rule, flags=re.DOTALL) for rule in shown)


_RULE_BEGINS = re.compile(r"(?<=\))[\s,]+(?=(?:bash|write)\()")


def split_rules(text: str) -> tuple[str, ...]:
    """The rules written one after another in `text`."""
    return tuple(_RULE_BEGINS.split(text.strip()))


def _is_simple(text: str) -> bool:
    return _pattern_words(text) is not None


@lru_cache(maxsize=512)
def _programs_in(command: str) -> tuple[str, ...]:
    names = (part.program for part in split_command(command.strip()).commands)
    return tuple(dict.fromkeys(filter(None, names)))


@lru_cache(maxsize=512)
def _pattern_words(pattern: str) -> tuple[str, ...] | None:
    """The pattern's words in the form parts are compared in; None if not a simple command."""
    parts = split_command(pattern)
    if parts.problem or not parts.commands or parts.redirections:
        return None
    part, *others = parts.commands
    if any(not other.wrapper for other in others):
        return None
    words = [_word_text(word) for word in part.words]
    known = [word for word in words if word is not None]
    if part.kind == "construct" or len(known) < len(words) or not words:
        return None
    return (*part.assignments, *known)


def _word_text(word: Word) -> str | None:
    """A word in the form rules are compared in: quoted only if necessary."""
    if word.value is None:
        return None
    return word.value if word.is_pattern else _quote(word.value)


def _quote(value: str) -> str:
    """`value`, quoted so that a literal ``*`` differs from the wildcard."""
    return shlex.quote(value) if re.search(r"[\s*?\[\]'\"]", value) or not value else value


def program_names(name: str, folder: Path) -> tuple[str, ...]:
    """The names of a program's file, links followed; empty if it is not found."""
    if not name or "\0" in name:
        return ()
    found = folder / name if "/" in name else shutil.which(name)
    path = Path(found) if found is not None else None
    if path is None or not is_link(path):
        return ()
    return (Path(follow_links(str(path))).name,)


def _disguises(part: CommandPart, names: tuple[str, ...]) -> list[list[str | None]]:
    """The part's words, and what they amount to once prefixes, paths and options are removed."""
    words = [None if word.is_pattern else _word_text(word) for word in part.words]
    seen = [words]
    if words and words[0] is not None:
        bare = [words[0].rpartition("/")[2].casefold(), *words[1:]]
        seen.append(bare)
        seen += [[name, *words[1:]] for name in names]
        if bare[0] == "git":
            index = 1
            while index < len(bare) and (bare[index] or "").startswith("-"):
                index += 2 if bare[index] in ("-C", "-c", "--git-dir", "--work-tree") else 1
            seen.append(["git", *bare[index:]])
    return seen


def _match_words(wanted: Sequence[str], words: Sequence[str | None]) -> Match:
    takes_rest = wanted[-1] == "*"
    fixed = wanted[:-1] if takes_rest else wanted
    for index, pattern in enumerate(fixed):
        if index >= len(words):
            return "no"
        word = words[index]
        if word is None:  # an unquoted variable may become several words, or none
            return "maybe"
        if not _word_regex(pattern).fullmatch(word):
            return "no"
    rest = words[len(fixed) :]
    if rest and not takes_rest:
        return "maybe" if all(word is None for word in rest) else "no"
    return "yes"


@lru_cache(maxsize=512)
def _word_regex(pattern: str) -> re.Pattern[str]:
    if pattern == "*":
        return re.compile(r".*", re.DOTALL)
    if pattern[:1] in "'\"":
        return re.compile(re.escape(pattern))
    pieces = [re.escape(piece) for piece in pattern.split("*")]
    return re.compile(r"[^/]*".join(pieces))


def _path_regex(pattern: str) -> re.Pattern[str]:
    """A path glob as a regular expression: ``**`` crosses slashes, ``*`` and ``?`` do not."""
    pieces: list[str] = []
    for token in re.split(r"(\*\*/|\*\*|\*|\?)", pattern):
        match token:
            case "**/":
                pieces.append("(?:.*/)?")
            case "**":
                pieces.append(".*")
            case "*":
                pieces.append("[^/]*")
            case "?":
                pieces.append("[^/]")
            case _:
                pieces.append(re.escape(token))
    return re.compile("".join(pieces), re.DOTALL)
