# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2012,SC2015,SC2016,SC2034,SC2154,SC2217,SC3045
# The launcher with ranks of the runtime: how they die, what they count, what an idle job costs.
. "$(dirname "$0")/lib.sh"
ulimit -c 0
real=$3

for share in on off; do
  try run -n 4 --share $share --stats-json "$work/stats" "$real"
  expect_status 0
  expect_no_err
  [ "$(grep -c '^rank [0-3] of 4' "$out")" -eq 4 ] || fail 'ranks are missing'
  tr -d ' \n' <"$work/stats" | grep -q '"collective_messages":{"per_rank":\[[1-9]' ||
    fail 'nothing was counted'
done

# As a job of one rank, with and without the command.
try run -n 1 "$real"
expect_status 0
expect_out '^rank 0 of 1'
status=0
"$real" >"$out" 2>"$err" || status=$?
expect_status 0
expect_out '^rank 0 of 1'

# dies HOW STATUS TEXT
dies() {
  try run -n 4 "$real" "$1"
  expect_status "$2"
  expect_faster_than_ms 1500
  expect_err "rank 3 (pid [0-9]*, $real) $3"
  expect_err "its exit status is $2"
  expect_gone "$real $1"
}
if [ "$(nm "$real" 2>/dev/null | grep -c __asan_init)" = 0 ]; then
  # The sanitizer has handlers of its own for these.
  dies segv 139 'was killed by SIGSEGV (segmentation fault) at address 0x8$'
  expect_err '#0  0x[0-9a-f]*  ends::by_segmentation_fault() at [^ ]*real_rank.cpp:[0-9]*$'
  dies abort 134 'was killed by SIGABRT'
  expect_err '  ends::by_abort()'
  dies overflow 139 'was killed by SIGSEGV'
  expect_err 'stack overflow'
  expect_err '  ends::by_stack_overflow(int)'
fi
dies throw 134 'was killed by SIGABRT'
expect_err 'thrown on purpose'
dies exit 1 'exited with status 0 before its part of the job was finished'
dies status 3 'exited with status 3'

# Kill -9 of a rank in the middle of a job that waits for another.
: >"$out"
"$sojourn" run -n 4 --stats-json "$work/stats" "$real" wait >"$out" 2>"$err" &
launcher=$!
until_true 5000 lines_in "$out" 4 || fail 'the ranks did not start'
sleep 0.2
victim=$(sed -n 's/^rank 1 of 4 is //p' "$out")
started=$(now_ms)
kill -9 "$victim"
status=0
wait $launcher || status=$?
elapsed_ms=$(($(now_ms) - started))
expect_status 137
expect_faster_than_ms 1000
expect_err "rank 1 (pid $victim, $real) was killed by SIGKILL"
expect_gone "$real wait"
# What it had counted is known, and so is what those counted that were ended because of it.
tr -d ' \n' <"$work/stats" >"$work/flat"
grep -q '"calls_local":{"per_rank":\[7,7,7,7\],"sum":28}' "$work/flat" ||
  fail 'the calls of a killed rank are lost'
grep -q '"collective_messages":{"per_rank":\[[1-9][0-9]*,[1-9][0-9]*,' "$work/flat" ||
  fail 'the messages of a killed rank are lost'

has_two_threads() { [ "$(ls "/proc/$1/task" | wc -l)" -ge 2 ]; }

