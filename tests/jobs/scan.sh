# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2154
# The pointer scan: a frame that leaves with a pointer into private memory is named once; one that
# leaves without is not. With debug information on variables the pointer's variable is named, and
# dead words are known.
. "$(dirname "$0")/../launcher/lib.sh"
program=$2
unset SOJOURN_SCAN
export SOJOURN_CHECKED=0

# warns HOW COUNT TEXT...
warns() {
  how=$1
  expected=$2
  shift 2
  for share in on off; do
    try run -n 2 --share $share "$program" "$how"
    expect_status 0
    for text; do
      expect_err "$text"
    done
    seen=$(grep -c 'warning' "$err")
    [ "$seen" -eq "$expected" ] || fail "$how warns $seen times, not $expected"
    [ "$(wc -l <"$err")" -eq "$expected" ] || fail "$how says more than its warnings"
  done
}

end='(see docs/migration.md; SOJOURN_SCAN=off silences this)$'
remedy='on another rank it points nowhere. Pass the data by value, or keep it in the global heap'
keeps='^sojourn: rank 0: warning: a frame of `walks::keeps_a_buffer(int, int)` migrates with'
warns clean 0
warns buffer 1 \
  "$keeps \(a word (0x[0-9a-f]*) that looks like\|\`buffer\` (0x[0-9a-f]*),\) a pointer into this rank's private heap; $remedy\(; where its debugging information can be read [^;]*, a program is warned only of words that a variable holds\)* $end"
warns both 2 'a frame of `walks::keeps_a_buffer(int, int)`' 'a frame of `walks::keeps_another(int, int)`'
warns callee 1 'a frame of `walks::keeps_it_in_its_frame(int, int)`'
warns thread 1 'a frame of `walks::keeps_it_while_it_is_moved(int)`'
warns caller 1 \
  "^sojourn: rank 0: warning: an argument of \`walks::uses_a_callers_local(walks::hidden_pointer, int, int)\` migrates with a word (0x[0-9a-f]*) that looks like a pointer into the frames of its callers, which stay; $remedy $end"

bare=$program
program=${bare}_debugged
warns clean 0
warns dead 0
warns buffer 1 "$keeps \`buffer\` (0x[0-9a-f]*), a pointer into this rank's private heap; $remedy $end"
warns both 2 'keeps_a_buffer(int, int)` migrates with `buffer`' 'keeps_another(int, int)` migrates with `numbers`'
warns callee 1 'keeps_it_in_its_frame(int, int)` migrates with `buffer`'
program=$bare

# Frames that a rank without work could not have are named once a function, and only when asked. On
# busy cores the other rank may come too late to ask for these: in five runs it comes in time once.
steal=$(dirname "$program")/job_steal
for _ in 1 2 3 4 5; do
  try run -n 2 --stats "$steal"
  expect_status 0
  grep -q 'with_private_memory` was not given' "$err" && break
done
expect_err '^sojourn: rank [01]: `.*with_private_memory` was not given to a rank without work: .* (0x[0-9a-f]*, [0-9]* bytes .*) looks like a pointer into this rank.s private memory (docs/forks.md)$'
for rank in 0 1; do
  seen=$(grep -c "rank $rank: \`.*with_private_memory\` was not given" "$err")
  [ "$seen" -le 1 ] || fail "rank $rank names a frame that stays $seen times"
done
try run -n 2 "$steal"
expect_status 0
if grep -q 'was not given' "$err"; then fail 'frames that stay are named unasked'; fi

SOJOURN_SCAN=off
export SOJOURN_SCAN
for how in clean buffer both callee thread caller; do
  warns $how 0
done

# One rank alone migrates nowhere.
SOJOURN_SCAN=on
try run -n 1 "$program" both
expect_status 0
expect_no_err
