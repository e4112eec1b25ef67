"""Keys that are kept: in files, in the keyring; what wins, and what is said when one is gone."""

from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import fail, null
from keyring.errors import PasswordDeleteError

from agent_tui.providers.kept_keys import KEEPABLE, KeptKeys, KeyringError
from agent_tui.providers.keys import secret_variables

KEY = "sk-0123456789abcdef"


class MemoryKeyring(KeyringBackend):
    """A keyring that forgets with the test; `is_locked` refuses everything."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def get_password(self, service: str, username: str) -> str | None:
        self._open()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._open()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._open()
        if self.kept.pop((service, username), None) is None:
            raise PasswordDeleteError("there is none")

    def _open(self) -> None:
        if self.is_locked:
            raise RuntimeError("Prompt dismissed")  # as Secret Service: not one of keyring's own


@pytest.fixture
def ring() -> Iterator[MemoryKeyring]:
    """The system's keyring is one in memory."""
    before = keyring.get_keyring()
    memory = MemoryKeyring()
    keyring.set_keyring(memory)
    yield memory
    keyring.set_keyring(before)


@pytest.fixture
def keys(tmp_path: Path) -> KeptKeys:
    return KeptKeys(tmp_path / "keys")


def test_a_key_in_a_file_is_for_the_owner_and_used(keys: KeptKeys, tmp_path: Path):
    keys.keep("openai", KEY, in_keyring=False)
    file = tmp_path / "keys" / "openai.json"
    assert keys.places() == {"openai": str(file)}
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    environ: dict[str, str] = {}
    found = keys.fill(environ)
    assert environ == {"OPENAI_API_KEY": KEY}
    assert (found.places, found.problems) == ({"OPENAI_API_KEY": str(file)}, ())
    assert keys.forget("openai")
    assert not keys.forget("openai")
    assert not keys.places()
    assert not file.exists()


def test_a_key_in_the_keyring_is_in_no_file(keys: KeptKeys, ring: MemoryKeyring, tmp_path: Path):
    keys.keep("gemini", KEY, in_keyring=False)
    keys.keep("gemini", KEY, in_keyring=True)
    assert ring.kept == {("agent-tui", "gemini"): KEY}
    assert KEY not in (tmp_path / "keys" / "gemini.json").read_text()
    environ: dict[str, str] = {}
    assert keys.fill(environ).places == {"GEMINI_API_KEY": "the keyring"}
    assert environ == {"GEMINI_API_KEY": KEY}
    keys.keep("gemini", KEY, in_keyring=False)
    assert not ring.kept
    keys.keep("gemini", KEY, in_keyring=True)
    assert keys.forget("gemini")
    assert not ring.kept


@pytest.mark.parametrize("variable", ["GEMINI_API_KEY", "GOOGLE_API_KEY"])
@pytest.mark.parametrize("value", ["other", ""])
def test_the_environment_wins_and_the_keyring_is_not_asked(
    keys: KeptKeys, ring: MemoryKeyring, variable: str, value: str
):
    keys.keep("gemini", KEY, in_keyring=True)
    ring.is_locked = True
    environ = {variable: value}
    found = keys.fill(environ)
    assert environ == {variable: value}
    assert not found.places
    assert not found.problems


def test_a_keyring_that_stays_locked_is_told_of_and_the_rest_is_used(
    keys: KeptKeys, ring: MemoryKeyring
):
    keys.keep("gemini", KEY, in_keyring=True)
    keys.keep("openai", KEY, in_keyring=False)
    ring.is_locked = True
    environ: dict[str, str] = {}
    (problem,) = keys.fill(environ).problems
    assert problem == (
        "Cannot read the key of gemini. Cannot use the system keyring: Prompt dismissed."
    )
    assert environ == {"OPENAI_API_KEY": KEY}
    keys.keep("gemini", KEY, in_keyring=False)
    assert not keys.fill({}).problems


def test_a_key_in_a_keyring_that_stays_locked_is_forgotten_here(
    keys: KeptKeys, ring: MemoryKeyring
):
    keys.keep("gemini", KEY, in_keyring=True)
    ring.is_locked = True
    with pytest.raises(KeyringError):
        keys.forget("gemini")
    assert not keys.places()


def test_a_key_that_somebody_took_out_of_the_keyring_is_told_of(
    keys: KeptKeys, ring: MemoryKeyring
):
    keys.keep("gemini", KEY, in_keyring=True)
    ring.kept.clear()
    (problem,) = keys.fill({}).problems
    assert "agent-tui login gemini --keyring" in problem
    assert keys.forget("gemini")


@pytest.mark.parametrize(
    ("backend", "said"),
    [(fail.Keyring(), "no usable keyring"), (null.Keyring(), "did not store")],
)
def test_a_machine_without_a_keyring_is_told_in_one_sentence(
    keys: KeptKeys, ring: MemoryKeyring, backend: KeyringBackend, said: str
):
    keyring.set_keyring(backend)
    with pytest.raises(KeyringError, match=said) as caught:
        keys.keep("openai", KEY, in_keyring=True)
    assert "\n" not in str(caught.value)
    assert KEY not in str(caught.value)
    assert not keys.places()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"key": 5}', "\ud800"])
def test_a_broken_file_is_no_key(keys: KeptKeys, tmp_path: Path, text: str):
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "openai.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    environ: dict[str, str] = {}
    keys.fill(environ)
    assert not environ


def test_what_is_kept_is_what_no_command_is_given():
    assert set(KEEPABLE.values()) <= secret_variables()
    assert not {name for name in KEEPABLE.values() if name.startswith("AWS_")}
