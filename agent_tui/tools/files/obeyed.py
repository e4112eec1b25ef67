"""Which files other programs read and follow: editors, agents, shells, git, builds.

One table answers three questions, for commands in the wall and for the file tools alike. What does
a program outside the wall follow in a folder *unasked*: an editor that opens the folder, a shell
that enters it, a debugger or interpreter that starts there, another agent, this program? A command
in the wall must not control that. What else determines what runs *later*: CI, builds, the packages
of an environment? A user who lets a model edit files does not mean to let it control that either,
so mode accept-edits asks about these, too; commands in the wall may write them, like the code that
runs with them. And what do programs read at every *start*, usually from the home folder? Every mode
asks about that.

What a language server runs of a project anyway when an editor opens it, as rust-analyzer does build
scripts and macros, gives its settings there no further power: they are not followed.

Git's own files are in `git_controls`. ``.gitattributes`` and ``.gitmodules`` run nothing: what they
name runs only if git's configuration says how.
"""

import fnmatch
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from agent_tui.safe_paths import git_entry
from agent_tui.tools.files.protected import fold_name
from agent_tui.tools.git.named_files import is_followed
from agent_tui.tools.git.places import is_linked_tree

When: TypeAlias = Literal["unasked", "text", "later", "start"]
"""When a program follows a file. ``text`` is unasked too, but such a file runs nothing itself: it
is for a model, or takes effect only after a commit or with the user's approval."""

