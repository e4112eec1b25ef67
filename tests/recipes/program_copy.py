"""A copy of the program in which a recipe of CONTRIBUTING is followed, and then run.

A recipe has a test file of its own here. It makes a `ProgramCopy` for the recipe by its title,
adds the files and lines that the recipe asks for, and uses what came of it through every front:
`run` for subcommands and ``-p``, `typing` for the screen and ``--plain``. Only files that the
recipe names can be changed, so a recipe that leaves one out fails its test.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.pty_program import PtyProgram

ROOT = Path(__file__).parents[2]
_RECIPES = "## Recipes"
_MODULE = [sys.executable, "-m", "agent_tui"]
_PYRIGHT = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]


def recipes() -> dict[str, str]:
    """The texts of all recipes by their titles, the words in bold that each begins with."""
    _, _, rest = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition(f"\n{_RECIPES}\n")
    items = re.split(r"^- ", rest.partition("\n## ")[0], flags=re.MULTILINE)[1:]
    return {item.split("**")[1]: item for item in items}


def recipe(title: str) -> str:
    """The text of the recipe that begins with ``- **title**``."""
    found = recipes().get(title)
    if found is None:
        raise LookupError(f"CONTRIBUTING has no recipe {title!r}")
    return found


def named_paths(text: str) -> tuple[str, ...]:
    """The files and folders that a recipe names, as paths from the root of the tree.

    They stand between backticks and hold a slash or end in ``.py``; those of the package are
    written from its top (``cli/subcommands.py``) or from the root (``agent_tui/cli/...``).
    """
    words = (word for word in re.findall(r"`([^`\s]+)`", text) if re.search(r"/|\.py$", word))
    return tuple(
        word if (ROOT / word).exists() else f"agent_tui/{word}"
        for word in words
        if not word.startswith("/")  # a slash command
    )


class ProgramCopy:
    """The program's source in `folder`, with home, settings and working folder of its own.

    Args:
        folder: An empty folder.
        title: The recipe that is followed.
    """

    def __init__(self, folder: Path, title: str) -> None:
        self._root = folder / "tree"
        self._named = named_paths(recipe(title))
        # With the bytecode: what is not changed is not compiled anew at each start.
        shutil.copytree(ROOT / "agent_tui", self._root / "agent_tui")
        self.home, self.work = folder / "home", folder / "work"
        self.config_file = self.home / "config" / "config.toml"
        self.work.mkdir()
        self.config_file.parent.mkdir(parents=True)

    def add_file(self, path: str, text: str) -> None:
        """Add a file that is not there yet, such as ``agent_tui/cli/x_command.py``."""
        file = self._root / path
        assert not file.exists(), f"{path} is there already"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def insert_before(self, path: str, anchor: str, text: str) -> None:
        """Put `text` before the only place where `path`, which the recipe names, has `anchor`."""
        assert any(path == one or path.startswith(f"{one.rstrip('/')}/") for one in self._named), (
            f"the recipe names {', '.join(self._named)}, and not {path}"
        )
        file = self._root / path
        source = file.read_text("utf-8")
        assert source.count(anchor) == 1, f"{path} has {anchor!r} {source.count(anchor)} times"
        file.write_text(source.replace(anchor, text + anchor), encoding="utf-8")

    @property
    def environ(self) -> dict[str, str]:
        """The environment of the copy: the machine's, without settings and keys."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        folders = ("CONFIG", "DATA", "CACHE")
        return {
            **kept,
            "HOME": str(self.home),
            "PYTHONPATH": str(self._root),
            "PYTHONDONTWRITEBYTECODE": "1",
            **{f"AGENT_TUI_{name}_DIR": str(self.home / name.lower()) for name in folders},
        }

    def run(self, *argv: str, text: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
        """Run the copy with `argv`, `text` piped in and `environ` added, in the working folder."""
        return subprocess.run(
            [*_MODULE, *argv],
            input=text,
            capture_output=True,
            text=True,
            cwd=self.work,
            env={**self.environ, **environ},
            check=False,
        )

    def completions(self, line: str) -> list[str]:
        """What a shell offers at Tab after `line`: each word, a tab and what it means."""
        answer = self.work / "answer"
        self.run(
            _ARGCOMPLETE="1",
            _ARGCOMPLETE_STDOUT_FILENAME=str(answer),
            _ARGCOMPLETE_IFS="\n",
            _ARGCOMPLETE_DFS="\t",
            _ARGCOMPLETE_SUPPRESS_SPACE="1",
            COMP_LINE=line,
            COMP_POINT=str(len(line)),
        )
        return answer.read_text("utf-8").splitlines()

    def type_errors(self, importing: str) -> set[str]:
        """The files in which pyright finds an error, of those that import `importing`."""
        package, _, name = importing.rpartition(".")
        imports = re.compile(rf"from ({importing} import|{package} import {name}\b)")
        files = self._root.rglob("*.py")
        readers = [str(file) for file in files if imports.search(file.read_text())]
        done = subprocess.run(
            [*_PYRIGHT, *readers], capture_output=True, text=True, cwd=self._root, check=False
        )
        report = json.loads(done.stdout)
        assert report["summary"]["filesAnalyzed"] == len(readers), done.stderr
        errors = (one for one in report["generalDiagnostics"] if one["severity"] == "error")
        return {Path(one["file"]).relative_to(self._root).as_posix() for one in errors}

    def typing(self, *argv: str, columns: int = 100, rows: int = 40) -> PtyProgram:
        """The copy in a terminal, for the screen and ``--plain``; leave its block to end it."""
        return PtyProgram(
            [*_MODULE, *argv], environ=self.environ, cwd=self.work, columns=columns, rows=rows
        )
