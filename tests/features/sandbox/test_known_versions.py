import shutil
from mmap import mmap
from pathlib import Path

import pytest

from agent_tui.features.sandbox import commit_search, known_versions, named_commits
from tests.support.watched_folder import WatchedFolder

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="uses git")

_FORGE = """
H=$(git rev-parse HEAD); P=$(git rev-parse HEAD~1); export GIT_INDEX_FILE=.git/index.other
echo evil > AGENTS.md; git read-tree HEAD; git add AGENTS.md; T=$(git write-tree)
E=$(git commit-tree -p $P -m x $T); N=$(git commit-tree -p $P -p $E -m two $H^{tree})
"""
_OBJECTS = """
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
    settled = await place.run(f"{_FORGE}{_OBJECTS}{command}", code=None)
    assert "AGENTS.md" in place.held(settled), place.printed
    assert place.text("AGENTS.md") == "three\n"


@pytest.mark.parametrize("is_packed", [False, True])
async def test_a_reference_that_a_command_hides_among_many_is_never_the_persons(
    place: WatchedFolder, monkeypatch: pytest.MonkeyPatch, is_packed: bool
):
    monkeypatch.setattr(commit_search, "MOST_LISTED", 50)
    monkeypatch.setattr(named_commits, "MOST_LISTED", 50)
    await place.run("true")
    many = (
        f"{_FORGE}rm .git/index.other; unset GIT_INDEX_FILE; git checkout -q AGENTS.md;"
        "for i in $(seq 60); do echo create refs/a/$i HEAD; done | git update-ref --stdin;"
        "mkdir -p .git/refs/z/y/x; echo $H > .git/refs/z/y/x/evil"
    )
    await place.run(many)
    await place.run(
        f"{_FORGE}rm .git/index.other; git checkout -q AGENTS.md; git update-ref refs/b $E"
    )
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


_LATER = "export GIT_AUTHOR_DATE=@2000000000"
"""Not in the second of a command's commit."""

_EVIL = """
export GIT_INDEX_FILE=.git/other; git read-tree HEAD; B=$(echo evil | git hash-object -w --stdin)
git update-index --cacheinfo 100644,$B,AGENTS.md
E=$(git commit-tree -p HEAD -m evil $(git write-tree)); R=$(git commit-tree -p $E -m x HEAD^{tree})
rm .git/other; unset GIT_INDEX_FILE; echo $E > evil
"""


@pytest.mark.parametrize(
    "left",
    [
        "git update-ref HEAD $R",
        "git update-ref HEAD $E; git update-ref HEAD HEAD~1",
        "echo $R > .git/MERGE_HEAD",
        "git update-ref --create-reflog refs/stash $E; git update-ref refs/stash $R",
    ],
    ids=["reverted", "reset", "merge", "stash"],
)
@pytest.mark.parametrize(
    "users",
    [
        "git commit -q --allow-empty -m mine",
        "git branch keep $(cat evil); git tag keep $(cat evil)",
        "git reset -q --hard $(cat evil); git reset -q --hard HEAD~1",
        "git stash drop -q 2>/dev/null || true",
    ],
    ids=["commit", "name", "reset", "drop"],
)
async def test_nothing_that_the_person_does_on_top_makes_a_commands_commits_theirs(
    place: WatchedFolder, left: str, users: str
):
    await place.run("true")
    await place.run(f"{_EVIL}{left}")
    place.outside(users)
    await place.run("true")
    settled = await place.run("git checkout -q $(cat evil) -- AGENTS.md")
    assert set(place.held(settled)) == {"AGENTS.md"}
    await place.refuse(settled)
    assert place.text("AGENTS.md") == "three\n"


