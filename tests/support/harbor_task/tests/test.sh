#!/bin/bash
[ "$(cat "$ROOT/app/answer.txt")" = 21 ]
echo $((1 - $?)) > "$ROOT/logs/verifier/reward.txt"
