"""Judging one shell command: every part of it, by rules and by what is known to be harmless."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from agent_tui.agent.dangers import danger_of, device_danger
from agent_tui.agent.protected_paths import PathGuard
from agent_tui.agent.read_only import is_read_only
from agent_tui.agent.rules import Rule
from agent_tui.agent.shell_parts import CommandPart, Redirection, ShellParts
from agent_tui.agent.shell_words import Word

_MAX_EXPANDED = 1_000


@dataclass(frozen=True, slots=True)
class CommandFacts:
    """What is known of a command before the mode is looked at. Each text is a reason.

    `denied`, `asked`: by a rule. `dangers`: asks in every mode. `unknown`: parts whose effect
    cannot be told from the text. `changing`: parts not known to be read-only. `unlisted`: parts
    that neither a rule nor the read-only table allows. `written`: files the shell writes to.
    """

    denied: str = ""
    asked: str = ""
    dangers: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    changing: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    written: tuple[Path, ...] = ()


class CommandJudge:
    """Looks at the parts of commands in one workspace."""

    def __init__(self, guard: PathGuard, rules: Sequence[Rule]) -> None:
        self._guard = guard
        self._rules = [rule for rule in rules if rule.is_for("bash", "execute")]

    def facts(self, parts: ShellParts) -> CommandFacts:
        """Everything about a command that could be split."""
        bases = self._bases(parts.commands)
        dangers: list[str] = []
        changing: list[str] = []
        unlisted: list[str] = []
        for part in parts.commands:
            if danger := danger_of(part, bases, self._guard) or self._touches(part, bases):
                dangers.append(danger)
            if part.note == "wrapper" and part.is_wrapped_plainly:
                continue  # what it wraps is a part of its own
            if not is_read_only(part):
                changing.append(_named(part))
                if not self._is_allowed(part):
                    unlisted.append(_named(part))
        written: list[Path] = []
        for redirection in parts.redirections:
            danger, path = self._redirected(redirection, bases)
            dangers += [danger] if danger else []
            written += [path] if path else []
        return CommandFacts(
            denied=self._ruled(parts.commands, "deny"),
            asked=self._ruled(parts.commands, "ask"),
            dangers=tuple(dangers),
            unknown=tuple(f"{p.source}: {p.note}" for p in parts.commands if p.kind == "opaque"),
            changing=tuple(changing),
            unlisted=tuple(unlisted),
            written=tuple(written),
        )

    def may_be_denied(self, parts: ShellParts) -> str:
        """A deny rule that may turn out to hold when the command runs."""
        for rule in self._rules:
            if rule.decision == "deny":
                for part in parts.commands:
                    if rule.matches_part(part, ignore_prefix=True) == "maybe":
                        return f"the rule deny {rule} may hold for: {_named(part)}"
        return ""

    def _ruled(self, parts: Iterable[CommandPart], decision: str) -> str:
        """The part and the rule that denies or asks; a more specific allow lifts an ask."""
        for part in parts:
            matching = [r for r in self._rules if self._holds(r, part)]
            strongest = max((r.specificity for r in matching if r.decision == "allow"), default=-1)
            for rule in matching:
                is_lifted = decision == "ask" and rule.specificity < strongest
                if rule.decision == decision and not is_lifted:
                    return f"the rule {decision} {rule} holds for: {_named(part)}"
        return ""

    @staticmethod
    def _holds(rule: Rule, part: CommandPart) -> bool:
        if rule.decision == "allow":
            return rule.matches_part(part) == "yes"
        found = rule.matches_part(part, ignore_prefix=True)
        return found == "yes" or (found == "maybe" and rule.decision == "ask")

    def _is_allowed(self, part: CommandPart) -> bool:
        return any(r.decision == "allow" and r.matches_part(part) == "yes" for r in self._rules)

    def _bases(self, parts: Iterable[CommandPart]) -> tuple[Path, ...]:
        """Every folder a part may run in: the workspace and wherever a ``cd`` goes."""
        bases = [self._guard.workspace]
        for part in parts:
            if part.name in ("cd", "pushd") and part.arguments:
                target = part.arguments[-1]
                if target.value is not None and not target.is_pattern:
                    bases += [p for b in bases for p in _paths(b, target) if p not in bases]
        return tuple(bases[:16])

    def _touches(self, part: CommandPart, bases: Sequence[Path]) -> str:
        """Why a file named in the words of `part` always asks."""
        reads_only = is_read_only(part)
        guard = self._guard
        words = part.arguments if part.name not in ("echo", "printf") else ()
        for word in words:
            for base in bases:
                for path in _paths(base, word):
                    searches = part.name in ("grep", "rg") and path.is_dir()
                    asks = guard.why_searching_asks if searches else guard.why_reading_asks
                    if reason := asks(path) if reads_only else guard.why_writing_asks(path):
                        return reason
        return ""

    def _redirected(
        self, redirection: Redirection, bases: Sequence[Path]
    ) -> tuple[str, Path | None]:
        """Why a redirection always asks, and the file it writes."""
        target = redirection.target
        if not target.is_plain:
            return f"where {target.source} leads is only known when it runs", None
        written: Path | None = None
        for base in bases:
            for path in _paths(base, target):
                lexical = Path(target.value or "")
                if danger := device_danger(lexical) or device_danger(path):
                    return danger, None
                if str(lexical) in ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"):
                    continue
                guard = self._guard
                asks = guard.why_writing_asks if redirection.writes else guard.why_reading_asks
                if reason := asks(path):
                    return reason, None
                if redirection.writes and (written is None or not guard.may_write_freely(path)):
                    written = path
        return "", written


def _paths(base: Path, word: Word) -> list[Path]:
    """The files a word may name, resolved; also in ``of=FILE``, ``-oFILE``, ``HEAD:FILE``."""
    if word.value is None:
        return []
    texts = [word.value]
    if "=" in word.value:
        texts.append(word.value.partition("=")[2])
    if ":" in word.value:  # git show HEAD:FILE
        texts.append(word.value.rpartition(":")[2])
    if word.value.startswith("-") and len(word.value) > 2:
        texts.append(word.value[2:])
    found: list[Path] = []
    for text in texts:
        try:
            lexical = base / (Path(text).expanduser() if text.startswith("~") else Path(text))
            found += [lexical.resolve(), lexical]
            if word.is_pattern:
                found += [match.resolve() for match in islice(_matches(lexical), _MAX_EXPANDED)]
        except (OSError, RuntimeError, ValueError):
            continue
    return found


def _matches(pattern: Path) -> Iterator[Path]:
    """The files a shell would put in place of an absolute pattern (``**`` is ``*`` to it)."""
    text = str(pattern.relative_to(pattern.anchor)).replace("**", "*")
    for match in Path(pattern.anchor).glob(text):
        if not match.name.startswith(".") or pattern.name.startswith((".", "[")):
            yield match


def _named(part: CommandPart) -> str:
    """The part for the person: its beginning, on one line."""
    text = " ".join(part.source.split())
    return text if len(text) <= 80 else f"{text[:79]}…"
