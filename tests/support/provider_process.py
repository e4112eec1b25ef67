"""The real provider, one for all tests of a run: to start litellm's process takes seconds."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from agent_tui.features.litellm.process import LiteLlmProcess
from agent_tui.features.local.provider import KEY_VARIABLE
from agent_tui.providers.base import ModelRef
from agent_tui.providers.host import ProviderHost
from agent_tui.providers.silence import SilenceLimits
from tests.support.patience import PATIENCE_S

LOCAL_KEY = "local-test-key-0123456789"
IMPATIENCE_S = 1.0
AUDIT = """
import os, socket, sys

def note(event, arguments):
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = arguments[0]
    else:
        return
    host = host.decode() if isinstance(host, bytes) else host
    if "CONNECTIONS" not in os.environ:
        return
    if host.endswith(".invalid"):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    with open(os.environ["CONNECTIONS"], "a") as file:
        file.write(f"{host}\\n")
    if host not in ("127.0.0.1", "localhost", "::1"):
        raise OSError("tests reach nobody else")

sys.addaudithook(note)
"""
SERVED_MODEL = ModelRef("some-model", "http://127.0.0.1:1/v1")
SECRET = "sk-test-0123456789abcdef"


LITELLMS = "azure_ai/some-model"
"""A model that is spoken to through litellm."""


def process_of(host: ProviderHost) -> LiteLlmProcess:
    """litellm's process, through which `host` calls models without a wire."""
    assert isinstance(host.caller, LiteLlmProcess)
    return host.caller


@pytest.fixture(scope="session")
def connections_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file in which litellm's processes note whom they connect to."""
    exec(compile(AUDIT, "audit", "exec"), {})
    return tmp_path_factory.mktemp("audit") / "connections"


@pytest.fixture
def connections(connections_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That file, empty; this process, too, notes its connections in it during the test."""
    connections_file.write_text("", encoding="utf-8")
    monkeypatch.setenv("CONNECTIONS", str(connections_file))
    return connections_file


@pytest.fixture(scope="session")
def worker_environ(
    tmp_path_factory: pytest.TempPathFactory, connections_file: Path
) -> dict[str, str]:
    """An environment with one key in it, a home of its own and a hook that notes connections."""
    home = tmp_path_factory.mktemp("home")
    (home / "sitecustomize.py").write_text(AUDIT, encoding="utf-8")
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "PYTHONPATH": str(home),
        "CONNECTIONS": str(connections_file),
        "THE_KEY": SECRET,
        KEY_VARIABLE: LOCAL_KEY,
    }


@pytest.fixture(scope="session")
def worker_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the shared process's stderr goes."""
    return tmp_path_factory.mktemp("log") / "provider.log"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def host(worker_environ: dict[str, str], worker_log: Path) -> AsyncIterator[ProviderHost]:
    """The shared provider, warm; waits for long, so that a busy machine fails no test."""
    running = ProviderHost(
        log_path=worker_log,
        silence=SilenceLimits.without_bytes(PATIENCE_S, PATIENCE_S),
        environ=worker_environ,
    )
    await running.warm(SERVED_MODEL)
    yield running
    await running.aclose()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def impatient_host(
    worker_environ: dict[str, str], worker_log: Path
) -> AsyncIterator[ProviderHost]:
    """A provider that takes a second without a word for silence."""
    running = ProviderHost(
        log_path=worker_log,
        silence=SilenceLimits.without_bytes(IMPATIENCE_S, IMPATIENCE_S),
        environ=worker_environ,
    )
    await running.warm(SERVED_MODEL)
    yield running
    await running.aclose()
