#!/usr/bin/env bash
# Installs one version of agent-tui, outside the checkout. Needs Python 3.11 or newer.
set -euo pipefail

if ! [[ "$VERSION" =~ ^[0-9][0-9A-Za-z.]*$ ]]; then
    echo "::error::version must be a number such as 0.1.0"
    exit 1
fi
cd "$RUNNER_TEMP"
python3 -m venv --clear agent-tui
agent-tui/bin/python -m pip install --quiet --disable-pip-version-check "agent-tui-cli==$VERSION"
