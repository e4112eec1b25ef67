"""Judges one shell command: checks each part against the rules and the read-only table."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from agent_tui.permissions.named_paths import (
    PathResolver,
    find_held,
    follows_links,
    searches_hidden_files,
    secret_a_pattern_takes_in,
    secret_below,
    words_to_search,
)
from agent_tui.permissions.programs.connections import network_reason
from agent_tui.permissions.programs.dangers import (
    WorkLoss,
    danger_of,
    device_danger,
    find_hidden_commands,
    find_roots,
    folder_change,
    work_loss,
)
from agent_tui.permissions.programs.destruction import destruction_of
from agent_tui.permissions.programs.read_only import (
    TOOLCHAIN_FILES,
    git_folders,
    is_read_only,
    prints_names_only,
)
from agent_tui.permissions.programs.run_files import find_run_files
from agent_tui.permissions.programs.written_files import COPIERS, replaced_words, written_words
from agent_tui.permissions.protected_paths import ProtectedPaths
from agent_tui.permissions.rules import Rule, program_names
from agent_tui.permissions.shell.parts import Redirection, ShellParts
from agent_tui.permissions.shell.words import CommandPart, Word
from agent_tui.safe_paths import is_file, is_folder, path_exists
from agent_tui.tools.base import CommandPlace

_MAX_FOLDERS = 32
_MAX_FOLDER_CHARS = 4_096
"""Linux's limit on path length. Checking every parent folder takes time quadratic in the length."""

_STREAMS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"})
_SERVICES = {"docker": "docker", "podman": "docker", "systemctl": "systemd", "sudo": "root"}
_SET = re.compile(r"(?:(?:for|select)\s+)?(\w+)")
"""The start of an assignment or a loop, with the name of its variable."""

_SEARCHERS = frozenset({"fd", "fdfind", "grep", "egrep", "fgrep", "rg"})
_PRINTERS = frozenset({"ls", "echo", "printf"})


@dataclass(frozen=True, slots=True)
class CommandFacts:
    """What is known of a command before the mode is considered. Each text is a reason.

    `denied`, `asked`: by a rule. `dangers`: asks in every mode. `unknown`: parts whose effect the
    text does not show. `changing`: parts not known to be read-only. `unlisted`: reasons for parts
    that neither a rule nor the read-only table allows, removals first; `asking` holds those parts.
    `written`: files the shell writes to. `touched`: every file its words name, resolved.
    """

    denied: str = ""
    asked: str = ""
    dangers: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    changing: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    asking: tuple[CommandPart, ...] = ()
    written: tuple[Path, ...] = ()
    touched: tuple[Path, ...] = ()

    @property
    def is_reading(self) -> bool:
        """Whether the command is known to change nothing."""
        return not (self.changing or self.written or self.dangers)


