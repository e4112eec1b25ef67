"""Whose the commits of one repository are: what all conversations know of it."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from agent_tui.features.sandbox.file_contents import FileVersion
from agent_tui.features.sandbox.obeyed_state import FsText

_MOST_TRUSTED: Final = 100_000
MOST_BROUGHT: Final = 50_000
_MOST_APPROVED: Final = 1_000
_MOST_WITHDRAWN: Final = 20
_MOST_FOREIGN: Final = 20_000
"""Ids; a command that commits adds one or two. With more, no later commit of the user's counts."""


class RepositoryCommits(BaseModel):
    """Whose the commits are, and what the repository names.

    Args:
        existed: Whether it was there before a command; None if nobody has looked yet.
        trusted: The user's, with their whole history: what was named before the first command.
        brought: The user's without it: what they made or fetched later, the newest first.
        foreign: What was named while commands ran; None if that was too much.
        approvals: What the user last said of files of others, the newest first: for each name, the
            digest of the version that they allowed; empty if they want none of them any more.
        withdrawn: For each of these names, what they allowed before, the newest first.
        last: Each name when it was last known what they are; None if commands may have changed
            them since.
    """

    existed: bool | None = None
    trusted: list[str] = []
    brought: list[str] = []
    foreign: list[str] | None = []
    approvals: dict[FsText, str] = {}
    withdrawn: dict[FsText, list[str]] = {}
    last: dict[FsText, str] | None = {}

    @property
    def is_unknown(self) -> bool:
        """Whether nobody has looked at the repository yet."""
        return self.existed is None

    @property
    def is_users(self) -> bool:
        """Whether commits in it can be the user's."""
        return bool(self.existed or self.users)

    @property
    def named(self) -> set[str]:
        """All ids that were named before."""
        return {*self.trusted, *(self.foreign or ()), *(self.last or {}).values()}

    @property
    def users(self) -> set[str]:
        """The ids of the user's commits, as far as they were named or listed."""
        return {*self.trusted, *self.brought}

    @property
    def others(self) -> set[str]:
        """The ids that commands may have named."""
        return (self.named if self.foreign is None else set(self.foreign)) - self.users

    def learn(self, other: "RepositoryCommits", there: AbstractSet[str]) -> None:
        """Take over what is known of the commits `there` from another repository's record."""
        foreign = [id for id in other.others if id in there]
        self.trusted = _merge(self.trusted, filter(there.__contains__, other.trusted))
        self.brought = _merge(self.brought, filter(there.__contains__, other.brought))
        self.approvals = (other.approvals if foreign else {}) | self.approvals
        self._add_foreign(foreign)
        del self.trusted[_MOST_TRUSTED:], self.brought[MOST_BROUGHT:]

    def take_users(self, now: Mapping[str, str]) -> list[str]:
        """Take `now` for what the user named; returns what is new, whose history is to be listed.

        Nothing is new if it was not known what was named before.
        """
        if self.is_unknown:
            self.existed = True
        is_clear = self.last is not None and self.foreign is not None
        fresh = self._fresh_in(now)
        if not is_clear:
            self.take_foreign(now)
        elif not (self.named or self.brought):
            self.trusted, fresh = fresh[:_MOST_TRUSTED], []
        self.last = dict(now)
        return fresh if is_clear else []

    def take_foreign(self, now: Mapping[str, str] | None) -> None:
        """Take `now` for what commands may have named; None if it cannot be told."""
        if self.is_unknown:
            self.existed = False
        if now is not None:
            self._add_foreign(self._fresh_in(now))
        self.last = None if now is None else dict(now)

    def add_brought(self, commits: Iterable[str]) -> None:
        """Note that the user made or fetched `commits`, the newest first."""
        self.brought = _merge(commits, self.brought)[:MOST_BROUGHT]

    def approve(
        self, name: Path, version: FileVersion | None, now: FileVersion | None = None
    ) -> None:
        """Note that the user allows this version of `name`, and none that they did before.

        Args:
            name: The file.
            version: The version; None if they want none of them.
            now: What they have instead, if anything.
        """
        key, wanted = os.fspath(name), _digest(version)
        before = (self.approvals.pop(key, ""), *self.withdrawn.get(key, ()))
        words = {key: wanted, **self.approvals}
        self.approvals = dict(islice(words.items(), _MOST_APPROVED))
        kept = [each for each in before if each not in ("", wanted, _digest(now))]
        withdrawn = {**self.withdrawn, key: kept[:_MOST_WITHDRAWN]}
        self.withdrawn = {each: withdrawn[each] for each in self.approvals if withdrawn.get(each)}

    def has_approval(self, name: Path) -> bool:
        """Whether the user allows any version of `name`."""
        return bool(self.approvals.get(os.fspath(name)))

    def is_withdrawn(self, name: Path, version: FileVersion) -> bool:
        """Whether the user allowed this version of `name`, and another one since."""
        return _digest(version) in self.withdrawn.get(os.fspath(name), ())

    def is_approved(self, name: Path, version: FileVersion) -> bool:
        """Whether the user allows this version of `name`."""
        return self.approvals.get(os.fspath(name)) == _digest(version)

    def _add_foreign(self, ids: Iterable[str]) -> None:
        if self.foreign is not None:
            self.foreign = _merge(self.foreign, ids)
            if len(self.foreign) > _MOST_FOREIGN:
                self.foreign = None

    def _fresh_in(self, now: Mapping[str, str]) -> list[str]:
        known = self.named | self.users
        return [id for id in dict.fromkeys(now.values()) if id not in known]


def _merge(
    first: Iterable[str], second: Iterable[str], among: AbstractSet[str] | None = None
) -> list[str]:
    """Each of `first`, and each of `second` that is `among` these, once."""
    added = (each for each in second if among is None or each in among)
    return list(dict.fromkeys((*first, *added)))


def _digest(version: FileVersion | None) -> str:
    if version is None:
        return ""
    return hashlib.sha256(version.mode.encode() + b"\0" + version.content).hexdigest()
