#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC1091,SC2016,SC2034,SC2154
# A job on hosts that share nothing but files and a network: each has its own processes, memory, name and
# clock (hosts). Programs are right there, and a host that dies, is cut off or loses its cable is told of.
# Usage: cluster.sh SOJOURN PROGRAM-THAT-WAITS CLAIMS [PROGRAM...]
# CLAIMS: programs, or ends.
set -u
tests=$(cd "$(dirname "$0")" && pwd) || exit 1
hosts=$tests/hosts
if [ "${HOSTS_ARE_UP-}" != 1 ]; then
  "$hosts" can || exit
  HOSTS_ARE_UP=1 exec "$hosts" run 2 sh "$0" "$@"
fi

. "$tests/../launcher/lib.sh"
waits=$2
claims=$3
shift 3
# As ssh does, this brings nothing of this environment to the other host.
starter="env -i PATH=$PATH HOSTS_STATE=$HOSTS_STATE $hosts ssh"

start() {
  : >"$out"
  "$sojourn" run --hosts host1:2,host2:2 --agent "$starter" "$@" >"$out" 2>"$err" </dev/null &
  head=$!
}
finish() {
  started=$(now_ms)
  status=0
  wait $head || status=$?
  elapsed_ms=$(($(now_ms) - started))
}
# In the namespace of each host all its processes can be seen.
runs_on() { "$hosts" exec "$1" sh -c 'tr "\0" " " </proc/[0-9]*/cmdline' 2>/dev/null | grep -q -e "$2"; }
nothing_left() { ! runs_on 1 "$waits" && ! runs_on 2 "$waits" && ! runs_on 1 'sojourn agent' && ! runs_on 2 'sojourn agent'; }
expect_nothing_left() { until_true 10000 nothing_left || fail 'a process is left on a host'; }
# The named of a loss takes up to 2 s; this machine may be busy with other tests.
expect_named() {
  expect_status 1
  expect_err "^sojourn run: host host2 is lost, and with it ranks 2 to 3: the connection to its agent has ended"
  expect_faster_than_ms 6000
  echo "$context$elapsed_ms ms"
}

programs() {
  for program in "$@"; do
    context="$program: "
    start "$program"
    finish
    expect_status 0
  done
  context='names, and whose they are: '
  start --label sh -c 'uname -n'
  finish
  [ "$(sort "$out" | tr '\n' ' ')" = '[0] host1 [1] host1 [2] host2 [3] host2 ' ] || fail 'they are others'
}

ends() {
  for how in cut pull; do
    context="$how: "
    start "$waits"
    until_true 20000 lines_in "$out" 4 || fail 'the ranks did not start'
    "$hosts" $how 2 || fail "it cannot be done"
    finish
    expect_named
    expect_nothing_left
    "$hosts" heal 2
    "$hosts" plug 2
  done

  context='a rank that dies: '
  start "$waits" 3
  finish
  expect_status 139
  expect_err '^sojourn run: rank 3 (pid [0-9]*, .*) was killed by SIGSEGV'
  expect_err '^  on host host2; to run it again: '
  expect_nothing_left

  context='a stopped host is not dead: '
  start "$waits"
  until_true 20000 lines_in "$out" 4 || fail 'the ranks did not start'
  "$hosts" stop 2
  sleep 3
  kill -0 $head || fail 'the job has ended'
  "$hosts" cont 2
  kill -INT $head
  finish
  expect_status 130
  expect_nothing_left

  context='the head is killed: '
  start "$waits"
  until_true 20000 lines_in "$out" 4 || fail 'the ranks did not start'
  kill -9 $head
  finish
  expect_nothing_left
}

"$claims" "$@"
