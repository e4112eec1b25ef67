import pytest

from agent_tui.config.model_addresses import display_address, without_secrets
from agent_tui.errors import ModelFileError
from agent_tui.features.local.addresses import check_address, file_stem, next_address
from tests.support.rows import each_row

HTTPS = "https://a.example/m.gguf"
LOOPBACK = "http://127.0.0.1:8000/m.gguf"


@pytest.mark.parametrize(
    "address",
    [HTTPS, "https://u:p@a.example/m.gguf?x=1", LOOPBACK, "http://localhost/m", "http://[::1]/m"],
)
def test_https_and_this_machine_are_fetched_from(address: str) -> None:
    check_address(address)


@each_row(
    "address",
    [
        "http://a.example/m.gguf",
        "http://127.0.0.1.a.example/m.gguf",
        "http://127.0.0.1@a.example/m.gguf",
        "http://localhost.a.example/m.gguf",
        "http://10.0.0.1/m.gguf",
        "ftp://a.example/m.gguf",
        "file:///etc/passwd",
        "https:///m.gguf",
        "https://",
        "https://[::1/m.gguf",
        "git+https://a.example/m.gguf",
    ],
)
def test_nothing_else_is(address: str) -> None:
    with pytest.raises(ModelFileError):
        check_address(address)


def test_one_part_of_a_model_is_refused_before_it_is_fetched() -> None:
    with pytest.raises(ModelFileError, match="one of several"):
        check_address("https://a.example/m-00001-of-00003.gguf?download=true")


@pytest.mark.parametrize(
    ("address", "location", "target"),
    [
        (HTTPS, "/n.gguf", "https://a.example/n.gguf"),
        (HTTPS, "https://b.example/n?sig=1", "https://b.example/n?sig=1"),
        (LOOPBACK, "/n.gguf", "http://127.0.0.1:8000/n.gguf"),
        (LOOPBACK, HTTPS, HTTPS),
    ],
)
def test_redirects_that_stay_safe_are_followed(address: str, location: str, target: str) -> None:
    assert next_address(address, location) == target


@each_row(
    ("address", "location"),
    [
        (HTTPS, "http://a.example/m.gguf"),
        (HTTPS, LOOPBACK),
        (HTTPS, "file:///etc/passwd"),
        (LOOPBACK, "http://a.example/m.gguf"),
        ("file:///wheels/x.whl", "file:///etc/passwd"),
        (HTTPS, "http://["),
    ],
)
def test_redirects_away_from_https_are_not(address: str, location: str) -> None:
    with pytest.raises(ModelFileError):
        next_address(address, location)


def test_secrets_of_an_address_are_not_shown() -> None:
    secret = "https://me:pass@a.example:8443/d/m.gguf?token=abc#frag"
    assert display_address(secret) == "https://a.example:8443/d/m.gguf"
    masked = without_secrets(f"failed for url: {secret} (and 'http://u@b/x?k=v')")
    assert "pass" not in masked
    assert "abc" not in masked
    assert "k=v" not in masked
    assert "a.example:8443/d/m.gguf" in masked


def test_the_name_comes_from_the_end_of_the_path() -> None:
    assert file_stem("https://a.example/d/My%20Model.Q4.gguf?download=true") == "My Model.Q4"
