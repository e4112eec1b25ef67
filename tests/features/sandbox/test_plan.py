from pathlib import Path

import pytest

from agent_tui.features.sandbox.backends import bwrap_argv
from agent_tui.features.sandbox.mounts import Mount, mounts_of
from agent_tui.features.sandbox.plan import Border, Covers, SandboxPlan, WallFolders, plan_for
from agent_tui.tools.git.places import git_place

HOME, WORKSPACE = Path("/home/ada"), Path("/home/ada/src/proj")
GIT = WORKSPACE / ".git"


def plan(**fields: object) -> SandboxPlan:
    known: dict[str, object] = {
        "workspace": WORKSPACE,
        "writable": (WORKSPACE,),
        "readable": (),
        "hidden": (),
        "read_only": (),
        "home": HOME,
        "home_stand_in": Path("/home/ada/.cache/wall/home"),
        "scratch": Path("/home/ada/.cache/wall/tmp"),
        "gate": Path("/tmp/gate"),
    }
    return SandboxPlan(**{**known, **fields})  # pyright: ignore[reportArgumentType]


def laid(of: SandboxPlan) -> dict[Path, str]:
    """What is mounted where, without the temporary folders that every plan has."""
    kinds = {mount.path: str(mount.kind) for mount in mounts_of(of)}
    return {path: kind for path, kind in kinds.items() if path.parts[1] not in ("tmp", "var")}


def repository(folder: Path) -> Path:
    (folder / ".git/hooks").mkdir(parents=True)
    for name in ("HEAD", "config"):
        (folder / ".git" / name).write_text("")
    return folder / ".git"


def made_plan(tmp_path: Path, *folders: Path, **more: object) -> SandboxPlan:
    (tmp_path / "home").mkdir(exist_ok=True)
    own = WallFolders(*(tmp_path / name for name in ("stand-in", "scratch", "gate")))
    border = more.pop("border", Border(tmp_path / "home"))
    return plan_for(folders, border, own, **more)  # pyright: ignore[reportArgumentType]


def test_of_home_only_what_is_named_is_there_and_the_deeper_path_decides():
    toolchain, other = HOME / ".cargo/bin", HOME / "src/other/.git"
    mounts = laid(
        plan(
            readable=(toolchain, other, Path("/opt/sdk"), WORKSPACE / ".venv"),
            writable=(WORKSPACE, HOME / ".npm", GIT),
            hidden=(HOME / ".ssh", WORKSPACE / ".env", Path("/run")),
        )
    )
    assert mounts == {
        HOME: "stand-in",
        toolchain: "readable",
        other: "readable",
        HOME / ".npm": "writable",
        WORKSPACE: "writable",
        GIT: "pinned",
        WORKSPACE / ".env": "hidden",
        Path("/run"): "hidden",
    }
    paths = [mount.path for mount in mounts_of(plan(readable=(toolchain,)))]
    assert paths.index(HOME) < paths.index(toolchain)


def test_what_is_both_hidden_and_read_only_is_hidden():
    both = plan(hidden=(WORKSPACE / ".netrc",), read_only=(WORKSPACE / ".netrc",))
    assert laid(both)[WORKSPACE / ".netrc"] == "hidden"


