import asyncio
import gc
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from agent_tui.messages import FileTouches
from agent_tui.tools.base import ToolContext
from agent_tui.tools.bash import BashTool
from agent_tui.tools.git import changes as git_changes
from agent_tui.tools.git import command as git_call
from agent_tui.tools.git import status as git_status
from agent_tui.tools.git.changes import GitChanges
from tests.support.tool_calls import KEEPER, call_tool, with_changes

pytestmark = pytest.mark.skipif(os.name != "posix", reason="uses a POSIX shell and git")

_SET_UP = """
git init -q -b main --template= .; mkdir .git/info .git/hooks
git config user.name Ada; git config user.email ada@example.org
mkdir sub; echo one > a.py; echo one > b.py; echo one > sub/c.py; echo one > dirty.py
echo build/ > .gitignore
git add .; git commit -qm first
echo two >> b.py; git commit -qam second
echo two >> dirty.py; echo one > new.txt; mkdir build; echo one > build/out
"""


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine makes no test fail."""
    monkeypatch.setattr(git_changes, "LOOK_S", 100)
    monkeypatch.setattr(git_changes, "COMPARE_S", 100)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    environ["GIT_TEMPLATE_DIR"] = ""  # no examples of hooks
    subprocess.run(["/bin/bash", "-ec", _SET_UP], cwd=folder, env=environ, check=True)
    return folder


@pytest.fixture
def repository(template: Path, workspace: Path, context: ToolContext) -> Path:
    """Two commits (the second changes b.py), a changed file, a new one and an ignored one."""
    context.environ["GIT_CONFIG_NOSYSTEM"] = "1"
    shutil.copytree(template, workspace, symlinks=True, dirs_exist_ok=True)
    return workspace


def _sh(context: ToolContext, script: str, cwd: Path | None = None) -> None:
    """Run `script` as somebody else would: not through the tool."""
    subprocess.run(
        ["/bin/bash", "-ec", script], cwd=cwd or context.cwd, env=context.environ, check=True
    )


async def _changes(context: ToolContext, command: str) -> FileTouches:
    """What the tool reports for `command`, relative to the workspace."""
    output = await call_tool(context, "bash", {"command": command})
    touches = output.for_person.files
    assert all(Path(path).is_absolute() for path in (*touches.written, *touches.edited))
    root = context.cwd.resolve()
    return FileTouches(
        read=touches.read,
        written=tuple(os.path.relpath(path, root) for path in touches.written),
        edited=tuple(os.path.relpath(path, root) for path in touches.edited),
    )


@pytest.mark.parametrize(
    ("command", "written", "edited"),
    [
        ("echo x >> a.py", (), ("a.py",)),
        ("echo x > n.py; mkdir d; echo x > d/m.py", ("d/m.py", "n.py"), ()),
        ("echo x >> dirty.py; echo x >> new.txt", (), ("dirty.py", "new.txt")),
        ("rm a.py dirty.py new.txt", (), ("a.py", "dirty.py", "new.txt")),
        ("mv a.py z.py", ("z.py",), ("a.py",)),
        ("git mv a.py z.py", ("z.py",), ("a.py",)),
        ("git mv dirty.py z.py", ("z.py",), ("dirty.py",)),
        ("git rm -q a.py", (), ("a.py",)),
        ("git restore dirty.py", (), ("dirty.py",)),
        ("git stash -q", (), ("dirty.py",)),
        ("git reset -q --hard HEAD~1", (), ("b.py", "dirty.py")),
        ("git checkout -q HEAD~1", (), ("b.py",)),
        ("git checkout -q HEAD~1 -- b.py", (), ("b.py",)),
        ("git rm -q a.py && git commit -qm x", (), ("a.py",)),
        ("echo x >> a.py && git commit -qam x", (), ("a.py",)),
        ("echo x > n.py && git add n.py && git commit -qm x", ("n.py",), ()),
        ("echo x > n.py && git add n.py && git commit -qm x && rm n.py", (), ()),
        ("ln -s a.py link", ("link",), ()),
        ("ln -sf b.py a.py", (), ("a.py",)),
        ("rm a.py && mkdir a.py && echo x > a.py/f", ("a.py/f",), ("a.py",)),
        ("echo x >> a.py; false", (), ("a.py",)),
        ("echo x >> a.py; kill -9 $$", (), ("a.py",)),
    ],
)
async def test_files_whose_bytes_changed_are_found(
    context: ToolContext,
    repository: Path,
    command: str,
    written: tuple[str, ...],
    edited: tuple[str, ...],
):
    assert await _changes(context, command) == FileTouches(written=written, edited=edited)


@pytest.mark.parametrize(
    "command",
    [
        "cat a.py",
        "touch a.py",
        "chmod +x a.py",
        "sed -i s/one/one/ a.py",
        "echo x > build/out",
        "git add -A",
        "git add -A && git commit -qm x",
        "git commit -qam x",
        "git commit -q --amend -m x",
        "git reset -q --soft HEAD~1",
        "git reset -q HEAD~1",
        "git restore --staged --source=HEAD~1 b.py",
        "git rm -q --cached a.py",
        "git rm -q --cached a.py && git commit -qm x",
        "git checkout -q --orphan fresh",
        "git checkout -q -b branch",
        "git update-index --skip-worktree a.py",
        "rm -rf .git",
        "git init -q inner && echo x > inner/f",
        "rm -rf $PWD",
    ],
)
async def test_files_whose_bytes_stayed_are_not(
    context: ToolContext, repository: Path, command: str
):
    assert await _changes(context, command) == FileTouches()


async def test_what_a_sparse_checkout_leaves_out_was_not_deleted(
    context: ToolContext, repository: Path
):
    _sh(
        context,
        "git stash -qu; git checkout -q -b other; echo x >> sub/c.py; echo x >> a.py;"
        "git commit -qam other; git checkout -q main; git sparse-checkout set --no-cone '/*.py'",
    )
    assert not (repository / "sub").exists()
    assert await _changes(context, "git merge -q other") == FileTouches(edited=("a.py",))


async def test_a_file_in_conflict_is_changed(context: ToolContext, repository: Path):
    _sh(
        context,
        "git stash -q; git checkout -q -b other HEAD~1; echo three >> b.py;"
        "git commit -qam other; git checkout -q main",
    )
    command = "git merge other; git status --porcelain b.py"
    assert await _changes(context, command) == FileTouches(edited=("b.py",))
    assert await _changes(context, "git add b.py; git merge --abort") == FileTouches(
        edited=("b.py",)
    )


async def test_what_the_person_changes_between_commands_is_not_the_commands(
    context: ToolContext, repository: Path
):
    tool = BashTool(KEEPER, GitChanges(KEEPER))
    for name, text in (("a.py", "by hand"), ("mine.py", "by hand"), ("dirty.py", "by hand")):
        first = await with_changes(
            await tool.run(tool.arguments_type(command="echo x >> b.py"), context)
        )
        assert first.for_person.files.edited == (str(repository / "b.py"),)
        (repository / name).write_text(text)


async def test_what_the_person_made_beside_what_a_command_makes_is_not_the_commands(
    context: ToolContext, repository: Path
):
    tool = BashTool(KEEPER, GitChanges(KEEPER))
    await with_changes(await tool.run(tool.arguments_type(command="echo x > b.py"), context))
    (repository / "notes.txt").write_text("by hand")
    (repository / "new").mkdir()
    (repository / "new/notes.txt").write_text("by hand")
    output = await with_changes(
        await tool.run(tool.arguments_type(command="echo > here; echo > new/there"), context)
    )
    here = str(repository / "here"), str(repository / "new/there")
    assert output.for_person.files == FileTouches(written=here)


async def test_one_look_is_the_one_after_a_command_and_the_one_before_the_next(
    context: ToolContext, repository: Path, tmp_path: Path
):
    calls = _recording_git(context, tmp_path, 'exec /usr/bin/git "$@"')
    tool = BashTool(KEEPER, GitChanges(KEEPER))
    looks = []
    for _ in range(3):
        output = await with_changes(
            await tool.run(tool.arguments_type(command="echo x >> a.py"), context)
        )
        assert output.for_person.files.edited == (str(repository / "a.py"),)
        looks.append(calls.read_text().count("status"))
    assert looks == [2, 3, 4]


async def test_a_command_that_only_reads_is_not_held_up_by_a_look(
    context: ToolContext, repository: Path, tmp_path: Path
):
    calls = _recording_git(context, tmp_path, 'exec /usr/bin/git "$@"')
    tool = BashTool(KEEPER, GitChanges(KEEPER))
    await with_changes(await tool.run(tool.arguments_type(command="echo x >> a.py"), context))
    looks = calls.read_text()
    context.only_reads = True
    output = await tool.run(tool.arguments_type(command="cat a.py"), context)
    assert output.find_changes is None
    assert calls.read_text() == looks
    context.only_reads = False
    output = await with_changes(
        await tool.run(tool.arguments_type(command="echo x >> b.py"), context)
    )
    assert output.for_person.files.edited == (str(repository / "b.py"),)


async def test_a_repository_that_came_between_commands_is_looked_at(
    context: ToolContext, repository: Path
):
    tool = BashTool(KEEPER, GitChanges(KEEPER))
    context.cwd = repository / "sub"
    await with_changes(await tool.run(tool.arguments_type(command="git init -q"), context))
    output = await with_changes(
        await tool.run(tool.arguments_type(command="echo x > n.py"), context)
    )
    assert output.for_person.files.written == (str(repository / "sub/n.py"),)
    _sh(context, "rm -rf .git")
    output = await with_changes(
        await tool.run(tool.arguments_type(command="echo x > m.py"), context)
    )
    assert output.for_person.files.written == (str(repository / "sub/m.py"),)


async def test_what_comes_or_goes_with_its_folder_is_found(context: ToolContext, repository: Path):
    tool = BashTool(KEEPER, GitChanges(KEEPER))
    _sh(context, "mkdir build/d; echo x > build/d/f")
    await with_changes(await tool.run(tool.arguments_type(command="true"), context))
    output = await with_changes(
        await tool.run(tool.arguments_type(command="mv build/d e; rm -r sub"), context)
    )
    assert output.for_person.files == FileTouches(
        written=(str(repository / "e/f"),), edited=(str(repository / "sub/c.py"),)
    )


async def test_a_stopped_command_has_changed_files_too(context: ToolContext, repository: Path):
    command = "echo x >> a.py; sleep 43210"
    output = await call_tool(context, "bash", {"command": command, "timeout": 1})
    assert output.for_person.exit_code is None
    assert output.for_person.files.edited == (str(repository / "a.py"),)


async def test_the_whole_repository_is_seen_from_a_folder_in_it(
    context: ToolContext, repository: Path
):
    context.cwd = repository / "sub"
    command = "echo x >> c.py; echo x >> ../a.py; echo x > n.py"
    changes = await _changes(context, command)
    assert changes == FileTouches(written=("n.py",), edited=("../a.py", "c.py"))


async def test_a_link_is_what_it_names(context: ToolContext, repository: Path):
    _sh(context, "ln -s a.py link; git add link; git commit -qm link")
    assert await _changes(context, "git rm -q --cached link; echo x >> a.py") == FileTouches(
        edited=("a.py",)
    )


async def test_what_git_says_beside_its_answer_does_no_harm(context: ToolContext, repository: Path):
    context.environ["GIT_TRACE"] = "1"
    assert await _changes(context, "echo x >> a.py") == FileTouches(edited=("a.py",))


async def test_paths_are_resolved(context: ToolContext, repository: Path, tmp_path: Path):
    (tmp_path / "link").symlink_to(repository)
    context.cwd = tmp_path / "link"
    output = await call_tool(context, "bash", {"command": "echo x >> a.py"})
    assert output.for_person.files.edited == (str(repository.resolve() / "a.py"),)


@pytest.mark.parametrize("name", ["ä ö.py", "new\nline", "tab\t", '"', "-n", "a b", "日本.txt"])
async def test_any_name_is_found(context: ToolContext, repository: Path, name: str):
    file = shlex.quote(f"./{name}")
    assert await _changes(context, f"echo x > {file}") == FileTouches(written=(name,))
    _sh(context, "git add -A; git commit -qm names")
    assert await _changes(context, f"echo x >> {file}") == FileTouches(edited=(name,))
    assert await _changes(context, f"echo x >> {file}") == FileTouches(edited=(name,))
    assert await _changes(context, "git reset -q --hard HEAD~1") == FileTouches(
        edited=tuple(sorted((name, "dirty.py", "new.txt")))
    )


async def test_a_name_that_is_no_text_is_named(context: ToolContext, repository: Path):
    command = r"echo x > $'caf\351'; echo x > n.py"
    changes = FileTouches(written=(os.fsdecode(b"caf\xe9"), "n.py"))
    assert await _changes(context, command) == changes


async def test_a_repository_without_a_commit(context: ToolContext):
    _sh(context, "git init -q; echo x > old.py; git config user.name A; git config user.email a")
    changes = await _changes(context, "echo x > n.py; echo x >> old.py")
    assert changes == FileTouches(written=("n.py",), edited=("old.py",))
    command = "echo x > m.py; git add -A; git commit -qm first"
    assert await _changes(context, command) == FileTouches(written=("m.py",))


async def test_a_repository_with_the_longer_hashes(context: ToolContext):
    _sh(context, "git init -q --object-format=sha256; git config user.name A; echo x > a.py")
    _sh(context, "git config user.email a; git add a.py; git commit -qm first; echo x > b.py")
    assert await _changes(context, "git add b.py; git commit -qm b; touch a.py") == FileTouches()
    assert await _changes(context, "git reset -q --soft HEAD~1") == FileTouches()
    assert await _changes(context, "git commit -qm again") == FileTouches()
    assert await _changes(context, "git reset -q --hard HEAD~1") == FileTouches(edited=("b.py",))
    command = "git update-ref -d HEAD; echo x > b.py"
    assert await _changes(context, command) == FileTouches(written=("b.py",))


async def test_a_linked_work_tree(context: ToolContext, repository: Path, tmp_path: Path):
    _sh(context, "git worktree add -q ../linked")
    context.cwd = tmp_path / "linked"
    command = "echo x >> a.py; git commit -qam x; echo x > n.py"
    assert await _changes(context, command) == FileTouches(written=("n.py",), edited=("a.py",))


async def test_a_submodule_is_a_repository_of_its_own(
    context: ToolContext, repository: Path, tmp_path: Path
):
    _sh(
        context,
        f"git init -q {tmp_path}/lib; cd {tmp_path}/lib; echo x > l.py; git add .;"
        "git -c user.name=A -c user.email=a commit -qm l; cd -;"
        f"git -c protocol.file.allow=always submodule --quiet add {tmp_path}/lib lib",
    )
    assert await _changes(context, "echo x >> lib/l.py; echo x >> a.py") == FileTouches(
        edited=("a.py",)
    )
    moving = "cd lib; echo x > new; git add .; git -c user.name=A -c user.email=a commit -qm m; "
    moving += "cd ..; git commit -qam lib"
    assert await _changes(context, moving) == FileTouches()
    context.cwd = repository / "lib"
    assert await _changes(context, "echo x >> l.py") == FileTouches(edited=("l.py",))


async def test_a_repository_named_by_the_environment(
    context: ToolContext, repository: Path, tmp_path: Path
):
    (repository / ".git").rename(tmp_path / "elsewhere.git")
    assert await _changes(context, "echo x >> a.py") == FileTouches()
    context.environ["GIT_DIR"] = str(tmp_path / "elsewhere.git")
    context.environ["GIT_WORK_TREE"] = str(repository)
    assert await _changes(context, "echo x >> a.py") == FileTouches(edited=("a.py",))


async def test_without_a_work_tree_nothing_is_said(context: ToolContext, repository: Path):
    context.cwd = repository / ".git"
    assert await _changes(context, "echo x > ../n.py") == FileTouches()
    _sh(context, "git init -q --bare bare", cwd=repository)
    context.cwd = repository / "bare"
    assert await _changes(context, "echo x > n") == FileTouches()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
async def test_a_repository_of_another_user_is_left_alone(context: ToolContext, repository: Path):
    os.chown(repository, 12345, -1)
    os.chown(repository / ".git", 12345, -1)
    assert await _changes(context, "echo x >> a.py") == FileTouches()


async def test_outside_a_repository_git_is_not_asked(
    context: ToolContext, workspace: Path, tmp_path: Path
):
    calls = _recording_git(context, tmp_path, "exit 1")
    assert await _changes(context, "echo x > n.py") == FileTouches()
    assert not calls.exists()


@pytest.mark.parametrize(
    "answer",
    [
        "exit 128",
        "echo nonsense",
        'case "$*" in *-parse*) pwd;; *) echo 1 nonsense;; esac',
        'case "$*" in *-parse*) pwd;; *status*) echo "# branch.oid $$";; *) echo nonsense;; esac',
    ],
)
async def test_a_failing_or_missing_git_is_no_error(
    context: ToolContext, repository: Path, tmp_path: Path, answer: str
):
    calls = _recording_git(context, tmp_path, answer)
    output = await call_tool(context, "bash", {"command": "echo x >> a.py"})
    assert (output.for_model, output.is_error) == ("(no output)\n[exit code 0]", False)
    assert calls.exists()
    assert (
        await GitChanges(KEEPER).snapshot(repository, {"PATH": str(tmp_path / "nowhere")}) is None
    )


def _recording_git(context: ToolContext, tmp_path: Path, answer: str) -> Path:
    """Put a program called git first on the path; gives the file that it notes its calls in."""
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    calls = tmp_path / "git-calls"
    program.write_text(f'#!/bin/sh\necho "$@" >> {calls}\n{answer}\n')
    program.chmod(0o755)
    context.environ["PATH"] = f"{program.parent}:{context.environ['PATH']}"
    return calls


async def test_a_work_tree_that_is_slow_twice_is_not_looked_at_again(
    context: ToolContext, repository: Path, monkeypatch: pytest.MonkeyPatch
):
    changes = GitChanges(KEEPER)
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(git_changes, "LOOK_S", 0)
            assert await changes.snapshot(repository, context.environ) is None
    assert await changes.snapshot(repository, context.environ) is None
    assert await changes.snapshot(repository / "sub", context.environ) is not None
    assert await GitChanges(KEEPER).snapshot(repository, context.environ) is not None


async def test_one_slow_look_is_forgiven_once_another_is_quick(
    context: ToolContext, repository: Path, monkeypatch: pytest.MonkeyPatch
):
    changes = GitChanges(KEEPER)
    for _ in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(git_changes, "LOOK_S", 0)
            assert await changes.snapshot(repository, context.environ) is None
        before = await changes.snapshot(repository, context.environ)
        assert before is not None
        await changes.since(before)
        await changes.snapshot(repository, context.environ)  # takes the look that is at hand


async def test_slow_comparisons_count_as_slow_looks(
    context: ToolContext, repository: Path, monkeypatch: pytest.MonkeyPatch
):
    changes = GitChanges(KEEPER)
    for _ in range(2):
        before = await changes.snapshot(repository, context.environ)
        assert before is not None
        _sh(context, "echo x >> a.py")
        with monkeypatch.context() as patch:
            patch.setattr(git_changes, "COMPARE_S", 0)
            assert await changes.since(before) == FileTouches()
    assert await changes.snapshot(repository, context.environ) is None


async def test_a_git_that_hangs_is_ended(context: ToolContext, repository: Path, tmp_path: Path):
    _recording_git(
        context,
        tmp_path,
        f"echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid;exec sleep 32109",
    )
    looking = asyncio.create_task(GitChanges(KEEPER).snapshot(repository, context.environ))
    while not (tmp_path / "pid").exists():
        await asyncio.sleep(0.01)
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_too_many_names_are_no_names(
    context: ToolContext, repository: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(git_changes, "MAX_CHANGED_FILES", 2)
    assert len((await _changes(context, "touch n1 n2")).written) == 2
    assert await _changes(context, "echo x >> a.py; touch n3 n4") == FileTouches()
    monkeypatch.setattr(git_call, "MAX_OUTPUT_BYTES", 300)
    assert await _changes(context, "echo x >> a.py") == FileTouches()


async def test_large_files_count_as_changed_without_being_read(
    context: ToolContext, repository: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(git_status, "MAX_HASHED_BYTES", 3)
    command = "git reset -q HEAD~1; touch b.py"
    assert await _changes(context, command) == FileTouches(edited=("b.py",))


@pytest.mark.parametrize(
    "hostile",
    [
        "git config core.fsmonitor $PWD/evil.sh",
        "git config filter.evil.clean $PWD/evil.sh; echo '* filter=evil' > .gitattributes",
        "git config filter.evil.process $PWD/evil.sh; echo '* filter=evil' > .gitattributes",
        "git config filter.evil.clean $PWD/evil.sh; git config filter.evil.required true;"
        "echo '* filter=evil' > .git/info/attributes",
        "git config filter.a.b.clean $PWD/evil.sh; echo '* filter=a.b' > .gitattributes",
        "git config filter.a=b.clean $PWD/evil.sh; echo '* filter=a=b' > .gitattributes",
        "git config filter..clean $PWD/evil.sh; echo '* filter=' > .gitattributes",
        r"""printf '[filter "E\\"v"]\n clean = %s\n' $PWD/evil.sh >> .git/more;"""
        "git config include.path more; echo '* filter=E\"v' > .gitattributes",
        "git config extensions.worktreeConfig true;"
        "git config --worktree filter.w.clean $PWD/evil.sh; echo '* filter=w' > .gitattributes",
        "cp evil.sh .git/hooks/post-index-change",
        "git config core.pager $PWD/evil.sh; git config pager.status true;"
        "git config pager.config $PWD/evil.sh",
        "git config diff.external $PWD/evil.sh; git config diff.evil.textconv $PWD/evil.sh;"
        "git config diff.evil.command $PWD/evil.sh; echo '* diff=evil' > .gitattributes",
        "rm -rf .git/commondir; cp -r .git ../other; git --git-dir ../other config core.fsmonitor"
        " $PWD/evil.sh; cp evil.sh ../other/hooks/post-index-change;"
        "printf '%s\\n' $PWD/../other > .git/commondir",
        "git config alias.status '!'$PWD/evil.sh; git config alias.config '!'$PWD/evil.sh",
        "git init -q inner; cd inner; git config user.name A; git config user.email a;"
        "echo x > f; echo '* filter=evil' > .gitattributes; git add .; git commit -q -m x;"
        "git config filter.evil.clean $PWD/../evil.sh; cd ..; git add inner 2> /dev/null;"
        "echo y > inner/f",
    ],
)
async def test_no_program_of_the_repository_runs(
    context: ToolContext, repository: Path, tmp_path: Path, hostile: str
):
    mark = tmp_path / "evil ran"
    evil = repository / "evil.sh"
    evil.write_text(f"#!/bin/sh\necho ran >> '{mark}'\ncat\n")
    evil.chmod(0o755)
    _sh(context, hostile)
    mark.unlink(missing_ok=True)  # what the setting up itself set off
    changes = GitChanges(KEEPER)
    before = await changes.snapshot(repository, context.environ)
    head = repository / ".git/refs/heads/main"
    second = head.read_text()
    first = subprocess.check_output(
        ["git", "rev-parse", "HEAD~1"], cwd=repository, env=context.environ, text=True
    )
    for name in ("a.py", "b.py", "dirty.py", "sub/c.py"):
        (repository / name).write_text("four\n")  # sizes the index knows make git look inside
    head.write_text(first)
    found = await changes.since(before)
    head.write_text(second)
    assert not mark.exists()
    if "a=b" not in hostile:
        assert str(repository / "a.py") in found.edited


async def test_git_is_not_asked_about_a_folder_that_is_not_trusted(
    context: ToolContext, repository: Path, tmp_path: Path
):
    calls = _recording_git(context, tmp_path, "exit 1")
    asked: list[Path] = []
    changes = GitChanges(KEEPER, lambda cwd: bool(asked.append(cwd)))
    before = await changes.snapshot(repository, context.environ)
    assert await changes.since(before) == FileTouches()
    assert not calls.exists()
    assert asked == [repository]


def test_every_call_of_git_has_what_keeps_it_from_running_programs():
    listing = git_call.git_argv("ls-files", "-z", settings=("core.abbrev=9",))
    assert listing[-5:] == ("log.showSignature=false", "-c", "core.abbrev=9", "ls-files", "-z")
    quiet = {"--no-optional-locks", "core.fsmonitor=false", "core.hooksPath=/dev/null"}
    assert quiet < set(listing)
    assert "log.showSignature=false" in listing
    for command in ("diff", "diff-tree", "log", "show"):
        for before in ((), ("--literal-pathspecs",), ("-c", "gc.auto=0", "--git-dir=x")):
            argv = git_call.git_argv(*before, command, "--cached")
            assert argv[-4:] == (command, "--no-ext-diff", "--no-textconv", "--cached")


async def test_the_hostile_settings_would_run_without_our_care(
    context: ToolContext, repository: Path, tmp_path: Path
):
    """Else the test above shows nothing."""
    mark = tmp_path / "evil ran"
    (repository / "evil.sh").write_text(f"#!/bin/sh\necho ran >> '{mark}'\ncat\n")
    (repository / "evil.sh").chmod(0o755)
    _sh(
        context,
        "git config filter.evil.clean $PWD/evil.sh; echo '* filter=evil' > .gitattributes;"
        "echo two > a.py; git status -s > /dev/null",
    )
    assert mark.exists()


async def test_nothing_is_fetched_for_a_partial_clone(
    context: ToolContext, repository: Path, tmp_path: Path
):
    _sh(
        context,
        "git config uploadpack.allowFilter true;"
        f"git clone -q --no-local --no-checkout --filter=tree:0 file://$PWD {tmp_path}/partial",
    )
    partial = tmp_path / "partial"
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\necho ran > '{tmp_path}/evil ran'\n")
    evil.chmod(0o755)
    _sh(context, f"git config remote.origin.uploadpack {evil}", cwd=partial)
    changes = GitChanges(KEEPER)
    before = await changes.snapshot(partial, context.environ)
    assert await changes.since(before) == FileTouches()
    assert not (tmp_path / "evil ran").exists()


async def test_nothing_is_written_to_the_repository(context: ToolContext, repository: Path):
    (repository / "a.py").touch()  # git status would note the new time in the index
    index = repository / ".git" / "index"
    before = (index.read_bytes(), index.stat().st_mtime_ns)
    names = sorted(path for path in (repository / ".git").rglob("*"))
    assert await _changes(context, "true") == FileTouches()
    assert (index.read_bytes(), index.stat().st_mtime_ns) == before
    assert sorted(path for path in (repository / ".git").rglob("*")) == names


async def test_another_git_at_work_is_neither_disturbed_nor_waited_for(
    context: ToolContext, repository: Path
):
    (repository / ".git" / "index.lock").write_text("")
    assert await _changes(context, "echo x >> a.py") == FileTouches(edited=("a.py",))


@pytest.mark.parametrize("steps", range(0, 120, 12))
async def test_cancelling_while_git_is_asked_leaves_no_handle(
    context: ToolContext, repository: Path, steps: int
):
    await call_tool(context, "bash", {"command": "true"})  # opens what is opened once
    gc.collect()  # or handles of other tests are closed meanwhile
    handles = len(list(Path("/proc/self/fd").iterdir()))
    running = asyncio.create_task(call_tool(context, "bash", {"command": "sleep 60.98765"}))
    for _ in range(steps):
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.sleep(0)
    assert len(list(Path("/proc/self/fd").iterdir())) == handles
