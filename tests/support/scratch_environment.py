"""An environment for Harbor that executes in a scratch folder of this machine: for tests alone.

The folders at the root that Harbor and tasks name (``/logs``, ``/tests``, ``/app`` ...) are below
``SCRATCH_ROOT``, in commands and in paths.
"""

import asyncio
import os
import re
import shutil
import signal
from contextlib import suppress
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult

_AT_ROOT = re.compile(r"(?<![\w/.])/(?=(?:app|installed-agent|logs|solution|tests)\b)")

_OF_NETWORK = re.compile(r"UV_|PIP_|SSL_|REQUESTS_CA|CURL_CA|https?_proxy|no_proxy", re.IGNORECASE)


class ScratchEnvironment(BaseEnvironment):
    """Commands run as who runs the tests, with a home folder of their own."""

    @staticmethod
    def type() -> str:
        return "scratch"

    @property
    def root(self) -> Path:
        return Path(os.environ["SCRATCH_ROOT"]) / self.session_id

    def _validate_definition(self) -> None:
        pass

    async def start(self, force_build: bool) -> None:
        for name in ("app", "home", "logs/agent", "logs/verifier", "logs/artifacts", "tests"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        shutil.copytree(self.environment_dir, self.root / "app", dirs_exist_ok=True)

    async def stop(self, delete: bool) -> None:
        shutil.rmtree(self.root / "home", ignore_errors=True)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        target = self._here(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, target)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        shutil.copytree(source_dir, self._here(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        shutil.copy(self._here(source_path), target_path)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        shutil.copytree(self._here(source_dir), target_dir, dirs_exist_ok=True)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        process = await asyncio.create_subprocess_exec(
            "bash",
            "-c",
            self._mapped(command),
            cwd=self._here(cwd or "/app"),
            env={**self._environ(), **(self._merge_env(env) or {})},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), timeout_sec)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        return ExecResult(
            stdout=out.decode(), stderr=err.decode(), return_code=process.returncode or 0
        )

    def _environ(self) -> dict[str, str]:
        """What a container gives, and how packages are reached; nothing else of who runs it."""
        kept = {name: value for name, value in os.environ.items() if _OF_NETWORK.match(name)}
        home = {"HOME": str(self.root / "home"), "ROOT": str(self.root)}
        return {**kept, "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **home}

    def _here(self, path: str) -> Path:
        return Path(self._mapped(path))

    def _mapped(self, text: str) -> str:
        return _AT_ROOT.sub(f"{self.root}/", text)
