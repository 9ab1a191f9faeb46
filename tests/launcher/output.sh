# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2012,SC2015,SC2016,SC2034,SC2154,SC2217,SC3045
# What ranks write arrives whole, by lines, and nothing of it is lost.
. "$(dirname "$0")/lib.sh"

# Many short lines from many ranks: each whole, each rank's in order.
try run -n 8 sh -c 'i=0; while [ $i -lt 500 ]; do echo "rank $SOJOURN_RANK line $i of five hundred"; i=$((i+1)); done'
expect_status 0
expect_no_err
[ "$(wc -l <"$out")" -eq 4000 ] || fail 'lines are missing'
if grep -v -x -q 'rank [0-7] line [0-9]* of five hundred' "$out"; then fail 'a line is mixed'; fi
for rank in 0 3 7; do
  grep "^rank $rank " "$out" | awk '$4 != NR - 1 { exit 1 }' || fail "rank $rank is out of order"
done

# Lines written in two halves are one line, or two ranks would share it.
try run -n 4 sh -c 'printf "first half of $SOJOURN_RANK, "; sleep 0.1; echo "second half of $SOJOURN_RANK"'
expect_status 0
for rank in 0 1 2 3; do
  grep -x -q "first half of $rank, second half of $rank" "$out" || fail "line of rank $rank is cut"
done

# Standard error apart from standard output.
try run -n 2 sh -c 'echo to out; echo to err >&2'
expect_status 0
[ "$(cat "$out")" = "$(printf 'to out\nto out')" ] || fail 'standard output is wrong'
[ "$(cat "$err")" = "$(printf 'to err\nto err')" ] || fail 'standard error is wrong'

# Both into one file: whole lines still, though they come through different pipes.
"$sojourn" run -n 4 sh -c 'i=0; while [ $i -lt 200 ]; do echo "out $i ........................................"; echo "err $i ........................................" >&2; i=$((i+1)); done' >"$out" 2>&1
[ "$(wc -l <"$out")" -eq 1600 ] || fail 'lines are missing in the common file'
if grep -v -x -q '\(out\|err\) [0-9]* \.*' "$out"; then fail 'out and err are mixed in a line'; fi

# A last line without a newline is forwarded as it is; other ranks start a line of their own.
try run -n 1 printf 'no newline'
[ "$(cat "$out"; echo .)" = 'no newline.' ] || fail 'a newline was added or the line was lost'
try run -n 3 printf 'no newline'
[ "$(grep -c -x 'no newline' "$out")" -eq 3 ] || fail 'partial lines are mixed'

# A label before each line, also before a partial one, and on standard error.
try run -n 3 --label sh -c 'printf "a\nb\n\nc"; echo e >&2'
expect_status 0
for rank in 0 1 2; do
  [ "$(grep -c "^\[$rank\] " "$out")" -eq 4 ] || fail "labels of rank $rank are wrong"
  expect_out "^\[$rank\] c$"
  expect_out "^\[$rank\] $"
  expect_err "^\[$rank\] e$"
done

# Lines of 100,000 bytes stay whole among others.
try run -n 4 sh -c 'i=0; while [ $i -lt 5 ]; do head -c 100000 /dev/zero | tr "\0" "$SOJOURN_RANK"; echo; echo "$SOJOURN_RANK"; i=$((i+1)); done'
expect_status 0
awk 'length($0) != 100000 && length($0) != 1 { exit 1 }
     { c = substr($0, 1, 1); gsub(c, ""); if (length($0) != 0) exit 1 }' "$out" ||
  fail 'a long line was broken or mixed'
[ "$(wc -l <"$out")" -eq 40 ] || fail 'long lines are missing'

# Endless lines and bytes of all kinds from one rank arrive unchanged.
head -c 3000000 /dev/urandom | tr -d '\n' >"$work/endless"
head -c 1000000 /dev/urandom >>"$work/endless"
try run -n 1 cat "$work/endless"
expect_status 0
cmp "$out" "$work/endless" || fail 'bytes were changed'
# From two ranks, pieces may alternate, but never in one line and never with anything lost.
head -c 2000000 /dev/zero | tr '\0' 'x' >"$work/xs"
try run -n 2 sh -c 'if [ "$SOJOURN_RANK" = 0 ]; then cat "$0"; else tr x y <"$0"; fi' "$work/xs"
if grep -q 'xy\|yx' "$out"; then fail 'endless lines are mixed'; fi
[ "$(tr -d '\n' <"$out" | wc -c)" -eq 4000000 ] || fail 'an endless line lost bytes'

