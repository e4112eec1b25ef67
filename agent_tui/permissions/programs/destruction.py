"""Version-control commands that lose work or history.

What is in no commit and no other copy cannot be restored, so these commands ask in every mode.
"""

import re
from collections.abc import Mapping, Sequence

from agent_tui.permissions.shell.words import CommandPart

_REHEARSALS = frozenset({"--dry-run", "--help"})
"""With one of these options nothing is changed."""

_GIT_GLOBALS_WITH_VALUE = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--exec-path"}
)
_BROAD = re.compile(r"\.{1,2}/?|:/.*|:\(.*|.*/|.*[*?\[].*|(?:.*/)?[^./]+")
"""Paths that name, or may name, whole folders: those without a suffix."""
_NO_BRANCH = re.compile(r":|.*[*?\[]|.*/$", re.DOTALL)
"""A word that names paths, as no branch or commit is written so."""
_OTHER_SYSTEMS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(rf"(?:.* )?(?:{words})(?: .*)?", re.DOTALL)
    for name, words in {
        "hg": r"purge|strip|update (.* )?(-\w*C\w*|--clean)|revert (.* )?--all",
        "svn": r"revert (.* )?(-R|--recursive)|delete (.* )?\w+://\S+",
        "jj": r"abandon|op(eration)? abandon",
    }.items()
}


def destruction_of(part: CommandPart) -> str:
    """What `part` would lose for good; empty if nothing is known to be lost."""
    name = part.program.removesuffix(".exe").casefold()
    words = [word.value or "" for word in part.arguments]
    if _REHEARSALS & set(words) or words[-1:] == ["-h"]:
        return ""
    if name != "git":
        return find_loss(name, words)
    verb, others = git_loss(words)
    return f"git {' '.join([verb, *others])[:40]} discards work or history" if verb else ""


def find_loss(name: str, words: Sequence[str]) -> str:
    """What a version-control system other than git would lose for good; empty if nothing."""
    text = " ".join(words)
    is_loss = name in _OTHER_SYSTEMS and _OTHER_SYSTEMS[name].fullmatch(text) is not None
    return f"{name} {' '.join(text.split())[:40]}".strip() + " cannot be undone" if is_loss else ""


def git_loss(words: Sequence[str]) -> tuple[str, list[str]]:
    """The verb of a git command that loses something, and its words; an empty verb if none does.

    Args:
        words: Those after ``git``.
    """
    rest = _after_globals(words)
    verb, others = (rest[0], rest[1:]) if rest else ("", [])
    return (verb, others) if _takes_away(verb, others) else ("", [])


def replaced_by_git(words: Sequence[str]) -> list[str]:
    """Those of the `words` after ``git`` that may name files whose changes it discards."""
    rest = _after_globals(words)
    verb, others = (rest[0], rest[1:]) if rest else ("", [])
    named = [word for word in others if not word.startswith("-")]
    match verb:
        case "checkout":
            return named
        case "restore" if _has(others, "-W --worktree") or not _has(others, "-S --staged"):
            return named
        case "rm" if _has(others, "-f --force") and not _has(others, "--cached"):
            return named
        case "mv" if _has(others, "-f --force"):
            return named[-1:]
        case _:
            return []


def _after_globals(words: Sequence[str]) -> list[str]:
    """The verb of a git command and what follows."""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        del rest[: 2 if rest[0] in _GIT_GLOBALS_WITH_VALUE else 1]
    return rest


def _takes_away(verb: str, words: Sequence[str]) -> bool:
    if verb in _LOSING_ACTIONS:
        options, action = _LOSING_OPTIONS.get(verb, ""), words[:1]
        return (
            any(action)
            and action[0] in _LOSING_ACTIONS[verb].split()
            and (not options or _has(words, options))
        )
    if verb in _LOSING_OPTIONS and _has(words, _LOSING_OPTIONS[verb]):
        return True
    match verb:
        case "clean":  # without force git refuses, unless its settings say otherwise
            return not _has(words, "-n")
        case "checkout":
            return any(not path or _BROAD.fullmatch(path) for path in _checkout_paths(words))
        case "restore":
            return (_has(words, "-W --worktree") or not _has(words, "-S --staged")) and any(
                _BROAD.fullmatch(word) for word in words if not word.startswith("-")
            )
        case "rm":
            is_broad = _has(words, "-r") or any(map(_BROAD.fullmatch, words))
            return is_broad and _has(words, "-f --force")
        case "push":
            return any(word.startswith(("+", ":")) for word in words)
        case _:
            return verb in _LOSING_VERBS


def _has(words: Sequence[str], options: str) -> bool:
    """Whether one of the options is present: whole, with a value, or abbreviated as git allows."""
    letters = "".join(word[1:] for word in words if re.fullmatch(r"-[A-Za-z]+", word))
    names = [word.partition("=")[0] for word in words]
    return any(
        option[1:] in letters if len(option) == len("-f") else _is_named(option, names)
        for option in options.split()
    )


def _is_named(option: str, names: Sequence[str]) -> bool:
    return any(
        name == option or (len(name) > len("--") and name[:2] == "--" and option.startswith(name))
        for name in names
    )


def _checkout_paths(words: Sequence[str]) -> Sequence[str]:
    """The paths given to checkout."""
    if "--" in words:
        return words[words.index("--") + 1 :]
    return [word for word in words if word == "." or _NO_BRANCH.match(word)]


_LOSING_VERBS = frozenset({"prune", "update-ref", "filter-branch", "filter-repo", "replace"})
_LOSING_OPTIONS: Mapping[str, str] = {
    "reset": "--hard --merge --keep",
    "checkout": "-f -B -C --force --force-create --discard-changes --pathspec-from-file",
    "switch": "-f -C --force --discard-changes --force-create",
    "push": "-f -d --force --force-with-lease --mirror --delete --prune",
    "branch": "-D -M -C -f --force",
    "tag": "-d -f --delete --force",
    "gc": "--prune",
    "checkout-index": "-f --force",
    "read-tree": "-u --reset",
    "symbolic-ref": "-d --delete",
    "worktree": "-f --force",
    "annex": "--force",
    **dict.fromkeys(("merge", "rebase", "cherry-pick", "am", "revert"), "--abort"),
}
"""By verb: with one of these options it loses something."""
_LOSING_ACTIONS: Mapping[str, str] = {
    "stash": "drop clear",
    "reflog": "expire delete",
    "submodule": "deinit",
    "notes": "remove prune",
    "lfs": "prune",
    "worktree": "remove",
    "annex": "drop",
}
"""By verb: the words after it that lose something, together with one of its options if listed."""
