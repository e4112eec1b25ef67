"""Files that hold secrets: searches skip them by their names, and reading them asks."""

import codecs
import fnmatch
import math
import os
import re
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from agent_tui import secret_text
from agent_tui.regular_files import open_regular_file

_MOST_BYTES = 1_000_000

_SECRET_NAMES = """
    .env .env.* .env[-_~]* *.env .envrc *.pem *.key *.p12 *.pfx *.jks *.kdbx id_rsa* id_dsa*
    id_ecdsa* id_ed25519* .netrc _netrc .pgpass .my.cnf .vault-token .bash_history .zsh_history
    .npmrc .pypirc .git-credentials .htpasswd .*_history .databrickscfg .dev.vars* .dockercfg .boto
    *.keystore .s3cfg .terraformrc .vault_pass* *.kubeconfig *.ppk ssh_host_*_key *.p8 *.pk8
    .mylogin.cnf .sentryclirc
"""
SECRET_GLOBS = tuple(_SECRET_NAMES.split())
_PLAIN_SECRET_NAMES = """
    .claude.json application_default_credentials.json credentials.json credentials.tfrc.json
    credentials.toml client_secret*.json deploy_key* kubeconfig kubeconfig.y*ml local.settings.json
    secrets.json secrets.toml secrets.y*ml service[-_]account*.json terraform.tfvars *.auto.tfvars
    *.tfstate *.tfstate.backup wallet.dat
"""
PLAIN_SECRET_GLOBS = tuple(_PLAIN_SECRET_NAMES.split())
"""The same, but so common that a pattern such as ``*.json`` matches them by chance."""