# A slow reader gets everything, and the job waits for it.
"$sojourn" run -n 2 sh -c 'seq 100000' 2>"$err" | (sleep 0.3; cat) >"$out"
[ "$(wc -l <"$out")" -eq 200000 ] || fail 'a slow reader lost lines'

# A reader that goes ends the job quietly.
mark=1234.5671
started=$(now_ms)
{
  status=0
  "$sojourn" run -n 2 sh -c 'while :; do echo y; done' $mark 2>"$err" || status=$?
  echo $status >"$work/status"
} | head -n 1 >"$out"
elapsed_ms=$(($(now_ms) - started))
status=$(cat "$work/status")
expect_status 141
expect_no_err
expect_out y
expect_faster_than_ms 3000
expect_gone $mark

# A full disk is said, and ends the job.
if [ -w /dev/full ]; then
  status=0
  "$sojourn" run -n 2 sh -c 'while :; do echo y; done' >/dev/full 2>"$err" || status=$?
  expect_status 1
  expect_err 'cannot write .*No space left'
fi

# Standard error that cannot be written keeps no job from its end, nor its status from being told.
for descriptor in '&-' /dev/full; do
  [ "$descriptor" = '&-' ] || [ -w "$descriptor" ] || continue
  for job in '139 join 1:record=11 1:die=11 sleep_ms=60000' '7 join 0:exit=7 sleep_ms=60000' \
    '0 join complain=text finish print=done'; do
    status=0
    eval '"$sojourn" run -n 2 --stats "$fake" '"${job#* }"' >"$out" 2>'"$descriptor" || status=$?
    expect_status "${job%% *}"
  done
  [ "$(grep -c '^done$' "$out")" -eq 2 ] || fail 'output is lost with standard error'
done

# Closed standard descriptors do not become pipes or the job's memory.
status=0
"$sojourn" run -n 2 "$fake" join print=text finish >&- 2>"$err" <&- || status=$?
expect_status 0
expect_no_err

# Rank 0 reads standard input, the others read nothing.
status=0
printf 'a\nb\n' | "$sojourn" run -n 3 sh -c 'echo "$SOJOURN_RANK reads $(wc -l)"' >"$out" 2>"$err" ||
  status=$?
expect_status 0
expect_out '^0 reads 2$'
expect_out '^1 reads 0$'
expect_out '^2 reads 0$'

# A descendant that keeps a rank's pipe open does not keep the job: it is ended with it, and named.
mark=1234.5672
try run -n 2 sh -c "sleep $mark & echo started"
expect_status 0
expect_faster_than_ms 2000
[ "$(grep -c started "$out")" -eq 2 ] || fail 'output was lost'
expect_err '^sojourn run: 2 processes that ranks had left running ended with the job: sleep (pid [0-9]*), sleep'
[ "$(wc -l <"$err")" -eq 1 ] || fail 'that takes more than a line'
expect_gone "^sleep $mark"
# One that ends soon after its rank has the time to write what it has read.
try run -n 2 sh -c '(sleep 0.05; echo late) & echo early'
expect_status 0
expect_no_err
[ "$(grep -c late "$out")" -eq 2 ] || fail 'the last words of a descendant were lost'

# On a terminal, text without a newline is a prompt: it is shown although the rank now waits.
if command -v script >/dev/null; then
  mkfifo "$work/answer"
  sleep 3 >"$work/answer" &
  script -q -c "'$sojourn' run -n 1 sh -c 'printf \"your name? \"; sleep 2'" /dev/null \
    <"$work/answer" >"$out" 2>"$err" &
  until_true 1500 grep -q 'your name' "$out" || fail 'a prompt is not shown'
  wait
fi
