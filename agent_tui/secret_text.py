"""Recognize secrets and remove them from texts: logs, errors, exports, results."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

REMOVED: Final = "[key removed]"

_SECRET_NAME: Final = re.compile(
    r"API_?KEYS?(?:_|$)"
    r"|(?:^|_)(?:(?:ACCESS|PRIVATE|SIGNING|ENCRYPTION|MASTER|ACCOUNT)_?KEY|SECRETS?"
    r"|TOKENS?|PASS|PASSWD|CREDENTIALS?|CREDS?|BEARER|COOKIE)(?:_|$)"
    r"|PASSWORD|PASSPHRASE|(?:^|_)(?:AUTH|PAT|DSN|KEY)$|_PWD(?:_|$)"
    r"|^AWS_(?!(?:DEFAULT_)?(?:REGION|OUTPUT)$|PAGER$|PROFILE$)",
    re.IGNORECASE,
)
"""``DSN`` and ``COOKIE`` are how error trackers and X displays name what lets one in.

``PWD`` and ``OLDPWD`` are folders.
"""

_KEY: Final = re.compile(
    r"""
      \b(?:sk|pk|rk|xai|nvapi)-(?=[\w*.-]{0,99}[0-9*])[\w*.-]{12,}    # model providers
    | \b(?:gsk|hf)_[A-Za-z0-9]{20,}
    | \bAIza[\w-]{20,}
    | \b(?:gh[pousr]_|github_pat_|glpat-|npm_|dop_v1_|shpat_)[\w-]{16,}
    | \bxox[abeprs]-[\w-]{10,}
    | \bpypi-[\w-]{16,}
    | \b(?:[sr]k_live_|whsec_)[A-Za-z0-9+/=]{16,}
    | \bSG\.[\w-]{16,}\.[\w-]{16,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
    | \beyJ[\w-]{10,999}\.eyJ[\w-]{10,9999}\.[\w-]*                  # JSON web tokens
    | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----                         # whole, or cut within
      (?:(?:[A-Za-z0-9+/=\s|:>]|\\[nr])++-----END[ ][A-Z ]*PRIVATE[ ]KEY-----
        |(?:\s|\\[nr])*+(?:[A-Za-z0-9+/=]{40,}+(?:\s|\\[nr])*+)++)
    """,
    re.VERBOSE,
)
"""Shapes that nothing else has: hashes, UUIDs and images in Base64 do not match.

What is looked for ahead is bounded: else a long text of beginnings would take for ever.
"""

_KEY_STARTS: Final = (
    *("sk-", "pk-", "rk-", "xai-", "nvapi-", "gsk_", "hf_", "AIza", "SG.", "AKIA", "ASIA", "eyJ"),
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "npm_", "dop_v1_"),
    *("shpat_", "xox", "pypi-", "sk_live_", "rk_live_", "whsec_", "-----BEGIN "),
)
"""Each match of `_KEY` begins with one of these: they are found 20 times as fast as by `re`."""

_WEBHOOK: Final = re.compile(
    r"""
    (https://(?:
        hooks\.slack\.com/(?:services|workflows|triggers)/
      | (?:[a-z]{1,20}\.)?discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/
      | [\w-]{1,63}\.webhook\.office\.com/
      | hooks\.zapier\.com/hooks/catch/
      | api\.telegram\.org/bot
    ))[\w./:@%+-]{8,}
    """,
    re.VERBOSE,
)
"""Addresses that let anyone who knows them post."""

_IN_CONNECTION: Final = re.compile(
    r"((?:;|\A|\bhost=\S{1,253}\s(?:\S{1,253}\s){0,8})\s*(?:password|pwd)\s?=\s?)"
    r"(?![$<{*])[^;\s\"']{3,}",
    re.IGNORECASE,
)
"""``Server=db;Password=...`` and libpq's ``host=db password=...``."""

