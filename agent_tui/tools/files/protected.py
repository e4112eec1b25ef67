"""Names of files that hold secrets: searches skip them and reading them asks."""

import fnmatch
import re
import unicodedata

_SECRET_NAMES = """
    .env .env.* .env[-_~]* *.env .envrc *.pem *.key *.p12 *.pfx *.jks *.kdbx id_rsa* id_dsa*
    id_ecdsa* id_ed25519* .netrc _netrc .pgpass .my.cnf .vault-token .bash_history .zsh_history
    .npmrc .pypirc .git-credentials .htpasswd .*_history .databrickscfg .dev.vars* .dockercfg .boto
    .s3cfg .terraformrc .vault_pass* *.kubeconfig *.ppk ssh_host_*_key
"""
SECRET_GLOBS = tuple(_SECRET_NAMES.split())
_PLAIN_SECRET_NAMES = """
    .claude.json credentials.json client_secret*.json deploy_key* kubeconfig local.settings.json
    secrets.json secrets.toml secrets.y*ml service[-_]account*.json terraform.tfvars *.auto.tfvars
    *.tfstate *.tfstate.backup wallet.dat
"""
PLAIN_SECRET_GLOBS = tuple(_PLAIN_SECRET_NAMES.split())
"""The same, but so common that a pattern such as ``*.json`` matches them by chance."""

_HARMLESS = (".env.example", ".env.sample", ".env.template", ".env.dist", "id_*.pub")
_IS_HARMLESS = re.compile("|".join(map(fnmatch.translate, _HARMLESS)))
_IS_SECRET = re.compile("|".join(map(fnmatch.translate, (*SECRET_GLOBS, *PLAIN_SECRET_GLOBS))))


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


def is_secret_name(name: str) -> bool:
    """Whether a file of this name is likely to hold a key or password.

    Names with spaces count as sentences about such files.
    """
    plain = fold_name(name)
    if _IS_HARMLESS.match(plain) or not _IS_SECRET.match(plain):
        return False
    return not any(character.isspace() for character in plain)
