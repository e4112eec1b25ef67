"""Which names are those of files with keys or passwords."""

import pytest

from agent_tui.tools.files.protected import fold_name, is_secret_name
from tests.support.rows import each_row


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
    [".env.example", ".env.dist", "id_rsa.pub", "env", "pem", "a.py", "how to use .env", "."],
)
def test_examples_public_keys_and_sentences_are_none(name: str):
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("name", "plain"),
    [("A.B", "a.b"), ("a. .", "a"), ("..", ".."), (" ", " "), ("Stra\u00dfe. ", "strasse")],
)
def test_names_are_compared_as_the_most_forgiving_file_system_does(name: str, plain: str):
    assert fold_name(name) == plain
