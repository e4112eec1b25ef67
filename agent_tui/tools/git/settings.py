"""Git's settings files: their grammar, and which settings are known to be harmless.

Git runs what ``core.fsmonitor``, filters, aliases, hooks and many more settings name. So this uses
an allowlist: settings are harmless if they hold only what is known to name no program and no other
file; anything else is a doubt.
"""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from agent_tui.regular_files import open_regular_file

ControlKind: TypeAlias = Literal[
    "entry",
    "hook",
    "config",
    "pointer",
    "attributes",
    "step",
    "replacement",
    "graft",
    "alternates",
    "head",
    "data",
    "irregular",
    "shared",
    "way",
]
"""Kinds: a ``.git`` that is a file or a link; a hook; settings; a pointer to more of the
repository; attributes, which select drivers for files; the next steps of an unfinished rebase,
cherry-pick or bisection; what has git show another object instead of one (``git replace``); what
has it show other parents of a commit (``info/grafts``), or none (``shallow``); what names other
folders with objects; a ``HEAD`` as git keeps it, which runs nothing; other data that git reads and
cannot make again; in a git folder, what is not as git keeps it, and a file with further names
(`git_state`); a link to where commands write unchecked, perhaps to a repository."""

_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+("(?:[^"\\]|\\.)*"))?\s*\]')
_SETTING = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=.*)?")
_JOINED: Final = re.compile(r'[#;].*|"(?:[^"\\\n]|\\\r?\n|\\.)*"|\\\r?\n|\\.')
"""What decides whether a backslash continues a value on the next line: not one of a comment."""

