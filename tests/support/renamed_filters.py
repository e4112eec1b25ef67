"""A repository whose filter has another name each time that git is started."""

import os
import shutil
from pathlib import Path

_GIT = """#!/bin/sh
number=$(cat '{folder}/number'); number=$((number + 1)); echo $number > '{folder}/number'
echo "* filter=f$number" > '{git}/info/attributes'
cp '{folder}/config' '{git}/config'
printf '[filter "f%s"]\\n\\tclean = {evil}\\n\\tsmudge = {evil}\\n' $number >> '{git}/config'
exec {real} "$@"
"""


class RenamedFilters:
    """Puts a ``git`` into the folder `programs` that renames the filter of `repository` first.

    So whoever asks git for the names of filters has learned the wrong one for the next call.

    Attributes:
        search_path: A ``PATH`` that finds this git first.
    """

    def __init__(self, repository: Path, programs: Path) -> None:
        self._git = repository / ".git"
        self._folder = programs.parent / "renamed filters"
        for folder in (self._folder, programs, self._git / "info"):
            folder.mkdir(exist_ok=True)
        (self._folder / "number").write_text("0")
        shutil.copy(self._git / "config", self._folder / "config")
        evil = programs / "evil"
        evil.write_text(f"#!/bin/sh\necho >> '{self._folder}/mark'\ncat\n")
        program = programs / "git"
        names = {"folder": self._folder, "git": self._git, "evil": evil}
        program.write_text(_GIT.format(real=shutil.which("git"), **names))
        for file in (evil, program):
            file.chmod(0o755)
        self.search_path = f"{programs}{os.pathsep}{os.environ['PATH']}"

    @property
    def calls(self) -> int:
        """How often git was started."""
        return int((self._folder / "number").read_text())

    @property
    def have_run(self) -> bool:
        """Whether one of the filters was run."""
        return (self._folder / "mark").exists()
