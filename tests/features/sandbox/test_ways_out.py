"""Ways out of the sandbox that need more than one command, each tried through the program.

What a command leaves behind decides nothing of the walls and the programs that come after it.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from agent_tui.config import Settings
from agent_tui.errors import ToolError
from agent_tui.features.sandbox.plan import Backend
from agent_tui.messages import JsonObject
from agent_tui.safe_paths import is_trusted
from agent_tui.sessions.file.kept_files import digest_of
from agent_tui.tools.registry import default_toolbox
from tests.support.conversation_wall import KEY, Conversation
from tests.support.forged_index import entry, index
from tests.support.patience import PATIENCE_S
from tests.support.sandbox import needs_bwrap, needs_landlock


@pytest.fixture(
    params=[
        pytest.param("bubblewrap", marks=needs_bwrap),
        pytest.param("landlock", marks=needs_landlock),
    ]
)
async def talk(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Conversation]:
    """A conversation behind each wall."""
    backend: Backend = request.param
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "own"))
    made = Conversation(tmp_path, backend)
    yield made
    await made.sandbox.close_walls()


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    argv = ["git", *identity, *words]
    return subprocess.run(argv, cwd=folder, check=True, capture_output=True, text=True).stdout


async def test_the_wall_is_the_one_to_be_tried(talk: Conversation):
    assert talk.sandbox.state(talk.work).backend == talk.backend
    assert KEY not in await talk.says(f"cat {talk.home}/.ssh/id_rsa; echo ok")


@pytest.mark.parametrize(
    "command",
    [
        "mkdir x; echo 'home = {home}/.ssh' > x/pyvenv.cfg",
        "mkdir -p x/bin; echo 'home = /usr/bin' > x/pyvenv.cfg; "
        "ln -s {home}/.ssh/python3 x/bin/python",
        "mkdir -p .git/worktrees/x; echo {home}/.ssh/id_rsa > .git/worktrees/x/gitdir",
        "mkdir -p .git/worktrees/x; echo {home}/.ssh > .git/worktrees/x/gitdir",
    ],
)
async def test_nothing_in_the_workspace_has_a_key_shown(talk: Conversation, command: str):
    git(talk.work, "init", "-q")
    await talk.says(command.format(home=talk.home))
    await talk.restart()
    assert KEY not in await talk.says(f"cat {talk.home}/.ssh/id_rsa")
    assert not talk.sandbox.shows(talk.work, talk.home / ".ssh/id_rsa")


async def test_no_environment_names_an_interpreter_that_commands_made(talk: Conversation):
    """With a link to a key in it, in the folder for ``/tmp`` by its path outside."""
    mounted = """$(awk '$5=="/tmp"{print $4}' /proc/self/mountinfo | tail -1)"""
    base = mounted if talk.backend == "bubblewrap" else "$TMPDIR"
    await talk.says(
        f"base={base}; cd $TMPDIR && mkdir -p fk/bin fk/lib/python3.11 && cd fk &&"
        f"touch lib/python3.11/os.py; ln -s {talk.home}/.ssh/id_rsa share;"
        f'mkdir {talk.work}/v; echo "home = $base/fk/bin" > {talk.work}/v/pyvenv.cfg'
    )
    made = Path((talk.work / "v/pyvenv.cfg").read_text().removeprefix("home = ").strip())
    assert (made.parent / "lib/python3.11/os.py").exists()
    await talk.fall()
    assert KEY not in await talk.says(f"cat {talk.home}/.ssh/id_rsa")
    assert not is_trusted(str(made))


async def test_what_the_person_writes_while_a_command_runs_is_hidden_later(talk: Conversation):
    if talk.backend == "landlock":
        pytest.skip("it hides no file in a folder that may be written")
    waits = "touch began; until test -e go; do sleep 0.05; done"
    running = asyncio.create_task(talk.bash(f"{waits}; touch named.env"))
    while not (talk.work / "began").exists():
        await asyncio.sleep(0.05)
    for name in (".env", "named.env"):
        (talk.work / name).write_text(KEY)
    (talk.work / "go").touch()
    said = (await running).for_model
    assert "[.env appeared or changed while the command ran" in said
    assert "named.env" not in said
    assert KEY not in await talk.says("cat .env")


async def test_keys_in_folders_that_programs_follow_are_hidden_like_others(talk: Conversation):
    if talk.backend == "landlock":
        pytest.skip("it hides no file in a folder that may be written")
    git(talk.work, "init", "-q")
    (talk.work / ".claude/closed").mkdir(parents=True)
    (talk.work / ".claude/closed").chmod(0)
    keys = [".vscode/.env", ".claude/a/.credentials.json", "sub/.zed/b/server.key", ".vscode/x.pem"]
    copies = "$(awk '$5 ~ /sandbox.copies/ {print $5}' /proc/self/mountinfo)"
    search = f"cat .vscode/settings.json; grep -rsl {KEY} . {copies} | sed s/^/found:/"
    for name in ("late", "latest"):
        for path in (talk.work / key for key in keys):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(KEY)
        (talk.work / ".vscode/settings.json").write_text("{}\n")
        (talk.work / f".vscode/{name}.link").symlink_to("x.pem")
        said = await talk.says(search)
        assert said.startswith("{}")
        assert "found:" not in said
        keys.append(f".vscode/{name}.key")
    assert all((talk.work / key).read_text() == KEY for key in keys[:-1])
    for name in map(str, range(2_001)):  # too many for a copy
        (talk.work / f".claude/{name}").touch()
    (talk.work / ".vscode").rename(talk.work / "moved")
    for _ in range(2):
        output = await talk.bash("ls .claude/2000 moved/settings.json; cat */x.pem")
        assert output.for_model.startswith(".claude/2000\nmoved/settings.json")
        assert KEY not in output.for_model
        assert output.held == ()
        (talk.work / "moved/.env").unlink(missing_ok=True)


async def test_only_a_wall_that_hides_a_file_says_so(talk: Conversation):
    (talk.work / ".env").write_text("A=1\n")
    said = await talk.says("cat .env; false")
    assert ("A=1" in said) == (talk.backend == "landlock")
    assert ("cannot see it" in said) == (talk.backend == "bubblewrap")


async def test_no_hint_tells_what_exists_in_the_home_folder(talk: Conversation):
    (talk.home / "src/lib").mkdir(parents=True)
    (talk.home / "src/lib/notes").write_text("x")
    (talk.home / "link").symlink_to(talk.home / "src/lib")

    async def told(path: str) -> str:
        places = (f"{talk.home}/{path}", f"~/{path}", str(talk.work / path))
        commands = (
            f"cat {place}{end}" for place in places for end in ("", " 2>/dev/null", " | cat")
        )
        said = [await talk.says(f"{command}; [ -e {talk.work} ] && false") for command in commands]
        return "".join(said).replace(path, "NAME")

    hints = "".join((await told("src/lib/notes")).splitlines()[1:2])
    line = f"[{talk.home}/NAME is not shown. Start with --add-dir and its folder to show it; if"
    assert hints.startswith(line)
    if talk.backend == "bubblewrap":  # the other wall does not hide whether a file exists
        for there, missing in (
            ("src/lib/notes", "src/lib/other"),
            (".ssh/id_rsa", ".ssh/id_none"),
            ("link", "lank"),
            ("src/lib", "src/bil"),
        ):
            assert await told(there) == await told(missing)


async def test_a_home_folder_that_is_a_link_is_home_inside_too(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch
):
    (talk.home / ".gitconfig").write_text("[user]\n\tname = Ada\n")
    (talk.base / "homes").mkdir()
    talk.home = talk.home.rename(talk.base / "homes/ada")
    (talk.base / "home").symlink_to("homes/ada")
    monkeypatch.setenv("HOME", str(talk.base / "home"))
    await talk.restart()
    talk.environ["HOME"] = str(talk.base / "home")
    assert (await talk.says("git config --global user.name")).startswith("Ada\n")


async def test_links_in_a_folder_on_path_have_no_key_shown(talk: Conversation):
    talk.path = f"{talk.work}/.venv/bin"
    (talk.work / ".venv/bin").mkdir(parents=True)
    await talk.restart()
    await talk.says(f"ln -s {talk.home}/.ssh/id_rsa .venv/bin/x")
    await talk.restart()
    assert KEY not in await talk.says(f"cat {talk.home}/.ssh/id_rsa")


async def test_what_is_shown_beside_the_workspace_comes_without_keys(talk: Conversation):
    tool, mono = talk.home / "tool", talk.home / "mono"
    for folder in (tool / "bin", tool / "config", mono / "web", mono / "app"):
        folder.mkdir(parents=True)
    git(mono, "init", "-q")
    (mono / "tracked.pem").write_text("PRIVATE KEY for tests")
    git(mono, "add", ".")
    for file in (tool / ".env", tool / "config/.env", mono / ".env", mono / "web/deploy.key"):
        file.write_text(KEY)
    (tool / "certificates.pem").write_text("-----BEGIN CERTIFICATE-----")
    (tool / "key.pem").write_text(f"-----BEGIN PRIVATE KEY----- {KEY}")
    (tool / "bin/tool").write_text("#!/bin/sh\necho of the tool\n")
    (tool / "bin/tool").chmod(0o755)
    talk.path, talk.work = f"{tool}/bin", mono / "app"
    await talk.restart()
    said = await talk.says(
        f"tool; cat {tool}/certificates.pem; cat {mono}/tracked.pem; git status --short;"
        f"cat {tool}/.env {tool}/config/.env {tool}/key.pem {mono}/.env {mono}/web/deploy.key"
    )
    keys = 0 if talk.backend == "bubblewrap" else 2  # as in the working folder itself
    assert said.count(KEY) == keys
    for shown in ("of the tool", "CERTIFICATE", "for tests"):
        assert shown in said
    assert " D " not in said


async def test_what_comes_beside_the_workspace_later_is_hidden_at_the_next_command(
    talk: Conversation,
):
    mono = talk.home / "mono"
    for folder in (mono / "web", mono / "app"):
        folder.mkdir(parents=True)
    git(mono, "init", "-q")
    for file in (mono / "all.env", mono / "web/now.env", mono / "app/a"):
        file.write_text("of git\n")
    git(mono, "add", ".")
    git(mono, "commit", "-qm", "one")
    (mono / "web/now.env").write_text(f"of git\n{KEY}\n")
    talk.work = mono / "app"
    await talk.restart()
    commit = "echo x >> a; GIT_COMMITTER_NAME=n git -c user.name=n -c user.email=e commit -qam two"
    if talk.backend == "bubblewrap":
        said = await talk.says(f"cat {mono}/web/now.env; {commit}; git status --short; pwd")
        assert said.startswith(f"of git\n{talk.work}\n")
        (mono / "all.env").write_text(f"of git\n{KEY}\n")
        git(mono, "checkout", "web")
        said = await talk.says(f"cat {mono}/all.env {mono}/web/now.env; git status --short; pwd")
        assert said.startswith(f"of git\nof git\n{talk.work}\n")
        git(mono, "checkout", "all.env")
    (mono / "web/closed").mkdir(mode=0o300)
    await talk.says("true", background=True)
    for file in (mono / ".env", mono / "web/.env", talk.work / ".env"):
        file.write_text(KEY)
    (mono / "web/text").write_text("shown")
    said = await talk.says(f"cat {mono}/web/text {mono}/.env {mono}/web/.env .env")
    assert "shown" in said
    assert said.count(KEY) == (0 if talk.backend == "bubblewrap" else 3)
    assert (mono / "web/closed").stat().st_mode & 0o777 == 0o300
    (mono / "web/.env").unlink()
    (mono / "web/.env").write_text(KEY)
    await talk.says("true")
    is_hidden = talk.backend == "bubblewrap"
    assert (KEY in await talk.says(f"cat {mono}/web/.env")) is not is_hidden


async def test_no_program_of_the_workspace_is_run_outside(talk: Conversation):
    git(talk.work, "init", "-q")
    (talk.work / ".env").write_text("A=1")
    (talk.work / ".venv/bin").mkdir(parents=True)
    talk.path = f"{talk.work}/.venv/bin"
    await talk.restart()
    marker = talk.base / "ran-outside"
    for name in ("git", "bwrap", "rg", "bash", "true"):
        await talk.says(
            f"cd .venv/bin; printf '#!/bin/sh\\n: > {marker}\\n' > {name}; /bin/chmod +x {name}"
        )
    await talk.says("echo x >> AGENTS.md; exit 3")
    await talk.restart()
    await talk.says("/bin/true")
    await talk.says("/bin/true", outside=True, why="to try")
    assert not marker.exists()


@pytest.mark.parametrize("cache", [".cache/uv", "go/pkg", ".local/share/pnpm/store"])
async def test_no_command_writes_a_file_that_a_tool_outside_has_from_a_cache(
    talk: Conversation, cache: str
):
    cached, installed = talk.home / cache / "archive/x.py", talk.home / ".local/share/tool/x.py"
    for file in (cached, installed):
        file.parent.mkdir(parents=True)
    installed.write_text("good")
    os.link(installed, cached)
    talk.path = f"{talk.home}/go/bin:{talk.home}/.local/share/pnpm"
    (talk.home / "go/bin").mkdir(parents=True)
    await talk.restart()
    evil = "".join(f"echo evil >> {top}/{cache}/archive/x.py;" for top in ("~", talk.home))
    await talk.says(f"mkdir -p ~/{cache}/archive; {evil} echo kept > ~/{cache}/archive/y")
    assert installed.read_text() == "good"
    assert [path.name for path in cached.parent.iterdir()] == ["x.py"]
    await talk.restart()
    assert (await talk.says(f"cat ~/{cache}/archive/y; ls -d ~/go/bin")).startswith("kept\n")


@pytest.mark.parametrize("link", [".cache", ".cache/uv"])
async def test_caches_of_commands_are_kept_where_the_users_are_elsewhere(
    talk: Conversation, link: str
):
    disk = talk.base / "disk"
    (disk / "ms-playwright/firefox").mkdir(parents=True)
    (disk / "ms-playwright/firefox/INSTALLATION_COMPLETE").write_text("of the disk")
    (disk / "letters").write_text(KEY)
    (talk.home / link).parent.mkdir(exist_ok=True)
    (talk.home / link).symlink_to(disk)
    await talk.restart()
    said = await talk.says("mkdir -p ~/.cache/uv && echo kept > ~/.cache/uv/x; ls ~/.cache")
    assert KEY not in await talk.says("cat ~/.cache/letters ~/.cache/uv/letters")
    if talk.backend == "bubblewrap":
        assert "letters" not in said
    await talk.restart()
    said = await talk.says("cat ~/.cache/uv/x ~/.cache/ms-playwright/*/*; chmod 0 ~/.cache/uv")
    assert said.startswith("kept\nof the disk" if link == ".cache" else "kept\n")
    assert sorted(path.name for path in disk.iterdir()) == ["letters", "ms-playwright"]
    await talk.restart()
    assert (await talk.says("ls ~/.cache/uv")).startswith("x\n")


async def test_a_file_with_keys_stays_hidden_whatever_the_index_says(talk: Conversation):
    if talk.backend == "landlock":
        pytest.skip("it hides no such file")
    git(talk.work, "init", "-q")
    (talk.work / ".env").write_text(KEY)
    assert KEY not in await talk.says("cat .env")
    await talk.says(
        "id=$(echo x | git hash-object -w --stdin);"
        "git update-index --add --cacheinfo 100644,$id,.env; git -c user.name=n"
        " -c user.email=n commit -qm x"
    )
    assert KEY not in await talk.says("cat .env")
    await talk.restart()
    assert KEY not in await talk.says("cat .env")


async def test_a_file_with_keys_stays_hidden_where_nobody_looks(talk: Conversation):
    if talk.backend == "landlock":
        pytest.skip("it hides no such file")
    (talk.work / "sub").mkdir()
    (talk.work / "sub/.env").write_text(KEY)
    assert KEY not in await talk.says("cat sub/.env")
    await talk.says("mkdir node_modules; mv sub node_modules/sub")
    assert KEY not in await talk.says("cat node_modules/sub/.env")
    await talk.fall()
    assert KEY not in await talk.says("cat node_modules/sub/.env")


@pytest.mark.thorough
async def test_a_file_with_keys_stays_hidden_among_very_many_folders(talk: Conversation):
    if talk.backend == "landlock":
        pytest.skip("it hides no such file")
    (talk.work / "sub").mkdir()
    (talk.work / "sub/.env").write_text(KEY)
    assert KEY not in await talk.says("cat sub/.env")
    await talk.says("i=0; while [ $i -lt 4100 ]; do i=$((i+1)); echo !$i; done | xargs mkdir")
    assert KEY not in await talk.says("cat sub/.env")
    (talk.work / "~/deep/er").mkdir(parents=True)
    (talk.work / "~/deep/er/.env").write_text(KEY)
    assert KEY not in await talk.says("cat '~/deep/er/.env'")
    await talk.restart()
    assert KEY not in await talk.says("cat sub/.env '~/deep/er/.env'")


@pytest.mark.thorough
async def test_no_repository_among_very_many_folders_runs_anything(talk: Conversation):
    git(talk.work, "init", "-q")
    await talk.says("seq 4100 | xargs mkdir; mkdir -p x/y/z")
    await talk.says(
        f"cd x/y/z; git init -q; git config core.fsmonitor 'touch {talk.base}/ran; false';"
        "mkdir .vscode; echo x > .vscode/tasks.json"
    )
    git(talk.work / "x/y/z", "status")
    assert not (talk.base / "ran").exists()
    assert not (talk.work / "x/y/z/.vscode").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do all this")
@pytest.mark.parametrize("mode", ["000", "111", "555"])
async def test_no_mode_of_a_folder_keeps_what_is_in_it_from_being_held_back(
    talk: Conversation, mode: str
):
    (talk.work / "closed").mkdir(mode=0)
    await talk.says(
        "mkdir -p x/y x/.vscode; cd x/y; git init -q;"
        f"git config core.fsmonitor 'touch {talk.base}/ran; false'; echo x > ../.vscode/tasks.json;"
        f"chmod {mode} .git ../.vscode .; chmod {mode} .."
    )
    for folder in ("x", "x/y", "x/y/.git"):
        (talk.work / folder).chmod(0o700)
    git(talk.work / "x/y", "status")
    assert not (talk.base / "ran").exists()
    assert not (talk.work / "x/.vscode").exists()
    assert (talk.work / "closed").stat().st_mode & 0o777 == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do all this")
@pytest.mark.parametrize("mode", ["000", "300", "555"])
@pytest.mark.parametrize("place", ["a clone", "a work tree"])
async def test_no_mode_of_a_working_folder_keeps_what_is_in_it_from_being_held_back(
    talk: Conversation, mode: str, place: str
):
    """Nor one of the git folder that belongs to it, and lies elsewhere."""
    top = talk.work if place == "a clone" else talk.base / "main"
    top.mkdir(exist_ok=True)
    git(top, "init", "-q")
    git(top, "commit", "-qm", "one", "--allow-empty")
    if place == "a work tree":
        git(top, "worktree", "add", "-q", str(talk.work))
    hook = top / ".git/hooks/post-commit"
    run = f"touch {talk.base}/ran"
    await talk.says("true")
    await talk.says(
        f"mkdir .vscode; echo x > .vscode/tasks.json; printf '#!/bin/sh\\n{run}\\n' > {hook};"
        f"chmod +x {hook}; git config core.fsmonitor '{run}; false';"
        f"chmod {mode} {hook.parent}; chmod {mode} {hook.parent.parent}; chmod {mode} ."
    )
    for folder in (talk.work, top / ".git", hook.parent):
        folder.chmod(0o700)
    assert not (talk.work / ".vscode").exists()
    assert not hook.exists()
    git(talk.work, "commit", "-qm", "two", "--allow-empty")
    git(talk.work, "status")
    assert not (talk.base / "ran").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do all this")
@pytest.mark.parametrize("closed", ["own", "own/data/projects", "own/data/projects/*/sandbox/*"])
async def test_no_mode_of_our_own_folders_keeps_anything_from_being_held_back(
    talk: Conversation, closed: str
):
    if talk.backend == "bubblewrap":
        pytest.skip("it hides them")
    (talk.work / "AGENTS.md").write_text("mine")
    await talk.says("true")
    found = " ".join(map(str, talk.base.glob(closed)))
    versions = " ".join(map(str, talk.base.glob("own/data/projects/*/sandbox/versions/*")))
    said = await talk.says(
        "mkdir .vscode; echo x > .vscode/tasks.json; echo evil > AGENTS.md;"
        f"chmod 0 {versions} && chmod 0 {found}"
    )
    assert said.count("held back") == 2, said
    assert not (talk.work / ".vscode").exists()
    assert (talk.work / "AGENTS.md").read_text() == "mine"
    assert "up\n" in await talk.says("echo up")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do all this")
async def test_no_mode_of_our_own_folders_makes_a_commit_the_users(talk: Conversation):
    if talk.backend == "bubblewrap":
        pytest.skip("it hides them")
    git(talk.work, "init", "-q", "-b", "main")
    git(talk.work, "commit", "-qm", "one", "--allow-empty")
    await talk.says(
        "git switch -qc evil; echo evil > AGENTS.md; git add .; "
        "git -c user.name=n -c user.email=n@example.org commit -qm evil; git switch -q main"
    )
    (known,) = talk.base.glob("own/data/repositories/*/references.json")
    await talk.says(f"chmod 0 {known}")
    assert known.stat().st_mode & 0o777 == 0
    await talk.restart()
    await talk.says("true")
    said = await talk.says("git switch -q evil")
    assert "AGENTS.md (new): an agent obeys it; from commit" in said  # the user is asked


@pytest.mark.parametrize(
    "place",
    [
        *(".git/x/.git", ".git/objects/zz/.git", ".git/objects/zz", ".git/refs/zz"),
        *(".git/tool/tree/deep/.git", ".git/modules/a/x/.git"),
    ],
)
async def test_no_repository_in_a_git_folder_runs_anything(talk: Conversation, place: str):
    git(talk.work, "init", "-q")
    git(talk.work, "commit", "-qm", "one", "--allow-empty")
    git(talk.work, "worktree", "add", "-q", ".git/tool/tree")
    await talk.says("true")
    await talk.says(
        f"mkdir -p {place}/refs {place}/objects; echo 'ref: refs/heads/main' > {place}/HEAD;"
        f"printf '[core]\\nrepositoryformatversion = 0\\nbare = false\\nworktree = .\\n'"
        f" > {place}/config;"
        f"git config -f {place}/config core.fsmonitor 'touch {talk.base}/ran; false';"
        f"ln -s {place.removesuffix('/.git')} docs"
    )
    subprocess.run(["git", "-C", "docs", "status"], cwd=talk.work, capture_output=True)
    assert not (talk.base / "ran").exists()


async def test_no_line_that_a_command_adds_to_a_rebase_runs_when_it_goes_on(talk: Conversation):
    git(talk.work, "init", "-q")
    for text in ("one", "two"):
        (talk.work / "a").write_text(text)
        git(talk.work, "add", ".")
        git(talk.work, "commit", "-qm", text)
    editor = "sequence.editor=sed -i 1s/pick/edit/"
    git(talk.work, "-c", editor, "rebase", "-q", "-i", "--root")
    await talk.says(
        f"echo 'exec touch {talk.base}/ran' >> .git/rebase-merge/git-rebase-todo;"
        f"mkdir git-merge-x; printf '#!/bin/sh\\ntouch {talk.base}/ran\\n' > git-merge-x/e;"
        "chmod +x git-merge-x/e;"
        "echo x/e > .git/rebase-merge/strategy"
    )
    git(talk.work, "rebase", "--continue")
    assert not (talk.base / "ran").exists()
    assert git(talk.work, "log", "--format=%s").split() == ["two", "one"]


@pytest.mark.parametrize("place", ["$HOME/.npm", "$TMPDIR"])
async def test_no_link_leads_to_a_repository_that_nobody_checks(talk: Conversation, place: str):
    """In a cache of commands, or in their ``/tmp``, by the path outside."""
    git(talk.work, "init", "-q")
    (talk.work / "sub").mkdir()
    inside = {"$HOME/.npm": f"{talk.home}/.npm", "$TMPDIR": "/tmp"}[place]
    base = f"""$(awk '$5 == "{inside}" {{print $4}}' /proc/self/mountinfo | tail -1)"""
    if talk.backend == "landlock":
        base = f"$(readlink -f {place})"
    output = await talk.bash(
        f"cd {place} && git init -q evil && git -C evil config core.fsmonitor ./x;"
        f"cd {talk.work}; ln -s {base}/evil docs; ln -s {base} sub/deep; ln -s sub own; ls -l docs"
    )
    assert str(talk.base / "own") in output.for_model
    names = {str(held.path.relative_to(talk.work)): held.who for held in output.held}
    who = "it leads to where commands write unchecked"
    assert names == {"docs": who, "sub/deep": who}
    assert not (talk.work / "docs").is_symlink()
    assert (talk.work / "own").is_symlink()


async def test_git_writes_nowhere_else_for_what_a_command_leaves_in_its_folder(talk: Conversation):
    (talk.work / "file").write_text("one\n")
    git(talk.work, "init", "-q")
    git(talk.work, "add", ".")
    git(talk.work, "commit", "-qm", "one")
    id = bytes.fromhex(git(talk.work, "rev-parse", "HEAD:file").strip())
    (talk.work / "forged").write_bytes(index([entry(b"../out", id), entry(b"file", id)]))
    key, config = talk.home / ".ssh/id_rsa", (talk.work / ".git/config").read_bytes()
    await talk.says(
        "mv forged .git/index; echo 'ref: commondir' > .git/ORIG_HEAD;"
        "printf '[core]\\n\\tfsmonitor = touch ran\\n' > .git/MERGE_MSG;"
        "ln -f .git/config .git/COMMIT_EDITMSG; mkdir .git/rr-cache .git/rr-cache/$(printf %040d);"
        "touch .git/rr-cache/$(printf %040d)/preimage;"
        f"printf '%040d\\t{key}\\0' 0 > .git/MERGE_RR"
    )
    git(talk.work, "checkout", "-q", "HEAD", ".")
    git(talk.work, "checkout", "-q", ".")
    git(talk.work, "reset", "-q", "--hard")
    git(talk.work, "-c", "core.editor=true", "commit", "-q", "--allow-empty", "--cleanup=verbatim")
    assert not (talk.work.parent / "out").exists()
    assert not (talk.work / ".git/commondir").exists()
    assert (talk.work / ".git/config").read_bytes() == config
    kept = (talk.work / ".git/rr-cache").rglob("postimage")
    assert KEY not in "".join(each.read_text() for each in kept)


async def test_settings_of_a_new_wall_are_written_into_the_stand_in_alone(talk: Conversation):
    (talk.home / ".gitconfig").write_text("[user]\n\tname = N\n")
    (talk.home / ".npmrc").write_text("fund=false\n")
    (talk.home / ".bashrc").write_text("as it was")
    (talk.home / "notes").mkdir()
    await talk.says(
        f"rm -f ~/.gitconfig ~/.npmrc; ln -s {talk.home}/.bashrc ~/.gitconfig;"
        f"ln -s {talk.base}/made ~/.npmrc"
    )
    await talk.fall()
    said = await talk.says("echo up")
    assert (talk.home / ".bashrc").read_text() == "as it was"
    assert not (talk.base / "made").exists()
    assert "up" in said


async def test_a_pointer_that_a_job_left_shows_no_repository_while_the_user_is_asked(
    talk: Conversation,
):
    theirs = talk.home / "gits/theirs.git"
    theirs.parent.mkdir()
    git(talk.base, "init", "-q", f"--separate-git-dir={theirs}", "theirs")
    (theirs / "description").write_text(KEY)
    await talk.restart()
    await talk.bash(
        f"while [ ! -e go ]; do sleep 0.02; done; echo 'gitdir: {theirs}' > .git", background=True
    )
    (talk.work / "go").touch()
    while not (talk.work / ".git").exists():
        await asyncio.sleep(0.02)
    await talk.restart()
    said = [await talk.says(f"cat {theirs}/description; touch {theirs}/x") for _ in range(2)]
    assert KEY not in "".join(said)
    assert not (theirs / "x").exists()


@pytest.mark.thorough
async def test_a_job_that_waits_for_a_cover_to_fall_off_changes_nothing_that_git_obeys(
    talk: Conversation,
):
    git(talk.work, "init", "-q")
    (talk.work / ".vscode").mkdir()
    (talk.work / ".vscode/tasks.json").write_text("{}")
    (talk.work / "mise.toml").write_text("a = 1")
    await talk.bash(
        "while [ ! -e end ]; do"
        " printf '[core]\\n\\tfsmonitor = ./evil\\n' >> .git/config; echo evil >> mise.toml;"
        " sleep 0.1; done; touch ended",
        background=True,
    )
    git(talk.work, "config", "user.name", "me")  # renames a new file over it
    (talk.work / "new").write_text("a = 2\n")
    (talk.work / "new").replace(talk.work / "mise.toml")
    await asyncio.sleep(0.4)
    await talk.refuses_all("true")
    await talk.refuses_all("true")
    await talk.refuses_all("touch end; while [ ! -e ended ]; do sleep 0.02; done")
    await talk.refuses_all("true")
    config = (talk.work / ".git/config").read_text()
    assert "evil" not in config
    assert "evil" not in (talk.work / "mise.toml").read_text()
    # A no brings back the whole file as it was approved; what it also had is kept beside.
    aside = [file.read_text() for file in talk.base.rglob("held/*/content") if file.is_file()]
    assert any("name = me" in text for text in aside)


@pytest.mark.thorough
async def test_a_job_that_never_ceases_to_write_has_nothing_taken_for_the_persons(
    talk: Conversation,
):
    git(talk.work, "init", "-q")
    (talk.work / "AGENTS.md").write_text("mine")
    loop = "while [ ! -e end ]; do echo evil > AGENTS.md; echo evil > .envrc; done; touch ended"
    await talk.bash(loop, background=True)
    for _ in range(4):
        await talk.refuses_all("true")
    await talk.refuses_all("touch end; while [ ! -e ended ]; do sleep 0.02; done")
    await talk.refuses_all("true")
    assert (talk.work / "AGENTS.md").read_text() == "mine"
    assert not (talk.work / ".envrc").exists()


@pytest.mark.parametrize("way", ["worktree", "separate", "link"])
async def test_a_git_folder_elsewhere_is_used_and_what_git_obeys_there_is_kept(
    talk: Conversation, way: str
):
    folder, talk.work = talk.home / "gits/x.git", talk.home / "src/x"
    talk.work.parent.mkdir()
    folder.parent.mkdir()
    if way == "worktree":
        git(folder.parent, "init", "-q", "x")
        git(folder.parent / "x", "commit", "-qm", "one", "--allow-empty")
        git(folder.parent / "x", "worktree", "add", "-q", str(talk.work))
        folder = folder.parent / "x/.git"
    elif way == "separate":
        git(talk.work.parent, "init", "-q", f"--separate-git-dir={folder}", "x")
    else:
        git(talk.work.parent, "init", "-q", "x")
        (talk.work / ".git").rename(folder)
        (talk.work / ".git").symlink_to(folder)
    (folder / "info/attributes").unlink(missing_ok=True)
    (folder / "hooks").rename(folder / "none")
    await talk.restart()
    settings = (folder / "config").read_bytes()
    said = await talk.says("git -c user.name=n -c user.email=n@x commit -qm two --allow-empty")
    assert "exit code 0" in said, said
    assert git(talk.work, "log", "-1", "--format=%s") == "two\n"
    evil = f"cd {folder}; echo '[core] fsmonitor = evil' >> config; echo '* filter=x' >"
    await talk.refuses_all(f"{evil} info/attributes; mkdir hooks; echo evil > hooks/post-commit")
    assert (folder / "config").read_bytes() == settings
    assert not (folder / "info/attributes").exists()
    assert not (folder / "hooks/post-commit").exists()
    assert git(talk.work, "log", "-1", "--format=%s") == "two\n"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "place", [".git/packed-refs", ".git/HEAD", ".git/worktrees/x/gitdir", ".git/refs/heads/x"]
)
async def test_a_pipe_in_the_repository_holds_nothing_up(talk: Conversation, place: str):
    git(talk.work, "init", "-q")
    (talk.work / "AGENTS.md").write_text("x")
    git(talk.work, "add", ".")
    git(talk.work, "commit", "-qm", "x")
    async with asyncio.timeout(PATIENCE_S):
        await talk.says(f"mkdir -p .git/worktrees/x; rm -f {place}; mkfifo {place}")
        assert "up" in await talk.says("echo y > AGENTS.md; echo up")
        await talk.fall()
        assert "up" in await talk.says("echo up")


async def test_no_process_that_belongs_to_no_command_can_be_written_to(talk: Conversation):
    """What is started there, as in the gate's process, would outlive the command unseen."""
    said = await talk.says(
        "n=0; for p in /proc/[0-9]*; do n=$((n + 1)); test $p = /proc/$$ && continue;"
        "{ : <> $p/mem; } 2>/dev/null && echo got $p; done; echo tried $n"
    )
    assert int(said.split()[1]) > 3
    assert said.startswith("tried")


