import os
import subprocess
from pathlib import Path

import pytest

from agent_tui.features.sandbox.home import furnish, what_runs
from agent_tui.features.sandbox.tool_settings import plain_git_settings, tool_settings
from agent_tui.tools.git.token_settings import has_git_tokens, tokens_in
from agent_tui.tools.processes.keeper import ProcessKeeper
from tests.support.rows import each_row


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def readable(home: Path, *path: Path, work: Path | None = None, **environ: str) -> set[Path]:
    """What exists below `home`, relative to it, with `path` on PATH."""
    found = what_runs(
        (home,), (), (work,) if work else (), {"PATH": os.pathsep.join(map(str, path)), **environ}
    )
    return {place.relative_to(home) for place in found.readable if home in place.parents}


def exists(home: Path, name: str, found: set[Path]) -> bool:
    return any(Path(name).is_relative_to(place) for place in found) and (home / name).exists()


def test_programs_beside_credentials_come_without_them(home: Path):
    for name in (".fly/bin/fly", ".fly/lib/x", ".fly/config.yml", ".ssh/id_rsa", "notes.md"):
        program(home / name)
    found = readable(home, home / ".fly/bin", Path("/usr/bin"), Path("relative"))
    assert exists(home, ".fly/bin/fly", found)
    assert exists(home, ".fly/lib/x", found)
    for name in (".fly/config.yml", ".ssh/id_rsa", "notes.md"):
        assert not exists(home, name, found)


@pytest.mark.parametrize(
    ("on_path", "needed"),
    [
        ("jdk-21/bin", "jdk-21/conf/x"),
        (".nvm/versions/node/v20/bin", ".nvm/versions/node/v20/lib/x"),
        (".pyenv/shims", ".pyenv/versions/3.12/bin/python"),
        (".miniconda/bin", ".miniconda/pkgs/x"),
        (".cargo/bin", ".rustup/toolchains/stable/bin/cargo"),
        ("work/node_modules/.bin", "work/node_modules/x/index.js"),
        ("bin", "bin/tool"),
    ],
)
def test_what_the_programs_on_path_need_is_there(home: Path, on_path: str, needed: str):
    program(home / on_path / "tool")
    program(home / needed)
    if "conda" in on_path:
        (home / ".miniconda/conda-meta").mkdir()
    found = readable(home, home / on_path)
    assert exists(home, needed, found)
    assert Path() not in found


def test_links_to_programs_are_followed_and_made_again(home: Path):
    tool = program(home / ".local/share/tools/venvs/t/bin/t")
    program(home / ".local/share/tools/venvs/t/pyvenv.cfg")
    (home / ".dotfiles/bin").mkdir(parents=True)
    (home / ".dotfiles/bin/t").symlink_to(tool)
    (home / "bin").symlink_to(home / ".dotfiles/bin")
    view = what_runs((home,), (), (), {"PATH": str(home / "bin")})
    assert {home / ".local/share/tools/venvs/t", home / ".dotfiles/bin"} <= view.readable
    furnish(home.with_name("stand-in"), home, view, {".npmrc": "fund=false\n"})
    assert (home.with_name("stand-in") / "bin").readlink() == home / ".dotfiles/bin"
    assert (home.with_name("stand-in") / ".npmrc").read_text() == "fund=false\n"


def test_a_link_to_a_program_among_settings_brings_nothing_but_the_program(home: Path):
    program(home / ".ssh/tunnel.sh")
    program(home / ".config/tool/run")
    program(home / "zig/zig")
    program(home / "zig/lib/std.zig")
    program(home / "zig/notes")
    (home / "letters").mkdir()
    (home / "letters/one.txt").write_text("")
    (home / "bin").mkdir()
    for name in (".ssh/tunnel.sh", ".config/tool/run", "zig/zig", "letters/one.txt"):
        (home / "bin" / Path(name).name).symlink_to(home / name)
    found = {"bin", "zig/zig", "zig/lib", ".ssh/tunnel.sh", ".config/tool/run"}
    assert readable(home, home / "bin") == set(map(Path, found))


@pytest.mark.parametrize(
    ("linked", "shown"),
    [
        ("Documents/resize.sh", {"Documents/resize.sh"}),
        ("Documents/bin/resize.sh", {"Documents/bin/resize.sh"}),
        ("tools/node/bin/node", {"tools/node"}),
        ("tools/x/lib/node_modules/x/cli.js", {"tools/x/lib/node_modules"}),
    ],
)
def test_a_linked_program_brings_its_installation_and_no_personal_folder(
    home: Path, linked: str, shown: set[str]
):
    for name in ("Documents/tax.txt", "Documents/x/diary.md", "tools/node/lib/x"):
        program(home / name)
    (home / "bin").mkdir()
    (home / "bin/x").symlink_to(program(home / linked))
    found = readable(home, home / "bin")
    assert {place for place in found if not found & set(place.parents)} == {
        Path("bin"),
        *map(Path, shown),
    }


