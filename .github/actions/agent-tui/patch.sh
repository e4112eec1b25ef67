#!/usr/bin/env bash
# Writes what the model changed as a patch. Has no secret: the checkout's git settings may run programs.
# Left out are ignored files, those that were there before and not in the commit, nested repositories,
# and new files whose names suggest keys.
set -euo pipefail

quiet=(-c core.fsmonitor=false -c core.hooksPath=/dev/null)
commit=$(cat "$RUNNER_TEMP/commit")
git "${quiet[@]}" read-tree "$commit" # the model may have staged or committed anything
git "${quiet[@]}" ls-files --others --exclude-standard -z | "$RUNNER_TEMP/agent-tui/bin/python" -I -c '
import os, pathlib, sys
from agent_tui.tools.files.protected import is_secret_name

before = set(pathlib.Path(sys.argv[1]).read_bytes().split(b"\0"))
for name in sys.stdin.buffer.read().split(b"\0"):
    is_repository = name.endswith(b"/")
    if name in before:
        continue
    if is_repository or any(map(is_secret_name, os.fsdecode(name).split("/"))):
        why = "a nested repository" if is_repository else "its name suggests a key"
        print(f"::warning::Left out: {os.fsdecode(name)!a} ({why})", file=sys.stderr)
    else:
        sys.stdout.buffer.write(name + b"\0")
' "$RUNNER_TEMP/untracked" > "$RUNNER_TEMP/new"
git "${quiet[@]}" --literal-pathspecs add --intent-to-add --pathspec-from-file="$RUNNER_TEMP/new" --pathspec-file-nul
git "${quiet[@]}" diff --binary --no-ext-diff --no-textconv --ignore-submodules=all "$commit" -- . ':!.github' \
    > "$RUNNER_TEMP/fix.patch"
