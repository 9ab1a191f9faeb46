# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2034,SC2154,SC3045
# What is said to programs that misuse the runtime: sentence and status.
. "$(dirname "$0")/../launcher/lib.sh"
program=$2
ulimit -c 0

# What throws is asked for in the program.
for ranks in 1 2; do
  for share in on off; do
    try run -n $ranks --share $share "$program"
    expect_status 0
  done
done

# alone ARGUMENTS...: without the command.
alone() {
  status=0
  "$program" "$@" >"$out" 2>"$err" </dev/null || status=$?
}

# What needs a job, before there is one: an error that can be caught, or the end where a wait is.
for what in make rpc rpc_ff spawn access; do
  alone $what before
  expect_status 0
  expect_out '^caught: .* before run(): there is no job yet; do this in the function that is passed to run()$'
done
outside='only a fiber can wait, and none runs in a nonblocking handler, before run() or after it'
for what in barrier reduce broadcast gather yield sleep finish wait; do
  for when in before after; do
    context="$what $when run(): "
    alone $what $when
    expect_status 134
    expect_err "$outside"
  done
done
context=''

# ends WHAT RANKS STATUS SENTENCE: a mistake that ends the job.
ends() {
  context="$1: "
  try run -n "$2" "$program" "$1"
  expect_status "$3"
  expect_err "$4"
}
ends sizes 2 134 'ranks disagree about a collective operation: [48] bytes have arrived instead of [48]; all ranks must pass values of the same type'
ends order 2 134 'ranks disagree about a collective operation: rank [01] is in [a-z]*() and rank [01] is in [a-z]*(); all ranks must call the same operations in the same order'
ends order_under_way 2 134 'ranks disagree about a collective operation: rank [01] is in [a-z]*() and rank [01] is in [a-z]*(); all ranks must call the same operations in the same order'
ends at_once 2 134 'two fibers of one rank are in collective operations at the same time, this one in barrier(); all ranks must call the same operations in the same order, one after the other'
ends detached 2 134 'an exception left a detached thread: std::runtime_error: nobody hears it'
ends detached_other 2 134 'an exception left a detached thread: int$'
ends one_way_other 2 134 'an exception left a one-way call (rpc_ff) outside of any finish: int$'
ends two_readers 1 134 'two fibers wait for the same future: only one may'

# What the system refuses: the sentence names the limit. The sanitizers need more than that themselves.
# limited LIMIT SENTENCE: the program alone under `ulimit LIMIT`.
limited() {
  context="ulimit $1: "
  status=0
  # Without files that whoever runs the tests has left open, which count, too.
  # shellcheck disable=SC2086
  (exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- && ulimit $1 && "$program" detached) >"$out" 2>"$err" </dev/null || status=$?
  expect_status 2
  expect_one_sentence
  expect_err "^sojourn: $2; .sojourn doctor. checks all that a job needs here$"
}
if [ "$3" = 0 ]; then
  # How many are open already is a matter of who runs the tests.
  limited '-n 5' '\(an eventfd\|shared memory\) cannot be made.*: Too many open files'
  limited '-f 100' 'files of this process are limited to [0-9]* KiB, and Sojourn needs [0-9]* MiB of addresses (no memory) in one: run .ulimit -f unlimited., or set SOJOURN_REGION_GIB to a smaller region'
  limited '-v 3000000' 'the address space of this process is limited to 2929 MiB, and Sojourn reserves [0-9]* TiB of addresses (no memory): run .ulimit -v unlimited., or set SOJOURN_REGION_GIB to a smaller region'
  limited '-d 1000000' 'a rank reserves some GiB of memory for its tables, and is refused them: raise the limits on data and address space (ulimit -d, ulimit -v), or allow overcommit'
fi