def test_of_homebrew_what_its_programs_load_is_there(home: Path):
    for name in ("Cellar/dep/1/lib/x", "Cellar/tool/1/bin/tool", "opt/dep/lib/x", "auth.json"):
        program(home / ".linuxbrew" / name)
    found = readable(home, home / ".linuxbrew/bin")
    assert {Path(".linuxbrew/opt"), Path(".linuxbrew/Cellar")} <= found
    assert not exists(home, ".linuxbrew/auth.json", found)


def test_what_path_names_in_the_runtime_folder_is_there(home: Path, tmp_path: Path):
    program(home / "node/v20/bin/node")
    (home / "node/v20/lib").mkdir()
    (tmp_path / "run/multishells").mkdir(parents=True)
    (tmp_path / "run/bus").touch()
    shell = tmp_path / "run/multishells/1"
    shell.symlink_to(home / "node/v20")
    path = os.pathsep.join((f"{shell}/bin", f"{tmp_path}/run/bin"))
    view = what_runs((home,), (tmp_path / "run",), (), {"PATH": path})
    assert home / "node/v20" in view.readable
    assert view.links[shell] == str(home / "node/v20")
    assert not any(tmp_path / "run" in place.parents for place in view.readable)


def test_toolchains_come_without_what_logs_in(home: Path):
    needed = (".local/share/uv/python/3.12/bin/python", ".cache/ms-playwright/firefox-1/firefox")
    keys = (".local/share/uv/credentials/x", ".cache/ms-playwright/mcp-profile/Default/Cookies")
    for name in (*needed, *keys, ".cache/ms-playwright/firefox-1/INSTALLATION_COMPLETE"):
        program(home / name)
    found = readable(home)
    assert [exists(home, name, found) for name in (*needed, *keys)] == [True] * 2 + [False] * 2


@pytest.mark.parametrize("folder", [".", ".local"])
def test_programs_of_the_user_come_without_the_data_of_others(home: Path, folder: str):
    for name in ("bin/tool", "share/keyrings/login", "share/uv/tools/x", "lib/x", "state/x"):
        program(home / ".local" / name)
    program(home / ".config/other/secret")
    (home / "bin").symlink_to(".local/bin")
    found = readable(home, home / folder / "bin", VIRTUAL_ENV=str(home / ".local"))
    for name in ("bin/tool", "lib/x", "share/uv/tools/x"):
        assert exists(home, f".local/{name}", found)
    for name in (".local/share/keyrings/login", ".local/state/x", ".config/other/secret"):
        assert not exists(home, name, found)


def environment_of(work: Path, python_folder: Path) -> None:
    (work / "x").mkdir(parents=True)
    (work / "x/pyvenv.cfg").write_text(f"home = {python_folder}\n")


@pytest.mark.parametrize("folder", ["notes", "notes/bin", "python/notes"])
def test_no_environment_shows_a_folder_that_is_not_an_interpreters(
    home: Path, tmp_path: Path, folder: str
):
    program(home / folder / "python3")
    (home / "notes/lib").mkdir(parents=True)
    program(home / "python/lib/python3.12/os.py")
    environment_of(tmp_path / "work", home / folder)
    assert readable(home, work=tmp_path / "work") == set()
    (tmp_path / "work/x/pyvenv.cfg").write_text(f"home = {home}/\0\nhome = /{'x' * 5000}\n")
    assert readable(home, work=tmp_path / "work") == set()


def test_a_virtual_environment_brings_its_interpreter_and_nothing_beside_it(
    home: Path, tmp_path: Path
):
    prefix = home / "pythons/deep/3.12"
    program(prefix / "bin/python3.12")
    program(prefix / "lib/python3.12/os.py")
    (prefix / "notes").write_text("")
    (prefix / "bin/tool").symlink_to(program(home / "letters/tool"))
    environment_of(tmp_path / "work", prefix / "bin")
    found = readable(home, work=tmp_path / "work")
    assert exists(home, "pythons/deep/3.12/lib/python3.12/os.py", found)
    assert not exists(home, "pythons/deep/3.12/notes", found)
    assert not exists(home, "letters/tool", found)
    on_path = readable(home, prefix / "bin", work=tmp_path / "work")
    assert exists(home, "pythons/deep/3.12/notes", on_path)


