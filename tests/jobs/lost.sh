# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2154
# What waits for a rank that has died fails with rank_lost; the job ends as it did before.
# Usage: lost.sh SOJOURN PROGRAM SANITIZED HOW: how something waits, as the program knows it.
. "$(dirname "$0")/../launcher/lib.sh"
ulimit -c 0
program=$2
sanitized=$3
how=$4

# for_each_job: what waits in this way, with the heap shared and not, on two ranks and on three.
for_each_job() {
  for share in on off; do
    for ranks in 2 3; do
      try run -n $ranks --share $share --grace 3 "$program" "$how"
      expect_status 137
      expect_faster_than_ms 6000
      expect_err 'rank 1 (pid [0-9]*, .*) was killed by SIGKILL'
      rank=0
      while [ $rank -lt $ranks ]; do
        [ $rank -eq 1 ] || expect_out "rank $rank: lost 1: .* needs rank 1, which has ended"
        rank=$((rank + 1))
      done
      [ $ranks -eq 2 ] || expect_out 'rank 0: rank 2 answers 2'
      grep -q 'an old' "$out" && fail 'an old value is read'
    done
  done
}

case $how in
  room | bundles | view)
    for share in on off; do
      try run -n 2 --share $share --grace 3 "$program" "$how"
      expect_status 137
      expect_out 'rank 0: lost 1: .* needs rank 1'
    done
    ;;
  gets | puts | atomics)
    # Where the heap is shared nobody is asked.
    export SOJOURN_READ_MEMORY=off
    try run -n 2 --share off --grace 3 "$program" "$how"
    expect_status 137
    expect_out 'rank 0: lost 1: .* needs rank 1'
    ;;
  # One that has gone before the launcher, which is stopped, can tell of it: the system refuses to copy
  # to and from its memory then. That is no fault of who copies, which waits for the launcher's word.
  get_gone | put_gone | result_gone | thread_gone)
    try run -n 2 --share off --grace 1 "$program" "$how"
    expect_status 137
    expect_err 'rank 1 (pid [0-9]*, .*) was killed by SIGKILL'
    expect_out 'rank 0: lost 1: .* needs rank 1, which has ended'
    grep -q -e 'then rank' -e 'not caught' -e ': rank 0' "$err" && fail 'rank 0 is blamed'
    ;;
  argument_gone)
    try run -n 2 "$program" argument_gone
    expect_status 137
    expect_err 'rank 1 (pid [0-9]*, .*) was killed by SIGKILL'
    expect_no_out
    grep -q -e 'then rank' -e 'left a one-way call' -e ': rank 0' "$err" && fail 'rank 0 is blamed'
    ;;
  slowly)
    # The one that began to die first is the cause, also when another one ends sooner. (The address
    # sanitizer reports for itself.)
    [ "$sanitized" -eq 0 ] || exit 0
    try run -n 2 "$program" slowly
    expect_status 139
    expect_err '^sojourn run: rank 1 (pid [0-9]*, .*) was killed by SIGSEGV'
    expect_err 'through a null pointer'
    expect_err 'die_slowly'
    expect_err '^sojourn run: then rank 0 (pid [0-9]*) was killed by SIGABRT'
    ;;
  uncaught)
    # Those that do not expect it say nothing, and do not outlive it.
    try run -n 4 "$program" call uncaught
    expect_status 137
    expect_faster_than_ms 3000
    expect_err 'rank 1 (pid [0-9]*, .*) was killed by SIGKILL'
    grep -q -e 'then rank' "$err" && fail 'the others are named'
    grep -q -e 'not caught' "$err" && fail 'the others complain'
    ;;
  *) for_each_job ;;
esac
exit 0