@pytest.mark.parametrize(
    "users",
    [
        "git rebase -q --force-rebase HEAD~2; git rev-parse HEAD~1 > evil",
        "git reset -q --hard HEAD~1; git commit -q --amend -m mine; git rev-parse HEAD > evil",
        "git switch -qc new HEAD~2; git cherry-pick $(cat evil); git rev-parse HEAD > evil",
    ],
    ids=["rebase", "amend", "cherry-pick"],
)
async def test_a_commit_that_the_person_makes_from_a_commands_commit_is_not_theirs(
    place: WatchedFolder, users: str
):
    await place.run("true")
    await place.run(f"{_EVIL}git update-ref HEAD $R")
    place.outside(f"export GIT_COMMITTER_DATE=@2000000000; {users}; git switch -q --detach t")
    await place.run("true")
    settled = await place.run("git checkout -q $(cat evil) -- AGENTS.md")
    assert set(place.held(settled)) == {"AGENTS.md"}


@pytest.mark.parametrize(
    ("author", "encoding"),
    [
        (".Eve. <e@e> 1700000000 +0000", ""),
        ("Eve  <e@e>  01700000000 +0000", ""),
        ("E\\351ve <e@e> 1700000000 +0000", "encoding ISO-8859-1\\n"),
        ("Eve <e@e> 1700000001+AAo-x 1700000000 -0000", "encoding UTF-7\\n"),
    ],
)
@pytest.mark.parametrize("users", ["git commit -q --amend -m mine", "git rebase -q main"])
async def test_no_forged_author_makes_what_the_person_makes_of_a_commit_theirs(
    place: WatchedFolder, author: str, encoding: str, users: str
):
    await place.run("true")
    commit = (
        rf"tree %s\nparent %s\nauthor {author}\ncommitter E <e> 1700000000 +0000\n{encoding}\nx"
    )
    await place.run(
        f"{_EVIL}printf '{commit}\n' $(git rev-parse $E^{{tree}}) $(git rev-parse HEAD) > forged;"
        "git branch topic $(git hash-object --literally -t commit -w forged); rm forged evil"
    )
    place.outside(
        f"{_LATER} GIT_COMMITTER_DATE=@2000000000; echo x > x; git add x; git commit -qm x;"
        f"git switch -q topic; unset GIT_AUTHOR_DATE GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL; {users};"
        "git switch -q main"
    )
    await place.run("true")
    assert set(place.held(await place.run("git checkout -q topic"))) == {"AGENTS.md"}


async def test_what_the_person_commits_on_top_of_a_commands_commits_counts(place: WatchedFolder):
    await place.run("true")
    await place.run("echo x > x; git add x; git commit -qm x")
    place.outside(f"{_LATER}; echo mine > AGENTS.md; git commit -qam mine; git switch -qc y HEAD~1")
    await place.run("true")
    place.watch = place.watch_again()
    assert (await place.run("git switch -q main")).held == ()
    assert place.text("AGENTS.md") == "mine\n"


@pytest.mark.parametrize("forged", ["parent's tree", "parent"])
async def test_nothing_forged_makes_the_person_bring_what_a_commit_below_has(
    place: WatchedFolder, forged: str
):
    await place.run("true")
    await place.refuse(
        await place.run("echo evil > AGENTS.md; git commit -qam evil; git rev-parse HEAD > evil")
    )
    place.outside("echo x > x; git add x; git commit -qm mine x; git show HEAD:AGENTS.md")
    await place.run("true")
    old, new = ("evil", "evil~1") if forged == "parent" else ("evil^{tree}", "evil~1^{tree}")
    settled = await place.run(
        f"{_OBJECTS}evil=$(cat evil); put $(git rev-parse ${new}) $(git rev-parse ${old});"
        "git log -1 --stat; git show HEAD:AGENTS.md > AGENTS.md"
    )
    assert "AGENTS.md" in place.printed
    assert set(place.held(settled)) == {"AGENTS.md"}