@pytest.mark.parametrize("is_on_path", [False, True])
def test_no_link_in_an_installation_shows_what_it_leads_to(
    home: Path, tmp_path: Path, is_on_path: bool
):
    prefix = home / ".pythons"
    for name in ("bin/python3", "lib/python3.12/os.py"):
        program(prefix / name)
    program(home / ".ssh/id_rsa")
    (prefix / "lib64").symlink_to("lib")
    (prefix / "share").symlink_to(home / ".ssh/id_rsa")
    (prefix / "include").symlink_to(home / ".ssh")
    (prefix / "conf").symlink_to(".")
    environment_of(tmp_path / "work", prefix / "bin")
    found = readable(home, *([prefix / "bin"] if is_on_path else []), work=tmp_path / "work")
    assert found == {Path(".pythons/bin"), Path(".pythons/lib")}


def test_no_environment_names_an_interpreter_in_another_repository(home: Path, tmp_path: Path):
    program(home / "src/other/bin/python3")
    program(home / "src/other/lib/python3.12/os.py")
    environment_of(tmp_path / "work", home / "src/other/bin")
    assert readable(home, work=tmp_path / "work") != set()
    (home / "src/.git").mkdir()
    assert readable(home, work=tmp_path / "work") == set()
    assert exists(home, "src/other/lib", readable(home, home / "src/other/bin"))
    mine = readable(home, work=tmp_path / "work", VIRTUAL_ENV=str(tmp_path / "work/x"))
    assert exists(home, "src/other/lib", mine)
    (home / "src/.git").rename(home / ".git")
    assert readable(home, work=tmp_path / "work") != set()


def test_a_link_out_of_the_home_folder_brings_nothing_of_it(home: Path):
    (home / ".secrets").mkdir()
    (home / ".secrets/key").write_text("")
    (home / "bin").mkdir()
    (home / "bin/up").symlink_to(home)
    (home / "bin/loop").symlink_to(home / "bin/loop")
    found = readable(home, home / "bin")
    assert found == {Path("bin")}


def settings(home: Path, work: Path) -> dict[str, str]:
    return tool_settings(home, work, {"PATH": os.environ["PATH"]}, ProcessKeeper())


