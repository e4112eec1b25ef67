"""Files of a project that other programs obey: editors, agents, hooks, builds.

Who lets a model edit files does not mean to let it decide what an editor, a hook or the next
allowed command runs, so mode accept-edits asks about these.
"""

import fnmatch
from collections.abc import Iterable, Mapping
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
        **dict.fromkeys(("site-packages", ".pnp"), "whatever runs with these packages"),
        **dict.fromkeys(
            (
                *(".claude", ".codex", ".gemini", ".cursor", ".agents", ".opencode", ".pi"),
                *(".windsurf", ".continue", ".roo", ".kiro", ".aider", ".goose", ".junie"),
            ),
            "an agent",
        ),
        **dict.fromkeys((".husky", ".githooks", ".lefthook"), "git's hooks"),
        **dict.fromkeys((".circleci", ".buildkite", ".gitea", ".forgejo"), "a build service"),
    }
)
_PAIRS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        (".github", "workflows"): "a build service",
        (".github", "actions"): "a build service",
        (".cargo", "config.toml"): "cargo",
        (".cargo", "config"): "cargo",
        (".config", "mise.toml"): "mise",
        (".github", "copilot-instructions.md"): "an agent",
        (".yarn", "releases"): "yarn",
        (".yarn", "plugins"): "yarn",
        ("node_modules", ".bin"): "whoever calls one of these commands",
        **{
            (folder, below): "whoever calls one of these commands"
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
                *("opencode.json", ".goosehints", ".clinerules", ".roomodes"),
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
                "lefthook.yml",
                ".overcommit.yml",
            ),
            "git's hooks",
        ),
        **dict.fromkeys((".gitattributes", ".gitmodules", ".lfsconfig"), "git"),
        **dict.fromkeys(
            (
                *(".gitlab-ci.yml", "jenkinsfile", "azure-pipelines.yml", ".travis.yml"),
                *(".drone.yml", ".woodpecker.yml", "bitbucket-pipelines.yml"),
            ),
            "a build service",
        ),
        ".devcontainer.json": "a development container",
        ".pnpmfile.cjs": "pnpm",
        **dict.fromkeys(("mise.toml", ".mise.toml", ".tool-versions", ".miserc.toml"), "mise"),
        **dict.fromkeys((".bazelrc", "user.bazelrc"), "bazel"),
        **dict.fromkeys((".envrc", ".autoenv", ".env.fish"), "the shell"),
    }
)
_SUFFIXES: Mapping[str, str] = MappingProxyType(
    {".code-workspace": "an editor", ".sublime-project": "an editor", ".pth": "Python"}
)
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
        path: Absolute.
        allowed_programs: Programs that may run without a question; for them the files count whose
            commands they run (``make``: the Makefile).
    """
    names = [folded(part) for part in path.parts]
    found = next((_FOLDERS[name] for name in names[:-1] if name in _FOLDERS), "")
    for pair in pairwise(names):
        found = found or _PAIRS.get(pair, "")
    suffix = next((who for end, who in _SUFFIXES.items() if names[-1].endswith(end)), "")
    if found := found or _NAMES.get(names[-1], "") or suffix:
        return found
    for program in allowed_programs:
        if any(fnmatch.fnmatchcase(names[-1], glob) for glob in _RUN_BY.get(program, ())):
            return program
    return ""
