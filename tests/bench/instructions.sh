#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: instructions.sh BENCH_CALLS BENCH_HYBRID calls|activations|forks|blocking_forks
#
# Has callgrind count the instructions of calls, accesses and forks that stay on their rank, and
# fails where one takes more than it may. As in `sojourn bench`, the count of an operation is the
# difference of two runs, of which one does it twice as often. What it may take is beyond a plain
# call, or, for a fork that blocks, beyond one that does not.
set -eu
calls=$1
hybrid=$2
what=$3
if ! command -v valgrind >/dev/null; then
  echo 'bench_instructions: valgrind is not installed'
  exit 77
fi
unset SOJOURN_CHECKED SOJOURN_EXECUTION SOJOURN_VIA
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# run PROFILE ITERATIONS COMMAND…: the instructions that PROFILE then tells of.
run() {
  profile=$1
  iterations=$2
  shift 2
  if ! valgrind --tool=callgrind --callgrind-out-file="$scratch/profile" --log-file="$scratch/log" "$@" \
    --samples 1 --iterations "$iterations" >"$scratch/out" 2>&1; then
    echo "bench_instructions: this fails under callgrind: $*" >&2
    cat "$scratch/out" "$scratch/log" >&2
    return 1
  fi
  sed -n 's/^totals: //p' "$scratch/$profile"
}

# In whole instructions: a start of the program takes some more or fewer each time.
cost_of() {
  iterations=$1
  profile=$2
  shift 2
  once=$(run "$profile" "$iterations" "$@")
  twice=$(run "$profile" $((2 * iterations)) "$@")
  echo $(((twice - once + iterations / 2) / iterations))
}

# an_iteration PROGRAM OPERATION
an_iteration() { cost_of 20000 profile "$1" --operation "$2"; }
# deep FRAMES OPERATION
deep() { cost_of 500 profile "$hybrid" --operation "$2" --bytes "$1"; }
# The same of what lies between two functions of the program, which does it 400 times at most.
a_marked_iteration() {
  cost_of 200 profile.1 --zero-before=counting_begins --dump-before=counting_ends "$1" --operation "$2"
}

failures=0
# at_most LIMIT WHAT INSTRUCTIONS
at_most() {
  echo "$2: $3 instructions, of at most $1"
  [ "$3" -le "$1" ] || failures=$((failures + 1))
}

case $what in
  calls)
    method=$(an_iteration "$calls" method)
    call_rpc=$(an_iteration "$calls" call_rpc)
    call_migrate=$(an_iteration "$calls" call_migrate)
    async=$(an_iteration "$calls" async)
    at_most 6 'local call by rpc, over a call of the method' $((call_rpc - method))
    at_most 6 'local call by migration, over a call of the method' $((call_migrate - method))
    const_method=$(an_iteration "$calls" const_method)
    read=$(an_iteration "$calls" read)
    at_most 8 'read of a replicated object, over a call of the method' $((read - const_method))
    at_most 30 'local async and get, over a call of the method' $((async - method))
    ;;
  activations)
    function=$(an_iteration "$calls" function)
    activated=$(an_iteration "$calls" activate)
    at_most 55 'activation, over a call' $((activated - function))
    ;;
  forks)
    plain=$(an_iteration "$hybrid" count.plain)
    fork=$(an_iteration "$hybrid" count.fork)
    fork_pointer=$(an_iteration "$hybrid" count.fork_pointer)
    at_most 12 'fork of a lambda that does not block, and get, over a call' $((fork - plain))
    at_most 12 'fork of a function that does not block, and get, over a call' $((fork_pointer - plain))
    ;;
  blocking_forks)
    finds=$(a_marked_iteration "$hybrid" finds.mb)
    waits=$(a_marked_iteration "$hybrid" waits.mb)
    at_most 900 'fork that blocks, until its caller goes on, over one that does not' $((waits - finds))
    # What is walked is some 50 instructions for each frame; what is copied is far less.
    of_10=$(($(deep 10 count.taken.block) - $(deep 10 count.taken.find)))
    of_100=$(($(deep 100 count.taken.block) - $(deep 100 count.taken.find)))
    at_most 1500 'fork that blocks, with 100 frames taken away, over one with 10' $((of_100 - of_10))
    above_10=$(deep 10 count.below.block)
    above_1000=$(deep 1000 count.below.block)
    at_most 200 'fork that blocks, above 1000 frames that stay, over one above 10' $((above_1000 - above_10))
    ;;
  *)
    echo "bench_instructions: there are no instructions of $what to count" >&2
    exit 2
    ;;
esac

exit $((failures > 0))
