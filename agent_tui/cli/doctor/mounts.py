"""Which file system a folder is on, as Linux tells without touching the disk."""

import re
from dataclasses import dataclass
from pathlib import Path

MOUNTS_FILE = Path("/proc/self/mountinfo")


@dataclass(frozen=True, slots=True)
class FileSystem:
    """Where it begins and what it is (``ext4``, ``nfs4``); `kind` is empty where unknown."""

    place: Path
    kind: str


def file_system(folder: Path, mounts_file: Path = MOUNTS_FILE) -> FileSystem:
    """The file system of `folder` (absolute); its root and no kind where nothing is told.

    The file's form is in the kernel's Documentation/filesystems/proc.rst: the fifth field is the
    place, the first one after a lone ``-`` the kind; later lines cover earlier ones.
    """
    best = FileSystem(Path(folder.anchor), "")
    try:
        lines = mounts_file.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        real = folder.resolve()
    except (OSError, RuntimeError):
        return best
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.partition(" ")[0]
        if len(fields) < 5:
            continue
        place = Path(re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), fields[4]))
        if real.is_relative_to(place) and len(place.parts) >= len(best.place.parts):
            best = FileSystem(place, kind)
    return best