@pytest.mark.thorough
async def test_a_stopped_keeper_is_replaced(talk: Conversation):
    await talk.says("true")
    await asyncio.gather(
        talk.says("kill -STOP -1 & kill -STOP $(ps -e -o pid= 2>/dev/null) ; true", timeout=2),
        return_exceptions=True,
    )
    answer: object = ""
    for _ in range(2):
        answer = (await asyncio.gather(talk.says("echo up"), return_exceptions=True))[0]
        if "up" in str(answer):
            break
    assert "up" in str(answer)


async def test_a_wall_whose_first_process_was_killed_is_replaced(talk: Conversation):
    if talk.backend == "landlock":
        pytest.skip("it has no processes of its own")
    await talk.says("true")
    (wall,) = talk.sandbox._walls.values()  # pyright: ignore[reportPrivateUsage]
    process = psutil.Process(wall.pid)
    os.kill(wall.pid, signal.SIGKILL)
    with suppress(psutil.NoSuchProcess):
        while process.status() != psutil.STATUS_ZOMBIE:
            await asyncio.sleep(0.01)
    assert "up" in await talk.says("echo up")


async def test_a_folder_in_another_leads_nowhere_else(talk: Conversation):
    outer = talk.base / "outer"
    (outer / "project").mkdir(parents=True)
    (talk.base / "outside").mkdir()
    talk.work, talk.added = outer / "project", (outer,)
    await talk.restart()
    await talk.says(f"cd {outer}; mv project was; ln -s {talk.base}/outside project")
    await asyncio.gather(talk.fall(), return_exceptions=True)
    await asyncio.gather(talk.says(f"echo x > {talk.base}/outside/x"), return_exceptions=True)
    assert not (talk.base / "outside/x").exists()


