from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.features.sandbox.project_walk import ProjectWalk
from agent_tui.permissions.protected_paths import ProtectedPaths
from agent_tui.tools.files.obeyed import (
    TABLE,
    EntryKind,
    When,
    is_harmless_content,
    is_only_read,
    who_obeys,
    who_obeys_entry,
)
from tests.support.rows import each_row


@each_row(
    ("path", "who"),
    [
        (".vscode", "an editor"),
        ("proj.code-workspace", "an editor"),
        (".devcontainer.json", "a development container"),
        ("AGENTS.md", "an agent"),
        ("claude.MD", "an agent"),
        (".github/copilot-instructions.md", "an agent"),
        (".agent-tui", "agent-tui"),
        (".envrc", "the shell"),
        (".direnv/flake-profile-x.rc", "the shell"),
        (".config/mise.toml", "mise"),
        (".config/mise", "mise"),
        ("mise/conf.d", "mise"),
        ("mise.production.toml", "mise"),
        (".helix", "an editor"),
        ("opencode.jsonc", "an agent"),
        ("crush.json", "an agent"),
        (".pdbrc", "a debugger or an interpreter"),
        (".Rprofile", "a debugger or an interpreter"),
        (".gdbinit", "a debugger or an interpreter"),
        (".jj/repo/config.toml", "version control"),
        (".husky", "git hooks"),
        ("lefthook-local.yml", "git hooks"),
        (".config/lefthook.toml", "git hooks"),
        (".lefthook-local.jsonc", "git hooks"),
        ("prek.toml", "git hooks"),
        (".pre-commit-config.yml", "git hooks"),
        ("flake.nix", "the shell"),
        (".envrc.local", "the shell"),
        (".qoder", "an agent"),
        (".github/hooks", "an agent"),
        (".hg/hgrc", "version control"),
        (".sl/config", "version control"),
        ("_darcs/prefs/defaults", "version control"),
        (".shadowenv.d", "the shell"),
        (".autoenv.zsh", "the shell"),
        ("grumphp.yml", "git hooks"),
        (".lazygit.yml", "a client of git"),
        (".gh-dash.yml", "a client of git"),
        (".prototools", "the shell"),
        (".github/lsp.json", "an agent"),
        (".github/copilot", "an agent"),
        ("gptme.toml", "an agent"),
        (".bsp", "an editor"),
        ("buildServer.json", "an editor"),
        (".externalToolBuilders", "an editor"),
        (".neoconf.json", "an editor"),
        (".nlsp-settings", "an editor"),
        (".psysh.php", "a debugger or an interpreter"),
        (".ctags", "ctags"),
        (".luarc.jsonc", "an editor"),
        (".ropeproject/config.py", "an editor"),
        (".lsp/config.edn", "an editor"),
        (".factorypath", "an editor"),
        ("devbox.json", "the shell"),
        ("devenv.local.nix", "the shell"),
        ("devenv.yaml", "the shell"),
        ("flake.lock", "the shell"),
        (".flox/env", "the shell"),
        ("_opam/.opam-switch/environment", "the shell"),
        (".project", "an editor"),
        ("CMakeLists.txt.user", "an editor"),
        (".idx", "an editor"),
        (".serena", "an agent"),
        (".crush/skills", "an agent"),
        (".ctags.d", "ctags"),
        (".chef/knife.rb", "knife"),
        (".phpenv-vars", "a version manager"),
        (".phpbrewrc", "a version manager"),
        ("bin/hermit.hcl", "the shell"),
        ("mise.lock", "mise"),
        (".valgrindrc", "a debugger or an interpreter"),
        ("app.pro.user", "an editor"),
        ("meson.build.user", "an editor"),
        ("CMakeLists.txt.shared", "an editor"),
        ("Tests.run.xml", "an editor"),
        (".kateproject.local", "an editor"),
        (".lazy.lua", "an editor"),
        (".aider.model.settings.yml", "an agent"),
        (".claude-plugin", "an agent"),
        ("firebender.json", "an agent"),
        (".reviewboardrc", "a client of git"),
        ("GitExtensions.settings", "a client of git"),
        ("gtags.conf", "GNU Global"),
        (".lite_project.lua", "an editor"),
        ("_vimrc_local.vim", "an editor"),
        (".ycm_extra_conf.py", "an editor"),
        (".merlin", "an editor"),
        (".continuerc.json", "an agent"),
        (".roorules-code", "an agent"),
        (".kilocoderules", "an agent"),
        (".rvmrc", "the shell"),
        ("default.nix", ""),
        ("rust-analyzer.toml", ""),
        ("hie.yaml", ""),
        (".solargraph.yml", ""),
        ("config.user.js", ""),
        (".aider.chat.history.md", ""),
    ],
)
def test_what_somebody_outside_obeys_unasked(path: str, who: str):
    place = Path(path)
    assert who_obeys_entry(f"/work/{place.parent}", place.name) == who