TABLE: Final[Mapping[When, Mapping[str, str]]] = {
    "unasked": {
        "an editor": """
            .vscode/ .idea/ .zed/ .fleet/ .nova/ .vs/ .helix/ .lapce/ .theia/ .vim/coc-settings.json
            *.code-workspace *.sublime-project .dir-locals.el .dir-locals-2.el .nvim.lua .nvimrc
            .lazy.lua .exrc .vimrc .gvimrc .lvimrc _vimrc_local.vim .vimspector.json .kateproject
            .kateproject.local .bsp/ buildserver.json .lite_project.lua .ycm_extra_conf.py
            __pycache__/.ycm_extra_conf.*.pyc .merlin
            .externaltoolbuilders/ .neoconf.json .nlsp-settings/ .luarc.json .luarc.jsonc
            .ropeproject/config.py .lsp/config.edn .factorypath .project .cproject
            *.user *.pro.user.* *.qbs.user.* *.qmlproject.user.* *.creator.user.*
            cmakelists.txt.user.* *.pro.shared cmakelists.txt.shared .qtcreator/ *.run.xml .kdev4/
            .idx/ .jedi/project.json session.vim .joyride/""",
        "a development container": ".devcontainer/ .devcontainer.json",
        "an agent": """
            .claude/ .codex/ .gemini/ .cursor/ .agents/ .opencode/ .pi/ .windsurf/ .continue/
            .continuerc.json .roo/ .kiro/ .aider/ .goose/ .junie/ .amp/ .augment/
            .crush/commands/ .factory/ .kilocode/ .kimi/ .openhands/ .qwen/ .trae/ .vibe/ .agent/
            .amazonq/ .cline/ .codebuddy/ .grok/ .iflow/ .letta/ .qoder/ .rovodev/ .zencoder/
            .github/copilot-instructions.md .github/instructions/ .github/prompts/
            .github/chatmodes/ .github/agents/ .github/hooks/ .github/skills/ .github/copilot/
            .github/lsp.json .mcp.json mcp.json .aider.conf.yml
            .aider.model.*.yml .aider.model.*.json .claude-plugin/ .firebender/ firebender.json
            opencode.json opencode.jsonc
            crush.json .crush.json .roomodes .kilocodemodes gptme.toml gptme.local.toml
            .aiassistant/ .copilot/ .crush/crush.json .crush/skills/ .forge/ .lingma/ .serena/
            .tabnine/ .warp/ .mcphub/servers.json""",
        "a debugger or an interpreter": """
            .gdbinit .lldbinit .pdbrc .pdbrc.py .rprofile .renviron .rdata .irbrc irbrc _irbrc
            $irbrc irb.rc irb/irbrc .pryrc .rdbgrc .byebugrc .ghci .ocamlinit .iex.exs .octaverc
            startup.m finish.m .perldb .erlang .psysh.php .valgrindrc .rootrc .rootlogon.c
            rootlogon.c""",
        "mise": """
            mise.toml mise.*.toml .mise.toml .mise.*.toml .miserc.toml .tool-versions .mise/
            mise/config.toml mise/config.*.toml mise/conf.d/ .config/mise.toml .config/mise.*.toml
            .config/mise/ mise.lock mise.*.lock .rtx.toml .rtx.*.toml""",
        "git hooks": ".husky/ .githooks/ .git-hooks/ .lefthook/ .lefthook-local/",
        "git": ".lfsconfig",
        "a client of git": """
            .lazygit.yml .gh-dash.yml .gh-dash.yaml .reviewboardrc .arcconfig
            gitextensions.settings""",
        "ctags": ".ctags .ctags.d/ ctags.d/",
        "GNU Global": "gtags.conf",
        "knife": ".chef/knife.rb .chef/config.rb",
        "a version manager": ".*env-vars .ruby-env .versions.conf .phpbrewrc",
        "version control": """
            .hg/hgrc .hg/hgrc-not-shared .hg/sharedpath .jj/repo .jj/repo/config.toml
            .jj/workspace-config.toml .sl/config .pijul/config _darcs/prefs/defaults""",
        "the shell": """
            .autoenv .autoenv.leave .autoenv.zsh .autoenv_leave.zsh .env.fish .shadowenv.d/
            .tmux-sessionizer devenv.nix
            devenv.local.nix devenv.yaml devenv.local.yaml devenv.lock devbox.json devbox.lock
            flake.nix flake.lock shell.nix .envrc.local .envrc.private .direnv/*.rc .prototools
            .flox/env/ .flox/env.json bin/hermit.hcl
            _opam/.opam-switch/environment _opam/.opam-switch/switch-config""",
        "agent-tui": ".agent-tui/",
    },
    "text": {
        "an agent": """
            agents.md agents.override.md claude.md claude.local.md gemini.md .cursorrules
            .windsurfrules .goosehints .clinerules/ .clinerules-* .roorules .roorules-*
            .kilocoderules agent.md qwen.md crush.md warp.md .rules
            .augment-guidelines""",
        "git hooks": """
            .pre-commit-config.y*ml .pre-commit-hooks.yaml prek.toml .overcommit.yml
            *lefthook*.y*ml *lefthook*.toml *lefthook*.json* captainhook.json grumphp.y*ml hk.pkl
            hk.local.pkl .hkrc.pkl hk.toml hk.y*ml hk.json .rusty-hook.toml rusty-hook.toml""",
        "mise and asdf": ".*-version .python-versions .nvmrc .yvmrc",
        "the shell": ".envrc .rvmrc",
    },
    "later": {
        "version control": ".hg/ .jj/",
        "git": ".gitattributes .gitmodules",
        "a build": ".bundle/ .mvn/ .gradle/",
        "the shell": ".direnv/",
        "any program that uses these packages": "site-packages/ .pnp/",
        "any program that calls these commands": """
            node_modules/.bin/ .venv/bin/ .venv/scripts/ venv/bin/ venv/scripts/ env/bin/
            env/scripts/ _opam/bin/""",
        "CI": """
            .circleci/ .buildkite/ .gitea/ .forgejo/ .github/workflows/ .github/actions/
            .gitlab-ci.yml jenkinsfile azure-pipelines.yml .travis.yml .drone.yml .woodpecker.yml
            bitbucket-pipelines.yml appveyor.yml cloudbuild.yaml cloudbuild.yml buildspec.yml
            buildspec.yaml .gitpod.yml""",
        "npm": ".npmrc",
        "pnpm": ".pnpmfile.cjs .pnpmfile.mjs pnpmfile.js",
        "bun": "bunfig.toml",
        "yarn": ".yarnrc .yarnrc.yml .yarn/releases/ .yarn/plugins/",
        "cargo": ".cargo/config.toml .cargo/config rust-toolchain.toml rust-toolchain",
        "uv": "uv.toml",
        "bazel": ".bazelrc user.bazelrc",
        "Python": "*.pth",
    },
    "start": {
        "shells": """
            .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .bashrc.d/ .profile
            .profile.d/ profile.d/ .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc
            .login .logout .inputrc config.fish .envrc .local/bin/""",
        "the session": """
            .xprofile .xinitrc .xsession .xsessionrc .pam_environment autostart/ launchagents/
            launchdaemons/ systemd/""",
        "the scheduler": "crontab cron.d/ cron.daily/ cron.hourly/ cron.weekly/ cron.monthly/",
        "git and Mercurial": ".gitconfig .gitmodules .config/git/ .hgrc",
        "ssh": "authorized_keys",
        "editors": ".vimrc .gvimrc .exrc .emacs",
        "debuggers and interpreters": """
            .gdbinit .lldbinit .irbrc .pryrc .pdbrc .rprofile .pythonrc sitecustomize.py
            usercustomize.py""",
        "package managers": ".yarnrc .yarnrc.yml pip.conf",
        "other programs": """
            .mailcap .lesskey .lessfilter .curlrc .wgetrc .ripgreprc .psqlrc .sqliterc .screenrc
            .tmux.conf""",
    },
}
"""The paths that each program follows, folded as `fold_name` does. ``name/`` is a folder with all
that is in it, or a file; ``name`` is a file or a link; ``a/b`` lies in a folder ``a``; ``*``
matches within one name."""

