import shutil
from mmap import mmap
from pathlib import Path

import pytest

from agent_tui.tools.sandbox import known_versions
from tests.support.watched_folder import WatchedFolder

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="uses git")

_FORGE = """
H=$(git rev-parse HEAD); P=$(git rev-parse HEAD~1); export GIT_INDEX_FILE=.git/other
echo evil > AGENTS.md; git read-tree HEAD; git add AGENTS.md; T=$(git write-tree)
E=$(git commit-tree -p $P -m x $T); N=$(git commit-tree -p $P -p $E -m two $H^{tree})
place() { f=.git/objects/$(echo $1 | cut -c1-2); mkdir -p $f; echo $f/$(echo $1 | cut -c3-); }
put() { rm -f $(place $2); cp $(place $1) $(place $2); }
"""


@pytest.fixture
def place(tmp_path: Path) -> WatchedFolder:
    """The person's repository with three versions of ``AGENTS.md``, in a wall without mounts."""
    folders = [tmp_path / name for name in ("proj", "own", "home")]
    for folder in folders:
        folder.mkdir()
    place = WatchedFolder(*folders, has_mounts=False)
    place.outside(
        "git init -q -b main; for i in one two three; do mkdir -p sub; echo $i > AGENTS.md;"
        "echo $i > sub/AGENTS.md; git add .; git commit -qm $i; done; git tag -am t t"
    )
    return place


@pytest.mark.parametrize(
    "version", ["HEAD~2", "HEAD", "main~1", "t"], ids=["first", "tip", "middle", "tag"]
)
async def test_each_version_of_the_persons_history_is_known(place: WatchedFolder, version: str):
    await place.run("true")
    place.outside("git switch -q --orphan empty; git commit -q --allow-empty -m x")
    await place.run("true")
    command = f"git checkout -q {version.replace('HEAD', 'main')} -- . && cat sub/AGENTS.md"
    assert (await place.run(command)).held == ()
    assert place.printed != ""


async def test_commits_that_git_removed_make_no_version_unknown(place: WatchedFolder):
    await place.run("true")
    place.outside(
        "git commit -q --amend -m other; git tag -d t; git reflog expire --expire=now --all;"
        "git gc -q --prune=now"
    )
    assert (await place.run("git checkout -q HEAD~1")).held == ()
    assert place.text("AGENTS.md") == "two\n"


@pytest.mark.parametrize(
    "command",
    [
        "mkdir -p .git/info; echo $H $P $E > .git/info/grafts",
        "git replace $H $N",
        "put $N $H",
        "put $T $(git rev-parse $H^{tree})",
        "put $E $P",
        "git update-ref refs/heads/x $N; git commit-graph write --reachable; put $N $H;"
        "git commit-graph write --reachable",
    ],
    ids=["graft", "replacement", "commit", "tree", "parent", "commit-graph"],
)
async def test_no_forged_history_makes_a_version_known(place: WatchedFolder, command: str):
    await place.run("true")
    settled = await place.run(f"{_FORGE}{command}", code=None)
    assert set(place.held(settled)) == {"AGENTS.md"}, place.printed
    assert place.text("AGENTS.md") == "three\n"


@pytest.mark.parametrize("is_packed", [False, True])
async def test_a_reference_that_a_command_hides_among_many_is_never_the_persons(
    place: WatchedFolder, monkeypatch: pytest.MonkeyPatch, is_packed: bool
):
    monkeypatch.setattr(known_versions, "_MOST_LISTED", 50)
    await place.run("true")
    many = (
        f"{_FORGE}rm .git/other; unset GIT_INDEX_FILE; git checkout -q AGENTS.md;"
        "for i in $(seq 60); do echo create refs/a/$i HEAD; done | git update-ref --stdin;"
        "mkdir -p .git/refs/z/y/x; echo $H > .git/refs/z/y/x/evil"
    )
    await place.run(many)
    await place.run(f"{_FORGE}rm .git/other; git checkout -q AGENTS.md; git update-ref refs/b $E")
    await place.run("git rev-parse refs/b > .git/refs/z/y/x/evil")
    if is_packed:
        await place.run("git pack-refs --all --prune")
    place.outside("echo x > x; git add x; git commit -qm mine")
    await place.run("true")
    await place.run("git for-each-ref --format='delete %(refname)' refs/a | git update-ref --stdin")
    place.outside("git commit -q --allow-empty -m mine")
    await place.run("true")
    settled = await place.run("git checkout refs/z/y/x/evil -- AGENTS.md")
    assert set(place.held(settled)) == {"AGENTS.md"}


async def test_a_reference_that_a_job_writes_through_a_mapping_is_not_the_persons(
    place: WatchedFolder,
):
    await place.run(f"{_FORGE}git update-ref refs/heads/evil HEAD; git update-ref refs/b $E")
    await place.watch.note()
    await place.watch.hold(is_over=False)
    with (place.root / ".git/refs/heads/evil").open("r+b") as file, mmap(file.fileno(), 0) as ref:
        ref[0] = ref[0]
        await place.run("true")
        ref[:] = (place.root / ".git/refs/b").read_bytes()  # changes no time of the file
    await place.watch.end_job()
    place.outside("git commit -q --allow-empty -m mine")
    await place.run("true")
    assert set(place.held(await place.run("git checkout evil -- AGENTS.md"))) == {"AGENTS.md"}