_VALUE_PART: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([^"#;\\]+|\\.)')
_ESCAPES: Final = {"t": "\t", "n": "\n", "b": "\b"}
_CORE = (
    "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks "
    "autocrlf eol"
)
_PLAIN: dict[str, frozenset[str]] = {
    "core": frozenset(_CORE.split()),
    "remote": frozenset({"url", "pushurl", "fetch", "prune", "tagopt"}),
    "branch": frozenset({"remote", "merge", "rebase", "description", "vscode-merge-base"}),
    "submodule": frozenset({"url", "active"}),
    "extensions": frozenset({"objectformat"}),
    "user": frozenset({"name", "email"}),
    "init": frozenset({"defaultbranch"}),
    "pull": frozenset({"rebase", "ff"}),
    "push": frozenset({"default", "autosetupremote"}),
    "fetch": frozenset({"prune"}),
    "color": frozenset({"ui"}),
    "gc": frozenset({"auto"}),
}


WORK_TREE: Final = "core.worktree"
"""A submodule's git folder names its work tree."""

NamedKind: TypeAlias = Literal["hook", "config", "template", "tree", "program"]
_NAMING: Final[dict[str, NamedKind]] = {
    "core.hookspath": "hook",
    "include.path": "config",
    "includeif.path": "config",
    "init.templatedir": "template",
    WORK_TREE: "tree",
    "submodule.path": "tree",
}
"""Settings that name further files git reads, or where it works. A template counts only in the
user's own settings: no other are read when git creates a repository."""

MERGE_STRATEGIES: Final = ("ort", "recursive", "resolve", "octopus", "ours", "subtree")
"""Git's own. It starts any other as a program."""

MADE_BY_GIT: Final = frozenset(
    (
        *("extensions.refstorage", "core.sparsecheckout", "core.sparsecheckoutcone"),
        *("extensions.worktreeconfig", "index.sparse", "remote.mirror"),
    )
)
"""Settings that a clone, a submodule or a worktree creates. They run nothing, but lead elsewhere,
so a repository judged before it is trusted must not have them. Those of a partial clone are not
harmless: because of them, any git command sends requests to the remote (``promisor-remote.c``)."""

_SECTIONS: Final = frozenset((*_PLAIN, *(name.partition(".")[0] for name in MADE_BY_GIT)))
MOST_BYTES: Final = 1_000_000
"""Bytes of a file that git reads; one of its own is never longer."""


class SettingLine(NamedTuple):
    """A line of a settings file.

    Args:
        name: The setting on it: empty for none, None if it cannot be parsed.
        section: Its section, such as ``remote "origin"``.
        text: The line.
    """

    name: str | None
    section: str
    text: str

    @property
    def setting(self) -> tuple[str, str]:
        """What it says: the section and the line."""
        return self.section, self.text.strip()

    @property
    def is_plain(self) -> bool:
        """Whether it is known to run nothing."""
        return self.name == "" or is_plain_setting(self.name or "")


def lines_of(text: str) -> Iterator[SettingLine]:
    """The lines of a settings file, of which a byte-order mark may be the start."""
    section, mark = "", "\ufeff"
    for line in text.split("\n"):
        name, section = _setting_of(line.removeprefix(mark).strip(), section)
        mark = ""
        yield SettingLine(name, section, line)


def find_named_paths(
    config: Path, *, follow_links: bool = False
) -> Iterator[tuple[str, NamedKind]]:
    """Each path in `config` that leads to more of what git follows, and to what.

    An empty value names nothing: so the user has no hooks or no template. The whole value of a
    setting that may run something counts as a program: a command, whose words name files.
    """
    with suppress(OSError):
        yield from named_paths_in(read_text(config, follow_links=follow_links))


def named_paths_in(text: str) -> Iterator[tuple[str, NamedKind]]:
    """As `find_named_paths`, for the text of a settings file."""
    for line in lines_of(_SECTION.sub(r"\g<0>\n", _JOINED.sub(_join, text))):
        key, _, value = line.text.partition("=")
        section = kind_of(line.section).partition(".")[0]  # ``[submodule.x]`` is valid, too
        setting = f"{section}.{key.strip().lower()}"
        named = plain_value(value)
        if (kind := _NAMING.get(setting)) is not None and named:
            yield named, kind
        elif kind is None and named and _may_run(setting, named):
            yield named, "program"


def _may_run(setting: str, value: str) -> bool:
    """Whether git may run the `value` of a setting: an alias without ``!`` names git's own."""
    is_git = setting.startswith("alias.") and not value.startswith("!")
    return not is_plain_setting(setting) and not is_git


def _join(part: re.Match[str]) -> str:
    return part[0] if part[0][0] in "#;" else re.sub(r"\\\r?\n", "", part[0])


def plain_value(written: str) -> str:
    """The value of a setting without quotes, escapes and a comment."""
    parts = list[str]()
    at = 0
    while (part := _VALUE_PART.match(written, at)) is not None:
        parts.append(part[2] if part[1] is None else part[1])
        at = part.end()
    text = "".join(parts).strip()
    return re.sub(r"\\(.)", lambda part: _ESCAPES.get(part[1], part[1]), text)


def decode(content: bytes) -> str:
    """The text of a settings file, which may have any bytes."""
    return content.decode("utf-8", "surrogateescape")


def odd_settings(config: Path, content: bytes) -> Iterator[tuple[str, str, tuple[str, str]]]:
    """Every line that is not known to be harmless: the setting's name, a sentence, and the line.

    The line comes with its section before it. Git's own grammar allows far more than is known here.

    Args:
        config: The file, as the sentences name it.
        content: What is in it.

    Raises:
        UnicodeDecodeError: It is not text.
    """
    lines = lines_of(content.decode("utf-8"))
    for number, line in enumerate(lines, start=1):
        if not line.is_plain:
            here = f"the section {kind_of(line.section)}" if line.section else "this line"
            shown = line.name or here
            yield shown, f"{config}:{number}: {shown} could run a program", line.setting


def _setting_of(line: str, section: str) -> tuple[str | None, str]:
    """The setting on a line of `section`, and the section from there on.

    The setting is empty for a line without one, and None if it cannot be parsed.
    """
    if not line or line.startswith(("#", ";")):
        return "", section
    header = _SECTION.fullmatch(line)
    if header is not None:
        kind = header[1].lower()
        section = f"{kind} {header[2]}" if header[2] else kind
        return ("" if kind in _SECTIONS else None), section
    setting = _SETTING.fullmatch(line)
    if setting is None or line.endswith("\\"):
        return None, section
    return f"{kind_of(section)}.{setting[1].lower()}", section


def is_plain_setting(name: str) -> bool:
    """Whether a setting, named without its subsection (``remote.url``), is known to run nothing."""
    section, _, key = name.rpartition(".")
    return key in _PLAIN.get(section, ())


def write_setting(key: str, value: str) -> str:
    """The lines of a settings file that give `key`, as ``git config --list`` names it, `value`."""
    section, _, rest = key.partition(".")
    middle, _, name = rest.rpartition(".")
    named = f' "{_escape(middle)}"' if middle or rest.startswith(".") else ""
    return f'[{section}{named}]\n\t{name} = "{_escape(value)}"\n'


def _escape(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return escaped.replace("\n", "\\n").replace("\t", "\\t")


def names_path(name: str) -> bool:
    """Whether a setting, named as there, leads to further files that git follows."""
    return name in _NAMING


def kind_of(section: str) -> str:
    """The kind of a section: ``remote`` of ``remote "origin"``."""
    return section.partition(" ")[0]


def read_text(file: Path, *, follow_links: bool = True) -> str:
    """The text of a file that git reads; see `read_bytes`."""
    return decode(read_bytes(file, follow_links=follow_links))


def read_bytes(file: Path, *, follow_links: bool = False) -> bytes:
    """The content of a file that git reads.

    Raises:
        OSError: It cannot be read, or is longer than any of git's.
    """
    with open_regular_file(file, follow_links=follow_links) as opened:
        content = opened.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(file))
    return content


def read_settings(config: Path) -> dict[str | None, str]:
    """The value of each setting in `config`, as it is written; none if it cannot be read."""
    try:
        return values_in(read_text(config))
    except OSError:
        return {}


def values_in(text: str) -> dict[str | None, str]:
    """As `read_settings`, for the text of a settings file."""
    return {line.name: line.text.partition("=")[2].strip() for line in lines_of(text)}
