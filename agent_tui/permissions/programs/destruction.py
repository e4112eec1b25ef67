"""Commands of version control that lose work or history.

What only exists here and is in no commit is lost for good, so these ask in every mode.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from agent_tui.permissions.shell.words import CommandPart

_REHEARSALS = frozenset({"--dry-run", "--help"})
"""With one of these nothing is done."""

_GIT_GLOBALS_WITH_VALUE = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--exec-path"}
)
_BROAD = re.compile(r"\.{1,2}/?|:/.*|:\(.*|.*/|.*[*?\[].*|(?:.*/)?[^./]+")
"""Paths that mean whole folders, or may: what has no suffix."""
_OTHER_SYSTEMS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        name: re.compile(rf"(?:.* )?(?:{words})(?: .*)?", re.DOTALL)
        for name, words in {
            "hg": r"purge|strip|update (.* )?(-\w*C\w*|--clean)|revert (.* )?--all",
            "svn": r"revert (.* )?(-R|--recursive)|delete (.* )?\w+://\S+",
            "jj": r"abandon|op(eration)? abandon",
        }.items()
    }
)


def destruction_of(part: CommandPart) -> str:
    """What `part` would take away for good; empty where it is not known to."""
    name = part.name.rpartition("/")[2].removesuffix(".exe").casefold()
    words = [word.value or "" for word in part.arguments]
    if _REHEARSALS & set(words) or words[-1:] == ["-h"]:
        return ""
    if name != "git":
        return known_loss(name, words)
    verb, others = git_loss(words)
    return f"git {' '.join([verb, *others])[:40]} discards work or history" if verb else ""


def known_loss(name: str, words: Sequence[str]) -> str:
    """What a version control system other than git loses for good; empty where it loses nothing."""
    text = " ".join(words)
    is_loss = name in _OTHER_SYSTEMS and _OTHER_SYSTEMS[name].fullmatch(text) is not None
    return f"{name} {' '.join(text.split())[:40]}".strip() + " cannot be undone" if is_loss else ""


def git_loss(words: Sequence[str]) -> tuple[str, list[str]]:
    """The verb of a git command that takes something away, and its words; an empty verb for none.

    Args:
        words: Those behind ``git``.
    """
    rest = list(words)
    while rest and rest[0].startswith("-"):
        del rest[: 2 if rest[0] in _GIT_GLOBALS_WITH_VALUE else 1]
    verb, others = (rest[0], rest[1:]) if rest else ("", [])
    takes_away = _GIT_VERBS.get(verb)
    return (verb, others) if takes_away is not None and takes_away(others) else ("", [])


def _flags(words: Sequence[str]) -> str:
    """All short options as letters."""
    return "".join(word[1:] for word in words if re.fullmatch(r"-[A-Za-z]+", word))


def _has(words: Sequence[str], *options: str) -> bool:
    """Whether one of the options is there: whole, with a value, or cut short as git allows."""
    names = [word.partition("=")[0] for word in words]
    return any(
        name == option or (len(name) > len("--") and name[:2] == "--" and option.startswith(name))
        for name in names
        for option in options
    )


def _clean(words: Sequence[str]) -> bool:
    """Without force git refuses, unless its settings say otherwise."""
    return "n" not in _flags(words)


def _checkout(words: Sequence[str]) -> bool:
    paths = (
        list(words[words.index("--") + 1 :])
        if "--" in words
        else [w for w in words if w == "." or w.startswith(":") or w.endswith("/")]
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
            ("r" in _flags(words) or any(_BROAD.fullmatch(word) for word in words))
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
        "update-ref": lambda _words: True,
        "checkout-index": lambda words: "f" in _flags(words) or _has(words, "--force"),
        **dict.fromkeys(
            ("merge", "rebase", "cherry-pick", "am", "revert"),
            lambda words: _has(words, "--abort"),
        ),
        "annex": lambda words: words[:1] == ["drop"] and _has(words, "--force"),
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
        "read-tree": lambda words: "--reset" in words or "u" in _flags(words),
    }
)