EntryKind: TypeAlias = Literal["file", "folder", "link"]

_AGENT: Final = "an agent"
_UNKNOWN: Final = "a program of the user"
_VERSIONS: Final = "mise and asdf"
WORK_TREES: Final = "worktrees"
"""The folder of an agent in which it keeps work trees: ``.claude/worktrees/fix``. No program
follows anything there; what a work tree has is followed as in any other."""


_HARMLESS_HIDDEN_NAMES = """
    .gitignore .gitkeep .keep .dockerignore .npmignore .eslintignore .prettierignore .ignore
    .rgignore .editorconfig .prettierrc* .stylelintrc* .markdownlint*
    .github .gitlab .changeset .storybook .cache .tmp .temp .scratch
    .pytest_cache .ruff_cache .mypy_cache .next .nuxt .svelte-kit .output .turbo .parcel-cache
    .vitepress .docusaurus .venv .tox .nox .coverage* .yarn .well-known .env.example
    .env.sample .env.template .env.dist .mailmap .git-blame-ignore-revs .all-contributorsrc
    .browserslistrc .codespellrc .yamllint* .eslintrc* .babelrc* .flake8 .pylintrc .isort.cfg
    .rubocop.yml .clang-format .clang-tidy .swcrc .mocharc* .nycrc* .rspec .credo.exs
    .formatter.exs .golangci.y*ml .readthedocs.y*ml .codecov.y*ml .hadolint.yaml
"""
_HARMLESS_HIDDEN = tuple(_HARMLESS_HIDDEN_NAMES.split())
"""Hidden files of a project that determine no more than its code does."""
_VERSION: Final = re.compile(rb"(?:[\w.+@*^~<>=|, -]*|lts/[\w.*-]+)\r?")
"""A line of a file of versions that names no folder: ``3.12``, ``lts/iron``, ``>=20 <22``."""

_RUN_BY_NAMES: Final = {
    "make": "makefile gnumakefile *.mk *.mak",
    "gmake": "makefile gnumakefile *.mk",
    "just": "justfile .justfile *.just",
    "task": "taskfile.yml taskfile.yaml",
    "rake": "rakefile *.rake",
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), "package.json"),
    "tox": "tox.ini",
    "nox": "noxfile.py",
    "invoke": "tasks.py",
    "gradle": "*.gradle *.gradle.kts",
    "mvn": "pom.xml",
    "docker": "dockerfile *.dockerfile compose.y*ml docker-compose*.y*ml",
    "bazel": "build build.bazel *.bzl workspace module.bazel",
}
_RUN_BY: Final = {program: tuple(names.split()) for program, names in _RUN_BY_NAMES.items()}


_UNASKED: Final = frozenset[When](("unasked", "text"))
_UNASKED_OR_AT_START: Final = frozenset[When]((*_UNASKED, "start"))
_EDITED: Final = frozenset[When]((*_UNASKED, "later"))


_MOST_AROUND: Final = 2
"""Names before the last one in the table."""


class _Listed(NamedTuple):
    """A path of the table: `around` are the names before the last one."""

    when: When
    who: str
    around: tuple[str, ...]
    is_folder: bool


