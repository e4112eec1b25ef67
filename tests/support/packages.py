"""Packages that lie on the search path, made for a test: some code and its entry points."""

import io
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_tui.cli.main import run

_HERE = Path(__file__).parents[2]
_TAB = "os.dup2(1, 8)"
"""A shell reads what completes a word from this descriptor."""


def make_package(site: Path, name: str, code: str, entries: Mapping[str, Mapping[str, str]]) -> str:
    """Install `name` in the folder `site`; returns its module, which no other test imports.

    Args:
        site: A folder of the search path.
        name: Of the distribution.
        code: What its one module holds.
        entries: By group, the entry points: names of the module's, or an object reference.
    """
    module = f"{name}_{abs(hash(site)):x}".replace("-", "_")
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (site / f"{module}.py").write_text(code, encoding="utf-8")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = (
        f"[{group}]\n" + "".join(f"{key} = {module}:{value}\n" for key, value in values.items())
        for group, values in entries.items()
    )
    (info / "entry_points.txt").write_text("".join(lines))
    return module


def documented_plugin(text: str) -> str:
    """The example of the page about plugins in which `text` occurs."""
    page = (_HERE / "docs/pages/plugins.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return next(example for example in examples if text in example)


def run_with_packages(
    site: Path,
    folder: Path,
    *argv: str,
    plugins: str = '["diary-plugin"]',
    settings: str = "",
    environ: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """``agent-tui`` in the folder ``here`` below `folder`, which is also the home.

    Args:
        site: The packages beside it.
        folder: Where it keeps what it writes.
        argv: Its arguments.
        plugins: That setting, as TOML.
        settings: Further ones, as TOML.
        environ: Further variables. With those of a Tab, the answer is the standard output.
    """
    variables = {**_prepare(folder, plugins, settings), "PYTHONPATH": f"{site}{os.pathsep}{_HERE}"}
    program = f'import os, runpy; {_TAB}; runpy.run_module("agent_tui", run_name="__main__")'
    return subprocess.run(
        [sys.executable, "-c", program, *argv],
        capture_output=True,
        text=True,
        cwd=folder / "here",
        env={**os.environ, **variables, **(environ or {})},
        check=False,
    )


def call_with_packages(
    site: Path,
    folder: Path,
    *argv: str,
    plugins: str = '["diary-plugin"]',
    settings: str = "",
) -> subprocess.CompletedProcess[str]:
    """As `run_with_packages`, in this process, where the program is loaded already.

    What a turn of ``-p`` prints is missed: it goes to the streams as they were at the import.
    """
    printed, told = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in "12")
    with pytest.MonkeyPatch.context() as patch, Path(os.devnull).open() as nothing:
        for name, value in _prepare(folder, plugins, settings).items():
            patch.setenv(name, value)
        patch.syspath_prepend(str(site))
        patch.chdir(folder / "here")
        for name, stream in (("stdin", nothing), ("stdout", printed), ("stderr", told)):
            patch.setattr(sys, name, stream)
        try:
            code = run(argv)
        except SystemExit as end:  # of the parser
            code = int(end.code or 0)
    out, err = (stream.buffer.getvalue().decode() for stream in (printed, told))
    return subprocess.CompletedProcess(argv, code, out, err)


def _prepare(folder: Path, plugins: str, settings: str) -> dict[str, str]:
    """Make the folder ``here`` and the settings; the variables by which they are found."""
    (folder / "here").mkdir(exist_ok=True)
    config = folder / "home" / "config" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"plugins = {plugins}\n{settings}", encoding="utf-8")
    return {"AGENT_TUI_HOME": str(folder / "home"), "HOME": str(folder)}
