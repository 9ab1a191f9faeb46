# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2154
# Without guard pages programs run as ever, and a stack that overflows is told all the same.
. "$(dirname "$0")/../launcher/lib.sh"
ulimit -c 0
program=$2
sanitized=$3
unset SOJOURN_STACK_KIB

"$program" >/dev/null 2>&1
if [ $? -eq 77 ]; then
  echo 'this system has no filters of system calls'
  exit 77
fi
for ranks in 1 2; do
  for share in on off; do
    try run -n $ranks --share $share "$program" well
    expect_status 0
    expect_no_err
  done
  # The sanitizer would report the overflow itself.
  [ "$sanitized" = 0 ] || continue
  for how in returns blocks blocked_before migrates; do
    try run -n $ranks "$program" $how
    expect_status 134
    expect_err "rank $((ranks - 1)) .*SIGABRT"
    expect_err 'stack overflow: a fiber has used more than its 256 KiB of stack and overwritten .* --stack-fiber SIZE (SOJOURN_STACK_KIB)'
    expect_err 'vm.max_map_count'
  done
  try run -n $ranks "$program" main
  expect_status 134
  expect_err 'rank 0 .*SIGABRT'
  expect_err 'stack overflow: a main fiber has used more than its 8192 KiB of stack and overwritten'
done
exit 0
