"""The names under which Python finds a module, other than that of its source.

A file without its source, an extension, or bytecode in ``__pycache__`` that says that nobody should
compare it with the source runs in place of it. The names depend on the version and the platform of
an interpreter that nobody knows here, so one name stands for all: that of bytecode beside the
source (``x.pyc``), which only modules have.
"""

import os
from collections.abc import Iterable, Iterator
from importlib.machinery import BYTECODE_SUFFIXES
from pathlib import Path
from typing import Final

from agent_tui.tools.files.folder_entries import entries_in

COMPILED: Final = BYTECODE_SUFFIXES[0]
"""What the name of bytecode ends in, on each platform."""

CACHE: Final = "__pycache__"
_EXTENSIONS: Final = (".so", ".pyd", ".dll")
"""What the names of extensions end in (CPython, ``Python/dynload_*.c``), after a tag or none."""


def compiled_name(path: str) -> str:
    """The name that stands for the compiled module at `path`; empty if it is none.

    So is ``a/x.pyc`` for ``a/__pycache__/x.cpython-311.pyc`` and ``a/x.abi3.so``.
    """
    folder, _, name = path.rpartition("/")
    if not name.endswith((COMPILED, *_EXTENSIONS)):
        return ""
    if (folder == CACHE or folder.endswith(f"/{CACHE}")) and name.endswith(COMPILED):
        folder = folder.removesuffix(CACHE).rstrip("/")
        stem = name.removesuffix(COMPILED)
        stem = stem.removesuffix(".opt-1").removesuffix(".opt-2").rpartition(".")[0]
    elif name.endswith(COMPILED):
        stem = name.removesuffix(COMPILED)
    else:
        stem = name.partition(".")[0]
    return f"{folder}/{stem}{COMPILED}" if folder or path.startswith("/") else f"{stem}{COMPILED}"


def find_compiled(names: Iterable[str]) -> Iterator[str]:
    """The files for which one of the `names` stands, see `compiled_name`. Blocking."""
    wanted = {name for name in names if name.endswith(COMPILED)}
    for folder in dict.fromkeys(map(os.path.dirname, wanted)):
        for place in (folder, f"{folder}/{CACHE}"):
            for entry in entries_in(Path(place)):
                if compiled_name(f"{place}/{entry.name}") in wanted:
                    yield f"{place}/{entry.name}"
