#!/usr/bin/env bash
# Writes what the model changed as a patch. Has no secret: the checkout's git settings may run programs.
set -euo pipefail

quiet=(-c core.fsmonitor=false -c core.hooksPath=/dev/null)
git "${quiet[@]}" add --intent-to-add --all
git "${quiet[@]}" diff --binary --no-ext-diff --no-textconv HEAD -- . ':!.github' > "$RUNNER_TEMP/fix.patch"
git "${quiet[@]}" rev-parse HEAD > "$RUNNER_TEMP/commit"
