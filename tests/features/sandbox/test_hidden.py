import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.features.sandbox.hidden import HiddenFiles
from agent_tui.features.sandbox.mounts import read_mount_points
from agent_tui.features.sandbox.project_walk import ProjectWalk
from agent_tui.permissions.protected_paths import ProtectedPaths
from agent_tui.safe_paths import real_path
from agent_tui.tools.processes.keeper import ProcessKeeper
from tests.support.conversation_wall import Conversation
from tests.support.patience import PATIENCE_S
from tests.support.rows import each_row
from tests.support.sandbox import make_sandbox, needs_bwrap, run_inside, watching
from tests.support.watched_folder import WatchedFolder


@pytest.fixture
def place(tmp_path: Path) -> WatchedFolder:
    folders = [tmp_path / name for name in ("proj", "own", "home")]
    for folder in folders:
        folder.mkdir()
    return WatchedFolder(*folders, has_mounts=False)


async def _wait_until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await asyncio.sleep(0.02)


def _names(place: WatchedFolder) -> set[str]:
    return {str(path.relative_to(place.root)) for path in place.watch.hidden.paths}


def test_files_with_keys_are_found_wherever_they_are(tmp_path: Path):
    for name in (
        *(".env", ".env.local", "deep/er/.env", "server.key", "id_rsa", "terraform.tfstate"),
        *(".env.example", ".env.sample", ".env.dist", ".env.template", "key.py", "id_rsa.pub"),
        *("node_modules/x/.env", "#.env#", "my key.pem", "a/.env (1)", "id_rsa~", "notes.md~"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    keys = (".aws/credentials", "a/.SSH/x/config", ".m2/settings.xml", "a/.cargo/credentials.toml")
    keys = (*keys, ".venv/pip.conf")
    for name in (*keys, ".m2/wrapper", "settings.xml", ".venv/pyvenv.cfg", "venv/pyvenv.cfg"):
        (tmp_path / ".docker/proj" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ".docker/proj" / name).touch()
    for name, index in ((".venv", "https://ada:decoy@x.example"), ("venv", "https://pypi.org")):
        settings = f"[global]\nindex-url = {index}/simple\n"
        (tmp_path / ".docker/proj" / name / "pip.conf").write_text(settings)
    walk = ProjectWalk([tmp_path / ".docker/proj"])
    found = {str(path.relative_to(walk.roots[0])) for path in walk.look().secrets}
    assert found == set(keys)
    shutil.rmtree(tmp_path / ".docker")
    files = HiddenFiles(dict(os.environ), ProcessKeeper())
    files.take(ProjectWalk([tmp_path]).look().secrets, "user")
    assert tmp_path / "server.key" in files.paths
    files.may_show = lambda path: path.name == "server.key"
    files.take(ProjectWalk([tmp_path]).look().secrets, "user")
    assert {str(path.relative_to(tmp_path)) for path in files.paths} == {
        *(".env", ".env.local", "deep/er/.env", "id_rsa", "terraform.tfstate"),
        *("#.env#", "my key.pem", "a/.env (1)", "id_rsa~"),
    }


_PEM = '{"private_key": "-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADAN"}'
_KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN\n"


@each_row(
    ("name", "content", "is_hidden"),
    [
        ("gcp-key.json", _PEM, True),
        ("my-project-0a1b2c3d4e5f.json", _PEM, True),
        ("app-firebase-adminsdk-fbsvc-0a1b2c3d4e.json", _PEM, True),
        ("deploy_rsa", _KEY, True),
        ("vpn.ovpn", f"client\n<key>\n{_KEY}</key>\n", True),
        ("private.asc", _KEY.replace("KEY", "KEY BLOCK").replace(" PR", " PGP PR"), True),
        ("server.crt", f"-----BEGIN CERTIFICATE-----\nMIIE\n{_KEY}", True),
        ("server.crt", "-----BEGIN CERTIFICATE-----\nMIIE\n", False),
        ("public.asc", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n", False),
        ("Makefile", f"key:\n\techo '{_KEY}'\nAWS = AKIA0123456789ABCDEF\n", False),
        ("vpn.ovpn", "client\nauth-token 0123456789abcdef\n", False),
        ("bundle-0a1b2c3d.json", '{"hash": "0123456789abcdef"}', False),
        (".secrets", "DB_PASSWORD=hunter2hunter", True),
        ("credentials", "[default]\naws_secret_access_key = abc/def+1234567\n", True),
        ("prod.tfvars", 'region = "eu-west-1"\ndb_password = "s3cr3t-pw"\n', True),
        ("kube-prod.yaml", "users:\n- user:\n    client-key-data: LS0tLS1CRUdJTi\n", True),
        ("api_keys.yml", "mail_token: 0123456789abcdef\n", True),
        ("prod.tfvars", 'region = "eu-west-1"\n', False),
        ("credentials", "[default]\nregion = eu-west-1\n", False),
        ("credentials.py", "TOKEN = '0123456789abcdef'\n", False),
        ("tokens.json", '{"spacing": {"small": "4px", "font": "Inter-400"}}', False),
        ("secrets.txt", "password = $DB_PASSWORD_1\ntoken: <your-token-1>\n", False),
        (
            "auth.yml",
            "password: settings.password\ntoken_expiry: 2026-01-01\nkey: eu-west-1\n",
            False,
        ),
        ("translations.key.json", '{"login.password": "Password 1 or 2"}', False),
        ("data.json", _PEM, True),
        ("monkey.json", _PEM, True),
        ("data.json", _PEM + " " * 64_000, False),
        ("data.json", '{\n"token": "0123456789abcdef"\n}', False),
        ("data.py", _PEM, False),
        ("serviceAccountKey.json", '{\n"token": "0123456789abcdef"\n}', True),
        ("monkey.json", '{\n"token": "0123456789abcdef"\n}', False),
        ("aws.credentials", "[default]\naws_secret_access_key = abc/def+1234567\n", True),
        ("rclone.conf", "[r]\nsecret_access_key = abc/def+1234567\n", True),
        ("env.production", "DB_PASSWORD=hunter2hunter\n", True),
        (".flaskenv", "SECRET_KEY=hunter2hunter\n", True),
        (".flaskenv", "FLASK_APP=hunter2hunter\n", False),
        ("env.ts", "DB_PASSWORD=hunter2hunter\n", False),
        ("environment.txt", "DB_PASSWORD=hunter2hunter\n", False),
        ("database.yml", "production:\n  password: hunter2hunter\n", True),
        ("database.py", "password: hunter2hunter\n", False),
    ],
)
def test_where_a_name_leaves_it_open_the_content_says_whether_it_is_a_key(
    tmp_path_factory: pytest.TempPathFactory, name: str, content: str, is_hidden: bool
):
    folder = tmp_path_factory.mktemp("open")
    (folder / name).write_text(content)
    assert ProjectWalk([folder]).look().secrets == [folder / name] * is_hidden
    assert bool(ProtectedPaths(folder).why_reading_asks(folder / name)) == is_hidden


def test_in_a_folder_full_of_data_no_file_is_searched_for_a_key(tmp_path: Path):
    for number in range(200):
        (tmp_path / f"{number}.json").write_text(_PEM)
    assert len(ProjectWalk([tmp_path]).look().secrets) == 200
    (tmp_path / "200.json").write_text(_PEM)
    assert ProjectWalk([tmp_path]).look().secrets == []


def test_what_was_found_to_be_a_key_is_one_however_much_data_comes_beside_it(tmp_path: Path):
    key, other = tmp_path / "sa.json", tmp_path / "other.json"
    key.write_text(_PEM)
    other.write_text("{}")
    walk = ProjectWalk([tmp_path])
    assert walk.look().secrets == [key]
    for number in range(201):
        (tmp_path / f"{number}.json").touch()
    assert walk.look().secrets == [key]
    key.touch()
    key.chmod(0o600)
    assert walk.look().secrets == [key]
    key.rename(tmp_path / "moved.json")
    other.rename(key)
    (tmp_path / "new.json").touch()
    assert walk.look().secrets == [tmp_path / "moved.json"]


async def test_a_file_that_gets_a_key_is_hidden_from_then_on(place: WatchedFolder):
    place.outside("echo 'region = 1' > prod.tfvars")
    await place.run("true")
    assert _names(place) == set()
    place.outside("echo 'db_password = s3cr3t-pw' > prod.tfvars")
    await place.run("true")
    assert _names(place) == {"prod.tfvars"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every file")
async def test_a_key_that_a_command_makes_unreadable_is_hidden_in_the_next_session(
    place: WatchedFolder,
):
    place.outside("mkdir -p .venv; touch .venv/pyvenv.cfg .venv/pip.conf; chmod 0 .venv/pip.conf")
    await place.run("true")
    place.outside("echo KEY > late_rsa; echo '{}' > data.json")
    place.inside("chmod 0 late_rsa data.json", 0)
    place.watch = place.watch_again()
    await place.run("true")
    assert _names(place) == {"late_rsa", "data.json", ".venv/pip.conf"}
    place.outside("chmod 600 late_rsa data.json .venv/pip.conf; touch .venv/x")
    await place.run("true")
    assert _names(place) == set()


async def test_what_our_own_tools_write_stays_visible(place: WatchedFolder):
    place.outside("echo A=1 > .env")
    await place.run("true")
    for name in (".env", "test.env", "api_keys.yml"):
        (place.root / name).write_text("mail_token: 0123456789abcdef\n")
        await place.watch.accept({place.root / name: b"mail_token: 0123456789abcdef\n"})
    await place.run("true")
    assert _names(place) == {".env"}
    place.outside("echo more: 0123456789abcdef >> api_keys.yml")
    await place.run("true")
    assert _names(place) == {".env", "api_keys.yml"}


@pytest.mark.skipif(shutil.which("git") is None, reason="uses git")
async def test_what_git_tracks_is_not_hidden(place: WatchedFolder):
    place.outside("git init -q; touch .env tests.pem; git add tests.pem; git commit -qm x")
    await place.run("true")
    assert _names(place) == {".env"}


@pytest.mark.skipif(shutil.which("git") is None, reason="uses git")
async def test_of_a_tracked_file_that_the_person_changed_git_has_a_version(place: WatchedFolder):
    place.outside(
        "git init -q; mkdir sub; ln -s sub/.env link.env; echo A=1 > sub/.env; chmod +x sub/.env;"
        "echo A=1 > filtered.env; echo 'filtered.env filter=f' > .gitattributes;"
        "git add .; git commit -qm one; touch new.env;"
        "for file in sub/.env filtered.env new.env; do echo KEY=mine >> $file; done"
    )
    await place.run("true")
    versions = place.watch.hidden.versions
    assert versions == {place.root / "sub/.env": (b"A=1\n", 0o100755)}
    assert versions.keys() < set(place.watch.hidden.paths)
    hint = place.watch.hidden.hint("npm start", "sub/.env: no KEY")
    assert hint.startswith("commands in the sandbox see .env as it was added to git")
    place.outside("git checkout -q sub")
    await place.run("true")
    assert place.watch.hidden.versions == {}


async def test_what_a_command_made_stays_visible_until_the_person_changes_it(place: WatchedFolder):
    place.outside("echo A= > .env.example; mkdir sub; echo key > sub/.env")
    await place.run("true")
    assert _names(place) == {"sub/.env"}
    await place.run("cp .env.example .env")
    await place.run("cat .env; echo B= >> .env")
    assert _names(place) == {"sub/.env"}
    await place.run("mv sub other")
    assert _names(place) == {"other/.env"}
    place.outside("echo A=key > .env")
    await place.watch.note()
    assert _names(place) == {".env", "other/.env"}


async def test_what_the_person_writes_while_a_job_runs_is_hidden_and_stays_so(
    place: WatchedFolder,
):
    await place.run("true")
    await place.watch.note()
    await place.watch.hold(is_over=False)
    place.outside("echo A=key > .env; mkdir sub; echo B=key > sub/.env")
    await place.watch.note()
    assert _names(place) == {".env", "sub/.env"}
    place.watch.hidden.note_command("echo C= > made.env")
    place.inside("echo C= > made.env")
    await place.watch.hold()
    place.watch.hidden.forget_command("echo C= > made.env")
    assert _names(place) == {".env", "sub/.env"}
    await place.run("true")
    assert _names(place) == {".env", "sub/.env"}
    place.outside("echo A=key > made.env")
    await place.watch.end_job()
    assert _names(place) == {".env", "sub/.env", "made.env"}


@needs_bwrap
async def test_a_key_that_the_user_writes_while_only_a_job_runs_is_hidden_from_the_job(
    tmp_path: Path,
):
    talk = Conversation(tmp_path, "bubblewrap")
    read = "cat .env.local sub/.env named.env 2>&1 | sort"
    await talk.says("echo A= > named.env")
    job = f"touch on; until test -e go; do sleep 0.02; done; {read} > read; touch over"
    await talk.says(job, background=True)
    await _wait_until((talk.work / "on").exists)
    (talk.work / ".env.local").write_text("decoy")
    (talk.work / "sub").mkdir()
    (talk.work / "sub/.env").write_text("decoy")
    (talk.work / "named.env").write_text("decoy")
    (wall,) = talk.sandbox._walls.values()
    keys = {talk.work / name for name in (".env.local", "sub/.env", "named.env")}
    await _wait_until(lambda: keys <= read_mount_points(wall.pid))
    (talk.work / "go").touch()
    await _wait_until((talk.work / "over").exists)
    assert (talk.work / "read").read_text().count("Permission denied") == len(keys)
    await talk.sandbox.close_walls()


async def test_what_appears_while_a_command_runs_is_hidden_unless_it_is_the_commands(
    place: WatchedFolder,
):
    place.outside("echo A= > .env.example; mkdir sub; echo B=key > sub/users.env")
    await place.run("true")
    await place.watch.note()
    place.watch.hidden.note_command("./setup.sh named.env")
    place.outside(
        "cp .env.example .env; mkdir new; for file in new/x named sub/persons; do"
        " echo A=key > $file.env; done; touch empty.env; mv sub/users.env moved.env;"
        "echo -----BEGIN CERTIFICATE----- > ca.pem"
    )
    await place.watch.hold()
    place.watch.hidden.forget_command("./setup.sh named.env")
    assert _names(place) == {"sub/persons.env", "moved.env"}
    (notice,) = place.watch.hidden.take_notices("")
    assert notice.startswith("persons.env appeared or changed")
    assert place.watch.hidden.take_notices("") == ()
    await place.run("echo C= >> named.env; echo D= > new/y.env")
    place.outside("rm new/x.env")
    await place.watch.note()
    place.outside("echo A=key > .env; echo A=key > new/x.env")
    await place.watch.hold()
    assert _names(place) == {"sub/persons.env", "moved.env", ".env", "new/x.env"}


async def test_after_a_kill_no_key_counts_as_new(place: WatchedFolder):
    place.outside(
        "echo A=key > .env; echo A=key > copy; echo B= > .env.example; cp .env.example b.env"
    )
    await place.run("true")
    await place.watch.note()
    # As a killed program leaves it: busy, and its lock is held by nobody.
    (state,) = (place.own / "running").glob("*.state")
    state.rename(state.with_name("killed.state"))
    place.watch = place.watch_again()
    await place.watch.recover()
    await place.run("true")
    assert place.watch.hidden.take_notices("") == ()
    assert _names(place) == {".env", "b.env"}


async def test_another_name_that_the_person_makes_stays(place: WatchedFolder):
    place.outside("git init -q; echo A= > test.pem; git add .; git commit -qm 1")
    await place.run("true")
    place.outside("ln test.pem backup")
    await place.run("true")
    place.outside("echo B= >> test.pem")
    assert place.text("backup") == "A=\nB=\n"


async def test_another_name_of_a_visible_file_does_not_show_what_the_person_writes_later(
    place: WatchedFolder,
):
    place.outside("echo A= > .env.example; echo key > users.env; ln users.env backup")
    await place.run("cp .env.example .env; chmod 640 .env; ln .env build.tmp")
    await place.run("cat .env")
    place.outside("echo A=key > .env; echo B=key >> users.env")
    await place.run("true")
    assert _names(place) == {".env", "users.env"}
    assert place.text("build.tmp") == "A=\n"
    assert (place.root / ".env").stat().st_mode & 0o777 == 0o640
    assert place.text("backup") == "key\nB=key\n"


@pytest.mark.skipif(shutil.which("git") is None, reason="uses git")
async def test_the_model_is_told_if_git_cannot_switch_a_covered_file(place: WatchedFolder):
    place.outside(
        "git init -q -b main; echo A=1 > .env; git add .; git commit -qm one; git switch -qc other;"
        "echo A=2 > .env; git commit -qam two; git switch -q main; echo KEY=mine >> .env"
    )
    await place.run("true")
    assert place.watch.hidden.take_notices("") == ()
    await place.run("git read-tree other")
    (notice,) = place.watch.hidden.take_notices("")
    assert notice.startswith("git could not switch .env")
    assert place.watch.hidden.versions[place.root / ".env"][0] == b"A=2\n"
    assert len(place.watch.hidden.take_notices("error: unable to unlink old '.env': busy")) == 1
    assert place.watch.hidden.take_notices("error: unable to unlink old 'x.env': busy") == ()


async def test_every_file_with_keys_is_hidden_however_many_there_are(place: WatchedFolder):
    place.outside("for n in $(seq 600); do touch $n.env; done")
    await place.run("true")
    assert len(_names(place)) == 600


async def test_the_model_is_told_once_of_a_hidden_file_that_a_command_meets(place: WatchedFolder):
    place.outside("echo A=key > .env")
    await place.run("true")
    hidden = place.watch.hidden
    assert hidden.hint("npm test", "cannot read package.env or .env.example") == ""
    assert hidden.hint("npm start", "Error: .env: no such file").endswith("the rule read(.env)")
    assert hidden.hint("npm start", "Error: .env: no such file") == ""
    place.outside("ln -sf /dev/null .env")
    await place.run("true")
    assert (_names(place), hidden.hint("npm stop", "Error: .env: empty")) == (set(), "")
    place.outside("rm .env; echo A=key > real.env; ln -s real.env .env")
    await place.run("true")
    assert _names(place) == {".env", "real.env"}


async def test_a_file_that_is_not_there_is_no_hidden_one_of_the_same_name(place: WatchedFolder):
    place.outside("mkdir svc svc2; echo A=key > svc/.env")
    await place.run("true")
    hidden = place.watch.hidden
    for command in ("cat svc2/.env", "cat ./svc2/.env", f"cat {place.root}/.env", "cat ~/x/.env"):
        assert hidden.hint(command, "No such file or directory") == "", command
    assert hidden.hint("cat svc2/../svc/.env", "No such file or directory")


@needs_bwrap
@pytest.mark.thorough
async def test_a_link_with_the_name_of_a_key_hides_only_what_may_be_one(tmp_path: Path):
    """Devices, the system, programs and what git keeps stay: every command needs them."""
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    programs = tmp_path / "work/.venv/bin"
    programs.mkdir(parents=True)
    (programs / "tool").write_text("#!/bin/sh\necho runs\n")
    (programs / "tool").chmod(0o755)
    subprocess.run(["git", "init", "-q", work], check=True)
    for name in ("settings.txt", "outer.txt", "third.txt"):
        (work / name).write_text("decoy key")
    shell, git = real_path("/bin/sh"), real_path(shutil.which("git") or "")
    for number, to in enumerate(
        ("/dev/null", "/proc/self/environ", shell, git, work / ".git/HEAD", programs / "tool")
    ):
        (work / f".env.{number}").symlink_to(to)
    (work / "sub/.env").symlink_to("../settings.txt")
    (work / "sub/id_rsa").symlink_to(work / "outer.txt")
    (work / ".env").symlink_to("third.txt")
    tools = tmp_path / "home/tools"
    (tools / "bin").mkdir(parents=True)
    (tools / "settings.txt").write_text("decoy key")
    (tools / ".env").symlink_to("settings.txt")
    environ = {"PATH": f"{programs}:{tools}/bin:{os.defpath}"}
    sandbox = make_sandbox(tmp_path, parts=watching(tmp_path / "own"), environ=environ)
    try:
        for cwd in (work, work / "sub"):
            watch = sandbox.watch(cwd)
            assert watch is not None
            await watch.note()
            command = f"git status -s >/dev/null && {programs}/tool"
            keys = f"{work}/*.txt {tools}/*.txt"
            command = f"{command} && ! cat {keys} 2>/dev/null && echo {keys} | wc -w"
            assert await run_inside(sandbox, cwd, command) == (0, "runs\n4\n")
            await watch.hold()
    finally:
        await sandbox.close_walls()