@pytest.mark.parametrize("is_named", [False, True])
async def test_no_commit_that_the_person_fetches_has_a_forged_parent(
    place: WatchedFolder, is_named: bool
):
    place.outside(f"{_COLLEAGUE}git rev-parse HEAD > ../proj/team")
    await place.run("true")
    graft = "mkdir .git/info; echo $(cat team) $(git rev-parse HEAD) $E > .git/info/grafts"
    name = "git update-ref refs/x $E" if is_named else "true"
    settled = await place.run(f"{_EVIL}{graft}; {name}")
    assert ".git/info/grafts" in place.held(settled)
    place.outside("git fetch -q; ! (git log origin/main | grep -q evil)")
    await place.run("true")
    settled = await place.run("git checkout -q $(cat evil) -- AGENTS.md")
    assert set(place.held(settled)) == {"AGENTS.md"}


_COLLEAGUE = f"""
{_LATER}
git init -q -b main --bare ../hub; git remote add origin ../hub; git push -q origin main
git branch -q -u origin/main; git clone -q ../hub ../other; cd ../other
echo team > AGENTS.md; mkdir .husky; echo x > .husky/pre-push; git add .; git commit -qm team
git push -q
"""


async def test_what_the_person_fetches_while_a_job_runs_stays_and_is_asked_about(
    place: WatchedFolder,
):
    place.outside(_COLLEAGUE)
    await place.run("true")
    await place.watch.note()
    await place.watch.hold(is_over=False)
    place.outside("git fetch -q")
    await place.watch.end_job()
    await place.watch.close()
    place.watch = place.watch_again()
    settled = await place.run("git merge -q origin/main")
    assert set(place.held(settled)) == {"AGENTS.md", ".husky"}
    for held in settled.held:
        assert held.is_in_place
        assert " from commit " in held.who
        assert held.who.endswith(" (team), which you or a command added")
        await place.watch.decide(held, True)
    place.outside('test -z "$(git status --porcelain)"')
    assert (await place.run("git checkout -q HEAD~1; git checkout -q main")).held == ()
    assert (await place.run("git worktree add -q w")).held == ()
    assert place.text("w/AGENTS.md") == "team\n"


async def test_what_the_person_pulls_while_a_command_runs_stays_and_is_asked_about(
    place: WatchedFolder,
):
    place.outside(_COLLEAGUE)
    await place.run("true")
    await place.watch.note()
    place.outside("git pull -q")
    settled = await place.watch.hold()
    assert set(place.held(settled)) == {"AGENTS.md", ".husky"}
    assert all(held.is_in_place for held in settled.held)
    place.outside('test -z "$(git status --porcelain)"')
    await place.refuse(settled)
    assert place.text("AGENTS.md") == "three\n"
    assert not (place.root / ".husky").exists()


async def test_what_the_person_pulls_between_commands_counts(place: WatchedFolder):
    place.outside(_COLLEAGUE)
    await place.run("git commit -q --allow-empty -m inside")
    place.outside("git pull -q --no-rebase --no-edit; git switch -qc old main~1")
    await place.run("true")
    place.watch = place.watch_again()
    assert (await place.run("git switch -q main")).held == ()
    assert place.text("AGENTS.md") == "team\n"


async def test_the_persons_commits_count_in_their_repository_that_began_with_a_commands(
    place: WatchedFolder,
):
    place.outside("rm -rf .git * sub; git init -q -b main; echo x > x")
    await place.run("git add x; git commit -qm first")
    place.outside(
        f"{_LATER}; git switch -qc other; echo mine > AGENTS.md; git add .; git commit -qm mine;"
        "git switch -q main"
    )
    await place.run("true")
    place.watch = place.watch_again()
    assert (await place.run("git switch -q other")).held == ()
    assert place.text("AGENTS.md") == "mine\n"
    settled = await place.run("echo evil > AGENTS.md; git commit -qam evil; git switch -q main")
    settled = await place.run("git checkout -q other -- AGENTS.md")
    assert set(place.held(settled)) == {"AGENTS.md"}


