"""What the core stores on the machine, and what losing it means."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

CACHES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "clipboard": "images that you pasted; sessions keep them",
        "demo": "the folder of the demo; made again",
        "outputs": "whole outputs of commands; sessions keep what the model saw",
        "packages": "packages of sandboxed commands; downloaded again",
        "sandbox": "files of sandboxed commands; made again",
        "sharing": "copies of what a git remote has; fetched again",
        "unfinished": "files that were not completely written; not needed",
    }
)
"""What removing each part of `paths.user_cache_dir` loses, by its name there."""

STORES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "chosen_models.json": "models that you used last; you choose again",
        "keys": "your keys; you enter them again. Keys in the system keyring stay there",
        "models": "models on this machine; you download them again",
        "newcomer.json": "which hints you saw; you see them again",
        "own-files": "when the installation was last checked; checked again",
        "projects": "prompt history, rules, choices and held files; cannot be made again",
        "told-of-trigger-tokens": "which hints you saw; you see them again",
        "trust.json": "which folders you trust; you are asked again",
        "worktrees": "which worktrees belong to agent-tui; cannot be made again",
    }
)
"""What removing each file and folder of the core in `paths.user_data_dir` loses, by its name there.

Sessions are not among them. `Feature.stores` has those of the features.
"""
