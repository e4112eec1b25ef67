"""The allow rules offered for one part of a command: a sensible prefix, or the exact words.

A prefix holds a program and its verb, an interpreter's script, or the program a runner starts.
"""

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent_tui.permissions.rules import OFFERED_GIT_VERBS, program_names
from agent_tui.permissions.shell.words import OUTPUT_OF_A_COMMAND, CommandPart, Word
from agent_tui.permissions.shell.wrappers import SHELLS, runs_its_words, unwrap

_WITH_VERBS = frozenset({"cargo", "go", "npm", "pnpm", "yarn", "bun", "make", "just"})
_WORK_VERB_NAMES = """
    bench build check clippy compile doc fmt format lint start test typecheck verify vet
"""
_WORK_VERBS = frozenset(_WORK_VERB_NAMES.split())
"""Verbs that work on the project's content and transfer nothing."""
_OWN_VERBS = frozenset({"make", "just"})
"""Programs whose verbs the project defines."""
_RUNNER = re.compile(
    r"(?:(?:uv|poetry|pdm|hatch|pipenv|rye) run|(?:npm|pnpm|yarn) (?:exec|dlx)|npx|uvx|bunx)(?= )"
)
"""Programs that start another program, named by their next word."""
_CHECKER_NAMES = """
    pytest ruff mypy pyright tsc eslint prettier jest vitest black isort
"""
_CHECKERS = frozenset(_CHECKER_NAMES.split())
"""Programs whose name alone is offered as a rule."""
_INTERPRETER = re.compile(
    r"(?:python|pypy|node|ruby|lua|php|perl|deno|bun|tclsh|Rscript|julia|osascript|groovy|scala)[\d.]*"
)

_GATE_VERBS = frozenset({"push", "pull", "fetch", "clone"})
"""What git does with other machines; forced pushes ask whatever a rule says."""

_MAX_RULE_CHARS = 160
"""Characters in a rule; nobody would read a longer one in a list."""
_MAX_FIXED = 8
"""Words examined; in commands that people write, later words never decide what runs."""
_PLAIN_WORD = re.compile(r"[\w@%+=:,./][\w@%+=:,./-]*", re.ASCII)
_SUFFIX = re.compile(r"\.[A-Za-z]\w*$")
_INPUT = re.compile(r"@?-|@?/+(?:dev/(?:stdin|fd)|proc)\b.*", re.DOTALL)
"""Words that stand for data the program reads, which no rule shows."""
_GOES_ON_READING = re.compile(r"-[A-Za-z]*[is][A-Za-z]*|--interactive")
"""Options with which an interpreter also runs what it reads."""


def rules_for_part(
    part: CommandPart, folder: Path, *, is_fed: bool, leaves: bool = False
) -> Iterator[str]:
    """The rules that could be offered for `part`, as text, the widest first.

    Args:
        part: One part of a command.
        folder: Where programs named by a path are looked up.
        is_fed: Whether it may read a file that the shell opens.
        leaves: Whether it would leave the sandbox; then rules for git with remotes are offered.
    """
    if part.kind != "command" or not part.words:
        return
    verb = part.words[1].value if len(part.words) > 1 else None
    is_alone = part.note != "wrapper" and part.is_wrapped_plainly and not part.assignments
    if leaves and is_alone and part.name == "git" and verb in _GATE_VERBS:
        yield f"bash(git {verb} *)"
    elif is_alone and (prefix := _prefix(part, folder)):
        yield f"bash({prefix} *)"
    if exact := _exact(part, is_fed=is_fed or part.reads_pipe):
        yield f"bash({exact})"


def _prefix(part: CommandPart, folder: Path) -> str:
    """The words of `part` that decide what runs; empty if that is unknown."""
    words = [word.value if word.is_plain and word.value else "" for word in part.words]
    fixed = words[: _count_fixed_words(words[:_MAX_FIXED])]
    is_plain = all(_PLAIN_WORD.fullmatch(word) for word in fixed if word != "-m")
    is_link = len(fixed) == 1 and "/" in part.name and bool(program_names(part.name, folder))
    return " ".join(fixed) if is_plain and not is_link else ""


