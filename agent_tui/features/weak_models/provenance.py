"""Whether a call was in what the model was sent: then it is a quotation and must not run."""

import html
import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from pydantic import JsonValue

from agent_tui.features.weak_models.offered import WrittenCall

_LINE_MARK = re.compile(
    r"^[ \t]*(?:\S{1,200}?[:-]\d+[:-]|\d+[ ]*[\t|:→-]|[+>|#*-]|//)+[ \t]?", re.M
)
"""What tools, diffs, mails and comments put before the lines they show."""
_QUOTES = re.compile(r"""["'`“”‘’«»]+""")
_NOISE = re.compile(r"[\s\\\u00ad\u200b-\u200f\u2060\ufeff]+")
_BEFORE_CALLEE = re.compile(r"(?<=\w)\s+(?=[A-Za-z_][\w.]*+\()")
"""White space that separates ``run read(`` from ``spread(``."""

_CODE_POINT = re.compile(r"\\+u00([2-7][0-9a-f])", re.I)
_NAME_PLACES = (
    r"(?:[\"=>:/]|(?<![a-z0-9_])(?:functions|default_api|tools?|api)[.:]|(?<![a-z0-9_.])){name}"
    r"(?=[\"(<:{{>\[]|\.call\(|action_?input)"
)
"""Where a text of `_plain` names a tool as calls do; ``parser.read(`` is a method."""

_NEAR_CHARS = 400
_LEAST_CUT_CHARS = 10
"""A text argument of this length counts as quoted even if the quoted text continues."""


class SentTexts:
    """Everything a model was sent that it did not write itself.

    The comparison ignores what changes when text is copied: white space, invisible characters,
    quotes, escapes, line numbers, HTML entities, case. It also finds a call copied in another form:
    the name near all of the arguments, in any order. If a call has text arguments, only they are
    compared, not a changed limit or timeout. In doubt a call counts as a quotation: it stays
    visible, and nothing happens.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._given = tuple(texts)

    def hold(self, call: WrittenCall, written: str) -> bool:
        """Whether `call`, which the model wrote as `written`, is in one of the texts."""
        name = call.name.casefold()
        raw = _plain(written)
        arguments = list(_leaves("", call.arguments))
        texts = [(key, value) for key, value in arguments if isinstance(value, str) and value]
        leaves = [_leaf_forms(name, *leaf) for leaf in texts or arguments]
        return any(
            _has_whole(text, raw) or (leaves and _has_parts(text, name, leaves))
            for text in self._views
        )

    @cached_property
    def _views(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(view for text in self._given for view in _views_of(text)))


def _views_of(text: str) -> Iterator[str]:
    """`text` as it may have been copied: unchanged, and without the marks before its lines."""
    if "&" in text:
        text = html.unescape(text)
    if "\\u00" in text:
        text = _CODE_POINT.sub(lambda code: chr(int(code[1], 16)), text)
    yield _plain(text)
    yield _plain(_LINE_MARK.sub("", text))


def _plain(text: str) -> str:
    parted = _BEFORE_CALLEE.sub(";", text)
    return _QUOTES.sub('"', _NOISE.sub("", parted)).casefold()


def _has_whole(text: str, raw: str) -> bool:
    at = text.find(raw)
    while at > 0 and raw[:1].isalnum() and (text[at - 1].isalnum() or text[at - 1] == "_"):
        at = text.find(raw, at + 1)
    return at >= 0


def _has_parts(text: str, name: str, leaves: list[tuple[str, ...]]) -> bool:
    """Whether every argument is near one place where the tool is named."""
    if not all(any(form in text for form in forms) for forms in leaves):
        return False
    size = sum(max(map(len, forms)) for forms in leaves) + _NEAR_CHARS
    return any(
        all(any(form in part for form in forms) for forms in leaves)
        for part in _parts_near(text, name, size)
    )


def _parts_near(text: str, name: str, size: int) -> Iterator[str]:
    """The text within `size` characters of the tool's name; each character once or twice."""
    parts: list[tuple[int, int]] = []
    for place in re.finditer(_NAME_PLACES.format(name=re.escape(name)), text):
        begin = max(place.start() - size, 0)
        if parts and begin <= parts[-1][1]:
            begin = parts.pop()[0]
        parts.append((begin, place.end() + size))
    return (text[begin:end] for begin, end in parts)


def _leaves(key: str, value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """Every argument that is not a list or object, with its name; empty in a list."""
    if isinstance(value, dict):
        for inner_key, inner in value.items():
            yield from _leaves(inner_key, inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves("", inner)
    else:
        yield key, value


def _leaf_forms(tool: str, key: str, value: JsonValue) -> tuple[str, ...]:
    """How an argument of `tool` may appear in a text, in the form of `_plain`."""
    name = _plain(key)
    spellings = {_plain(json.dumps(value)), _plain(json.dumps(value, ensure_ascii=False))}
    if isinstance(value, str):
        spellings.add(f'"{_plain(value)}"')
        bare = {_plain(value)}
    else:
        bare = {_plain(str(value)), _plain(json.dumps(value))}
        spellings |= bare
    spellings = {_QUOTES.sub('"', spelling) for spelling in spellings}
    forms: list[str] = []
    for spelling in sorted(spellings):
        if len(spelling) >= _LEAST_CUT_CHARS + 2:
            spelling = spelling.removesuffix('"')
        if name:
            forms += [f'"{name}":{spelling}', f"{name}:{spelling}"]
            forms += [f"{name}={spelling}", f"{tool}({spelling}"]
        else:
            forms.append(spelling)
    if name:
        for spelling in sorted(bare):
            forms += [f"{name}>{spelling}<", f'{name}">{spelling}<']
            forms.append(f"{name}</arg_key><arg_value>{spelling}</arg_value>")
    return tuple(forms)