@each_row("name", ["src/x.user.ts", "users", "user", "irb/readme", "docs/hermit.hcl"])
def test_a_name_that_only_resembles_one_does_not_count(name: str):
    assert not who_obeys(Path(name), is_unasked=True)


@each_row(
    ("program", "names"),
    [
        ("irb 1.15: lib/irb/init.rb", ".irbrc irbrc _irbrc $irbrc"),
        ("irb 1.4: lib/irb/init.rb", ".config/irb/irbrc .irbrc irb.rc _irbrc $irbrc"),
        ("pry: lib/pry/pry_class.rb", ".pryrc"),
        ("byebug: lib/byebug/core.rb", ".byebugrc"),
        ("pdb: Lib/pdb.py; pdb++: pdbpp.py", ".pdbrc .pdbrc.py"),
        ("gdb: gdbinit(5); lldb: lldb(1)", ".gdbinit .lldbinit"),
        ("R: help(Startup)", ".Renviron .Rprofile .RData"),
        ("ROOT: root(1), TRint::ExecLogon", ".rootrc .rootlogon.C rootlogon.C"),
        ("Octave: interpreter.cc; MATLAB: help startup, finish", ".octaverc startup.m finish.m"),
        ("ycmd: extra_conf_store.py", ".ycm_extra_conf.py __pycache__/.ycm_extra_conf.x.pyc"),
        ("jedi 0.20: api/project.py, Project.load", ".jedi/project.json"),
        ("vim-startify: startify_session_autoload", "Session.vim"),
        ("Joyride: lifecycle.cljs", ".joyride/scripts/workspace_activate.cljs .joyride/src/a.cljs"),
        ("mcphub.nvim: config.lua, look_for", ".mcphub/servers.json .vscode/mcp.json"),
        (
            "Qt Creator: github/gitignore/Qt.gitignore",
            "x.pro.user x.pro.user.4.8-pre1 x.qbs.user x.qmlproject.user x.creator.user"
            " CMakeLists.txt.user CMakeLists.txt.user.10.0 .qtcreator/x.user meson.build.user",
        ),
        (
            "mise: src/config/mod.rs, LOCAL_CONFIG_FILENAMES",
            ".tool-versions .config/mise/conf.d/x.toml .config/mise/config.toml"
            " .config/mise/mise.toml .config/mise.toml .mise/config.toml mise/config.toml"
            " .rtx.toml mise.toml .mise.toml .config/mise/config.local.toml"
            " .config/mise/mise.local.toml .config/mise.local.toml .mise/config.local.toml"
            " mise/config.local.toml .rtx.local.toml mise.local.toml .mise.local.toml"
            " .config/mise.x.local.toml mise.x.local.toml .mise.x.toml .mise/conf.d/x.toml"
            " mise.x.toml .mise.x.local.toml mise/config.x.toml .miserc.toml",
        ),
        (
            "mise: registry, idiomatic_files; asdf: list-legacy-filenames",
            ".python-version .python-versions .ruby-version .node-version .nvmrc .go-version",
        ),
        (
            "rvm: scripts/functions/rvmrc_project",
            ".rvmrc .versions.conf .ruby-env .rbenv-vars",
        ),
        ("nodenv-vars: bin/nodenv-vars", ".nodenv-vars"),
        ("direnv: direnv(1)", ".envrc"),
        ("autoenv: README, AUTOENV_ENV_LEAVE_FILENAME", ".autoenv .autoenv.leave"),
        ("tmux-sessionizer: hydrate", ".tmux-sessionizer"),
        ("Hermit: docs/usage/envars", "bin/hermit.hcl"),
        (
            "hk: src/config.rs, project_config_search_paths, apply_hkrc",
            "hk.local.pkl .config/hk.local.pkl hk.pkl .config/hk.pkl hk.toml hk.yaml hk.yml"
            " hk.json .hkrc.pkl",
        ),
        ("rusty-hook: src/config.rs, CONFIG_FILE_NAMES", ".rusty-hook.toml rusty-hook.toml"),
        ("npm, yarn, pnpm: their manuals", ".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs pnpmfile.js"),
        ("bun: its manual", "bunfig.toml"),
    ],
)
def test_each_name_that_a_program_reads_in_a_folder_is_listed(program: str, names: str):
    later = (".npmrc", ".yarnrc", ".pnpmfile", "pnpmfile", "bunfig")
    for name in names.split():
        assert who_obeys(Path("sub", name)), name
        *around, last = name.split("/")
        folders = [(f"sub/{'/'.join(around[:end])}", each) for end, each in enumerate(around)]
        found = any(who_obeys_entry(at, each, "folder") for at, each in folders)
        found = found or bool(who_obeys_entry(f"sub/{'/'.join(around)}", last))
        is_unasked = not last.startswith(later)
        assert found == is_unasked, name
        assert bool(who_obeys(Path(name), is_unasked=True)) == is_unasked, name


