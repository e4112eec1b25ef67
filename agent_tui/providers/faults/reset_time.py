"""Limits and when they reset, as a response states it in its headers, its body or its text."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, TypeGuard

LONGEST_S: Final = 366 * 86_400.0
"""What is later than this is a misread number."""

_EPOCH_S: Final = 1e9
_EPOCH_MS: Final = 1e11
"""Numbers from these on are a time since 1970; smaller ones are seconds from now."""

_TELLING = re.compile(r"retry|reset|rate-?limit|x-codex-.*percent", re.I)
_MOST_FIELDS, _MOST_CHARS, _MOST_DEPTH = 64, 100, 8

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
UNIT_S: Final = {"ms": 0.001, "mil": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_PART = re.compile(
    r"(?:,? (?:and )?)?(?P<number>\d+(?:\.\d+)?) ?(?P<unit>ms|milliseconds?|s(?:ec(?:ond)?s?)?"
    r"|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?)(?![a-z])",
    re.I,
)
_BEFORE_DURATION = re.compile(
    r"(?:again|retry|resets?) (?:in|after) |(?:retryDelay|quotaResetDelay)\W{1,8}", re.I
)
_TIME = re.compile(
    r"limit reached\|(?P<epoch>\d{10,13})\b"
    r"|(?:again|resets?) (?:at|on):? (?P<time>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d))",
    re.I,
)


def telling_fields(value: object, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the names, in lower case, and values of headers or body fields for `seconds_to_reset`.

    Args:
        value: Headers, or a response's body as parsed JSON.
        depth: How deep in the body it is.
    """
    if depth > _MOST_DEPTH:
        return
    if isinstance(value, list | tuple):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from telling_fields(item, depth + 1)  # pyright: ignore[reportUnknownArgumentType]
    elif _is_mapping(value):
        for name, inner in value.items():
            if isinstance(inner, str | int | float) and _TELLING.search(str(name)):
                yield str(name).lower(), str(inner)[:_MOST_CHARS]
            elif not isinstance(inner, str):
                yield from telling_fields(inner, depth + 1)


def first_fields(fields: Iterator[tuple[str, str]]) -> dict[str, str]:
    """At most 64 of `fields`; of those with one name the first."""
    found: dict[str, str] = {}
    for name, value in fields:
        found.setdefault(name, value)
        if len(found) == _MOST_FIELDS:
            break
    return found


def seconds_to_reset(
    headers: Mapping[str, str], fields: Mapping[str, str], text: str, now: datetime
) -> float | None:
    """Seconds until the server takes requests again, as it states; None if it does not.

    ``Retry-After`` (RFC 9110, 10.2.3) and OpenAI's finer ``retry-after-ms`` come first. Then fields
    of the body count: ``resets_in_seconds`` and ``resets_at`` of ChatGPT subscriptions
    (github.com/earendil-works/pi/issues/4172), Google's ``retryDelay`` (google.rpc.RetryInfo) and
    ``quotaResetDelay`` (github.com/router-for-me/CLIProxyAPI/pull/449).

    Then come the limits that are used up, the latest reset first: ``anthropic-ratelimit-X-reset``
    (RFC 3339) and ``x-ratelimit-reset-X`` (OpenAI and Groq: ``6m0s``; OpenRouter: milliseconds
    since 1970, in headers that its body repeats) if their ``remaining`` is 0,
    ``anthropic-ratelimit-unified-reset`` if its ``status`` is ``rejected``
    (github.com/griffinwork40/agent-afk/issues/488), and ``x-codex-primary-reset-after-seconds`` if
    its ``used-percent`` is 100 (github.com/icebear0828/codex-proxy/issues/65). Last, the text:
    ``try again in 3h 5m``, ``usage limit reached|1735689600``.

    Args:
        headers: Response headers by lower-case name.
        fields: Fields of the body, as `telling_fields` finds them.
        text: The response's text.
        now: The present time, with its time zone.
    """
    for name in ("retry-after-ms", "retry-after"):
        if (seconds := _seconds(name, headers.get(name, ""), now)) is not None:
            return seconds
    direct = (_seconds(name, value, now) for name, value in fields.items() if _is_time(name))
    for found in (
        direct,
        _resets_of_spent_limits(fields, now),
        _resets_of_spent_limits(headers, now),
    ):
        known = [seconds for seconds in found if seconds is not None]
        if known:
            return max(known)
    return _seconds_in_text(text, now)


