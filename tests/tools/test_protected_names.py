"""Which names are those of files with keys or passwords."""

import codecs
import os
from pathlib import Path

import pytest

from agent_tui.tools.files.protected import fold_name, holds_key, is_secret_name
from tests.support.rows import each_row

_KEY = b"aws_secret_access_key = wJalrXUtnFEMI0K7MDENG5bPxRfiCYzEXAMPLEKEY\n"


@each_row(
    "name",
    [
        ".env",
        ".env.local",
        "prod.env",
        "server.pem",
        "id_rsa",
        "id_ed25519.bak",
        ".npmrc",
        "credentials.json",
        ".ENV",
        "Server.PEM",
        ".env.",
        "\uff0eenv",
        ".e\u200bnv",
        ".env ",
    ],
)
def test_names_of_secrets_are_known_however_they_are_written(name: str):
    assert is_secret_name(name)


@each_row(
    "name",
    [
        *("server.key~", ".npmrc.bak", "#.env#", ".env.swp", ".#.env", ".#server.key"),
        *("terraform.tfstate.1700000000.backup", "terraform.tfstate.backup", "my key.pem"),
        *(".env copy", ".env (1)", ".env copy 2", "id_ed25519 copy", "Copy of credentials.json"),
        *(
            "credentials (1).json",
            "credentials copy.json",
            "secrets - Kopie.yaml",
            "secrets_old.yml",
        ),
        *("credentials-2.json", ".server.key.swp", ".credentials.json.swo", ".server.key.un~"),
        *("server.key.~1~", ".netrc.orig", "kubeconfig-2024-01-31", ".pgpass.dpkg-old"),
        *("wallet.dat.save", "deploy.key.rpmsave", ".Server.KEY.kate-swp", "._server.key"),
        *(".npmrc___jb_old___", "local.settings.json.tmp", "Server.Key.Old "),
    ],
)
def test_what_editors_and_backups_add_to_a_name_hides_nothing(name: str):
    assert is_secret_name(name)


@each_row(
    "name",
    [
        *(".env.example", ".env.dist", "id_rsa.pub", "env", "pem", "a.py", "."),
        *(".env.example~", ".env.sample copy", "id_rsa.pub.bak", "#.env.dist#", ".env.example (1)"),
        *(
            "main.py~",
            "#notes#",
            "chapter-2.json",
            "old.py",
            "key (1).py",
            "",
            "a copy.md",
            "~",
            "#",
            " ",
        ),
        *("notes on server.key handling.md", "test_secrets-2.py", "v1.2.3", "1", "copy", ".bak"),
    ],
)
def test_examples_public_keys_and_other_files_are_none(name: str):
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("name", "plain"),
    [("A.B", "a.b"), ("a. .", "a"), ("..", ".."), (" ", " "), ("Stra\u00dfe. ", "strasse")],
)
def test_names_are_compared_as_the_most_forgiving_file_system_does(name: str, plain: str):
    assert fold_name(name) == plain


@each_row(
    "content",
    {
        "beyond what is searched at a time": b"# note\n" * 60_000 + _KEY,
        "across two parts": b"x" * (256_000 - 40) + b"\n" + _KEY,
        "UTF-16": _KEY.decode().encode("utf-16"),
        "UTF-16 BE": codecs.BOM_UTF16_BE + _KEY.decode().encode("utf-16-be"),
        "UTF-8 with a mark": codecs.BOM_UTF8 + _KEY,
        "too long to search": b"no key\n" * 600_000,
    }.values(),
)
def test_a_key_is_found_wherever_it_is_and_however_it_is_encoded(content: bytes, tmp_path: Path):
    (tmp_path / "credentials").write_bytes(content)
    assert holds_key(tmp_path / "credentials")


def test_a_long_file_without_a_key_is_none(tmp_path: Path):
    (tmp_path / "tokens.txt").write_bytes(b"word\n" * 120_000)
    assert not holds_key(tmp_path / "tokens.txt")


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every file")
@each_row(
    "name, size, is_key",
    [
        ("deploy_rsa", 1, True),
        ("credentials", 1, True),
        ("prod.tfvars", 70_000, True),
        ("keyfile.txt", 1, True),
        ("data.json", 1, True),
        ("data.json", 70_000, False),
    ],
)
def test_a_file_that_cannot_be_read_counts_as_a_key(
    name: str, size: int, is_key: bool, tmp_path: Path
):
    file = tmp_path / name
    file.write_bytes(b"x" * size)
    assert not holds_key(file)
    file.chmod(0)
    assert holds_key(file) is is_key
    file.unlink()


@each_row("name", ["credentials", "deploy_rsa", "data.json"])
def test_what_is_no_file_holds_no_key(name: str, tmp_path: Path):
    assert not holds_key(tmp_path / name)
    (tmp_path / name).symlink_to("none")
    assert not holds_key(tmp_path / name)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name, 0)
    assert not holds_key(tmp_path / name)
