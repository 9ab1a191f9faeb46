#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# broken.sh SOJOURN PROGRAM RULE: breaks one rule of cutting stacks on purpose and expects that the
# random programs see it: by a crash, a hang or a wrong value, for one of a few seeds. Without the
# rule broken the same programs must end well.
set -u

sojourn=$1
program=$2
rule=$3
# What a program of another machine is started with; words.
emulator=${SOJOURN_EMULATOR-}
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# run SEED LIMIT options…: gives up after LIMIT seconds.
run() {
  seed=$1
  limit=$2
  shift 2
  # shellcheck disable=SC2086  # a list of words
  timeout $((limit + 10)) $emulator "$sojourn" run -n 2 $emulator "$program" --seed "$seed" --programs 200 \
    --limit "$limit" "$@" \
    >"$output" 2>&1
}

# On a busy machine what is right may take long.
if ! run 1 100; then
  echo "with every rule kept, the programs fail:"
  cat "$output"
  exit 1
fi
for seed in 1 2 3 4 5 6; do
  run "$seed" 10 --break "$rule"
  status=$?
  # 2: a bad option; 126, 127: nothing was run.
  case $status in
    0) ;;
    2 | 126 | 127)
      cat "$output"
      exit 1
      ;;
    *)
      echo "seen with seed $seed, status $status:"
      grep -v '^    #' "$output" | head -n 6
      exit 0
      ;;
  esac
done
echo "no program noticed that the rule $rule is broken"
exit 1