@pytest.mark.parametrize(
    "command",
    [
        "mkdir x y; cp -r .git/objects .git/refs y/; "
        "printf '[core]\\n\\tfsmonitor=./e\\n' > y/config;"
        " echo ref: refs/heads/main > x/HEAD; echo ../y > x/commondir",
        "mkdir x y; mkdir y/objects y/refs; echo ref: refs/heads/main > x/HEAD;"
        " ln -s ../y/objects ../y/refs x/; printf '[core]\\n\\tfsmonitor=./e\\n' > x/config",
    ],
)
async def test_a_repository_in_pieces_is_found(talk: Conversation, command: str):
    git(talk.work, "init", "-q")
    await talk.says(command)
    said = subprocess.run(
        ["git", "config", "core.fsmonitor"], cwd=talk.work / "x", capture_output=True, text=True
    )
    assert "./e" not in said.stdout


async def test_what_the_persons_configuration_leads_to_is_not_changed(talk: Conversation):
    git(talk.work, "init", "-q")
    (talk.work / "tools/hooks").mkdir(parents=True)
    (talk.work / "tools/hooks/pre-commit").write_text("exit 0\n")
    (talk.work / "tools/gitconfig").write_text("[alias]\n\tst = status\n")
    git(talk.work, "config", "core.hooksPath", "tools/hooks")
    git(talk.work, "config", "include.path", "../tools/gitconfig")
    await talk.says(
        "echo evil >> tools/hooks/pre-commit; echo evil > tools/hooks/pre-push;"
        "printf '[core]\\n\\tfsmonitor=./evil\\n' >> tools/gitconfig"
    )
    assert "evil" not in (talk.work / "tools/hooks/pre-commit").read_text()
    assert not (talk.work / "tools/hooks/pre-push").exists()
    assert "evil" not in (talk.work / "tools/gitconfig").read_text()