async def test_the_persons_commits_count_in_a_repository_of_a_command_once_they_commit_there(
    place: WatchedFolder,
):
    await place.run("true")
    await place.run("git init -q n; cd n; echo evil > AGENTS.md; git add .; git commit -qm evil")
    await place.run("cd n; git checkout -q .", code=None)
    assert place.text("n/AGENTS.md") == ""
    place.outside(
        f"{_LATER}; cd n; echo mine > AGENTS.md; git commit -qam mine; git branch mine;"
        "git switch -qc old HEAD~1; git rm -q AGENTS.md; git commit -qm gone"
    )
    await place.run("true")
    assert (await place.run("cd n; git switch -q mine")).held == ()
    assert place.text("n/AGENTS.md") == "mine\n"
    settled = await place.run("cd n; git checkout -q mine~1")
    assert set(place.held(settled)) == {"n/AGENTS.md"}


def _other_of(place: WatchedFolder) -> WatchedFolder:
    """Another folder of the person's, watched by the same program."""
    root, own = (place.root.with_name(name) for name in ("other", "others-own"))
    for folder in (root, own):
        folder.mkdir(exist_ok=True)
    repositories = place.own / "repositories"
    return WatchedFolder(root, own, place.home, has_mounts=False, repositories=repositories)


@pytest.mark.parametrize(
    ("before", "after", "prefix"),
    [
        ("true", "mv ../proj ../other", ""),
        ("true", "cp -r ../proj ../other; rm -r ../proj", ""),
        ("true", "git clone -q . ../other", "origin/"),
        ("git clone -q . ../other", "git -C ../other fetch -q", "origin/"),
        (
            "true",
            "git clone -q --bare . ../hub; git init -q ../other; cd ../other;"
            "git remote add origin ../hub; git fetch -q; git checkout -qb main origin/main",
            "origin/",
        ),
    ],
    ids=["moved", "copied", "cloned", "fetched", "by a hub"],
)
async def test_commits_of_commands_are_known_in_each_repository_that_has_them(
    place: WatchedFolder, before: str, after: str, prefix: str
):
    place.outside(before)
    if before != "true":
        await _other_of(place).run("true")
    await place.run("true")
    await place.run(f"{_EVIL}git branch evil $E")
    place.outside(
        f"{_LATER}; git switch -qc mine evil; echo mine > sub/AGENTS.md; git commit -qam mine;"
        "git branch -D -q evil; git switch -q main"
    )
    await place.run("true")
    place.outside(after)
    other = _other_of(place)
    await other.run("true")
    assert (await other.run("git checkout -q main~1")).held == ()
    settled = await other.run(f"git checkout -q {prefix}mine")
    assert set(other.held(settled)) == {"AGENTS.md"}
    await other.refuse(settled)
    assert (other.text("AGENTS.md"), other.text("sub/AGENTS.md")) == ("two\n", "mine\n")


async def test_what_a_command_clones_stays_the_persons_in_their_own_repositories(
    place: WatchedFolder,
):
    place.outside("git switch -qc old main~1; git switch -q main")
    await place.run("true")
    await place.run(f"git clone -q . copy; {_EVIL}git branch evil $E")
    place.outside(
        "git init -qb main ../hers; cd ../hers; echo hers > AGENTS.md; git add .; git commit -qm a;"
        "echo x > AGENTS.md; git commit -qam b; git clone -q ../proj ../other -b old; cd ../other;"
        "git fetch -q ../hers main:hers"
    )
    other = _other_of(place)
    await other.run("true")
    assert (await other.run("git checkout -q hers~1; git checkout -q origin/main")).held == ()
    assert other.text("AGENTS.md") == "three\n"


