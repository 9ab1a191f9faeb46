# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2012,SC2015,SC2016,SC2034,SC2154,SC2217,SC3045
# One rank's end by failure ends the job within a second, says which and why, and decides the status.
. "$(dirname "$0")/lib.sh"
ulimit -c 0

# The others would go on for ever; "$mark" finds them when they are left.
died() {
  expect_status "$1"
  expect_faster_than_ms 1900
  expect_err "$2"
  expect_gone "$mark"
}

mark=print=stays-71
try run -n 4 "$fake" $mark join sleep_ms=50 2:exit=7 sleep_ms=60000
died 7 "rank 2 (pid [0-9]*, $fake) exited with status 7"

mark=print=stays-72
try run -n 4 "$fake" $mark join sleep_ms=50 1:record=11 1:die=11 sleep_ms=60000
died 139 "rank 1 (pid [0-9]*, $fake) was killed by SIGSEGV (segmentation fault) at address 0xdead0"
expect_err '^  it ? failed on purpose$'
expect_err '^    #0  0x[0-9a-f]*  fake::inner_function()'
expect_err '^    #1  0x[0-9a-f]*  fake::outer_function(int)'
expect_err '^    #2  0x10$'
expect_err 'its exit status is 139'

# A stripped program still says where, in numbers.
if command -v strip >/dev/null; then
  strip -o "$work/stripped" "$fake"
  try run -n 1 "$work/stripped" join record=11 die=11
  expect_status 139
  expect_err '^    #0  0x[0-9a-f]*$'
fi

# What a dying rank wrote is not trusted.
try run -n 2 "$fake" join 1:full_record=11 1:die=11 sleep_ms=60000
expect_status 139
expect_err 'the same 4[0-9] more times'

mark=print=stays-73
try run -n 3 "$fake" $mark 0:die=9 sleep_ms=60000
died 137 'rank 0 .* was killed by SIGKILL (killed)'
expect_err 'when memory runs out'

mark=print=stays-74
try run -n 3 "$fake" $mark 1:die=6 sleep_ms=60000
died 134 'rank 1 .* was killed by SIGABRT (aborted)'

# A message without a signal, and a status of the rank's own.
mark=print=stays-75
try run -n 2 "$fake" $mark join 1:record=0 1:exit=5 sleep_ms=60000
died 5 'rank 1 .* exited with status 5'
expect_err 'failed on purpose'

# Left in the middle of the job, though with status 0.
mark=print=stays-76
try run -n 2 "$fake" $mark join sleep_ms=30 1:exit=0 sleep_ms=60000
died 1 'rank 1 .* exited with status 0 before its part of the job was finished'

# Never joined a job that the others have joined; before and after they do.
mark=print=stays-77
try run -n 3 "$fake" $mark 0:join 1:join sleep_ms=50 2:exit=0 sleep_ms=60000
died 1 'rank 2 .* without joining the job'
mark=print=stays-78
try run -n 3 "$fake" $mark 2:exit=0 sleep_ms=400 join sleep_ms=60000
expect_status 1
expect_faster_than_ms 2500
expect_err 'rank 2 .* without joining the job'
expect_gone $mark

# The rank that reported its own death died first, whoever is found first.
mark=print=stays-79
try run -n 3 "$fake" $mark join 2:record=11 2:sleep_ms=40 0:sleep_ms=20 0:exit=3 2:die=11 \
  sleep_ms=60000
died 139 'rank 2 .* was killed by SIGSEGV'
expect_err 'then rank 0 .* exited with status 3'
# Even if it does not manage to end.
mark=print=stays-80
try run -n 3 "$fake" $mark join 2:record=7 0:sleep_ms=20 0:exit=3 sleep_ms=60000
died 135 'rank 2 .* was killed by SIGBUS'

# Finished ranks end as they like, and finishing is not failing.
try run -n 4 "$fake" join finish 1:sleep_ms=300 print=done
expect_status 0
expect_no_err
[ "$(grep -c '^done$' "$out")" -eq 4 ] || fail 'a finished rank was ended early'
# All fail alike after the job: the status is theirs, and all are heard.
try run -n 4 "$fake" join finish print=done exit=4
expect_status 4
[ "$(grep -c '^done$' "$out")" -eq 4 ] || fail 'a rank was ended before its last words'

# A program that refuses to run says why once, and the launcher which rank ended; so too where the
# ranks take a while.
for how in '' 'join'; do
  try run -n 4 "$fake" sleep_ms=30 $how complain=the-tree-has-no-leaves exit=2
  expect_status 2
  expect_err 'rank [0-3] (pid [0-9]*, .*) exited with status 2$'
  [ "$(grep -c '^sojourn run:' "$err")" -eq 1 ] || fail 'a refusal takes more than one line'