@pytest.mark.thorough
async def test_very_many_repositories_bring_no_wall_down(talk: Conversation):
    await talk.says(
        "git init -q t; rm -rf t/.git/hooks/*; i=0; while [ $i -lt 1500 ]; do i=$((i+1));"
        " mkdir r$i; cp -r t/.git r$i/; done"
    )
    await talk.restart()
    assert "up" in await talk.says("echo up")


async def test_git_verifies_no_signature_with_a_program_of_the_repository(talk: Conversation):
    git(talk.work, "init", "-q")
    (talk.work / "AGENTS.md").write_text("one\n")
    (talk.work / "evil").write_text(f"#!/bin/sh\n: > {talk.base}/ran\n")
    (talk.work / "evil").chmod(0o755)
    git(talk.work, "add", ".")
    git(talk.work, "commit", "-qm", "one")
    head, _, text = git(talk.work, "cat-file", "commit", "HEAD").partition("\n\n")
    signature = "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n"
    commit = ["git", "hash-object", "-t", "commit", "-w", "--stdin"]
    made = subprocess.run(
        commit, cwd=talk.work, input=(head + signature + text).encode(), capture_output=True
    )
    git(talk.work, "update-ref", "HEAD", made.stdout.decode().strip())
    git(talk.work, "config", "log.showSignature", "true")
    git(talk.work, "config", "gpg.program", str(talk.work / "evil"))
    await talk.says("echo two > AGENTS.md")
    assert not (talk.base / "ran").exists()