class CommandJudge:
    """Examines the parts of one command in one workspace.

    Args:
        guard: Knows the workspace.
        rules: The rules in force.
        command: The command.
        parts: Its parts; the facts are few if it could not be split.
        place: Where it would run. In the sandbox a search cannot read files with keys; outside,
            reading what the sandbox does not show needs a rule.
    """

    def __init__(
        self,
        guard: ProtectedPaths,
        rules: Sequence[Rule],
        command: str,
        parts: ShellParts,
        place: CommandPlace = "open",
    ) -> None:
        self.parts = parts
        self._command = command
        self._guard = guard
        self._place: CommandPlace = place
        self._rules = [rule for rule in rules if rule.is_for("bash", "execute")]
        self._denied_reads = path_deniers(rules, "read", guard.workspace)
        self._denied_writes = path_deniers(rules, "write", guard.workspace)
        self._words = PathResolver()
        self._touched: dict[Path, None] = {}
        self._known: dict[CommandPart, bool] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        self._commands = tuple(dict.fromkeys(parts.commands))
        self._bases = self._find_bases()

    @cached_property
    def facts(self) -> CommandFacts:
        """All facts about the command."""
        if self.parts.problem:
            whole = (shorten_part(self._command),)
            return CommandFacts(changing=whole, unlisted=whole)
        return self._find_facts()

    def _find_facts(self) -> CommandFacts:
        commands, bases = self._commands, self._bases
        dangers: list[str] = []
        changing: list[str] = []
        unlisted: list[str] = []
        asking: list[CommandPart] = []
        denied = self._find_ruling(commands, "deny")
        if why := _why_not_followed(bases):
            dangers.append(why)
            bases = bases[:1]
        for part in commands:
            reads_only = self._reads_only(part)
            denied = denied or self._find_denied_path(part, bases, reads_only)
            touches = self._touches(part, bases, reads_only)
            if danger := (
                danger_of(part, bases, self._guard, reads_only=reads_only)
                or touches
                or ("" if reads_only else self._writes_what_is_found(part, bases))
            ):
                dangers += self._unless_told(part, danger, dangers)
            if part.note == "wrapper" and part.is_wrapped_plainly:
                continue  # the wrapped command is a part of its own
            if elsewhere := self._foreign_git(part, bases):
                changing.append(elsewhere)
                unlisted.append(elsewhere)
                asking.append(part)
            elif doubt := self._why_unsure(part, bases) if reads_only else _shorten(part):
                changing.append(doubt)
                if not self._is_allowed(part):
                    unlisted.append(doubt)
                    asking.append(part)
        written: list[Path] = []
        for redirection in dict.fromkeys(self.parts.redirections):
            danger, paths = self._judge_redirection(redirection, bases)
            dangers += [self._of_part(redirection.source, danger)] if danger else []
            written += paths
        if self._words.is_exhausted:
            dangers.append("its file patterns match too many files to check")
        order = sorted(range(len(asking)), key=lambda at: not _removes(asking[at]))
        return CommandFacts(
            denied=denied or self._find_denied_input(self.parts.redirections, bases),
            asked=self._find_ruling(commands, "ask"),
            dangers=tuple(dangers),
            unknown=tuple(f"{p.source}: {p.note}" for p in commands if p.kind == "opaque"),
            changing=tuple(changing),
            unlisted=tuple(unlisted[at] for at in order),
            asking=tuple(asking[at] for at in order),
            written=tuple(written),
            touched=tuple(self._touched),
        )

    @property
    def limits(self) -> tuple[str, ...]:
        """Short phrases for the user: what the command needs that the sandbox denies.

        Read from the text of the command; explains, and decides nothing.
        """
        facts, guard = self.facts, self._guard
        services = (_SERVICES.get(part.program, "") for part in self.parts.commands)
        written = (f"writes {p}" for p in facts.written if not guard.may_write_freely(p))
        touched = (_limit_met_at(path, guard, bool(facts.changing)) for path in facts.touched)
        found = (network_reason(self.parts), *services, *written, *touched)
        return tuple(dict.fromkeys(filter(None, found)))

    def _of_part(self, source: str, why: str) -> str:
        """`why`, prefixed with the part it is about if the command has other parts."""
        part = shorten_part(source)
        return f"{part}: {why}" if why and self.parts.is_compound and part not in why else why

    def _unless_told(self, part: CommandPart, why: str, told: Sequence[str]) -> list[str]:
        """The danger of `part`; none if its wrapper already reports the same one."""
        is_told = bool(part.wrapper) and any(each.endswith(why) for each in told)
        return [] if is_told else [self._of_part(part.source, why)]

    @property
    def losses(self) -> tuple[WorkLoss, ...]:
        """What uncommitted work in the folder the command would lose."""
        bases = self._bases[:_MAX_FOLDERS]
        found = (work_loss(part, bases, self._guard) for part in self._commands)
        return tuple(loss for loss in found if loss is not None)

    @property
    def replaced(self) -> tuple[Path, ...]:
        """What there is in the working folders that the command would replace or remove.

        That is files, and folders with all that is in them. What text does not name is not known.
        """
        bases = self._bases[:_MAX_FOLDERS]
        found: dict[Path, None] = {}
        for part in self._commands:
            change = folder_change(part.program.casefold(), part)
            named = self._replaced_by(part, bases) if change is None else change.paths(bases)
            found |= dict.fromkeys(named)
        words = (one.target for one in self.parts.redirections if one.replaces)
        found |= dict.fromkeys(self._places_of(words, bases))
        return tuple(path for path in found if self._guard.is_inside(path) and path_exists(path))

    def _replaced_by(self, part: CommandPart, bases: Sequence[Path]) -> Iterator[Path]:
        name = part.program.casefold()
        targets = [*self._places_of(replaced_words(name, part), bases)]
        if name == "mv" and not all(map(self._guard.is_inside, targets)):
            targets += self._places_of(part.arguments, bases)
        names = {Path(word.value).name for word in part.arguments if word.value}
        for path in targets:
            if name in COPIERS and is_folder(path):
                yield from (path / each for each in names)
            elif name == "git" or not is_folder(path):
                yield path

    def _places_of(self, words: Iterable[Word], bases: Sequence[Path]) -> Iterator[Path]:
        for word in words:
            for base in bases:
                yield from self._words.resolve(base, word)

    def why_changed(self, began_ns: int) -> str:
        """A file that an allowed part runs and that has changed since the user allowed that.

        A command may have written it, for the next one to run outside the sandbox.

        Args:
            began_ns: Since when the rules apply that the user did not make in this session.
        """
        for part in self._commands:
            allowing = [rule for rule in self._rules if self._allows(rule, part)]
            since_ns = max((rule.since_ns or began_ns for rule in allowing), default=None)
            if since_ns is None or self._reads_only(part):
                continue
            for path in find_run_files(part, self._bases[:_MAX_FOLDERS], self._guard.home):
                if self._guard.may_write_freely(path) and _changed_ns(path) > since_ns:
                    return f"{path}, which it may run, has changed since it was allowed"
        return ""

    def _allows(self, rule: Rule, part: CommandPart) -> bool:
        is_named = rule.matches_part(part) == "yes" or rule.matches_whole(self._command)
        return rule.decision == "allow" and is_named

    def may_be_denied(self) -> str:
        """A deny rule that may match once the command's variables are known; empty if none."""
        if self._denied_reads:
            bases = self._bases[:_MAX_FOLDERS]
            for part in self._commands:
                if found := self._find_denied_file(part, bases):
                    return self._of_part(part.source, found)
        denying = [rule for rule in self._rules if rule.decision == "deny"]
        if not denying:
            return ""
        for part in self._commands:
            if part.kind == "opaque":
                return f"the deny rule {denying[0]} may apply to: {_shorten(part)}"
            hidden = () if self._reads_only(part) else find_hidden_commands(part)
            for rule in denying:
                if rule.matches_part(part, ignore_prefix=True) == "maybe" or any(
                    rule.matches_part(inner, ignore_prefix=True) != "no" for inner in hidden
                ):
                    return f"the deny rule {rule} may apply to: {_shorten(part)}"
        return ""

    def _find_ruling(self, parts: Iterable[CommandPart], decision: str) -> str:
        """The part and the rule that denies it or asks; a more specific allow rule lifts an ask."""
        if all(rule.decision != decision for rule in self._rules):
            return ""
        for part in parts:
            matching = [r for r in self._rules if self._holds(r, part)]
            strongest = max((r.specificity for r in matching if r.decision == "allow"), default=-1)
            for rule in matching:
                is_lifted = decision == "ask" and rule.specificity < strongest
                if rule.decision == decision and not is_lifted:
                    return f"the {decision} rule {rule} applies to: {_shorten(part)}"
        return ""

    def _reads_only(self, part: CommandPart) -> bool:
        if part not in self._known:
            self._known[part] = is_read_only(part)
        return self._known[part]

    def _holds(self, rule: Rule, part: CommandPart) -> bool:
        if rule.decision == "allow":
            return rule.matches_part(part) == "yes"
        if part.name not in self._names:
            self._names[part.name] = program_names(part.name, self._guard.workspace)
        found = rule.matches_part(part, ignore_prefix=True, names=self._names[part.name])
        return found == "yes" or (found == "maybe" and rule.decision == "ask")

    def _is_allowed(self, part: CommandPart) -> bool:
        return any(
            rule.decision == "allow" and rule.matches_part(part) == "yes" for rule in self._rules
        )

    def _find_bases(self) -> tuple[Path, ...]:
        """Every folder a part may run in: the workspace and wherever a ``cd`` goes."""
        bases: dict[Path, None] = {self._guard.workspace: None}
        for part in self._commands:
            if len(bases) > _MAX_FOLDERS:
                break
            for target in _folder_words(part):
                if not target.is_pattern:
                    for base in tuple(bases):
                        bases |= dict.fromkeys(self._words.resolve(base, target))
        return tuple(bases)

    def _foreign_git(self, part: CommandPart, bases: Sequence[Path]) -> str:
        """Why git may read another repository's configuration; only a rule ``*`` overrides this."""
        if part.name == "git" and not any(rule.pattern == "*" for rule in self._rules):
            for base in bases:
                if why := self._guard.why_git_asks(base):
                    return f"{_shorten(part)} ({why})"
        return ""

    def _why_unsure(self, part: CommandPart, bases: Sequence[Path]) -> str:
        """Why a part that only reads still needs a rule; empty if it does not."""
        doubt = (
            _find_toolchain_file(part, bases)
            or (self._find_secret(part, bases) if self._place != "inside" else "")
            or self._find_denied_file(part, bases)
            or (self._unseen(part, bases) if self._place == "outside" else "")
        )
        return f"{_shorten(part)} ({doubt})" if doubt else ""

    def _unseen(self, part: CommandPart, bases: Sequence[Path]) -> str:
        """A file that `part` names but that sandboxed commands cannot read; empty if none."""
        whys = (
            self._guard.why_unseen(path)
            for word in part.arguments
            for base in bases
            for path in self._words.resolve(base, word)
        )
        return next(filter(None, whys), "")

    def _find_secret(self, part: CommandPart, bases: Sequence[Path]) -> str:
        """A file with keys in a folder that `part` prints lines of; empty if none."""
        hidden, follows = searches_hidden_files(part), follows_links(part)
        if hidden is None:
            return ""
        for folder in self._folders_to_search(part, bases):
            found = secret_below(folder, self._guard, hidden=hidden, follows_links=follows)
            if found:
                return f"searches {found}, which may contain keys or passwords"
        return ""

    def _find_denied_file(self, part: CommandPart, bases: Sequence[Path]) -> str:
        """A file that a deny rule names, in a folder that `part` prints lines of; empty if none."""
        hidden = searches_hidden_files(part) if self._denied_reads else None
        if hidden is None:
            return ""

        def is_held(path: Path) -> bool:
            return any(denies(path) for _, denies in self._denied_reads) and not is_folder(path)

        linked = is_held if follows_links(part) else None
        for folder in self._folders_to_search(part, bases):
            if held := find_held(folder, is_held, linked, hidden=hidden):
                return f"searches {held}, which a deny rule covers"
        return ""

    def _folders_to_search(self, part: CommandPart, bases: Sequence[Path]) -> list[Path]:
        """The folders that a search names; it may also search the current folder."""
        folders: dict[Path, None] = {}
        for base in bases:
            named = [
                path for word in words_to_search(part) for path in self._words.resolve(base, word)
            ]
            inside = [path for path in named if is_folder(path)]
            is_told = inside or any(is_file(path) for path in named)
            folders |= dict.fromkeys(inside if is_told else [base])
        return list(folders)

    def _touches(self, part: CommandPart, bases: Sequence[Path], reads_only: bool) -> str:
        """Why a file named in the words of `part` always asks."""
        guard = self._guard
        is_wrapper = part.note == "wrapper"
        name = part.program
        runs_nothing = name in ("echo", "printf") or (is_wrapper and name != "xargs")
        reads_only = reads_only or is_wrapper  # the program it wraps is a part of its own
        names_only = reads_only and prints_names_only(part)
        values = set(part.values)  # a program reads what they name
        for word in dict.fromkeys(part.values if runs_nothing else part.given):
            is_read = reads_only or word in values
            is_unread = names_only or self._words.is_exhausted
            if not is_unread and (secret := secret_a_pattern_takes_in(word, guard)):
                return f"{word.value} may match {secret}, which may contain keys or passwords"
            is_found = word.is_pattern and part.wrapper in ("find", "xargs")
            for base in bases:
                for path in self._words.resolve(base, word):
                    self._touched[path] = None
                    if is_found and (reason := guard.why_searching_asks(path.parent)):
                        return reason
                    if names_only and guard.is_inside(path) and not guard.is_own(path):
                        continue
                    searches = name in ("grep", "egrep", "fgrep", "rg") and is_folder(path)
                    asks = guard.why_searching_asks if searches else guard.why_reading_asks
                    if reason := asks(path) if is_read else guard.why_writing_asks(path):
                        return reason
        return ""

    def _writes_what_is_found(self, part: CommandPart, bases: Sequence[Path]) -> str:
        """Why files that another part names or finds, and `part` writes, always ask."""
        unknown = [word for word in written_words(part.program, part) if word.value is None]
        whys = (
            self._guard.why_changing_asks(path)
            for word in unknown
            for source in self._sources_of(word)
            for base in bases
            for path in self._words.resolve(base, source)
        )
        return next(filter(None, whys), "")

    def _sources_of(self, unknown: Word) -> Iterator[Word]:
        """The words of the command that may decide which files `unknown` names.

        For a variable those it is set to, else what searching and printing commands name.
        """
        found: list[Word] = []
        for part in self._commands:
            variable = _SET.match(part.source) if part.kind == "assignment" else None
            if variable and re.search(rf"\$\{{?{variable[1]}\b", unknown.source):
                found += part.arguments
        if found:
            yield from found
            return
        for part in self._commands:
            if part.program == "find":
                yield from find_roots(part)
            elif part.program in _SEARCHERS:
                yield from words_to_search(part)
            elif part.program in _PRINTERS:
                yield from part.arguments

    def _find_denied_path(self, part: CommandPart, bases: Sequence[Path], reads_only: bool) -> str:
        """The path rule that denies a file named in `part`; empty if none."""
        rules = self._denied_reads if reads_only else [*self._denied_reads, *self._denied_writes]
        if not rules or part.name in ("echo", "printf"):
            return ""
        found = (self._find_denied_word(word, bases, rules) for word in dict.fromkeys(part.given))
        why = next(filter(None, found), "")
        if not (why or reads_only):
            why = self._find_denied_target(part, bases)
        return self._of_part(part.source, why)

    def _find_denied_target(self, part: CommandPart, bases: Sequence[Path]) -> str:
        """The rule that denies a file that `part` writes, or puts into a folder; empty if none."""
        names = {Path(word.value).name for word in part.arguments if word.value}
        targets = written_words(part.program, part) if self._denied_writes else ()
        for path in (
            path for word in targets for base in bases for path in self._words.resolve(base, word)
        ):
            inside = [path / name for name in names] if is_folder(path) else []
            for rule, denies in self._denied_writes:
                if any(map(denies, (path, *inside))):
                    return f"the deny rule {rule} forbids writing {path}"
        return ""

    def _find_denied_input(self, redirections: Iterable[Redirection], bases: Sequence[Path]) -> str:
        """The rule that denies a file the shell itself would read; empty if none."""
        for one in redirections:
            rules = () if one.writes else self._denied_reads
            if found := self._find_denied_word(one.target, bases, rules):
                return self._of_part(one.source, found)
        return ""

    def _find_denied_word(
        self,
        word: Word,
        bases: Sequence[Path],
        rules: Sequence[tuple[Rule, Callable[[Path], bool]]],
    ) -> str:
        for base in bases if rules else ():
            for path in self._words.resolve(base, word):
                for rule, denies in rules:
                    if denies(path):
                        return f"the deny rule {rule} forbids {path}"
        return ""

    def _judge_redirection(
        self, redirection: Redirection, bases: Sequence[Path]
    ) -> tuple[str, list[Path]]:
        """Why a redirection always asks, and the files it may write."""
        target = redirection.target
        if not target.is_plain:
            return f"{target.source} is known only at run time", []
        if target.value in _STREAMS:
            return "", []
        guard = self._guard
        written: dict[Path, None] = {}
        for base in bases:
            for path in self._words.resolve(base, target):
                self._touched[path] = None
                if danger := device_danger(Path(target.value or "")) or device_danger(path):
                    return danger, []
                asks = guard.why_changing_asks if redirection.writes else guard.why_reading_asks
                if reason := asks(path):
                    return reason, []
                if redirection.writes:
                    written[path] = None
        return "", list(written)


