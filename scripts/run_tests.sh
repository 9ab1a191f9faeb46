#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run_tests.sh FOLDER JOBS [CTEST ARGUMENT...]: runs the tests of the build in FOLDER, JOBS at a time;
# `./dev test` calls it. A test that fails runs once more, alone. If it fails again, it is red. If it
# passes, it is yellow: the end says FLAKY, its name and the seed, with all that its first run printed,
# which is kept in build/flaky/ too. The status is 1 where a test is red, or more than two are yellow.
# Tests that take more than 5 s are listed, because the gate has no room for them.
#   SOJOURN_TEST_SEED   what everything random in the tests follows from
#   SOJOURN_SOAK_FOUND  a folder where the output of each test that failed is kept as well
set -u

build=$1
jobs=$2
shift 2
preset=$(basename "$build")
flaky=$(dirname "$build")/flaky
logs=$build/Testing/Temporary
first=$build/first_run.log
seed=${SOJOURN_TEST_SEED-}

mkdir -p "$flaky" || exit 1
rm -f "$flaky/$preset".*.log "$logs/LastTest.log" "$first"
case " $* " in
  *' --rerun-failed '*) ;; # ctest reads there which these are
  *) rm -f "$logs/LastTestsFailed.log" ;;
esac

began=$(date +%s)
status=0
ctest --test-dir "$build" --output-on-failure --no-tests=error -j "$jobs" "$@" || status=$?
took=$(($(date +%s) - began))
[ -f "$logs/LastTest.log" ] && cp "$logs/LastTest.log" "$first"

# output_of NAME: all that this test printed in the first run.
output_of() {
  awk -v name="$1" '
    /^[0-9]+\/[0-9]+ Test: / { here = substr($0, index($0, " Test: ") + 7) == name }
    here { print }
    /^<end of output>$/ { here = 0 }' "$first"
}

# A test's name as a regular expression, and as the name of a file: names of tests with parameters have
# spaces, quotes and brackets in them.
pattern_of() { printf '%s' "$1" | sed 's/[][\.*^$+?(){}|]/\\&/g'; }
file_of() { printf '%s' "$1" | cut -c1-120 | tr -c 'A-Za-z0-9.\n' _; }

# How to run one test again as it ran here.
case $preset in
  release) how='' ;;
  asan-clang) how=' --sanitize' ;;
  *) how=" --preset $preset" ;;
esac
replay() {
  [ -z "${SOJOURN_CMAKE_ARGS-}" ] || printf "SOJOURN_CMAKE_ARGS='%s' " "$SOJOURN_CMAKE_ARGS"
  [ -z "$seed" ] || printf 'SOJOURN_TEST_SEED=%s ' "$seed"
  echo "./dev test$how -R '^$(pattern_of "$1")\$'"
}

red=$build/failed_again
yellow=$build/failed_once
: >"$red"
: >"$yellow"
if [ "$status" -ne 0 ]; then
  [ -s "$logs/LastTestsFailed.log" ] || exit "$status"
  cut -d: -f2- "$logs/LastTestsFailed.log" >"$build/failed_first"
  # So many have one cause, and running each alone would only put off the bad news.
  count=$(wc -l <"$build/failed_first")
  while IFS= read -r name; do
    if [ -n "${SOJOURN_SOAK_FOUND-}" ]; then
      mkdir -p "$SOJOURN_SOAK_FOUND"
      { replay "$name" && output_of "$name"; } >"$SOJOURN_SOAK_FOUND/$preset.$(file_of "$name").log"
    fi
    if [ "$count" -le 10 ] &&
      ctest --test-dir "$build" --output-on-failure --no-tests=error -j 1 -R "^$(pattern_of "$name")\$" </dev/null; then
      echo "$name" >>"$yellow"
      output_of "$name" >"$flaky/$preset.$(file_of "$name").log"
    else
      echo "$name" >>"$red"
    fi
  done <"$build/failed_first"
fi

echo
echo "tests of preset $preset: $took s"
if [ -f "$first" ]; then
  awk '
    /^[0-9]+\/[0-9]+ Test: / { name = substr($0, index($0, " Test: ") + 7) }
    /^Test time = / && $4 > 5 { printf "  over 5 s: %6.1f s  %s\n", $4, name }' "$first" | sort -k4 -rn
fi
while IFS= read -r name; do
  echo "FLAKY $name $seed"
  echo "  failed, and passed when it ran again, alone; to replay: $(replay "$name")"
  sed 's/^/  | /' "$flaky/$preset.$(file_of "$name").log"
done <"$yellow"
while IFS= read -r name; do
  echo "FAILED $name $seed"
  echo "  to replay: $(replay "$name")"
done <"$red"
count=$(wc -l <"$yellow")
if [ "$count" -gt 2 ]; then
  echo "$count tests are flaky; more than 2 count as a failure."
  exit 1
fi
[ ! -s "$red" ]
