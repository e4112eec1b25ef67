"""Finds deny rules that cannot be read: without them, more would run than the user allowed.

A settings file that cannot be read may hold deny rules, and so may a list that is no list. A rule
with a mistake forbids nothing.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent_tui.config import PermissionSettings
from agent_tui.config.loading import LoadedSettings, SettingProblem, load_settings, split_list
from agent_tui.config.specs import setting_variables
from agent_tui.errors import ConfigError
from agent_tui.permissions.rule_book import UnreadRules
from agent_tui.permissions.rules import Decision, parse_rule, read_stored_rules
from agent_tui.safe_paths import is_link

_DENY = ("permissions", "deny")
_NAME = ".".join(_DENY)


@dataclass(frozen=True, slots=True)
class RulesRead:
    """What was found. `earlier` are the rules of unreadable sources as they were read before."""

    unread: tuple[UnreadRules, ...] = ()
    earlier: PermissionSettings = field(default_factory=PermissionSettings)


class RuleSources:
    """Reads the sources of deny rules, and remembers the last good reading of each."""

    def __init__(self) -> None:
        self._known: dict[str, PermissionSettings] = {}

    def read(self, files: Sequence[Path], stored: Path, environ: Mapping[str, str]) -> RulesRead:
        """Read all sources again.

        Args:
            files: The settings files in force; they may be missing.
            stored: The file with the rules that always apply in the project; it may be missing.
            environ: The environment.
        """
        unread: list[UnreadRules] = []
        earlier = PermissionSettings()
        for source, problems, rules, file in (
            *map(_read_settings, files),
            _read_stored(stored),
            *_read_variables(environ),
        ):
            known = self._known.get(source)
            if not problems:
                self._known[source] = rules
                continue
            unread += (
                UnreadRules(source, problem, file, has_earlier=known is not None)
                for problem in problems
            )
            if known is not None:
                earlier = add_rules(earlier, known)
        return RulesRead(tuple(unread), earlier)


def add_rules(rules: PermissionSettings, more: PermissionSettings) -> PermissionSettings:
    """`rules` with those of `more` that it does not have."""

    def joined(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*one, *other)))

    return rules.model_copy(
        update={
            "allow": joined(rules.allow, more.allow),
            "ask": joined(rules.ask, more.ask),
            "deny": joined(rules.deny, more.deny),
        }
    )


_Source = tuple[str, list[str], PermissionSettings, Path | None]
"""The name of a source, what is wrong with its deny rules, its rules, and its file."""


def _read_settings(file: Path) -> _Source:
    loaded = load_settings(file, {})
    rules = loaded.settings.permissions
    problems = [str(problem) for problem in loaded.problems if _hides_rules(problem)]
    return str(file), [*problems, *_mistakes(rules.deny, _place(loaded))], rules, file


def _place(loaded: LoadedSettings) -> str:
    return f"{loaded.origin(_DENY)}: {_NAME}"


def _hides_rules(problem: SettingProblem) -> bool:
    """Whether deny rules may be missing because of `problem`."""
    is_deny = problem.key == _NAME or problem.key.startswith(f"{_NAME}.")
    return problem.key in ("", _DENY[0]) or is_deny


def _read_stored(file: Path) -> _Source:
    try:
        texts = read_stored_rules(file)
    except (FileNotFoundError, NotADirectoryError):
        problems = [f"{file}: the link leads to no file"] if is_link(file) else []
        return str(file), problems, PermissionSettings(), file
    except OSError as error:
        return str(file), [f"{file}: cannot be read: {error.strerror}"], PermissionSettings(), file
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return str(file), [f"{file}: not valid TOML: {error}"], PermissionSettings(), file
    lists: dict[Decision, tuple[str, ...]] = {one: tuple(rules) for one, rules in texts.items()}
    rules = PermissionSettings(allow=lists["allow"], ask=lists["ask"], deny=lists["deny"])
    return str(file), list(_mistakes(rules.deny, f"{file}: deny")), rules, file


def _read_variables(environ: Mapping[str, str]) -> Iterator[_Source]:
    for variable, name in setting_variables().items():
        if name == _NAME and (text := environ.get(variable)) is not None:
            listed = split_list(text)
            texts = tuple(map(str, listed)) if isinstance(listed, list) else (text,)
            rules = PermissionSettings(deny=texts)
            yield variable, list(_mistakes(texts, variable)), rules, None


def _mistakes(texts: Sequence[str], place: str) -> Iterator[str]:
    for text in texts:
        try:
            parse_rule(text, "deny")
        except ConfigError as error:
            yield f"{place}: {error}"
