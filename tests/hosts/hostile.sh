#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC1091,SC2016,SC2034,SC2154
# Strangers call all ports of jobs, before they begin, while they begin, run and end: none is let in, jobs start and
# are right as if nobody called, and neither the head nor an agent grows.
# Usage: hostile.sh SOJOURN HOSTILE PROGRAM-THAT-WAITS CALLS-A-PORT PROGRAM...: each ends by itself, and checks itself.
. "$(dirname "$0")/../launcher/lib.sh"
hostile=$2
waits=$3
calls=$4
shift 4
seed=${SOJOURN_TEST_SEED:-$(($(date +%s) % 100000))}
first=$((20000 + $$ % 9000))
here="sh -c 'exec \"\$@\"'"
echo "hostile: the seed is $seed, the ports are $first to $((first + 2))"
callers=
head=
trap 'kill -KILL $head $callers 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
# Each writes to a file of its own.
attack() {
  callers=
  for i in 0 1 2; do
    "$hostile" $((first + i)) "$1" $((seed + i)) >"$work/caller$i" &
    callers="$callers $!"
  done
}
expect_no_caller_answered() {
  for caller in $callers; do
    status=0
    wait "$caller" || status=$?
    [ "$status" -eq 0 ] || fail "a stranger was answered: $(cat "$work"/caller?)"
  done
}
ports="--ports $first-$((first + 2))"
# The memory of the head and of the agents, in KiB.
memory_of() {
  for process in $head $(tr ' ' '\n' <"/proc/$head/task/$head/children"); do
    sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$process/status"
  done | awk '{ sum += $1 } END { print sum + 0 }'
}

context='jobs that begin while strangers call: '
attack $((calls * 1000))
for program in "$@"; do
  for round in 1 2 3; do
    status=0
    # shellcheck disable=SC2086  # two words
    "$sojourn" run --hosts a:2,b:2 --agent "$here" $ports "$program" >"$out" 2>"$err" </dev/null || status=$?
    expect_status 0
    expect_no_err
  done
done
for caller in $callers; do kill "$caller" 2>/dev/null || true; done
expect_no_caller_answered
challenges=$(sed -n 's/.*challenged \([0-9]*\) times.*/\1/p' "$work"/caller? | awk '{ sum += $1 } END { print sum }')
[ "$challenges" -gt 0 ] || fail 'no stranger came as far as a challenge'
cat "$work"/caller?

# stands PROGRAM...: a job that goes on until it is ended, and says a line a rank before.
stands() {
  # shellcheck disable=SC2086  # two words
  "$sojourn" run --hosts a:2,b:2 --agent "$here" $ports "$@" >"$out" 2>"$err" </dev/null &
  head=$!
  lines_in() { [ "$(wc -l <"$1")" -ge "$2" ]; }
  until_true 20000 lines_in "$out" 4 || fail 'the ranks did not start'
  # The first ones make what is used again and again.
  attack $((calls / 10 + 1))
  expect_no_caller_answered
  before=$(memory_of)
  seed=$((seed + 7))
  attack "$calls"
  expect_no_caller_answered
  cat "$work"/caller?
  after=$(memory_of)
  echo "the head and the agents have $before KiB before, and $after KiB after"
  [ "$before" -gt 0 ] || fail 'their memory is not seen'
  [ $((after - before)) -lt 512 ] || fail 'they have grown'
  kill -0 "$head" || fail 'the job has ended'
  kill -INT "$head"
  await_end "$head"
  head=
  expect_status 130
}
context='ranks that are connected: '
stands "$waits"
# Agents expect connections between them, and none comes.
context='ranks that have not met: '
stands sh -c 'echo there; exec sleep 77.5'
