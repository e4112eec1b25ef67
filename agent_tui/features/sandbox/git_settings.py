"""Whether git would do something else with changed settings."""

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from agent_tui.tools.git.settings import (
    MADE_BY_GIT,
    decode,
    is_plain_setting,
    kind_of,
    lines_of,
    plain_value,
)

_PUSHES: Final = frozenset(("remote.url", "remote.pushurl", "remote.mirror"))
_NAMES_REMOTE: Final = "branch.remote"
"""Settings that say where a push goes. What is no remote's name is an address: also a folder."""

_DAILY: Final = {
    name: re.compile(value)
    for name, value in {
        _NAMES_REMOTE: r".*",  # the remote itself is checked separately
        "branch.merge": r"refs/.+",
        "branch.description": r".*",
        "core.worktree": r".*",  # so is this one
        "core.repositoryformatversion": r"[01]",
        "core.sparsecheckout": r"true|false",
        "core.sparsecheckoutcone": r"true|false",
        "extensions.worktreeconfig": r"true",
        "extensions.refstorage": r"files|reftable",
        "index.sparse": r"true|false",
    }.items()
}
"""What git itself changes in the settings of a repository that it has, and to which values.

By ``git branch -u``, ``git sparse-checkout``, ``git submodule`` and ``git refs migrate``."""

_ADDED_SECTIONS: Final = frozenset(("submodule",))
_REMOVED_SECTIONS: Final = frozenset(("branch", "remote", "submodule"))
"""Whole sections that git adds or removes: ``git submodule init``, ``git branch -d``."""


def settings_in(content: bytes | None) -> set[tuple[str, str]]:
    """What each line of a settings file says."""
    return {line.setting for line in lines_of(decode(content or b""))}


def find_doubts(text: str, before: str) -> list[str]:
    """What is wrong with git settings because of those that were there `before`."""
    now, was = list(_written_in(text)), list(_written_in(before))
    left = [each for each in now if not _is_daily(each, was, _ADDED_SECTIONS)]
    had = [each for each in was if not _is_daily(each, now, _REMOVED_SECTIONS)]
    if left == had and not _leads_elsewhere(text, before):
        return []
    lost = [each.name for each in had if each not in left]
    new = [each.name for each in left if each not in had]
    if left == had or not _PUSHES.isdisjoint((*lost, *new)):
        return ["git would push elsewhere"]
    if new:
        return [f"git would follow {new[0]}"]
    return [f"git would run without {lost[0]}" if lost else "git would read another order"]


class _Written(NamedTuple):
    """A setting: its name, its section, and its value, with ``=``; or a line not understood."""

    name: str
    section: str
    value: str


def _written_in(text: str) -> Iterator[_Written]:
    for line in lines_of(text):
        if line.name is None:
            yield _Written(line.text.strip(), line.section, "")
        elif line.name:
            _, sign, value = line.text.partition("=")
            yield _Written(line.name, line.section, sign + plain_value(value.strip()))


def _is_daily(each: _Written, others: Iterable[_Written], sections: AbstractSet[str]) -> bool:
    """Whether git adds or removes a setting in its daily work.

    Args:
        each: The setting.
        others: The settings of the version without it.
        sections: The kinds of sections that git adds or removes as a whole.
    """
    allowed = _DAILY.get(each.name)
    if allowed is not None and each.value[:1] == "=" and allowed.fullmatch(each.value[1:]):
        return True
    is_whole = all(each.section != other.section for other in others)
    is_known = is_plain_setting(each.name) or each.name in MADE_BY_GIT
    return is_whole and is_known and kind_of(each.section) in sections


def _leads_elsewhere(text: str, before: str) -> bool:
    """Whether a branch pushes to another remote than known ones.

    A remote may be removed, unless a branch names it.
    """
    remotes = {section for section, _ in _settings(text, _PUSHES)}
    lost = {section for section, _ in _settings(before, _PUSHES)} - remotes
    branches = _settings(before, {_NAMES_REMOTE})
    for branch in _settings(text, {_NAMES_REMOTE}):
        named = f'remote "{plain_value(branch[1].partition("=")[2])}"'
        is_known = named in remotes or named == 'remote "."' or branch in branches
        if named in lost or not is_known:
            return True
    return False


def _settings(text: str, names: AbstractSet[str]) -> set[tuple[str, str]]:
    """The lines with settings of these `names`, each with its section."""
    return {line.setting for line in lines_of(text) if line.name in names}