@each_row(
    ("name", "content", "is_harmless"),
    [
        (".python-version", "3.12\n", True),
        (".python-version", "# mine\n3.12.1\n3.11-dev\r\n\n", True),
        (".python-version", "cpython-3.12.3-linux-x86_64-gnu", True),
        (".nvmrc", "lts/iron\n", True),
        (".nvmrc", "lts/*\n", True),
        (".node-version", ">=20 <22 || ^24\n", True),
        (".ruby-version", "ruby-3.3.0@gems\n", True),
        (".python-version", "", True),
        (".python-version", "path:./evil\n", False),
        (".python-version", "3.12\n path:evil", False),
        (".python-version", "../../evil", False),
        (".python-version", "./evil", False),
        (".python-version", "a/../b", False),
        (".python-version", "/tmp/evil", False),
        (".python-version", "~/evil", False),
        (".nvmrc", "ref:evil", False),
        (".nvmrc", "$(evil)", False),
        (".nvmrc", "a/b/c", False),
        (".python-version", "evil/bin", False),
        (".python-version", "3.12 /tmp", False),
        (".python-version", "3.12 ~/evil", False),
        (".python-version", "-/evil", False),
        (".envrc", "3.12\n", False),
        ("AGENTS.md", "", False),
    ],
)
def test_only_a_file_of_versions_is_harmless_by_its_content(
    name: str, content: str, is_harmless: bool
):
    assert is_harmless_content(name, content.encode()) == is_harmless


@each_row(
    ("path", "kind", "who"),
    [
        # jj reads the file in the folder that such a file or link leads to.
        (".jj/repo", "file", "version control"),
        (".jj/repo", "link", "version control"),
        (".jj/repo", "folder", ""),
        (".jj", "link", "version control"),
        (".vim", "link", "an editor"),
        (".config/mise", "link", "mise"),
        (".config", "link", "mise"),
        ("mise", "link", "mise"),
        ("a/mise", "link", "mise"),
        (".hg", "folder", ""),
        (".hg", "file", ""),
        ("x", "link", ""),
        (".vscode", "folder", "an editor"),
        (".vscode", "link", "an editor"),
        (".clinerules", "folder", "an agent"),
        ("AGENTS.md", "folder", ""),
        ("node_modules", "link", ""),
    ],
)
def test_what_an_entry_is_decides_whether_it_is_followed(path: str, kind: EntryKind, who: str):
    place = Path(path)
    assert who_obeys_entry(f"/work/{place.parent}", place.name, kind) == who


def test_a_link_to_what_programs_follow_is_found(tmp_path: Path):
    (tmp_path / "x/repo").mkdir(parents=True)
    (tmp_path / ".jj").symlink_to("x")
    (tmp_path / "sub/.jj").mkdir(parents=True)
    (tmp_path / "sub/.jj/repo").write_text("../../x/repo")
    assert ProjectWalk([tmp_path]).look().obeyed == {
        tmp_path / ".jj": "version control",
        tmp_path / "sub/.jj/repo": "version control",
    }


@each_row(
    ("path", "who"),
    [
        (".claude/worktrees/fix/src/a.py", ""),
        ("sub/.gemini/worktrees/fix/Makefile", ""),
        (".claude/worktrees/fix/AGENTS.md", "an agent"),
        (".claude/worktrees/fix/.claude/settings.json", "an agent"),
        (".claude/worktrees/fix/.vscode/tasks.json", "an editor"),
        (".claude/worktrees", "an agent"),
        (".clinerules/worktrees/fix/a.md", "an agent"),
        (".claude/skills/worktrees/fix/a.py", "an agent"),
        (".vscode/worktrees/fix/a.py", "an editor"),
    ],
)
def test_an_agents_work_tree_is_a_folder_like_any_other(path: str, who: str):
    assert who_obeys(Path(path)) == who


