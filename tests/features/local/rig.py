"""A local provider whose server processes are stand-ins, and a look at what they did."""

import asyncio
import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from agent_tui.config import Settings
from agent_tui.features.local.library import ModelLibrary
from agent_tui.features.local.model import LocalModel
from agent_tui.features.local.pool import LocalServers
from agent_tui.features.local.provider import LocalProvider
from agent_tui.features.local.settings import LocalSection, LocalSettings
from agent_tui.messages import UserMessage
from agent_tui.providers.base import ModelRef, ModelRequest, Provider
from tests.support import fake_llama_server
from tests.support.gguf_files import gguf_bytes
from tests.support.patience import PATIENCE_S
from tests.support.provider_process import LOCAL_KEY

FAKE_COMMAND = (sys.executable, "-P", fake_llama_server.__file__)


class Shelf(ModelLibrary):
    """A library that holds what it was given."""

    def __init__(self, *models: LocalModel) -> None:
        super().__init__(Path("nowhere"))
        self._models = {model.name: model for model in models}

    def find(self, name: str) -> LocalModel | None:
        return self._models.get(name)


class FakeModel:
    """A model file, and beside it how its servers behave."""

    def __init__(self, folder: Path, name: str, *loads: str) -> None:
        path = folder / f"{name}.gguf"
        path.write_bytes(gguf_bytes())
        script = json.dumps({"loads": loads or ("ready",)})
        Path(f"{path}.loads").write_text(script, encoding="utf-8")
        self.model = LocalModel(name=name, path=path, size_bytes=1, trained_window=8_192)

    @property
    def starts(self) -> list[dict[str, Any]]:
        """Every server process that began to load, with its order and its environment."""
        return self._noted("starts")

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Every request, and every one whose client left."""
        return self._noted("requests")

    @property
    def pids(self) -> list[int]:
        """The processes that began to load."""
        return [start["pid"] for start in self.starts]

    def _noted(self, kind: str) -> list[dict[str, Any]]:
        path = Path(f"{self.model.path}.{kind}")
        if not path.exists():
            return []
        whole_lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        return [json.loads(line) for line in whole_lines]


def local_provider(
    host: Provider,
    log_path: Path,
    *models: FakeModel,
    key: str = LOCAL_KEY,
    settings: LocalSettings | None = None,
    environ: dict[str, str] | None = None,
) -> LocalProvider:
    """A provider of `models` that starts stand-ins."""
    servers = LocalServers(
        Shelf(*(fake.model for fake in models)),
        settings or Settings().of(LocalSection).local,
        log_path,
        key,
        environ=environ or {"PATH": "/usr/bin:/bin"},
        command=FAKE_COMMAND,
    )
    return LocalProvider(host, servers)


def ask(name: str, text: str = "hello", *, system: str = "Be brief.") -> ModelRequest:
    """A request to ``local/name``."""
    return ModelRequest(ModelRef(f"local/{name}"), system, (UserMessage(content=text),))


async def until(holds: Callable[[], bool]) -> None:
    """Wait until `holds`."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.01)


def is_gone(pid: int) -> bool:
    """Whether no such process runs; a dead one nobody has waited for does not."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def is_refused(url: str) -> bool:
    """Whether nothing listens where `url` points."""
    address = urlsplit(url)
    with socket.socket() as client:
        return client.connect_ex((address.hostname, address.port)) != 0
