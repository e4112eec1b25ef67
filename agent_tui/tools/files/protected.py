"""Names of files that hold secrets, so that searches leave them out and reading them asks."""

import fnmatch
import unicodedata

SECRET_GLOBS = (
    ".env",
    ".env.*",
    ".env[-_~]*",
    "*.env",
    ".envrc",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.kdbx",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".vault-token",
    ".bash_history",
    ".zsh_history",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    "credentials.json",
)

_HARMLESS = (".env.example", ".env.sample", ".env.template", ".env.dist", "id_*.pub")


def folded(name: str) -> str:
    """`name` as the most forgiving file systems compare it.

    Case and width do not count (NTFS, APFS), nor invisible characters (HFS+), nor dots and
    spaces at the end (Windows).
    """
    if name.isascii():
        plain = name.lower()
        return plain.rstrip(". ") or plain
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    visible = "".join(c for c in plain if unicodedata.category(c) != "Cf")
    return visible.rstrip(". ") or visible


def is_secret_name(name: str) -> bool:
    """Whether a file of this name is likely to hold a key or password.

    Names with spaces are taken for sentences about such files.
    """
    plain = folded(name)
    if any(fnmatch.fnmatchcase(plain, pattern) for pattern in _HARMLESS):
        return False
    found = any(fnmatch.fnmatchcase(plain, pattern) for pattern in SECRET_GLOBS)
    return found and not any(character.isspace() for character in plain)
