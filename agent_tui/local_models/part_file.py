"""A download under way: the bytes that came, and what tells whether more of the same can follow."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from pydantic import TypeAdapter, ValidationError


@dataclass(frozen=True, slots=True)
class PartFacts:
    """What the server said of the file.

    `validator` is its ETag or date, `total_bytes` its whole size, `sha256` the hash it promises.
    """

    validator: str = ""
    total_bytes: int | None = None
    sha256: str = ""


class PartFile:
    """A file that grows, and a note beside it. Methods raise `OSError` as files do.

    Args:
        folder: Of the downloads; exists.
        name: What both files are called before their suffix.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / f"{name}.part"
        self._note = folder / f"{name}.part.json"

    def size(self) -> int:
        """Bytes that came so far."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def facts(self) -> PartFacts:
        """What was noted with the bytes; nothing where the note cannot be read."""
        try:
            return TypeAdapter(PartFacts).validate_json(self._note.read_bytes())
        except (OSError, ValidationError):
            return PartFacts()

    def open(self, size: int, facts: PartFacts) -> BinaryIO:
        """Open for writing after the first `size` bytes, those after them dropped; note `facts`.

        Unbuffered: what was written is there when the program is killed.
        """
        if not size:
            self.clear()
        self._note.write_text(json.dumps(asdict(facts)), encoding="utf-8")
        file = self.path.open("ab", buffering=0)
        try:
            file.truncate(size)
        except BaseException:
            file.close()
            raise
        return file

    def clear(self) -> None:
        """Drop the bytes and the note."""
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)
