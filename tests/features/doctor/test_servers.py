import socket
from collections.abc import Iterator

import pytest

from agent_tui.features.doctor import models, settings
from agent_tui.features.doctor.check import read_environment
from agent_tui.providers.servers.kinds import ServerAddress
from tests.features.doctor.conftest import CANARY
from tests.support.loopback import LoopbackServer, QuietHandler
from tests.support.openai_server import OpenAiServer, bad_key

MODELS = {"data": [{"id": f"model-{n}", "max_model_len": 4096} for n in range(5)]}


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class OtherProgram(QuietHandler):
    """Knows no page at all."""

    def do_GET(self) -> None:
        self.send_error(404)

    do_POST = do_GET


@pytest.fixture
def other_port() -> Iterator[int]:
    """Where a program listens that is no model server."""
    with LoopbackServer(OtherProgram) as server:
        yield server.port


def looked(kind: str, port: int):
    environment = read_environment(server_ports={kind: (port,)})
    (check,) = models.check_servers(environment)
    return check


def test_a_server_that_does_not_run_is_no_fault(free_port):
    check = looked("Ollama", free_port)
    assert (check.name, check.state) == ("Ollama", "info")
    assert check.found == f"not running, or without models, at 127.0.0.1:{free_port}"


def test_a_running_server_is_told_with_its_models():
    with OpenAiServer() as server:
        server.pages["/v1/models"] = MODELS
        check = looked("vLLM", server.port)
    assert check.state == "ok"
    place = f"at 127.0.0.1:{server.port}"
    assert check.found.endswith(f"{place}, 5 models: model-0, model-1, model-2 and 2 more")


def test_another_program_at_the_port_of_a_server_is_no_fault(other_port):
    check = looked("llama.cpp", other_port)
    assert check.state == "info"
    assert "without models" in check.found


def test_a_base_url_that_answers_is_fine_and_gets_its_key(environment, find, config, monkeypatch):
    monkeypatch.setenv("MY_KEY", CANARY)
    with OpenAiServer() as server:
        server.pages["/v1/models"] = MODELS
        config.write_text(f'base_url = "{server.base_url}"\napi_key_env = "MY_KEY"\n')
        check = find(models.check_base_urls(environment()))["base_url"]
        assert check.state == "ok"
        assert "5 models" in check.found
        assert CANARY in server.requests[-1].headers["authorization"]


def test_a_base_url_that_nothing_answers_at_is_bad(environment, find, config, free_port):
    config.write_text(f'base_url = "http://127.0.0.1:{free_port}/v1"\n')
    check = find(models.check_base_urls(environment()))["base_url"]
    assert check.state == "bad"
    assert check.found == f"http://127.0.0.1:{free_port}/v1 lists no models"
    assert "Start the server" in check.advice


def test_a_base_url_that_lists_nothing_is_bad_and_its_end_is_named(
    environment, find, config, other_port
):
    config.write_text(f'[models."mine"]\nbase_url = "http://127.0.0.1:{other_port}/v1"\n')
    check = find(models.check_base_urls(environment()))['models."mine"']
    assert check.state == "bad"
    assert "/v1" in check.advice


def test_a_server_that_wants_a_key_says_so(environment, find, config):
    with OpenAiServer() as server:
        server.pages["/v1/models"] = bad_key()
        config.write_text(f'base_url = "{server.base_url}"\n')
        check = find(models.check_base_urls(environment()))["base_url"]
    assert check.state == "warning"
    assert "needs an API key" in check.found


@pytest.mark.parametrize("url", ["nonsense", "http://host:port/v1", "ftp://x/v1", "http://:80"])
def test_what_is_no_address_is_bad(environment, find, config, url):
    config.write_text(f'base_url = "{url}"\n')
    check = find(settings.check_settings(environment()))["base_url"]
    assert check.state == "bad"
    assert url in check.found
    assert "Write a full URL" in check.advice


def test_a_server_elsewhere_is_asked_without_a_key(environment, find, config, monkeypatch):
    monkeypatch.setattr(models, "is_loopback", lambda url: False)
    monkeypatch.setenv("MY_KEY", CANARY)
    with OpenAiServer() as server:
        server.pages["/v1/models"] = bad_key()
        config.write_text(f'base_url = "{server.base_url}"\napi_key_env = "MY_KEY"\n')
        check = find(models.check_base_urls(environment()))["base_url"]
        assert "authorization" not in server.requests[-1].headers
    assert (check.state, check.found) == (
        "ok",
        f"{server.base_url} answers; its models were not checked",
    )


def test_a_server_elsewhere_that_does_not_answer_may_be_behind_a_proxy(
    environment, find, config, monkeypatch
):
    config.write_text('base_url = "https://me:hunter2@model.invalid/v1"\n')
    check = find(models.check_base_urls(environment()))["base_url"]
    assert check.state == "warning"
    assert "proxy" in check.advice
    assert "hunter2" not in str(check)


def test_ollama_is_looked_for_where_its_variable_says(monkeypatch, free_port):
    monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{free_port}")
    (address,) = read_environment(server_ports={"Ollama": (1,)}).server_addresses
    assert address == ServerAddress("Ollama", f"http://127.0.0.1:{free_port}")
