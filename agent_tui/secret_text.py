"""Recognize secrets and remove them from texts: logs, errors, exports, results.

Most rules are gitleaks' (MIT licence, in ``secret_rules.LICENSE``), in ``secret_rules.json``.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

REMOVED: Final = "[key removed]"

_SECRET_NAME: Final = re.compile(
    r"API_?KEYS?(?:_|$)"
    r"|(?:^|_)(?:(?:ACCESS|PRIVATE|SIGNING|ENCRYPTION|MASTER|ACCOUNT)_?KEY|SECRETS?"
    r"|TOKENS?|PASS|PASSWD|CREDENTIALS?|CREDS?|BEARER|COOKIE)(?:_|$)"
    r"|(?:TOKENS?|SECRETS?|(?<!BY)(?<!COM)PASS|(?:SECRET|ACCESS|PRIVATE)_?KEY)$"
    r"|PASSWORD|PASSPHRASE|(?:^|_)(?:AUTH|PAT|DSN|KEY)$|_PWD(?:_|$)"
    r"|(?:_|BIND)PW$|^SSHPASS$|AUTH_CONFIG$|^(?:BW|OP)_SESSION|^BUNDLE_(?!BUILD__|LOCAL__|MIRROR__).*__"
    r"|^(?:UV_INDEX|POETRY_HTTP_BASIC)_.*_USERNAME$"
    r"|^AWS_(?!(?:DEFAULT_)?(?:REGION|OUTPUT)$|PAGER$|PROFILE$)",
    re.IGNORECASE,
)
"""``DSN`` and ``COOKIE`` are how error trackers and X displays name what lets one in, ``SESSION``
how password managers do. Bundler's variables name hosts, and some indexes take a token as the user.

``PWD`` and ``OLDPWD`` are folders.
"""

_NEXT_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|-")


@dataclass(frozen=True, slots=True, eq=False)
class SecretRule:
    """One form of a secret.

    `pattern` is matched with `re.ASCII` where one of `marks` (in lower case) stands, and at each of
    the `lead` characters before; without marks, it is searched for. The first group that matched is
    the secret, else the whole match. The rule holds if one of `keywords` is anywhere in the text,
    the secret's entropy is above `entropy` (bits a character), and `allowed` is not in it.
    """

    name: str
    pattern: str
    marks: tuple[str, ...]
    lead: int = 0
    keywords: tuple[str, ...] = ()
    entropy: float = 0.0
    allowed: str = ""


_KEYS: Final = SecretRule(
    "key",
    # Model providers; and services whose keys were or are cut, or of another length than gitleaks'.
    r"\b(?:(?:sk|pk|rk|xai|nvapi)-(?=[\w*.-]{0,99}[0-9*])[\w*.-]{12,}"
    r"|(?:gsk|hf)_[A-Za-z0-9]{20,}"
    r"|(?:gh[pousr]_|github_pat_|glpat-|dop_v1_|shpat_|pypi-Ag)[\w-]{16,}"
    r"|xox[abeprs]-[\w-]{10,}"
    r"|whsec_[A-Za-z0-9+/=]{16,})",
    (
        *("sk-", "pk-", "rk-", "xai-", "nvapi-", "gsk_", "hf_", "ghp_", "gho_", "ghu_", "ghs_"),
        *("ghr_", "github_pat_", "glpat-", "dop_v1_", "shpat_", "pypi-ag", "whsec_"),
        *("xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-"),
    ),
)
_JSON_WEB_TOKEN: Final = SecretRule(
    "json-web-token",
    r"\beyJ[\w-]{10,999}\.eyJ[\w-]{10,9999}\.[\w-]*",
    ("eyj",),
)
"""What is looked for ahead is bounded: else a long text of beginnings would take for ever."""

_KEY_MARK: Final = r"[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----"
_KEY_HEADER: Final = r"[A-Z][A-Za-z-]{2,20}:[ ][^\n\\]{0,200}"
_BETWEEN_LINES: Final = r"(?:[\s|>→]|\\[nrt]|\d{1,6}[\t|:→>])"
_BASE64: Final = "[A-Za-z0-9+/=]"
_PRIVATE_KEY: Final = SecretRule(
    "private-key",
    rf"-----BEGIN{_KEY_MARK}"
    rf"(?:(?>(?:{_KEY_HEADER}|[A-Za-z0-9+/=\s|:>→]|\\[nrt])+)-----END{_KEY_MARK}"
    rf"|(?>(?:{_BETWEEN_LINES}|{_KEY_HEADER})*){_BASE64}{{40,}}+"
    rf"(?>(?:{_BETWEEN_LINES}+{_BASE64}{{40,}})*)"
    rf"(?:(?>{_BETWEEN_LINES}+)(?=[a-z]{{0,39}}[A-Z0-9+/=]){_BASE64}{{1,39}}+(?![ \t]*\w))?)",
    ("-----begin ",),
)
"""Of PEM and of PGP: whole, or cut within. With line numbers, quoted, and as a text of JSON.

