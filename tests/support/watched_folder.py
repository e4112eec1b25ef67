"""A folder that commands change in a wall of bubblewrap, watched as the program does it."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent_tui.features.sandbox.watch import ObeyedWatch, Settled
from agent_tui.tools.files.home_links import find_linked
from tests.support.tool_calls import KEEPER

OPEN_WATCHES: list[ObeyedWatch] = []
"""Those of the test that runs; a fixture closes them."""

WHO = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


@dataclass
class WatchedFolder:
    """The workspace `root`, and our own folder beside it.

    Attributes:
        printed: What the newest command printed, both streams.
    """

    root: Path
    own: Path
    home: Path
    has_mounts: bool = True
    repositories: Path | None = None
    added: tuple[Path, ...] = ()
    unchecked: tuple[str, ...] = ()
    linked: Mapping[Path, Path] | None = None
    watch: ObeyedWatch = field(init=False)
    printed: str = field(init=False, default="")

    def __post_init__(self) -> None:
        self.watch = self.watch_again()

    def watch_again(self) -> ObeyedWatch:
        """Another program's, or the next one's."""
        watch = ObeyedWatch(
            [self.root, *self.added],
            self.own,
            keeper=KEEPER,
            environ=self.environ,
            has_mounts=self.has_mounts,
            linked=find_linked(self.home, (), (self.root,)) if self.linked is None else self.linked,
            repositories=self.repositories,
            unchecked=self.unchecked,
        )
        OPEN_WATCHES.append(watch)
        return watch

    @property
    def environ(self) -> Mapping[str, str]:
        return {"PATH": "/usr/bin:/bin", "HOME": str(self.home), **WHO}

    def outside(self, script: str) -> None:
        """The person runs a script."""
        subprocess.run(["bash", "-ec", script], cwd=self.root, env=self.environ, check=True)

    async def run(self, command: str, code: int | None = 0) -> Settled:
        """A command of the model's, in the wall if there is one."""
        await self.watch.note()
        self.watch.hidden.note_command(command)
        self.inside(command, code)
        settled = await self.watch.hold()
        self.watch.hidden.forget_command(command)
        return settled

    async def refuse(self, settled: Settled) -> None:
        """The person says no to all that is held or asked about."""
        for held in settled.held:
            await self.watch.decide(held, False)

    def inside(self, command: str, code: int | None = 0) -> None:
        """Only the command."""
        words = self._wall() if self.has_mounts else ()
        ran = subprocess.run(
            [*words, "bash", "-c", command],
            cwd=self.root,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.printed = ran.stdout
        assert code is None or ran.returncode == code, ran.stdout

    def _wall(self) -> list[str]:
        words = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev"]
        words += ["--tmpfs", str(self.own), "--bind", str(self.root), str(self.root)]
        laid = self.watch.covers
        covers = [*laid.read_only, *(place for place, _ in laid.copies)]
        around = {above for path in covers for above in path.parents if self.root in above.parents}
        for folder in sorted(around):
            words += ["--bind", str(folder), str(folder)]
        for place, copy in laid.copies:
            words += ["--bind", str(copy), str(place)]
        for path in laid.read_only:
            words += ["--ro-bind", str(path), str(path)]
        return [*words, "--chdir", str(self.root), "--"]

    def text(self, name: str) -> str:
        """What a file holds; empty where there is none."""
        path = self.root / name
        return path.read_text() if path.exists() else ""

    def held(self, settled: Settled) -> dict[str, str]:
        """What was laid aside, and why."""
        return {str(file.path.relative_to(self.root)): file.who for file in settled.held}
