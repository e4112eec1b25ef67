"""The headline definitions of a file, by a pattern for each language: no parser, no model."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType

_LOOKED_AT_CHARS = 60_000
_MOST_NAMES = 14
_MOST_CHARS = 160

_NUMBER = r"\n(?:[ \t]*\d+(?:\t|→|: |\| ))?"
"""The start of a line, with the number that a tool for reading may have put there."""

_MODIFIERS = (
    r"(?:(?:export|default|declare|public|private|protected|internal|static|abstract|async|final"
    r"|sealed|open|data|override|partial|virtual|case|inline) )*"
)
_PATTERNS: Mapping[str, str] = MappingProxyType(
    {
        "python": r"(?:async def|def|class) (\w+)",
        "script": _MODIFIERS + r"(?:function\*?|class|interface|type|enum|namespace) (\w+)"
        r"|(?:export )(?:const|let|var) (\w+)",
        "go": r"(?:func (?:\([^)\n]{0,80}\) )?|type )(\w+)",
        "rust": r"(?:pub(?:\([^)\n]{0,40}\))? )?(?:(?:unsafe|async|const) )*"
        r"(?:fn|struct|enum|trait|mod|type|union|macro_rules!) (\w+)",
        "braces": r"[ \t]{0,4}"
        + _MODIFIERS
        + r"(?:class|interface|enum|struct|record|object|trait|protocol|extension|namespace|func"
        r"|fun|function|def) (\w+)",
        "c": r"(?:typedef )?(?:struct|class|enum|union|namespace) (\w+)|#define (\w+)"
        r"|[A-Za-z_][\w*& ]{1,60}[ *&](\w+(?:::\w+)?)\([^;\n]{0,200}(?=\n)",
        "ruby": r"[ \t]{0,2}(?:class|module|def) ([\w.:?!]+)",
        "elixir": r"[ \t]{0,2}(?:defmodule|defmacro|defp?) ([\w.?!]+)",
        "shell": r"(?:function )?([A-Za-z_][\w-]*) ?\(\)",
        "markdown": r"#{1,3} ([^\n]{1,60})",
        "ini": r"\[+([^\]\n]{1,60})\]",
        "yaml": r"([A-Za-z_][\w.-]*):",
        "json": r'(?: {2}| {4}|\t)"([^"\n]{1,40})":',
        "css": r"([.#@]?[A-Za-z][\w-]*)[^{};\n]{0,80}\{",
        "sql": r"(?i:create (?:or replace )?(?:unique )?\w+ (?:if not exists )?)([\w.\"]+)",
    }
)
_LANGUAGES: Mapping[str, str] = MappingProxyType(
    {
        suffix: language
        for language, suffixes in {
            "python": "py pyi",
            "script": "js jsx ts tsx mjs cjs vue svelte",
            "go": "go",
            "rust": "rs",
            "braces": "java kt kts cs swift scala dart php groovy",
            "c": "c h cc cpp cxx hpp hh m mm",
            "ruby": "rb rake",
            "elixir": "ex exs",
            "shell": "sh bash zsh",
            "markdown": "md markdown mdx",
            "ini": "toml ini cfg conf",
            "yaml": "yml yaml",
            "json": "json jsonc",
            "css": "css scss less",
            "sql": "sql",
        }.items()
        for suffix in suffixes.split()
    }
)


@dataclass(frozen=True, slots=True)
class Outline:
    """Names that a file defines, in its order; `more` counts those that are not listed."""

    names: tuple[str, ...] = ()
    more: int = 0

    def __str__(self) -> str:
        listed = ", ".join(self.names)
        return f"{listed}, +{self.more} more" if self.more else listed


def outline_of(text: str, path: str) -> Outline:
    """The definitions at the top level of `text`, and the headings of a document.

    Where there are too many, types come before functions, and what stands earlier before what
    stands later.

    Args:
        text: What was read of the file, with line numbers or without.
        path: Its suffix tells the language; of an unknown one there is no outline.
    """
    language = _LANGUAGES.get(PurePosixPath(path).suffix.lower().removeprefix("."))
    if language is None:
        return Outline()
    found = re.finditer(_NUMBER + f"(?:{_PATTERNS[language]})", f"\n{text[:_LOOKED_AT_CHARS]}\n")
    names = tuple(dict.fromkeys(name for match in found if (name := _name(match))))
    return _chosen(names)


def _name(match: re.Match[str]) -> str:
    return next((group.strip() for group in match.groups() if group), "")


def _chosen(names: tuple[str, ...]) -> Outline:
    by_weight = sorted(range(len(names)), key=lambda at: (not names[at][:1].isupper(), at))
    taken: list[int] = []
    room = _MOST_CHARS
    for at in by_weight[:_MOST_NAMES]:
        room -= len(names[at]) + 2
        if room < 0:
            break
        taken.append(at)
    return Outline(tuple(names[at] for at in sorted(taken)), len(names) - len(taken))
