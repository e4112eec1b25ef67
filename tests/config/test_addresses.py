"""Which web addresses are taken, and where one that is not is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.cli.settings import usable_settings
from agent_tui.config.addresses import address_problem, check_address
from agent_tui.config.loading import load_settings
from agent_tui.errors import UsageError
from agent_tui.features.mcp.settings import McpSection
from tests.support.rows import each_row

GOOD = [
    "http://127.0.0.1:8080/v1",
    "https://api.example.com",
    "HTTP://Host/v1/",
    "http://[::1]:11434/v1",
    "http://[fe80::1%eth0]:8080/v1",
    "http://me:secret@host/v1",
    "http://host./v1?x=1",
    "http://exämple.de/v1",
    "http://host:/v1",
    "http://my_server:65535",
]
WRONG = {
    "http://[::1/v1": "brackets",
    "http://::1]/v1": "brackets",
    "http://host:99999/v1": "port",
    "http://host:0/v1": "port",
    "http://host:abc/v1": "port",
    "htp://host/v1": "begin with http",
    "localhost:8080/v1": "begin with http",
    "ftp://host/v1": "begin with http",
    "/v1": "begin with http",
    "http://": "no valid host",
    "http:/host/v1": "no valid host",
    "http://a..b/v1": "no valid host",
    "http://.a/v1": "no valid host",
    "http://999.1.1.1/v1": "no valid host",
    f"http://{'a' * 300}/v1": "no valid host",
    "http://a b/v1": "space",
    "http://a\n/v1": "space",
    "http://a/\x00": "space",
    "http://a/\ud800": "space",
}


@each_row("address", GOOD)
def test_a_good_address_is_taken_as_it_is(address: str) -> None:
    assert address_problem(address) == ""
    assert check_address(address) == address


@each_row(("address", "words"), WRONG.items())
def test_what_is_wrong_with_an_address_is_said(address: str, words: str) -> None:
    assert words in address_problem(address)


def test_a_password_in_an_address_is_not_told() -> None:
    with pytest.raises(ValueError, match=r"^'http://host:x/v1' needs a port") as caught:
        check_address("http://me:secret@host:x/v1")
    assert "secret" not in str(caught.value)


@given(st.text() | st.from_regex(r"https?://[\[\]:.%@a-z0-9/]{0,20}", fullmatch=True))
def test_whatever_the_address_it_is_judged(address: str) -> None:
    assert isinstance(address_problem(address), str)


def refused(tmp_path: Path, text: str = "", **environ: str) -> str:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        usable_settings(load_settings(file, environ))
    assert "http://127.0.0.1:8080/v1" in caught.value.hint
    return caught.value.message


def test_a_model_address_that_is_none_ends_the_program_and_names_its_place(tmp_path: Path) -> None:
    wrong = "'http://[::1/v1' is not a valid URL: check its brackets."
    path = tmp_path / "config.toml"
    assert refused(tmp_path, 'base_url = "http://[::1/v1"\n') == f"{path}:1: base_url: {wrong}"
    table = '[models."x"]\nbase_url = "http://[::1/v1"\n'
    assert refused(tmp_path, table) == f"{path}:2: models.x.base_url: {wrong}"
    told = refused(tmp_path, AGENT_TUI_BASE_URL="http://[::1/v1")
    assert told == f"environment: base_url: {wrong}"
    with pytest.raises(UsageError, match=r"^--base-url: 'http://\[::1/v1' is not a valid URL"):
        usable_settings(load_settings(tmp_path / "none", {}, {"base_url": "http://[::1/v1"}))


def test_the_address_of_an_mcp_server_that_is_none_leaves_that_server_out(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        '[mcp.servers.a]\nurl = "http://[::1/"\n[mcp.servers.b]\nurl = "https://${HOST}/mcp"\n'
    )
    loaded = load_settings(file, {})
    assert list(usable_settings(loaded).of(McpSection).mcp.servers) == ["b"]
    assert "is not a valid URL" in str(loaded.problems[0])
