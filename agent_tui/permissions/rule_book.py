"""The rules in force: from the command line, the settings, the project's file and the session."""

import time
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path

from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.errors import ConfigError
from agent_tui.permissions.rules import (
    FETCH,
    Decision,
    Rule,
    change_rules_file,
    parse_rule,
    read_stored_rules,
)

RUN_SOURCE = "command line"
_PROJECT_SOURCE = "project"
_SESSION_SOURCE = "session"
_EARLIER = "{problem}. The rules that were read before stay in force."
_MISSING = "Deny rules cannot be read, so the mode is ask. {problem}."


@dataclass(frozen=True, slots=True)
class UnreadRules:
    """Deny rules of one source that cannot be read, or may not be.

    Attributes:
        source: A file, or an environment variable.
        problem: The file, the line and the key, and what is wrong with it.
        file: The file to correct; None for a variable.
        has_earlier: Whether an earlier reading of the source is still in force.
    """

    source: str
    problem: str
    file: Path | None = None
    has_earlier: bool = False


class RuleBook:
    """Reads, adds and removes rules.

    Args:
        settings: The user's settings.
        project_file: Holds the rules that always apply in this project.

    Attributes:
        rules: All rules in force.
        problems: Rules that could not be read, for the user.
        unread: Deny rules that cannot be read.
        began_ns: When the session began, since when rules from files apply.
    """

    def __init__(self, settings: PermissionSettings, project_file: Path) -> None:
        self.project_file = project_file
        self.began_ns = time.time_ns()
        self.problems: list[str] = []
        self.unread: tuple[UnreadRules, ...] = ()
        self.rules: tuple[Rule, ...] = (
            *self._parse(settings.deny, "deny", "settings"),
            *self._parse(settings.ask, "ask", "settings"),
            *self._parse(settings.allow, "allow", "settings"),
            *self._read_stored(),
        )

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that allow rules name; ``*`` for all."""
        named = (r.pattern for r in self.rules if r.tool == FETCH and r.decision == "allow")
        return tuple(dict.fromkeys(pattern.removeprefix("domain:") for pattern in named))

    @property
    def missing(self) -> tuple[UnreadRules, ...]:
        """The deny rules that cannot be read, and of which no earlier reading is in force."""
        return tuple(one for one in self.unread if not one.has_earlier)

    @property
    def unread_notices(self) -> tuple[str, ...]:
        """What to tell the user about deny rules that cannot be read."""
        return tuple(
            (_EARLIER if one.has_earlier else _MISSING).format(problem=one.problem.rstrip("."))
            for one in self.unread
        )

    def limit_mode(self, mode: PermissionMode) -> PermissionMode:
        """`mode`, or ask if deny rules are missing: then the user looks at what runs."""
        return "ask" if self.missing and mode != "plan" else mode

    def add_run_rules(self, rules: Sequence[Rule]) -> None:
        """Add `rules` from the command line."""
        self.rules += tuple(rules)

    def take_session_rules(self, previous: "RuleBook") -> None:
        """Add the session rules of `previous`, and continue its session."""
        self.began_ns = min(self.began_ns, previous.began_ns)
        self.rules += tuple(rule for rule in previous.rules if rule.source == _SESSION_SOURCE)

    def allowing(self, texts: Sequence[str]) -> "RuleBook":
        """A copy of this book that also allows `texts`."""
        book = copy(self)
        book.problems = []
        book.rules = (*self.rules, *book._parse(texts, "allow", _SESSION_SOURCE))
        return book

    def add_session_rule(self, rule: str, decision: Decision = "allow") -> None:
        """Apply `rule` until the program ends; an empty one adds nothing.

        Raises:
            ConfigError: It is not a valid rule.
        """
        if rule:
            self._put(parse_rule(rule, decision, _SESSION_SOURCE))

    def add_project_rule(self, rule: str, decision: Decision = "allow") -> None:
        """Apply `rule` in this project from now on; an empty one adds nothing.

        Raises:
            ConfigError: It is not a valid rule, or the rules file cannot be written; it then
                applies to this session.
        """
        if not rule:
            return
        kept = parse_rule(rule, decision, _PROJECT_SOURCE)
        path = self.project_file
        try:
            change_rules_file(
                path,
                lambda other, texts: [*_without(texts, kept), *[rule] * (other == decision)],
            )
        except (OSError, ValueError) as error:
            self._put(replace(kept, source=_SESSION_SOURCE))
            raise ConfigError(
                f"{path}: cannot save the rule: {error}", "It applies to this session only."
            ) from error
        self._put(kept)

    def _put(self, rule: Rule) -> None:
        """Add `rule`, replacing the one from the same source for the same calls."""
        said = (rule.source, str(rule))
        others = (kept for kept in self.rules if (kept.source, str(kept)) != said)
        self.rules = (*others, replace(rule, since_ns=time.time_ns()))

    def remove_rule(self, rule: Rule) -> None:
        """Remove a rule of this session or project.

        Raises:
            ConfigError: It comes from the settings or the command line, or the rules file cannot
                be written.
        """
        if rule.source == RUN_SOURCE:
            raise ConfigError(f"{rule} comes from the command line.", "Start agent-tui without it.")
        if rule.source not in (_SESSION_SOURCE, _PROJECT_SOURCE):
            raise ConfigError(
                f"{rule} comes from the settings.", "Remove it from config.toml: /settings."
            )
        path = self.project_file
        if rule.source == _PROJECT_SOURCE:
            try:
                change_rules_file(
                    path,
                    lambda other, texts: _without(texts, rule) if other == rule.decision else texts,
                )
            except (OSError, ValueError) as error:
                raise ConfigError(
                    f"{path}: cannot remove the rule: {error}", "Edit that file."
                ) from error
        self.rules = tuple(
            kept for kept in self.rules if (kept, kept.source) != (rule, rule.source)
        )

    def _read_stored(self) -> list[Rule]:
        """The rules in the project's file."""
        path = self.project_file
        try:
            stored = read_stored_rules(path)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except (OSError, ValueError) as error:
            self.problems.append(f"{path}: cannot read the project's rules: {error}")
            return []
        rules: list[Rule] = []
        for decision, texts in stored.items():
            rules += self._parse(texts, decision, _PROJECT_SOURCE)
        return rules

    def _parse(self, texts: Sequence[str], decision: Decision, source: str) -> list[Rule]:
        rules: list[Rule] = []
        for text in texts:
            try:
                rules.append(parse_rule(text, decision, source))
            except ConfigError as error:
                where = str(self.project_file) if source == _PROJECT_SOURCE else source
                self.problems.append(f"{where}: {decision}: {error}")
        return rules


def _without(texts: Sequence[str], rule: Rule) -> list[str]:
    """`texts` without the rules for the same calls as `rule`."""
    return [text for text in texts if not _speaks_of(text, rule)]


def _speaks_of(text: str, rule: Rule) -> bool:
    try:
        return str(parse_rule(text, rule.decision)) == str(rule)
    except ConfigError:
        return False