# A signal from outside comes to the thread that waits for the worker's end: the worker's stack is
# told, and who sent it.
if [ "$(nm "$real" 2>/dev/null | grep -c __asan_init)" = 0 ]; then
  for signal in ABRT:134 SEGV:139 BUS:135; do
    : >"$out"
    "$sojourn" run -n 2 "$real" wait >"$out" 2>"$err" &
    launcher=$!
    until_true 5000 lines_in "$out" 2 || fail 'the ranks did not start'
    sleep 0.2
    kill -${signal%:*} "$(sed -n 's/^rank 1 of 2 is //p' "$out")"
    status=0
    wait $launcher || status=$?
    expect_status ${signal#*:}
    expect_err "rank 1 .* was killed by SIG${signal%:*}"
    expect_err "process $$ sent the signal"
    expect_err ' at [^ ]*real_rank.cpp:[0-9]*$'
    if grep -q 'run_job\|beside the one that runs' "$err"; then fail 'the stack of another thread is told'; fi
  done
  # So too without a launcher.
  "$real" wait >"$out" 2>"$err" &
  alone=$!
  until_true 5000 has_two_threads $alone || fail 'the program did not start'
  sleep 0.2
  kill -ABRT $alone
  status=0
  wait $alone || status=$?
  expect_status 134
  expect_err "process $$ sent the signal"
  expect_err ' at [^ ]*real_rank.cpp:[0-9]*$'
fi

# Fibers and the worker have stacks of their own, and so has the launcher when it finds the system's
# too small: a death is reported as ever.
if [ "$(nm "$real" 2>/dev/null | grep -c __asan_init)" = 0 ]; then
  for how in well:0 segv:139 throw:134; do
    status=0
    (ulimit -s 64 && "$sojourn" run -n 2 --stats "$real" ${how%:*}) >"$out" 2>"$err" || status=$?
    expect_status ${how#*:}
    [ "$how" = well:0 ] || expect_err ' at [^ ]*real_rank.cpp:[0-9]*$'
  done
fi

# Ranks wait for the last one to start without looking again and again.
: >"$out"
"$sojourn" run -n 3 sh -c 'echo $$; [ $SOJOURN_RANK != 0 ] || sleep 1.2; exec "$0"' "$real" \
  >"$out" 2>"$err" &
launcher=$!
until_true 5000 lines_in "$out" 3 || fail 'the ranks did not start'
sleep 0.7
for process in $(cat "$out"); do
  switches=$(sed -n 's/^voluntary_ctxt_switches:[^0-9]*//p' /proc/"$process"/task/*/status |
    awk '{ sum += $1 } END { print sum }')
  [ "$switches" -lt 50 ] || fail "a rank that waits for others to start woke $switches times"
done
status=0
wait $launcher || status=$?
expect_status 0

# Bad settings are one sentence from the launcher, or said by the ranks.
status=0
SOJOURN_REGION_GIB=many "$sojourn" run -n 2 "$real" >"$out" 2>"$err" || status=$?
expect_status 2
expect_one_sentence
expect_err 'SOJOURN_REGION_GIB=many'
status=0
SOJOURN_VIA=nonsense "$sojourn" run -n 2 "$real" >"$out" 2>"$err" || status=$?
expect_status 2
expect_err 'SOJOURN_VIA'
[ "$(wc -l <"$err")" -eq 2 ] || fail 'a bad SOJOURN_VIA takes more than a sentence and its rank'
status=0
(ulimit -f 100 && "$sojourn" run -n 2 "$real") >"$out" 2>"$err" || status=$?
expect_status 2
expect_err 'ulimit -f'

# cpu_ticks PIDS...: user and system time, in hundredths of a second.
cpu_ticks() {
  total=0
  for process; do
    # The fields behind the command's name, which may hold blanks: state is the first.
    ticks=$(sed 's/.*) //' "/proc/$process/stat" | awk '{ print $12 + $13 }')
    total=$((total + ticks))
  done
  echo $total
}

# An idle job of four ranks uses no processor time: three ranks and the launcher wait for one.
: >"$out"
"$sojourn" run -n 4 "$real" wait >"$out" 2>"$err" &
launcher=$!
until_true 5000 lines_in "$out" 4 || fail 'the ranks did not start'
sleep 0.5
processes="$launcher $(sed 's/.* is //' "$out")"
# shellcheck disable=SC2086
before=$(cpu_ticks $processes)
sleep 3
# shellcheck disable=SC2086
after=$(cpu_ticks $processes)
kill -TERM $launcher
status=0
wait $launcher || status=$?
expect_status 143
expect_gone "$real wait"
[ $((after - before)) -le 3 ] || fail "an idle job used $((after - before)) ticks in 3 s"
