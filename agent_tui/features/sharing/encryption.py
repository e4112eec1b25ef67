"""Encrypts what is pushed to named recipients with age, and decrypts what is pulled.

``pyrage`` is an optional package (MIT, bindings of the Rust implementation of age).
"""

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.atomic_files import replace_private_file
from agent_tui.errors import UsageError
from agent_tui.features.sharing.segments import PLAIN, OversizeError
from agent_tui.installation import install_command
from agent_tui.paths import user_config_dir
from agent_tui.regular_files import read_regular_file

if TYPE_CHECKING:
    from pyrage import ssh, x25519

_AGE_KEY_PREFIX = "AGE-SECRET-KEY-"
_SSH_KEYS = ("id_ed25519", "id_rsa")
_KEY_DIGITS = 12
_MOST_KEY_BYTES = 100_000


def require_encryption() -> None:
    """Check that the optional package is installed.

    Raises:
        UsageError: It is not; the hint is the command that installs it.
    """
    if find_spec("pyrage") is None:
        raise UsageError(
            "Encryption needs the package pyrage.", f"Install it: {install_command('encryption')}"
        )


class Sealer:
    """Encrypts to `recipients`; with none, leaves everything as it is.

    Args:
        recipients: Public keys of age (``age1...``) or SSH (``ssh-ed25519 ...``).

    Raises:
        UsageError: One is no such key, or the package is missing.
    """

    def __init__(self, recipients: Sequence[str]) -> None:
        self._recipients = [_recipient(text) for text in recipients]
        named = "\n".join(sorted(" ".join(text.split()[:2]) for text in recipients))
        digest = hashlib.sha256(named.encode()).hexdigest()
        self.key = digest[:_KEY_DIGITS] if recipients else PLAIN
        """Names the recipients in the names of what is written."""

    def seal(self, data: bytes) -> bytes:
        """`data` as it is pushed."""
        if not self._recipients:
            return data
        import pyrage

        return pyrage.encrypt(zlib.compress(data), self._recipients)


class Opener:
    """Decrypts with the user's `identities`."""

    def __init__(self, identities: "Sequence[x25519.Identity | ssh.Identity]" = ()) -> None:
        self._identities = tuple(identities)

    def open(self, data: bytes, key: str, most_bytes: int) -> bytes | None:
        """What was sealed under `key`; None if the user is no recipient, or it is damaged.

        Raises:
            OversizeError: It has more than `most_bytes`.
        """
        opened = self._open(data, key, most_bytes + 1)
        if opened is not None and len(opened) > most_bytes:
            raise OversizeError(f"It has more than {most_bytes:,} bytes when it is unpacked.")
        return opened

    def _open(self, data: bytes, key: str, most_bytes: int) -> bytes | None:
        if key == PLAIN:
            return data
        if not self._identities:
            return None
        import pyrage

        try:
            packed = pyrage.decrypt(data, self._identities)
            unpacking = zlib.decompressobj()
            opened = unpacking.decompress(packed, most_bytes)
        except (pyrage.DecryptError, zlib.error):
            return None
        return opened if unpacking.eof or len(opened) == most_bytes else None


def age_key_file() -> Path:
    """The file of the key of age that agent-tui made for the user."""
    return user_config_dir() / "age-key.txt"


def make_age_key() -> str:
    """Create the user's key of age, and return its public part.

    Raises:
        UsageError: There is one already, it cannot be written, or the package is missing.
    """
    require_encryption()
    from pyrage import x25519

    file = age_key_file()
    if file.exists():
        raise UsageError(f"{file} exists already.", "It holds your public key in its first line.")
    identity = x25519.Identity.generate()
    public = str(identity.to_public())
    try:
        replace_private_file(file, f"# public key: {public}\n{identity}\n")
    except OSError as error:
        raise UsageError(f"Cannot write {file}: {error.strerror}.") from error
    return public


def read_opener(named: Path | None, home: Path | None) -> Opener:
    """The opener with the user's keys; without the optional package, it opens plain text only.

    Args:
        named: A file with keys; None for agent-tui's own and those of SSH.
        home: The user's home folder; None if there is none.

    Raises:
        UsageError: `named` has no usable key, or the package is missing for it.
    """
    if named is not None:
        require_encryption()
        identities = list(_identities(named))
        if not identities:
            raise UsageError(
                f"{named} has no usable key.",
                "Name a file with a key of age, or an SSH key without a passphrase.",
            )
        return Opener(identities)
    if find_spec("pyrage") is None:
        return Opener()
    files = [age_key_file(), *((home / ".ssh" / name for name in _SSH_KEYS) if home else ())]
    return Opener([one for file in files for one in _identities(file)])


def _identities(file: Path) -> "Iterable[x25519.Identity | ssh.Identity]":
    """The usable keys in `file`."""
    import pyrage
    from pyrage import ssh, x25519

    try:
        data = read_regular_file(file)[:_MOST_KEY_BYTES]
    except OSError:
        return
    lines = [line.strip() for line in data.decode("utf-8", "replace").splitlines()]
    keys = [line for line in lines if line.startswith(_AGE_KEY_PREFIX)]
    try:
        if keys:
            yield from map(x25519.Identity.from_str, keys)
        else:
            yield ssh.Identity.from_buffer(data)
    except pyrage.IdentityError:  # of another type, damaged, or with a passphrase
        return


def _recipient(text: str) -> "x25519.Recipient | ssh.Recipient":
    require_encryption()
    import pyrage
    from pyrage import ssh, x25519

    try:
        if text.startswith("age1"):
            return x25519.Recipient.from_str(text.strip())
        return ssh.Recipient.from_str(text.strip())
    except pyrage.RecipientError as error:
        raise UsageError(
            f"{text[:60]!r} is not a public key: {error}.",
            "Give a key of age (age1...), or an SSH key of type ed25519 or rsa.",
        ) from error
