"""Looks at what outside programs follow in the working folders, and how it is protected."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_tui.features.sandbox.file_contents import (
    EMPTY,
    OTHER,
    FileContents,
    entries_of,
    is_link_digest,
    is_other,
    is_stored,
    may_hold_work_trees,
    work_trees_in,
)
from agent_tui.features.sandbox.git_repository import GitRepository
from agent_tui.features.sandbox.git_state import ANOTHER
from agent_tui.features.sandbox.obeyed_state import Look, Node, Protection
from agent_tui.features.sandbox.project_walk import ProjectWalk
from agent_tui.features.sandbox.repository_makers import RepositoryMakers
from agent_tui.features.sandbox.tracked_files import TrackedFiles
from agent_tui.safe_paths import is_file, is_folder, is_link, trace_links
from agent_tui.tools.files.obeyed import is_only_read
from agent_tui.tools.git.settings import ControlKind

_ONLY_READ: Final = frozenset[ControlKind](("head", "graft", "alternates", "data"))
"""Kinds of files that run nothing: it matters more that such a file is none, or a link."""


@dataclass(frozen=True, slots=True)
class ProjectLook:
    """Finds what is followed, and reads it.

    Args:
        walk: Finds followed files by their names, and repositories.
        contents: Reads files.
        tracked: Knows what git must be able to change.
        roots: The working folders with their git folders.
        linked: See `find_linked`.
        followed: The working folders that a program follows with all that is in them, and which.
        has_mounts: Whether the wall can protect files in writable folders.
    """

    walk: ProjectWalk
    contents: FileContents
    tracked: TrackedFiles
    roots: Sequence[Path]
    linked: Mapping[Path, Path]
    followed: Mapping[Path, str]
    has_mounts: bool

    def look(self, known: Mapping[Path, str], last: Look, makers: RepositoryMakers) -> Look:
        """Everything that is followed now. Blocking.

        Args:
            known: The files that were followed before, and their digests.
            last: The look before, if any.
            makers: Knows whose each repository is.
        """
        look = Look(self.walk.look())
        obeyed, gits = look.found.obeyed, look.found.gits
        look.repositories = [GitRepository(git, self.tracked.hooks_path(git)) for git in gits]
        look.gits = {git for each in look.repositories for git in each.folders}
        look.named = frozenset(obeyed)
        bare, named = self._follow_all(look)
        files = [path for path in obeyed if not is_folder(path)]
        tracked = self.tracked.find(files) if self.has_mounts else ()
        for path, who in obeyed.items():
            digests = self.contents.digests_in(path)
            can_copy = digests is not None and not any(map(is_other, digests.values()))
            way = _way_of(path, is_bare=path in bare, can_copy=can_copy, tracked=tracked)
            if digests is None:
                digests = self._digests_around(path, known)
            _add(look, path, Node(who, way, digests or {path: EMPTY}))
        self._add_controls(look)
        self._add_ways(look, named)
        look.gone = dict(self._find_gone(look, known, last, makers))
        return look

    def _find_gone(
        self,
        look: Look,
        known: Mapping[Path, str],
        last: Look,
        makers: RepositoryMakers,
    ) -> Iterator[tuple[Path, tuple[str, str]]]:
        """See `Look.gone`."""
        for path in known:
            if path.name != ".git" and is_stored(known[path]) and not makers.keeps(look.gits, path):
                place = _obstacle_on(path)
                now = self.contents.digest_of(place)
                place = place if now else path
                # A file is not followed now, and other rules hold for what replaces a link.
                is_taken = not now or (is_other(now) and not is_link_digest(known[path]))
                is_left = place == path and not is_taken
                if look.files.get(place, EMPTY) == EMPTY and not is_left:
                    is_nobodys = last.controls.get(path) == "way" or makers.takes_along(path)
                    yield place, ("" if is_nobodys else last.who_follows(path), now)

    def find_covers(self, look: Look, made: AbstractSet[Path]) -> Iterator[Path]:
        """What is mounted read-only in the working folders. Blocking.

        Args:
            look: The current state.
            made: Each ``.git`` that commands made: they may remove it.
        """
        paths = [path for path, node in look.nodes.items() if node.way == "mounted"]
        for each in look.repositories if self.has_mounts else ():
            if each.entry not in made and not self.walk.is_rebuilt(each.entry.parent):
                covers = map(_real, each.covers)
                paths += (path for path in covers if not _is_in(look.found.obeyed, path))
        for path in paths:
            with suppress(OSError, RuntimeError):
                resolved = path.resolve(strict=True)
                if self._is_below(resolved) and resolved not in self.roots:
                    yield resolved

    def _follow_all(self, look: Look) -> tuple[AbstractSet[Path], Mapping[Path, str]]:
        """Add what the walk does not find by its name.

        Returns:
            The followed files and folders over which nothing is mounted: git must be able to remove
            them, or the wall has no mounts. And what settings and links elsewhere name, as they
            name it, and which program follows it.
        """
        obeyed = look.found.obeyed
        for path in list(obeyed):  # what is beside an agent's work trees is followed on its own
            if (trees := work_trees_in(path)) is not None:
                who = obeyed.pop(path)
                obeyed.update((each, who) for each in entries_of(path) if each != trees)
        named, trees, in_trees = dict[Path, str](), set[Path](), set[Path]()
        for each in look.repositories:
            names = set(each.find_named_in_tree())
            named |= dict.fromkeys(names, "git")
            if each.is_linked and self._is_below(each.entry.parent):
                trees.add(each.entry.parent)
                in_trees |= names
        users = self.tracked.user_settings()
        tops = (top for each in look.repositories for top in each.tops)
        programs = filter(is_file, users.programs_in(tops))
        named |= dict.fromkeys((*users.files, *users.templates, *programs), "git")
        named |= {link: f"what reads {link}" for link in self.linked.values()}
        elsewhere = named.keys() - in_trees
        for root, who in self.followed.items():
            others = {work_trees_in(root), root / ".git"}
            named |= {path: who for path in entries_of(root) if path not in others}
        places = {name: self._follow(look, name, who) for name, who in named.items()}
        if not self.has_mounts:
            return obeyed.keys(), named
        # A command can make any folder a work tree, but not what is followed from elsewhere. Hooks
        # of git change what other programs keep in its folder.
        bare = {
            path
            for path, who in obeyed.items()
            if (who == ANOTHER or not trees.isdisjoint(path.parents))
            and not any(places[name].is_relative_to(path) for name in elsewhere)
        }
        return bare, named

    def _follow(self, look: Look, named: Path, who: str) -> Path:
        """Add an uppermost followed file or folder; returns where the path `named` leads."""
        path, obeyed = trace_links(named)[0], look.found.obeyed
        if self._is_inside(path) and not _is_in(obeyed, path) and os.path.lexists(path):
            for inner in [each for each in obeyed if path in each.parents]:
                del obeyed[inner]
            obeyed[path] = who
            look.ways[path] = []
        return path

    def _digests_around(self, path: Path, known: Collection[Path]) -> dict[Path, str]:
        """The digests in a folder that is too large to compare.

        Where an agent may keep work trees, what is beside them was followed on its own before. So
        what was `known` there is compared, and what is around it.
        """
        if may_hold_work_trees(path):
            around = {place for file in known if path in file.parents for place in file.parents}
            if path in around:
                return dict(self._digests_beside(path, around))
        return {path: OTHER}

    def _digests_beside(self, path: Path, around: AbstractSet[Path]) -> Iterator[tuple[Path, str]]:
        digests = self.contents.digests_in(path)
        if digests is not None:
            yield from digests.items()
        elif path in around:
            for each in set(entries_of(path)) - {work_trees_in(path)}:
                yield from self._digests_beside(each, around)
        else:
            yield path, OTHER

    def _add_controls(self, look: Look) -> None:
        """Add what git follows, and what in its folders is not as git keeps it."""
        found = look.found
        look.controls = dict.fromkeys(found.kept, "data")
        look.controls |= dict.fromkeys(found.shared, "shared")
        look.controls |= dict.fromkeys(found.irregular, "irregular")
        look.controls |= dict.fromkeys(found.ways, "way")
        for each in look.repositories:
            for path, kind in each.find_controls():
                is_known = kind in _ONLY_READ and look.controls.get(path, "data") != "data"
                if not is_known and look.node_of(path) is None:
                    look.controls[path] = kind
        for path, kind in look.controls.items():
            is_shared = kind == "shared"
            look.files[path] = found.shared[path] if is_shared else self.contents.digest_of(path)

    def _add_ways(self, look: Look, named: Mapping[Path, str]) -> None:
        """Add what links and the paths `named` lead to, and each link on the way."""
        pending = [*named.items()]
        for node in look.nodes.values():
            pending += ((path, node.who) for path in node.files if is_link(path))
        for path, kind in look.controls.items():
            if kind in ("hook", "config", "attributes") and is_link(path):
                pending.append((path, "git"))
        for start, who in pending:
            target, links = trace_links(start)
            places = (*links, target)
            for number, place in enumerate(places):
                if place in look.ways:
                    look.ways[place].append(places[:number])
                elif (
                    self._is_inside(place)
                    and not any(place.is_relative_to(git) for git in look.found.gits)
                    and look.node_of(place) is None
                    and os.path.lexists(place)
                ):
                    digests = self.contents.digests_in(place)
                    digests = {place: OTHER} if digests is None else digests or {place: EMPTY}
                    _add(look, place, Node(who, "compared", digests))
                    look.ways[place] = [places[:number]]
                    if place == target:
                        pending += ((path, who) for path in digests if is_link(path))

    def _is_below(self, path: Path) -> bool:
        return any(root in path.parents for root in self.roots)

    def _is_inside(self, path: Path) -> bool:
        """Whether `path` is in a working folder, and around none."""
        return self._is_below(path) and not any(root.is_relative_to(path) for root in self.roots)


def _add(look: Look, path: Path, node: Node) -> None:
    look.nodes[path] = node
    look.files |= node.files


def _obstacle_on(path: Path) -> Path:
    """What is on the way to `path` and no folder, or missing; `path` itself if nothing is."""
    way = (*reversed(path.parents), path)
    return next((each for each in way if is_link(each) or not is_folder(each)), path)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_in(obeyed: Mapping[Path, str], path: Path) -> bool:
    return not obeyed.keys().isdisjoint((path, *path.parents))


def _way_of(path: Path, *, is_bare: bool, can_copy: bool, tracked: Collection[Path]) -> Protection:
    """How `path` is protected, which may be a file that is `tracked`."""
    if is_bare or is_link(path):
        return "compared"
    if not can_copy:
        return "mounted"
    if is_folder(path):
        return "copied"
    return "compared" if path in tracked or is_only_read(path.name) else "mounted"