_ANNOUNCED: Final = re.compile(
    r"""
    ( \bBearer[ ]
    | \bAuthorization["']?\s*[:=]\s*["']?(?:Basic|Token)[ ]
    | \b(?:x-)?api-key["']?\s*:\s*["']?
    )(?=[\w.~+/=-]{0,99}[0-9])[A-Za-z0-9][\w.~+/=-]{7,}
    | ([?&](?:password|passwd|(?:access_|auth_)?token|api_?key|client_secret)=)[^&\s"'\#<>]{6,}
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ANNOUNCED_MARKS: Final = (
    *("bearer ", "author", "-key", "password=", "passwd=", "token=", "key=", "secret="),
)
_CONNECTION_MARKS: Final = ("password", "pwd")
"""Each match of `_ANNOUNCED` or `_IN_CONNECTION` has one of these, without regard to case.

No ``i`` is in them, as `re` takes a dotless one for it and `str.casefold` does not.
"""

_PRIVATE_KEY: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_PASSWORD_IN_ADDRESS: Final = re.compile(r"(://[^/\s:@\"'<>]*:)(?![$<{*])[^/\s@\"'<>]+(?=@)")

_LEAST_CHARS: Final = len("://:x@")
"""No shape is shorter."""

_USER_IN_ADDRESS: Final = re.compile(r"(?<=://)[^/\s@\"'<>]*@|\A[^/\s:@\"'<>]*:[^/\s@\"'<>]*@")


def mask_secrets(text: str, known_values: Iterable[str] = ()) -> str:
    """`text` with each of `known_values` and everything shaped like a secret replaced by `REMOVED`.

    The shapes: keys and tokens of well-known services, JSON web tokens, private keys, what
    follows ``Authorization``, addresses of webhooks, and passwords in addresses and connection
    strings.
    """
    text = mask_values(text, known_values)
    if len(text) < _LEAST_CHARS:
        return text
    text = _mask_keys(text)
    folded = text.casefold()
    if [mark for mark in _ANNOUNCED_MARKS if mark in folded]:
        text = _ANNOUNCED.sub(lambda found: f"{found[1] or found[2]}{REMOVED}", text)
    if "://" in text:
        text = _WEBHOOK.sub(rf"\1{REMOVED}", text)
    if [mark for mark in _CONNECTION_MARKS if mark in folded]:
        text = _IN_CONNECTION.sub(rf"\1{REMOVED}", text)
    return _PASSWORD_IN_ADDRESS.sub(rf"\1{REMOVED}", text) if "://" in text else text


def _mask_keys(text: str) -> str:
    """`text` with each match of `_KEY` replaced."""
    pieces: list[str] = []
    place = 0
    for first, last in _keys_in(text):
        pieces += (text[place:first], REMOVED)
        place = last
    return "".join((*pieces, text[place:])) if pieces else text


def _keys_in(text: str) -> Iterator[tuple[int, int]]:
    """Where the matches of `_KEY` begin and end in `text`, in their order."""
    present = [start for start in _KEY_STARTS if start in text]
    starts = sorted(at for start in present for at in _occurrences(start, text))
    end = 0
    for start in starts:
        if start >= end and (found := _KEY.match(text, start)) is not None:
            end = found.end()
            yield start, end


def _occurrences(part: str, text: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def mask_values(text: str, known_values: Iterable[str]) -> str:
    """`text` with each of `known_values` replaced by `REMOVED`, the longest first."""
    present = [value for value in known_values if value and value in text]
    for value in sorted(present, key=len, reverse=True):
        text = text.replace(value, REMOVED)
    return text


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name usually holds a secret."""
    return _SECRET_NAME.search(name) is not None


def has_key(text: str) -> bool:
    """Whether something in `text` has the shape of a key or a token, or begins a private key."""
    if next(_keys_in(text), None) is not None:
        return True
    shapes = (_ANNOUNCED, _PRIVATE_KEY, _WEBHOOK, _IN_CONNECTION)
    return any(shape.search(text) for shape in shapes)


def has_password_in_address(text: str) -> bool:
    """Whether `text` has an address such as ``https://name:password@host``."""
    return _PASSWORD_IN_ADDRESS.search(text) is not None


def without_user(address: str) -> str:
    """`address` without a user and password in it."""
    return _USER_IN_ADDRESS.sub("", address)
