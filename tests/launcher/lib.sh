# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034
# What tests that start jobs share. A test is started as: sh test.sh SOJOURN FAKE_RANK
# and is a sequence of claims; the first that does not hold ends it with what was seen.

sojourn=$1
fake=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
out=$work/out
err=$work/err
unset SOJOURN_SHARE SOJOURN_RANK SOJOURN_JOB_FDS

# A test may say in `context` what it is at.
fail() {
  echo "FAILED: ${context-}$*" >&2
  echo "--- status ${status-none}, standard output (its end):" >&2
  [ ! -f "$out" ] || tail -c 2000 "$out" >&2
  echo "--- standard error (its end):" >&2
  [ ! -f "$err" ] || tail -c 4000 "$err" >&2
  exit 1
}

now_ms() { echo $(($(date +%s%N) / 1000000)); }

# try ARGS...: sojourn ARGS; leaves status, $out, $err and elapsed_ms.
try() {
  started=$(now_ms)
  status=0
  "$sojourn" "$@" >"$out" 2>"$err" </dev/null || status=$?
  elapsed_ms=$(($(now_ms) - started))
}

# await_end PID: waits for a job in the background; leaves status and elapsed_ms.
await_end() {
  started=$(now_ms)
  status=0
  wait "$1" || status=$?
  elapsed_ms=$(($(now_ms) - started))
}

expect_status() { [ "$status" -eq "$1" ] || fail "expected status $1, got $status"; }
expect_out() { grep -q -e "$1" "$out" || fail "standard output lacks: $1"; }
expect_err() { grep -q -e "$1" "$err" || fail "standard error lacks: $1"; }
expect_no_err() { [ ! -s "$err" ] || fail "standard error is not empty"; }
expect_no_out() { [ ! -s "$out" ] || fail "standard output is not empty"; }
expect_one_sentence() {
  [ "$(wc -l <"$err")" -eq 1 ] || fail "standard error is not one line"
  expect_no_out
}
expect_faster_than_ms() { [ "$elapsed_ms" -lt "$1" ] || fail "took $elapsed_ms ms, not < $1"; }

# alive TEXT: some process has TEXT in its command line. Tests give ranks a text of their own.
alive() {
  for process in /proc/[0-9]*; do
    [ "$process" != "/proc/$$" ] || continue
    # Processes come and go while we look.
    if tr '\0' ' ' 2>/dev/null <"$process/cmdline" | grep -q -e "$1"; then
      return 0
    fi
  done 2>/dev/null
  return 1
}

# until_true MS COMMAND...: waits until the command succeeds, at most MS milliseconds.
until_true() {
  deadline=$(($(now_ms) + $1))
  shift
  until "$@"; do
    [ "$(now_ms)" -lt "$deadline" ] || return 1
    sleep 0.02
  done
}

not() { ! "$@"; }
lines_in() { [ "$(wc -l <"$1" 2>/dev/null || echo 0)" -ge "$2" ]; }

# What the system shares by name. Other programs of this host use it, too: they take back what they make,
# and what a job leaves would stay.
shared_names() { ls -A /dev/shm 2>/dev/null; }
no_new_names() { [ -z "$(shared_names | grep -vxF -e "$1")" ]; }
expect_no_names_but() { until_true 5000 no_new_names "$1" || fail "${2-}something is left in /dev/shm"; }
expect_gone() { until_true 1000 not alive "$1" || fail "a process with '$1' is left"; }