async def test_a_pointer_to_a_repository_elsewhere_is_laid_aside_and_nothing_else(
    talk: Conversation,
):
    (talk.base / "other").mkdir()
    git(talk.base / "other", "init", "-q")
    hook = talk.base / "other/.git/hooks/pre-commit"
    hook.write_text("exit 0")
    said = await talk.says(f"mkdir sub; echo gitdir: {talk.base}/other/.git > sub/.git; echo done")
    assert "done" in said
    assert "held back: sub/.git (new)" in said
    assert hook.exists()
    assert not (talk.work / "sub/.git").exists()


async def test_no_command_reads_or_writes_our_own_files_in_a_working_folder(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGENT_TUI_HOME", str(talk.work / "state"))
    (talk.work / "state/data").mkdir(parents=True)
    (talk.work / "state/data/keys").write_text(KEY)
    talk.begin()
    if talk.backend == "landlock":
        assert "own files" in talk.sandbox.state(talk.work).problem
        return
    for _ in range(2):
        output = await talk.bash(
            "cat state/data/keys; touch state/config/config.toml; mkdir -p .vscode; touch .vscode/x"
        )
        assert KEY not in output.for_model
        assert [held.path.name for held in output.held] == [".vscode"]
    assert (talk.work / "state/data/keys").read_text() == KEY
    assert not list((talk.work / "state/config").iterdir())


@pytest.mark.parametrize("way", ["working folder", "cache of the user"])
async def test_no_command_swaps_a_stand_in_for_a_folder_of_the_user(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch, way: str
):
    """The next sandbox would show it as ``/tmp``, and file tools would write there."""
    around = talk.work
    if way == "cache of the user":
        around = talk.home / ".cache"
        monkeypatch.setattr(
            talk,
            "settings",
            Settings.model_validate({"sandbox": "on", "sandbox_caches": [".cache"]}),
        )
    cache = around / "agent-tui"
    (cache / "outputs").mkdir(parents=True)
    (cache / "outputs/other").write_text(KEY)
    monkeypatch.setenv("AGENT_TUI_CACHE_DIR", str(cache))
    talk.begin()
    if talk.backend == "landlock":
        assert "own files" in talk.sandbox.state(talk.work).problem
        return
    await talk.says("true")
    said = await talk.says(
        f"cd {cache}; cat outputs/*; mkdir -p unfinished; echo {talk.home}/x > unfinished/x;"
        f"mv {cache} {around}/b; cd sandbox/*/ && mv tmp was && ln -s {talk.home}/.ssh tmp"
    )
    assert KEY not in said
    scratch = talk.sandbox.scratch(talk.work)
    assert scratch is not None
    assert scratch.folder.is_relative_to(cache)
    assert list((cache / "unfinished").iterdir()) == []


async def test_in_a_folder_of_ours_there_is_no_sandbox(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch
):
    for own in (talk.work, talk.base):
        monkeypatch.setenv("AGENT_TUI_CONFIG_DIR", str(own))
        talk.begin()
        assert "belongs to agent-tui" in talk.sandbox.state(talk.work).problem


async def test_the_environment_that_this_program_runs_in_is_not_changed(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch
):
    if talk.backend == "landlock":
        pytest.skip("it protects nothing in a folder that may be written")
    (talk.work / ".venv/bin").mkdir(parents=True)
    monkeypatch.setattr("sys.base_prefix", sys.prefix)  # what runs it is needed inside, too
    monkeypatch.setattr("sys.prefix", str(talk.work / ".venv"))
    await talk.says("echo evil > .venv/bin/python; mv .venv was; echo x > fine")
    assert list((talk.work / ".venv/bin").iterdir()) == []
    assert (talk.work / "fine").exists()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write", {"path": "sub/new", "content": "x"}),
        ("edit", {"path": "sub/there", "old": "mine", "new": "x"}),
        ("read", {"path": "sub/there"}),
        ("grep", {"path": "sub", "pattern": "mine"}),
        ("grep", {"path": "sub/there", "pattern": "mine"}),
        ("find", {"path": "sub", "pattern": "*"}),
        ("ls", {"path": "sub"}),
    ],
)
async def test_a_link_swapped_by_a_job_leads_no_tool_elsewhere(
    talk: Conversation, tool: str, arguments: JsonObject
):
    context, other = talk.context(), talk.base / "other"
    for folder in (talk.work / "sub", other):
        folder.mkdir()
        (folder / "there").write_text("mine")
    box = default_toolbox(talk.keeper, sandbox=talk.sandbox)
    context.files.remember(talk.work / "sub/there", digest_of(b"mine"))
    call = box.prepare(tool, arguments, context)
    await talk.says("mv sub was; ln -s ../other sub")
    with pytest.raises(ToolError):
        await call.run()
    assert [path.name for path in other.iterdir()] == ["there"]
    assert (other / "there").read_text() == "mine"


