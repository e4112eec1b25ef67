"""Files that code names which a command hands to a program: ``python -c "open('.env')"``.

Found by the look of their names alone, so this never makes anything allowed.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from agent_tui.permissions.shell.scripts import awk_only_prints, sed_only_prints
from agent_tui.permissions.shell.words import CommandPart, Word

_INTERPRETER_NAMES = """
    python python2 python3 pypy3 ipython node nodejs deno bun perl ruby php lua luajit tclsh Rscript
    R julia osascript jshell groovy scala expect
"""
_INTERPRETERS = frozenset(_INTERPRETER_NAMES.split())
_OTHER_TAKER_NAMES = """
    sed gsed awk gawk mawk nawk sqlite3 duckdb psql mysql mariadb vi vim nvim ex ed emacs gdb ghc
    make ssh
"""
_OTHER_TAKERS = frozenset(_OTHER_TAKER_NAMES.split())
_VERSIONED = re.compile(r"(?:python|ruby|lua|php|perl|node)[\d.]*")
_FILE = re.compile(
    r"(?<![\w)\]}.])(?P<path>(?:[~\w.$-]{0,255}/){0,40}(?:\.[A-Za-z]\w*|id_(?:rsa|dsa|ecdsa|ed25519))"
    r"(?:[\w./-]*\w)?)(?![\w(])"
)
_GLUED = re.compile(r"""["'](?:\s*\+\s*|\s+)["']""")
_ONLY_PRINTS: Mapping[str, Callable[[Sequence[str]], bool]] = MappingProxyType(
    {
        **dict.fromkeys(("sed", "gsed"), sed_only_prints),
        **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), awk_only_prints),
    }
)


def is_interpreter(name: str) -> bool:
    """Whether a program runs the script that its first word names, or what it reads."""
    return name in _INTERPRETERS or _VERSIONED.fullmatch(name) is not None


def takes_code(name: str) -> bool:
    """Whether a program may be given code as words or as its input."""
    return is_interpreter(name) or name in _OTHER_TAKERS


def files_in_code(part: CommandPart) -> tuple[Word, ...]:
    """Hidden files and keys by their names in code that `part` is given as words or as its input.

    Names that strings are glued together to (``"." "env"``) count, too.
    """
    name = part.name.rpartition("/")[2]
    if not takes_code(name):
        return ()
    values = [word.value or word.source for word in part.arguments]
    only_prints = _ONLY_PRINTS.get(name)
    if only_prints is not None and only_prints([v for v in values if not v.startswith("-i")]):
        return ()
    texts = [part.input, *values]
    found = (
        match["path"]
        for text in (*texts, *(_GLUED.sub("", text) for text in texts))
        for match in _FILE.finditer(text)
    )
    # Behind the name may stand what ends a script's own command: s/a/cat .env/e
    paths = dict.fromkeys(p for path in found for p in (path, path.rpartition("/")[0]) if p)
    return tuple(Word(path, path, has_tilde=path.startswith("~")) for path in paths)