SECRET_FOLDERS = frozenset(
    {
        *(".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".password-store"),
        *(".mozilla", ".thunderbird", "keyrings", "github-copilot"),
    }
)
_SECRET_PAIR_NAMES = """
    .config/gcloud .config/gh .config/hub .config/op .config/rclone .config/doctl .config/chromium
    .config/google-chrome library/keychains etc/shadow etc/gshadow etc/sudoers etc/sudoers.d
    run/secrets .m2/settings.xml .fly/config.yml .oci/config .kaggle/kaggle.json nuget/nuget.config
    .envs/.local .envs/.production git-crypt/keys annex/creds
"""
SECRET_PAIRS = frozenset(
    (first, second)
    for first, _, second in (name.partition("/") for name in _SECRET_PAIR_NAMES.split())
)

_HARMLESS = (".env.example", ".env.sample", ".env.template", ".env.dist", "id_*.pub")
_IS_HARMLESS = re.compile("|".join(map(fnmatch.translate, _HARMLESS)))
_IS_SECRET = re.compile(
    rf"{'|'.join(map(fnmatch.translate, SECRET_GLOBS))}"
    rf"|\.?(?:{'|'.join(map(fnmatch.translate, PLAIN_SECRET_GLOBS))})"
)

_MOST_READ_BYTES = 4_000_000
"""Searching them takes a second. Settings are not so long; a dump of them may be."""

_CHUNK, _OVERLAP = 256_000, 16_000
"""Characters that are searched at a time, and how many of them again with the next ones."""

_MAY_HOLD_KEY = re.compile(
    r"(?:.*[^a-z])?(?:(?:api)?keys?|secrets?|credentials?|creds?|tokens?|passw(?:or)?ds?|auth|kube\w*"
    r"|database|rclone)(?:[^a-z].*)?|.*\.tfvars|\.?\w*env(?:[._-](?:local|dev|prod|stag|test)\w*)?"
)
"""Names of keys, and of much else, so the content decides: an access to a database, variables."""

_DATA_ENDING = re.compile(r".*\.(?:json|tfvars|ini|cfg|conf|properties|ya?ml|toml|xml|txt)")
_IS_DATA = re.compile(
    rf"\.?[^.]+|{_DATA_ENDING.pattern}|.*[.](?:credentials?|secrets?)|.*env[._-]\w+"
)
"""Code with such a name handles keys, and the project needs it."""

_NEXT_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")

_MOST_DATA_BYTES = 64_000
"""Of a file whose name suggests nothing. A key with the settings that it comes in has 3 kB."""

_ENDS_LIKE_KEY = re.compile(
    r".+[_.-](?:rsa|dsa|ecdsa|ed25519|asc|cer|crt|gpg|ovpn|pgp|priv|private|sec)"
)
"""Endings of certificates and keys: the file counts if a private key is in it."""

_ASSIGNED = re.compile(
    r"^[ \t]*[\"']?([\w.-]+)[\"']?[ \t]*[:=][ \t]*[\"']?"
    r"(?=[^\s\"',;]*\d)[^\s\"'#,;$<{(]{6,}[\"',;\s]*$",
    re.MULTILINE,
)
"""A value that is not a word, and its name."""

_CLIENT_KEY = "client-key-data"
"""A private key of Kubernetes, which is encoded once more."""

_HAS_WORDS = re.compile(r"[\s(]").search
_IN_BRACKETS = re.compile(r"\([^()]*\)")
_ADDED_BEFORE = re.compile(r"^(?:\.?#|\._)")
_ADDED_AFTER = re.compile(
    r"(?:~+|#+|\.?~\d+~|___jb_[a-z]+___|[._~-](?:\d+|(?:bak|backup|copy|new|old|orig|original|prev"
    r"|previous|rej|save|saved|swap|sw[a-z]|kate-swp|temp|tmp|un|dpkg-[a-z]+|rpm[a-z]+)\d*))"
    r"(\.[a-z0-9]+)?$"
)
"""What editors, package managers and backups add to a name, also before its last suffix."""


def fold_name(name: str) -> str:
    """`name` as the most tolerant file systems compare it.

    They ignore case and width (NTFS, APFS), invisible characters (HFS+), and dots and spaces at the
    end (Windows).
    """
    if name.isascii():
        plain = name.lower()
        return plain.rstrip(". ") or plain
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    visible = "".join(c for c in plain if unicodedata.category(c) != "Cf")
    return visible.rstrip(". ") or visible


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether a file of this name is likely to hold a key or password, or is a copy of one."""
    plain = fold_name(name)
    return any(map(_is_secret, _words_of(plain))) if _HAS_WORDS(plain) else _is_secret(plain)


def is_where_keys_are(names: Sequence[str]) -> bool:
    """Whether the path with these folded `names` is, or is in, a folder of keys."""
    return not SECRET_FOLDERS.isdisjoint(names) or not SECRET_PAIRS.isdisjoint(pairwise(names))


def _words_of(plain: str) -> Iterator[str]:
    """The names that a copy called `plain` may be of: ``a.json`` for ``a copy (2).json``.

    The words that are added, before or after a name, may be of any language.
    """
    words = _IN_BRACKETS.sub(" ", plain).split()
    yield from dict.fromkeys((*words[:1], *words[-1:]))
    if len(words) > 1 and "." in words[-1]:
        yield f"{words[0]}.{words[-1].rpartition('.')[2]}"


def _is_secret(name: str) -> bool:
    original = _ADDED_BEFORE.sub("", name) if name.startswith(("#", ".")) else name
    while (found := _ADDED_AFTER.search(original, 1)) is not None:
        original = original[: found.start()] + (found[1] or "")
    is_secret = _IS_SECRET.match(original) or (original != name and _IS_SECRET.match(name))
    return bool(is_secret) and not _IS_HARMLESS.match(original)


def may_hold_key(name: str) -> bool:
    """Whether the content decides if a file with this name, if not `is_secret_name`, is a key."""
    return _suggests_key(name) or _ENDS_LIKE_KEY.fullmatch(fold_name(name)) is not None


def is_data_name(name: str) -> bool:
    """Whether a file with this name has data or settings: a private key may be among them."""
    return _DATA_ENDING.fullmatch(fold_name(name)) is not None


def _suggests_key(name: str) -> bool:
    plain = fold_name(_NEXT_WORD.sub("-", name))
    return _MAY_HOLD_KEY.fullmatch(plain) is not None and _IS_DATA.fullmatch(plain) is not None


def holds_key(path: Path) -> bool:
    """Whether the content of a file that `may_hold_key` is one, or a password. Blocking.

    Of more than 4 MB, nobody knows: that counts as a key. Only a private key counts in a file that
    is merely data by its name, and in none of more than 64 kB. A file that cannot be read counts
    as one with a key.
    """
    is_likely = may_hold_key(path.name)
    most = _MOST_READ_BYTES if is_likely else _MOST_DATA_BYTES
    try:
        with open_regular_file(path, follow_links=False) as file:
            if os.fstat(file.fileno()).st_size > most:
                return is_likely
            content = file.read(most)
    except OSError:
        return is_unreadable(path, math.inf if is_likely else most)
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = content.decode("utf-16" if is_utf16 else "utf-8-sig", "replace")
    starts = range(0, len(text), _CHUNK - _OVERLAP)
    is_key = _is_key if _suggests_key(path.name) else secret_text.has_private_key
    return any(is_key(text[start : start + _CHUNK]) for start in starts)


def is_unreadable(path: Path, most_bytes: float = math.inf) -> bool:
    """Whether `path` is a regular file of at most that size that we cannot read now. Blocking.

    A command can give itself the right to read one of ours. Nothing tells then what it held before.
    """
    with suppress(OSError):
        status = path.lstat()
        is_file = stat.S_ISREG(status.st_mode) and status.st_size <= most_bytes
        return is_file and not os.access(path, os.R_OK)
    return False


def _is_key(text: str) -> bool:
    return (
        secret_text.has_key(text)
        or secret_text.has_password_in_address(text)
        or _CLIENT_KEY in text
        or any(map(_ends_in_secret, _ASSIGNED.findall(text)))
    )


def _ends_in_secret(name: str) -> bool:
    """Whether a setting is a secret by its last word: no ``token_expiry``, nor any ``key``."""
    return name != "key" and secret_text.is_secret_name(re.split(r"[_.-]", name)[-1])


def is_certificate(path: Path) -> bool:
    """Whether the file is a certificate without a private key, which programs need. Blocking."""
    with suppress(OSError), open_regular_file(path, follow_links=False) as file:
        content = file.read(_MOST_BYTES + 1)
        is_short = len(content) <= _MOST_BYTES
        return is_short and path.suffix == ".pem" and b"PRIVATE KEY" not in content
    return False
