# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2154
# The report of shared memory: false sharing and data races are told with the name and the line of
# the memory, and no race of programs that have none. The third argument is the
# program job_shared_report.
. "$(dirname "$0")/lib.sh"
program=$3
json=$work/report.json
line=$(grep -n 'shared::alloc<int>' "$(dirname "$0")/../jobs/shared_report.cpp" | cut -d: -f1)

try run -n 2 --shared-report --shared-report-json "$json" "$program" apart
expect_status 0
expect_err "^  page at 0x[0-9a-f]*, from byte 0 of .grid. (shared_report.cpp:$line)\$"
expect_err 'ranks 0, 1 stored to it at the same time, to different bytes (false sharing)'
expect_err '^No data race'
expect_err '^  diffs created  *20$'
tr -d ' \n' <"$json" >"$work/flat"
grep -q "\"races\":\[\],\"pages\":\[{\"address\":[0-9]*,\"page\":[0-9]*,\"name\":\"grid\",\"allocated_at\":\"shared_report.cpp:$line\"" "$work/flat" ||
  fail 'the page is not in the JSON'
grep -q '"epochs_with_several_writers":10,"false_sharing":10,"races":0,"writers":\[0,1\]' "$work/flat" ||
  fail 'the writers are not in the JSON'
grep -q '"counters":{"faults_local":{"per_rank":\[[0-9]*,[0-9]*\],"sum":[0-9]*}' "$work/flat" ||
  fail 'no counters in the JSON'

try run -n 2 --shared-report --shared-report-json "$json" "$program" race
expect_status 0
expect_err "^Data race: ranks 0 and 1 stored to byte 28 of .grid. (shared_report.cpp:$line), and nothing ordered them (10 times)"
tr -d ' \n' <"$json" | grep -q '"races":\[{"address":[0-9]*,"page":[0-9]*,"offset":28,"ranks":\[0,1\],"times":10,' ||
  fail 'the race is not in the JSON'

for ranks in 2 4; do
  try run -n $ranks --shared-report "$program" ordered
  expect_status 0
  expect_err '^No data race'
  expect_err 'stored to it in turn'
done

# Without the option nothing is said.
try run -n 2 "$program" race
expect_status 0
[ ! -s "$err" ] || fail 'a report that nobody wants'

# A file that cannot be written is told before the program runs, and nothing is left behind.
try run -n 2 --shared-report-json /proc/none/report "$program" ordered
expect_status 2
expect_err 'SOJOURN_SHARED_REPORT_JSON=/proc/none/report cannot be written: No such file'
for word in on off 1; do
  SOJOURN_SHARED_REPORT_JSON=$word try run -n 2 "$program" ordered
  expect_status 2
  expect_err "SOJOURN_SHARED_REPORT_JSON=$word is not the name of a file: give one, or ./$word"
  [ ! -e "$word" ] || fail "a file named $word was made"
done
# One that can no longer be written at the end fails the job.
if [ -w /dev/full ]; then
  try run -n 2 --shared-report-json /dev/full "$program" ordered
  expect_status 1
  expect_err 'the report of shared memory cannot be written to /dev/full'
fi
