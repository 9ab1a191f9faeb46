# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2012,SC2015,SC2016,SC2034,SC2154,SC2217,SC3045
# While nothing happens the launcher is woken once a second, by its own clock, to see whether ranks
# hang.
. "$(dirname "$0")/lib.sh"

"$sojourn" run -n 4 "$fake" join print=x sleep_ms=60000 >"$out" 2>"$err" &
launcher=$!
until_true 5000 lines_in "$out" 4 || fail 'the ranks did not start'
sleep 0.2
switches() { sed -n 's/^voluntary_ctxt_switches:[[:space:]]*//p' "/proc/$launcher/status"; }
before=$(switches)
began=$(now_ms)
sleep 1.5
after=$(switches)
seconds=$((($(now_ms) - began) / 1000))
kill -TERM $launcher
status=0
wait $launcher || status=$?
expect_status 143
# One more where the time begins and ends with one, and one for the last news of the start.
[ "$((after - before))" -le $((seconds + 2)) ] || fail "woken $((after - before)) times while idle"