def test_a_home_that_is_not_there_is_not_laid_over(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    made = made_plan(tmp_path, work, border=Border(tmp_path / "nobody"))
    assert [mount.path for mount in mounts_of(made) if mount.path == tmp_path / "nobody"] == []
    assert made.writable == (work,)


def test_all_around_what_is_read_only_is_pinned_or_another_could_be_put_in_its_place():
    mounts = laid(
        plan(writable=(WORKSPACE, GIT), read_only=(GIT / "config", GIT / "modules/a/hooks"))
    )
    assert mounts == {
        HOME: "stand-in",
        WORKSPACE: "writable",
        GIT: "pinned",
        GIT / "config": "read-only",
        GIT / "modules": "pinned",
        GIT / "modules/a": "pinned",
        GIT / "modules/a/hooks": "read-only",
    }


def test_in_plan_mode_nothing_of_the_folders_is_written_and_no_island_is_needed():
    planning = plan(writable=(WORKSPACE, GIT), read_only=(GIT / "config",), is_read_only=True)
    assert GIT not in laid(planning)
    words = bwrap_argv("bwrap", planning)
    assert words[words.index(str(WORKSPACE)) - 1] == "--ro-bind"
    assert words[words.index("/tmp/gate") - 1] == "--bind"


def test_bubblewrap_is_told_in_the_order_of_the_mounts():
    words = bwrap_argv("bwrap", plan(read_only=(GIT / "config",)), info=7, seccomp=8)
    assert words[-3:] == ("--chdir", str(WORKSPACE), "--")
    for option in ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop"):
        assert option in words
    assert [words[words.index(option) + 1] for option in ("--info-fd", "--seccomp")] == ["7", "8"]
    places = [words.index(path) for path in ("/", str(HOME), str(WORKSPACE), str(GIT))]
    assert places == sorted(places)


def test_a_home_that_is_the_root_of_the_system_is_not_laid_over():
    assert laid(plan(home=Path("/"))) == {WORKSPACE: "writable"}


def test_a_plan_follows_links_and_leaves_out_what_is_not_there(tmp_path: Path):
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    (home / ".npm").mkdir(parents=True)
    (tmp_path / "link").symlink_to(work)
    caches = tuple((home / name, home / name) for name in (".npm", ".cache/pip"))
    made = made_plan(
        tmp_path,
        tmp_path / "link",
        border=Border(home, caches, (tmp_path / "none", work)),
        covers=Covers(hidden=(work / ".env",)),
    )
    assert (made.workspace, made.writable, made.hidden) == (work, (work, home / ".npm"), ())


def test_git_of_a_folder_is_written_but_for_what_it_obeys(tmp_path: Path):
    git = repository(tmp_path / "work")
    (git / "modules/a/b/hooks").mkdir(parents=True)
    (git / "modules/a/b/HEAD").write_text("")
    made = made_plan(tmp_path, tmp_path / "work")
    assert made.read_only == (git / "config", git / "hooks", git / "modules/a/b/hooks")
    assert Mount("pinned", git) in mounts_of(made)


def test_of_a_monorepo_the_rest_is_seen_and_its_repository_written(tmp_path: Path):
    git = repository(tmp_path / "home/mono")
    package = tmp_path / "home/mono/packages/a"
    package.mkdir(parents=True)
    made = made_plan(tmp_path, package)
    assert made.writable == (package, git)
    assert made.readable == (tmp_path / "home/mono",)


def test_a_repository_of_the_home_folder_does_not_open_it(tmp_path: Path):
    repository(tmp_path / "home")
    (tmp_path / "home/work").mkdir()
    made = made_plan(tmp_path, tmp_path / "home/work")
    assert (made.writable, made.readable) == ((tmp_path / "home/work",), ())


def linked(tmp_path: Path, tree: Path) -> Path:
    """The git folder of `tree`, made a worktree of the repository ``main``."""
    inner = tmp_path / "main/.git/worktrees" / tree.name
    inner.mkdir(parents=True)
    tree.mkdir(parents=True, exist_ok=True)
    (tree / ".git").write_text(f"gitdir: {inner}\n")
    (inner / "HEAD").write_text("")
    (inner / "commondir").write_text("../..\n")
    (inner / "gitdir").write_text(f"{tree}/.git\n")
    return inner


def test_a_linked_worktree_writes_the_repository_it_belongs_to(tmp_path: Path):
    git = repository(tmp_path / "main")
    tree, other = tmp_path / "tree", tmp_path / "other"
    inner, _ = linked(tmp_path, tree), linked(tmp_path, other)
    place = git_place(tree)
    assert place is not None
    assert place.folder == git
    assert other / ".git" in place.seen  # or ``git worktree prune`` would forget it
    assert {tree / ".git", inner / "commondir", git / "config"} <= set(place.obeyed)


def test_a_worktree_in_the_folder_itself_can_be_removed(tmp_path: Path):
    repository(tmp_path / "main")
    inner = linked(tmp_path, tmp_path / "main/trees/a")
    place = git_place(tmp_path / "main")
    assert place is not None
    assert not [path for path in place.obeyed if inner in path.parents]


@pytest.mark.parametrize("way", ["file", "link", "worktrees"])
def test_a_git_folder_that_is_no_other_work_trees_is_written(tmp_path: Path, way: str):
    (tmp_path / "worktrees").mkdir()
    git = tmp_path / ("worktrees/x.git" if way == "worktrees" else "x.git")
    repository(tmp_path / "x").rename(git)
    (git / "config").write_text("[core]\n\tbare = false\n")
    if way == "link":
        (tmp_path / "x/.git").symlink_to("../x.git")
    else:
        (tmp_path / "x/.git").write_text(f"gitdir: {git}\n")
    made = made_plan(tmp_path, tmp_path / "x")
    assert made.writable == (tmp_path / "x", git)
    assert {git / "config", git / "hooks"} <= set(made.read_only)
    assert git not in made.read_only


@pytest.mark.parametrize(
    "way", ["file", "link", "commondir", "bare", "elsewhere", "unknown", "worktree", "submodule"]
)
def test_a_made_up_git_leads_to_no_other_repository(tmp_path: Path, way: str):
    theirs, work = repository(tmp_path / "theirs"), tmp_path / "work"
    work.mkdir()
    separate = {
        "bare": "[core]\n\tbare = true\n",
        "elsewhere": f"[core]\n\tbare = false\n\tworktree = {tmp_path}/theirs\n",
        "unknown": "[core]\n\tworktree = \0\n",
    }
    match way:
        case "bare" | "elsewhere" | "unknown":
            theirs = theirs.rename(tmp_path / "theirs.git")
            (theirs / "config").write_text(separate[way])
            (work / ".git").write_text(f"gitdir: {theirs}\n")
        case "worktree":
            (work / ".git").symlink_to(linked(tmp_path / "x", tmp_path / "tree"))
        case "submodule":
            repository(tmp_path / "part").rename(theirs / "modules")
            (theirs / "modules/config").write_text("[core]\n\tbare = false\n")
            (work / ".git").symlink_to(theirs / "modules")
        case "file":
            (work / ".git").write_text(f"gitdir: {theirs}\n")
        case "link":
            (work / ".git").symlink_to(theirs)
        case _:
            (repository(work) / "commondir").write_text(f"{theirs}\n")
    place = git_place(work)
    assert place is None or place.folder == work / ".git"