def _is_time(name: str) -> bool:
    """Whether a field of a body says, on its own, when to try again."""
    return "limit" not in name and "percent" not in name


def _resets_of_spent_limits(fields: Mapping[str, str], now: datetime) -> Iterator[float | None]:
    """Yield the seconds to the reset of each limit that is used up."""
    for limit in limits_in(fields, now):
        if limit.is_spent:
            yield limit.reset_s


@dataclass(frozen=True, slots=True)
class LimitInHeaders:
    """One limit in headers: its name there, and the seconds to its reset, if they can be read."""

    name: str
    left: float | None
    is_spent: bool
    reset_s: float | None


def limits_in(fields: Mapping[str, str], now: datetime) -> Iterator[LimitInHeaders]:
    """Yield each limit whose reset `fields` state."""
    for name, value in fields.items():
        before, is_reset, after = name.partition("reset")
        if not is_reset or "overage" in name:
            continue
        after = after.removeprefix("s")
        left = number_in(fields, f"{before}remaining{after}")
        most = number_in(fields, f"{before}limit{after}")
        percent = number_in(fields, f"{before}used-percent")
        used = number_in(fields, f"{before}utilization{after}")
        if percent is not None:
            used = percent / 100
        share = 1 - used if used is not None else left / most if left is not None and most else None
        yield LimitInHeaders(
            f"{before.removesuffix('-')}{'' if percent is not None else after}",
            None if share is None else min(max(share, 0.0), 1.0),
            left == 0
            or (percent is not None and percent >= 100)
            or fields.get(f"{before}status{after}") == "rejected",
            _seconds(name, value, now),
        )


def number_in(fields: Mapping[str, str], name: str) -> float | None:
    """The number that a field holds; None if it holds none."""
    return float(found[0]) if (found := _NUMBER.fullmatch(fields.get(name, ""))) else None


def _seconds(name: str, value: str, now: datetime) -> float | None:
    """Seconds from `now` that a number, a duration or a time means; None if it is none of them."""
    value = value.strip()
    if _NUMBER.fullmatch(value):
        return _seconds_of_number(float(value) / (1_000 if name.endswith("-ms") else 1), now)
    if (duration := _duration(value, 0)) is not None and duration[1] == len(value):
        return _within_bounds(duration[0])
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            time = parse(value)
            time = time if time.tzinfo else time.replace(tzinfo=UTC)
            return _within_bounds((time - now).total_seconds())
        except (ValueError, OverflowError):
            continue
    return None


def _seconds_of_number(number: float, now: datetime) -> float | None:
    if number >= _EPOCH_MS:
        number /= 1_000
    return _within_bounds(number - now.timestamp() if number >= _EPOCH_S else number)


def _duration(text: str, at: int) -> tuple[float, int] | None:
    """The seconds of the duration at a place in `text`, and where it ends; None without one."""
    seconds, end = 0.0, at
    while (part := _PART.match(text, end)) is not None:
        unit = part["unit"].lower()
        size_s = next(size for name, size in UNIT_S.items() if unit.startswith(name))
        seconds, end = seconds + float(part["number"]) * size_s, part.end()
    return (seconds, end) if end > at else None


def _seconds_in_text(text: str, now: datetime) -> float | None:
    for before in _BEFORE_DURATION.finditer(text):
        if (duration := _duration(text, before.end())) is not None:
            return _within_bounds(duration[0])
    if (found := _TIME.search(text)) is None:
        return None
    return _seconds("", found["epoch"] or found["time"], now)


def _within_bounds(seconds: float) -> float | None:
    return max(seconds, 0.0) if seconds <= LONGEST_S else None


def _is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    return isinstance(value, Mapping)