done
try run -n 4 "$fake" complain=the-tree-has-no-leaves exit=2
[ "$(grep -c '^the-tree' "$err")" -eq 1 ] || fail 'a refusal is not said once'
try run -n 4 --label "$fake" complain=the-tree-has-no-leaves exit=2
[ "$(grep -c 'the-tree' "$err")" -eq 1 ] || fail 'a labelled refusal is not said once'
# Different reasons are all heard, and so is what ranks say that fail otherwise or go on.
try run -n 2 "$fake" 0:complain=no-root 1:complain=no-leaves exit=2
expect_err 'no-root'
expect_err 'no-leaves'
try run -n 4 "$fake" complain=text exit=3
[ "$(grep -c '^text$' "$err")" -eq 4 ] || fail 'equal lines of ranks that failed are lost'
try run -n 4 "$fake" complain=text join finish
expect_status 0
[ "$(grep -c '^text$' "$err")" -eq 4 ] || fail 'equal lines of ranks that ran are lost'
"$sojourn" run -n 2 "$fake" complain=before sleep_ms=60000 2>"$err" &
launcher=$!
until_true 1000 lines_in "$err" 2 || fail 'what is said before joining waits for too long'
kill -TERM $launcher
wait $launcher

# Programs without Sojourn.
try run -n 4 sh -c 'exit $SOJOURN_RANK'
[ "$status" -ge 1 ] && [ "$status" -le 3 ] || fail 'status of a plain program is lost'
try run -n 3 true
expect_status 0
expect_no_err
try run -n 2 sh -c 'kill -SEGV $$'
expect_status 139
expect_err 'it left no stack'

# Killed from outside in the middle of a job, as the kernel would for lack of memory.
mark=print=stays-81
"$sojourn" run -n 4 sh -c 'echo $$ >"$0.$SOJOURN_RANK"; echo ready; exec "$1" "$2" join sleep_ms=60000' \
  "$work/pid" "$fake" $mark >"$out" 2>"$err" &
launcher=$!
until_true 5000 grep -q stays-81 "$out" || fail 'the ranks did not start'
until_true 5000 test -s "$work/pid.3" || fail 'rank 3 did not start'
started=$(now_ms)
kill -9 "$(cat "$work/pid.3")"
status=0
wait $launcher || status=$?
elapsed_ms=$(($(now_ms) - started))
died 137 "rank 3 (pid $(cat "$work/pid.3"), .*) was killed by SIGKILL"
expect_faster_than_ms 1000

# What a dead rank leaves running is ended with the job.
mark=1234.5673
try run -n 2 sh -c "if [ \$SOJOURN_RANK = 0 ]; then sleep 0.1; exit 9; fi; sleep $mark; true"
died 9 'rank 0 .* exited with status 9'
# Also where /proc, which tells of it elsewhere, is not mounted …
without_proc='mount -t tmpfs none /proc && exec "$@"'
if unshare -m sh -c "$without_proc" sh true 2>/dev/null; then
  mark=1234.5674
  status=0
  unshare -m sh -c "$without_proc" sh "$sojourn" run -n 2 \
    sh -c "if [ \$SOJOURN_RANK = 0 ]; then sleep 0.1; exit 9; fi; sleep $mark; true" >"$out" 2>"$err" </dev/null ||
    status=$?
  expect_status 9
  expect_err 'rank 0 .* exited with status 9'
  expect_gone "$mark"
fi
# … or shows another PID namespace. What is left there ends with its first process, which looks before that.
if unshare -f -p true 2>/dev/null; then
  mark=1234.5675
  status=0
  unshare -f -p sh -c '
    "$@"
    status=$?
    for left in /proc/[0-9]*; do
      [ "$(tr "\0" " " <"$left/cmdline")" != "sleep '$mark' " ] || exit 99
    done 2>/dev/null
    exit $status' sh "$sojourn" run -n 2 \
    sh -c "if [ \$SOJOURN_RANK = 0 ]; then sleep 0.1; exit 9; fi; sleep $mark; true" >"$out" 2>"$err" </dev/null ||
    status=$?
  expect_status 9
fi

# Output written before the death is not lost.
try run -n 2 sh -c 'seq 2000; [ $SOJOURN_RANK = 1 ] || exec sleep 60; kill -9 $$'
expect_status 137
[ "$(wc -l <"$out")" -eq 4000 ] || fail 'output before a death was lost'

# With a grace the death is told when it is known; the job's end later.
"$sojourn" run -n 2 --grace 60 "$fake" join print=stays-82 sleep_ms=50 1:record=11 1:die=11 sleep_ms=60000 \
  >"$out" 2>"$err" &
launcher=$!
until_true 5000 grep -q 'rank 1 .* was killed by SIGSEGV' "$err" || fail 'the death is told at the end only'
until_true 1000 grep -q '^sojourn run: the other ranks may go on for 60 s (--grace)$' "$err" || fail 'the grace is not told'
expect_err 'fake::inner_function()'
alive stays-82 || fail 'the others were ended before their grace'
kill -TERM $launcher
status=0
wait $launcher || status=$?
expect_status 139
expect_err 'the job was ended; its exit status is 139'
[ "$(grep -c 'was killed by SIGSEGV' "$err")" -eq 1 ] || fail 'the death is told twice'
expect_gone stays-82