class _Paths:
    """The table, arranged for looking up the last name of a path."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[_Listed]] = {}
        for when, listed in TABLE.items():
            for who, paths in listed.items():
                for path in paths.split():
                    *around, name = path.rstrip("/").split("/")
                    entry = _Listed(when, who, tuple(around), path.endswith("/"))
                    self._by_name.setdefault(name, []).append(entry)
        self._globs = {
            glob: re.compile(fnmatch.translate(glob)) for glob in self._by_name if "*" in glob
        }
        self._any_glob = re.compile("|".join(glob.pattern for glob in self._globs.values()))
        listed = (each for some in self._by_name.values() for each in some)
        self._ways: dict[tuple[str, ...], _Listed] = {}
        """The folders that lead to what is followed unasked."""
        for each in listed:
            if each.when in _UNASKED:
                self._ways |= {each.around[:end]: each for end in range(1, len(each.around) + 1)}
        self._names = self._by_name.keys() | {names[-1] for names in self._ways}

    def is_listed(self, name: str) -> bool:
        """Whether a path that ends in the folded `name` may be in the table, or lead to one."""
        return name in self._names or self._any_glob.match(name) is not None

    def find(
        self, names: Sequence[str], whens: Collection[When], *, is_around: bool = False
    ) -> _Listed | None:
        """Who follows the path of these folded `names`; None if nobody does.

        Args:
            names: The path's parts, as `fold_name` returns them.
            whens: What counts.
            is_around: Whether only a folder counts, as the question is about something in it.
        """
        for each in self._listed(names[-1]):
            if (
                each.when in whens
                and (each.is_folder or not is_around)
                and tuple(names[-1 - len(each.around) : -1]) == each.around
            ):
                return each
        return None

    def find_way(self, names: Sequence[str]) -> _Listed | None:
        """What is followed unasked below the folder of these folded `names`; None for nothing."""
        ends = (tuple(names[-count:]) for count in range(1, _MOST_AROUND + 1))
        return next((self._ways[end] for end in ends if end in self._ways), None)

    def _listed(self, name: str) -> Iterator[_Listed]:
        yield from self._by_name.get(name, ())
        if self._any_glob.match(name):
            for glob, pattern in self._globs.items():
                if pattern.match(name):
                    yield from self._by_name[glob]


_PATHS: Final = _Paths()


def who_obeys(
    path: Path,
    allowed_programs: Iterable[str] = (),
    *,
    at: Path | None = None,
    home: Path | None = None,
    is_unasked: bool = False,
) -> str:
    """Which program follows the file at `path`; empty if none is known.

    Args:
        path: Relative to the workspace; absolute if elsewhere.
        allowed_programs: Programs that may run without asking, whose command files then count
            (``make``: the Makefile).
        at: Where it is, links followed; None to leave out what git's settings name, and what is
            followed because of the folders around the workspace.
        home: The user's home folder, for their settings of git.
        is_unasked: Whether only what a program follows outside and unasked counts, as it does for
            commands in the sandbox: no files for builds and CI, and none of `allowed_programs`.
    """
    whens = _UNASKED if is_unasked else _EDITED
    names = _within_work_tree([fold_name(part) for part in path.parts if part != ".."])
    if not names:  # the workspace itself: no program follows a folder
        return ""
    if found := _find_on_way(names, whens):
        return found
    if at is not None and (found := _find_around(at, whens)):
        return found  # the workspace is in such a folder
    if not (is_unasked or path.is_absolute()) and (hidden := _unknown_hidden(names)):
        return f"the program that reads {hidden}"
    for program in () if is_unasked else allowed_programs:
        if is_run_by(program, names[-1]):
            return program
    return "git" if at is not None and is_followed(at, home) else ""


def is_run_by(program: str, name: str) -> bool:
    """Whether `program` takes its commands from a file of this `name`: make from a Makefile."""
    return any(fnmatch.fnmatchcase(fold_name(name), glob) for glob in _RUN_BY.get(program, ()))


def who_obeys_entry(
    folder: str, name: str, kind: EntryKind = "file", *, at_start: bool = False
) -> str:
    """Which program follows the entry `name` of `folder`, outside and unasked.

    For a folder, this covers all its content. A link in place of a folder that leads to a followed
    file counts too. Empty if no program does.

    Args:
        folder: Its path, or as much of the end as there is.
        name: The entry's name.
        kind: What it is.
        at_start: Whether programs read settings there when they start.
    """
    last = fold_name(name)
    if not _PATHS.is_listed(last):
        return ""
    names = (*(fold_name(part) for part in folder.split("/")[-_MOST_AROUND:]), last)
    whens = _UNASKED_OR_AT_START if at_start else _UNASKED
    found = _PATHS.find(names, whens, is_around=kind == "folder")
    if found is None and kind == "link":
        found = _PATHS.find_way(names)
    if found is None:
        return ""
    return "what runs at each start" if found.when == "start" else found.who


def who_obeys_folder(folder: Path) -> str:
    """Which program follows all that is in `folder`, outside and unasked, wherever the roots are.

    That is so if it is ``.claude`` or lies in it, also in a repository there, such as a skill that
    was cloned. Git's linked work trees are left out: agents keep them there. Empty if no program
    does.
    """
    return _find_around(folder / "x", _UNASKED)


def _find_around(path: Path, whens: Collection[When]) -> str:
    """Which program follows the absolute `path`, or a folder around it; empty if none does."""
    entry = git_entry(path.parent)
    is_apart = entry is not None and is_linked_tree(entry)
    parts = path.relative_to(entry.parent.parent).parts if entry and is_apart else path.parts
    return _find_on_way(_within_work_tree([*map(fold_name, parts)]), whens)


def who_obeys_in(path: Path, root: Path | None, linked: Mapping[Path, Path]) -> str:
    """Which program follows `path` as all else in the working folder `root`; empty if none does.

    Args:
        path: A folder, or a file. In a work tree that an agent keeps in `root`, none does.
        root: The working folder around it; None if there is none.
        linked: See `find_linked`.
    """
    if root is None or linked.get(root) != root:
        return ""
    names = [fold_name(part) for part in path.parts]
    return _UNKNOWN if len(_within_work_tree(names)) == len(names) else ""


def holds_work_trees(folder: str, name: str) -> bool:
    """Whether the entry `name` of `folder` is where an agent keeps work trees.

    Args:
        folder: Its path, or its name.
        name: The entry's name.
    """
    return name == WORK_TREES and _is_agents(fold_name(folder.rpartition("/")[2]))


def _within_work_tree(names: list[str]) -> list[str]:
    """The folded `names` of a path, in the work tree that an agent keeps there, if any."""
    for at in range(len(names) - 3, -1, -1):
        if names[at + 1] == WORK_TREES and _is_agents(names[at]):
            return names[at + 3 :]
    return names


def _is_agents(name: str) -> bool:
    found = _PATHS.find((name,), {"unasked"}, is_around=True)
    return found is not None and found.who == _AGENT


def is_only_read(name: str) -> bool:
    """Whether a followed file of this name runs nothing until a user says so.

    Such a file is not protected by a mount, so that git can change it on a checkout or a merge: it
    is compared after each command.
    """
    found = _PATHS.find((fold_name(name),), _UNASKED)
    return found is not None and found.when == "text"


def is_harmless_content(name: str, content: bytes) -> bool:
    """Whether a followed file of this name with this content makes no program run anything.

    So is a file of versions that gives only versions. With ``path:DIRECTORY`` it puts a folder on
    the ``PATH`` (mise, ``ToolRequest::new``; asdf, ``toolversions.Parse``), with ``ref:`` it has
    something built.
    """
    found = _PATHS.find((fold_name(name),), {"text"})
    if found is None or found.who != _VERSIONS:
        return False
    lines = (line.partition(b"#")[0].strip() for line in content.split(b"\n"))
    return all(
        _VERSION.fullmatch(line) and b".." not in line and not line.startswith((b".", b"~/"))
        for line in lines
    )


def is_read_at_start(path: Path) -> bool:
    """Whether programs read or run the file at `path` at every start."""
    return bool(_find_on_way([fold_name(part) for part in path.parts], {"start"}))


def _find_on_way(names: Sequence[str], whens: Collection[When]) -> str:
    """Which program follows the path of `names`, or a folder around it; empty if none does."""
    for end in range(1, len(names) + 1):
        near = names[max(0, end - 1 - _MOST_AROUND) : end]  # a path may have very many parts
        if found := _PATHS.find(near, whens, is_around=end < len(names)):
            return found.who
    return ""


def _unknown_hidden(names: Sequence[str]) -> str:
    """A hidden folder or file that is for some program, and not known to be harmless."""
    return next(
        (
            name
            for name in names
            if name[:1] == "."
            and not any(fnmatch.fnmatchcase(name, glob) for glob in _HARMLESS_HIDDEN)
        ),
        "",
    )
