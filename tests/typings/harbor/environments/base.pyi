from pathlib import Path

from pydantic import BaseModel

class ExecResult(BaseModel):
    return_code: int
    stdout: str | None = None
    stderr: str | None = None

class BaseEnvironment:
    environment_dir: Path
    session_id: str

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult: ...
    async def upload_file(self, source_path: Path | str, target_path: str) -> None: ...
    def _merge_env(self, env: dict[str, str] | None) -> dict[str, str] | None: ...
