#!/usr/bin/env bash
# Fetches what the model reads: the diff of the pull request, or the log of the failed jobs. Notes the
# state of the checkout, before anything runs in it.
set -euo pipefail

most_bytes=400000

number() {
    if ! [[ "$1" =~ ^[0-9]+$ ]]; then
        echo "::error::$2 must be a number"
        exit 1
    fi
}

git rev-parse HEAD > "$RUNNER_TEMP/commit"
git ls-files --others -z > "$RUNNER_TEMP/untracked" # ignored files, too
cd "$RUNNER_TEMP"
if [ "$TASK" = review ]; then
    number "$PULL_REQUEST" pull-request
    gh pr diff "$PULL_REQUEST" --repo "$GITHUB_REPOSITORY" > material.full
    head -c "$most_bytes" material.full > material.txt
else
    number "$RUN_ID" run-id
    gh run view "$RUN_ID" --repo "$GITHUB_REPOSITORY" --log-failed > material.full
    tail -c "$most_bytes" material.full > material.txt # the error is at the end
fi
if [ "$(wc -c < material.full)" -gt "$most_bytes" ]; then
    echo "::warning::Only $most_bytes bytes of the material are read."
fi
rm material.full
