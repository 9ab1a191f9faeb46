# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2012,SC2015,SC2016,SC2034,SC2154,SC2217,SC3045
# Counters as a table and as JSON; the file is whole or untouched.
. "$(dirname "$0")/lib.sh"

json=$work/stats.json

try run -n 3 --stats --stats-json "$json" "$fake" join count=1000000 finish print=text
expect_status 0
[ "$(grep -c '^text$' "$out")" -eq 3 ] || fail 'output is missing'
expect_err '^counter  *sum  *rank 0  *rank 1  *rank 2$'
expect_err '^requests_sent  *3,000,003  *1,000,000  *1,000,001  *1,000,002$'
[ "$(grep -c '^request' "$err")" -eq 1 ] || fail 'rows of zeros are shown'
tr -d ' \n' <"$json" >"$work/flat"
grep -q '"ranks":3,' "$work/flat" || fail 'no "ranks" in the JSON'
grep -q '"status":0,' "$work/flat" || fail 'no "status" in the JSON'
grep -q '"elapsed_seconds":[0-9.]*' "$work/flat" || fail 'no "elapsed_seconds" in the JSON'
grep -q '"requests_sent":{"per_rank":\[1000000,1000001,1000002\],"sum":3000003}' "$work/flat" ||
  fail 'counters are wrong in the JSON'
grep -q '"migrations":{"per_rank":\[0,0,0\],"sum":0}' "$work/flat" || fail 'zeros are left out'

# More ranks than stand side by side.
try run -n 12 --stats "$fake" join count=5 finish
expect_status 0
expect_err '^requests_sent  *126  *5 .* 12$'
expect_err '^counter  *rank 8 .*rank 11$'

# Nothing counted, without Sojourn.
try run -n 2 --stats true
expect_status 0
expect_err 'no rank counted anything'

# A job that fails still leaves its counters, and its status.
try run -n 2 --stats-json "$json" "$fake" join count=9 sleep_ms=50 1:exit=3 sleep_ms=60000
expect_status 3
tr -d ' \n' <"$json" | grep -q '"status":3,' || fail 'the failed job is not in the JSON'

# A job that cannot be started leaves the file alone.
echo before >"$json"
try run -n 2 --stats-json "$json" ./absent
expect_status 2
[ "$(cat "$json")" = before ] || fail 'the file was touched'
# While the job runs, too; and a launcher that is killed leaves nothing half-written beside it.
mkdir "$work/folder"
echo before >"$work/folder/stats.json"
"$sojourn" run -n 1 --stats-json "$work/folder/stats.json" "$fake" print=x sleep_ms=60000 >"$out" &
launcher=$!
until_true 5000 lines_in "$out" 1 || fail 'the rank did not start'
[ "$(cat "$work/folder/stats.json")" = before ] || fail 'the file was touched during the job'
kill -9 $launcher
wait $launcher 2>/dev/null
[ "$(ls -A "$work/folder")" = stats.json ] || fail 'a temporary file is left'
# The file's mode is kept; a link stays a link.
chmod 640 "$work/folder/stats.json"
ln -s folder/stats.json "$work/link"
try run -n 1 --stats-json "$work/link" true
expect_status 0
[ -L "$work/link" ] || fail 'the link was replaced'
[ "$(stat -c %a "$work/folder/stats.json")" = 640 ] || fail 'the mode was changed'
grep -q '"ranks"' "$work/folder/stats.json" || fail 'the link was not followed'
# Standard output and pipes are written, not replaced.
try run -n 1 --stats-json /dev/stdout echo text
expect_status 0
expect_out '^text$'
expect_out '"ranks": 1'
try run -n 1 --stats-json /dev/null true
expect_status 0
[ -c /dev/null ] || fail '/dev/null was replaced'
# A pipe without a reader keeps neither the job nor the command.
mkfifo "$work/pipe"
try run -n 2 --stats-json "$work/pipe" echo text
expect_status 1
expect_out '^text$'
expect_err "cannot write '.*/pipe': nobody reads from this pipe"
expect_faster_than_ms 5000
cat "$work/pipe" >"$work/read" &
try run -n 2 --stats-json "$work/pipe" sleep 0.3
wait
expect_status 0
grep -q '"ranks": 2' "$work/read" || fail 'a pipe that is read gets nothing'
# A reader that does not read, and one that goes.
if command -v timeout >/dev/null; then
  sleep 4 <"$work/pipe" &
  try run -n 1024 --stats-json "$work/pipe" true
  expect_status 1
  expect_err "cannot write '.*/pipe': nobody reads"
  kill $!
fi
# The folder goes while the job runs.
mkdir "$work/gone"
try run -n 1 --stats-json "$work/gone/f" rmdir "$work/gone"
expect_status 1
expect_err 'cannot write .*gone/f'
if [ "$(id -u)" -ne 0 ]; then
  mkdir "$work/closed"
  chmod 555 "$work/closed"
  try run -n 1 --stats-json "$work/closed/f" echo started
  expect_status 2
  expect_one_sentence
  chmod 755 "$work/closed"
fi
