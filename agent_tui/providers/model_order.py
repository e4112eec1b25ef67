"""The order of models in lists, read from their names: no table has their release dates."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

_DATE: Final = re.compile(
    r"[-@.](?:20\d\d-?[01]\d-?[0-3]\d|[01]\d-20\d\d|\d{4})(?=$|[-:@.])"  # 20251101, 10-2025, 0613
)
_VERSION: Final = re.compile(
    r"(?:^|[^\d.])(\d{1,3}(?:\.\d{1,3})*)(?![\d.]|[bm](?:$|\W)|x\d)((?:-\d{1,2}(?![\w.]))*)"
)
"""A version number, not a size as in ``27b`` or ``8x7b``; including parts after dashes."""


def newest_first(names: Iterable[str]) -> list[str]:
    """`names` (``provider/model``) by version, the highest first; those without one at the end.

    Names of one version stay together: the plain name, then its variants.
    """
    return sorted(names, key=_age)


def is_aside(name: str, names: Collection[str]) -> bool:
    """Whether `name` is rarely wanted: a fine-tune, or the snapshot of a model in `names`."""
    model_id = name.partition("/")[2] or name
    undated = undated_name(name)
    return model_id.startswith("ft:") or (undated != name and undated in names)


def undated_name(name: str) -> str:
    """A model's name without a snapshot date; unchanged if it has none."""
    return _DATE.sub("", name)


def version_of(name: str) -> tuple[int, ...]:
    """The first version in a model's name: (4, 5) for ``claude-opus-4-5``; empty without one.

    Digits after a point are a fraction: ``grok-4.20`` came before ``grok-4.3``.
    """
    found = _VERSION.search(undated_name(name.rpartition("/")[2]).lower())
    numbers = re.findall(r"[.-]?\d+", "".join(found.groups())) if found else ()
    return tuple(_number(text) for text in numbers)


def _number(text: str) -> int:
    digits = text.lstrip(".-")
    return int((digits.rstrip("0") or "0") if text.startswith(".") else digits)


def _age(name: str) -> tuple[bool, Sequence[int], str]:
    version = version_of(name)
    return not version, [*(-number for number in version), 1], name  # the 1 sorts 5 after 5.5