def _exact(part: CommandPart, *, is_fed: bool) -> str:
    """The exact words of `part`; empty if they do not determine what it does.

    A rule does not show what a program reads, so that input must not decide anything.
    """
    known = [word.value for word in part.words if word.value is not None]
    if part.input or (is_fed and not _reads_data(part)):
        return ""
    if (
        len(known) < len(part.words)
        or {"*", OUTPUT_OF_A_COMMAND} & set(known)
        or any(map(_INPUT.fullmatch, known))
    ):
        return ""
    found = unwrap(part)
    is_bare = runs_its_words(part.name) and not found.commands
    tails = (known[at:] for at in range(len(known)))  # also the program that a runner starts
    if found.scripts or is_bare or not all(map(_is_told, tails)):
        return ""
    text = " ".join((*part.assignments, *map(_text, part.words)))
    is_shown = "\n" not in text and len(text) <= _MAX_RULE_CHARS
    return text if is_shown and not text.endswith("*") and text[0] != "=" else ""


def _reads_data(part: CommandPart) -> bool:
    """Whether what `part` reads is only data: its script or its words decide what it does."""
    is_xargs = "xargs" in (part.name, part.wrapper)
    return is_xargs or part.name == "tee" or runs_scripts(_base(part.name))


def _text(word: Word) -> str:
    """A word as it appears in a rule: as written, or its value if a variable was written."""
    return shlex.quote(word.value or "") if re.search(r"[$`]", word.source) else word.source


def _is_told(words: Sequence[str]) -> bool:
    """Whether the words of a program that could read its instructions already give them."""
    name = _base(words[0])
    is_interpreter = runs_scripts(name)
    if not is_interpreter and (name in _WITH_VERBS or not _INTERPRETER.fullmatch(name)):
        return True
    told = [word for word in words[1:] if not word.startswith("-")]
    if is_interpreter:
        return bool(told) and not any(map(_GOES_ON_READING.fullmatch, words[1:]))
    return len(told) > 1


def _count_fixed_words(words: Sequence[str]) -> int:
    """How many words decide what runs; 0 if unknown."""
    runner = _RUNNER.match(" ".join(words))
    before = len(runner[0].split()) if runner else 0
    first, verb, target = (*words[before : before + 3], "", "", "")[:3]
    name = _base(first)
    if not name or runs_its_words(name):
        return 0
    if name.startswith("python") and verb == "-m":
        kept = 3 if target in _CHECKERS else 0
    elif runs_scripts(name):
        kept = 2 if _is_script(verb) else 0
    elif runner:
        kept = 1 if name in _CHECKERS or (first.endswith(".py") and _is_script(first)) else 0
    elif name == "git":
        kept = 2 if verb in OFFERED_GIT_VERBS else 0
    elif name in _WITH_VERBS:
        kept = _count_fixed_verbs(name, verb, target)
    else:
        kept = 1 if name in _CHECKERS or _is_own_program(first) else 0
    return before + kept if kept else 0


def _count_fixed_verbs(name: str, verb: str, target: str) -> int:
    """How many words decide what a program with verbs does."""
    if verb == "run" and name == "go":
        return 3 if target.startswith("./") else 0
    if verb == "run" and name not in (*_OWN_VERBS, "cargo"):
        return 3 if target and not _runs_others(target) else 0
    is_own = name in _OWN_VERBS and verb and "=" not in verb
    return 2 if is_own or verb in _WORK_VERBS else 0


def _runs_others(name: str) -> bool:
    return runs_scripts(_base(name)) or runs_its_words(name)


def _is_script(word: str) -> bool:
    """Whether `word` looks like a script's file name, and not like a name for input data."""
    path = posixpath.normpath(word)
    is_named = "/" in word or _SUFFIX.search(word) is not None
    is_odd = word.startswith("-") or ".." in word.split("/") or "://" in word
    return is_named and not is_odd and _INPUT.fullmatch(path) is None


def _is_own_program(word: str) -> bool:
    """Whether `word` is a program of the project rather than a tool installed in it."""
    folders = word.split("/")[:-1]
    is_odd = any(re.fullmatch(r"bin|\..+", name) for name in word.split("/"))
    return bool(folders) and word[0] not in "/~" and not is_odd


def runs_scripts(name: str) -> bool:
    """Whether the program `name` runs a script that its first word names."""
    return _INTERPRETER.fullmatch(name) is not None or name in SHELLS


def _base(name: str) -> str:
    return name.rpartition("/")[2]
