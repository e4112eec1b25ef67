"""Session files for the benchmark: the shape of real ones, the text of Python's own library."""

import json
import os
import random
import sysconfig
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent_tui.paths import cwd_slug, make_private_dir

_PIECE_CHARS = (400, 12_000)
"""Length of a tool's output: most are short, some are whole files."""
_FILES_READ = 600
_PROJECTS = 40
_FILE = '{"path":"src/a.py"}'
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


class SessionMaker:
    """Makes session files; the same `seed` gives the same files."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._pieces = tuple(_pieces(self._random))
        self._encoded = tuple(json.dumps(piece, ensure_ascii=False) for piece in self._pieces)

    def write_all(self, root: Path, count: int, total_bytes: int) -> None:
        """Write `count` sessions of together about `total_bytes`, of very different sizes."""
        weights = [self._random.lognormvariate(0, 1.2) for _ in range(count)]
        unit = total_bytes / sum(weights)
        for number, weight in enumerate(weights):
            project = Path(f"/projects/number-{number % _PROJECTS}")
            began = _BEGAN + timedelta(minutes=17 * number)
            path = self.write(root, project, began, int(weight * unit))
            os.utime(path, (began.timestamp(), began.timestamp()))

    def write(self, root: Path, cwd: Path, began: datetime, size_bytes: int) -> Path:
        """Write one session of about `size_bytes` and return its path."""
        session_id = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        stamp = began.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        folder = make_private_dir(root / cwd_slug(cwd))
        path = folder / f"{stamp.replace(':', '-').replace('.', '-')}_{session_id}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            header = {"type": "session", "version": 3, "id": session_id, "timestamp": stamp}
            header |= {"cwd": str(cwd), "provider": "anthropic", "modelId": "claude-sonnet-4-5"}
            file.write(json.dumps(header) + "\n")
            left, serial = size_bytes - 200, 0
            while left > 0 or serial < 2:
                for role in ("user", *("assistant", "toolResult") * 6, "assistant"):
                    serial += 1
                    line = self._line(role, serial, stamp)
                    left -= len(line)
                    file.write(line)
                    if left <= 0 and serial >= 2:
                        break
        return path

    def _line(self, role: str, serial: int, stamp: str) -> str:
        parent = f'"{serial - 1:08x}"' if serial > 1 else "null"
        head = f'{{"type":"message","id":"{serial:08x}","parentId":{parent},"timestamp":"{stamp}",'
        body = self._body(role, f"call_{serial - (role == 'toolResult')}")
        return f'{head}"message":{{"role":"{role}",{body},"timestamp":1}}}}\n'

    def _body(self, role: str, call_id: str) -> str:
        match role:
            case "user":
                text = self._random.choice(self._pieces)[:160]
                return f'"content":{json.dumps("Please look at " + text, ensure_ascii=False)}'
            case "toolResult":
                output = self._random.choice(self._encoded)
                return (
                    f'"toolCallId":"{call_id}","toolName":"read","content":[{{"type":"text","text":{output}'
                    f'}}],"isError":false,"details":{{"summary":"{self._random.getrandbits(32)}"}}'
                )
            case _:
                said = json.dumps(self._random.choice(self._pieces)[:300], ensure_ascii=False)
                call = f'{{"type":"toolCall","id":"{call_id}","name":"read","arguments":{_FILE}}}'
                tokens = self._random.randrange(5_000, 150_000)
                return (
                    f'"content":[{{"type":"text","text":{said}}},{call}],"provider":"anthropic",'
                    f'"model":"claude-sonnet-4-5","usage":{{"input":10,"output":200,"cacheRead":'
                    f'{tokens},"cacheWrite":0,"totalTokens":{tokens + 210}}},"stopReason":"toolUse"'
                )


def _pieces(source: random.Random) -> Iterator[str]:
    """Parts of the source files of Python's library."""
    for file in _library_files(source):
        text = file.read_text(encoding="utf-8", errors="replace")
        at = 0
        while at < len(text):
            length = int(source.triangular(*_PIECE_CHARS, _PIECE_CHARS[0]))
            yield text[at : at + length]
            at += length


def _library_files(source: random.Random) -> Sequence[Path]:
    folder = Path(sysconfig.get_path("stdlib"))
    files = sorted(file for file in folder.rglob("*.py") if "site-packages" not in file.parts)
    return source.sample(files, min(len(files), _FILES_READ))
