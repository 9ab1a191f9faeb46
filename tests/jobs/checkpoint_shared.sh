# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2154
# Shared memory is in checkpoints: a job goes on from one, and comes to the same answer.
# Usage: checkpoint_shared.sh SOJOURN PROGRAM SANITIZED RANKS.PROTECTION
. "$(dirname "$0")/../launcher/lib.sh"
ulimit -c 0
program=$2
export SOJOURN_CHECKED=0
state=$work/state

# Restored once the job has ended, and once it was killed; another time under another protection.
ranks=${4%.*}
protection=${4#*.}
context="$ranks ranks: "
rm -f "$state"*
try run -n "$ranks" "$program" "$state"
expect_status 0
expect_out '^answer 3849600$'
grep -e ' are gone' -e ' rounds$' -e 'was saved' "$out" && fail 'atomics or flags are wrong'
try run --restore "$state" "$program" "$state"
expect_status 0
expect_out '^answer 3849600$'
grep -e ' are gone' -e ' rounds$' -e 'was saved' "$out" && fail 'atomics or flags are wrong'
rm -f "$state"*
try run -n "$ranks" "$program" "$state" dies
expect_status 137
[ -f "$state" ] || fail 'there is no checkpoint'
[ $protection = userfaultfd ] || export SOJOURN_SHARED_PROTECTION=$protection
# What nobody has touched since it was restored is in the next checkpoint, too.
try run --restore "$state" "$program" "$state" dies
expect_status 137
for again in on off; do
  try run --share $again --restore "$state" "$program" "$state"
  expect_status 0
  expect_out '^answer 3849600$'
  grep -e ' are gone' -e ' rounds$' -e 'was saved' "$out" && fail 'atomics or flags are wrong'
  grep -q 'is gone' "$out" && fail 'what was kept is gone'
done
unset SOJOURN_SHARED_PROTECTION
