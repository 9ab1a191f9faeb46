# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2154
# When a rank has died, what needs it to share memory fails with rank_lost, or ends the rank with a
# sentence; what is here stays usable.
# Usage: lost_shared.sh SOJOURN PROGRAM SANITIZED WHAT: a protocol, or uncaught.
. "$(dirname "$0")/../launcher/lib.sh"
ulimit -c 0
program=$2
what=$4
lost='has ended in the middle of the job'

# survivors SENTENCE: each rank but the dead one has printed it.
survivors() {
  rank=0
  while [ $rank -lt "$ranks" ]; do
    [ $rank -eq 1 ] || expect_out "^rank $rank: $1"
    rank=$((rank + 1))
  done
}

if [ "$what" != uncaught ]; then
  protocol=$what
  export SOJOURN_SHARED=$protocol
  for ranks in 2 4; do
    for how in mutex mutex_deaf objects objects_deaf barrier start free; do
      context="$protocol, $ranks ranks, $how: "
      try run -n $ranks --grace 3 "$program" $how
      expect_status 137
      expect_faster_than_ms 6000
      expect_err 'rank 1 (pid [0-9]*, .*) was killed by SIGKILL'
      [ $how = free ] || survivors "waits: lost 1: .* needs rank 1, which $lost"
      case $how in mutex*) survivors "another: lost 1: a sojourn::shared::mutex (0x[0-9a-f]*)" ;; esac
      case $how in objects*)
        survivors "flag: lost 1: a sojourn::shared::flag (0x[0-9a-f]*)"
        survivors "own: lost 1: a sojourn::shared::flag (0x[0-9a-f]*)"
        survivors "counted barrier: lost 1: a sojourn::shared::counted_barrier (0x[0-9a-f]*)"
        survivors "condition: lost 1: a sojourn::shared::condition_variable (0x[0-9a-f]*)"
        survivors "set: lost 1: a sojourn::shared::flag (0x[0-9a-f]*)"
        survivors "own flag: lost 1: a sojourn::shared::flag (0x[0-9a-f]*)"
        survivors "own barrier: lost 1: a sojourn::shared::counted_barrier (0x[0-9a-f]*)"
        grep -q 'not what they were' "$out" && fail 'own objects have changed'
        ;;
      esac
      survivors "later: lost 1: .* needs rank 1, which $lost"
      survivors '10[0-9] is here$'
      grep -q 'nothing was lost' "$out" && fail 'something did not fail'
      grep -q 'then rank' "$err" && fail 'another rank is blamed'
    done
    for how in page_deaf page_later; do
      context="$protocol, $ranks ranks, $how: "
      try run -n $ranks --grace 3 "$program" $how
      expect_status 137
      expect_faster_than_ms 6000
      expect_err 'rank 1 (pid [0-9]*, .*) was killed by SIGKILL'
      access=load
      [ $how = page_deaf ] || access=store
      # Others may have ended for the same reason already.
      sentence="(rank 1 has|ranks [0-9, ]*1[0-9, ]* have) ended in the middle of the job, and a"
      sentence="$sentence $access waits for the page of shared memory at 0x[0-9a-f]*000: "
      [ "$(grep -cE "$sentence" "$err")" -eq $((ranks - 1)) ] ||
        fail 'not each rank ends with one sentence'
      [ $how = page_deaf ] || survivors '10[0-9] is here$'
      grep -q 'has stored' "$out" && fail 'a page is used that is gone'
      grep -q 'then rank' "$err" && fail 'another rank is blamed'
    done
  done
  exit 0
fi

# Those that do not expect it say nothing, and do not outlive it.
try run -n 4 "$program" barrier uncaught
expect_status 137
expect_faster_than_ms 3000
expect_err 'rank 1 (pid [0-9]*, .*) was killed by SIGKILL'
grep -q -e 'then rank' -e 'not caught' "$err" && fail 'the others complain'
true