Before Python 3.11.5, a group with ``*+`` or ``++`` keeps what its last, failed round matched
(python/cpython#106052); ``(?>...)`` does not.
"""

_WEBHOOK: Final = SecretRule(
    "webhook",
    r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/"
    r"|discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/"
    r"|\.webhook\.office\.com/"
    r"|hooks\.zapier\.com/hooks/catch/"
    r"|api\.telegram\.org/bot)([\w./:@%+-]{8,})",
    (
        *("hooks.slack.com/", "discord.com/api/", "discordapp.com/api/", ".webhook.office.com/"),
        *("hooks.zapier.com/hooks/catch/", "api.telegram.org/bot"),
    ),
)
"""Addresses that let anyone who knows them post."""

_IN_CONNECTION: Final = SecretRule(
    "connection",
    r"(?i)(?:(?:\A|(?<=\A\s)|(?<=;)|(?<=;\s)|(?<=;\s\s))"
    r"|host=\S{1,253}\s(?:\S{1,253}\s){0,8}?)"
    r"(?:password|pwd)\s?=\s?(?![$<{*])([^;\s\"']{3,})",
    ("password", "pwd", "host="),
)
"""``Server=db;Password=...`` and libpq's ``host=db password=...``."""

_ANNOUNCED: Final = SecretRule(
    "announced",
    r"(?i)(?:\bBearer[ ]"
    r"|\bAuthorization[\"']?\s*[:=]\s*[\"']?(?:Basic|Token)[ ]"
    r"|\bapi-key[\"']?\s*:\s*[\"']?"
    r")(?=[\w.~+/=-]{0,99}[0-9])([A-Za-z0-9][\w.~+/=-]{7,})",
    ("bearer ", "authorization", "api-key"),
)
_IN_QUERY: Final = SecretRule(
    "query",
    r"(?i)(?<=[?&])(?:password|passwd|(?:access_|auth_)?token|api_?key|client_secret)="
    r"([^&\s\"'#<>]{6,})",
    (
        *("password=", "passwd=", "access_token=", "auth_token=", "token=", "api_key=", "apikey="),
        "client_secret=",
    ),
)
_IN_ADDRESS: Final = SecretRule(
    "address",
    r"://[^/\s:@\"'<>]*:(?![$<{*])([^/\s@\"'<>]+)(?=@)",
    ("://",),
)
OWN_RULES: Final = (
    *(_KEYS, _JSON_WEB_TOKEN, _PRIVATE_KEY, _WEBHOOK, _IN_CONNECTION, _ANNOUNCED, _IN_QUERY),
    _IN_ADDRESS,
)

RULES_FILE: Final = Path(__file__).with_name("secret_rules.json")
"""Gitleaks' rules, as `tests.support.secret_rules` translates them; see the licence beside it."""

_PRIVATE_KEY_START: Final = re.compile(rf"-----BEGIN{_KEY_MARK}")
_PASSWORD_IN_ADDRESS: Final = re.compile(_IN_ADDRESS.pattern, re.ASCII)

_LEAST_CHARS: Final = len("://:x@")
"""No secret with what announces it is shorter."""

_WEB_ADDRESS: Final = re.compile(r"(?i:https?)://([^/?\s\"'<>,|]*)([^\s\"'<>,|\]}]*)")
_AFTER_MARK: Final = re.compile(r"/t/.|/priv/.")
"""How conda (``conda.common.url``) and packagecloud announce a token."""

_WORD: Final = re.compile(r"[A-Za-z0-9]+")
_IS_WORD: Final = re.compile(
    r"\d{1,12}|[a-z0-9]{1,4}"
    r"|\d{0,4}(?:[a-z]{1,20}|[A-Z]{1,20}|[A-Z]{0,4}[a-z]+(?:[A-Z]{1,4}[a-z]{2,}){0,3})\d{0,4}"
    r"|[a-z]{1,8}\d{1,2}[a-z]{1,4}\d?"
)
"""A number, or letters as people write them: ``simple``, ``cu121``, ``MyFeed``, ``neo4j``."""

_NOT_IN_KEYS: Final = re.compile(r"[^!-~]+")
_USER_IN_ADDRESS: Final = re.compile(r"(?<=://)[^/\s@\"'<>]*@|\A[^/\s:@\"'<>]*:[^/\s@\"'<>]*@")


def mask_secrets(text: str, known_values: Iterable[str] = ()) -> str:
    """`text` with each of `known_values` and everything shaped like a secret replaced by `REMOVED`.

    The shapes: keys and tokens of the services that gitleaks knows, JSON web tokens, private keys,
    what follows ``Authorization``, addresses of webhooks, and passwords in addresses and connection
    strings.
    """
    text = mask_values(text, known_values)
    pieces: list[str] = []
    place = 0
    for start, end in sorted(found[:2] for found in find_secrets(text)):
        if start >= place:
            pieces += (text[place:start], REMOVED)
        place = max(place, end)
    return "".join((*pieces, text[place:])) if pieces else text


@dataclass(frozen=True, slots=True)
class _Rules:
    """All rules, and the one pattern that finds where any of them may hold."""

    parts: re.Pattern[bytes]
    by_part: Mapping[bytes, Sequence[tuple[SecretRule, int]]]
    """For each text that `parts` finds: the rules with a mark that has it, and where in the mark.

    A search stops at each character that a part can begin with. So parts begin with rare ones.
    """

    without_marks: Sequence[SecretRule]


@cache
def _all_rules() -> _Rules:
    data = _read_rules()
    rules = (*OWN_RULES, *load_rules())
    cuts = [
        (rule, cut_of(mark, data["part_starts"]), mark) for rule in rules for mark in rule.marks
    ]
    parts = re.compile(_shortest_of({mark[cut:] for _, cut, mark in cuts}).encode())
    by_part: dict[bytes, dict[tuple[SecretRule, int], None]] = {}
    for rule, cut, mark in cuts:
        if found := parts.match(mark[cut:].encode()):
            by_part.setdefault(found[0], {})[rule, cut] = None
    return _Rules(
        parts,
        {part: tuple(uses) for part, uses in by_part.items()},
        [rule for rule in rules if not rule.marks],
    )


LEAST_PART: Final = 3


def cut_of(mark: str, starts: str) -> int:
    """How many characters of `mark` are before the part of it that is searched for.

    The part begins with one of `starts`, and has `LEAST_PART` characters.
    """
    return next(at for at in range(len(mark) - LEAST_PART + 1) if mark[at] in starts)


@cache
def _read_rules() -> Mapping[str, Any]:
    return json.loads(RULES_FILE.read_text(encoding="utf-8"))


@cache
def load_rules() -> tuple[SecretRule, ...]:
    """Gitleaks' rules, from `RULES_FILE`; read when they are first needed."""
    data = _read_rules()
    everywhere: str = data["allowed"]
    return tuple(
        SecretRule(
            rule["id"],
            rule["pattern"],
            tuple(rule["marks"]),
            rule.get("lead", 0),
            tuple(rule.get("keywords", ())),
            rule.get("entropy", 0.0),
            "|".join(filter(None, (everywhere, rule.get("allowed")))),
        )
        for rule in data["rules"]
    )


def _shortest_of(parts: Iterable[str]) -> str:
    """A pattern of those `parts` that begin with no other; common beginnings stand in it once.

    That makes it several times as fast as a list of alternatives.
    """
    by_first: dict[str, list[str]] = {}
    for part in sorted(parts):
        if not part:
            return ""
        by_first.setdefault(part[0], []).append(part[1:])
    branches = [re.escape(first) + _shortest_of(rests) for first, rests in by_first.items()]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


def find_secrets(text: str) -> Iterator[tuple[int, int, SecretRule]]:
    """Where each secret begins and ends in `text`. They may overlap, and are in no order."""
    for rule, found in _matches_in(text):
        if (span := secret_span(rule, found)) is not None:
            yield *span, rule


def _matches_in(text: str) -> Iterator[tuple[SecretRule, re.Match[str]]]:
    """The matches of each rule in `text`: those of one rule don't overlap."""
    if len(text) < _LEAST_CHARS:
        return
    rules = _all_rules()
    folded = text.encode("ascii", "replace").lower()  # one byte for each character
    ends: dict[SecretRule, int] = {}
    place = 0
    while (part := rules.parts.search(folded, place)) is not None:
        place = part.start() + 1
        for rule, cut in rules.by_part[part[0]]:
            if (end := ends.get(rule)) is None:
                end = ends[rule] = 0 if _may_hold(rule, folded) else len(text)
            at = part.start() - cut
            if (
                found := _first_match(rule, text, range(max(at - rule.lead, end), at + 1))
            ) is not None:
                ends[rule] = found.end()
                yield rule, found
    for rule in rules.without_marks:
        if _may_hold(rule, folded):
            yield from ((rule, found) for found in _compiled(rule.pattern).finditer(text))


def _first_match(rule: SecretRule, text: str, starts: range) -> re.Match[str] | None:
    pattern = _compiled(rule.pattern)
    for start in starts:
        if (found := pattern.match(text, start)) is not None:
            return found
    return None


def _may_hold(rule: SecretRule, folded: bytes) -> bool:
    return not rule.keywords or any(word.encode() in folded for word in rule.keywords)


def secret_span(rule: SecretRule, found: re.Match[str]) -> tuple[int, int] | None:
    """Where the secret of `found` is, unless it is too regular for one, or allowed."""
    group = next((number for number, part in enumerate(found.groups(), 1) if part), 0)
    secret = found[group]
    if rule.entropy and entropy_of(secret) <= rule.entropy:
        return None
    if rule.allowed and _compiled(rule.allowed).search(secret):
        return None
    return found.span(group)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def entropy_of(text: str) -> float:
    """Shannon's entropy of `text`, in bits a character."""
    shares = [count / len(text) for count in Counter(text).values()]
    return -sum(share * math.log2(share) for share in shares)


def mask_values(text: str, known_values: Iterable[str]) -> str:
    """`text` with each of `known_values` replaced by `REMOVED`, the longest first."""
    present = [value for value in known_values if value and value in text]
    for value in sorted(present, key=len, reverse=True):
        text = text.replace(value, REMOVED)
    return text


def holds_value(text: str, known_values: Iterable[str]) -> bool:
    """Whether `text` holds one of `known_values`, also with signs in it that a reader passes over.

    These are blanks and line breaks and, for a value in ASCII, all other characters.
    """
    bare, bare_ascii = "".join(text.split()), _NOT_IN_KEYS.sub("", text)
    for value in filter(None, known_values):
        wanted = "".join(value.split())
        if value in text or (wanted and wanted in (bare_ascii if wanted.isascii() else bare)):
            return True
    return False


def is_secret_name(name: str) -> bool:
    """Whether a variable or a setting of this name usually holds a secret."""
    return _SECRET_NAME.search(_NEXT_WORD.sub("_", name)) is not None


def has_private_key(text: str) -> bool:
    """Whether a private key begins in `text`."""
    return _PRIVATE_KEY_START.search(text) is not None


def has_key(text: str) -> bool:
    """Whether something in `text` has the shape of a key or a token, or begins a private key."""
    if has_private_key(text):
        return True
    return any(rule is not _IN_ADDRESS for *_, rule in find_secrets(text))


def has_password_in_address(text: str) -> bool:
    """Whether `text` has an address such as ``https://name:password@host``."""
    return _PASSWORD_IN_ADDRESS.search(text) is not None


def may_let_in(text: str) -> bool:
    """Whether an ``https`` address in `text` may be enough to get in.

    That is one with a user or a query, or whose path has a part that is no word. Package indexes
    (Gemfury, Cloudsmith, packagecloud, Artifactory) have tokens of any shape there.
    """
    for address in _WEB_ADDRESS.finditer(text):
        authority, path = address.groups()
        if "@" in authority or "?" in path or _AFTER_MARK.search(path):
            return True
        if not all(map(_IS_WORD.fullmatch, _WORD.findall(unquote(path)))):
            return True
    return False


def users_in(text: str) -> list[str]:
    """The users, with their passwords, in the addresses of `text`."""
    return [found[0].rstrip("@") for found in _USER_IN_ADDRESS.finditer(text)]


def without_user(address: str) -> str:
    """`address` without a user and password in it."""
    return _USER_IN_ADDRESS.sub("", address)
