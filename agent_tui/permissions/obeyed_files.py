"""Files of a project that other programs obey: editors, agents, hooks, builds.

Who lets a model edit files does not mean to let it decide what an editor, a hook or the next
allowed command runs, so mode accept-edits asks about these.
"""

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

from agent_tui.tools.files.protected import folded

_FOLDERS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys((".vscode", ".idea", ".zed", ".fleet", ".nova"), "an editor"),
        **dict.fromkeys((".devcontainer",), "a development container"),
        **dict.fromkeys((".hg", ".jj"), "version control"),
        **dict.fromkeys((".bundle", ".mvn", ".gradle"), "a build"),
        **dict.fromkeys((".direnv",), "the shell"),
        **dict.fromkeys(("site-packages", ".pnp"), "any program that uses these packages"),
        **dict.fromkeys(
            (
                *(".claude", ".codex", ".gemini", ".cursor", ".agents", ".opencode", ".pi"),
                *(".windsurf", ".continue", ".roo", ".kiro", ".aider", ".goose", ".junie"),
            ),
            "an agent",
        ),
        **dict.fromkeys((".husky", ".githooks", ".git-hooks", ".lefthook"), "git hooks"),
        **dict.fromkeys((".circleci", ".buildkite", ".gitea", ".forgejo"), "CI"),
    }
)
_PAIRS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        (".github", "workflows"): "CI",
        (".github", "actions"): "CI",
        (".cargo", "config.toml"): "cargo",
        (".cargo", "config"): "cargo",
        (".config", "mise.toml"): "mise",
        **{
            (".github", name): "an agent"
            for name in (
                *("copilot-instructions.md", "instructions", "prompts", "chatmodes", "agents"),
            )
        },
        (".yarn", "releases"): "yarn",
        (".yarn", "plugins"): "yarn",
        ("node_modules", ".bin"): "any program that calls these commands",
        **{
            (folder, below): "any program that calls these commands"
            for folder in (".venv", "venv", "env")
            for below in ("bin", "scripts")
        },
    }
)
_NAMES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                *("agents.md", "agents.override.md", "claude.md", "claude.local.md", "gemini.md"),
                *(".mcp.json", "mcp.json", ".cursorrules", ".windsurfrules", ".aider.conf.yml"),
                *("opencode.json", ".goosehints", ".clinerules", ".roomodes", "agent.md"),
                *("qwen.md", "crush.md", "warp.md", ".rules"),
            ),
            "an agent",
        ),
        **dict.fromkeys(
            (".dir-locals.el", ".nvim.lua", ".nvimrc", ".lvimrc", ".vimspector.json"), "an editor"
        ),
        **dict.fromkeys(
            (
                ".pre-commit-config.yaml",
                ".pre-commit-hooks.yaml",
                ".overcommit.yml",
            ),
            "git hooks",
        ),
        **dict.fromkeys((".gitattributes", ".gitmodules", ".lfsconfig"), "git"),
        **dict.fromkeys(
            (
                *(".gitlab-ci.yml", "jenkinsfile", "azure-pipelines.yml", ".travis.yml"),
                *(".drone.yml", ".woodpecker.yml", "bitbucket-pipelines.yml", "appveyor.yml"),
                *("cloudbuild.yaml", "cloudbuild.yml", "buildspec.yml", "buildspec.yaml"),
            ),
            "CI",
        ),
        ".devcontainer.json": "a development container",
        ".pnpmfile.cjs": "pnpm",
        **dict.fromkeys(
            ("mise.toml", "mise.local.toml", ".mise.toml", ".tool-versions", ".miserc.toml"), "mise"
        ),
        **dict.fromkeys(("rust-toolchain.toml", "rust-toolchain"), "cargo"),
        "uv.toml": "uv",
        "devenv.nix": "the shell",
        **dict.fromkeys((".bazelrc", "user.bazelrc"), "bazel"),
        **dict.fromkeys((".envrc", ".autoenv", ".env.fish"), "the shell"),
    }
)
_SUFFIXES: Mapping[str, str] = MappingProxyType(
    {".code-workspace": "an editor", ".sublime-project": "an editor", ".pth": "Python"}
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
"""Hidden files of a project that decide no more than its code does."""
_RUN_BY: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "make": ("makefile", "gnumakefile", "*.mk", "*.mak"),
        "gmake": ("makefile", "gnumakefile", "*.mk"),
        "just": ("justfile", ".justfile", "*.just"),
        "task": ("taskfile.yml", "taskfile.yaml"),
        "rake": ("rakefile", "*.rake"),
        **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), ("package.json",)),
        "tox": ("tox.ini",),
        "nox": ("noxfile.py",),
        "invoke": ("tasks.py",),
        "gradle": ("*.gradle", "*.gradle.kts"),
        "mvn": ("pom.xml",),
        "docker": ("dockerfile", "*.dockerfile", "compose.y*ml", "docker-compose*.y*ml"),
        "bazel": ("build", "build.bazel", "*.bzl", "workspace", "module.bazel"),
    }
)


def who_obeys(path: Path, allowed_programs: Iterable[str] = ()) -> str:
    """Who does what the file at `path` says; empty where nobody is known to.

    Args:
        path: Relative to the workspace; absolute where it is elsewhere.
        allowed_programs: Programs that may run without a question; for them the files count whose
            commands they run (``make``: the Makefile).
    """
    names = [folded(part) for part in path.parts if part != ".."]
    if not names:  # the workspace itself: nobody obeys a folder
        return ""
    found = next((_FOLDERS[name] for name in names[:-1] if name in _FOLDERS), "")
    for pair in pairwise(names):
        found = found or _PAIRS.get(pair, "")
    if fnmatch.fnmatchcase(names[-1], "*lefthook*.y*ml"):
        return "git hooks"
    suffix = next((who for end, who in _SUFFIXES.items() if names[-1].endswith(end)), "")
    if found := found or _NAMES.get(names[-1], "") or suffix:
        return found
    if not path.is_absolute() and (hidden := _unknown_hidden(names)):
        return f"the program that reads {hidden}"
    for program in allowed_programs:
        if any(fnmatch.fnmatchcase(names[-1], glob) for glob in _RUN_BY.get(program, ())):
            return program
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
