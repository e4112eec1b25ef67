"""The programs that git's own options name, such as ``git push --receive-pack=PROGRAM``."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from agent_tui.permissions.shell.words import Word
from agent_tui.tools.git.settings import MERGE_STRATEGIES, is_plain_setting, names_path


class _Options(NamedTuple):
    """The options of a verb that have git run something.

    Args:
        names: Their long names.
        letters: Their short names, each with the long one.
        valued: Other letters with a value, which may follow in the same word.
        exact: Other options whose names begin one of these.
        with_one_dash: Whether the verb takes a long name behind one dash, too.
    """

    names: Sequence[str]
    letters: Mapping[str, str] = {}
    valued: str = ""
    exact: Sequence[str] = ()
    with_one_dash: bool = False


_UPLOAD: Final = "upload-pack"
_FILTERS: Final = "tree index msg env parent tag-name commit subdirectory"
_GLOBAL: Final = _Options(("config-env", "exec-path"), {"c": "config"}, "C")
_OPTIONS: Final[Mapping[str, _Options]] = {
    "clone": _Options((_UPLOAD, "config", "template"), {"u": _UPLOAD, "c": "config"}, "boj"),
    **dict.fromkeys(("init", "init-db"), _Options(("template",))),
    **dict.fromkeys(("fetch", "fetch-pack", "ls-remote", "archive"), _Options((_UPLOAD, "exec"))),
    **dict.fromkeys(("push", "send-pack"), _Options(("receive-pack", "exec"))),
    "pull": _Options((_UPLOAD, "strategy"), {"s": "strategy"}, "XSjor"),
    "merge": _Options(("strategy",), {"s": "strategy"}, "XSmF"),
    "rebase": _Options(("exec", "strategy"), {"x": "exec", "s": "strategy"}, "XSCr"),
    **dict.fromkeys(("cherry-pick", "revert"), _Options(("strategy",))),
    "grep": _Options(("open-files-in-pager",), {"O": "open-files-in-pager"}, "ABCefm"),
    "difftool": _Options(("extcmd", "tool"), {"x": "extcmd", "t": "tool"}, "GSO"),
    "mergetool": _Options(("tool",), {"t": "tool"}, "O"),
    "send-email": _Options(
        ("to-cmd", "tocmd", "cc-cmd", "cccmd", "header-cmd", "smtp-server", "sendmail-cmd"),
        exact=("to", "cc"),
        with_one_dash=True,
    ),
    "filter-branch": _Options((*(f"{name}-filter" for name in _FILTERS.split()), "setup")),
    **dict.fromkeys(("instaweb", "web--browse"), _Options(("httpd", "browser"))),
    "svn": _Options(("authors-prog",)),
    "daemon": _Options(("access-hook",)),
}
"""The options by verb. Git accepts each long name shortened, as far as that is clear, and a value
in the word of a letter. A word known only at run time may be one."""

_OTHER_VERB: Final = _Options((_UPLOAD, "receive-pack", "exec", "extcmd", "strategy"))
"""For an alias, whose verb is unknown, and verbs without such options."""

_BEFORE_VERB: Final = re.compile(r"-C|--(?:git-dir|work-tree|namespace|super-prefix|attr-source)")
"""Options of git itself whose value is the next word."""

_MAY_BE_OPTION: Final = re.compile(
    r"(?!\"?\$\(git (?:branch --show-current|rev-parse --abbrev-ref HEAD)\)\"?$)[\"']?[$`-].*",
    re.DOTALL,
)
"""How such a word begins. No name of a branch is an option."""

_WITHOUT_NEXT: Final = frozenset(("exec-path", "open-files-in-pager"))
"""Options whose value is never the next word."""

_COMMAND_VERBS: Final = (("bisect", "run"), ("submodule", "foreach"))
"""Verbs that run the rest of their words."""

_SWITCH: Final = re.compile(r"(?:true|false|yes|no|on|off|auto|always|never|\d*)", re.IGNORECASE)
"""Values of a setting that name no program."""


def programs_git_runs(arguments: Sequence[Word]) -> Iterator[str | None]:
    """What the words of a git command have it run: text for a shell; None if it is unknown.

    Args:
        arguments: The words after ``git``.
    """
    words = list(arguments)
    verb, options = "", _GLOBAL
    while words:
        word = words.pop(0)
        text = word.source if word.value is None else word.value
        if text == "--":
            return
        if word.value is None and verb in _OPTIONS and _MAY_BE_OPTION.fullmatch(text):
            yield None
        elif not verb and _BEFORE_VERB.fullmatch(text):
            del words[:1]
        elif text.startswith("-"):
            yield from _of_option(word, words, options)
        elif (verb, text) in _COMMAND_VERBS:
            yield _joined(words)
            return
        elif not verb:
            verb, options = text, _OPTIONS.get(text, _OTHER_VERB)


def _of_option(word: Word, after: list[Word], options: _Options) -> Iterator[str | None]:
    """What an option may have git run. Its value is in it, or the word `after` it."""
    text = word.source if word.value is None else word.value
    name, sign, value = text.partition("=")
    name = name.lstrip("-").casefold()  # `git send-email` takes any case
    is_long = text[:2] == "--" or options.with_one_dash
    full = next((full for full in options.names if name and full.startswith(name)), "")
    runs = "".join(options.letters)
    short = rf"-[^\W{runs}{options.valued}]*([{runs}])(.*)"
    if not is_long and runs and (found := re.fullmatch(short, text, re.DOTALL)):
        full, sign, value = options.letters[found[1]], found[2], found[2]
    elif not is_long or not full or name in options.exact:
        return
    if word.value is None:
        yield None
    elif sign:
        yield from _of_value(full, value)
    elif full not in _WITHOUT_NEXT:
        # Another option may be meant: only that of git itself hides the word from the rest.
        given = after.pop(0) if after and options is _GLOBAL else next(iter(after), None)
        yield from _of_value(full, "" if given is None else given.value)


def _of_value(name: str, value: str | None) -> Iterator[str | None]:
    """What the option `name` has git run because of its value, which may be unknown."""
    if value is None:
        yield None
    elif name in ("config", "config-env"):
        yield from _of_setting(value)
    elif name == "strategy":  # a slash in it leads to any program
        yield "" if value in MERGE_STRATEGIES else shlex.quote(f"git-merge-{value}")
    elif name == "template":
        yield value and shlex.quote(f"{value}/hooks/post-checkout")
    elif name == "exec-path":
        yield shlex.quote(f"{value}/git")
    elif name in ("tool", "smtp-server"):
        yield shlex.quote(value) if "/" in value else ""
    else:
        yield value


def _joined(words: Sequence[Word]) -> str | None:
    """The command in `words`, behind options of the verb."""
    at = next((i for i, word in enumerate(words) if (word.value or "")[:1] != "-"), len(words))
    values = [word.value for word in words[at:]]
    known = [value for value in values if value is not None]
    return " ".join(known) if len(known) == len(values) else None


def _of_setting(text: str) -> Iterator[str | None]:
    """What the setting ``name=value`` may have git run."""
    name, _, value = text.partition("=")
    section, _, key = name.rpartition(".")
    kind = section.partition(".")[0].casefold()
    plain = f"{kind}.{key.casefold()}"
    if kind == "protocol":  # of which one has git run the address
        yield None
    elif names_path(plain):
        yield value and shlex.quote(f"{value}/git")
    elif not (is_plain_setting(plain) or _SWITCH.fullmatch(value)):
        yield value.lstrip("!")
