# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2034,SC2154,SC3045
# What is said when a thread that the program has made itself uses Sojourn, and when pthread_exit()
# ends the rank's own.
. "$(dirname "$0")/../launcher/lib.sh"
program=$2
ulimit -c 0

refused='a thread that the program has made itself uses Sojourn, which only the rank.s own thread may do: hand what is to be done over to the rank with sojourn::post(), or do it in the body of run()'
for what in $("$program" list); do
  for checked in 0 1; do
    context="$what, checked $checked: "
    SOJOURN_CHECKED=$checked try run -n 2 "$program" "$what"
    expect_status 134
    expect_err "$refused"
  done
done

context=''
for when in before after; do
  try run -n 1 "$program" $when
  expect_status 0
done
try run -n 1 "$program" before
expect_out '^caught: post() before run(): there is no job yet; do this in the function that is passed to run()$'
try run -n 1 "$program" after
expect_out '^caught: post() after the body of run() has ended: nothing runs there any more; let the body wait for the threads that post$'

# What was posted before the body returned has its turn.
try run -n 1 "$program" left
expect_status 0
expect_out '^ran$'

try run -n 2 "$program" throws
expect_status 134
expect_err 'an exception of type std::runtime_error is not caught: nobody hears it'

# Another thread is there, which may post: the job is not ended, but fibers that wait for each other
# are told. The thread ends it then.
try run -n 2 --watchdog 1 "$program" circle
expect_status 7
expect_err 'deadlock: '

for where in pthread_exit pthread_exit_in_call; do
  try run -n 2 "$program" $where
  expect_status 134
  expect_err '`.*` calls pthread_exit(), on the thread that runs all of this rank: return from the function instead'
done
# By a library, which calls the system's own.
try run -n 1 "$program" pthread_exit_of_system
expect_status 134
expect_err 'pthread_exit() was called in the middle of the job, on the thread that runs all of this rank: return from the function instead'
