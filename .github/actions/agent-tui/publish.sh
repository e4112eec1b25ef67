#!/usr/bin/env bash
# Publishes the result: a comment, or a pull request with the fix. The token is used in a new clone
# only: the model's commands could have changed the git settings of the checkout.
set -euo pipefail

body="$RUNNER_TEMP/body.md"

# "@name" would notify people: a zero-width space keeps it text. It adds to the length, so cut after it.
"$RUNNER_TEMP/agent-tui/bin/python" -I -c '
import pathlib, sys

reply = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace")
text = reply.replace("@", "@\u200b")
most = 60_000  # characters; GitHub takes 65,536
cut = text[:most].rstrip("@") + "\n\n(Cut here. The summary of the run has more.)\n"
pathlib.Path(sys.argv[2]).write_text(text if len(text) <= most else cut, encoding="utf-8")
with open(sys.argv[3], "a", encoding="utf-8") as summary:
    summary.write(text[:250_000].rstrip("@"))  # at most 1 MB, its limit
' "$RUNNER_TEMP/result.md" "$body" "$GITHUB_STEP_SUMMARY"

if [ "$TASK" = review ]; then
    gh pr comment "$PULL_REQUEST" --repo "$GITHUB_REPOSITORY" --body-file "$body"
    exit 0
fi

patch="$RUNNER_TEMP/fix.patch"
if [ ! -s "$patch" ]; then
    echo "::notice::agent-tui changed no files outside .github."
    exit 0
fi
commit=$(cat "$RUNNER_TEMP/commit")
branch="agent-tui/fix-$RUN_ID"
clone="$RUNNER_TEMP/clone"
gh repo clone "$GITHUB_REPOSITORY" "$clone" -- --quiet --no-checkout
cd "$clone"
git checkout --quiet -b "$branch" "$commit"
git apply --index "$patch"
git -c user.name="agent-tui" -c user.email="agent-tui@users.noreply.github.com" \
    commit --quiet --no-verify --message "Fix run $RUN_ID"
gh auth setup-git
git push --quiet origin "$branch"
gh pr create --repo "$GITHUB_REPOSITORY" --head "$branch" --title "Fix run $RUN_ID" --body-file "$body" --draft
