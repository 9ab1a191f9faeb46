# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2034,SC2154,SC3045
# Each call of outside.cpp at a moment ($4) where there is no job: it works, or a sentence says why not.
. "$(dirname "$0")/../launcher/lib.sh"
program=$2
moment=$4
ulimit -c 0

# alone ARGUMENTS...: without the command.
alone() {
  status=0
  "$program" "$@" >"$out" 2>"$err" </dev/null || status=$?
}

if [ "$moment" = again ]; then
  alone who again
  expect_status 134
  expect_err '^sojourn: .*run() is called a second time in this process, and a process is a rank of one job, once: put'
  try run -n 2 "$program" who again
  expect_status 134
  expect_err 'run() is called a second time in this process'
  exit 0
fi

case $moment in
  constructor | before) when='before run(): there is no job yet' ;;
  *) when='after run(): the job has ended' ;;
esac
wait='only a fiber can wait, and none runs in a nonblocking handler, before run() or after it'
for call in $("$program" names); do
  context="$call, $moment: "
  alone "$call" "$moment"
  if [ "$status" -eq 134 ]; then
    expect_err "$wait"
  else
    expect_status 0
    expect_out "^$call \(works\|is refused: .*\)\$"
  fi
done
# With the command, too.
if [ "$moment" = after ]; then
  context='a page that is elsewhere, after: '
  try run -n 2 "$program" shared_access after
  # As pages are protected: SIGBUS or SIGSEGV. The sanitizer ends a program by a status of its own.
  if [ "$3" = 1 ]; then
    expect_status 1
  else
    [ "$status" -eq 135 ] || expect_status 139
  fi
  expect_err 'shared memory was accessed after run(), when the job has ended'
fi
context="with the command, $moment: "
try run -n 2 "$program" rpc_ff "$moment"
expect_status 0
expect_out "^rpc_ff is refused: a call $when; do this in the function that is passed to run()\$"
exit 0