def _find_toolchain_file(part: CommandPart, bases: Sequence[Path]) -> str:
    """Why `part` may run a different program than its name says: a file in `bases` chooses it."""
    for base in bases:
        for place in (base, *base.parents):
            for name in TOOLCHAIN_FILES.get(part.name, ()):
                if path_exists(place / name):
                    return f"{place / name} decides which {part.name} runs"
    return ""


def path_deniers(
    rules: Iterable[Rule], access: Literal["read", "write"], workspace: Path
) -> list[tuple[Rule, Callable[[Path], bool]]]:
    """The deny rules for paths, each with a function that tells whether it matches a path."""
    return [
        (rule, rule.strict_path_matcher(workspace))
        for rule in rules
        if rule.decision == "deny" and rule.is_for(access, access) and rule.pattern != "*"
    ]


def _folder_words(part: CommandPart) -> list[Word]:
    """The folders that `part` changes to, or starts a program in."""
    if part.name in ("cd", "pushd"):
        return list(part.arguments[-1:])
    if part.name == "git":
        folders = git_folders([word.value for word in part.arguments])
        return [Word(folder, folder) for folder in folders]
    return []


def _changed_ns(path: Path) -> int:
    """When a file or the link to it last changed; no program can set that back."""
    try:
        return max(path.stat().st_ctime_ns, path.lstat().st_ctime_ns)
    except OSError:
        return 0


def _shorten(part: CommandPart) -> str:
    """The start of the part's text, on one line, for the user."""
    return shorten_part(part.source)


def shorten_part(source: str) -> str:
    """The start of a part's text, on one line of at most 80 characters, for user and model."""
    text = " ".join(source.split())
    return text if len(text) <= 80 else f"{text[:79]}…"


def _removes(part: CommandPart) -> bool:
    """Whether `part` is known to remove folders, or work that a version-control system has."""
    name = part.program.casefold()
    return bool(folder_change(name, part) or destruction_of(part))


def _why_not_followed(bases: Sequence[Path]) -> str:
    """Why checking every folder the command may run in takes too long; empty if it does not."""
    if len(bases) > _MAX_FOLDERS:
        return "changes to too many folders to check"
    if any(len(str(base)) > _MAX_FOLDER_CHARS for base in bases):
        return "changes to a folder whose path is too long to check"
    return ""


def _limit_met_at(path: Path, guard: ProtectedPaths, may_write: bool) -> str:
    if guard.why_unseen(path):
        return f"files outside the folder: {path}"
    if guard.why_reading_asks(path):
        return f"keys: {path}"
    if may_write and guard.is_inside(path) and guard.why_writing_asks(path):
        return f"protected files: {path}"
    return ""