def test_git_knows_who_the_person_is_and_nothing_that_runs_or_lets_in(home: Path, tmp_path: Path):
    work = tmp_path / "work"
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    (home / ".ignore").write_text("*.swp\n")
    (home / ".work").write_text('[user]\n\temail = "ada@work.example"\n')
    (home / ".gitconfig").write_text(
        '[user]\n\tname = "Ada \\"L\\" \\\\ Lovelace"\n\temail = ada@example.org\n'
        f'[includeIf "gitdir:{work}/"]\n\tpath = .work\n'
        "[core]\n\texcludesFile = ~/.ignore\n\tsshCommand = evil\n\tpager = evil\n"
        "[credential]\n\thelper = store\n[commit]\n\tgpgSign = true\n"
        '[filter "lfs"]\n\tclean = git-lfs clean -- %f\n'
        '[url "https://token@github.com/"]\n\tinsteadOf = gh:\n'
    )
    made = settings(home, work)
    assert made[".config/git/ignore"] == "*.swp\n"
    (home / ".gitconfig").write_text(made[".gitconfig"])
    shown = subprocess.run(
        ["git", "config", "--global", "--list"],
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert shown == [
        'user.name=Ada "L" \\ Lovelace',
        "user.email=ada@example.org",
        "user.email=ada@work.example",
        "filter.lfs.clean=git-lfs clean -- %f",
    ]


@each_row(
    ("text", "shown"),
    [
        ("[sendemail]\n\tsmtpPass = decoy\n\tto = a@b\n", "[sendemail]\n\n\tto = a@b\n"),
        ("[sendemail]\n\tsmtppass = decoy\n", "[sendemail]\n\n"),
        ("[github]\n\toauth-token = decoy\n", "[github]\n\n"),
        ('[a "x] y"] private-token = decoy # z\n', '[a "x] y"]\n'),
        ("[a] b = c\n", "[a] b = c\n"),
        ("[http] extraHeader = Authorization: decoy\n", "[http]\n"),
        ("[a]\n\turl = https://ada:de\\\ncoy@h.example/x\n", "[a]\n\turl = https://h.example/x\n"),
        ('[credential]\n\thelper = "!f() { echo password=decoy; }; f"\n', "[credential]\n\n"),
        ("[credential]\n\thelper = !gh auth\n", "[credential]\n\thelper = !gh auth\n"),
        ("[include]\n\tpath = more.inc\n", "[include]\n\tpath = more.inc\n"),
    ],
)
def test_a_secret_in_git_settings_is_left_out_however_it_is_written(
    tmp_path: Path, text: str, shown: str
):
    config, more = tmp_path / "config", tmp_path / "more.inc"
    config.write_text(text)
    more.write_text("[http]\n\textraHeader = Authorization: decoy\n")
    found = plain_git_settings([config])
    assert found.get(config, (text.encode(), 0))[0].decode() == shown
    assert (more in found) == ("more" in text)
    assert has_git_tokens(config) == (text != shown)
    assert has_git_tokens(more)


def test_indexes_come_without_passwords(home: Path, tmp_path: Path):
    (home / ".config/pip").mkdir(parents=True)
    (home / ".config/pip/pip.conf").write_text(
        "[global]\nindex-url = https://pypi.example/simple\n"
        "extra-index-url = https://pypi.example/1a2B3c4D5e6F7g8H/simple\n"
        "    https://ada:hunter2@private.example/simple\n    https://open.example/simple\n"
        "[install]\nuser = true\n"
    )
    (home / ".npmrc").write_text(
        "registry=https://npm.example/\n@me:registry=https://me.example/\n"
        "@you:registry=https://you.example/1a2B3c4D5e6F7g8H/\n"
        "//npm.example/:_authToken=npm_canary\n_auth=canary\nfund=false\n"
    )
    (home / ".cargo").mkdir()
    (home / ".cargo/config.toml").write_text('[registries.x]\ntoken = "canary"\n')
    (home / ".condarc").write_text("channels: [conda-forge]\n")
    made = settings(home, tmp_path)
    assert made == {
        ".config/pip/pip.conf": "[global]\nindex-url =\n    https://pypi.example/simple\n"
        "extra-index-url =\n    https://open.example/simple\n",
        ".npmrc": "registry=https://npm.example/\n@me:registry=https://me.example/\nfund=false\n",
        ".condarc": "channels: [conda-forge]\n",
    }


@each_row(
    ("name", "text"),
    [
        (".cargo/config.toml", '[http]\nproxy = "ada:hunter2@proxy.example:3128"\n'),
        (
            ".cargo/config.toml",
            '[registries.x]\nindex = "sparse+https://x.example/1a2B3c4D5e6F/"\n',
        ),
        (".cargo/config.toml", '[env]\nAPI_KEY = "hunter2"\n'),
        (".config/uv/uv.toml", '[[index]]\nurl = "https://x.example/1a2B3c4D5e6F7g8H/simple"\n'),
        (".config/uv/uv.toml", '[[index]]\nurl = "https://x.example/simple?auth=hunter2"\n'),
        (".condarc", "channels:\n  - https://conda.example/t/hunter2/team\n"),
        (".condarc", "channels: [t/hunter2/team, defaults]\n"),
        (".config/go/env", "GOPROXY=https://1a2B3c4D5e6F7g8H@go.example,direct\n"),
        (".config/go/env", "GOPROXY=https://go.example/1a2B3c4D5e6F7g8H,direct\n"),
    ],
)
def test_settings_with_a_token_in_an_address_are_left_out(
    home: Path, tmp_path: Path, name: str, text: str
):
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    (home / name).write_text(text)
    assert name not in settings(home, tmp_path)


def test_settings_that_name_public_registries_and_mirrors_are_copied_whole(
    home: Path, tmp_path: Path
):
    texts = {
        ".cargo/config.toml": '[source.crates-io]\nreplace-with = "mirror"\n[source.mirror]\n'
        'registry = "sparse+https://mirrors.ustc.edu.cn/crates.io-index/"\n'
        '[http]\nproxy = "proxy.example:3128"\n[target.x86_64-unknown-linux-gnu]\n'
        'rustflags = ["-C", "link-arg=-fuse-ld=lld"]\n',
        ".config/uv/uv.toml": '[[index]]\nurl = "https://pypi.tuna.tsinghua.edu.cn/simple"\n'
        'default = true\n[pip]\nextra-index-url = ["https://download.pytorch.org/whl/cu121"]\n',
        ".config/go/env": "GOPROXY=https://goproxy.cn,direct\nGOFLAGS=-mod=mod\n",
        ".condarc": "channels:\n  - conda-forge\n"
        "channel_alias: https://mirrors.tuna.tsinghua.edu.cn/anaconda/cloud\n",
    }
    for name, text in texts.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    assert settings(home, tmp_path) == texts


def test_tokens_of_git_settings_are_known_as_programs_print_them():
    text = (
        "[core]\n\tbare = false\n"
        '[remote "o"]\n\turl = https://ada:s3cret-t0ken@git.example/x\n'
        "\tpushurl = ssh://git@git.example/x\n"
        '[http "https://git.example"] extraheader = \\\n "AUTHORIZATION: basic YWRhOng="\n'
        '[url "https://ghp_0123456789abcdefABCDEF0123456789abcd@git.example/"]\n'
        "\tinsteadOf = https://git.example/\n"
    )
    assert tokens_in(text) == (
        *("ada:s3cret-t0ken", "s3cret-t0ken", "AUTHORIZATION: basic YWRhOng="),
        "ghp_0123456789abcdefABCDEF0123456789abcd",
    )