@pytest.mark.parametrize("target", ["{work}/real", "nowhere", "/", ".", "/etc/passwd"])
async def test_a_file_with_keys_that_is_a_link_stops_no_command(talk: Conversation, target: str):
    (talk.work / "real").write_text(KEY)
    (talk.work / ".env").symlink_to(target.format(work=talk.work))
    tool = talk.home / "tool"
    (tool / "bin").mkdir(parents=True)
    (tool / ".env").symlink_to(target.format(work=talk.work))
    talk.path = f"{tool}/bin"
    await talk.restart()
    said = await talk.says("cat .env; touch new && echo up")
    assert "up\n" in said, said
    assert KEY not in said or talk.backend == "landlock"
    assert sorted(path.name for path in talk.work.iterdir()) == [".env", "new", "real"]
    assert sorted(path.name for path in tool.iterdir()) == [".env", "bin"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter all folders")
@pytest.mark.parametrize("mode", ["000", "300", "600"])
async def test_what_nobody_may_enter_stops_no_command_and_keeps_its_keys(
    talk: Conversation, mode: str
):
    closed = talk.work / "closed"
    (closed / ".vscode").mkdir(parents=True)
    git(closed, "init", "-q")
    (closed / ".env").write_text(KEY)
    closed.chmod(int(mode, 8))
    said = await talk.says("chmod 700 closed; cat closed/.env; echo up")
    assert "up" in said
    if talk.backend == "bubblewrap":  # the other hides no such file
        assert KEY not in said
        closed.chmod(0o700)  # the person opens it
        assert ".git" in await talk.says("ls -a closed")
        assert KEY not in await talk.says("cat closed/.env")


@pytest.mark.parametrize("made", ["around", "moved"])
async def test_a_repository_that_comes_to_lie_elsewhere_stops_no_command(
    talk: Conversation, made: str
):
    top = talk.base / "top"
    talk.work = top / "part"
    talk.work.mkdir(parents=True)
    if made == "moved":
        git(talk.work, "init", "-q")
    await talk.says("true")
    if made == "around":
        git(top, "init", "-q")
    else:
        (talk.work / ".git").rename(top / "store")
        (talk.work / ".git").write_text("gitdir: ../store")
    git(talk.work, "commit", "-qm", "new", "--allow-empty")
    assert (await talk.says("echo fine")).splitlines()[0] == "fine"
    assert "fatal: not a git repository" in await talk.says("git log")
    await talk.restart()
    assert "new" in await talk.says("git log --format=%s")


async def test_commands_run_in_the_folder_that_is_there_now(talk: Conversation):
    (talk.work / "old").touch()
    await talk.says("true")
    moved = talk.work.rename(talk.base / "moved")
    with pytest.raises(ToolError, match="is no longer there"):
        await talk.says("true")
    talk.work.mkdir()
    (talk.work / "new").touch()
    (talk.work / ".env").write_text(KEY)
    await talk.refuses_all("ls > list; cat .env > key; mkdir .vscode; echo x > .vscode/tasks.json")
    assert (talk.work / "list").read_text() == "list\nnew\n"
    if talk.backend == "bubblewrap":
        assert (talk.work / "key").read_text() == ""
    assert sorted(path.name for path in moved.iterdir()) == ["old"]
    assert not (talk.work / ".vscode").exists()


async def test_no_repository_is_written_that_nobody_watches(talk: Conversation):
    for name in ("main", "other"):
        (talk.base / name).mkdir()
        git(talk.base / name, "init", "-q")
        git(talk.base / name, "commit", "-qm", name, "--allow-empty")
    talk.work.rmdir()
    git(talk.base / "main", "worktree", "add", "-q", str(talk.work))
    await talk.says("true")
    git(talk.base / "main", "worktree", "remove", str(talk.work))
    git(talk.base / "other", "worktree", "add", "-q", str(talk.work))
    hooks = talk.base / "other/.git/hooks"
    await talk.says(f"mkdir -p {hooks}; echo x > {hooks}/pre-commit; echo x > here")
    assert (talk.work / "here").exists()
    assert not (hooks / "pre-commit").exists()