@pytest.mark.parametrize("is_packed", [False, True])
async def test_what_was_there_before_the_first_command_counts_with_too_many_references(
    place: WatchedFolder, monkeypatch: pytest.MonkeyPatch, is_packed: bool
):
    monkeypatch.setattr(commit_search, "MOST_LISTED", 50)
    monkeypatch.setattr(named_commits, "MOST_LISTED", 50)
    place.outside(
        "for i in $(seq 60); do echo create refs/tags/$i HEAD; done | git update-ref --stdin;"
        "git switch -q --orphan other; echo mine > AGENTS.md; git add .; git commit -qm mine;"
        f"git switch -q main; rm -r .git/logs; {'git pack-refs --all' if is_packed else 'true'}"
    )
    await place.run(f"{_EVIL}git branch evil $E")
    assert (await place.run("git switch -q other")).held == ()
    assert place.text("AGENTS.md") == "mine\n"
    place.outside(
        "git switch -q main; git for-each-ref 'refs/tags/*' --format='delete %(refname)'"
        " | git update-ref --stdin; git commit -q --allow-empty -m x"
    )
    place.watch = place.watch_again()
    await place.run("true")
    assert (await place.run("git checkout -q other; git checkout -q main~2")).held == ()
    assert set(place.held(await place.run("git checkout -q evil"))) == {"AGENTS.md"}


async def test_what_was_there_before_the_first_command_counts_if_git_is_silent(
    place: WatchedFolder, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(known_versions, "_PATIENCE_S", 0)
    await place.watch.note()
    monkeypatch.undo()
    place.inside(f"{_EVIL}git branch evil $E")
    await place.watch.hold()
    assert (await place.run("git checkout -q HEAD~1")).held == ()
    assert set(place.held(await place.run("git checkout -q evil"))) == {"AGENTS.md"}


@pytest.mark.parametrize("is_packed", [False, True])
async def test_a_replacement_by_a_command_is_held_back(place: WatchedFolder, is_packed: bool):
    place.outside(
        "git branch other; git replace $(git rev-parse HEAD~1) $(git rev-parse HEAD~2);"
        "git pack-refs --all; git tag new"
    )
    await place.run("true")
    pack = "git pack-refs --all" if is_packed else "true"
    settled = await place.run(f"{_FORGE}rm .git/other; git replace $H^{{tree}} $T; {pack}")
    (held,) = [each for each in settled.held if each.path.name != "AGENTS.md"]
    assert held.who == "git would show other objects"
    place.outside("git checkout -q other -- AGENTS.md; test $(git replace -l | wc -l) = 1")
    assert place.text("AGENTS.md") == "three\n"
    assert place.held(await place.run("git tag newer; git gc -q; git pack-refs --all")) == {}
    place.outside("test $(git replace -l | wc -l) = 1; git rev-parse -q other t new newer")


@pytest.mark.parametrize("start", ["git rev-parse -q HEAD", "rm -rf .git; git init -q"])
async def test_what_is_held_and_still_staged_comes_with_the_command_that_unstages_it(
    place: WatchedFolder, start: str
):
    place.outside(f"{start}; mkdir -p 'a b'; echo x > 'a b/x'")
    await place.run("true")
    settled = await place.run("mkdir 'a b/.vscode'; echo evil > 'a b/.vscode/x'; git add -A")
    (held,) = settled.held
    said = held.outcome("it")
    assert ". It is still staged; to unstage it: git -C " in said
    place.outside(said.rpartition(": ")[2])
    place.outside("git checkout -q . || true; test ! -e 'a b/.vscode'")
    settled = await place.run(
        "mkdir .vscode; echo evil > .vscode/x; git add x; echo x >.mcp.json", None
    )
    assert len(settled.held) == 2
    assert not any("staged" in each.outcome("it") for each in settled.held)


def test_no_padding_hides_a_commit_that_unfinished_work_names(tmp_path: Path):
    todo, log = tmp_path / "rebase-merge/git-rebase-todo", tmp_path / "logs/HEAD"
    named = [letter * 40 for letter in "abc"]
    for file, id in zip((todo, tmp_path / "MERGE_HEAD", log), named, strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"pick {id} one\n" + "# padding\n" * 10_000)
    stamp = named_commits.stamp_of(tmp_path)
    assert set(named_commits.noted_ids(tmp_path)) == {*named[:2]}  # of a log, only the end counts
    todo.write_text(todo.read_text().replace("a" * 40, "d" * 40))
    assert named_commits.stamp_of(tmp_path) != stamp