def test_the_walk_looks_into_an_agents_work_trees(tmp_path: Path):
    for name in (".claude/worktrees/w/.vscode/a", ".claude/a", ".vscode/.claude/worktrees/w/b"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert ProjectWalk([tmp_path]).look().obeyed == {
        tmp_path / ".claude": "an agent",
        tmp_path / ".vscode": "an editor",
        tmp_path / ".claude/worktrees/w/.vscode": "an editor",
    }


@each_row(
    "path",
    [
        # CI obeys these after a push, builds write those, and nobody knows of the others.
        *(".github/workflows", ".gitlab-ci.yml", ".circleci"),
        *("venv/bin", "lib/site-packages", "node_modules/.bin", "x.pth", ".direnv/python-3.12"),
        *(".cargo/config.toml", ".yarnrc.yml", ".bazelrc", ".jj", ".hg", ".bashrc", "config.toml"),
        *(".unknown", ".env", ".gitignore", ".gitattributes", "package.json", "Makefile"),
    ],
)
def test_what_commands_in_the_wall_may_write(path: str):
    place = Path(path)
    assert who_obeys_entry(f"/work/{place.parent}", place.name) == ""


@each_row(
    ("path", "who"),
    [
        (".github/workflows/ci.yml", "CI"),
        ("venv/bin/python", "any program that calls these commands"),
        ("a/site-packages/x.py", "any program that uses these packages"),
        ("x.pth", "Python"),
        (".gitattributes", "git"),
        (".unknown", "the program that reads .unknown"),
        (".agent-tui/config.toml", "agent-tui"),
        (".vscode/tasks.json", "an editor"),
    ],
)
def test_an_edit_of_more_than_that_is_asked_about(path: str, who: str):
    assert who_obeys(Path(path)) == who


def test_texts_run_nothing_by_themselves():
    assert all(
        map(is_only_read, ("AGENTS.md", ".envrc", "lefthook.yml", ".pre-commit-config.yaml"))
    )
    assert not any(map(is_only_read, (".mcp.json", "mise.toml", ".nvim.lua", "x.code-workspace")))


def _paths(*whens: When) -> Iterator[tuple[str, str]]:
    """An example of each path of the table, and whether it is a folder."""
    for when in whens:
        for who, listed in TABLE[when].items():
            yield from ((path.replace("*", "x"), who) for path in listed.split())


@pytest.mark.parametrize("around", ["", "sub/"])
def test_file_tools_and_the_watch_agree_on_what_is_followed_unasked(tmp_path: Path, around: str):
    for path, who in _paths("unasked", "text"):
        file = tmp_path / path.strip("/").replace("/", "-") / around / path
        (file if path.endswith("/") else file.parent).mkdir(parents=True)
        if not path.endswith("/"):
            file.touch()
        root = tmp_path / path.strip("/").replace("/", "-")
        found = ProjectWalk([root]).look().obeyed
        assert found == {root / around / path: who}
        inside = Path(around, path, "x" if path.endswith("/") else "")
        assert who_obeys(inside) == who
        assert who_obeys(root / inside) == who


def test_file_tools_alone_ask_about_what_runs_later(tmp_path: Path):
    for path, who in _paths("later"):
        assert who_obeys(Path("sub", path, "x" if path.endswith("/") else "")) == who
        folder, _, name = path.strip("/").rpartition("/")
        assert who_obeys_entry(f"/work/{folder}", name) == ""


def test_what_programs_read_at_every_start_is_protected_in_every_mode(tmp_path: Path):
    guard = ProtectedPaths(tmp_path)
    for path, _ in _paths("start"):
        file = tmp_path / path / ("x" if path.endswith("/") else "")
        assert guard.why_writing_asks(file), path
    assert guard.why_writing_asks(tmp_path / "crontab/notes.txt") == ""
    assert guard.why_writing_asks(tmp_path / "AGENTS.md") == ""


def test_the_table_is_folded_and_lists_no_path_twice():
    for when, listed in TABLE.items():
        paths = [path for names in listed.values() for path in names.split()]
        assert len(paths) == len(set(paths)), when
        assert paths == [path.lower() for path in paths]
        assert all(path.strip("/").count("/") <= 2 for path in paths)
