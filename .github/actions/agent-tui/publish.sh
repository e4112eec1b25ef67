#!/usr/bin/env bash
# Publishes the result: a comment, or a pull request with the fix. The token is used in a new clone
# only: the model's commands could have changed the git settings of the checkout.
set -euo pipefail

most_chars=60000
result="$RUNNER_TEMP/result.md"
body="$RUNNER_TEMP/body.md"

# "@name" would notify people: a zero-width space keeps it text.
head -c "$most_chars" "$result" | iconv -c -f utf-8 -t utf-8 | sed $'s/@/@\xe2\x80\x8b/g' > "$body"
cat "$body" >> "$GITHUB_STEP_SUMMARY"

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
