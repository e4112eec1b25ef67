"""Looking for servers: where, and that none can hold or deceive whoever looks."""

import json

import pytest

from agent_tui.config import Settings
from agent_tui.providers.catalog import ModelCatalog
from agent_tui.providers.servers.kinds import ServerAddress, kind_at, start_command
from agent_tui.providers.servers.server_catalog import find_servers, server_at
from agent_tui.providers.table import ModelTable
from tests.support.model_servers import (
    Answering,
    all_at,
    answer_bytes,
    drip_body,
    drip_head,
    listening,
    models_of,
    pour,
    say_nothing,
)
from tests.support.openai_server import OpenAiServer
from tests.support.patience import PATIENCE_S
from tests.support.rows import each_row

IMPATIENCE_S = 0.2
"""For servers that never answer."""


# Servers that answer badly


@pytest.mark.parametrize(
    "answer",
    [say_nothing, drip_head, drip_body, pour, None],
    ids=["silence", "endless header", "endless body", "flood", "never taken up"],
)
async def test_no_server_holds_whoever_looks(answer: Answering | None) -> None:
    with listening(answer) as port:
        patient = ModelCatalog(
            Settings(base_url=f"http://127.0.0.1:{port}/v1"),
            {},
            table=ModelTable({}),
            server_ports=all_at(port),
            patience_s=IMPATIENCE_S,
        )
        assert await patient.list_models() == ()


LISTING = json.dumps({"data": [{"id": "stolen"}]}).encode()


@each_row(
    "raw",
    [
        b"HTTP/1.1 302 Found\r\nLocation: /v1/elsewhere\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html></html>",
        b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n" + LISTING,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + LISTING,
        b"HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n" + b"[" * 40_000,
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x00\xff\x00\xff",
        b"HTTP/1.1 99999 What\r\n\r\n",
    ],
    ids=["redirect", "html", "cut", "bad chunk", "deep", "ssh", "binary", "bad status"],
)
def test_what_is_no_listing_is_no_server(raw: bytes) -> None:
    with listening(answer_bytes(raw)) as port:
        address = ServerAddress("vLLM", f"http://127.0.0.1:{port}")
        assert find_servers([address], patience_s=IMPATIENCE_S) == ()


def test_an_answer_in_pieces_or_on_an_open_connection_is_read() -> None:
    pieces = (
        b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in (LISTING[:7], LISTING[7:])) + b"0\r\n\r\n"
    )
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + pieces
    whole = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(LISTING), LISTING)
    for raw in (chunked, whole):
        with listening(answer_bytes(raw)) as port:
            address = ServerAddress("vLLM", f"http://127.0.0.1:{port}")
            (found,) = find_servers([address], patience_s=PATIENCE_S)
            assert [model.id for model in found.models] == ["stolen"]


@pytest.mark.parametrize(
    "name", ["a\x1b]0;owned\x07b", "two\nlines", "", "x" * 5_000, "right\u202eleft"]
)
def test_a_name_that_could_deceive_is_left_out(server: OpenAiServer, name: str) -> None:
    server.pages["/v1/models"] = {"data": [{"id": name}, {"id": "fine"}]}
    assert [model.id for model in models_of(server.base_url)] == ["fine"]


@pytest.mark.parametrize("window", [0, -5, 10**30, 3.5, True, "8192", None, [1]])
def test_a_window_that_makes_no_sense_is_not_believed(server: OpenAiServer, window: object) -> None:
    server.pages["/v1/models"] = {"data": [{"id": "odd", "max_model_len": window}]}
    (model,) = models_of(server.base_url)
    assert model.window is None


@pytest.mark.parametrize(
    "base_url", ["", "nonsense", "http://", "http://127.0.0.1:99999/v1", "ftp://127.0.0.1/v1"]
)
def test_an_address_that_is_none_has_no_server(base_url: str) -> None:
    assert server_at(base_url) is None


# Where is looked


def test_a_kind_is_known_by_its_port_on_this_machine_only() -> None:
    found = kind_at("http://localhost:11434/v1")
    assert found is not None
    assert found.name == "Ollama"
    assert kind_at("http://192.168.0.2:11434/v1") is None
    assert kind_at("http://127.0.0.1:99999/v1") is None
    assert start_command("http://127.0.0.1:1234/v1") == "lms server start"
