#!/usr/bin/env bash
# Decides whether the task may run here. Says why not, and refuses what would be unsafe.
set -euo pipefail

fail() {
    echo "::error::$1"
    exit 1
}

case "$TASK" in
    review | fix) ;;
    *) fail "task must be review or fix" ;;
esac
if [ "${GITHUB_EVENT_NAME:-}" = pull_request_target ]; then
    fail "pull_request_target gives secrets to code from forks. Use pull_request, or workflow_run for fix."
fi
# actions/checkout stores its token in the repository, where commands could read it.
if git config --get-regexp '^http\..*\.extraheader$' > /dev/null 2>&1 ||
    git config --get-regexp '^includeif\..*\.path$' > /dev/null 2>&1; then
    fail "The checkout holds a token. Set persist-credentials: false for actions/checkout."
fi
if [ "$HAS_KEY" != true ]; then
    echo "::notice::agent-tui did not run: there is no api-key. Pull requests from forks get no secrets."
    echo "runs=false" >> "$GITHUB_OUTPUT"
    exit 0
fi
echo "runs=true" >> "$GITHUB_OUTPUT"
