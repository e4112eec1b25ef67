"""Which files other programs read and follow: editors, agents, shells, git, builds.

There are two questions. What does a program *outside* the wall follow without asking: an editor
that opens the folder, a shell that enters it, git, another agent, this program? A command in the
wall must not control that. And what else determines what runs later: CI, builds, the packages of an
environment? A user who lets a model edit files does not mean to let it control that either, so mode
accept-edits asks about these, too; commands in the wall may write them.

Git's own files are in `git_controls`. ``.gitattributes`` and ``.gitmodules`` are not included: what
they name runs only if git's configuration says how.
"""

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from agent_tui.tools.files.protected import fold_name


def _by_name(names: Mapping[str, str]) -> dict[str, str]:
    """The program for each name, from the names listed for each program."""
    return {name: who for who, listed in names.items() for name in listed.split()}


def _by_pair(names: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """The same for a name in a folder: ``folder/name``."""
    pairs = {tuple(pair.split("/")): who for pair, who in _by_name(names).items()}
    return {(folder, name): who for (folder, name), who in pairs.items()}


_OUTSIDE_FOLDERS: Final = _by_name(
    {
        "an editor": ".vscode .idea .zed .fleet .nova",
        "a development container": ".devcontainer",
        "an agent": ".claude .codex .gemini .cursor .agents .opencode .pi .windsurf .continue .roo"
        " .kiro .aider .goose .junie",
        "git hooks": ".husky .githooks .git-hooks .lefthook",
        "agent-tui": ".agent-tui",
    }
)
_OUTSIDE_PAIRS: Final = _by_pair(
    {
        "mise": ".config/mise.toml",
        "version control": ".hg/hgrc",
        "an agent": ".github/copilot-instructions.md .github/instructions .github/prompts"
        " .github/chatmodes .github/agents",
    }
)
_TEXTS: Final = _by_name(
    {
        "an agent": "agents.md agents.override.md claude.md claude.local.md gemini.md .cursorrules"
        " .windsurfrules .goosehints .clinerules agent.md qwen.md crush.md warp.md .rules",
        "git hooks": ".pre-commit-config.yaml .pre-commit-hooks.yaml .overcommit.yml",
        "the shell": ".envrc",
    }
)
"""These run nothing themselves: a text for a model, hooks that a commit runs, and what direnv runs
only with content that the user allowed."""

_RUN_NAMES: Final = _by_name(
    {
        "an agent": ".mcp.json mcp.json .aider.conf.yml opencode.json .roomodes",
        "an editor": ".dir-locals.el .dir-locals-2.el .nvim.lua .nvimrc .exrc .lvimrc"
        " .vimspector.json",
        "git": ".lfsconfig",
        "a development container": ".devcontainer.json",
        "mise": "mise.toml mise.local.toml .mise.toml .tool-versions .miserc.toml",
        "the shell": ".autoenv .env.fish devenv.nix",
    }
)
_OUTSIDE_NAMES: Final = {**_TEXTS, **_RUN_NAMES}
_OUTSIDE_SUFFIXES: Final = (".code-workspace", ".sublime-project")
_LEFTHOOK: Final = "*lefthook*.y*ml"

_FOLDERS: Final = _OUTSIDE_FOLDERS | _by_name(
    {
        "version control": ".hg .jj",
        "a build": ".bundle .mvn .gradle",
        "the shell": ".direnv",
        "any program that uses these packages": "site-packages .pnp",
        "CI": ".circleci .buildkite .gitea .forgejo",
    }
)
_PAIRS: Final = _OUTSIDE_PAIRS | _by_pair(
    {
        "CI": ".github/workflows .github/actions",
        "cargo": ".cargo/config.toml .cargo/config",
        "yarn": ".yarn/releases .yarn/plugins",
        "any program that calls these commands": "node_modules/.bin .venv/bin .venv/scripts"
        " venv/bin venv/scripts env/bin env/scripts",
    }
)
_NAMES: Final = _OUTSIDE_NAMES | _by_name(
    {
        "git": ".gitattributes .gitmodules",
        "CI": ".gitlab-ci.yml jenkinsfile azure-pipelines.yml .travis.yml .drone.yml"
        " .woodpecker.yml bitbucket-pipelines.yml appveyor.yml cloudbuild.yaml cloudbuild.yml"
        " buildspec.yml buildspec.yaml",
        "pnpm": ".pnpmfile.cjs",
        "cargo": "rust-toolchain.toml rust-toolchain",
        "uv": "uv.toml",
        "bazel": ".bazelrc user.bazelrc",
    }
)
_HARMLESS_HIDDEN_NAMES = """
    .gitignore .gitkeep .keep .dockerignore .npmignore .eslintignore .prettierignore .ignore
    .rgignore .editorconfig .prettierrc* .stylelintrc* .markdownlint* .python-version .nvmrc
    .node-version .ruby-version .github .gitlab .changeset .storybook .cache .tmp .temp .scratch
    .pytest_cache .ruff_cache .mypy_cache .next .nuxt .svelte-kit .output .turbo .parcel-cache
    .vitepress .docusaurus .venv .tox .nox .coverage* .yarn .well-known .env.example
    .env.sample .env.template .env.dist .mailmap .git-blame-ignore-revs .all-contributorsrc
    .browserslistrc .codespellrc .yamllint* .eslintrc* .babelrc* .flake8 .pylintrc .isort.cfg
    .rubocop.yml .clang-format .clang-tidy .swcrc .mocharc* .nycrc* .rspec .credo.exs
    .formatter.exs .golangci.y*ml .readthedocs.y*ml .codecov.y*ml .hadolint.yaml
"""
_HARMLESS_HIDDEN = tuple(_HARMLESS_HIDDEN_NAMES.split())
"""Hidden files of a project that determine no more than its code does."""
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


def who_obeys(path: Path, allowed_programs: Iterable[str] = ()) -> str:
    """Which program follows the file at `path`; empty if none is known.

    Args:
        path: Relative to the workspace; absolute if elsewhere.
        allowed_programs: Programs that may run without asking, whose command files then count
            (``make``: the Makefile).
    """
    names = [fold_name(part) for part in path.parts if part != ".."]
    if not names:  # the workspace itself: no program follows a folder
        return ""
    found = next((_FOLDERS[name] for name in names[:-1] if name in _FOLDERS), "")
    for pair in pairwise(names):
        found = found or _PAIRS.get(pair, "")
    last = names[-1]
    if found := found or _NAMES.get(last, "") or _by_pattern(last) or "Python" * _is_pth(last):
        return found
    if not path.is_absolute() and (hidden := _unknown_hidden(names)):
        return f"the program that reads {hidden}"
    for program in allowed_programs:
        if any(fnmatch.fnmatchcase(names[-1], glob) for glob in _RUN_BY.get(program, ())):
            return program
    return ""


def who_obeys_entry(folder: str, name: str) -> str:
    """Which program follows the entry `name` of a folder named `folder`, outside and unasked.

    For a folder, this covers all its content. Empty if none does.
    """
    last = fold_name(name)
    return (
        _OUTSIDE_FOLDERS.get(last, "")
        or _OUTSIDE_NAMES.get(last, "")
        or _OUTSIDE_PAIRS.get((fold_name(folder), last), "")
        or _by_pattern(last)
        or ("the shell" if folder == ".direnv" and last.endswith(".rc") else "")
    )


def is_only_read(name: str) -> bool:
    """Whether a followed file of this name runs nothing until a user says so.

    Such a file is not protected by a mount, so that git can change it on a checkout or a merge: it
    is compared after each command.
    """
    last = fold_name(name)
    return last in _TEXTS or fnmatch.fnmatchcase(last, _LEFTHOOK)


def _by_pattern(name: str) -> str:
    if name.endswith(_OUTSIDE_SUFFIXES):
        return "an editor"
    return "git hooks" if "lefthook" in name and fnmatch.fnmatchcase(name, _LEFTHOOK) else ""


def _is_pth(name: str) -> bool:
    return name.endswith(".pth")


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
