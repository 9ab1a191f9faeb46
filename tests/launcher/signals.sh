# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2012,SC2015,SC2016,SC2034,SC2154,SC2217,SC3045
# Signals to the launcher end all ranks; nothing is left, whatever ends the job.
. "$(dirname "$0")/lib.sh"

names_before=$(shared_names)

# start WORDS...: a job of four fake ranks in the background; leaves $launcher.
start() {
  : >"$out"
  "$sojourn" run -n 4 "$fake" "$@" >"$out" 2>"$err" &
  launcher=$!
  until_true 5000 lines_in "$out" 4 || fail 'the ranks did not start'
}

finish() {
  started=$(now_ms)
  status=0
  wait $launcher || status=$?
  elapsed_ms=$(($(now_ms) - started))
}

for signal in INT:130 TERM:143; do
  start join print=stays-91 sleep_ms=60000
  kill -${signal%:*} $launcher
  finish
  expect_status ${signal#*:}
  expect_faster_than_ms 1000
  expect_no_err
  expect_gone stays-91
done

# SIGHUP, unless nohup was used.
start join print=stays-92 sleep_ms=60000
kill -HUP $launcher
finish
expect_status 129
expect_gone stays-92
nohup "$sojourn" run -n 1 "$fake" print=stays-93 sleep_ms=600 >"$out" 2>"$err" </dev/null &
launcher=$!
until_true 5000 lines_in "$out" 1 || fail 'the rank did not start'
kill -HUP $launcher
finish
expect_status 0

# Ranks that ignore SIGTERM are killed half a second later, or at once by a second signal.
start join ignore_term print=stays-94 sleep_ms=60000
kill -INT $launcher
finish
expect_status 130
expect_gone stays-94
[ "$elapsed_ms" -ge 400 ] || fail "ranks got no time to end: $elapsed_ms ms"
expect_faster_than_ms 1500
start join ignore_term print=stays-95 sleep_ms=60000
kill -INT $launcher
sleep 0.1
kill -INT $launcher
finish
expect_status 130
expect_gone stays-95
expect_faster_than_ms 350

# Stopped ranks end too.
start join print=stays-96 sleep_ms=60000
for process in /proc/[0-9]*; do
  if tr '\0' ' ' 2>/dev/null <"$process/cmdline" | grep -q "^$fake.*stays-96"; then
    kill -STOP "${process#/proc/}"
  fi
done 2>/dev/null
kill -TERM $launcher
finish
expect_status 143
expect_gone stays-96

# Ctrl-C on a terminal reaches the whole process group: ranks that die of it have not failed.
if env --default-signal=INT true 2>/dev/null && command -v setsid >/dev/null; then
  : >"$out"
  setsid env --default-signal=INT "$sojourn" run -n 4 "$fake" join print=stays-97 sleep_ms=60000 \
    >"$out" 2>"$err" &
  launcher=$!
  until_true 5000 lines_in "$out" 4 || fail 'the ranks did not start'
  kill -INT -$launcher
  finish
  expect_status 130
  expect_no_err
  expect_gone stays-97
fi

# The launcher killed outright: its ranks die with it.
start join print=stays-98 sleep_ms=60000
kill -9 $launcher
finish
expect_status 137
expect_gone stays-98

# So does what they have started, unless it has cleared its environment, but not what other jobs
# have: neither Ctrl-C nor the launcher's end reaches the guard that sees to it.
"$sojourn" run -n 1 sh -c 'sleep 1234.5674; true' &
other=$!
"$sojourn" run -n 2 sh -c 'sleep 1234.5675 & (setsid sleep 1234.5676 &) ; echo started; wait' >"$out" 2>"$err" &
launcher=$!
until_true 5000 lines_in "$out" 2 || fail 'the ranks did not start'
until_true 5000 alive '^sleep 1234.5676' || fail 'their helpers did not start'
until_true 5000 alive '^sleep 1234.5674' || fail 'the other job did not start'
kill -9 $launcher
finish
expect_status 137
expect_gone '^sleep 1234.5675'
expect_gone '^sleep 1234.5676'
alive '^sleep 1234.5674' || fail 'the helper of another job was ended'
kill -TERM $other
wait $other 2>/dev/null
expect_gone '^sleep 1234.5674'
# A job inside of a job: its launcher is ended with the outer one's, and its ranks with that.
"$sojourn" run -n 1 "$sojourn" run -n 2 sh -c '(setsid sleep 1234.5677 &); echo started; sleep 1234.5677' \
  >"$out" 2>"$err" &
launcher=$!
until_true 5000 lines_in "$out" 2 || fail 'the inner job did not start'
kill -9 $launcher
finish
expect_gone 'sleep 1234.5677'
# Nothing of all this is left after a job, either, whose wrapper forks.
for how in TERM INT; do
  : >"$out"
  "$sojourn" run -n 2 sh -c '"$0" print=stays-101 sleep_ms=60000 & wait' "$fake" >"$out" 2>"$err" &
  launcher=$!
  until_true 5000 lines_in "$out" 2 || fail 'the ranks did not start'
  kill -$how $launcher
  finish
  expect_gone stays-101
done

# While a rank's program cannot be opened yet, the launcher hears signals all the same.
cp "$fake" "$work/slow"
"$fake" "lease=$work/slow" print=leased sleep_ms=20000 >"$work/leased" 2>&1 &
holder=$!
until_true 5000 test -s "$work/leased" || fail 'the file is not leased'
if grep -q leased "$work/leased"; then
  for signal in TERM:143 INT:130; do
    # The first rank is there, with what it has started; the second one's program is not.
    "$sojourn" run -n 1 sh -c '(setsid sleep 1234.5678 &); sleep 1234.5678' : -n 1 "$work/slow" \
      >"$out" 2>"$err" &
    launcher=$!
    until_true 5000 alive '^sleep 1234.5678' || fail 'the first rank did not start'
    kill -${signal%:*} $launcher
    finish
    expect_status ${signal#*:}
    expect_faster_than_ms 1500
    expect_gone ": -n 1 $work/slow\|^sleep 1234.5678"
  done
fi
kill $holder
wait $holder 2>/dev/null

# Ctrl-C while nobody reads the output.
mkfifo "$work/fifo"
sleep 5 <"$work/fifo" &
reader=$!
"$sojourn" run -n 2 sh -c 'while :; do echo y; done' stays-99 >"$work/fifo" 2>"$err" &
launcher=$!
sleep 0.5
kill -INT $launcher
finish
kill $reader
expect_status 130
expect_gone stays-99
expect_faster_than_ms 2500

# A rank that dies while nobody reads: the others end at once, what was written waits for the reader.
(sleep 1.5; cat) <"$work/fifo" >"$work/read" &
reader=$!
"$sojourn" run -n 2 sh -c 'if [ $SOJOURN_RANK = 0 ]; then sleep 0.3; exit 6; fi; while :; do echo y; done' stays-100 \
  >"$work/fifo" 2>"$err" &
launcher=$!
sleep 0.9
until_true 400 not alive 'while.*stays-100 *$' || true
finish
wait $reader
expect_status 6
expect_err 'rank 0 .* exited with status 6'
expect_gone stays-100
[ -s "$work/read" ] || fail 'output was dropped'

expect_no_names_but "$names_before"
