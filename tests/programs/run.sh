#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh SOJOURN PROGRAM SEED JOBS PROGRAMS: runs random programs (programs.cpp), PROGRAMS of them in
# each of JOBS jobs, whose settings follow from the seed of its first. SEED may be `fresh`:
# SOJOURN_TEST_SEED, or else one that the clock gives; it is printed. The first that fails ends it, with the line that replays it.
# SOJOURN_PROGRAMS_LIMIT: seconds that one program may take [60].
set -u

sojourn=$1
program=$2
seed=$3
jobs=$4
programs=$5
limit=${SOJOURN_PROGRAMS_LIMIT:-60}
if [ "$seed" = fresh ]; then
  seed=${SOJOURN_TEST_SEED:-$(date +%s)}
  echo "programs: the seed is $seed"
fi
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# one_of WORD…: chosen by the seed, and by how often it was asked before.
asked=0
one_of() {
  asked=$((asked + 1))
  hash=$(((first * 1103515245 + asked * 40503 + 12345) % 2147483648))
  hash=$(((hash / 65536 + hash * 7919) % 2147483648 / 8))
  shift $((hash % $#))
  chosen=$1
}

settings() {
  asked=0
  # Checked mode stops at numbers that look like addresses, of which there are many.
  words=SOJOURN_CHECKED=0
  one_of 1 2 2 3 3 4 5 8 && ranks=$chosen
  one_of on off && words="$words SOJOURN_SHARE=$chosen"
  one_of on off && words="$words SOJOURN_AGGREGATE=$chosen"
  one_of hybrid hybrid heap && words="$words SOJOURN_EXECUTION=$chosen"
  one_of none none steal diffuse && words="$words SOJOURN_BALANCE=$chosen"
  one_of on on off && words="$words SOJOURN_STEAL=$chosen"
  one_of on on off && words="$words SOJOURN_READ_MEMORY=$chosen"
  one_of 64 128 256 256 1024 && words="$words SOJOURN_STACK_KIB=$chosen"
  one_of '' '' '' '' '' "$first" && words="$words SOJOURN_DELAY=$chosen"
  # Numbers that look like addresses are warned of; looking itself is what lets frames be stolen.
  one_of on on off && words="$words SOJOURN_SCAN=$chosen"
}

last=$((seed + jobs * programs))
first=$seed
while [ "$first" -lt "$last" ]; do
  settings
  # shellcheck disable=SC2086  # a list of words
  env $words timeout $((limit * programs + 30)) "$sojourn" run -n "$ranks" "$program" --seed "$first" \
    --programs "$programs" --limit "$limit" >"$output" 2>&1 </dev/null
  status=$?
  if [ $status -ne 0 ]; then
    grep -v 'warning: a frame of' "$output" | tail -n 40
    echo "programs: a job ended with status $status; to replay it:"
    echo " $words $sojourn run -n $ranks $program --seed $first --programs $programs"
    exit 1
  fi
  first=$((first + programs))
done
